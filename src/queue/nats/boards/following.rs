//! How far a node has got with following the boards' stream, as far as writes have to know.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use crate::queue::nats::boards::decision::Record;
use crate::state::Incarnation;
use crate::types::{BoardName, ShardId};

/// How far this node has got with the boards' stream.
pub enum Following {
    /// The stream is not read, or not to its end, since this moment.
    NotSince(Instant),
    /// It was read, and the owners of other shards have not confirmed yet what they hold.
    Unconfirmed(Unconfirmed),
    Confirmed,
}

/// What the stream says.
pub struct Unconfirmed {
    /// From when it was read from the beginning.
    records: Arc<LastRecords>,
    /// The records that were read since.
    later: HashMap<BoardName, Record>,
    /// What this node has published since then.
    published: HashMap<BoardName, HashSet<ShardId>>,
}

impl Unconfirmed {
    pub fn new(records: Arc<LastRecords>) -> Self {
        Self { records, later: HashMap::new(), published: HashMap::new() }
    }

    /// The last record of a board, if a shard may lack it: its owners have not confirmed it, and this node
    /// has not published it to the shard.
    ///
    /// # Arguments
    /// `confirmed`: the sequence in the stream up to which the shard's owners have confirmed.
    pub fn lacking(&self, shard: ShardId, name: &BoardName, confirmed: u64) -> Option<&Record> {
        let last = self.later.get(name).or_else(|| self.records.records.get(name))?;
        let is_published = self.published.get(name).is_some_and(|shards| shards.contains(&shard));
        (confirmed < last.sequence && !is_published).then_some(last)
    }
}

impl Following {
    /// The stream is not followed any more. Writes wait from the first time on that this is said.
    pub fn end(&mut self) {
        if !matches!(self, Self::NotSince(_)) {
            *self = Self::NotSince(Instant::now());
        }
    }

    /// This node has published what was decided about a board to a shard.
    pub fn note_published(&mut self, shard: ShardId, name: &BoardName) {
        if let Self::Unconfirmed(Unconfirmed { published, .. }) = self {
            published.entry(name.clone()).or_default().insert(shard);
        }
    }

    /// A record was read that came after the beginning.
    pub fn note(&mut self, name: &BoardName, recorded: &Record) {
        if let Self::Unconfirmed(unconfirmed) = self {
            unconfirmed.later.insert(name.clone(), recorded.clone());
            unconfirmed.published.remove(name);
        }
    }
}

/// The last record of each board, when the stream was read from the beginning.
#[derive(Default)]
pub struct LastRecords {
    pub records: HashMap<BoardName, Record>,
    /// Boards whose last record cannot be read. A newer version may have written it.
    pub unreadable: HashSet<BoardName>,
}

impl LastRecords {
    /// Whether the stream has a life of a board, or a later one.
    pub fn has_life(&self, name: &BoardName, life: Incarnation) -> bool {
        self.records.get(name).is_some_and(|recorded| recorded.decision.incarnation >= life)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Definition;
    use crate::queue::nats::boards::decision::Decision;
    use crate::state::{Incarnation, RecordNumber};

    fn defined(sequence: u64, keep: u32) -> Record {
        let definition = Some(Arc::new(Definition { keep, ..Definition::default() }));
        let decision = Decision { incarnation: Incarnation(1), definition };
        Record { sequence, number: RecordNumber(sequence), decision }
    }

    /// A board is defined, read, and defined anew before the owners have confirmed anything: a job has to
    /// come after the later definition, also where the first one was published already.
    #[test]
    fn a_later_definition_than_that_of_the_first_read_is_what_shards_lack() {
        let board = |name| BoardName::new(name).expect("a good name");
        let (changed, other) = (board("changed"), board("other"));
        let records = [(changed.clone(), defined(5, 1)), (other.clone(), defined(6, 1))];
        let records = LastRecords { records: records.into(), ..LastRecords::default() };
        let mut following = Following::Unconfirmed(Unconfirmed::new(Arc::new(records)));
        let (a, b) = (ShardId(0), ShardId(1));
        let lacking = |following: &Following, shard, name: &BoardName, confirmed| {
            let Following::Unconfirmed(unconfirmed) = following else { panic!("nothing is confirmed") };
            unconfirmed.lacking(shard, name, confirmed).cloned()
        };
        assert_eq!(lacking(&following, a, &changed, 4), Some(defined(5, 1)));
        following.note_published(a, &changed);
        following.note_published(a, &other);
        assert_eq!(lacking(&following, a, &changed, 0), None);
        assert_eq!(lacking(&following, b, &changed, 0), Some(defined(5, 1)), "the other shard may lack it");
        following.note(&changed, &defined(9, 2));
        for shard in [a, b] {
            assert_eq!(lacking(&following, shard, &changed, 8), Some(defined(9, 2)), "{shard}");
            assert_eq!(lacking(&following, shard, &changed, 9), None, "its owners have confirmed it");
        }
        assert_eq!(lacking(&following, a, &other, 0), None, "what was published of other boards holds");
        following.note_published(a, &changed);
        assert_eq!(lacking(&following, a, &changed, 0), None);
        // A board that is new since is lacked, too.
        following.note(&board("new"), &defined(10, 3));
        assert_eq!(lacking(&following, a, &board("new"), 9), Some(defined(10, 3)));
    }
}
