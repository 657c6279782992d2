//! From a request's jobs or boards to the shards' queues, and back.

pub mod new_boards;
pub mod results;
pub mod scatter;
