//! Scores of a board: which it admits, and how one becomes words whose ascending order is best first, and
//! back.

use thiserror::Error;

use crate::board::definition::{Beyond, Definition, Key, Order, Ties};
use crate::tree::Words;
use crate::types::{MAX_KEYS, Score, Timestamp};

/// Why a score does not belong on a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ScoreRefused {
    #[error("the score does not have as many keys as the board")]
    KeyCount,
    #[error("a key of the score is outside the board's min and max for it")]
    OutOfRange,
    #[error("a key of the score would leave the signed 64-bit range")]
    Overflow,
}

impl Definition {
    /// # Errors
    /// When the score has another number of keys than the board, or a key lies outside its bounds.
    pub fn admit(&self, score: &Score) -> Result<(), ScoreRefused> {
        if score.keys().len() != self.keys.len() {
            return Err(ScoreRefused::KeyCount);
        }
        let inside =
            self.keys.iter().zip(score.keys()).all(|(key, value)| (key.min..=key.max).contains(value));
        if inside { Ok(()) } else { Err(ScoreRefused::OutOfRange) }
    }

    /// The sum of two scores, key by key; never wrapped, and clamped only where its key says so.
    ///
    /// # Errors
    /// When the key counts differ, or a sum leaves 64 bits.
    pub fn add(&self, base: Option<&Score>, step: &Score) -> Result<Score, ScoreRefused> {
        if step.keys().len() != self.keys.len() {
            return Err(ScoreRefused::KeyCount);
        }
        let mut sums = [0; MAX_KEYS];
        let left = base.map_or(&[0; MAX_KEYS][..], Score::keys);
        for (((sum, left), right), key) in sums.iter_mut().zip(left).zip(step.keys()).zip(&self.keys) {
            // A step is to the side of its sign, so a sum that leaves 64 bits is beyond that side's bound.
            let (beyond, end) =
                if *right < 0 { (key.below_min, i64::MIN) } else { (key.above_max, i64::MAX) };
            let exact = left.checked_add(*right).or_else(|| (beyond == Beyond::Clamp).then_some(end));
            *sum = key.clamp(exact.ok_or(ScoreRefused::Overflow)?);
        }
        let sums = sums.get(..self.keys.len()).ok_or(ScoreRefused::KeyCount)?;
        Score::new(sums).map_err(|_| ScoreRefused::KeyCount)
    }

    /// The words of a score: one per key, ascending order is best first.
    ///
    /// The caller has checked the key count with [`Definition::admit`]; surplus keys are left out.
    pub fn score_words(&self, score: &Score) -> Words {
        let mut words = Words::new();
        for (key, value) in self.keys.iter().zip(score.keys()) {
            words.push(encode(*value, key.order));
        }
        words
    }

    /// The tree entry of a score: its words, then the tie-break of a member that reached it at `reached`.
    pub fn entry_words(&self, score: &Score, reached: Timestamp, member: &[u8]) -> Words {
        self.entry_words_with(score, 0, reached, member)
    }

    /// The same of an entry whose score is too high by `error` at most. Where errors are kept, that is the
    /// last word.
    pub fn entry_words_with(&self, score: &Score, error: i64, reached: Timestamp, member: &[u8]) -> Words {
        let mut words = self.score_words(score);
        words.push(match self.ties {
            Ties::First => encode(reached.as_micros(), Order::Ascending),
            Ties::Last => encode(reached.as_micros(), Order::Descending),
            Ties::Member => member_prefix(member),
        });
        if self.is_top_k() {
            words.push(encode(error, Order::Ascending));
        }
        words
    }

    /// The most by which the score of a tree entry's words is too high; `None` where scores are exact.
    pub fn error_of(&self, words: &[u64]) -> Option<i64> {
        let error = *words.get(self.keys.len() + 1).filter(|_| self.is_top_k())?;
        Some(decode(error, Order::Ascending))
    }

    /// The score of a tree entry's words, which are its first.
    pub fn score_of(&self, words: &[u64]) -> Score {
        let mut values = [0; MAX_KEYS];
        for ((value, key), word) in values.iter_mut().zip(&self.keys).zip(words) {
            *value = decode(*word, key.order);
        }
        let values = values.get(..self.keys.len()).expect("a validated definition has at most MAX_KEYS keys");
        Score::new(values).expect("a validated definition has at least one key")
    }

    /// When the entry's score was reached, where the tie-break says it.
    pub fn reached_at(&self, words: &[u64]) -> Option<Timestamp> {
        let tie = *words.get(self.keys.len())?;
        match self.ties {
            Ties::First => Timestamp::from_micros(decode(tie, Order::Ascending)).ok(),
            Ties::Last => Timestamp::from_micros(decode(tie, Order::Descending)).ok(),
            Ties::Member => None,
        }
    }

    /// Words per tree entry: one per key, the tie-break, and the error where there is one.
    pub fn columns(&self) -> usize {
        self.keys.len() + 1 + usize::from(self.is_top_k())
    }
}

impl Key {
    /// A value within the bounds that clamp.
    fn clamp(&self, value: i64) -> i64 {
        if value < self.min && self.below_min == Beyond::Clamp {
            self.min
        } else if value > self.max && self.above_max == Beyond::Clamp {
            self.max
        } else {
            value
        }
    }
}

/// The first eight bytes of an id as a big-endian number: orders as the ids do, wherever it differs.
fn member_prefix(member: &[u8]) -> u64 {
    let mut prefix = [0; 8];
    for (to, from) in prefix.iter_mut().zip(member) {
        *to = *from;
    }
    u64::from_be_bytes(prefix)
}

/// Maps a signed value to a word whose ascending order is best first.
///
/// The direction is a bitwise NOT and never a negation: `-i64::MIN` does not exist.
pub fn encode(value: i64, order: Order) -> u64 {
    let ascending = value.cast_unsigned() ^ (1 << 63);
    match order {
        Order::Ascending => ascending,
        Order::Descending => !ascending,
    }
}

/// The inverse of [`encode`].
pub fn decode(word: u64, order: Order) -> i64 {
    let ascending = match order {
        Order::Ascending => word,
        Order::Descending => !word,
    };
    (ascending ^ (1 << 63)).cast_signed()
}
