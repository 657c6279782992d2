//! What a board is defined as, and which entry comes before which.

use std::cmp::{Ordering, Reverse};

use serde_json::{Value, json};

use super::calendar::{SECOND, Season, Slice, Window, slice_at};

#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    pub descending: bool,
    pub min: i64,
    pub max: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    First,
    Last,
    Member,
    MemberDesc,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    pub keys: Vec<Key>,
    /// What a job without `op` does.
    pub policy: &'static str,
    pub ties: Ties,
    pub windows: Vec<Window>,
    pub offset_minutes: i64,
    pub season: Season,
    pub keep: usize,
    /// Lengths are in microseconds.
    pub grace: i64,
    pub entry_ttl: Option<i64>,
    /// Instances that had ended by then keep their entries: they had closed when `entry_ttl` or `grace` last
    /// changed.
    pub final_until: Option<i64>,
    pub capacity: Option<usize>,
    pub movement: bool,
    /// Whether it counts in fixed memory: `top_k`.
    pub counts: bool,
}

/// A member's entry in an instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub score: Vec<i64>,
    /// When the score was reached.
    pub reached: i64,
    pub updated: i64,
    pub hidden: bool,
    pub meta: Value,
    /// Of boards that count.
    pub error: i64,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            keys: vec![Key { descending: true, min: i64::MIN, max: i64::MAX }],
            policy: "set",
            ties: Ties::First,
            windows: vec![Window::All],
            offset_minutes: 0,
            season: Season::None,
            keep: 12,
            grace: 300 * SECOND,
            entry_ttl: None,
            final_until: None,
            capacity: None,
            movement: false,
            counts: false,
        }
    }
}

impl Rules {
    /// What a client sends.
    pub fn json(&self) -> Value {
        let seconds = |length: i64| format!("{}s", length / SECOND);
        let bound = |value: i64, none: i64| if value == none { Value::Null } else { json!(value) };
        let key = |(number, key): (usize, &Key)| {
            json!({ "name": format!("key {number}"), "order": if key.descending { "desc" } else { "asc" },
                    "min": bound(key.min, i64::MIN), "max": bound(key.max, i64::MAX) })
        };
        let keys: Vec<Value> = self.keys.iter().enumerate().map(key).collect();
        let ties = match self.ties {
            Ties::First => "first",
            Ties::Last => "last",
            Ties::Member => "member",
            Ties::MemberDesc => "member_desc",
        };
        let windows: Vec<&str> = self.windows.iter().map(|window| window.name()).collect();
        let (sign, minutes) =
            (if self.offset_minutes < 0 { '-' } else { '+' }, self.offset_minutes.unsigned_abs());
        json!({
            "keys": keys, "policy": self.policy, "ties": ties, "windows": windows,
            "utc_offset": format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60),
            "season": self.season.json(), "keep": self.keep, "grace": seconds(self.grace),
            "entry_ttl": self.entry_ttl.map(seconds), "capacity": self.capacity,
            "movement": self.movement, "kind": if self.counts { "top_k" } else { "ranking" },
        })
    }

    pub fn has_all(&self) -> bool {
        self.windows.contains(&Window::All)
    }

    pub fn default_window(&self) -> Window {
        if self.has_all() { Window::All } else { *self.windows.first().expect("a window") }
    }

    /// [`Rules::final_until`] of the rules that take the place of these.
    pub fn final_until_before(&self, next: &Self, now: i64) -> Option<i64> {
        let rule = |rules: &Self| (rules.entry_ttl, rules.grace);
        if self.windows == [Window::All] || next.entry_ttl.is_none() || rule(self) == rule(next) {
            return self.final_until;
        }
        self.final_until.max(Some(now - self.grace.min(next.grace)))
    }

    pub fn slice_at(&self, window: Window, time: i64) -> Option<Slice> {
        slice_at(window, self.offset_minutes, &self.season, time)
    }

    /// `None`: not as far as is known.
    pub fn closes(&self, slice: &Slice) -> Option<i64> {
        Some(slice.end? + self.grace)
    }

    pub fn is_open(&self, slice: &Slice, now: i64) -> bool {
        slice.begin <= now && self.closes(slice).is_none_or(|closes| now < closes)
    }

    /// When so many newer ones have closed as are kept.
    pub fn drops(&self, slice: &Slice) -> Option<i64> {
        let mut last = slice.clone();
        for _ in 0..self.keep {
            last = self.slice_at(slice.window, last.end?)?;
        }
        self.closes(&last)
    }

    pub fn is_dropped(&self, slice: &Slice, now: i64) -> bool {
        self.drops(slice).is_some_and(|drops| drops <= now)
    }

    /// Less is better.
    pub fn compare_scores(&self, one: &[i64], other: &[i64]) -> Ordering {
        let keys = self.keys.iter().zip(one.iter().zip(other));
        let by_key =
            keys.map(|(key, (one, other))| if key.descending { other.cmp(one) } else { one.cmp(other) });
        by_key.fold(Ordering::Equal, Ordering::then)
    }

    /// Less comes first.
    pub fn compare(&self, (id, one): (&str, &Entry), (other_id, other): (&str, &Entry)) -> Ordering {
        let by_ties = match self.ties {
            Ties::First => one.reached.cmp(&other.reached),
            Ties::Last => Reverse(one.reached).cmp(&Reverse(other.reached)),
            Ties::Member | Ties::MemberDesc => Ordering::Equal,
        };
        let by_score = self.compare_scores(&one.score, &other.score);
        let by_error = one.error.cmp(&other.error);
        let by_id = id.as_bytes().cmp(other_id.as_bytes());
        let by_id = if self.ties == Ties::MemberDesc { by_id.reverse() } else { by_id };
        by_score.then(by_ties).then(by_error).then(by_id)
    }
}
