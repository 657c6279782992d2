//! Queues that feed writers, and a job's form on the wire.

mod describe;

pub mod jetstream;
pub mod local;
pub mod loose;
mod message_order;
mod plain;
pub mod publisher;
mod reject_text;
pub mod wire;

pub use describe::{describe, read_described};
pub use message_order::MessageOrder;
pub use reject_text::reject_text;
