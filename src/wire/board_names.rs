//! Boards' names while jobs are decoded.

use crate::job::{Reject, RejectCode};
use crate::types::BoardName;

/// The last board name that was decoded. Jobs that come together mostly name the same board: its name is made
/// once.
#[derive(Default)]
pub struct BoardNames(Option<BoardName>);

impl BoardNames {
    /// # Errors
    /// When the text is no board's name.
    pub fn get(&mut self, text: &str) -> Result<BoardName, Reject> {
        match &self.0 {
            Some(known) if known.as_str() == text => Ok(known.clone()),
            _ => {
                let name =
                    BoardName::new(text).map_err(|why| Reject::new(RejectCode::Malformed, why.got(text)))?;
                Ok(self.0.insert(name).clone())
            }
        }
    }
}
