//! Queues that feed writers, and a job's form on the wire.

mod describe;

pub mod json_words;
pub mod local;
pub mod loose;
mod message_order;
mod named_boards;
pub mod nats;
mod plain;
pub mod publisher;
mod reject_text;
pub mod wire;

pub use describe::{describe, read_described};
pub use message_order::MessageOrder;
pub use named_boards::names_only;
pub use reject_text::reject_text;
