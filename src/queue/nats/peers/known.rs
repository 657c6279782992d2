//! What is known of other nodes, in memory: as of the last message of either bucket.
//!
//! Knows: how long each node has been silent. Silence is counted by this process's clock from when it
//! received a message. Only for a message that was stored before it began to read, the age at that moment is
//! told by the wall clock and the server's time. Must not know: how the buckets are read (`follow`).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::queue::nats::peers::entries::{FloorEntry, NodeEntry, ShardEntry, UnreadableEntry};
use crate::queue::nats::peers::floors::{self, Counts, FloorsOfOthers, OwnerFloor, PurgedStream};
use crate::queue::this_node::ThisNode;
use crate::types::{NodeName, ShardId};

/// A node that was silent for longer is not alive: it renews its entry every two seconds.
const ALIVE_WITHIN: Duration = Duration::from_secs(10);
/// A node that has no floors is gone once it was silent for longer.
const GONE_AFTER: Duration = Duration::from_secs(60);
/// The floors of an owner are deleted once it has been silent for so many times `--nats-forget`.
const DELETE_AFTER: u32 = 7;

/// What this node knows of the others.
pub struct Peers {
    pub this: ThisNode,
    forget_after: Duration,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    nodes: BTreeMap<NodeName, Node>,
    floors: BTreeMap<(ShardId, NodeName), Floor>,
    /// Counts how often the bucket of floors was read from the beginning.
    reading: u64,
    /// Whether all floors are known; why not.
    floors_read: Option<Result<(), String>>,
    /// Messages of the bucket of floors that nobody needs.
    deletable: Vec<u64>,
    /// Why this node has no entries of its own, if it cannot have any.
    own_problem: Option<String>,
}

/// Another node.
struct Node {
    heard: Heard,
    /// `None`: only its floors are known.
    entry: Option<Result<NodeEntry, UnreadableEntry>>,
    /// The place of its entry in the bucket of nodes.
    sequence: u64,
    /// Whether it was logged that it no longer holds streams back.
    is_forgotten: bool,
}

/// What is known of an owner's floor.
struct Floor {
    said: Result<FloorEntry, UnreadableEntry>,
    /// Its place in the bucket of floors.
    sequence: u64,
    reading: u64,
    /// Whether it counted when it was last asked for; logged when that changes.
    counted: Counts,
}

/// When something was last heard of a node.
#[derive(Debug, Clone, Copy)]
struct Heard {
    /// How old it was when it was received.
    age: Duration,
    at: Instant,
}

impl Heard {
    fn silent(self, now: Instant) -> Duration {
        self.age + now.saturating_duration_since(self.at)
    }

    fn later(self, other: Self, now: Instant) -> Self {
        if other.silent(now) < self.silent(now) { other } else { self }
    }
}

/// A message of one of the buckets.
#[derive(Debug, Clone)]
pub struct Received<E> {
    pub node: NodeName,
    pub sequence: u64,
    /// How old it was when it was received.
    pub age: Duration,
    /// `None`: an operator has deleted the entry.
    pub entry: Option<Result<E, UnreadableEntry>>,
}

/// Another node, for status and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownNode {
    pub name: NodeName,
    pub address: Option<String>,
    pub version: Option<String>,
    pub silent: Duration,
    pub is_alive: bool,
    /// Why its entry cannot be read.
    pub problem: Option<String>,
    pub shards: Vec<OwnedShard>,
}

/// A shard that another node owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedShard {
    pub shard: ShardId,
    /// `None`: nothing was heard of it yet.
    pub state: Option<String>,
    pub applied: Option<u64>,
    pub lag: Option<u64>,
    pub checkpoint: Option<u64>,
    /// The hash of its log at the last sequence that it has said, `sequence:hash`.
    pub hash: Option<String>,
}

impl Peers {
    #[must_use]
    pub fn new(this: ThisNode, forget_after: Duration) -> Self {
        Self { this, forget_after, known: Mutex::default() }
    }

