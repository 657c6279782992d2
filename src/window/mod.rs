//! Windows: kinds of time slices of a board, and their instances. Pure.
//!
//! Knows: when an instance begins and ends, what it is called, and which one a time falls in. Must not know:
//! boards, or what is open: that also follows from a board's settings.
//!
//! Times fall into instances by the board's fixed offset from UTC. There is no daylight saving time.

mod length;
mod name;
mod seasons;
#[cfg(test)]
mod tests;

use jiff::civil::Date;

use crate::types::Timestamp;

pub use length::{length, length_text};
pub use name::MovementPart;
pub use seasons::{InvalidSeasons, SEASONS_MAX, Seasons, Series, Span};

/// A kind of time slice of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Window {
    /// All time: its only instance never ends.
    All,
    Hour,
    Day,
    /// ISO 8601: from Monday on.
    Week,
    Month,
    /// As the board defines its seasons.
    Season,
}

impl Window {
    /// In the order of their numbers.
    pub const ALL: [Self; 6] = [Self::All, Self::Hour, Self::Day, Self::Week, Self::Month, Self::Season];

    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Season => "season",
        }
    }

    /// Its number on disk and in hashes of the log, which never changes.
    pub fn number(self) -> u8 {
        match self {
            Self::All => 0,
            Self::Hour => 1,
            Self::Day => 2,
            Self::Week => 3,
            Self::Month => 4,
            Self::Season => 5,
        }
    }

    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// How long its shortest instance is, in microseconds. `None`: that follows from the board's seasons, or
    /// it never ends.
    pub fn shortest(self) -> Option<i64> {
        match self {
            Self::Hour => Some(HOUR),
            Self::Day => Some(DAY),
            Self::Week => Some(7 * DAY),
            Self::Month => Some(28 * DAY),
            Self::All | Self::Season => None,
        }
    }

    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|window| window.name() == name)
    }
}

/// One slice of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instance {
    pub window: Window,
    /// Consecutive. Hours, days, weeks and months count from the one that has 1970-01-01T00:00 of the board's
    /// offset in it, which is 0. Seasons count from 1. It is 0 for [`Window::All`].
    pub number: i64,
}

/// What decides when a board's instances begin and end.
#[derive(Debug, Clone, Copy)]
pub struct Calendar<'a> {
    pub utc_offset_minutes: i16,
    pub seasons: Option<&'a Seasons>,
}

const MINUTE: i64 = 60 * 1_000_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// 1970-01-01 was a Thursday, three days after the Monday of its week.
const DAYS_OF_WEEK_0: i64 = 3;

impl Instance {
    /// The only instance of [`Window::All`].
    pub const ALL: Self = Self { window: Window::All, number: 0 };

    /// The one that is so many later.
    pub fn later(self, by: i64) -> Self {
        Self { number: self.number.saturating_add(by), ..self }
    }
}

impl Calendar<'_> {
    /// The instance of a window that a time falls in. `None`: no season had begun.
    pub fn instance_at(&self, window: Window, time: Timestamp) -> Option<Instance> {
        let local = time.as_micros() + i64::from(self.utc_offset_minutes) * MINUTE;
        let days = local.div_euclid(DAY);
        let number = match window {
            Window::All => 0,
            Window::Hour => local.div_euclid(HOUR),
            Window::Day => days,
            Window::Week => (days + DAYS_OF_WEEK_0).div_euclid(7),
            Window::Month => {
                let date = date_of(days)?;
                (i64::from(date.year()) - 1970) * 12 + i64::from(date.month()) - 1
            }
            Window::Season => self.seasons?.number_at(time)?,
        };
        Some(Instance { window, number })
    }

    /// From when to when an instance is. `None`: there is no such instance, or it ends before 1970 or after
    /// the last time that can be said. One that begins before 1970 is said to begin then.
    pub fn span(&self, instance: Instance) -> Option<Span> {
        let number = instance.number;
        let (begin, end) = match instance.window {
            Window::All => return Some(Span { begin: Timestamp::default(), end: None }),
            Window::Season => return self.seasons?.span(number),
            Window::Hour => (number.checked_mul(HOUR)?, number.checked_add(1)?.checked_mul(HOUR)?),
            Window::Day => (number.checked_mul(DAY)?, number.checked_add(1)?.checked_mul(DAY)?),
            Window::Week => {
                let day = number.checked_mul(7)?.checked_sub(DAYS_OF_WEEK_0)?;
                (day.checked_mul(DAY)?, day.checked_add(7)?.checked_mul(DAY)?)
            }
            Window::Month => (month_begin(number)?, month_begin(number.checked_add(1)?)?),
        };
        let offset = i64::from(self.utc_offset_minutes) * MINUTE;
        let begin = begin.checked_sub(offset)?;
        let end = Timestamp::from_micros(end.checked_sub(offset)?).ok()?;
        if end == Timestamp::default() {
            return None;
        }
        Some(Span { begin: Timestamp::from_micros(begin.max(0)).ok()?, end: Some(end) })
    }
}

/// The date so many days after 1970-01-01.
fn date_of(days: i64) -> Option<Date> {
    const EPOCH: Date = jiff::civil::date(1970, 1, 1);
    EPOCH.checked_add(jiff::Span::new().try_days(days).ok()?).ok()
}

fn days_of(date: Date) -> i64 {
    let since = date.duration_since(jiff::civil::date(1970, 1, 1));
    since.as_secs().div_euclid(24 * 60 * 60)
}

/// When a month begins, in microseconds of the board's offset.
fn month_begin(number: i64) -> Option<i64> {
    let year = i16::try_from(number.div_euclid(12).checked_add(1970)?).ok()?;
    let month = i8::try_from(number.rem_euclid(12) + 1).ok()?;
    days_of(Date::new(year, month, 1).ok()?).checked_mul(DAY)
}
