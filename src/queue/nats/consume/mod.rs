//! Reading a shard's stream: the writer's end, the fetcher that reads ahead of it, and where the messages are from.

pub mod fetcher;
pub mod origin;
pub mod sessions;
pub mod source;