    /// Notes a message of the bucket of nodes.
    pub fn note_node(&self, received: Received<NodeEntry>) {
        let Received { node, sequence, age, entry } = received;
        let (mut known, now) = (self.known.lock(), Instant::now());
        let Some(entry) = entry else {
            if let Some(node) = known.nodes.get_mut(&node) {
                node.entry = None;
            }
            return;
        };
        if let Ok(entry) = &entry {
            if entry.directory == self.this.directory {
                known.nodes.remove(&node);
                return;
            }
            // The same directory under another name: the node was started again.
            let is_same =
                |other: &Node| matches!(&other.entry, Some(Ok(other)) if other.directory == entry.directory);
            known.nodes.retain(|name, other| *name == node || !is_same(other) || other.sequence > sequence);
        }
        let heard = Heard { age, at: now };
        let of_node = known.hear(&node, heard, now);
        // A message that was received before says nothing new.
        if sequence > of_node.sequence {
            of_node.sequence = sequence;
            of_node.entry = Some(entry);
        }
    }

    /// The bucket of nodes is read from the beginning. It may be another bucket, with other places.
    pub fn begin_reading_nodes(&self) {
        for node in self.known.lock().nodes.values_mut() {
            node.sequence = 0;
        }
    }

    /// Notes a message of the bucket of floors.
    pub fn note_floor(&self, shard: ShardId, received: Received<FloorEntry>) {
        let Received { node, sequence, age, entry } = received;
        let (mut known, now) = (self.known.lock(), Instant::now());
        let key = (shard, node);
        let Some(floor) = entry else {
            known.floors.remove(&key);
            return;
        };
        if let Ok(floor) = &floor {
            if floor.directory == self.this.directory {
                known.floors.remove(&key);
                if key.1 != self.this.name {
                    known.deletable.push(sequence);
                }
                return;
            }
            let is_same =
                |other: &Floor| matches!(&other.said, Ok(other) if other.directory == floor.directory);
            let reading = known.reading;
            let others = known.floors.iter().filter(|((of, name), _)| *of == shard && *name != key.1);
            let same: Vec<_> = others
                .filter(|(_, other)| is_same(other))
                // Places in the bucket are compared within one reading: it may be another bucket since.
                .map(|(key, other)| (key.clone(), if other.reading == reading { other.sequence } else { 0 }))
                .collect();
            for (other, at) in same {
                if at > sequence {
                    return;
                }
                known.floors.remove(&other);
            }
        }
        known.hear(&key.1, Heard { age, at: now }, now);
        let reading = known.reading;
        let counted = known.floors.remove(&key).map_or(Counts::Yes, |before| before.counted);
        known.floors.insert(key, Floor { said: floor, sequence, reading, counted });
    }

    /// The bucket of floors is read from the beginning.
    pub fn begin_reading_floors(&self) {
        let mut known = self.known.lock();
        known.reading += 1;
        known.deletable.clear();
    }

    /// All floors were read.
    pub fn end_reading_floors(&self) {
        let mut known = self.known.lock();
        let reading = known.reading;
        known.floors.retain(|_, floor| floor.reading == reading);
        known.floors_read = Some(Ok(()));
    }

    /// The bucket of floors cannot be read.
    pub fn lose_floors(&self, why: &str) {
        self.known.lock().floors_read = Some(Err(why.to_owned()));
    }

    /// How often the bucket of floors was read from the beginning.
    pub fn reading(&self) -> u64 {
        self.known.lock().reading
    }

