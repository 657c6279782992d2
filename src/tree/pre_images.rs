//! Pre-images of leaves for a checkpoint, by page.
//!
//! Must not know when they are taken. A hash map would be copied whole when it grows, under the lock: a
//! checkpoint of ten million entries beside a busy writer takes a hundred thousand. So each page has a slot,
//! in groups that are allocated while any of their slots is in use.

use super::page_image::PageCopy;

/// Slots of a group: 128 bytes.
const GROUP: usize = 16;

type Group = [Option<Box<PageCopy>>; GROUP];

#[derive(Default)]
pub(super) struct PreImages {
    groups: Vec<Option<Box<Group>>>,
    len: usize,
    /// Heap memory of pre-images and groups, in bytes.
    allocated_bytes: usize,
}

fn place(page: u32) -> (usize, usize) {
    (page as usize / GROUP, page as usize % GROUP)
}

fn bytes_of(pre_image: &PageCopy) -> usize {
    size_of::<PageCopy>() + pre_image.bytes()
}

impl PreImages {
    /// The pieces of heap memory that an insertion takes at most, in bytes, apart from the pre-image's own.
    pub(super) const PIECES_OF_EACH: [usize; 2] = [size_of::<PageCopy>(), size_of::<Group>()];

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn contains(&self, page: u32) -> bool {
        let (group, at) = place(page);
        matches!(self.groups.get(group), Some(Some(group)) if group[at].is_some())
    }

    pub(super) fn insert(&mut self, page: u32, pre_image: Box<PageCopy>) {
        let (group, at) = place(page);
        if self.groups.len() <= group {
            self.groups.resize_with(group + 1, || None);
        }
        let group = self.groups[group].get_or_insert_with(|| {
            self.allocated_bytes += size_of::<Group>();
            Box::default()
        });
        self.allocated_bytes += bytes_of(&pre_image);
        match group[at].replace(pre_image) {
            Some(before) => self.allocated_bytes -= bytes_of(&before),
            None => self.len += 1,
        }
    }

    pub(super) fn remove(&mut self, page: u32) -> Option<Box<PageCopy>> {
        let (number, at) = place(page);
        let group = self.groups.get_mut(number)?;
        let pre_image = group.as_mut()?[at].take()?;
        self.allocated_bytes -= bytes_of(&pre_image);
        self.len -= 1;
        if group.as_ref().is_some_and(|group| group.iter().all(Option::is_none)) {
            *group = None;
            self.allocated_bytes -= size_of::<Group>();
        }
        if self.len == 0 {
            self.groups = Vec::new();
        }
        Some(pre_image)
    }

    /// Heap memory, in bytes, without the struct itself.
    pub(super) fn bytes(&self) -> usize {
        self.allocated_bytes + self.groups.capacity() * size_of::<Option<Box<Group>>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_moves_none_of_what_is_set_aside_and_all_memory_is_given_back() {
        let mut pre_images = PreImages::default();
        let pages = 200_000_u32;
        let ((), allocated) = crate::allocated::count(|| {
            for page in (0..pages).map(|number| number * 7 % pages) {
                pre_images.insert(page, Box::default());
                pre_images.insert(page, Box::default());
            }
        });
        assert_eq!(pre_images.len(), 200_000);
        assert_eq!(i64::try_from(pre_images.bytes()).expect("small"), allocated.held);
        // A word for sixteen pages.
        assert!(allocated.largest <= 2 * 8 * 200_000 / GROUP, "{}", allocated.largest);
        for page in 0..pages {
            assert!(
                pre_images.contains(page) && pre_images.remove(page).is_some() && !pre_images.contains(page)
            );
        }
        assert_eq!((pre_images.len(), pre_images.bytes(), pre_images.remove(3).is_some()), (0, 0, false));
    }
}
