//! How old a stream's messages are, and how many bytes they take, estimated from snapshots of the whole
//! stream.
//!
//! Knows: where the stream ended and how large it was at each snapshot. The server reports neither for a part
//! of a stream.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How many sizes are remembered. Beyond that, every second one is forgotten.
const POINTS_MAX: usize = 512;

/// Where a stream ended, and when that was seen. It tells which messages are older than the duplicate window,
/// whatever the server's clock says. It is empty after a start, so no message counts as old before a window
/// has passed.
#[derive(Default)]
pub struct EndHistory(VecDeque<(Instant, u64)>);

impl EndHistory {
    pub fn note(&mut self, now: Instant, last: u64) {
        // A stream that stands still keeps the time when its end was first seen.
        if self.0.back().is_none_or(|(_, before)| *before != last) {
            self.0.push_back((now, last));
        }
    }

    /// Where the stream ended at the latest snapshot that is at least `age` old.
    pub fn before(&mut self, now: Instant, age: Duration) -> Option<u64> {
        let is_old = |(seen, _): &(Instant, u64)| now.duration_since(*seen) >= age;
        while self.0.get(1).is_some_and(is_old) {
            self.0.pop_front();
        }
        self.0.front().filter(|end| is_old(end)).map(|(_, last)| *last)
    }

    /// How many ends are remembered.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// How many bytes were stored up to a sequence, counted from an arbitrary one. Messages between two snapshots
/// are taken to be of one size.
#[derive(Default)]
pub struct SizeHistory {
    /// Sequences, and the bytes up to and with them, both ascending. The first one is before the stream's
    /// first message.
    points: VecDeque<(u64, u64)>,
}

impl SizeHistory {
    /// Notes a snapshot.
    pub fn note(&mut self, first: u64, last: u64, messages: u64, bytes: u64) {
        let gone = first.saturating_sub(1);
        let (Some(&(gone_before, bytes_gone)), Some(&(last_before, total_before))) =
            (self.points.front(), self.points.back())
        else {
            self.points.extend([(gone, 0), (last.max(gone), bytes)]);
            return;
        };
        let total = if gone == gone_before {
            bytes_gone + bytes
        } else {
            // What was purged since the last snapshot is unknown, so what came meanwhile is an estimate.
            let average = bytes.checked_div(messages).unwrap_or(0);
            total_before + average * last.saturating_sub(last_before)
        };
        let total = total.max(total_before).max(bytes);
        if last > last_before {
            self.points.push_back((last, total));
        } else if let Some(end) = self.points.back_mut() {
            end.1 = total;
        }
        while self.points.front().is_some_and(|(sequence, _)| *sequence <= gone) {
            self.points.pop_front();
        }
        // The stored bytes are known exactly, so a wrong estimate does not outlive its messages.
        let bytes_gone = total - bytes;
        for (_, up_to) in &mut self.points {
            *up_to = (*up_to).max(bytes_gone);
        }
        self.points.push_front((gone, bytes_gone));
        if self.points.len() == 1 {
            self.points.push_back((last.max(gone), total));
        }
        self.thin_out();
    }

    fn thin_out(&mut self) {
        if self.points.len() > POINTS_MAX {
            let end = self.points.len() - 1;
            let mut number = 0;
            self.points.retain(|_| {
                number += 1;
                number == 1 || number > end || number % 2 == 0
            });
        }
    }

    /// The first message that stays if at least `bytes` of the oldest messages are purged.
    pub fn first_after(&self, bytes: u64) -> u64 {
        let Some(&(gone, bytes_gone)) = self.points.front() else { return 0 };
        let wanted = bytes_gone + bytes;
        let mut before = (gone, bytes_gone);
        for &(sequence, up_to) in &self.points {
            if up_to >= wanted && up_to > before.1 {
                let share = scaled(sequence - before.0, wanted - before.1, up_to - before.1, true);
                return before.0 + share + 1;
            }
            before = (sequence, up_to);
        }
        before.0 + 1
    }

    /// Bytes of the messages after one sequence, up to and including another.
    pub fn between(&self, after: u64, up_to: u64) -> u64 {
        self.up_to(up_to).saturating_sub(self.up_to(after))
    }

