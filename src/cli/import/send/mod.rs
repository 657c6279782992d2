//! Jobs on their way to a running service, in batches of one connection each.
//!
//! Must not know: what the jobs were read from.

mod answer;
mod batch;
mod connection;
mod define;
mod retries;
mod service;

pub use batch::Lane;
pub use connection::Connection;
pub use define::ToFinish;
pub use service::Service;
