//! Scores: 1 to 8 keys, each an exact signed 64-bit integer.

use std::fmt;
use std::ops::Deref;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::integers;
use crate::query::Parameter;

/// The most keys that a score may have.
pub const MAX_KEYS: usize = 8;

/// A score of 1 to 8 keys, exact up to 64 bits. It is a slice of its keys.
///
/// ```
/// use ranktree_client::Score;
///
/// let points = Score::from(1200);
/// assert_eq!(points, 1200);
/// let with_time = Score::from([1200, 90_000]);
/// assert_eq!(with_time[1], 90_000);
/// assert_eq!(with_time.to_string(), "1200,90000");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Score {
    // Keys behind the last one are 0, so that equality may be derived.
    keys: [i64; MAX_KEYS],
    count: usize,
}

impl Score {
    /// All keys, in the board's order.
    #[must_use]
    pub fn keys(&self) -> &[i64] {
        self.keys.get(..self.count).unwrap_or_default()
    }

    /// The first key: the score itself on boards of one key.
    #[must_use]
    pub fn first(&self) -> i64 {
        let [first, ..] = self.keys;
        first
    }
}

/// A slice that is no score: it has no keys, or more than 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a score has 1 to {MAX_KEYS} keys; got {0}")]
pub struct NoScore(usize);

impl TryFrom<&[i64]> for Score {
    type Error = NoScore;

    fn try_from(keys: &[i64]) -> Result<Self, NoScore> {
        let mut score = Self { keys: [0; MAX_KEYS], count: keys.len() };
        match score.keys.get_mut(..keys.len()) {
            Some(places) if !keys.is_empty() => places.copy_from_slice(keys),
            _ => return Err(NoScore(keys.len())),
        }
        Ok(score)
    }
}

impl From<i64> for Score {
    fn from(key: i64) -> Self {
        Self::from([key])
    }
}

macro_rules! from_arrays {
    ($($count:literal)+) => {
        $(
            impl From<[i64; $count]> for Score {
                fn from(keys: [i64; $count]) -> Self {
                    Self::try_from(&keys[..]).expect("an array of 1 to 8 keys is a score")
                }
            }

            impl PartialEq<[i64; $count]> for Score {
                fn eq(&self, other: &[i64; $count]) -> bool {
                    self.keys() == other
                }
            }
        )+
    };
}

from_arrays!(1 2 3 4 5 6 7 8);

impl PartialEq<i64> for Score {
    fn eq(&self, other: &i64) -> bool {
        self.keys() == [*other]
    }
}

impl Deref for Score {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        self.keys()
    }
}

impl fmt::Debug for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Score({self})")
    }
}

impl fmt::Display for Score {
    /// The keys, joined by commas.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.keys().iter().map(i64::to_string).collect();
        f.pad(&words.join(","))
    }
}

impl Serialize for Score {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.keys() {
            [key] => serializer.serialize_i64(*key),
            keys => keys.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Score {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let keys: Option<Vec<i64>> = match &value {
            Value::Array(keys) => keys.iter().map(integers::read).collect(),
            key => integers::read(key).map(|key| vec![key]),
        };
        let score = keys.and_then(|keys| Self::try_from(&keys[..]).ok());
        score.ok_or_else(|| D::Error::custom(format!("{value} is no score")))
    }
}

impl Parameter for Score {
    fn write(&self, text: &mut String) {
        text.push_str(&self.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_beyond_doubles_are_read_exactly() {
        let read = |text: &str| serde_json::from_str::<Score>(text).map_err(|error| error.to_string());
        assert_eq!(read("1200"), Ok(Score::from(1200)));
        assert_eq!(read("\"9007199254740993\""), Ok(Score::from(9_007_199_254_740_993)));
        let wide = read("[\"9223372036854775807\",-5,\"-9223372036854775808\"]");
        assert_eq!(wide, Ok(Score::from([i64::MAX, -5, i64::MIN])));
        for wrong in ["1.5", "\"1e3\"", "[]", "[1,2,3,4,5,6,7,8,9]", "9223372036854775808", "true", "null"] {
            read(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn scores_are_written_as_integers() {
        let write = |score: Score| serde_json::to_string(&score).expect("it can be written");
        assert_eq!(write(Score::from(i64::MIN)), "-9223372036854775808");
        assert_eq!(write(Score::from([i64::MAX, 1])), "[9223372036854775807,1]");
        assert_eq!(Score::try_from(&[][..]), Err(NoScore(0)));
        assert_eq!(Score::try_from(&[0; 9][..]), Err(NoScore(9)));
    }
}
