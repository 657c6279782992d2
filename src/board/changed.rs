//! How a board's definition may change.

use std::sync::Arc;

use crate::board::definition::{Definition, InvalidDefinition, Key, Policy};
use crate::board::read_only::ReadOnly;
use crate::types::Timestamp;
use crate::window::{Seasons, Window};

impl Definition {
    /// Whether regular seasons start when another definition says, or have not begun, so that they may.
    pub fn may_start_as(&self, asked: &Self, now: Timestamp) -> bool {
        let starts = |definition: &Self| definition.seasons.as_ref().and_then(Seasons::starts);
        starts(self) == starts(asked) || starts(self).is_none_or(|starts| starts > now)
    }

    /// The definition that this one becomes if a client asks for another, which agrees with it and may start
    /// its seasons then: seasons become longer or shorter from the next one on, manual ones stay as they were
    /// opened, and what has closed keeps its entries.
    ///
    /// # Errors
    /// When it is none: when seasons would be too short, or have changed too often, or the grace is too long
    /// for the shortest of them.
    pub fn changed_to(&self, asked: &Self, now: Timestamp) -> Result<Self, InvalidDefinition> {
        let seasons = match (&self.seasons, &asked.seasons) {
            (Some(known), Some(asked)) if known.starts() != asked.starts() => Some(asked.clone()),
            (Some(known), Some(Seasons::Regular(series))) => match series.last() {
                Some(last) => Some(known.with_length(last.every, now)?),
                None => Some(known.clone()),
            },
            (Some(known), _) => Some(known.clone()),
            // The window is a new one.
            (None, asked) => asked.clone(),
        };
        let changed = Self { seasons, final_until: self.final_until_after(asked, now), ..asked.clone() };
        changed.validate()?;
        Ok(changed)
    }

    /// Whether this definition and `other` may be two of the same board, the one before and the other after a
    /// change: all that can never change is the same, and of their windows one has all that the other has.
    /// Bounds judge jobs, and not the entries that are there.
    pub fn agrees_with(&self, other: &Self) -> bool {
        let has_windows_of =
            |one: &Self, other: &Self| other.windows.iter().all(|of| one.windows.contains(of));
        let seasons_agree = match (&self.seasons, &other.seasons) {
            (Some(one), Some(other)) => one.is_alike(other),
            (None, None) => true,
            // The window may have been added. Where both have it, its seasons are not taken away.
            _ => ![self, other].into_iter().all(|one| one.windows.contains(&Window::Season)),
        };
        seasons_agree
            && (has_windows_of(self, other) || has_windows_of(other, self))
            && self.fixed() == other.fixed()
    }

    /// The windows that this definition has and a changed one would lack: no window can be taken away.
    pub fn windows_missing_in(&self, changed: &Self) -> Vec<Window> {
        self.windows.iter().copied().filter(|window| !changed.windows.contains(window)).collect()
    }

    /// Without all that can change.
    fn fixed(&self) -> Self {
        let unbounded = |key: &Key| {
            let Key { order, key_type, .. } = *key;
            Key { name: key.name.clone(), order, key_type, ..Key::score() }
        };
        Self {
            keys: self.keys.iter().map(unbounded).collect(),
            policy: Policy::Set,
            windows: Vec::new(),
            seasons: None,
            keep: 0,
            grace_micros: 0,
            entry_ttl_micros: None,
            final_until: None,
            read_only: None,
            // It decides which members of a stream are kept.
            capacity: self.capacity.filter(|_| self.is_top_k()),
            ..self.clone()
        }
    }

    /// The same definition, read-only for this reason from now on, or not any more.
    pub fn read_only_for(&self, reason: Option<&str>, now: Timestamp) -> Self {
        let asked = reason.map(|reason| match &self.read_only {
            // The request is repeated.
            Some(known) if known.reason == reason => Arc::clone(known),
            _ => Arc::new(ReadOnly { reason: reason.to_owned(), since: now }),
        });
        Self { read_only: asked, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_when_stays_while_the_reason_does() {
        let at = |micros| Timestamp::from_micros(micros).expect("in range");
        let since = |definition: &Definition| definition.read_only.as_ref().map(|known| known.since);
        let first = Definition::default().read_only_for(Some("a move"), at(5));
        assert_eq!(first.read_only_for(Some("a move"), at(6)), first);
        let other = first.read_only_for(Some("an incident"), at(7));
        assert_eq!([since(&first), since(&other)], [Some(at(5)), Some(at(7))]);
        assert!(first.agrees_with(&other) && first.expires_like(&other));
        assert_eq!(other.read_only_for(None, at(8)), Definition::default());
    }
}
