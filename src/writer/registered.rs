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
use crate::types::BoardName;

/// A board as the node knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredBoard {
    pub incarnation: Incarnation,
    pub definition: Arc<Definition>,
}

pub struct RegistryEntry {
    pub known: RegisteredBoard,
    pub being_dropped: bool,
}

#[derive(Default)]
pub struct RegisteredBoards {
    by_name: BTreeMap<BoardName, RegistryEntry>,
    /// The same boards in the order in which they were made, or cleared last.
    by_incarnation: BTreeMap<Incarnation, SmallVec<[BoardName; 1]>>,
    /// How many are read-only, to be read without their lock: mostly none is.
    read_only: Arc<AtomicUsize>,
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
        self.by_name.insert(name.clone(), RegistryEntry { known, being_dropped: false });
    }

    pub fn remove(&mut self, name: &str) {
        let Some(RegistryEntry { known, .. }) = self.by_name.remove(name) else { return };
        self.read_only.fetch_sub(usize::from(known.definition.read_only.is_some()), Ordering::Release);
        let Some(names) = self.by_incarnation.get_mut(&known.incarnation) else { return };
        names.retain(|other| other.as_str() != name);
        if names.is_empty() {
            self.by_incarnation.remove(&known.incarnation);
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