    fn up_to(&self, wanted: u64) -> u64 {
        let mut before = self.points.front().copied().unwrap_or_default();
        for &(sequence, up_to) in &self.points {
            if sequence >= wanted {
                if wanted <= before.0 || sequence == before.0 {
                    return before.1;
                }
                return before.1 + scaled(up_to - before.1, wanted - before.0, sequence - before.0, false);
            }
            before = (sequence, up_to);
        }
        before.1
    }
}

/// `whole` × `part` / `of`, rounded up if `up`.
fn scaled(whole: u64, part: u64, of: u64, up: bool) -> u64 {
    let product = u128::from(whole) * u128::from(part);
    let of = u128::from(of.max(1));
    let share = if up { product.div_ceil(of) } else { product / of };
    u64::try_from(share).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_old_up_to_where_the_stream_ended_a_window_ago() {
        let (mut ends, start, window) = (EndHistory::default(), Instant::now(), Duration::from_secs(10));
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(ends.before(at(0), window), None);
        for (second, last) in [(0, 5), (1, 5), (4, 8), (9, 20)] {
            ends.note(at(second), last);
            assert_eq!(ends.before(at(second), window), None);
        }
        for (second, settled) in [(10, 5), (13, 5), (14, 8), (18, 8), (19, 20), (100, 20)] {
            assert_eq!(ends.before(at(second), window), Some(settled), "at {second} s");
        }
    }

    #[test]
    fn bytes_up_to_a_sequence_are_known_for_messages_of_any_size() {
        let mut sizes = SizeHistory::default();
        // 100 messages of 10 bytes, then 10 of 1,000, then 1,000 of 1.
        sizes.note(1, 100, 100, 1_000);
        sizes.note(1, 110, 110, 11_000);
        sizes.note(1, 1_110, 1_110, 12_000);
        for (bytes, first) in
            [(1, 2), (10, 2), (11, 3), (1_000, 101), (1_001, 102), (5_000, 105), (11_001, 112)]
        {
            assert_eq!(sizes.first_after(bytes), first, "{bytes}");
        }
        assert_eq!((sizes.first_after(12_000), sizes.first_after(99_999)), (1_111, 1_111));
        assert_eq!(
            (sizes.between(0, 1_110), sizes.between(100, 110), sizes.between(110, 9_999)),
            (12_000, 10_000, 1_000)
        );
        // The first 105 are purged, and 4 of 500 bytes come.
        sizes.note(106, 1_110, 1_005, 6_000);
        assert_eq!((sizes.first_after(1_000), sizes.first_after(5_001)), (107, 112));
        sizes.note(106, 1_114, 1_009, 8_000);
        assert_eq!((sizes.between(0, 1_110), sizes.between(1_110, 1_114)), (6_000, 2_000));
        // All of it goes, and more comes.
        sizes.note(1_115, 1_114, 0, 0);
        assert_eq!((sizes.between(0, 9_999), sizes.first_after(1)), (0, 1_115));
        sizes.note(1_115, 1_124, 10, 50);
        assert_eq!(sizes.first_after(20), 1_119);
    }

    /// Another node purges, so that what came between two looks has to be estimated.
    #[test]
    fn an_estimate_is_corrected_once_its_messages_are_the_oldest() {
        let mut sizes = SizeHistory::default();
        sizes.note(1, 1_000, 1_000, 100_000);
        // 900 of 100 bytes went, and 100 of 2,000 came.
        sizes.note(901, 1_100, 200, 210_000);
        assert_eq!(sizes.between(0, 1_100), 210_000);
        sizes.note(1_001, 1_100, 100, 200_000);
        assert_eq!(sizes.between(0, 1_100), 200_000);
        assert_eq!(sizes.first_after(100_000), 1_051);
    }

    #[test]
    fn the_number_of_remembered_sizes_is_bounded() {
        let mut sizes = SizeHistory::default();
        for last in 1..=10_000 {
            sizes.note(1, last, last, last * 7);
            assert!(sizes.points.len() <= POINTS_MAX);
        }
        assert_eq!(sizes.between(0, 10_000), 70_000);
        assert!(sizes.first_after(35_000).abs_diff(5_001) < 100);
    }
}
