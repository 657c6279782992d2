//! How well a member did.

use std::fmt;

use crate::types::{MAX_KEYS, Malformed};

/// One to eight exact 64-bit integers, compared as a tuple under the directions of a board's keys.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Score(Keys);

/// Most scores have one key, and many have a second one that breaks ties. These need no memory of their own,
/// and take 24 bytes where an array of eight keys took 72: jobs go from thread to thread, and answers are
/// copied. The number of keys decides which of these it is, so that equal keys are equal here.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Keys {
    One([i64; 1]),
    Two([i64; 2]),
    More(Box<[i64]>),
}

impl Score {
    /// # Errors
    /// [`Malformed::Score`] unless there are 1 to 8 keys.
    pub fn new(keys: &[i64]) -> Result<Self, Malformed> {
        match *keys {
            [key] => Ok(Self(Keys::One([key]))),
            [first, second] => Ok(Self(Keys::Two([first, second]))),
            [] => Err(Malformed::Score),
            _ if keys.len() > MAX_KEYS => Err(Malformed::Score),
            _ => Ok(Self(Keys::More(keys.into()))),
        }
    }

    #[inline]
    pub fn keys(&self) -> &[i64] {
        match &self.0 {
            Keys::One(keys) => keys,
            Keys::Two(keys) => keys,
            Keys::More(keys) => keys,
        }
    }

    /// Memory of its own, in bytes, beside the struct.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Keys::One(_) | Keys::Two(_) => 0,
            Keys::More(keys) => size_of_val::<[i64]>(keys),
        }
    }
}

/// As JSON has it, for messages.
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.keys() {
            [key] => fmt::Display::fmt(key, f),
            keys => fmt::Debug::fmt(keys, f),
        }
    }
}

impl fmt::Debug for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.keys(), f)
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher as _;

    use super::*;

    #[test]
    fn scores_have_one_to_eight_keys() {
        let keys = [i64::MIN, i64::MAX, 0, -1, 1, 7, -7, 42, 43];
        for count in 1..=MAX_KEYS {
            let score = Score::new(&keys[..count]).expect("one to eight keys");
            assert_eq!(score.keys(), &keys[..count]);
            assert_eq!(score.clone(), score);
        }
        assert_eq!(Score::new(&[]), Err(Malformed::Score));
        assert_eq!(Score::new(&keys), Err(Malformed::Score));
    }

    #[test]
    fn scores_are_equal_if_their_keys_are() {
        let hasher = std::hash::RandomState::new();
        let scores = [&[1][..], &[1, 0], &[1, 0, 0], &[1, 0, 1]].map(|keys| Score::new(keys).expect("keys"));
        for (at, score) in scores.iter().enumerate() {
            for (other_at, other) in scores.iter().enumerate() {
                assert_eq!(score == other, at == other_at);
                assert_eq!(hasher.hash_one(score) == hasher.hash_one(other.clone()), at == other_at);
            }
        }
    }

    #[test]
    fn one_or_two_keys_need_no_memory_of_their_own() {
        let heap_bytes = |count: usize| Score::new(&[3; MAX_KEYS][..count]).expect("keys").heap_bytes();
        assert_eq!([1, 2, 3, 8].map(heap_bytes), [0, 0, 24, 64]);
        assert_eq!(size_of::<Option<Score>>(), 24);
    }
}
