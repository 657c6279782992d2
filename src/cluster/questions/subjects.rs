//! Where a shard is asked.

use crate::queue::nats::Names;
use crate::types::{NodeName, ShardId};

/// The subjects of questions under one prefix.
#[derive(Debug, Clone)]
pub struct AskSubjects {
    names: Names,
}

/// The queue group of a shard's owners: a question goes to one of them.
pub const GROUP: &str = "owners";

impl AskSubjects {
    pub fn new(prefix: &str) -> Self {
        Self { names: Names::new(prefix) }
    }

    /// Where some owner of the shard answers that is level.
    pub fn any(&self, shard: ShardId) -> String {
        self.names.ask_subject(shard)
    }

    /// Whether a reply may be sent to this subject.
    pub fn may_be_inbox(&self, subject: &str) -> bool {
        self.names.may_be_inbox(subject)
    }

    /// Where one owner answers.
    pub fn of_node(&self, shard: ShardId, node: &NodeName) -> String {
        self.names.ask_node_subject(shard, node)
    }
}
