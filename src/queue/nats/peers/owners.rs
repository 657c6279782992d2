//! The other owners of a shard: what they say of their hashes, how far they have applied the stream,
//! and which owner publishes the rejects.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::queue::nats::peers::entries::{NodeEntry, ShardEntry};
use crate::queue::nats::peers::hashes::OtherHashes;
use crate::queue::nats::peers::known::{Node, Peers};
use crate::types::{NodeName, Sequence, ShardId};

/// The state of a shard that applies what arrives, as entries name it.
pub(super) const LIVE: &str = "live";
/// How old what is known of other owners' progress may be. They tell it every two seconds.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// What a shard's other owners that are alive say of their hashes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HashesOfOthers {
    /// Those that can be compared.
    pub said: Vec<OtherHashes>,
    /// How many have not said yet what they have. A node that has just started does not even say which
    /// shards it owns.
    pub unheard: usize,
}

impl Peers {
    /// The hashes of a shard's other owners that are alive.
    pub fn hashes_of_others(&self, shard: ShardId, stream: &str) -> HashesOfOthers {
        let mut found = HashesOfOthers::default();
        self.each_alive(|name, entry| {
            let owned = entry.shards.iter().find(|owned| owned.shard == shard.0);
            let Some(owned) = owned else {
                found.unheard += usize::from(entry.shards.is_empty());
                return;
            };
            match &owned.hashes {
                Some(hashes) => found.said.extend(hashes.of(name, stream)),
                // It has none of this stream's log, and will not have any until an operator acts.
                None if !owned.stream.is_empty() && owned.stream != stream => {}
                None => found.unheard += 1,
            }
        });
        found
    }

    /// Where other owners have found this node to differ, and wait until it does not.
    pub fn asked(&self, shard: ShardId, stream: &str) -> Vec<Sequence> {
        let of_this = |other: OtherHashes| {
            let asked = other.diverged.filter(|diverged| diverged.node == self.this.name.as_str())?;
            Some(Sequence(asked.sequence))
        };
        self.hashes_of_others(shard, stream).said.into_iter().filter_map(of_this).collect()
    }

    /// Whether this node is the one that publishes a shard's rejects: of the owners on which the shard is
    /// live, or of all that are alive if there is no such one, that with the least name. Nodes may see this
    /// differently for some seconds, so nothing but work depends on it.
    ///
    /// # Arguments
    /// `is_live`: whether the shard is live on this node.
    pub fn publishes_rejects(&self, shard: ShardId, is_live: bool) -> bool {
        let others = self.of_alive_owners(shard, |name, owned| Some((name.clone(), owned.state == LIVE)));
        let mut before = others.iter().filter(|(name, _)| *name < self.this.name);
        if is_live {
            !before.any(|(_, is_live)| *is_live)
        } else {
            !others.iter().any(|(_, is_live)| *is_live) && before.next().is_none()
        }
    }

    /// Whether no other node has ever said that it owns a shard, or what of its stream it needs. `false` as
    /// long as what nodes have said was not read to its end.
    fn nobody_owns(&self, shard: ShardId) -> bool {
        let known = self.known.lock();
        let may_own = |node: &Node| {
            let of_this = |entry: &NodeEntry| entry.shards.iter().any(|owned| owned.shard == shard.0);
            node.entry.as_ref().is_some_and(|entry| entry.as_ref().map_or(true, of_this))
        };
        known.are_read()
            && !known.floors.keys().any(|(of, _)| *of == shard)
            && !known.nodes.values().any(may_own)
    }

    /// Of the shard's other owners that are alive: the one that has applied most, and how much. One whose
    /// data are of another stream than that from which the shard is live has applied other messages.
    fn applied_by_another(&self, shard: ShardId) -> Option<(NodeName, u64)> {
        let live = self.live_streams_of(shard);
        let applied = self.of_alive_owners(shard, |name, owned| {
            let counts = live.is_empty() || live.contains(&owned.stream);
            counts.then(|| (name.clone(), owned.applied))
        });
        applied.into_iter().max_by_key(|(_, applied)| *applied)
    }

    fn of_alive_owners<T>(&self, shard: ShardId, of: impl Fn(&NodeName, &ShardEntry) -> Option<T>) -> Vec<T> {
        let mut found = Vec::new();
        self.each_alive(|name, entry| {
            let owned = entry.shards.iter().find(|owned| owned.shard == shard.0);
            found.extend(owned.and_then(|owned| of(name, owned)));
        });
        found
    }
}

