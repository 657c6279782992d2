//! Jobs on their way to a running service, in batches of one connection each.
//!
//! Must not know: what the jobs were read from.

mod answer;
mod batch;
mod connection;
mod define;
mod made;
mod pending;
mod retries;
mod service;

pub use answer::OpenInstance;
pub use batch::{Batch, Lane};
pub use connection::Connection;
pub use define::ToFinish;
pub use made::{BoardFacts, KeyFacts};
pub use service::Service;
