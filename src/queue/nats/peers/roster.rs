//! The other nodes as they are shown, and as they take part: which are alive, and what they own.
//!
//! Knows: one data directory may be heard of under several names, as its node may be started again under
//! another one. Must not know: how long a silent node holds a stream back (`holding`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::queue::nats::peers::entries::{NodeEntry, ShardEntry};
use crate::queue::nats::peers::known::{ALIVE_WITHIN, Hearing, Known, Node, Peers};
use crate::types::{NodeName, ShardId};

/// A node that has no floors is gone once it was silent for longer.
const GONE_AFTER: Duration = Duration::from_secs(60);

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
    /// Its data are of another stream than that from which the shard is live, on this node or on others.
    pub is_of_another_stream: bool,
}

impl Peers {
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
        let live = known.live_streams(None, now);
        nodes.map(|(name, node)| known.describe(name, node, &live, now)).collect()
    }

    /// Those of these shards that no other node owns which is alive. None of them before every node that runs
    /// would have been heard of. What a node owns whose entry cannot be read is not known.
    pub fn without_owner(&self, shards: impl Iterator<Item = ShardId>) -> Vec<ShardId> {
        if self.hearing() != Hearing::Heard {
            return Vec::new();
        }
        let (known, now) = (self.known.lock(), Instant::now());
        let alive = known.nodes.values().filter(|node| node.heard.silent(now) < ALIVE_WITHIN);
        let entries: Vec<_> = alive.filter_map(|node| node.entry.as_ref()).collect();
        let is_owned = |shard: &ShardId| {
            let owns = |entry: &NodeEntry| entry.shards.iter().any(|owned| owned.shard == shard.0);
            entries.iter().any(|entry| entry.as_ref().map_or(true, owns))
        };
        shards.filter(|shard| !is_owned(shard)).collect()
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
}

impl Known {
    /// The directory of a node, by its entry or a floor.
    fn directory_of(&self, name: &NodeName) -> Option<&String> {
        let entry = self.nodes.get(name).and_then(|node| node.entry.as_ref()?.as_ref().ok());
        let floors = self.floors.iter().filter(|((_, of), _)| of == name);
        let mut floors = floors.filter_map(|(_, floor)| floor.said.as_ref().ok());
        entry.map(|entry| &entry.directory).or_else(|| floors.next().map(|floor| &floor.directory))
    }

    /// For each directory: how long it has been silent under the name that it was heard of last, and that
    /// name. A node may be started again under another name, and is the same owner.
    pub(super) fn directories(&self, now: Instant) -> BTreeMap<String, (Duration, NodeName)> {
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

    /// # Arguments
    /// `live`: the streams from which shards are live.
    fn describe(
        &self,
        name: &NodeName,
        node: &Node,
        live: &BTreeMap<ShardId, BTreeSet<&str>>,
        now: Instant,
    ) -> KnownNode {
        let silent = node.heard.silent(now);
        let entry = node.entry.as_ref().and_then(|entry| entry.as_ref().ok());
        let mut shards: BTreeMap<ShardId, OwnedShard> = BTreeMap::new();
        // A node that runs says what it owns. Its floor of a shard that it has given up goes soon.
        let says = entry.filter(|_| silent < ALIVE_WITHIN);
        let owns =
            |shard: ShardId| says.is_none_or(|entry| entry.shards.iter().any(|owned| owned.shard == shard.0));
        let floors = self.floors.iter().filter(|((shard, of), _)| of == name && owns(*shard));
        for ((shard, _), floor) in floors {
            let checkpoint = floor.said.as_ref().ok().map(|floor| floor.sequence);
            let (state, hash) = (None, None);
            let (applied, lag, is_of_another_stream) = (None, None, false);
            let owned =
                OwnedShard { shard: *shard, state, applied, lag, checkpoint, hash, is_of_another_stream };
            shards.insert(*shard, owned);
        }
        for shard in entry.into_iter().flat_map(|entry| &entry.shards) {
            let streams = live.get(&ShardId(shard.shard));
            let owned = OwnedShard {
                shard: ShardId(shard.shard),
                state: Some(shard.state.clone()),
                applied: Some(shard.applied),
                lag: Some(shard.lag),
                checkpoint: Some(shard.checkpoint),
                hash: shard.hashes.as_ref().and_then(|hashes| hashes.last()).cloned(),
                is_of_another_stream: streams.is_some_and(|streams| !streams.contains(shard.stream.as_str())),
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
