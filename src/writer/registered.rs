//! The boards that a registry knows, by name, and in the order in which they were made.
//!
//! Must not know: what a definition may become, or locks.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use smallvec::SmallVec;

use crate::board::Definition;
use crate::state::Incarnation;
use crate::types::{BoardName, Timestamp};

/// A board as the node knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredBoard {
    pub incarnation: Incarnation,
    pub definition: Arc<Definition>,
}

pub struct RegistryEntry {
    pub known: RegisteredBoard,
    pub being_dropped: bool,
    /// When it is to be looked at whether the board has ended. `None`: it does not end by itself.
    look_at: Option<Timestamp>,
}

impl RegistryEntry {
    /// A board that may have ended, and whether its drop has begun.
    fn ending(&self, name: &BoardName) -> EndingBoard {
        EndingBoard { name: name.clone(), known: self.known.clone(), being_dropped: self.being_dropped }
    }
}

/// A board that may have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndingBoard {
    pub name: BoardName,
    pub known: RegisteredBoard,
    /// Whether its drop has begun, and is not over.
    pub being_dropped: bool,
}

#[derive(Default)]
pub struct RegisteredBoards {
    by_name: BTreeMap<BoardName, RegistryEntry>,
    /// The same boards in the order in which they were made, or cleared last.
    by_incarnation: BTreeMap<Incarnation, SmallVec<[BoardName; 1]>>,
    /// How many are read-only, to be read without their lock: mostly none is.
    read_only: Arc<AtomicUsize>,
    /// Those that end by themselves, by when that is to be looked at.
    ending: BTreeSet<(Timestamp, BoardName)>,
}

impl RegisteredBoards {
    /// How many boards there are. The service is none.
    pub fn len(&self) -> usize {
        self.by_name.len() - usize::from(self.get(BoardName::service().as_str()).is_some())
    }