    /// What other nodes still need of a shard's stream. Logs what has changed about owners whose floors do
    /// not count.
    pub fn floors(&self, shard: ShardId, stream: PurgedStream<'_>) -> FloorsOfOthers {
        let mut known = self.known.lock();
        let why = match &known.floors_read {
            Some(Ok(())) => None,
            Some(Err(why)) => Some(why.clone()),
            None => Some("they were not read yet".to_owned()),
        };
        if let Some(why) = why {
            return FloorsOfOthers::unknown(format!("the floors of other nodes cannot be read: {why}"));
        }
        let (now, forget_after) = (Instant::now(), self.forget_after);
        let Known { nodes, floors, .. } = &mut *known;
        let of_shard = floors.iter_mut().filter(|((of, _), _)| *of == shard);
        let counting = of_shard.filter_map(|((_, name), floor)| {
            let node = nodes.get_mut(name)?;
            let silent = node.heard.silent(now);
            let (is_alive, said) = (silent < ALIVE_WITHIN, &floor.said);
            let owner = OwnerFloor { node: name.as_str(), silent, is_alive, floor: said };
            let counts = owner.counts(stream, forget_after);
            note_forgotten(name, node, counts == Counts::Forgotten, silent);
            let changed = std::mem::replace(&mut floor.counted, counts.clone()) != counts;
            match counts {
                Counts::Passed if changed => tracing::warn!(
                    %shard, node = %name, first = stream.first,
                    "a node needs messages that are purged already, so it no longer holds the stream back; it needs a copy of another node's data"
                ),
                Counts::OtherStream if changed => tracing::warn!(
                    %shard, node = %name,
                    "a node was filled from a stream that this one has replaced, so it does not hold this one back"
                ),
                _ => {}
            }
            (counts == Counts::Yes).then_some(owner)
        });
        floors::lowest(counting)
    }

    /// The other nodes that are not forgotten, by name.
    pub fn all(&self) -> Vec<KnownNode> {
        let (known, now) = (self.known.lock(), Instant::now());
        let nodes = known.nodes.iter().filter(|(name, node)| {
            let silent = node.heard.silent(now);
            // A node without floors holds nothing back. It is gone once its entry has expired.
            let owns = || known.floors.keys().any(|(_, of)| of == *name);
            silent < ALIVE_WITHIN
                || (node.entry.is_some() && silent < GONE_AFTER)
                || (silent <= self.forget_after && owns())
        });
        nodes.map(|(name, node)| known.describe(name, node, now)).collect()
    }

    /// Whether another node that is alive owns a shard and applies it, or will once it has caught up.
    pub fn have_applying(&self, shard: ShardId) -> bool {
        let (known, now) = (self.known.lock(), Instant::now());
        let applies = |entry: &NodeEntry| {
            entry.shards.iter().any(|owned| owned.shard == shard.0 && owned.state != ShardEntry::HALTED)
        };
        known.nodes.values().any(|node| {
            node.heard.silent(now) < ALIVE_WITHIN
                && node.entry.as_ref().is_some_and(|entry| entry.as_ref().is_ok_and(applies))
        })
    }

    /// Calls `each` for every other node that is alive and whose entry can be read, by name.
    pub(super) fn each_alive(&self, mut each: impl FnMut(&NodeName, &NodeEntry)) {
        let (known, now) = (self.known.lock(), Instant::now());
        let alive = known.nodes.iter().filter(|(_, node)| node.heard.silent(now) < ALIVE_WITHIN);
        for (name, node) in alive {
            if let Some(Ok(entry)) = &node.entry {
                each(name, entry);
            }
        }
    }

    /// Messages of the bucket of floors that nobody needs any more. They are given once.
    pub fn take_deletable(&self) -> Vec<u64> {
        let (mut known, now) = (self.known.lock(), Instant::now());
        let Known { nodes, floors, deletable, .. } = &mut *known;
        let delete_after = self.forget_after.saturating_mul(DELETE_AFTER).max(ALIVE_WITHIN);
        nodes.retain(|name, node| {
            let silent = node.heard.silent(now);
            let has_floors = floors.keys().any(|(_, of)| of == name);
            silent <= delete_after || (!has_floors && silent <= self.forget_after)
        });
        floors.retain(|(_, name), floor| {
            let keeps = nodes.contains_key(name);
            if !keeps {
                deletable.push(floor.sequence);
            }
            keeps
        });
        std::mem::take(deletable)
    }

    /// Whether all floors were read, so that all owners are known.
    #[must_use]
    pub fn knows_owners(&self) -> bool {
        matches!(self.known.lock().floors_read, Some(Ok(())))
    }

