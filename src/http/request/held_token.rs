//! The token of a request that is answered for long, and whether it still allows what it did.

use std::sync::Arc;

use axum::http::HeaderMap;

use crate::access::{ActiveTokens, Tokens};
use crate::http::guard::authorize::{Needs, authorize, find_grant};
use crate::http::render::problem::Problem;

/// What a request presented.
pub struct HeldToken {
    active: Arc<ActiveTokens>,
    /// Those in force when it was judged last; `None` before the first [`Self::check`]. The request was
    /// judged when it came, and may have waited since.
    judged: Option<Arc<Tokens>>,
    /// With the one header that matters.
    headers: HeaderMap,
    needs: Needs,
}

impl HeldToken {
    pub fn new(active: &Arc<ActiveTokens>, headers: HeaderMap, needs: Needs) -> Self {
        Self { active: Arc::clone(active), judged: None, headers, needs }
    }

    /// Judges it again if the tokens in force are others than before.
    ///
    /// # Errors
    /// When it does not allow the request any more.
    pub fn check(&mut self, board: &str) -> Result<(), Problem> {
        let tokens = self.active.tokens();
        if self.judged.as_ref().is_some_and(|judged| Arc::ptr_eq(&tokens, judged)) {
            return Ok(());
        }
        let Needs::Token(scope, check) = self.needs else { return Ok(()) };
        let grant = find_grant(&self.active, &self.headers)?;
        authorize(&grant, scope, check, Some(board))?;
        self.judged = Some(tokens);
        Ok(())
    }
}
