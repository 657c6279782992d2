//! The publishing ends of all shards, those of other nodes among them: whoever publishes needs no shard.

use crate::queue::publisher::Publisher;
use crate::types::ShardId;

/// One publisher for each shard, by number.
pub struct Publishers(Vec<Publisher>);

impl Publishers {
    /// # Arguments
    /// `publishers`: one for each shard, in the order of their numbers.
    pub fn new(publishers: Vec<Publisher>) -> Self {
        Self(publishers)
    }

    pub fn of(&self, shard: ShardId) -> &Publisher {
        self.0.get(shard.index()).expect("every shard of the node has a publisher")
    }

    /// Ends the queues of all shards for this node; see [`Publisher::close`].
    pub fn close(&self) {
        for publisher in &self.0 {
            publisher.close();
        }
    }
}