/// Whether a shard has other owners, and how far they have applied its stream. Each message that is published
/// asks, so that they are looked at once in a while.
pub struct AppliedByOthers {
    peers: Arc<Peers>,
    shard: ShardId,
    looked: Mutex<Option<Looked>>,
}

struct Looked {
    at: Instant,
    /// The owner that has applied most.
    most: Option<(NodeName, u64)>,
    nobody_owns: bool,
}

impl AppliedByOthers {
    pub fn new(peers: Arc<Peers>, shard: ShardId) -> Self {
        Self { peers, shard, looked: Mutex::default() }
    }

    /// The node that has applied most, and how much, if that is more than `own`; as of half a second ago at
    /// most.
    pub fn more_than(&self, own: u64) -> Option<(NodeName, u64)> {
        self.looked(|looked| looked.most.as_ref().filter(|most| most.1 > own).cloned())
    }

    /// Whether no other node has ever said that it owns the shard; as of half a second ago at most.
    pub fn nobody_owns(&self) -> bool {
        self.looked(|looked| looked.nobody_owns)
    }

    fn looked<T>(&self, what: impl FnOnce(&Looked) -> T) -> T {
        let mut looked = self.looked.lock();
        let (peers, shard) = (&self.peers, self.shard);
        let look = || Looked {
            at: Instant::now(),
            most: peers.applied_by_another(shard),
            nobody_owns: peers.nobody_owns(shard),
        };
        match looked.take_if(|looked| looked.at.elapsed() < LOOK_INTERVAL) {
            Some(recent) => what(looked.insert(recent)),
            None => what(looked.insert(look())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::nats::peers::hashes::{DivergedEntry, HashesEntry};
    use crate::queue::nats::peers::known::{self, Received};
    use crate::queue::this_node::ThisNode;
    use crate::state::HASH_VERSION;

    fn name(text: &str) -> NodeName {
        NodeName::new(text).expect("a good name")
    }

    fn peers() -> Peers {
        let this = ThisNode { name: name("m"), address: String::new(), directory: "d-m".to_owned() };
        Peers::new(this, String::new(), Duration::from_secs(3_600))
    }

    fn note(peers: &Peers, node: &str, state: &str, silent: Duration, hashes: Option<HashesEntry>) {
        note_of(peers, node, (state, "S@1", 9), silent, hashes);
    }

    fn note_of(
        peers: &Peers,
        node: &str,
        (state, stream, applied): (&str, &str, u64),
        silent: Duration,
        hashes: Option<HashesEntry>,
    ) {
        let shard = ShardEntry {
            shard: 3,
            state: state.to_owned(),
            stream: stream.to_owned(),
            applied,
            checkpoint: 0,
            safe: 0,
            lag: 0,
            hashes,
        };
        let entry = NodeEntry {
            run: String::new(),
            directory: format!("d-{node}"),
            address: String::new(),
            version: String::new(),
            shards: vec![shard],
        };
        peers.note_node(Received { node: name(node), sequence: 1, age: silent, entry: Some(Ok(entry)) });
    }

    #[test]
    fn the_live_owner_with_the_least_name_publishes_rejects() {
        const NOW: Duration = Duration::ZERO;
        let publishes = |others: &[(&str, &str, Duration)], is_live| {
            let peers = peers();
            for (node, state, silent) in others {
                note(&peers, node, state, *silent, None);
            }
            peers.publishes_rejects(ShardId(3), is_live)
        };
        for is_live in [true, false] {
            assert!(publishes(&[], is_live));
            assert!(!publishes(&[("a", "live", NOW)], is_live));
            assert!(publishes(&[("a", "live", Duration::from_secs(11))], is_live), "it is silent");
            assert!(publishes(&[("z", "catching_up", NOW)], is_live));
        }
        assert!(publishes(&[("z", "live", NOW), ("a", "catching_up", NOW)], true));
        assert!(!publishes(&[("z", "live", NOW), ("a", "catching_up", NOW)], false));
        assert!(!publishes(&[("a", "halted", NOW)], false));
        let peers = peers();
        note(&peers, "a", "live", NOW, None);
        assert!(peers.publishes_rejects(ShardId(4), true), "it does not own this one");
    }

    #[test]
    fn the_owner_that_has_applied_most_counts_while_it_is_alive() {
        let known = |others: &[(&str, Duration)]| {
            let peers = peers();
            for (node, silent) in others {
                note(&peers, node, LIVE, *silent, None);
            }
            AppliedByOthers::new(Arc::new(peers), ShardId(3))
        };
        let one = known(&[("a", Duration::ZERO)]);
        assert_eq!(one.more_than(8), Some((name("a"), 9)));
        assert_eq!((one.more_than(9), one.more_than(10)), (None, None));
        assert_eq!(known(&[("a", Duration::from_secs(11))]).more_than(0), None);
        assert_eq!(known(&[]).more_than(0), None);
    }

    #[test]
    fn nobody_owns_a_shard_of_which_no_node_has_said_anything_once_all_was_read() {
        let peers = Arc::new(peers());
        let nobody_owns = |shard| AppliedByOthers::new(Arc::clone(&peers), ShardId(shard)).nobody_owns();
        assert!(!nobody_owns(3), "nothing was read");
        peers.begin_reading_floors();
        peers.end_reading_floors();
        assert!(!nobody_owns(3), "the nodes were not read");
        peers.begin_reading_nodes();
        peers.end_reading_nodes();
        assert!(nobody_owns(3));
        // One that is silent now may be back, and its stream holds what it will apply.
        note(&peers, "a", LIVE, Duration::from_secs(999), None);
        assert!(!nobody_owns(3) && nobody_owns(4));
        let floor = known::test_support::floor("gone", "d-gone", 5, 1, Duration::from_secs(999));
        peers.note_floor(ShardId(4), floor);
        assert!(!nobody_owns(4) && nobody_owns(5));
        peers.lose_nodes();
        assert!(!nobody_owns(5), "what they say now is not known");
    }

    /// It was started at another server for a while, and has applied more there.
    #[test]
    fn what_was_applied_of_another_stream_does_not_count_where_the_shard_is_live() {
        let peers = Arc::new(peers());
        let most = || AppliedByOthers::new(Arc::clone(&peers), ShardId(3)).more_than(0);
        note_of(&peers, "a", ("halted", "S@2", 90), Duration::ZERO, None);
        assert_eq!(most(), Some((name("a"), 90)), "the stream may have been made again just now");
        peers.note_live(ShardId(3), Some("S@1".to_owned()));
        assert_eq!(most(), None);
        // It has started, and not said yet which stream its data are of.
        note_of(&peers, "z", ("catching_up", "", 50), Duration::ZERO, None);
        assert_eq!(most(), None);
        note(&peers, "b", LIVE, Duration::ZERO, None);
        peers.note_live(ShardId(3), None);
        assert_eq!(most(), Some((name("b"), 9)));
    }

    #[test]
    fn hashes_of_others_are_those_of_owners_that_are_alive() {
        let peers = peers();
        let diverged =
            |node: &str| Some(DivergedEntry { node: node.to_owned(), sequence: 8, by: String::new() });
        let hashes = |diverged| HashesEntry {
            version: HASH_VERSION,
            stream: "S@1".to_owned(),
            at: Vec::new(),
            diverged,
            copied_from: None,
        };
        note(&peers, "a", "live", Duration::from_secs(11), Some(hashes(diverged("m"))));
        note(&peers, "b", "live", Duration::ZERO, Some(hashes(diverged("z"))));
        note_of(&peers, "c", ("catching_up", "", 9), Duration::ZERO, None);
        note(&peers, "d", "halted", Duration::ZERO, Some(hashes(diverged("m"))));
        note_of(&peers, "g", ("halted", "S@9", 9), Duration::ZERO, None);
        let names = |stream| -> Vec<String> {
            let others = peers.hashes_of_others(ShardId(3), stream);
            assert_eq!(others.unheard, 1, "c has not said anything yet");
            others.said.into_iter().map(|other| other.node.to_string()).collect()
        };
        assert_eq!((names("S@1"), names("S@2")), (vec!["b".to_owned(), "d".to_owned()], Vec::new()));
        let unheard = |shard| peers.hashes_of_others(ShardId(shard), "S@1").unheard;
        assert_eq!(unheard(4), 0, "they say that they own another one");
        let mut starting = known::test_support::node("e", "d-e", 1, Duration::ZERO);
        peers.note_node(starting.clone());
        assert_eq!((unheard(3), unheard(4)), (2, 1), "one that starts may own any");
        starting.age = Duration::from_secs(11);
        peers.note_node(Received { node: name("f"), ..starting });
        assert_eq!(unheard(4), 1, "a silent one says nothing any more");
        assert_eq!(peers.asked(ShardId(3), "S@1"), [Sequence(8)]);
        assert_eq!(peers.asked(ShardId(4), "S@1"), []);
    }
}
