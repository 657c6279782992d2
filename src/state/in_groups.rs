//! A list in groups of a fixed length, which copies one group at most when it grows.
//!
//! It grows under the shard's lock. A single array of 24 bytes for 256 members is 6 MB at 67 million members,
//! and growing it copies them all.

/// Elements in a group.
const GROUP: usize = 4_096;

pub struct InGroups<T>(Vec<Vec<T>>);

impl<T: Default> InGroups<T> {
    #[inline]
    pub fn get(&self, number: usize) -> Option<&T> {
        self.0.get(number / GROUP)?.get(number % GROUP)
    }

    #[inline]
    pub fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.0.get_mut(number / GROUP)?.get_mut(number % GROUP)
    }

    /// Has an element of that number, empty ones before it included.
    pub fn reach(&mut self, number: usize) {
        let (group, at) = (number / GROUP, number % GROUP);
        while self.0.len() <= group {
            if let Some(last) = self.0.last_mut() {
                last.resize_with(GROUP, T::default);
            }
            self.0.push(Vec::new());
        }
        // Every group but the last is full.
        if let Some(elements) = self.0.get_mut(group)
            && elements.len() <= at
        {
            elements.resize_with(at + 1, T::default);
        }
    }

    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }

    /// Its own memory, without what elements point to.
    pub fn bytes(&self) -> usize {
        let of_elements: usize = self.0.iter().map(|group| group.capacity() * size_of::<T>()).sum();
        of_elements + self.0.capacity() * size_of::<Vec<T>>()
    }
}

impl<T> Default for InGroups<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_again_in_whatever_order_they_come() {
        let mut list = InGroups::<usize>::default();
        let numbers = [0, 1, GROUP - 1, GROUP, 3 * GROUP + 7, 3 * GROUP + 9, 2 * GROUP, 5];
        for number in numbers {
            list.reach(number);
            *list.get_mut(number).expect("it is there now") = number + 1;
        }
        for number in numbers {
            assert_eq!(list.get(number), Some(&(number + 1)));
        }
        assert_eq!(list.get(2), Some(&0), "those between are empty");
        assert_eq!(list.get(3 * GROUP + 10), None);
        assert_eq!(list.iter().count(), 3 * GROUP + 10);
    }

    #[test]
    fn growing_moves_one_group_at_most() {
        let mut list = InGroups::<u64>::default();
        list.reach(10 * GROUP);
        let first: *const u64 = list.get(0).expect("it is there");
        list.reach(100 * GROUP);
        assert!(std::ptr::eq(first, list.get(0).expect("it is there")));
        assert!(list.bytes() < 101 * GROUP * size_of::<u64>() + 128 * size_of::<Vec<u64>>());
    }
}
