//! What all connections share.

use std::sync::Arc;
use std::time::Instant;

use crate::access::ActiveTokens;
use crate::operations::Operations;
use crate::redis::boards::PopTurns;
use crate::redis::server::clients::Clients;
use crate::redis::server::figures::Figures;

/// What all connections share.
pub struct Service {
    pub operations: Arc<Operations>,
    /// The tokens that clients need; `None` if everybody may do everything.
    pub access: Option<Arc<ActiveTokens>>,
    pub clients: Clients,
    pub figures: Figures,
    pub pops: PopTurns,
    pub started: Instant,
    /// For those who ask.
    pub port: u16,
    pub connections_max: usize,
}
