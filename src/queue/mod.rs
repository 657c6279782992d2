//! Queues that feed writers: where jobs come from, and where they are published.

pub mod local;
mod message_order;
pub mod nats;
pub mod publisher;
mod reject_text;

pub use message_order::MessageOrder;
pub use reject_text::reject_text;
