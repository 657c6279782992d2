//! What the tree holds: words, handles, and who decides between equal words.
//!
//! Must not know what a word means: scores become words in `board`.

use std::cmp::Ordering;
use std::fmt;

/// The most words an entry may have: eight score keys and a tie-break. An entry with an error has one key.
pub const MAX_WORDS: usize = 9;

/// A member's number within a shard: small, dense, reused after the member is gone.
///
/// `u32::MAX` is never a valid handle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Handle(pub u32);

impl Handle {
    /// The handle as a place in an array.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A last word from here on says that ids descend among equal words. No other last word of a board is as
/// large, but for an error of half of all integers: no id begins with such a byte, and no time is as late.
pub const IDS_DESCEND: u64 = 0xff << 56;

/// Orders ids whose words are equal.
///
/// # Arguments
/// `words`: theirs.
#[inline]
pub fn compare_ids<T: Ord + ?Sized>(words: &[u64], a: &T, b: &T) -> Ordering {
    let order = a.cmp(b);
    if words.last().is_some_and(|last| *last >= IDS_DESCEND) { order.reverse() } else { order }
}

/// Orders members whose words are equal: by the bytes of their ids, as [`compare_ids`] does.
///
/// Must be a total order over the handles in a tree, and must not change while they are in it. Two different
/// handles never compare equal.
pub trait MemberOrder {
    /// # Arguments
    /// `words`: the words of both.
    fn compare(&self, words: &[u64], a: Handle, b: Handle) -> Ordering;
}

/// Up to [`MAX_WORDS`] words, by value; compared as a tuple, a prefix before what it begins.
#[derive(Clone, Copy)]
pub struct Words {
    words: [u64; MAX_WORDS],
    count: u8,
}

impl Words {
    /// No words yet.
    #[inline]
    pub fn new() -> Self {
        Self { words: [0; MAX_WORDS], count: 0 }
    }

    /// # Panics
    /// When `words` has more than [`MAX_WORDS`].
    #[inline]
    pub fn from_slice(words: &[u64]) -> Self {
        let mut all = Self::new();
        all.words[..words.len()].copy_from_slice(words);
        all.count = words.len() as u8;
        all
    }

    /// # Panics
    /// When there are [`MAX_WORDS`] already.
    #[inline]
    pub fn push(&mut self, word: u64) {
        self.words[usize::from(self.count)] = word;
        self.count += 1;
    }

    #[inline]
    pub fn as_slice(&self) -> &[u64] {
        &self.words[..usize::from(self.count)]
    }
}

impl Default for Words {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Words {}

impl PartialOrd for Words {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Words {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_slice(), f)
    }
}

/// What becomes of one handle's entry: it moves to `new`, or leaves the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edit {
    pub handle: Handle,
    pub new: Option<Words>,
}
