//! Moments and seasons as the API writes them.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment, in RFC 3339. Answers have it in UTC, to the microsecond; jobs may have any offset.
///
/// It is made of a [`SystemTime`], or of the text that `chrono`, `jiff` or `time` write.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
///
/// use ranktree_client::Time;
///
/// let reached = Time::from(UNIX_EPOCH + Duration::from_micros(1_795_168_798_250_000));
/// assert_eq!(reached.as_str(), "2026-11-20T09:59:58.25Z");
/// assert_eq!(reached, Time::from("2026-11-20T09:59:58.25Z"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(String);

impl Time {
    /// What the clock of this machine says.
    #[must_use]
    pub fn now() -> Self {
        Self::from(SystemTime::now())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<SystemTime> for Time {
    /// Cut to the microsecond. Times before 1970 are 1970, which is the first that the service takes.
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let (seconds, micros) = (since.as_secs(), since.subsec_micros());
        let (year, month, day) = date(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
        let mut text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
        if micros > 0 {
            let fraction = format!(".{micros:06}");
            text.push_str(fraction.trim_end_matches('0'));
        }
        text.push('Z');
        Self(text)
    }
}

/// The year, month and day of a day after 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    // Howard Hinnant's `civil_from_days`: eras of 400 years, which begin in March.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

impl From<&str> for Time {
    /// RFC 3339. The service judges it.
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Time {
    /// RFC 3339. The service judges it.
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl PartialEq<&str> for Time {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

/// When the seasons of a board begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Season {
    /// Each is opened by `open_season`.
    Manual,
    /// One after the other.
    Every {
        /// When the first one begins.
        starts: Time,
        /// How long each season is, such as `14d`.
        every: String,
    },
}

impl Season {
    /// Seasons of one length, such as `14d`, from a time on.
    pub fn every(starts: impl Into<Time>, every: impl Into<String>) -> Self {
        Self::Every { starts: starts.into(), every: every.into() }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Word(String),
    Every { starts: Time, every: String },
}

impl Serialize for Season {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.clone() {
            Self::Manual => Written::Word("manual".to_owned()),
            Self::Every { starts, every } => Written::Every { starts, every },
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Season {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Written::deserialize(deserializer)? {
            Written::Word(word) if word == "manual" => Ok(Self::Manual),
            Written::Word(word) => Err(D::Error::custom(format!("{word:?} is no kind of season"))),
            Written::Every { starts, every } => Ok(Self::Every { starts, every }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_the_calendar_are_those_of_unix_time() {
        let at = |seconds| Time::from(UNIX_EPOCH + Duration::from_secs(seconds));
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_168_798, "2026-11-20T09:59:58Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(at(seconds), expected);
        }
        assert_eq!(Time::from(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00Z");
        assert_eq!(Time::from(UNIX_EPOCH + Duration::from_nanos(1_999)), "1970-01-01T00:00:00.000001Z");
    }

    #[test]
    fn seasons_are_a_word_or_an_object() {
        let every = Season::every("2026-11-02T00:00:00Z", "14d");
        for (season, text) in [
            (Season::Manual, "\"manual\""),
            (every, "{\"starts\":\"2026-11-02T00:00:00Z\",\"every\":\"14d\"}"),
        ] {
            assert_eq!(serde_json::to_string(&season).expect("it can be written"), text);
            assert_eq!(serde_json::from_str::<Season>(text).expect("it can be read"), season);
        }
    }
}
