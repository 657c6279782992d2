//! What is known of other nodes, in memory: as of the last message of either bucket.
//!
//! Knows: how long each node has been silent. Silence is counted by this process's clock from when it
//! received a message. Only for a message that was stored before it began to read, the age at that moment is
//! told by the wall clock and the server's time. Must not know: how the buckets are read (`follow`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::message_clock::MessageClock;
use crate::queue::nats::peers::entries::{FloorEntry, NodeEntry, UnreadableEntry};
use crate::queue::nats::peers::floors::Counts;
use crate::queue::this_node::ThisNode;
use crate::types::{NodeName, ShardId};

/// A node that was silent for longer is not alive: it renews its entry every two seconds.
pub(super) const ALIVE_WITHIN: Duration = Duration::from_secs(10);
/// What this node knows of the others.
pub struct Peers {
    pub this: ThisNode,
    /// Identifies this process in its entries.
    pub run: String,
    /// Learned from when the servers stamp what nodes say of themselves.
    pub clock: Arc<MessageClock>,
    pub(super) forget_after: Duration,
    pub(super) known: Mutex<Known>,
}

#[derive(Default)]
pub(super) struct Known {
    pub(super) nodes: BTreeMap<NodeName, Node>,
    pub(super) floors: BTreeMap<(ShardId, NodeName), Floor>,
    /// Counts how often the bucket of floors was read from the beginning.
    reading: u64,
    /// Whether all floors are known; why not.
    pub(super) floors_read: Option<Result<(), String>>,
    /// Since when every new entry of a node is read, after all that the bucket held.
    nodes_read: Option<Instant>,
    /// Messages of the bucket of floors that nobody needs.
    pub(super) deletable: Vec<u64>,
    /// What the bucket has of this node's own directory, in this reading, and where. Floors under earlier
    /// names are what others know of a shard until there is one under this name.
    own_floors: BTreeMap<(ShardId, NodeName), u64>,
    /// The last entry of other processes with this node's directory, by name: the run, and its place.
    other_runs: BTreeMap<NodeName, (String, u64)>,
    /// Whether this process has stored an entry.
    has_claimed: bool,
    /// The streams from which shards are live on this node.
    pub(super) own_live: BTreeMap<ShardId, String>,
    /// Why this node has no entries of its own, if it cannot have any.
    own_problem: Option<String>,
}

/// Another node.
pub(super) struct Node {
    pub(super) heard: Heard,
    /// `None`: only its floors are known.
    pub(super) entry: Option<Result<NodeEntry, UnreadableEntry>>,
    /// The place of its entry in the bucket of nodes.
    sequence: u64,
    /// Whether it was logged that it no longer holds streams back.
    pub(super) is_forgotten: bool,
}

/// What is known of an owner's floor.
pub(super) struct Floor {
    pub(super) said: Result<FloorEntry, UnreadableEntry>,
    /// Its place in the bucket of floors.
    pub(super) sequence: u64,
    pub(super) reading: u64,
    /// Whether it counted when it was last asked for; logged when that changes.
    pub(super) counted: Counts,
    /// Since when the stream has begun behind it.
    pub(super) passed_since: Option<Instant>,
}

/// When something was last heard of a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heard {
    /// How old it was when it was received.
    age: Duration,
    at: Instant,
}

impl Heard {
    pub(super) fn silent(self, now: Instant) -> Duration {
        self.age + now.saturating_duration_since(self.at)
    }

    fn later(self, other: Self, now: Instant) -> Self {
        if other.silent(now) < self.silent(now) { other } else { self }
    }
}

/// What may be said of nodes that were not heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hearing {
    /// Nothing: the buckets are not read to their ends.
    Unread,
    /// All that was stored is read. A node may run that has stored nothing yet, or nothing for long.
    Listening,
    /// Every node that runs would have been heard of by now.
    Heard,
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

impl Peers {
    pub fn new(this: ThisNode, run: String, forget_after: Duration) -> Self {
        Self { this, run, clock: Arc::default(), forget_after, known: Mutex::default() }
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
                known.own_floors.retain(|(_, of), _| *of == self.this.name);
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
        known.nodes_read = None;
        known.other_runs.clear();
        for node in known.nodes.values_mut() {
            node.sequence = 0;
        }
    }

    /// All entries of nodes were read.
    pub fn end_reading_nodes(&self) {
        self.known.lock().nodes_read = Some(Instant::now());
    }

    /// The bucket of nodes cannot be read.
    pub fn lose_nodes(&self) {
        self.known.lock().nodes_read = None;
    }