    /// The floor that a data directory has stored of a shard, as of what was read.
    #[must_use]
    pub fn floor_of(&self, shard: ShardId, directory: &str) -> Option<u64> {
        let known = self.known.lock();
        let mut floors = known.floors.iter().filter(|((of, _), _)| *of == shard);
        floors.find_map(|(_, floor)| {
            floor.said.as_ref().ok().filter(|said| said.directory == directory).map(|said| said.sequence)
        })
    }

    /// Another owner that was filled from another stream than this one, if no owner was filled from this one.
    ///
    /// # Errors
    /// When not all floors are known; why.
    pub fn filled_from_another(
        &self,
        shard: ShardId,
        stream: &str,
    ) -> Result<Option<(NodeName, String)>, String> {
        let known = self.known.lock();
        match &known.floors_read {
            Some(Ok(())) => {}
            Some(Err(why)) => return Err(why.clone()),
            None => return Err("they were not read yet".to_owned()),
        }
        let of_shard = known.floors.iter().filter(|((of, _), _)| *of == shard);
        let said: Vec<_> =
            of_shard.filter_map(|((_, name), floor)| Some((name, floor.said.as_ref().ok()?))).collect();
        if said.iter().any(|(_, floor)| floor.stream == stream) {
            return Ok(None);
        }
        Ok(said.first().map(|(name, floor)| ((*name).clone(), floor.stream.clone())))
    }

    /// Why this node has no entries of its own, if it cannot have any.
    pub fn own_problem(&self) -> Option<String> {
        self.known.lock().own_problem.clone()
    }

    pub fn set_own_problem(&self, problem: Option<String>) {
        self.known.lock().own_problem = problem;
    }
}

impl Known {
    /// Notes that something was heard of a node.
    fn hear(&mut self, name: &NodeName, heard: Heard, now: Instant) -> &mut Node {
        let new = || Node { heard, entry: None, sequence: 0, is_forgotten: false };
        let node = self.nodes.entry(name.clone()).or_insert_with(new);
        node.heard = node.heard.later(heard, now);
        node
    }

    fn describe(&self, name: &NodeName, node: &Node, now: Instant) -> KnownNode {
        let silent = node.heard.silent(now);
        let entry = node.entry.as_ref().and_then(|entry| entry.as_ref().ok());
        let mut shards: BTreeMap<ShardId, OwnedShard> = BTreeMap::new();
        for ((shard, _), floor) in self.floors.iter().filter(|((_, of), _)| of == name) {
            let checkpoint = floor.said.as_ref().ok().map(|floor| floor.sequence);
            let (state, hash) = (None, None);
            let owned = OwnedShard { shard: *shard, state, applied: None, lag: None, checkpoint, hash };
            shards.insert(*shard, owned);
        }
        for shard in entry.into_iter().flat_map(|entry| &entry.shards) {
            let owned = OwnedShard {
                shard: ShardId(shard.shard),
                state: Some(shard.state.clone()),
                applied: Some(shard.applied),
                lag: Some(shard.lag),
                checkpoint: Some(shard.checkpoint),
                hash: shard.hashes.as_ref().and_then(|hashes| hashes.last()).cloned(),
            };
            shards.insert(ShardId(shard.shard), owned);
        }
        let text = |of: fn(&NodeEntry) -> &String| entry.map(|entry| of(entry).clone());
        KnownNode {
            name: name.clone(),
            address: text(|entry| &entry.address),
            version: text(|entry| &entry.version),
            silent,
            is_alive: silent < ALIVE_WITHIN,
            problem: node.entry.as_ref().and_then(|entry| entry.as_ref().err()).map(ToString::to_string),
            shards: shards.into_values().collect(),
        }
    }
}

