//! Instances of windows by the civil calendar, in microseconds since 1970.

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use serde_json::{Value, json};

pub const SECOND: i64 = 1_000_000;
pub const MINUTE: i64 = 60 * SECOND;
pub const HOUR: i64 = 60 * MINUTE;
pub const DAY: i64 = 24 * HOUR;

pub fn now() -> i64 {
    Timestamp::now().as_microsecond()
}

pub fn text(micros: i64) -> String {
    Timestamp::from_microsecond(micros).expect("a time").to_string()
}

pub fn micros(text: &Value) -> i64 {
    let text = text.as_str().unwrap_or_else(|| panic!("a time, and not {text}"));
    text.parse::<Timestamp>().expect("a time").as_microsecond()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Window {
    All,
    Hour,
    Day,
    Week,
    Month,
    Season,
}

impl Window {
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
}

/// An instance of a window other than `all`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    pub window: Window,
    pub name: String,
    pub begin: i64,
    /// `None`: it is not known yet.
    pub end: Option<i64>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Season {
    None,
    /// From each time on, seasons of that length.
    Regular(Vec<(i64, i64)>),
    /// When each begins.
    Manual(Vec<i64>),
}

impl Season {
    fn at(&self, time: i64) -> Option<Slice> {
        let (number, begin, end) = match self {
            Self::None => return None,
            Self::Regular(series) => {
                let mut number = 1;
                let mut found = None;
                for (index, (begin, every)) in series.iter().enumerate() {
                    if let Some((earlier, length)) = index.checked_sub(1).and_then(|index| series.get(index))
                    {
                        number += (begin - earlier) / length;
                    }
                    if *begin <= time {
                        let passed = (time - begin) / every;
                        let begin = begin + passed * every;
                        found = Some((number + passed, begin, Some(begin + every)));
                    }
                }
                found?
            }
            Self::Manual(begins) => {
                let number = begins.iter().filter(|begin| **begin <= time).count();
                let begin = *begins.get(number.checked_sub(1)?)?;
                (i64::try_from(number).expect("a few"), begin, begins.get(number).copied())
            }
        };
        Some(Slice { window: Window::Season, name: format!("s{number}"), begin, end })
    }

    /// Another length, from the next season on.
    pub fn change_length(&mut self, length: i64, now: i64) {
        let current = self.at(now);
        let Self::Regular(series) = self else { panic!("these have no length") };
        series.retain(|(begin, _)| *begin <= now);
        if series.last().is_some_and(|(_, every)| *every != length) {
            series.push((current.and_then(|current| current.end).expect("it ends"), length));
        }
    }

    pub fn json(&self) -> Value {
        match self {
            Self::None => Value::Null,
            Self::Regular(series) => {
                let (first, last) = (series.first().expect("one"), series.last().expect("one"));
                json!({ "starts": text(first.0), "every": format!("{}s", last.1 / SECOND) })
            }
            Self::Manual(_) => json!("manual"),
        }
    }
}

/// The instance of a window that a time falls in.
pub fn slice_at(window: Window, offset_minutes: i64, season: &Season, time: i64) -> Option<Slice> {
    let offset = offset_minutes * MINUTE;
    let local = Timestamp::from_microsecond(time + offset).expect("a time");
    let local = local.to_zoned_datetime(TimeZone::UTC).datetime();
    let utc = |civil: DateTime| {
        let zoned = civil.to_zoned_datetime(TimeZone::UTC).expect("a time");
        zoned.timestamp().as_microsecond() - offset
    };
    let midnight = local.date().to_datetime(Time::midnight());
    let (name, begin, length) = match window {
        Window::All => return None,
        Window::Season => return season.at(time),
        Window::Hour => {
            let begin = local.date().at(local.hour(), 0, 0, 0);
            (local.strftime("%Y-%m-%dT%H").to_string(), begin, Span::new().hours(1))
        }
        Window::Day => (local.strftime("%Y-%m-%d").to_string(), midnight, Span::new().days(1)),
        Window::Week => {
            let back = i64::from(local.weekday().to_monday_zero_offset());
            let begin = midnight - Span::new().days(back);
            (local.strftime("%G-W%V").to_string(), begin, Span::new().days(7))
        }
        Window::Month => {
            (local.strftime("%Y-%m").to_string(), midnight.first_of_month(), Span::new().months(1))
        }
    };
    Some(Slice { window, name, begin: utc(begin), end: Some(utc(begin + length)) })
}