    /// Notes a message of the bucket of floors.
    pub fn note_floor(&self, shard: ShardId, received: Received<FloorEntry>) {
        let Received { node, sequence, age, entry } = received;
        let (mut known, now) = (self.known.lock(), Instant::now());
        let key = (shard, node);
        let Some(floor) = entry else {
            known.floors.remove(&key);
            known.own_floors.remove(&key);
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
                own.retain(|(of, name), at| {
                    let is_earlier = *of == shard && *name != key.1;
                    if is_earlier {
                        deletable.push(*at);
                    }
                    !is_earlier
                });
                own.insert(key, sequence);
            } else if own.contains_key(&(shard, self.this.name.clone())) {
                deletable.push(sequence);
            } else {
                own.insert(key, sequence);
            }
            return;
        }
        known.hear(&key.1, Heard { age, at: now }, now);
        let reading = known.reading;
        let before = known.floors.remove(&key);
        let (counted, passed_since) = before.map_or((Counts::Yes, None), |before| {
            (before.counted, before.passed_since.filter(|_| before.said == floor))
        });
        known.floors.insert(key, Floor { said: floor, sequence, reading, counted, passed_since });
    }

    /// The bucket of floors is read from the beginning.
    pub fn begin_reading_floors(&self) {
        let mut known = self.known.lock();
        known.reading += 1;
        known.deletable.clear();
        known.own_floors.clear();
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

    /// The floors of this node's directory for shards that it does not own any more and that another node
    /// applies: they hold streams back for nobody.
    pub fn given_up(&self, owned: impl Fn(ShardId) -> bool) -> Vec<(ShardId, NodeName)> {
        // A floor may be of another process with a copy of this disk, which would have been heard of by then.
        if self.hearing() != Hearing::Heard {
            return Vec::new();
        }
        let known = self.known.lock();
        let own = known.own_floors.keys().filter(|(shard, _)| !owned(*shard)).cloned();
        let own: Vec<_> = own.collect();
        drop(known);
        own.into_iter().filter(|(shard, _)| self.have_applying(*shard)).collect()
    }

    /// Whether all floors were read, so that all owners are known.
    pub fn knows_owners(&self) -> bool {
        matches!(self.known.lock().floors_read, Some(Ok(())))
    }

    /// Whether all other nodes that run were heard of.
    pub fn hearing(&self) -> Hearing {
        self.hearing_at(Instant::now())
    }

    fn hearing_at(&self, now: Instant) -> Hearing {
        let known = self.known.lock();
        let read = known.nodes_read.filter(|_| matches!(known.floors_read, Some(Ok(()))));
        match read.map(|read| now.saturating_duration_since(read)) {
            None => Hearing::Unread,
            // Ages of what was stored before are told by two clocks, which may differ. And all nodes may have
            // been cut off from the bucket.
            Some(listened) if listened < ALIVE_WITHIN => Hearing::Listening,
            Some(_) => Hearing::Heard,
        }
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
    /// Whether all that nodes have said was read, and what they say is being read.
    pub(super) fn are_read(&self) -> bool {
        self.nodes_read.is_some() && matches!(self.floors_read, Some(Ok(())))
    }

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

    /// Notes that something was heard of a node.
    fn hear(&mut self, name: &NodeName, heard: Heard, now: Instant) -> &mut Node {
        let new = || Node { heard, entry: None, sequence: 0, is_forgotten: false };
        let node = self.nodes.entry(name.clone()).or_insert_with(new);
        node.heard = node.heard.later(heard, now);
        node
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

#[cfg(test)]
pub(super) mod test_support {
    use std::time::Duration;

    use super::*;
    use crate::queue::nats::peers::floors::PurgedStream;

    pub const HOUR: Duration = Duration::from_secs(3_600);
    pub const STREAM: PurgedStream<'static> = PurgedStream { identity: "S@1", first: 1 };

    pub fn name(text: &str) -> NodeName {
        NodeName::new(text).expect("a good name")
    }

    pub fn peers() -> Peers {
        let this = ThisNode { name: name("here"), address: String::new(), directory: "d-here".to_owned() };
        Peers::new(this, "run".to_owned(), HOUR)
    }

    pub fn floor(node: &str, directory: &str, sequence: u64, at: u64, age: Duration) -> Received<FloorEntry> {
        let (directory, stream) = (directory.to_owned(), "S@1".to_owned());
        let entry = Some(Ok(FloorEntry { directory, stream, sequence }));
        Received { node: name(node), sequence: at, age, entry }
    }

    pub fn node(of: &str, directory: &str, at: u64, age: Duration) -> Received<NodeEntry> {
        let entry = NodeEntry {
            run: String::new(),
            directory: directory.to_owned(),
            address: format!("http://{of}"),
            version: "1".to_owned(),
            shards: Vec::new(),
        };
        Received { node: name(of), sequence: at, age, entry: Some(Ok(entry)) }
    }

    pub fn names(peers: &Peers) -> Vec<String> {
        peers.all().into_iter().map(|node| node.name.to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::test_support::*;
    use super::*;
    use crate::queue::nats::peers::floors::FloorsOfOthers;

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
    fn nodes_count_as_heard_of_once_both_buckets_were_read_and_each_had_time_to_speak() {
        let (peers, began) = (peers(), Instant::now());
        let after = |passed: Duration| peers.hearing_at(began + passed);
        let heard = || [Duration::ZERO, ALIVE_WITHIN / 2, HOUR].map(after);
        assert_eq!(heard(), [Hearing::Unread; 3]);
        peers.begin_reading_floors();
        peers.end_reading_floors();
        assert_eq!(heard(), [Hearing::Unread; 3]);
        peers.begin_reading_nodes();
        assert_eq!(heard(), [Hearing::Unread; 3], "entries may be on their way");
        peers.end_reading_nodes();
        let listened = [Hearing::Listening, Hearing::Listening, Hearing::Heard];
        assert_eq!(heard(), listened);
        peers.lose_floors("the connection to NATS was lost");
        assert_eq!(heard(), [Hearing::Unread; 3]);
        peers.end_reading_floors();
        assert_eq!(heard(), listened);
        // Nothing was heard while the connection was lost, so they have time again.
        peers.lose_nodes();
        assert_eq!(heard(), [Hearing::Unread; 3]);
        peers.begin_reading_nodes();
        peers.end_reading_nodes();
        assert_eq!(heard(), listened);
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
