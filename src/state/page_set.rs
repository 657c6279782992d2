//! The set of changed pages: a list while they are few, a bitmap once they are many.

/// Up to this many pages are a list, 4 KB. A bitmap reaches up to the highest page, 5 KB at ten million
/// members, even if the board has few members: 100,000 boards of ten members each would have bitmaps of half
/// a gigabyte.
const LISTED_MAX: usize = 1_024;

/// A set of page numbers, which are dense and small.
#[derive(Debug, Clone, Default)]
pub struct PageSet {
    form: Form,
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
            Form::Bits(words) => set_bit(words, page),
            Form::Listed(pages) => {
                let Err(at) = pages.binary_search(&page) else { return };
                if pages.len() < LISTED_MAX {
                    pages.insert(at, page);
                    return;
                }
                let mut words = Vec::new();
                pages.iter().chain([&page]).for_each(|page| set_bit(&mut words, *page));
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
                for page in &*pages {
                    set_bit(&mut words, *page);
                }
                self.form = Form::Bits(words);
            }
            (Form::Bits(mine), Form::Bits(others)) => {
                if mine.len() < others.len() {
                    mine.resize(others.len(), 0);
                }
                mine.iter_mut().zip(others).for_each(|(mine, other)| *mine |= other);
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

    #[must_use]
    pub fn is_empty(&self) -> bool {
        // A bitmap has more pages than a list can hold, and pages are never removed.
        matches!(&self.form, Form::Listed(pages) if pages.is_empty())
    }

    /// Heap memory, in bytes, without the struct itself.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.form {
            Form::Listed(pages) => pages.capacity() * size_of::<u32>(),
            Form::Bits(words) => words.capacity() * size_of::<u64>(),
        }
    }
}

fn set_bit(words: &mut Vec<u64>, page: u32) {
    let (at, bit) = (usize::try_from(page / 64).unwrap_or(usize::MAX), page % 64);
    if words.len() <= at {
        words.resize(at + 1, 0);
    }
    if let Some(word) = words.get_mut(at) {
        *word |= 1 << bit;
    }
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
            for other in [PageSet::default(), scattered(5, 11), scattered(2_000, 2)] {
                let mut merged = set.clone();
                merged.merge(other.clone());
                let mut both: Vec<u32> = set.iter().chain(other.iter()).collect();
                both.sort_unstable();
                both.dedup();
                assert_eq!(merged.iter().collect::<Vec<_>>(), both, "{count} and {}", other.iter().count());
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
