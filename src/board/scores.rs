//! Scores of a board: which it admits, and how one becomes words whose ascending order is best first, and
//! back.

use std::borrow::Cow;

use thiserror::Error;

use crate::board::definition::{Beyond, Definition, Key, KeyType, Order, Ties};
use crate::tree::{IDS_DESCEND, Words};
use crate::types::{Double, Floats, MAX_KEYS, NoInteger, Number, Score, Timestamp};

/// Why a score does not belong on a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ScoreRefused {
    #[error("the score does not have as many keys as the board")]
    KeyCount,
    #[error(transparent)]
    NoInteger(#[from] NoInteger),
    #[error("a key of the score is outside the board's min and max for it")]
    OutOfRange,
    #[error("a key of the score would leave the signed 64-bit range")]
    Overflow,
    #[error("a key of the score would be infinity less infinity, which is no number")]
    NotANumber,
}

impl Definition {
    /// A score that a client sent, with the numbers that the board's keys have.
    ///
    /// # Errors
    /// When it has another number of keys than the board, or one that is no integer where the board has
    /// integers.
    #[inline]
    pub fn typed<'s>(&self, score: &'s Score) -> Result<Cow<'s, Score>, ScoreRefused> {
        if score.keys().len() != self.keys.len() {
            return Err(ScoreRefused::KeyCount);
        }
        Ok(self.typed_first_keys(score)?)
    }

    /// The same of a score, or of its first keys.
    pub fn typed_first_keys<'s>(&self, score: &'s Score) -> Result<Cow<'s, Score>, NoInteger> {
        let floats = self.floats();
        if score.floats() == floats {
            return Ok(Cow::Borrowed(score));
        }
        let mut keys = [0; MAX_KEYS];
        for ((ordered, key), number) in keys.iter_mut().zip(&self.keys).zip(score.numbers()) {
            *ordered = key.ordered(number)?;
        }
        let keys = keys.get(..score.keys().len()).unwrap_or_default();
        Ok(Score::with_floats(keys, floats).map_or(Cow::Borrowed(score), Cow::Owned))
    }

    /// Which keys are doubles.
    #[inline]
    fn floats(&self) -> Floats {
        let is_float = |(_, key): &(usize, &Key)| key.key_type == KeyType::Float;
        let floats = self.keys.iter().enumerate().filter(is_float);
        floats.fold(Floats::NONE, |floats, (at, _)| floats.with(at))
    }

    /// # Arguments
    /// `score`: [`Definition::typed`].
    ///
    /// # Errors
    /// When a key lies outside its bounds.
    pub fn admit(&self, score: &Score) -> Result<(), ScoreRefused> {
        let inside =
            self.keys.iter().zip(score.keys()).all(|(key, value)| (key.min..=key.max).contains(value));
        if inside { Ok(()) } else { Err(ScoreRefused::OutOfRange) }
    }

    /// The sum of two scores, key by key; never wrapped, and clamped only where its key says so. Doubles add
    /// as doubles do: what is too large for them is infinite.
    ///
    /// # Arguments
    /// `step`: [`Definition::typed`].
    ///
    /// # Errors
    /// When a sum of integers leaves 64 bits, or one of doubles is no number.
    pub fn add(&self, base: Option<&Score>, step: &Score) -> Result<Score, ScoreRefused> {
        let mut sums = [0; MAX_KEYS];
        let left = base.map_or(&[0; MAX_KEYS][..], Score::keys);
        for (((sum, left), right), key) in sums.iter_mut().zip(left).zip(step.keys()).zip(&self.keys) {
            if key.key_type == KeyType::Float {
                let exact = Double::of_ordered(*left).value() + Double::of_ordered(*right).value();
                *sum = key.clamp(Double::new(exact).ok_or(ScoreRefused::NotANumber)?.ordered());
                continue;
            }
            // A step is to the side of its sign, so a sum that leaves 64 bits is beyond that side's bound.
            let (beyond, end) =
                if *right < 0 { (key.below_min, i64::MIN) } else { (key.above_max, i64::MAX) };
            let exact = left.checked_add(*right).or_else(|| (beyond == Beyond::Clamp).then_some(end));
            *sum = key.clamp(exact.ok_or(ScoreRefused::Overflow)?);
        }
        let sums = sums.get(..self.keys.len()).ok_or(ScoreRefused::KeyCount)?;
        Score::with_floats(sums, self.floats()).map_err(|_| ScoreRefused::KeyCount)
    }

    /// The words of a score: one per key, ascending order is best first.
    ///
    /// The caller has the score from [`Definition::typed`]; surplus keys are left out.
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
            Ties::MemberDesc => IDS_DESCEND | !member_prefix(member) >> 8,
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
        Score::with_floats(values, self.floats()).expect("a validated definition has at least one key")
    }

    /// When the entry's score was reached, where the tie-break says it.
    pub fn reached_at(&self, words: &[u64]) -> Option<Timestamp> {
        let tie = *words.get(self.keys.len())?;
        match self.ties {
            Ties::First => Timestamp::from_micros(decode(tie, Order::Ascending)).ok(),
            Ties::Last => Timestamp::from_micros(decode(tie, Order::Descending)).ok(),
            Ties::Member | Ties::MemberDesc => None,
        }
    }

    /// Words per tree entry: one per key, the tie-break, and the error where there is one.
    pub fn columns(&self) -> usize {
        self.keys.len() + 1 + usize::from(self.is_top_k())
    }
}

impl Key {
    /// The integer that stands for one of the key's numbers, and orders as it does.
    ///
    /// # Errors
    /// When the key has integers, and this is none.
    pub fn ordered(&self, number: Number) -> Result<i64, NoInteger> {
        match self.key_type {
            KeyType::Integer => number.integer(),
            KeyType::Float => Ok(number.double().ordered()),
        }
    }

    /// The inverse of [`Key::ordered`].
    pub fn number(&self, ordered: i64) -> Number {
        match self.key_type {
            KeyType::Integer => Number::Integer(ordered),
            KeyType::Float => Number::Float(Double::of_ordered(ordered)),
        }
    }

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
