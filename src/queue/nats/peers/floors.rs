//! Which messages of a stream other nodes still need.
//!
//! Knows: an owner of a shard needs what its last checkpoint does not hold, unless it has been silent for too
//! long, or what it needs is gone already. Must not know: how entries are read, or what is purged.

use std::time::Duration;

use crate::queue::nats::peers::entries::{FloorEntry, UnreadableEntry};

/// Of what other nodes need of a stream: the lowest floor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FloorsOfOthers {
    /// No message from this one on may be purged for the sake of any owner; `u64::MAX` if no owner needs any.
    pub all: u64,
    /// The same for owners that are alive.
    pub alive: u64,
    /// Which owner has the lowest floor, or why it is unknown, in words.
    pub holder: Option<String>,
    /// Whether some floor that counts is unknown.
    pub is_unknown: bool,
}

impl FloorsOfOthers {
    /// No other node needs anything.
    pub const NONE: Self = Self { all: u64::MAX, alive: u64::MAX, holder: None, is_unknown: false };

    /// With the lowest sequence of the copies that this node gives: the nodes that fetch them need what comes
    /// after it.
    pub fn with_given(mut self, given: Option<u64>) -> Self {
        let Some(given) = given else { return self };
        if given < self.all {
            let words = format!("a node that fetches a copy of this shard needs messages from {given} on");
            (self.all, self.holder) = (given, Some(words));
        }
        self.alive = self.alive.min(given);
        self
    }

    /// It cannot be told what other nodes need, so nothing may be purged for their sake.
    pub fn unknown(why: String) -> Self {
        Self { all: 0, alive: u64::MAX, holder: Some(why), is_unknown: true }
    }
}

/// Whether and why an owner's floor counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counts {
    Yes,
    /// The owner was silent for longer than `--nats-forget`.
    Forgotten,
    /// What it needs is purged already. So it has halted, and another node's copy is what helps it.
    Passed,
    /// It is of another stream, which was replaced by this one.
    OtherStream,
}

/// An owner's floor, and how long the owner has been silent.
pub struct OwnerFloor<'a> {
    pub node: &'a str,
    pub silent: Duration,
    pub is_alive: bool,
    pub floor: &'a Result<FloorEntry, UnreadableEntry>,
}

/// The stream that is to be purged.
#[derive(Debug, Clone, Copy)]
pub struct PurgedStream<'a> {
    pub identity: &'a str,
    /// Its first message.
    pub first: u64,
}

impl OwnerFloor<'_> {
    /// Whether it counts for this stream.
    pub fn counts(&self, stream: PurgedStream<'_>, forget_after: Duration) -> Counts {
        if self.silent > forget_after && !self.is_alive {
            return Counts::Forgotten;
        }
        match self.floor {
            Ok(floor) if floor.stream != stream.identity => Counts::OtherStream,
            Ok(floor) if floor.sequence.saturating_add(1) < stream.first => Counts::Passed,
            Ok(_) | Err(_) => Counts::Yes,
        }
    }

    fn words(&self) -> String {
        let silent = if self.is_alive {
            String::new()
        } else {
            format!(", which has been silent for {} s,", self.silent.as_secs())
        };
        match self.floor {
            Ok(floor) => format!("the node {}{silent} needs messages from {} on", self.node, floor.sequence),
            Err(error) => format!("the floor of the node {}{silent} cannot be read: {error}", self.node),
        }
    }
}

/// The lowest of the floors that count.
pub fn lowest<'a>(counting: impl Iterator<Item = OwnerFloor<'a>>) -> FloorsOfOthers {
    let mut lowest = FloorsOfOthers::NONE;
    for owner in counting {
        // An unreadable floor may be any. It gives way when the stream fills up, whoever's it is.
        let (floor, is_alive) = match owner.floor {
            Ok(floor) => (floor.sequence, owner.is_alive),
            Err(_) => (0, false),
        };
        lowest.is_unknown |= owner.floor.is_err();
        if floor < lowest.all {
            (lowest.all, lowest.holder) = (floor, Some(owner.words()));
        }
        if is_alive {
            lowest.alive = lowest.alive.min(floor);
        }
    }
    lowest
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn floor(stream: &str, sequence: u64) -> FloorEntry {
        FloorEntry { directory: String::new(), stream: stream.to_owned(), sequence }
    }

    fn owner(floor: &Result<FloorEntry, UnreadableEntry>, silent: Duration) -> OwnerFloor<'_> {
        OwnerFloor { node: "n", silent, is_alive: silent < Duration::from_secs(10), floor }
    }

    #[test]
    fn a_floor_counts_while_its_owner_is_remembered_and_can_still_use_it() {
        let stream = |first| PurgedStream { identity: "S@1", first };
        let unreadable = Err(UnreadableEntry::Foreign);
        for (floor, silent, first, expect) in [
            (&Ok(floor("S@1", 5)), Duration::ZERO, 1, Counts::Yes),
            (&Ok(floor("S@1", 5)), HOUR, 5, Counts::Yes),
            // The message itself is gone, and the next one is not.
            (&Ok(floor("S@1", 5)), HOUR, 6, Counts::Yes),
            (&Ok(floor("S@1", 5)), HOUR, 7, Counts::Passed),
            (&Ok(floor("S@1", 0)), Duration::ZERO, 1, Counts::Yes),
            (&Ok(floor("S@1", 0)), Duration::ZERO, 2, Counts::Passed),
            (&Ok(floor("S@1", u64::MAX)), HOUR, 7, Counts::Yes),
            (&Ok(floor("S@2", 5)), Duration::ZERO, 1, Counts::OtherStream),
            (&Ok(floor("S@1", 5)), HOUR * 2 + Duration::from_secs(1), 1, Counts::Forgotten),
            (&unreadable, HOUR, 1, Counts::Yes),
            (&unreadable, HOUR * 3, 1, Counts::Forgotten),
        ] {
            assert_eq!(owner(floor, silent).counts(stream(first), HOUR * 2), expect, "{floor:?}");
        }
        // A node that is alive is never forgotten, however short the time is.
        let (floor, silent) = (Ok(floor("S@1", 5)), Duration::from_secs(3));
        assert_eq!(owner(&floor, silent).counts(stream(1), Duration::from_secs(1)), Counts::Yes);
    }

    #[test]
    fn the_lowest_floor_holds_and_names_its_owner() {
        assert_eq!(lowest(std::iter::empty()), FloorsOfOthers::NONE);
        let floors = [Ok(floor("S", 70)), Ok(floor("S", 50)), Ok(floor("S", 60))];
        let silent = [Duration::ZERO, HOUR, Duration::ZERO];
        let owners = || floors.iter().zip(silent).map(|(floor, silent)| owner(floor, silent));
        let found = lowest(owners());
        assert_eq!((found.all, found.alive), (50, 60));
        let holder = found.holder.expect("one has the lowest");
        assert!(holder.contains("silent for 3600 s") && holder.contains("from 50 on"), "{holder}");
        // Of a floor that cannot be read nothing is known, except that it may be any.
        let unreadable = Err(UnreadableEntry::Newer { found: 9 });
        let found = lowest(owners().chain([owner(&unreadable, Duration::ZERO)]));
        assert_eq!((found.all, found.alive), (0, 60));
        assert!(found.holder.expect("one has the lowest").contains("cannot be read: it has format 9"));
    }
}
