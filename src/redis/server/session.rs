//! The state of a connection: who the client is, and what it has written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::access::{Grant, Tokens};
use crate::operations::{InProgress, Operations};
use crate::redis::boards::{Asking, Peer};
use crate::redis::commands::Authentication;
use crate::redis::frames::Protocol;
use crate::redis::refused::Refused;
use crate::redis::server::clients::Client;
use crate::redis::server::service::Service;
use crate::redis::server::transaction::Transaction;
use crate::types::{AsOf, BoardName};

/// For how long it is remembered that a connection has made a board of which its node has not heard.
const HEARD_WITHIN: Duration = Duration::from_secs(5);

/// The state of a connection.
pub struct Session {
    pub client: Arc<Client>,
    pub protocol: Protocol,
    token: Option<Presented>,
    /// What its writes came to: its reads wait for that.
    pub written: AsOf,
    /// Boards that it has made and that this node has not heard of yet, and when it made the last of them.
    pub unheard: Vec<BoardName>,
    made_at: Instant,
    /// Between `MULTI` and `EXEC`.
    pub transaction: Option<Transaction>,
}

/// A token, and the tokens by which it was judged.
struct Presented {
    secret: String,
    judged_by: Arc<Tokens>,
    grant: Arc<Grant>,
}

/// What a client may do at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// No tokens are needed.
    Everything,
    /// What its token allows.
    By(Arc<Grant>),
    /// It has brought none, or one that is none any more.
    Nothing,
}

impl Allowed {
    pub fn grant(&self) -> Option<&Arc<Grant>> {
        match self {
            Self::By(grant) => Some(grant),
            Self::Everything | Self::Nothing => None,
        }
    }
}

impl Session {
    pub fn new(client: Arc<Client>) -> Self {
        Self {
            client,
            protocol: Protocol::default(),
            token: None,
            written: AsOf::default(),
            unheard: Vec::new(),
            made_at: Instant::now(),
            transaction: None,
        }
    }

    /// What the client may do by the tokens that are in force now.
    pub fn allowed(&mut self, service: &Service) -> Allowed {
        let Some(access) = &service.access else { return Allowed::Everything };
        let in_force = access.tokens();
        let Some(presented) = &mut self.token else { return Allowed::Nothing };
        if !Arc::ptr_eq(&presented.judged_by, &in_force) {
            let Some(grant) = in_force.find(&presented.secret) else {
                self.token = None;
                return Allowed::Nothing;
            };
            (presented.judged_by, presented.grant) = (in_force, grant);
        }
        Allowed::By(Arc::clone(&presented.grant))
    }

    /// Takes a token.
    ///
    /// # Errors
    /// When it is none of the service's, or no tokens are needed and the client does not say who it is.
    pub fn authenticate(&mut self, service: &Service, with: &Authentication<'_>) -> Result<(), Refused> {
        let Some(access) = &service.access else {
            // As for a user of Redis that needs no password.
            if with.has_user {
                return Ok(());
            }
            return Err(Refused::new(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure \
                 your configuration is correct?",
            ));
        };
        let judged_by = access.tokens();
        let found =
            str::from_utf8(with.token).ok().and_then(|secret| Some((secret, judged_by.find(secret)?)));
        let Some((secret, grant)) = found else {
            service.figures.note_refused_token(self.client.address());
            return Err(Refused::new("WRONGPASS invalid username-password pair or user is disabled."));
        };
        self.client.set_user(&grant.name);
        self.token = Some(Presented { secret: secret.to_owned(), judged_by, grant });
        Ok(())
    }

    /// Makes it as it was in the beginning, but for what it has written.
    pub fn reset(&mut self) {
        (self.token, self.protocol, self.transaction) = (None, Protocol::default(), None);
        self.client.set_name(b"");
        self.client.set_user("default");
    }

    /// Who asks.
    pub fn asking<'a>(
        &'a self,
        service: &'a Service,
        allowed: &'a Allowed,
        peer: &'a dyn Peer,
        unsent: &'a InProgress,
    ) -> Asking<'a> {
        let Self { written, unheard, .. } = self;
        let grant = allowed.grant().map(AsRef::as_ref);
        Asking { operations: &service.operations, grant, written, unheard, peer, unsent }
    }

    /// Notes a board that it has made and that this node has not heard of.
    pub fn note_unheard(&mut self, board: BoardName) {
        self.made_at = Instant::now();
        if !self.unheard.contains(&board) {
            self.unheard.push(board);
        }
    }

    /// Forgets boards of which this node has heard, or never will.
    pub fn forget_unheard(&mut self, operations: &Operations) {
        if self.unheard.is_empty() {
            return;
        }
        if self.made_at.elapsed() > HEARD_WITHIN {
            self.unheard.clear();
        }
        self.unheard.retain(|board| operations.registry.get(board.as_str()).is_none());
    }

    /// Notes what a write came to.
    pub fn note_written(&mut self, token: AsOf) {
        self.written.note(token);
    }
}
