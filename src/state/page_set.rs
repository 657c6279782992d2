//! Which pages changed: a list while they are few, a bit each once they are many.

/// Up to so many pages are a list. A bitmap reaches up to the highest page, 5 KB at ten million members, whatever a board
/// holds of them: 100,000 boards of ten members each would have bitmaps of half a gigabyte.
const LISTED_MAX: usize = 256;

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

    /// Empties the set; its pages, ascending.
    #[must_use]
    pub fn take(&mut self) -> Vec<u32> {
        match std::mem::take(&mut self.form) {
            Form::Listed(pages) => pages,
            Form::Bits(words) => {
                let numbered = (0_u32..).step_by(64).zip(words);
                numbered
                    .flat_map(|(first, word)| {
                        (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| first + bit)
                    })
                    .collect()
            }
        }
    }

    /// Memory held beside the set itself.
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
    fn gives_back_each_page_once_in_order() {
        let mut set = PageSet::default();
        set.extend([700, 3, 64, 63, 3]);
        assert_eq!(set.take(), [3, 63, 64, 700]);
        assert!(set.take().is_empty());
    }

    #[test]
    fn many_pages_are_given_back_as_few_are() {
        let mut set = PageSet::default();
        let pages = |count: u32| (0..count).map(|number| number * 7 % 1_009 * 3);
        for count in [255, 256, 257, 1_009] {
            set.extend(pages(count).chain(pages(count)));
            let mut sorted: Vec<u32> = pages(count).collect();
            sorted.sort_unstable();
            assert_eq!(set.take(), sorted);
            assert!(set.take().is_empty());
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
