//! Queues that feed writers: where jobs come from, and where they are published.

mod error;
mod gathering;
mod message_order;
mod reject_text;
mod this_node;

pub mod embedded;
pub mod nats;

pub mod publisher;

pub use error::NotPublished;
pub use message_order::MessageOrder;
pub use publisher::Publishers;
pub use reject_text::reject_text;
pub use this_node::ThisNode;
