//! What other nodes need of the streams, by the floors that they have stored.
//!
//! Knows: whose floor counts, for how long, and which floors nobody needs any more. Must not know: how floors
//! are read (`follow`), or what is purged (`retention`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::queue::nats::peers::entries::{FloorEntry, UnreadableEntry};
use crate::queue::nats::peers::floors::{self, Counts, FloorsOfOthers, OwnerFloor, PurgedStream};
use crate::queue::nats::peers::known::{ALIVE_WITHIN, Known, Node, Peers};
use crate::types::{NodeName, ShardId};

/// The floors of an owner are deleted once it has been silent for so many times `--nats-forget`.
const DELETE_AFTER: u32 = 7;

/// How long a stream has to begin behind an owner's floor until that no longer counts. A floor that the owner
/// has stored since then, and that has let it purge the stream, is read long before.
const PASSED_AFTER: Duration = Duration::from_secs(5);

/// A floor that another node has stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadFloor {
    /// The identity of the stream that the sequence is of.
    pub stream: String,
    pub sequence: u64,
    /// Its place in the bucket. A floor that is stored later has another one.
    pub place: u64,
}

impl Peers {
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
        let others = known.with_other_data(shard, stream.identity, now);
        let Known { nodes, floors, .. } = &mut *known;
        let of_shard = floors.iter_mut().filter(|(key, _)| key.0 == shard && !superseded.contains(*key));
        let of_shard = of_shard
            .filter(|(_, floor)| !floor.said.as_ref().is_ok_and(|said| others.contains(&said.directory)));
        let counting = of_shard.filter_map(|((_, name), floor)| {
            let node = nodes.get_mut(name)?;
            // Whatever the node is called now.
            let of_directory = floor.said.as_ref().ok().and_then(|said| directories.get(&said.directory));
            let silent = of_directory.map_or(node.heard.silent(now), |(silent, _)| *silent);
            let (is_alive, said) = (silent < ALIVE_WITHIN, &floor.said);
            let owner = OwnerFloor { node: name.as_str(), silent, is_alive, floor: said };
            let mut counts = owner.counts(stream, forget_after);
            // The owner itself may have purged, by a floor that this node has not read yet.
            let since = (counts == Counts::Passed).then(|| *floor.passed_since.get_or_insert(now));
            floor.passed_since = since;
            if since.is_some_and(|since| now.saturating_duration_since(since) < PASSED_AFTER) {
                counts = Counts::Yes;
            }
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

    /// The floor that a data directory has stored of a shard last, as of what was read.
    pub fn floor_of(&self, shard: ShardId, directory: &str) -> Option<ReadFloor> {
        let known = self.known.lock();
        let floors = known.floors.iter().filter(|((of, _), _)| *of == shard);
        let of_directory = floors.filter_map(|(_, floor)| {
            let said = floor.said.as_ref().ok().filter(|said| said.directory == directory)?;
            Some(((floor.reading, floor.sequence), said))
        });
        // The last one, if the node was started again under another name.
        let ((_, place), said) = of_directory.max_by_key(|(at, _)| *at)?;
        Some(ReadFloor { stream: said.stream.clone(), sequence: said.sequence, place })
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
}

impl Known {
    /// Floors in whose place there is a later one of the same directory, under the name that it has now.
    /// While a node is alive under both names they are two nodes: one directory is a copy of the other's
    /// blocks.
    pub(super) fn superseded(&self, now: Instant) -> BTreeSet<(ShardId, NodeName)> {
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
    /// lost since they stored it. Their entries say what they have on disk.
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
            let is_of_other = !owned.stream.is_empty() && owned.stream != stream.identity;
            if silent >= ALIVE_WITHIN || is_of_other || has_floor(name, &entry.directory) {
                return None;
            }
            let (directory, stream) = (entry.directory.clone(), stream.identity.to_owned());
            let sequence = owned.checkpoint.max(owned.safe);
            Some((name.clone(), silent, Ok(FloorEntry { directory, stream, sequence })))
        });
        unsaid.collect()
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
    use crate::queue::nats::peers::entries::ShardEntry;
    use crate::queue::nats::peers::known::Received;
    use crate::queue::nats::peers::known::test_support::*;

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

    /// The owner of a floor may have stored a later one and purged the stream up to that, before this node
    /// has read it.
    #[test]
    fn a_floor_that_the_stream_has_passed_counts_until_there_was_time_to_read_a_later_one() {
        let peers = peers();
        peers.begin_reading_floors();
        peers.note_floor(ShardId(0), floor("a", "d-a", 70, 1, Duration::ZERO));
        peers.end_reading_floors();
        let passed = PurgedStream { first: 91, ..STREAM };
        assert_eq!(peers.floors(ShardId(0), passed).all, 70);
        let wait = || {
            for floor in peers.known.lock().floors.values_mut() {
                floor.passed_since = floor.passed_since.and_then(|since| since.checked_sub(PASSED_AFTER));
            }
        };
        wait();
        peers.note_floor(ShardId(0), floor("a", "d-a", 90, 2, Duration::ZERO));
        assert_eq!(peers.floors(ShardId(0), passed).all, 90, "it counts as ever");
        let passed = PurgedStream { first: 120, ..STREAM };
        assert_eq!(peers.floors(ShardId(0), passed).all, 90);
        peers.note_floor(ShardId(0), floor("a", "d-a", 90, 3, Duration::ZERO));
        wait();
        assert_eq!(peers.floors(ShardId(0), passed), FloorsOfOthers::NONE, "it needs a copy");
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
        let found = peers.floor_of(ShardId(0), "d-a").map(|floor| floor.sequence);
        assert_eq!((found, peers.take_deletable()), (Some(60), vec![1]));
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
    fn an_owner_without_a_floor_needs_what_its_entry_says_it_has_not_on_disk() {
        let peers = peers();
        let owner = |of: &str, (checkpoint, safe), age| {
            let mut received = node(of, &format!("d-{of}"), 1, age);
            if let Some(Ok(entry)) = &mut received.entry {
                let (state, applied) = ("live".to_owned(), 90);
                let (hashes, stream) = (None, String::new());
                entry.shards =
                    vec![ShardEntry { shard: 0, state, stream, applied, checkpoint, safe, lag: 0, hashes }];
            }
            received
        };
        peers.note_node(owner("a", (40, 0), Duration::ZERO));
        peers.note_node(owner("b", (20, 60), Duration::ZERO));
        peers.note_node(owner("c", (10, 10), Duration::from_secs(30)));
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
}