    /// How many are read-only, the service included.
    pub fn read_only(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.read_only)
    }

    pub fn get(&self, name: &str) -> Option<&RegistryEntry> {
        self.by_name.get(name)
    }

    /// Notes that a board is being dropped. `None`: there is no such board.
    pub fn begin_drop(&mut self, name: &str) -> Option<Incarnation> {
        let registered = self.by_name.get_mut(name)?;
        registered.being_dropped = true;
        Some(registered.known.incarnation)
    }

    /// Those from a bound of names on, by name.
    pub fn from(&self, from: Bound<&str>) -> impl Iterator<Item = (&BoardName, &RegistryEntry)> {
        self.by_name.range::<str, _>((from, Bound::Unbounded))
    }

    /// Registers a board, its next incarnation, or its changed definition.
    pub fn insert(&mut self, name: &BoardName, known: RegisteredBoard) {
        let is_read_only = usize::from(known.definition.read_only.is_some());
        // Never none in between: writes look at it.
        self.read_only.fetch_add(is_read_only, Ordering::Release);
        self.remove(name.as_str());
        if !name.is_service() {
            self.by_incarnation.entry(known.incarnation).or_default().push(name.clone());
        }
        let look_at = known.definition.may_end_at();
        self.ending.extend(look_at.map(|at| (at, name.clone())));
        self.by_name.insert(name.clone(), RegistryEntry { known, being_dropped: false, look_at });
    }

    pub fn remove(&mut self, name: &str) {
        let Some((name, RegistryEntry { known, look_at, .. })) = self.by_name.remove_entry(name) else {
            return;
        };
        self.read_only.fetch_sub(usize::from(known.definition.read_only.is_some()), Ordering::Release);
        if let Some(at) = look_at {
            self.ending.remove(&(at, name.clone()));
        }
        let Some(names) = self.by_incarnation.get_mut(&known.incarnation) else { return };
        names.retain(|other| *other != name);
        if names.is_empty() {
            self.by_incarnation.remove(&known.incarnation);
        }
    }

    /// When it is next to be looked at whether a board has ended.
    pub fn next_end(&self) -> Option<Timestamp> {
        self.ending.first().map(|(at, _)| *at)
    }

    /// The first boards that may have ended by a time.
    pub fn ended_by(&self, time: Timestamp, limit: usize) -> Vec<EndingBoard> {
        let due = self.ending.iter().take_while(|(at, _)| *at <= time).take(limit);
        due.filter_map(|(_, name)| Some(self.by_name.get(name)?.ending(name))).collect()
    }

    /// Has it looked at later whether a life of a board has ended.
    pub fn look_later(&mut self, name: &BoardName, life: Incarnation, at: Timestamp) {
        let Some(entry) = self.by_name.get_mut(name) else { return };
        if let Some(before) = entry.look_at.filter(|_| entry.known.incarnation == life) {
            self.ending.remove(&(before, name.clone()));
            self.ending.insert((at, name.clone()));
            entry.look_at = Some(at);
        }
    }

    /// The first boards after an incarnation: at least `limit` of them, if there are so many, and all of the
    /// last one's incarnation.
    pub fn made_after(&self, incarnation: Incarnation, limit: usize) -> Vec<(Incarnation, BoardName)> {
        let later = self.by_incarnation.range((Bound::Excluded(incarnation), Bound::Unbounded));
        later.take(limit).flat_map(|(made, names)| names.iter().map(|name| (*made, name.clone()))).collect()
    }

    /// How many have a name with one of these prefixes; for `None`, how many there are.
    pub fn count_named(&self, prefixes: Option<&[String]>) -> usize {
        let Some(prefixes) = prefixes else { return self.len() };
        let prefixes: BTreeSet<&str> = prefixes.iter().map(String::as_str).collect();
        let mut count = 0;
        for prefix in &prefixes {
            // Boards counted for a shorter prefix are not counted twice.
            if prefixes.iter().any(|other| other != prefix && prefix.starts_with(other)) {
                continue;
            }
            let from = (Bound::Included(*prefix), Bound::Unbounded);
            let named = self.by_name.range::<str, _>(from);
            count += named.take_while(|(name, _)| name.as_str().starts_with(prefix)).count();
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::registry::Registry;

    #[test]
    fn boards_come_in_the_order_in_which_they_were_made_and_each_once() {
        let registry = Registry::new(true);
        let name = |text| BoardName::new(text).expect("a good name");
        for text in ["c", "a", "d", "b"] {
            registry.create_default(&name(text)).expect("there is room");
        }
        let all = |limit| {
            let (mut after, mut found) = (Incarnation(0), String::new());
            loop {
                let page = registry.made_after(after, limit);
                let Some((last, _)) = page.last() else { return found };
                after = *last;
                found.extend(page.iter().map(|(_, name)| name.as_str()));
            }
        };
        for limit in [1, 3, 10] {
            assert_eq!(all(limit), "cadb");
        }
        // A board that is cleared, or dropped and made anew, is one that was made last.
        registry.begin_next_incarnation(&name("a")).expect("it is there");
        let dropped = registry.begin_drop("d").expect("it is there");
        registry.create_default(&name("d")).expect("there is room");
        registry.finish_drop("d", dropped);
        let dropped = registry.begin_drop("b").expect("it is there");
        registry.finish_drop("b", dropped);
        // Two nodes may have given the same number.
        let of_other = registry.get("a").expect("it is there");
        registry.apply_remote(&name("e"), &of_other);
        for limit in [1, 3, 10] {
            assert_eq!(all(limit), "caed");
        }
        registry.forget(&name("a"), of_other.incarnation);
        assert_eq!(all(1), "ced");
    }

    #[test]
    fn boards_that_end_come_in_the_order_of_the_times_at_which_they_are_looked_at() {
        let at = |micros| Timestamp::from_micros(micros).expect("in range");
        let registry = Registry::new(true);
        let name = |text| BoardName::new(text).expect("a good name");
        let define = |text, expires_at: Option<i64>, quiet| {
            let definition = Definition {
                expires_at: expires_at.map(at),
                expires_after_micros: quiet,
                ..Definition::default()
            };
            registry.define(&name(text), definition).expect("there is room");
        };
        let due = |micros| {
            let due = registry.ended_by(at(micros), 10);
            due.iter().map(|ending| ending.name.as_str().to_owned()).collect::<String>()
        };
        define("a", Some(20), None);
        define("b", Some(10), None);
        define("c", None, Some(1_000_000));
        define("d", None, None);
        assert_eq!(
            (registry.next_end(), due(0), due(10), due(20)),
            (Some(at(0)), "c".into(), "cb".into(), "cba".into())
        );
        let life = registry.get("c").expect("it is there").incarnation;
        registry.look_later(&name("c"), life, at(15));
        registry.look_later(&name("c"), Incarnation(life.0 + 1), at(16));
        registry.look_later(&name("d"), life, at(1));
        assert_eq!((registry.next_end(), due(20)), (Some(at(10)), "bca".into()));
        // A change is looked at anew; a board that is being dropped stays until it is gone.
        define("b", None, None);
        let dropped = registry.begin_drop("a").expect("it is there");
        assert!(registry.ended_by(at(20), 10).iter().any(|ending| ending.being_dropped));
        registry.finish_drop("a", dropped);
        assert_eq!(due(20), "c");
        define("c", None, None);
        assert_eq!(registry.next_end(), None);
    }

    #[test]
    fn boards_are_counted_once_by_what_their_names_begin_with() {
        let registry = Registry::new(true);
        for name in ["a", "eu", "eu-", "eu-1", "eu-12", "eu.1", "us-1", "z"] {
            let name = BoardName::new(name).expect("a good name");
            registry.create_default(&name).expect("there is room");
        }
        let count = |prefixes: &[&str]| {
            let prefixes: Vec<_> = prefixes.iter().map(ToString::to_string).collect();
            registry.count_named(Some(&prefixes))
        };
        assert_eq!(registry.count_named(None), 8);
        for (prefixes, expect) in [
            (&["eu-"][..], 3),
            (&["eu-", "eu-"], 3),
            (&["eu-1", "eu-"], 3),
            (&["eu", "us-"], 6),
            (&["z"], 1),
            (&["x"], 0),
        ] {
            assert_eq!(count(prefixes), expect, "{prefixes:?}");
        }
    }
}
