//! Writes: from a request's jobs or boards to the shards' queues, and back to what came of them.

pub mod boards;
pub mod new_boards;
pub mod options;
pub mod publish;
pub mod results;
pub mod results_json;
pub mod scatter;
pub mod sent_metadata;
pub mod settle;
pub mod trim;
