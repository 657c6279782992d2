//! Queues that feed writers: where jobs come from, and where they are published.

mod error;
mod gathering;
mod message_order;
mod reject_text;
mod this_node;

pub mod embedded;
pub mod nats;

pub mod publisher;
mod publishers;
mod remote_writer;

pub use error::NotPublished;
pub use message_order::MessageOrder;
pub use publishers::Publishers;
pub use reject_text::reject_text;
pub use remote_writer::RemoteWriter;
pub use this_node::ThisNode;
