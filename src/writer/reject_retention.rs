//! Retention of a shard's rejects: the newest ones are kept, and all that are not published yet.
//!
//! Knows: the place of every 1,024th reject, so that the oldest can be deleted without being read or counted.
//! Must not know: what is rejected and why, or how it is published.

use std::collections::VecDeque;

use crate::job::JobPlace;

/// Rejects kept per shard. Older ones are deleted once they are published; the total count stays.
pub const REJECTS_KEPT: u64 = 100_000;
/// Unpublished ones are kept up to this many, which take up to a gigabyte and usually a few hundred MiB. A
/// client that sends a flood of bad jobs while publishing fails must not fill the disk.
const UNPUBLISHED_KEPT: u64 = 1_000_000;
/// Rejects deleted at a time: a range delete in every batch would slow scans down.
const REJECTS_PER_DELETE: u64 = 1_024;

/// Places of a shard's rejects, one in `REJECTS_PER_DELETE`.
#[derive(Debug, Default)]
pub struct RejectRetention {
    /// The last one of each [`REJECTS_PER_DELETE`], the oldest first.
    marks: VecDeque<JobPlace>,
    /// Those after the last mark.
    since_last_mark: u64,
}

impl RejectRetention {
    /// Notes a stored reject. Called in the order of places.
    pub fn note(&mut self, place: JobPlace) {
        self.since_last_mark += 1;
        if self.since_last_mark == REJECTS_PER_DELETE {
            self.marks.push_back(place);
            self.since_last_mark = 0;
        }
    }

    fn stored(&self) -> u64 {
        u64::try_from(self.marks.len()).unwrap_or(u64::MAX).saturating_mul(REJECTS_PER_DELETE)
            + self.since_last_mark
    }

    /// The place before which rejects may be deleted, if any may.
    ///
    /// # Arguments
    /// `published`: the last published one; `None` where rejects are not published.
    pub fn prune(&mut self, published: Option<JobPlace>) -> Option<JobPlace> {
        let mut last = None;
        while self.stored() >= REJECTS_KEPT + REJECTS_PER_DELETE
            && let Some(mark) = self.marks.front()
        {
            if published.is_some_and(|published| *mark > published) {
                if self.stored() < UNPUBLISHED_KEPT {
                    break;
                }
                tracing::error!(
                    rejects = REJECTS_PER_DELETE,
                    "too many rejects wait to be published; the oldest were deleted without being published"
                );
            }
            last = self.marks.pop_front();
        }
        let (sequence, index) = last?;
        Some((sequence, index.saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Sequence;

    fn noted(count: u64) -> RejectRetention {
        let mut kept = RejectRetention::default();
        // Ten to a message.
        (0..count).for_each(|number| kept.note(place(number)));
        kept
    }

    fn place(number: u64) -> JobPlace {
        (Sequence(number / 10), u32::try_from(number % 10).expect("small"))
    }

    #[test]
    fn the_newest_are_kept_by_count() {
        let mut kept = noted(REJECTS_KEPT + REJECTS_PER_DELETE - 1);
        assert_eq!(kept.prune(None), None);
        kept.note(place(REJECTS_KEPT + REJECTS_PER_DELETE - 1));
        // The first 1,024: the last of them has the number 1,023.
        assert_eq!(kept.prune(None), Some((Sequence(102), 4)));
        assert_eq!(kept.prune(None), None);
        assert_eq!(noted(REJECTS_KEPT + 3 * REJECTS_PER_DELETE).prune(None), Some((Sequence(307), 2)));
    }

    #[test]
    fn unpublished_rejects_are_kept_up_to_the_hard_limit() {
        let mut kept = noted(REJECTS_KEPT + 3 * REJECTS_PER_DELETE);
        assert_eq!(kept.prune(Some((Sequence(0), 0))), None);
        assert_eq!(kept.prune(Some(place(2_046))), Some((Sequence(102), 4)));
        assert_eq!(kept.prune(Some(place(2_047))), Some((Sequence(204), 8)));
        let mut kept = noted(UNPUBLISHED_KEPT + REJECTS_PER_DELETE);
        assert!(kept.prune(Some((Sequence(0), 0))).is_some());
        assert!(kept.stored() < UNPUBLISHED_KEPT && kept.stored() >= UNPUBLISHED_KEPT - REJECTS_PER_DELETE);
    }
}