/// Logs once that a node no longer holds streams back, and once that it does again.
fn note_forgotten(name: &NodeName, node: &mut Node, is_forgotten: bool, silent: Duration) {
    if std::mem::replace(&mut node.is_forgotten, is_forgotten) == is_forgotten {
        return;
    }
    if is_forgotten {
        tracing::warn!(
            node = %name,
            silent_s = silent.as_secs(),
            "a node has been silent for longer than --nats-forget and no longer holds the streams back; if it comes back after messages that it needs were purged, it needs a copy of another node's data"
        );
    } else {
        tracing::info!(node = %name, "a node that was silent for long is back and holds the streams back again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::nats::peers::entries::Formats;

    const HOUR: Duration = Duration::from_secs(3_600);
    const STREAM: PurgedStream<'static> = PurgedStream { identity: "S@1", first: 1 };

    fn name(text: &str) -> NodeName {
        NodeName::new(text).expect("a good name")
    }

    fn peers() -> Peers {
        let this = ThisNode { name: name("here"), address: String::new(), directory: "d-here".to_owned() };
        Peers::new(this, HOUR)
    }

    fn floor(node: &str, directory: &str, sequence: u64, at: u64, age: Duration) -> Received<FloorEntry> {
        let (directory, stream) = (directory.to_owned(), "S@1".to_owned());
        let entry = Some(Ok(FloorEntry { directory, stream, sequence }));
        Received { node: name(node), sequence: at, age, entry }
    }

    fn node(of: &str, directory: &str, at: u64, age: Duration) -> Received<NodeEntry> {
        let entry = NodeEntry {
            run: String::new(),
            directory: directory.to_owned(),
            address: format!("http://{of}"),
            version: "1".to_owned(),
            formats: Formats::default(),
            shards: Vec::new(),
        };
        Received { node: name(of), sequence: at, age, entry: Some(Ok(entry)) }
    }

    fn names(peers: &Peers) -> Vec<String> {
        peers.all().into_iter().map(|node| node.name.to_string()).collect()
    }

    #[test]
    fn nothing_is_purged_before_all_floors_are_read() {
        let peers = peers();
        assert_eq!(peers.floors(ShardId(0), STREAM).all, 0);
        peers.begin_reading_floors();
        peers.note_floor(ShardId(0), floor("a", "d-a", 70, 1, Duration::ZERO));
        assert_eq!(peers.floors(ShardId(0), STREAM).all, 0);
        peers.end_reading_floors();
        assert_eq!(peers.floors(ShardId(0), STREAM).all, 70);
        assert_eq!(peers.floors(ShardId(1), STREAM), FloorsOfOthers::NONE);
        peers.lose_floors("the connection to NATS was lost");
        let unknown = peers.floors(ShardId(0), STREAM);
        assert_eq!((unknown.all, unknown.alive), (0, u64::MAX));
        assert!(unknown.holder.expect("it says why").ends_with("the connection to NATS was lost"));
        // What was deleted meanwhile is not there when all is read again.
        peers.begin_reading_floors();
        peers.end_reading_floors();
        assert_eq!(peers.floors(ShardId(0), STREAM), FloorsOfOthers::NONE);
    }

    #[test]
    fn a_silent_owner_is_forgotten_and_counts_again_when_it_is_heard_of() {
        let peers = peers();
        peers.begin_reading_floors();
        peers.note_floor(ShardId(0), floor("a", "d-a", 70, 1, HOUR + Duration::from_secs(1)));
        peers.note_floor(ShardId(0), floor("b", "d-b", 90, 2, Duration::from_secs(60)));
        peers.end_reading_floors();
        let found = peers.floors(ShardId(0), STREAM);
        assert_eq!((found.all, found.alive), (90, u64::MAX));
        assert_eq!(names(&peers), ["b"]);
        // Without floors, a node is gone once its entry has expired.
        peers.note_node(node("c", "d-c", 1, Duration::from_secs(61)));
        assert_eq!(names(&peers), ["b"]);
        peers.note_node(node("a", "d-a", 1, Duration::ZERO));
        let found = peers.floors(ShardId(0), STREAM);
        assert_eq!((found.all, found.alive), (70, 70));
        assert_eq!(names(&peers), ["a", "b"]);
        // The same message again, after the connection was lost, does not make it younger or older.
        peers.note_node(node("a", "d-a", 1, HOUR * 2));
        assert_eq!(names(&peers), ["a", "b"]);
        let deleted = Received { entry: None, ..floor("a", "d-a", 70, 3, Duration::ZERO) };
        peers.note_floor(ShardId(0), deleted);
        assert_eq!(peers.floors(ShardId(0), STREAM).all, 90);
    }

    #[test]
    fn a_stream_is_another_one_if_all_owners_were_filled_from_others() {
        let (peers, shard) = (peers(), ShardId(0));
        assert!(peers.filled_from_another(shard, "S@2").is_err());
        peers.begin_reading_floors();
        assert!(peers.filled_from_another(shard, "S@2").is_err(), "there may be more");
        peers.end_reading_floors();
        assert_eq!(peers.filled_from_another(shard, "S@2"), Ok(None));
        peers.note_floor(shard, floor("a", "d-a", 70, 1, HOUR * 9));
        peers.note_floor(shard, floor("here", "d-here", 70, 2, Duration::ZERO));
        let found = peers.filled_from_another(shard, "S@2");
        assert_eq!(found, Ok(Some((name("a"), "S@1".to_owned()))), "however long it was silent");
        assert_eq!(peers.filled_from_another(shard, "S@1"), Ok(None));
        assert_eq!(peers.filled_from_another(ShardId(1), "S@2"), Ok(None));
        // One has taken the stream up, as its operator said.
        let mut taken_up = floor("b", "d-b", 0, 3, Duration::ZERO);
        taken_up.entry =
            taken_up.entry.map(|entry| entry.map(|entry| FloorEntry { stream: "S@2".to_owned(), ..entry }));
        peers.note_floor(shard, taken_up);
        assert_eq!(peers.filled_from_another(shard, "S@2"), Ok(None));
        peers.lose_floors("the connection to NATS was lost");
        assert!(peers.filled_from_another(shard, "S@2").is_err());
    }

    #[test]
    fn a_data_directory_has_one_floor_whatever_its_node_is_called() {
        let peers = peers();
        peers.begin_reading_floors();
        peers.note_floor(ShardId(0), floor("h:1", "d-a", 50, 1, Duration::from_secs(99)));
        peers.note_floor(ShardId(1), floor("h:1", "d-a", 50, 2, Duration::from_secs(99)));
        peers.note_floor(ShardId(0), floor("h:2", "d-a", 70, 3, Duration::ZERO));
        // An older message that comes later changes nothing.
        peers.note_floor(ShardId(0), floor("h:1", "d-a", 50, 1, Duration::from_secs(99)));
        // This node's own, from before it was renamed, and an entry of its name of another directory.
        peers.note_floor(ShardId(0), floor("earlier", "d-here", 10, 4, Duration::ZERO));
        peers.note_floor(ShardId(1), floor("here", "d-other", 30, 5, Duration::ZERO));
        peers.end_reading_floors();
        assert_eq!(peers.floors(ShardId(0), STREAM).all, 70);
        assert_eq!(peers.floors(ShardId(1), STREAM).all, 30);
        assert_eq!(peers.take_deletable(), [4]);
        assert_eq!(peers.take_deletable(), [0; 0]);
        peers.note_node(node("h:1", "d-a", 6, Duration::from_secs(20)));
        peers.note_node(node("h:2", "d-a", 7, Duration::ZERO));
        peers.note_node(node("earlier", "d-here", 8, Duration::ZERO));
        assert_eq!(names(&peers), ["h:2", "here"]);
    }

    #[test]
    fn floors_of_nodes_that_were_forgotten_long_ago_are_deleted() {
        let peers = peers();
        peers.begin_reading_floors();
        peers.note_floor(ShardId(0), floor("a", "d-a", 70, 1, HOUR * 6));
        peers.note_floor(ShardId(0), floor("b", "d-b", 70, 2, HOUR * 8));
        peers.end_reading_floors();
        assert_eq!(peers.take_deletable(), [2]);
        assert_eq!(peers.floors(ShardId(0), STREAM), FloorsOfOthers::NONE);
        peers.note_floor(ShardId(0), floor("b", "d-b", 70, 3, Duration::ZERO));
        assert_eq!(peers.floors(ShardId(0), STREAM).all, 70);
    }
}
