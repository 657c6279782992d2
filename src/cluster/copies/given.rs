//! Which copies are out, to whom, and where they hold the floors of this node's shards.
//!
//! Knows: when a floor may be let go of. Must not know: how copies are made, or who asks for them.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::cluster::copies::protocol::OfferedCopy;
use crate::queue::nats::ReadFloor;
use crate::types::ShardId;

/// For how long the floor holds after a copy was let go of, if the other's floor was not read by then.
const HELD_AFTER: Duration = Duration::from_secs(60);

/// A copy that is out, or for whose sake the floor is still held.
struct Given {
    /// `None`: it is being made.
    copy: Option<String>,
    shard: ShardId,
    /// The data directory of the node that fetches it.
    directory: String,
    /// The identity of the stream that both nodes follow.
    stream: String,
    /// No message after this one may be purged. While the copy is made, its own is not known.
    sequence: u64,
    /// The place of the floor that was known of the other node before: it says nothing of this copy.
    known_place: Option<u64>,
    /// When it was let go of.
    ended: Option<Instant>,
    files: Vec<String>,
}

impl Given {
    /// Whether the other node has stored that it needs what comes after the copy. An earlier floor of its may
    /// be greater: it is of data that the copy replaces.
    fn is_held_by(&self, floor: &ReadFloor) -> bool {
        let is_new = self.known_place != Some(floor.place) && floor.sequence >= self.sequence;
        floor.stream == self.stream && (is_new || floor.sequence == self.sequence)
    }
}

/// The copies that this node gives.
#[derive(Default)]
pub struct GivenCopies(Mutex<Vec<Given>>);

impl GivenCopies {
    /// A copy is to be made for a node.
    ///
    /// # Arguments
    /// - `safe`: what no crash takes back here. The floor holds at that meanwhile
    /// - `known`: the floor of the other node, as this one has read it
    pub fn begin(&self, shard: ShardId, directory: &str, stream: &str, safe: u64, known: Option<&ReadFloor>) {
        self.0.lock().push(Given {
            copy: None,
            shard,
            directory: directory.to_owned(),
            stream: stream.to_owned(),
            sequence: safe,
            known_place: known.map(|floor| floor.place),
            ended: None,
            files: Vec::new(),
        });
    }

    /// The copy is made; `None`: it could not be.
    pub fn end_making(&self, shard: ShardId, directory: &str, made: Option<&OfferedCopy>) {
        let mut given = self.0.lock();
        let is_it =
            |given: &Given| given.copy.is_none() && given.shard == shard && given.directory == directory;
        let Some(at) = given.iter().position(is_it) else { return };
        match (made, given.get_mut(at)) {
            (Some(made), Some(given)) => {
                given.copy = Some(made.copy.clone());
                given.sequence = made.sequence;
                given.files = made.files.iter().map(|(name, _)| name.clone()).collect();
            }
            _ => drop(given.swap_remove(at)),
        }
    }

    /// The copies of a shard that a node has and was not let go of.
    pub fn of(&self, shard: ShardId, directory: &str) -> Vec<String> {
        let given = self.0.lock();
        let same = given.iter().filter(|given| given.shard == shard && given.directory == directory);
        same.filter_map(|given| given.copy.clone().filter(|_| given.ended.is_none())).collect()
    }

    /// The name of a file of a copy that is out.
    pub fn file(&self, shard: ShardId, copy: &str, file: u32) -> Option<String> {
        let given = self.0.lock();
        let held = given.iter().find(|given| given.copy.as_deref() == Some(copy) && given.shard == shard)?;
        held.files.get(usize::try_from(file).ok()?).cloned().filter(|_| held.ended.is_none())
    }

