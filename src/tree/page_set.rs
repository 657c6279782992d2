//! The set of changed pages: a list while they are few, a bitmap once they are many.

use std::iter;

/// Up to this many pages are a list, 4 KB. A bitmap reaches up to the highest page, 5 KB at ten million
/// members, even if the board has few members: 100,000 boards of ten members each would have bitmaps of half
/// a gigabyte.
const LISTED_MAX: usize = 1_024;

/// A set of page numbers, which are dense and small.
#[derive(Debug, Clone, Default)]
pub struct PageSet {
    form: Form,
    len: usize,
}

#[derive(Debug, Clone)]
enum Form {
    /// Ascending.
    Listed(Vec<u32>),
    Bits(Vec<u64>),
}

impl Default for Form {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

impl PageSet {
    pub fn insert(&mut self, page: u32) {
        match &mut self.form {
            Form::Bits(words) => self.len += usize::from(set_bit(words, page)),
            Form::Listed(pages) => {
                let Err(at) = pages.binary_search(&page) else { return };
                self.len += 1;
                if pages.len() < LISTED_MAX {
                    pages.insert(at, page);
                    return;
                }
                let mut words = Vec::new();
                for page in pages.iter().chain([&page]) {
                    set_bit(&mut words, *page);
                }
                self.form = Form::Bits(words);
            }
        }
    }

    pub fn extend(&mut self, pages: impl IntoIterator<Item = u32>) {
        for page in pages {
            self.insert(page);
        }
    }

    /// Adds all pages of another set. Merging bitmaps takes time in proportion to their words and not to
    /// pages, because a failed checkpoint's pages are merged back under the lock.
    pub fn merge(&mut self, other: Self) {
        match (&mut self.form, other.form) {
            (_, Form::Listed(pages)) => self.extend(pages),
            (Form::Listed(pages), Form::Bits(mut words)) => {
                let added: usize = pages.iter().map(|page| usize::from(set_bit(&mut words, *page))).sum();
                self.len = other.len + added;
                self.form = Form::Bits(words);
            }
            (Form::Bits(mine), Form::Bits(others)) => {
                if mine.len() < others.len() {
                    mine.resize(others.len(), 0);
                }
                for (mine, other) in mine.iter_mut().zip(others) {
                    self.len += count_ones(other & !*mine);
                    *mine |= other;
                }
            }
        }
    }

    /// Its pages, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let (listed, words): (&[u32], &[u64]) = match &self.form {
            Form::Listed(pages) => (pages, &[]),
            Form::Bits(words) => (&[], words),
        };
        let numbered = (0_u32..).step_by(64).zip(words);
        listed.iter().copied().chain(numbered.flat_map(|(first, word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| first + bit)
        }))
    }

    /// The lowest of its pages that are not below `from`. Of a bitmap it looks at each word in between.
    pub fn first_from(&self, from: u32) -> Option<u32> {
        match &self.form {
            Form::Listed(pages) => pages.get(pages.partition_point(|page| *page < from)).copied(),
            Form::Bits(words) => {
                let (at, bit) = place(from);
                let (&first, rest) = words.get(at..)?.split_first()?;
                let first = first & (u64::MAX << bit);
                let numbered = (from - bit..).step_by(64).zip(iter::once(first).chain(rest.iter().copied()));
                let (base, word) = { numbered }.find(|(_, word)| *word != 0)?;
                Some(base + word.trailing_zeros())
            }
        }
    }

    /// Takes the highest page out.
    pub fn pop_last(&mut self) -> Option<u32> {
        let last = match &mut self.form {
            Form::Listed(pages) => pages.pop()?,
            Form::Bits(words) => loop {
                let at = words.len().checked_sub(1)?;
                match words.get_mut(at).filter(|word| **word != 0) {
                    Some(word) => {
                        let bit = word.ilog2();
                        *word &= !(1 << bit);
                        break u32::try_from(at).ok()? * 64 + bit;
                    }
                    None => words.truncate(at),
                }
            },
        };
        self.len -= 1;
        Some(last)
    }

    /// Takes all pages out. The memory is kept for the next ones.
    pub fn clear(&mut self) {
        self.len = 0;
        match &mut self.form {
            Form::Listed(pages) => pages.clear(),
            Form::Bits(words) => words.clear(),
        }
    }

    pub const fn len(&self) -> usize {
        self.len
    }

    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Heap memory, in bytes, without the struct itself.
    pub fn bytes(&self) -> usize {
        match &self.form {
            Form::Listed(pages) => pages.capacity() * size_of::<u32>(),
            Form::Bits(words) => words.capacity() * size_of::<u64>(),
        }
    }
}

