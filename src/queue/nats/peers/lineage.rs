//! Of which stream other owners' data are, and so what their sequences say about this one.
//!
//! Knows: a node may have been started at another server, or with another directory. Until an operator mends
//! that, its sequences stand for other messages than those of its shard's stream. A node on which the shard
//! is live has its data from the stream that there is. Must not know: what a node does whose own data are of
//! another stream; see `consume::fetcher`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::queue::nats::peers::entries::ShardEntry;
use crate::queue::nats::peers::known::{ALIVE_WITHIN, Hearing, Known, Peers};
use crate::queue::nats::peers::owners::LIVE;
use crate::types::{NodeName, ShardId};

/// An owner whose data are of a certain stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamOwner {
    pub node: NodeName,
    pub silent: Duration,
    pub is_alive: bool,
}

impl Peers {
    /// Notes from which stream a shard is live on this node; `None`: it is not live.
    pub fn note_live(&self, shard: ShardId, stream: Option<String>) {
        let mut known = self.known.lock();
        match stream {
            Some(stream) => drop(known.own_live.insert(shard, stream)),
            None => drop(known.own_live.remove(&shard)),
        }
    }

    /// Another owner that has applied messages of this stream, as its entry or its floor says, and that is
    /// not forgotten: the one that was heard of last.
    ///
    /// # Errors
    /// When it is not known what other nodes say of themselves.
    pub fn owner_of_stream(&self, shard: ShardId, stream: &str) -> Result<Option<StreamOwner>, String> {
        if self.hearing() == Hearing::Unread {
            return Err("what other nodes say of themselves was not read yet".to_owned());
        }
        let (known, now) = (self.known.lock(), Instant::now());
        let directories = known.directories(now);
        let mut found = Vec::new();
        for (name, node) in &known.nodes {
            let silent = node.heard.silent(now);
            let Some(Ok(entry)) = &node.entry else { continue };
            let owned = entry.shards.iter().find(|owned| owned.shard == shard.0);
            let has_data = owned.is_some_and(|owned| owned.stream == stream && owned.applied > 0);
            if silent < ALIVE_WITHIN && has_data {
                found.push(StreamOwner { node: name.clone(), silent, is_alive: true });
            }
        }
        for ((_, name), floor) in known.floors.iter().filter(|((of, _), _)| *of == shard) {
            let Ok(said) = &floor.said else { continue };
            let Some((silent, name)) = directories.get(&said.directory).filter(|_| *name != self.this.name)
            else {
                continue;
            };
            let is_alive = *silent < ALIVE_WITHIN;
            // An owner that is alive may have come to other data since it stored the floor.
            let has_data = || {
                let owned = known.owned_by(&said.directory, shard, now);
                owned.is_none_or(|owned| {
                    owned.applied > 0 && (owned.stream == stream || owned.state != ShardEntry::HALTED)
                })
            };
            if said.stream == stream && (is_alive || *silent <= self.forget_after) && has_data() {
                found.push(StreamOwner { node: name.clone(), silent: *silent, is_alive });
            }
        }
        Ok(found.into_iter().filter(|owner| owner.node != self.this.name).min_by_key(|owner| owner.silent))
    }

    /// The streams from which a shard is live, on this node and on others; none if it is live nowhere.
    pub(super) fn live_streams_of(&self, shard: ShardId) -> BTreeSet<String> {
        let (known, now) = (self.known.lock(), Instant::now());
        let live = known.live_streams(Some(shard), now);
        live.into_values().flatten().map(str::to_owned).collect()
    }
}

impl Known {
    /// The streams from which shards are live, on this node and on others.
    ///
    /// # Arguments
    /// `only`: one shard; `None`: all.
    pub(super) fn live_streams(
        &self,
        only: Option<ShardId>,
        now: Instant,
    ) -> BTreeMap<ShardId, BTreeSet<&str>> {
        let mut live: BTreeMap<ShardId, BTreeSet<&str>> = BTreeMap::new();
        let is_asked = |shard: ShardId| only.is_none_or(|only| only == shard);
        for (shard, stream) in self.own_live.iter().filter(|(shard, _)| is_asked(**shard)) {
            live.entry(*shard).or_default().insert(stream);
        }
        let alive = self.nodes.values().filter(|node| node.heard.silent(now) < ALIVE_WITHIN);
        for entry in alive.filter_map(|node| node.entry.as_ref()?.as_ref().ok()) {
            let owned = entry.shards.iter().filter(|owned| is_asked(ShardId(owned.shard)));
            for owned in owned.filter(|owned| owned.state == LIVE) {
                live.entry(ShardId(owned.shard)).or_default().insert(&owned.stream);
            }
        }
        live
    }

    /// The directories of nodes that are alive and halted with data of another stream than this one. Floors
    /// that they have stored before are not of what they hold now: they need a copy.
    pub(super) fn with_other_data(&self, shard: ShardId, stream: &str, now: Instant) -> BTreeSet<String> {
        let alive = self.nodes.values().filter(|node| node.heard.silent(now) < ALIVE_WITHIN);
        let entries = alive.filter_map(|node| node.entry.as_ref()?.as_ref().ok());
        let has_other = |owned: &ShardEntry| {
            owned.shard == shard.0
                && owned.state == ShardEntry::HALTED
                && !owned.stream.is_empty()
                && owned.stream != stream
        };
        let with_other = entries.filter(|entry| entry.shards.iter().any(has_other));
        with_other.map(|entry| entry.directory.clone()).collect()
    }