    /// Lets go of what needs not be held any more, and holds the floors. Returns how many copies are out.
    ///
    /// # Arguments
    /// - `is_held`: whether a copy's files are still held
    /// - `floor_of`: the floor of another node's shard, by its data directory, as this node has read it
    /// - `hold`: called with each of `shards` and the lowest sequence of its copies
    pub fn update(
        &self,
        shards: impl Iterator<Item = ShardId>,
        is_held: impl Fn(&str) -> bool,
        floor_of: impl Fn(ShardId, &str) -> Option<ReadFloor>,
        mut hold: impl FnMut(ShardId, Option<u64>),
    ) -> usize {
        let mut given = self.0.lock();
        for copy in given.iter_mut().filter(|given| given.ended.is_none()) {
            if copy.copy.as_ref().is_some_and(|copy| !is_held(copy)) {
                copy.ended = Some(Instant::now());
            }
        }
        given.retain(|given| {
            given.ended.is_none_or(|ended| {
                let own = floor_of(given.shard, &given.directory);
                let has_own = own.is_some_and(|floor| given.is_held_by(&floor));
                !has_own && ended.elapsed() < HELD_AFTER
            })
        });
        // Under the lock: otherwise a floor from before another copy was begun could be set after it.
        for shard in shards {
            let of_shard = given.iter().filter(|given| given.shard == shard);
            hold(shard, of_shard.map(|given| given.sequence).min());
        }
        given.iter().filter(|given| given.ended.is_none()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(copy: &str, sequence: u64) -> OfferedCopy {
        OfferedCopy {
            copy: copy.to_owned(),
            shards: 1,
            stream: String::new(),
            sequence,
            files: vec![("CURRENT".to_owned(), 1)],
        }
    }

    const STREAM: &str = "S@1";

    fn floor(stream: &str, sequence: u64, place: u64) -> ReadFloor {
        ReadFloor { stream: stream.to_owned(), sequence, place }
    }

    fn begin(given: &GivenCopies, directory: &str, safe: u64) {
        given.begin(ShardId(0), directory, STREAM, safe, None);
    }

    /// The floor, and how many copies are out.
    fn update(given: &GivenCopies, held: &[&str], own: Option<u64>) -> (Option<u64>, usize) {
        update_by(given, held, own.map(|sequence| floor(STREAM, sequence, 1)).as_ref())
    }

    fn update_by(given: &GivenCopies, held: &[&str], own: Option<&ReadFloor>) -> (Option<u64>, usize) {
        let mut is = None;
        let out = given.update(
            std::iter::once(ShardId(0)),
            |copy| held.contains(&copy),
            |_, directory| own.filter(|_| directory == "d-b").cloned(),
            |_, sequence| is = sequence,
        );
        (is, out)
    }

    #[test]
    fn the_floor_holds_until_the_other_nodes_own_was_read() {
        let given = GivenCopies::default();
        assert_eq!(update(&given, &[], None), (None, 0));
        begin(&given, "d-b", 70);
        assert_eq!(update(&given, &[], None), (Some(70), 1), "it holds before the copy is made");
        given.end_making(ShardId(0), "d-b", Some(&offered("one", 90)));
        assert_eq!(update(&given, &["one"], Some(20)), (Some(90), 1));
        assert_eq!(given.of(ShardId(0), "d-b"), ["one"]);
        assert_eq!(given.file(ShardId(0), "one", 0).as_deref(), Some("CURRENT"));
        for (shard, copy, file) in [(1, "one", 0), (0, "two", 0), (0, "one", 1)] {
            assert_eq!(given.file(ShardId(shard), copy, file), None);
        }
        // Let go of, with only an earlier floor of the other node, and one of a third node.
        assert_eq!(update(&given, &[], Some(89)), (Some(90), 0));
        assert_eq!((given.file(ShardId(0), "one", 0), given.of(ShardId(0), "d-b").len()), (None, 0));
        begin(&given, "d-c", 95);
        assert_eq!(update(&given, &[], Some(90)), (Some(95), 1));
        given.end_making(ShardId(0), "d-c", None);
        assert_eq!(update(&given, &[], Some(90)), (None, 0));
    }

    /// The other node has lost its data, or had data of another stream, and has said of these what it needs.
    #[test]
    fn a_floor_from_before_the_copy_or_of_another_stream_does_not_let_go() {
        for (before, after) in [
            (floor(STREAM, 100, 7), floor(STREAM, 90, 8)),
            (floor(STREAM, 100, 7), floor(STREAM, 95, 3)),
            (floor("S@0", 100, 7), floor(STREAM, 90, 8)),
        ] {
            let given = GivenCopies::default();
            given.begin(ShardId(0), "d-b", STREAM, 70, Some(&before));
            given.end_making(ShardId(0), "d-b", Some(&offered("one", 90)));
            assert_eq!(update_by(&given, &["one"], Some(&before)), (Some(90), 1));
            assert_eq!(update_by(&given, &[], Some(&before)), (Some(90), 0), "{after:?}");
            let of_other = floor("S@0", 200, 9);
            assert_eq!(update_by(&given, &[], Some(&of_other)), (Some(90), 0), "{after:?}");
            assert_eq!(update_by(&given, &[], Some(&after)), (None, 0));
        }
        // It had asked for a copy of the same before, and stored just that.
        let (given, same) = (GivenCopies::default(), floor(STREAM, 90, 7));
        given.begin(ShardId(0), "d-b", STREAM, 70, Some(&same));
        given.end_making(ShardId(0), "d-b", Some(&offered("one", 90)));
        assert_eq!(update_by(&given, &[], Some(&same)), (None, 0));
    }

    #[test]
    fn of_several_copies_the_lowest_holds() {
        let given = GivenCopies::default();
        for (directory, copy, sequence) in [("d-b", "one", 90), ("d-c", "two", 80)] {
            begin(&given, directory, 70);
            given.end_making(ShardId(0), directory, Some(&offered(copy, sequence)));
        }
        assert_eq!(update(&given, &["one", "two"], Some(90)), (Some(80), 2));
        assert_eq!(update(&given, &["two"], Some(90)), (Some(80), 1));
        // The node that fetches it has no floor yet.
        assert_eq!(update(&given, &[], Some(90)), (Some(80), 0));
    }
}