/// The index of a page's word, and of its bit in it.
fn place(page: u32) -> (usize, u32) {
    (usize::try_from(page / 64).unwrap_or(usize::MAX), page % 64)
}

fn count_ones(word: u64) -> usize {
    usize::try_from(word.count_ones()).unwrap_or(0)
}

/// Whether it was not set before.
fn set_bit(words: &mut Vec<u64>, page: u32) -> bool {
    let (at, bit) = place(page);
    if words.len() <= at {
        words.resize(at + 1, 0);
    }
    words.get_mut(at).is_some_and(|word| {
        let before = *word;
        *word |= 1 << bit;
        before != *word
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iterates_pages_once_in_ascending_order() {
        let mut set = PageSet::default();
        set.extend([700, 3, 64, 63, 3]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 63, 64, 700]);
        assert!(!set.is_empty() && PageSet::default().is_empty());
    }

    /// `count` different pages, in no order, the highest ones far up.
    fn scattered(count: u32, step: u32) -> PageSet {
        let mut set = PageSet::default();
        let pages = || (0..count).map(|number| number * 7 % 5_003 * step);
        set.extend(pages().chain(pages()));
        set
    }

    #[test]
    fn list_and_bitmap_forms_behave_the_same() {
        for (count, step) in
            [1_023, 1_024, 1_025, 5_003].into_iter().flat_map(|count| [(count, 3), (count, 1)])
        {
            let set = scattered(count, step);
            let mut sorted: Vec<u32> = (0..count).map(|number| number * 7 % 5_003 * step).collect();
            sorted.sort_unstable();
            assert_eq!(set.iter().collect::<Vec<_>>(), sorted);
            assert_eq!(set.len(), sorted.len());
            let next_after = |page: &u32| set.first_from(page + 1);
            assert_eq!(iter::successors(set.first_from(0), next_after).collect::<Vec<_>>(), sorted);
            assert_eq!(sorted.iter().filter(|page| set.first_from(**page) != Some(**page)).count(), 0);
            let mut taken = set.clone();
            let mut popped: Vec<u32> = iter::from_fn(|| taken.pop_last()).collect();
            popped.reverse();
            assert_eq!((popped, taken.len(), taken.first_from(0)), (sorted, 0, None));
            taken.extend([900, 5, 5]);
            assert_eq!((taken.iter().collect::<Vec<_>>(), taken.len()), (vec![5, 900], 2));
            taken.clear();
            assert_eq!((taken.iter().count(), taken.is_empty(), taken.pop_last()), (0, true, None));
            for other in [PageSet::default(), scattered(5, 11), scattered(2_000, 2)] {
                let mut merged = set.clone();
                merged.merge(other.clone());
                let mut both: Vec<u32> = set.iter().chain(other.iter()).collect();
                both.sort_unstable();
                both.dedup();
                assert_eq!(merged.iter().collect::<Vec<_>>(), both, "{count} and {}", other.iter().count());
                assert_eq!(merged.len(), both.len());
            }
        }
    }

    /// A small board on a shard of many members: its pages are far apart.
    #[test]
    fn a_few_pages_cost_what_they_are_and_not_what_lies_between_them() {
        let mut set = PageSet::default();
        set.extend((0..10).map(|number| number * 1_000_000));
        assert!(set.bytes() <= 16 * size_of::<u32>(), "{}", set.bytes());
        let mut many = PageSet::default();
        many.extend(0..10_000);
        assert!(many.bytes() <= 4 << 10, "{}", many.bytes());
    }
}
