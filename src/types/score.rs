//! How well a member did.

use std::fmt;

use crate::types::number::{Double, Number};
use crate::types::{MAX_KEYS, Malformed};

/// One to eight numbers, compared as a tuple under the directions of a board's keys.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Score(Keys);

/// Most scores have one key, and many have a second one that breaks ties. These need no memory of their own,
/// and take 24 bytes where an array of eight keys took 72: jobs go from thread to thread, and answers are
/// copied. The number of keys decides which of these it is, so that equal keys are equal here.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Keys {
    One(Floats, [i64; 1]),
    Two(Floats, [i64; 2]),
    More(Floats, Box<[i64]>),
}

/// Which keys are doubles, a bit for each. As integers they have the same order ([`Double::ordered`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Floats(u8);

impl Floats {
    pub const NONE: Self = Self(0);

    #[inline]
    pub fn with(self, key: usize) -> Self {
        Self(self.0 | 1 << (key % MAX_KEYS))
    }

    #[inline]
    fn has(self, key: usize) -> bool {
        self.0 >> (key % MAX_KEYS) & 1 == 1
    }
}

impl Score {
    /// A score of integers.
    ///
    /// # Errors
    /// [`Malformed::Score`] unless there are 1 to 8 keys.
    #[inline]
    pub fn new(keys: &[i64]) -> Result<Self, Malformed> {
        Self::with_floats(keys, Floats::NONE)
    }

    /// # Arguments
    /// `floats`: which of the keys are doubles, by their order.
    ///
    /// # Errors
    /// [`Malformed::Score`] unless there are 1 to 8 keys.
    #[inline]
    pub fn with_floats(keys: &[i64], floats: Floats) -> Result<Self, Malformed> {
        match *keys {
            [key] => Ok(Self(Keys::One(floats, [key]))),
            [first, second] => Ok(Self(Keys::Two(floats, [first, second]))),
            [] => Err(Malformed::Score),
            _ if keys.len() > MAX_KEYS => Err(Malformed::Score),
            _ => Ok(Self(Keys::More(floats, keys.into()))),
        }
    }

    /// # Errors
    /// [`Malformed::Score`] unless there are 1 to 8 keys.
    pub fn of_numbers(numbers: &[Number]) -> Result<Self, Malformed> {
        let (mut keys, mut floats) = ([0; MAX_KEYS], Floats::NONE);
        for (at, (key, number)) in keys.iter_mut().zip(numbers).enumerate() {
            *key = match number {
                Number::Integer(integer) => *integer,
                Number::Float(double) => {
                    floats = floats.with(at);
                    double.ordered()
                }
            };
        }
        Self::with_floats(keys.get(..numbers.len()).ok_or(Malformed::Score)?, floats)
    }

    /// The keys as integers of the same order.
    #[inline]
    pub fn keys(&self) -> &[i64] {
        match &self.0 {
            Keys::One(_, keys) => keys,
            Keys::Two(_, keys) => keys,
            Keys::More(_, keys) => keys,
        }
    }

    /// Which of them are doubles.
    #[inline]
    pub fn floats(&self) -> Floats {
        match &self.0 {
            Keys::One(floats, _) | Keys::Two(floats, _) | Keys::More(floats, _) => *floats,
        }
    }

    /// The keys.
    pub fn numbers(&self) -> impl ExactSizeIterator<Item = Number> {
        let floats = self.floats();
        let number = move |(at, key): (usize, &i64)| {
            if floats.has(at) { Number::Float(Double::of_ordered(*key)) } else { Number::Integer(*key) }
        };
        self.keys().iter().enumerate().map(number)
    }

    /// Memory of its own, in bytes, beside the struct.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Keys::One(..) | Keys::Two(..) => 0,
            Keys::More(_, keys) => size_of_val::<[i64]>(keys),
        }
    }
}

/// As JSON has it, for messages.
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.numbers().next() {
            Some(only) if self.keys().len() == 1 => fmt::Display::fmt(&only, f),
            _ => fmt::Debug::fmt(self, f),
        }
    }
}

impl fmt::Debug for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        for number in self.numbers() {
            list.entry(&format_args!("{number}"));
        }
        list.finish()
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
