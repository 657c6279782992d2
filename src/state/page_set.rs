//! Which pages changed: a bit each.

/// A set of page numbers, which are dense and small.
#[derive(Debug, Clone, Default)]
pub struct PageSet {
    words: Vec<u64>,
}

impl PageSet {
    pub fn insert(&mut self, page: u32) {
        let (word, bit) = (usize::try_from(page / 64).unwrap_or(usize::MAX), page % 64);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        if let Some(word) = self.words.get_mut(word) {
            *word |= 1 << bit;
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
        let words = std::mem::take(&mut self.words);
        let numbered = (0_u32..).step_by(64).zip(words);
        numbered
            .flat_map(|(first, word)| {
                (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| first + bit)
            })
            .collect()
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
}