    /// What the node with this data directory says of a shard, if it is alive.
    fn owned_by(&self, directory: &str, shard: ShardId, now: Instant) -> Option<&ShardEntry> {
        let alive = self.nodes.values().filter(|node| node.heard.silent(now) < ALIVE_WITHIN);
        let mut entries = alive.filter_map(|node| node.entry.as_ref()?.as_ref().ok());
        let entry = entries.find(|entry| entry.directory == directory)?;
        entry.shards.iter().find(|owned| owned.shard == shard.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::nats::peers::known::test_support::*;

    const SHARD: ShardId = ShardId(0);

    /// A node says how its shard is.
    fn say(peers: &Peers, of: &str, (state, stream, applied): (&str, &str, u64), age: Duration) {
        let mut received = node(of, &format!("d-{of}"), 1, age);
        if let Some(Ok(entry)) = &mut received.entry {
            let (state, stream) = (state.to_owned(), stream.to_owned());
            let (checkpoint, safe, lag, hashes) = (0, 0, 0, None);
            entry.shards =
                vec![ShardEntry { shard: SHARD.0, state, stream, applied, checkpoint, safe, lag, hashes }];
        }
        peers.note_node(received);
    }

    /// With both buckets read to their ends.
    fn listening() -> Peers {
        let peers = peers();
        peers.begin_reading_floors();
        peers.end_reading_floors();
        peers.end_reading_nodes();
        peers
    }

    fn owner(peers: &Peers, stream: &str) -> Option<String> {
        let found = peers.owner_of_stream(SHARD, stream).expect("it is known");
        found.map(|owner| owner.node.to_string())
    }

    #[test]
    fn an_owner_of_a_stream_has_applied_some_of_it_and_is_not_forgotten() {
        assert!(peers().owner_of_stream(SHARD, "S@1").is_err(), "nothing was read");
        let peers = listening();
        assert_eq!(owner(&peers, "S@1"), None);
        // It is new, and has nothing that a copy could be made of.
        say(&peers, "empty", ("live", "S@1", 0), Duration::ZERO);
        peers.note_floor(SHARD, floor("empty", "d-empty", 0, 1, Duration::ZERO));
        // Its data are of another stream, whatever its last floor said.
        say(&peers, "other", ("halted", "S@2", 90), Duration::ZERO);
        peers.note_floor(SHARD, floor("other", "d-other", 70, 2, Duration::ZERO));
        // This node's own name, with a former directory; and one that was silent for too long.
        peers.note_floor(SHARD, floor("here", "d-former", 70, 3, Duration::ZERO));
        peers.note_floor(SHARD, floor("gone", "d-gone", 70, 4, HOUR + Duration::from_secs(1)));
        assert_eq!((owner(&peers, "S@1"), owner(&peers, "S@3")), (None, None));
        peers.note_floor(SHARD, floor("silent", "d-silent", 70, 5, Duration::from_secs(60)));
        assert_eq!(owner(&peers, "S@1").as_deref(), Some("silent"), "its data are there");
        say(&peers, "running", ("live", "S@1", 5), Duration::ZERO);
        assert_eq!(owner(&peers, "S@1").as_deref(), Some("running"));
        assert_eq!(owner(&peers, "S@2").as_deref(), Some("other"));
        assert_eq!(peers.owner_of_stream(ShardId(1), "S@1"), Ok(None));
    }

    #[test]
    fn the_floor_of_a_node_that_is_halted_with_other_data_holds_no_stream_back() {
        let peers = listening();
        peers.note_floor(SHARD, floor("other", "d-other", 70, 1, Duration::ZERO));
        peers.note_floor(SHARD, floor("same", "d-same", 80, 2, Duration::ZERO));
        say(&peers, "same", ("halted", "S@1", 85), Duration::ZERO);
        assert_eq!(peers.floors(SHARD, STREAM).all, 70, "it has not said yet what it has");
        say(&peers, "other", ("halted", "S@2", 95), Duration::ZERO);
        assert_eq!(peers.floors(SHARD, STREAM).all, 80);
    }

    #[test]
    fn streams_are_live_where_this_node_or_one_that_is_alive_says_so() {
        let peers = listening();
        say(&peers, "halted", ("halted", "S@2", 9), Duration::ZERO);
        say(&peers, "silent", ("live", "S@3", 9), Duration::from_secs(30));
        assert!(peers.live_streams_of(SHARD).is_empty());
        say(&peers, "running", ("live", "S@1", 9), Duration::ZERO);
        assert_eq!(peers.live_streams_of(SHARD).into_iter().collect::<Vec<_>>(), ["S@1"]);
        peers.note_live(SHARD, Some("S@4".to_owned()));
        assert_eq!(peers.live_streams_of(SHARD).into_iter().collect::<Vec<_>>(), ["S@1", "S@4"]);
        assert!(peers.live_streams_of(ShardId(1)).is_empty());
        peers.note_live(SHARD, None);
        assert_eq!(peers.live_streams_of(SHARD).into_iter().collect::<Vec<_>>(), ["S@1"]);
    }
}
