//! What is known of other nodes, in memory: as of the last message of either bucket.
//!
//! Knows: how long each node has been silent. Silence is counted by this process's clock from when it
//! received a message. Only for a message that was stored before it began to read, the age at that moment is
//! told by the wall clock and the server's time. Must not know: how the buckets are read (`follow`).

use std::collections::{BTreeMap, BTreeSet};
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
    /// Identifies this process in its entries.
    pub run: String,
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
    /// What the bucket has of this node's own directory, in this reading.
    own_floors: OwnFloors,
    /// The last entry of other processes with this node's directory, by name: the run, and its place.
    other_runs: BTreeMap<NodeName, (String, u64)>,
    /// Whether this process has stored an entry.
    has_claimed: bool,
    /// Why this node has no entries of its own, if it cannot have any.
    own_problem: Option<String>,
}

/// The floors of this node's directory, as far as they were read.
#[derive(Default)]
struct OwnFloors {
    /// Shards that have one under this node's name.
    current: BTreeSet<ShardId>,
    /// Those under earlier names. They are what others know of the shard until there is one under this name.
    earlier: BTreeMap<ShardId, Vec<u64>>,
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
    pub fn new(this: ThisNode, run: String, forget_after: Duration) -> Self {
        Self { this, run, forget_after, known: Mutex::default() }
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
        // A body that no node writes says nothing of the node. Nor does one under this node's name that a
        // later version wrote: this node's next entry takes its place.
        if entry == Err(UnreadableEntry::Foreign) || (entry.is_err() && node == self.this.name) {
            return;
        }
        if let Ok(entry) = &entry
            && entry.directory == self.this.directory
        {
            let (is_this, is_twin) = (entry.run == self.run, known.is_twin(&node, self));
            let is_new_twin = !is_this && !is_twin && known.is_renewed(&node, &entry.run, sequence);
            if !is_twin && !is_new_twin {
                known.nodes.remove(&node);
            }
            if is_new_twin {
                log_twin(&node, entry);
                // Some of its floors may have been taken for this node's.
                known.own_floors.earlier.clear();
            } else if is_this || !is_twin {
                return;
            }
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
        let mut known = self.known.lock();
        known.other_runs.clear();
        for node in known.nodes.values_mut() {
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
        // What is known already stays: a body that no node writes is no floor.
        if floor == Err(UnreadableEntry::Foreign) {
            return;
        }
        if let Ok(floor) = &floor
            && floor.directory == self.this.directory
            && !known.is_twin(&key.1, self)
        {
            known.floors.remove(&key);
            let Known { own_floors: own, deletable, .. } = &mut *known;
            if key.1 == self.this.name {
                own.current.insert(shard);
                deletable.append(own.earlier.entry(shard).or_default());
            } else if own.current.contains(&shard) {
                deletable.push(sequence);
            } else {
                own.earlier.entry(shard).or_default().push(sequence);
            }
            return;
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
        known.own_floors = OwnFloors::default();
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
        let (superseded, unsaid) = (known.superseded(now), known.unsaid_floors(shard, stream, now));
        let directories = known.directories(now);
        let Known { nodes, floors, .. } = &mut *known;
        let of_shard = floors.iter_mut().filter(|(key, _)| key.0 == shard && !superseded.contains(*key));
        let counting = of_shard.filter_map(|((_, name), floor)| {
            let node = nodes.get_mut(name)?;
            // Whatever the node is called now.
            let of_directory = floor.said.as_ref().ok().and_then(|said| directories.get(&said.directory));
            let silent = of_directory.map_or(node.heard.silent(now), |(silent, _)| *silent);
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
        let unsaid = unsaid.iter().map(|(name, silent, floor)| OwnerFloor {
            node: name.as_str(),
            silent: *silent,
            is_alive: true,
            floor,
        });
        let unsaid = unsaid.filter(|owner| owner.counts(stream, forget_after) == Counts::Yes);
        floors::lowest(counting.chain(unsaid))
    }

    /// The other nodes that are not forgotten, by name.
    pub fn all(&self) -> Vec<KnownNode> {
        let (known, now) = (self.known.lock(), Instant::now());
        let (superseded, directories) = (known.superseded(now), known.directories(now));
        let nodes = known.nodes.iter().filter(|(name, node)| {
            let silent = node.heard.silent(now);
            // A node without floors holds nothing back. It is gone once its entry has expired.
            let owns = || known.floors.keys().any(|key| key.1 == **name && !superseded.contains(key));
            // It was started again under another name.
            let is_renamed = || {
                let directory = known.directory_of(name);
                directory.and_then(|directory| directories.get(directory)).is_some_and(|(_, of)| of != *name)
            };
            if silent >= ALIVE_WITHIN && is_renamed() {
                return false;
            }
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
        let directories = known.directories(now);
        for (name, node) in &known.nodes {
            let Some(Ok(entry)) = &node.entry else { continue };
            // Data count once, and those of this node's own directory not among others.
            let is_latest = directories.get(&entry.directory).is_none_or(|(_, of)| of == name);
            let is_own = entry.directory == self.this.directory;
            if node.heard.silent(now) < ALIVE_WITHIN && is_latest && !is_own {
                each(name, entry);
            }
        }
    }

    /// Messages of the bucket of floors that nobody needs any more. They are given once.
    pub fn take_deletable(&self) -> Vec<u64> {
        let (mut known, now) = (self.known.lock(), Instant::now());
        let (superseded, directories) = (known.superseded(now), known.directories(now));
        let Known { nodes, floors, deletable, .. } = &mut *known;
        let delete_after = self.forget_after.saturating_mul(DELETE_AFTER).max(ALIVE_WITHIN);
        floors.retain(|key, floor| {
            let of_directory = floor.said.as_ref().ok().and_then(|said| directories.get(&said.directory));
            let silent = of_directory.map(|(silent, _)| *silent);
            let silent = silent.or_else(|| nodes.get(&key.1).map(|node| node.heard.silent(now)));
            let keeps = silent.is_some_and(|silent| silent <= delete_after) && !superseded.contains(key);
            if !keeps {
                deletable.push(floor.sequence);
            }
            keeps
        });
        nodes.retain(|name, node| {
            let has_floors = floors.keys().any(|(_, of)| of == name);
            has_floors || node.heard.silent(now) <= delete_after
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
        let floors = known.floors.iter().filter(|((of, _), _)| *of == shard);
        let of_directory = floors.filter_map(|(_, floor)| {
            let said = floor.said.as_ref().ok().filter(|said| said.directory == directory)?;
            Some(((floor.reading, floor.sequence), said.sequence))
        });
        // The last one, if the node was started again under another name.
        of_directory.max().map(|(_, sequence)| sequence)
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

    /// Whether this process has stored an entry under its name.
    pub fn has_claimed(&self) -> bool {
        self.known.lock().has_claimed
    }

    pub fn note_claimed(&self) {
        self.known.lock().has_claimed = true;
    }

    pub fn set_own_problem(&self, problem: Option<String>) {
        self.known.lock().own_problem = problem;
    }
}

impl Known {
    /// Whether another process runs with this node's directory under a name.
    fn is_twin(&self, name: &NodeName, peers: &Peers) -> bool {
        let entry = self.nodes.get(name).and_then(|node| node.entry.as_ref()?.as_ref().ok());
        entry.is_some_and(|entry| entry.directory == peers.this.directory && entry.run != peers.run)
    }

    /// Whether an entry with this node's directory that another process has stored was renewed while this one
    /// runs. An earlier process of this node cannot do that: it has ended.
    fn is_renewed(&mut self, name: &NodeName, run: &str, sequence: u64) -> bool {
        let before = self.other_runs.insert(name.clone(), (run.to_owned(), sequence));
        before.is_some_and(|(known, at)| known == run && at < sequence)
    }

    /// The directory of a node, by its entry or a floor.
    fn directory_of(&self, name: &NodeName) -> Option<&String> {
        let entry = self.nodes.get(name).and_then(|node| node.entry.as_ref()?.as_ref().ok());
        let floors = self.floors.iter().filter(|((_, of), _)| of == name);
        let mut floors = floors.filter_map(|(_, floor)| floor.said.as_ref().ok());
        entry.map(|entry| &entry.directory).or_else(|| floors.next().map(|floor| &floor.directory))
    }

    /// For each directory: how long it has been silent under the name that it was heard of last, and that
    /// name. A node may be started again under another name, and is the same owner.
    fn directories(&self, now: Instant) -> BTreeMap<String, (Duration, NodeName)> {
        let mut latest: BTreeMap<String, (Duration, NodeName)> = BTreeMap::new();
        let mut note = |directory: &String, name: &NodeName| {
            let Some(node) = self.nodes.get(name) else { return };
            let silent = node.heard.silent(now);
            if latest.get(directory).is_none_or(|(known, _)| silent < *known) {
                latest.insert(directory.clone(), (silent, name.clone()));
            }
        };
        for (name, node) in &self.nodes {
            if let Some(Ok(entry)) = &node.entry {
                note(&entry.directory, name);
            }
        }
        for ((_, name), floor) in &self.floors {
            if let Ok(said) = &floor.said {
                note(&said.directory, name);
            }
        }
        latest
    }

    /// Floors in whose place there is a later one of the same directory, under the name that it has now.
    /// While a node is alive under both names they are two nodes: one directory is a copy of the other's
    /// blocks.
    fn superseded(&self, now: Instant) -> BTreeSet<(ShardId, NodeName)> {
        let is_silent =
            |name: &NodeName| self.nodes.get(name).is_none_or(|node| node.heard.silent(now) >= ALIVE_WITHIN);
        let mut latest: BTreeMap<(ShardId, &str), (u64, u64)> = BTreeMap::new();
        for ((shard, _), floor) in &self.floors {
            if let Ok(said) = &floor.said {
                let at = (floor.reading, floor.sequence);
                let known = latest.entry((*shard, &said.directory)).or_insert(at);
                *known = at.max(*known);
            }
        }
        let of = self.floors.iter().filter(|((shard, name), floor)| {
            floor.said.as_ref().is_ok_and(|said| {
                let last = latest.get(&(*shard, said.directory.as_str()));
                last.is_some_and(|last| (floor.reading, floor.sequence) < *last) && is_silent(name)
            })
        });
        of.map(|(key, _)| key.clone()).collect()
    }

    /// What owners that are alive need of a shard's stream and have no floor for: the bucket may have been
    /// lost since they stored it. Their entries say what their checkpoints hold.
    fn unsaid_floors(
        &self,
        shard: ShardId,
        stream: PurgedStream<'_>,
        now: Instant,
    ) -> Vec<(NodeName, Duration, Result<FloorEntry, UnreadableEntry>)> {
        let has_floor = |name: &NodeName, directory: &str| {
            self.floors.iter().any(|((of, owner), floor)| {
                let is_same = || floor.said.as_ref().is_ok_and(|said| said.directory == directory);
                *of == shard && (owner == name || is_same())
            })
        };
        let unsaid = self.nodes.iter().filter_map(|(name, node)| {
            let silent = node.heard.silent(now);
            let entry = node.entry.as_ref()?.as_ref().ok()?;
            let owned = entry.shards.iter().find(|owned| owned.shard == shard.0)?;
            let is_of_other = owned.hashes.as_ref().is_some_and(|hashes| hashes.stream != stream.identity);
            if silent >= ALIVE_WITHIN || is_of_other || has_floor(name, &entry.directory) {
                return None;
            }
            let (directory, stream) = (entry.directory.clone(), stream.identity.to_owned());
            Some((name.clone(), silent, Ok(FloorEntry { directory, stream, sequence: owned.checkpoint })))
        });
        unsaid.collect()
    }

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

/// Logs once that another process runs with this node's directory.
fn log_twin(name: &NodeName, entry: &NodeEntry) {
    tracing::error!(
        node = %name,
        address = entry.address,
        "another node is running whose data directory cannot be told from this one's: one is a copy of the other's disk, block by block; stop that node, copy the files of its data directory into a new one (cp -a), and start it with that one and a --node of its own"
    );
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
        Peers::new(this, "run".to_owned(), HOUR)
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
    fn what_no_node_wrote_under_this_nodes_name_is_no_other_node() {
        let (peers, age) = (peers(), Duration::ZERO);
        let unreadable = |of, at, why| {
            let entry = Some(Err(why));
            Received { node: name(of), sequence: at, age, entry }
        };
        peers.note_node(unreadable("here", 1, UnreadableEntry::Foreign));
        peers.note_node(unreadable("there", 2, UnreadableEntry::Foreign));
        peers.note_node(unreadable("here", 3, UnreadableEntry::Newer { found: 9 }));
        assert_eq!(names(&peers), [""; 0]);
        peers.note_node(unreadable("there", 4, UnreadableEntry::Newer { found: 9 }));
        assert_eq!(names(&peers), ["there"]);
        // Another node that has been given the same name is one.
        peers.note_node(node("here", "d-other", 5, age));
        assert_eq!(names(&peers), ["here", "there"]);
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
        // Its floor under the former name is there for others until there is one under this name.
        assert_eq!(peers.take_deletable(), [1]);
        peers.note_floor(ShardId(0), floor("here", "d-here", 20, 6, Duration::ZERO));
        assert_eq!(peers.take_deletable(), [4]);
        peers.note_floor(ShardId(0), floor("earlier", "d-here", 10, 7, Duration::ZERO));
        assert_eq!(peers.take_deletable(), [7]);
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

    #[test]
    fn a_node_that_is_started_again_under_another_name_keeps_its_floors_until_it_has_new_ones() {
        let peers = peers();
        peers.begin_reading_floors();
        let long = DELETE_AFTER * HOUR + HOUR;
        peers.note_floor(ShardId(0), floor("h:1", "d-a", 50, 1, long));
        peers.end_reading_floors();
        peers.note_node(node("h:1", "d-a", 1, long));
        peers.note_node(node("h:2", "d-a", 2, Duration::ZERO));
        for _ in 0..2 {
            let found = peers.floors(ShardId(0), STREAM);
            assert_eq!((found.all, found.alive), (50, 50), "it is alive, whatever it is called");
            assert_eq!((peers.take_deletable(), names(&peers)), (Vec::new(), vec!["h:2".to_owned()]));
        }
        peers.note_floor(ShardId(0), floor("h:2", "d-a", 60, 2, Duration::ZERO));
        assert_eq!(peers.floors(ShardId(0), STREAM).all, 60);
        assert_eq!((peers.floor_of(ShardId(0), "d-a"), peers.take_deletable()), (Some(60), vec![1]));
    }

    /// Two nodes whose directories have the same identity. Each is heard of all the time.
    #[test]
    fn nodes_that_run_with_one_directory_under_two_names_are_two_owners() {
        let peers = peers();
        peers.begin_reading_floors();
        peers.end_reading_floors();
        for at in 1..4 {
            peers.note_node(node("a", "d-a", at * 2, Duration::ZERO));
            peers.note_node(node("b", "d-a", at * 2 + 1, Duration::ZERO));
            peers.note_floor(ShardId(0), floor("a", "d-a", 50, at * 2, Duration::ZERO));
            peers.note_floor(ShardId(0), floor("b", "d-a", 90, at * 2 + 1, Duration::ZERO));
            assert_eq!(peers.floors(ShardId(0), STREAM).all, 50);
        }
        assert_eq!(peers.take_deletable(), [0; 0]);
        assert_eq!(names(&peers), ["a", "b"]);
    }

    #[test]
    fn a_process_that_renews_an_entry_with_this_nodes_directory_is_another_owner() {
        let peers = peers();
        peers.begin_reading_floors();
        peers.end_reading_floors();
        let twin = |of: &str, run: &str, at| {
            let mut received = node(of, "d-here", at, Duration::ZERO);
            received.entry =
                received.entry.map(|entry| entry.map(|entry| NodeEntry { run: run.to_owned(), ..entry }));
            received
        };
        // This process, and the last entries of earlier ones.
        for received in
            [twin("here", "run", 1), twin("here", "run", 2), twin("here", "old", 3), twin("old", "old", 4)]
        {
            peers.note_node(received);
        }
        peers.begin_reading_nodes();
        peers.note_node(twin("old", "old", 4));
        peers.note_floor(ShardId(0), floor("old", "d-here", 50, 1, Duration::ZERO));
        assert_eq!((names(&peers), peers.floors(ShardId(0), STREAM)), (Vec::new(), FloorsOfOthers::NONE));
        peers.note_node(twin("old", "old", 5));
        assert_eq!(names(&peers), ["old"], "it runs");
        // What was taken for a floor of this node is not deleted.
        peers.note_floor(ShardId(0), floor("here", "d-here", 70, 2, Duration::ZERO));
        assert_eq!(peers.take_deletable(), [0; 0]);
        peers.note_floor(ShardId(0), floor("old", "d-here", 60, 3, Duration::ZERO));
        assert_eq!(peers.floors(ShardId(0), STREAM).all, 60);
        let mut voting = Vec::new();
        peers.each_alive(|name, _| voting.push(name.to_string()));
        assert_eq!(voting, [""; 0], "its data are this node's");
    }

    #[test]
    fn an_owner_without_a_floor_needs_what_its_checkpoint_does_not_hold() {
        let peers = peers();
        let owner = |of: &str, checkpoint, age| {
            let mut received = node(of, &format!("d-{of}"), 1, age);
            if let Some(Ok(entry)) = &mut received.entry {
                let (state, applied) = ("live".to_owned(), 90);
                let hashes = None;
                entry.shards = vec![ShardEntry { shard: 0, state, applied, checkpoint, lag: 0, hashes }];
            }
            received
        };
        peers.note_node(owner("a", 40, Duration::ZERO));
        peers.note_node(owner("b", 60, Duration::ZERO));
        peers.note_node(owner("c", 10, Duration::from_secs(30)));
        // The bucket was lost, and made again.
        peers.begin_reading_floors();
        peers.end_reading_floors();
        let found = peers.floors(ShardId(0), STREAM);
        assert_eq!((found.all, found.alive), (40, 40));
        assert!(found.holder.is_some_and(|words| words.contains("the node a needs messages from 40 on")));
        assert_eq!(peers.floors(ShardId(1), STREAM), FloorsOfOthers::NONE);
        let first = PurgedStream { first: 50, ..STREAM };
        assert_eq!(peers.floors(ShardId(0), first).all, 60, "what the other one needs is purged");
        peers.note_floor(ShardId(0), floor("a", "d-a", 55, 1, Duration::ZERO));
        assert_eq!(peers.floors(ShardId(0), STREAM).all, 55);
    }

    #[test]
    fn bodies_that_no_node_writes_change_nothing() {
        let peers = peers();
        peers.begin_reading_floors();
        peers.note_floor(ShardId(0), floor("a", "d-a", 50, 1, Duration::ZERO));
        peers.end_reading_floors();
        let foreign = || Some(Err(UnreadableEntry::Foreign));
        for name in ["a", "z"] {
            peers.note_floor(
                ShardId(0),
                Received { entry: foreign(), ..floor(name, "", 0, 2, Duration::ZERO) },
            );
            peers.note_node(Received {
                entry: foreign().map(|_: Result<FloorEntry, _>| Err(UnreadableEntry::Foreign)),
                ..node(name, "", 2, Duration::ZERO)
            });
        }
        let found = peers.floors(ShardId(0), STREAM);
        assert_eq!((found.all, found.is_unknown, names(&peers)), (50, false, vec!["a".to_owned()]));
    }
}
