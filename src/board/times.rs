//! When instances of a board close and are dropped, and when entries expire: by its definition and the time.

use crate::board::definition::Definition;
use crate::types::{BoardName, Timestamp};
use crate::window::{Calendar, Instance, MovementPart, Window};

impl Definition {
    pub fn calendar(&self) -> Calendar<'_> {
        Calendar { utc_offset_minutes: self.utc_offset_minutes, seasons: self.seasons.as_ref() }
    }

    /// When an instance closes: from then on it is final. `None`: not as far as is known.
    pub fn closes_at(&self, instance: Instance) -> Option<Timestamp> {
        let end = self.calendar().span(instance)?.end?;
        Timestamp::from_micros(end.as_micros().checked_add(self.grace_micros)?).ok()
    }

    /// When an instance is dropped: when `keep` newer ones have closed, whether or not these have entries.
    /// `None`: not as far as is known.
    pub fn drops_at(&self, instance: Instance) -> Option<Timestamp> {
        if instance.window == Window::All {
            return None;
        }
        self.closes_at(instance.later(i64::from(self.keep)))
    }

    /// When what shards keep under a name is dropped: an instance, or what movement needs since one began.
    /// `None`: not as far as is known.
    pub fn drops_name_at(&self, name: &BoardName) -> Option<Timestamp> {
        match MovementPart::of_name_on_shards(name) {
            // Nobody asks for it once the next instance has begun.
            Some((_, instance)) => self.calendar().span(instance)?.end,
            None => self.drops_at(Instance::of_name_on_shards(name)?),
        }
    }

    /// When the instance begins of which shards keep something under a name: its entries, or what movement
    /// needs since then. Never, if it is a season that was cancelled. `None`: it is not one of an instance.
    pub fn begins_name_at(&self, name: &BoardName) -> Option<Timestamp> {
        let instance = match MovementPart::of_name_on_shards(name) {
            Some((_, instance)) => instance,
            None => Instance::of_name_on_shards(name)?,
        };
        Some(self.calendar().span(instance).map_or(Timestamp::MAX, |span| span.begin))
    }

    /// When an entry that is not updated again leaves. `None`: not while its instance is open.
    pub fn expires_at(&self, instance: Instance, updated_at: Timestamp) -> Option<Timestamp> {
        let micros = updated_at.as_micros().checked_add(self.entry_ttl_micros?)?;
        let at = Timestamp::from_micros(micros).ok()?;
        // A closed instance is final, also if it closed by another definition.
        let is_final = self.keeps_entries(instance)
            || (instance != Instance::ALL && self.closes_at(instance).is_some_and(|closes| closes <= at));
        (!is_final).then_some(at)
    }

    /// Whether no entry of an instance expires, however old it is: the instance had closed when the rule by
    /// which entries expire last changed.
    pub fn keeps_entries(&self, instance: Instance) -> bool {
        // Boards of which it has not changed need not look at the calendar.
        let Some(until) = self.final_until.filter(|_| instance != Instance::ALL) else { return false };
        let end = self.calendar().span(instance).and_then(|span| span.end);
        end.is_some_and(|end| end <= until)
    }

    /// [`Definition::final_until`] after a change to `asked`, so that the change makes no entry of a closed
    /// instance expire: neither of one that is closed now, though a longer `grace` opens it again, nor of one
    /// that a shorter `grace` closes.
    pub(super) fn final_until_after(&self, asked: &Self, now: Timestamp) -> Option<Timestamp> {
        let rule = |definition: &Self| (definition.entry_ttl_micros, definition.grace_micros);
        if self.has_only_all() || asked.entry_ttl_micros.is_none() || rule(self) == rule(asked) {
            return self.final_until;
        }
        let grace = self.grace_micros.min(asked.grace_micros);
        let ended = now.as_micros().checked_sub(grace).and_then(|micros| Timestamp::from_micros(micros).ok());
        self.final_until.max(ended)
    }

    /// Whether entries may expire at other times than by the other definition.
    pub fn expires_like(&self, other: &Self) -> bool {
        let rule = |definition: &Self| {
            let Self { entry_ttl_micros, final_until, grace_micros, seasons, .. } = definition;
            entry_ttl_micros.map(|ttl| (ttl, *final_until, *grace_micros, seasons.clone()))
        };
        rule(self) == rule(other)
    }

    /// When the board ends. `None`: it does not by itself.
    ///
    /// # Arguments
    /// `last_job`: the latest job on any shard, or what counts as one.
    pub fn ends_at(&self, last_job: Option<Timestamp>) -> Option<Timestamp> {
        let quiet = self
            .expires_after_micros
            .zip(last_job)
            .and_then(|(after, last)| Timestamp::from_micros(last.as_micros().checked_add(after)?).ok());
        [self.expires_at, quiet].into_iter().flatten().min()
    }

    /// The earliest time at which the board may have ended, whenever its last job was. `None`: it does not
    /// end by itself.
    pub fn may_end_at(&self) -> Option<Timestamp> {
        match (self.expires_after_micros, self.expires_at) {
            (Some(_), _) => Some(Timestamp::default()),
            (None, at) => at,
        }
    }

    /// Whether an instance has begun at this time and is not closed.
    pub fn is_open(&self, instance: Instance, now: Timestamp) -> bool {
        self.is_open_between(instance, now, now)
    }

    /// Whether an instance has begun at `latest` and is not closed at `believed`, which is earlier while it
    /// is not known whether `latest` is true.
    pub fn is_open_between(&self, instance: Instance, believed: Timestamp, latest: Timestamp) -> bool {
        let has_begun = self.calendar().span(instance).is_some_and(|span| span.begin <= latest);
        has_begun && self.closes_at(instance).is_none_or(|closes| believed < closes)
    }
}
