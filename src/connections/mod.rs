//! What the connections of all front ends share: threads, limits, the certificate, how long clients may take.
//!
//! Must not know: what is said on a connection.
//!
//! - `accept`: the next connection of a listener; `unread`: what the system keeps of answers that a client
//!   does not read
//! - `limit`: how many connections there may be, in all and of one client
//! - `threads`: gives each connection to a thread; `turn`: how busy that is
//! - `tls`, `timeouts`

use std::sync::Arc;

mod accept;
mod limit;
mod threads;
mod timeouts;
mod tls;
pub mod turn;
mod unread;

pub use accept::accept;
pub use limit::{ConnectionLimiter, ConnectionLimits, ConnectionPermit, client_of};
pub use threads::Threads;
pub use timeouts::ClientTimeouts;
pub use tls::{InvalidPair, Tls, TlsConnection};
pub use unread::limit as limit_unread;

/// The threads and the limit of all connections, whichever front end they are of.
pub struct SharedConnections {
    pub threads: Threads,
    pub limiter: Arc<ConnectionLimiter>,
}

impl SharedConnections {
    /// # Arguments
    /// `threads`: see [`Threads::start`].
    ///
    /// # Errors
    /// When the system has no resources for the threads.
    pub fn start(threads: usize, limits: ConnectionLimits) -> std::io::Result<Arc<Self>> {
        Ok(Arc::new(Self { threads: Threads::start(threads)?, limiter: ConnectionLimiter::new(limits) }))
    }
}
