//! A set of shards, as operators and files write it: `0,2-3`.

use std::collections::BTreeSet;
use std::fmt;

use crate::types::{MAX_SHARDS, ShardId, decimal, quoted};

/// The word for a set without shards.
const NONE: &str = "none";

/// Some of a service's shards.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShardSet(BTreeSet<ShardId>);

impl ShardSet {
    /// The first shards, so many.
    pub fn first(count: u16) -> Self {
        Self((0..count).map(ShardId).collect())
    }

    /// Reads numbers and ranges joined by commas, or `none`.
    ///
    /// # Errors
    /// When it is something else; the text says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == NONE {
            return Ok(Self::default());
        }
        let mut shards = BTreeSet::new();
        for part in text.split(',') {
            let part = part.trim();
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |digits: &str| decimal::<u16>(digits.trim());
            let Some((first, last)) = number(first).zip(number(last)) else {
                return Err(format!(
                    "numbers of shards and ranges are expected, joined by commas, such as 0,2-3, or {NONE}; \
                     got {}",
                    quoted(text)
                ));
            };
            if last < first {
                return Err(format!("the range {first}-{last} ends before it begins; write {last}-{first}"));
            }
            if last >= MAX_SHARDS {
                return Err(format!("there is no shard {last}: shards are 0 to {}", MAX_SHARDS - 1));
            }
            if let Some(twice) = (first..=last).find(|shard| !shards.insert(ShardId(*shard))) {
                return Err(format!("it names shard {twice} twice"));
            }
        }
        Ok(Self(shards))
    }

    pub fn contains(&self, shard: ShardId) -> bool {
        self.0.contains(&shard)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// In the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = ShardId> + '_ {
        self.0.iter().copied()
    }

    pub fn highest(&self) -> Option<ShardId> {
        self.0.last().copied()
    }

    /// Whether these are all of so many shards.
    pub fn is_first(&self, count: u16) -> bool {
        self.len() == usize::from(count) && self.highest().is_none_or(|highest| highest.0 < count)
    }
}

impl FromIterator<ShardId> for ShardSet {
    fn from_iter<I: IntoIterator<Item = ShardId>>(shards: I) -> Self {
        Self(shards.into_iter().collect())
    }
}

/// As [`ShardSet::parse`] reads it.
impl fmt::Display for ShardSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str(NONE);
        }
        let mut rest = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = rest.next() {
            let mut last = first;
            while let Some(next) = rest.next_if(|next| next.0 == last.0 + 1) {
                last = next;
            }
            write!(f, "{separator}{first}")?;
            if last != first {
                write!(f, "-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_written_in_its_shortest_form_and_read_back() {
        for (text, shards, shortest) in [
            ("0", vec![0], "0"),
            ("0,2-3", vec![0, 2, 3], "0,2-3"),
            ("3, 2 ,1-1", vec![1, 2, 3], "1-3"),
            ("0-63", (0..64).collect(), "0-63"),
            ("none", vec![], "none"),
        ] {
            let set = ShardSet::parse(text).expect(text);
            assert_eq!(set.iter().map(|shard| shard.0).collect::<Vec<_>>(), shards);
            assert_eq!(set.to_string(), shortest);
            assert_eq!(ShardSet::parse(shortest), Ok(set));
        }
        assert!(ShardSet::first(3).is_first(3) && !ShardSet::first(3).is_first(4));
        assert!(!ShardSet::parse("1-3").expect("a good list").is_first(3));
    }

    #[test]
    fn what_is_wrong_with_a_list_is_said() {
        for (text, said) in [
            ("", "such as 0,2-3"),
            ("0,", "such as 0,2-3"),
            ("a", "got \"a\""),
            ("-1", "such as 0,2-3"),
            ("1-", "such as 0,2-3"),
            ("1-2-3", "such as 0,2-3"),
            ("+1", "such as 0,2-3"),
            ("3-2", "write 2-3"),
            ("64", "there is no shard 64"),
            ("0-64", "there is no shard 64"),
            ("0-2,2", "names shard 2 twice"),
        ] {
            let refused = ShardSet::parse(text).expect_err(text);
            assert!(refused.contains(said), "{text}: {refused}");
        }
    }
}
