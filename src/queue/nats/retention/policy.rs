//! The retention policy: which messages of a shard's stream may be purged, decided from snapshots of the
//! stream alone.
//!
//! Knows: a message may be purged once a checkpoint holds it. Besides, a number of messages is kept for other
//! nodes, and messages younger than the stream's duplicate window are kept for retries. Both give way when
//! the stream fills up, because a full stream refuses publishers. Must not know: how a stream is looked at or
//! purged.

use std::time::{Duration, Instant};

use crate::queue::nats::retention::sizes::{EndHistory, SizeHistory};

/// Messages kept for other nodes may take half of the stream, and a purge that makes room leaves half.
const KEPT_SHARE: u64 = 2;
/// Above three quarters the stream is filling up: a quarter is left for what arrives while room is made.
const FILLING: (u64, u64) = (3, 4);
/// A checkpoint is due when it would let a quarter of the stream be purged.
const CHECKPOINT_SHARE: u64 = 4;
/// If the stream is filling up, a sixteenth is enough. Not less, because each checkpoint costs the disk some
/// syncs.
const CHECKPOINT_SHARE_FILLING: u64 = 16;

/// What a stream held when it was looked at.
#[derive(Debug, Clone, Copy)]
pub struct StreamSnapshot {
    pub at: Instant,
    /// One after the last if the stream is empty.
    pub first: u64,
    pub last: u64,
    pub messages: u64,
    pub bytes: u64,
    /// The most that it may hold; 0 for no limit.
    pub bytes_max: u64,
    pub messages_max: u64,
    pub duplicate_window: Duration,
}

impl StreamSnapshot {
    fn is_filling(&self) -> bool {
        let fills = |is: u64, most: u64| most > 0 && is > most / FILLING.1 * FILLING.0;
        fills(self.bytes, self.bytes_max) || fills(self.messages, self.messages_max)
    }

    /// Bytes that the stream may grow by before it must be looked at again.
    pub fn bytes_to_next(&self) -> u64 {
        (self.bytes_max / CHECKPOINT_SHARE_FILLING).max(1)
    }
}

/// What may be purged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purge {
    /// The first message that stays.
    pub before: u64,
    /// How many of the purged messages are younger than the duplicate window. A server that restarts no
    /// longer knows their ids.
    pub early: u64,
}

/// What is known of a stream since the session with it began.
#[derive(Default)]
pub struct Retention {
    ends: EndHistory,
    sizes: SizeHistory,
    /// Where the stream was seen to end. No purge goes beyond this.
    end_seen: u64,
    /// The stream ended before an end that was seen, so it may have lost messages.
    end_decreased: bool,
}

impl Retention {
    /// A session has confirmed that the stream continues what was applied.
    ///
    /// # Arguments
    /// `end`: where the stream ended when that session began. A stream that ends before that now has lost
    /// messages since.
    pub fn begin_session(&mut self, end: u64) {
        if self.end_decreased || end < self.end_seen {
            *self = Self::default();
        }
        self.end_seen = self.end_seen.max(end);
    }

    /// Notes a snapshot. `false`: the stream ends before an end that was seen, so it may have lost messages
    /// and use their sequences again.
    pub fn note(&mut self, snapshot: &StreamSnapshot) -> bool {
        self.end_decreased |= snapshot.last < self.end_seen;
        if self.end_decreased {
            return false;
        }
        self.end_seen = snapshot.last;
        self.ends.note(snapshot.at, snapshot.last);
        // Ends from before the window are dropped here, because without purges nothing else drops them.
        let _ = self.ends.before(snapshot.at, snapshot.duplicate_window);
        self.sizes.note(snapshot.first, snapshot.last, snapshot.messages, snapshot.bytes);
        true
    }

    /// What may be purged, if anything may.
    ///
    /// # Arguments
    /// - `checkpoint`: the last sequence that is safe in a checkpoint. Its message stays, because a start
    ///   compares it.
    /// - `keeps`: messages that are kept for other nodes, unless they take half of the stream.
    pub fn purge(&mut self, snapshot: &StreamSnapshot, checkpoint: u64, keeps: u64) -> Option<Purge> {
        if self.end_decreased {
            return None;
        }
        // A purge beyond the end would empty the stream and move its sequences on.
        let safe = checkpoint.min(self.end_seen);
        let past_duplicate_window = self.past_duplicate_window(snapshot);
        let half = self.half(snapshot);
        let old = safe.saturating_sub(keeps).max(half).min(safe).min(past_duplicate_window);
        let before = if snapshot.is_filling() { old.max(half.min(safe)) } else { old };
        let early = before.saturating_sub(past_duplicate_window.max(snapshot.first));
        (before > snapshot.first).then_some(Purge { before, early })
    }

    /// Whether room waits for a checkpoint.
    pub fn wants_checkpoint(&self, snapshot: &StreamSnapshot, checkpoint: u64, applied: u64) -> bool {
        let share = if snapshot.is_filling() { CHECKPOINT_SHARE_FILLING } else { CHECKPOINT_SHARE };
        let is_much = |is: u64, most: u64| most > 0 && is > most / share;
        let checkpoint = checkpoint.max(snapshot.first.saturating_sub(1));
        is_much(self.sizes.between(checkpoint, applied), snapshot.bytes_max)
            || is_much(applied.saturating_sub(checkpoint), snapshot.messages_max)
    }

    /// The last message that is known to be older than the duplicate window; 0 if there is none.
    pub fn past_duplicate_window(&mut self, snapshot: &StreamSnapshot) -> u64 {
        self.ends.before(snapshot.at, snapshot.duplicate_window).unwrap_or(0)
    }

    /// Bytes of the messages after one sequence, up to and including another, as of the last snapshot.
    pub fn bytes_between(&self, after: u64, up_to: u64) -> u64 {
        self.sizes.between(after, up_to)
    }

    /// The first message to keep so that the stream is half full.
    fn half(&self, snapshot: &StreamSnapshot) -> u64 {
        let over = |is: u64, most: u64| if most > 0 { is.saturating_sub(most / KEPT_SHARE) } else { 0 };
        let by_bytes = match over(snapshot.bytes, snapshot.bytes_max) {
            0 => 0,
            bytes => self.sizes.first_after(bytes),
        };
        match over(snapshot.messages, snapshot.messages_max) {
            0 => by_bytes,
            messages => by_bytes.max(snapshot.first + messages),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u64 = 1_000_000;
    const WINDOW: Duration = Duration::from_secs(120);

    /// A stream of messages of one size, looked at after so many seconds.
    fn look(start: Instant, second: u64, (first, last): (u64, u64), size: u64) -> StreamSnapshot {
        let messages = (last + 1).saturating_sub(first);
        StreamSnapshot {
            at: start + Duration::from_secs(second),
            first,
            last,
            messages,
            bytes: messages * size,
            bytes_max: MAX,
            messages_max: 0,
            duplicate_window: WINDOW,
        }
    }

    /// What may go after two looks, a window and a second apart, if all but the newest `young` messages came
    /// before the first.
    fn purge_of(last: u64, size: u64, young: u64, checkpoint: u64, keeps: u64) -> Option<Purge> {
        let (mut retention, start) = (Retention::default(), Instant::now());
        assert!(retention.note(&look(start, 0, (1, last - young), size)));
        let now = look(start, 121, (1, last), size);
        assert!(retention.note(&now));
        retention.purge(&now, checkpoint, keeps)
    }

    #[test]
    fn messages_are_kept_up_to_a_count_and_to_half_of_the_bytes() {
        let old = |before| Some(Purge { before, early: 0 });
        // So many messages are kept,
        assert_eq!(purge_of(1_000, 100, 0, 1_000, 300), old(700));
        // or what half of the stream holds, though the count would keep all.
        assert_eq!(purge_of(700, 1_000, 0, 700, 100_000), old(201));
        assert_eq!(purge_of(1_000, 1_000, 0, 1_000, 100_000), old(501));
        assert_eq!(purge_of(500, 1_000, 0, 500, 100_000), None);
        // What no checkpoint holds stays in any case, and the checkpoint's own last message.
        assert_eq!(purge_of(1_000, 1_000, 0, 300, 0), old(300));
        assert_eq!(purge_of(1_000, 1_000, 0, 1, 0), None);
        assert_eq!(purge_of(1_000, 1_000, 0, 0, 0), None);
    }

    #[test]
    fn young_messages_stay_until_the_stream_fills_up() {
        let purge = |last, young| purge_of(last, 1_000, young, last, 0);
        assert_eq!(purge(700, 600), Some(Purge { before: 100, early: 0 }));
        assert_eq!(purge(750, 700), Some(Purge { before: 50, early: 0 }));
        assert_eq!(purge(751, 700), Some(Purge { before: 252, early: 201 }));
        assert_eq!(purge(1_000, 999), Some(Purge { before: 501, early: 500 }));
        // Also when nothing is known to be old, as after a start.
        let (mut retention, full) = (Retention::default(), look(Instant::now(), 0, (1, 1_000), 1_000));
        assert!(retention.note(&full));
        assert_eq!(retention.purge(&full, 1_000, 100_000), Some(Purge { before: 501, early: 500 }));
        assert_eq!(retention.purge(&full, 20, 100_000), Some(Purge { before: 20, early: 19 }));
    }

    #[test]
    fn a_stream_limited_by_messages_is_purged_too() {
        let mut retention = Retention::default();
        let limited = StreamSnapshot { messages_max: 1_000, ..look(Instant::now(), 0, (1, 900), 10) };
        assert!(retention.note(&limited));
        assert_eq!(retention.purge(&limited, 900, 100_000), Some(Purge { before: 401, early: 400 }));
        assert!(retention.wants_checkpoint(&limited, 1, 900));
        assert!(!retention.wants_checkpoint(&limited, 850, 900));
    }

    #[test]
    fn nothing_is_purged_beyond_the_end_that_was_seen_nor_after_it_went_back() {
        let (mut retention, start) = (Retention::default(), Instant::now());
        let seen = look(start, 0, (1, 900), 1_000);
        assert!(retention.note(&seen));
        // The checkpoint may be further than this look knew.
        assert_eq!(retention.purge(&seen, 5_000, 0).map(|purge| purge.before), Some(401));
        let small = look(start, 121, (400, 900), 1_000);
        assert!(retention.note(&small));
        assert_eq!(retention.purge(&small, 5_000, 0).map(|purge| purge.before), Some(900));
        // The server lost the end: its sequences will be used again.
        let lost = look(start, 122, (1, 800), 1_000);
        assert!(!retention.note(&lost));
        assert_eq!(retention.purge(&lost, 5_000, 0), None);
        let refilled = look(start, 300, (1, 2_000), 1_000);
        assert!(!retention.note(&refilled));
        assert_eq!(retention.purge(&refilled, 5_000, 0), None);
        // A session has compared the tip.
        retention.begin_session(2_000);
        assert!(retention.note(&refilled));
        assert_eq!(retention.purge(&refilled, 1_200, 0).map(|purge| purge.before), Some(1_200));
    }

    #[test]
    fn nothing_is_purged_of_a_stream_that_ends_before_where_its_session_found_it_to_end() {
        let (mut retention, start) = (Retention::default(), Instant::now());
        retention.begin_session(900);
        // Lost since the session began, and filled again up to here.
        let lost = look(start, 0, (1, 899), 1_000);
        assert!(!retention.note(&lost));
        assert_eq!(retention.purge(&lost, 5_000, 0), None);
        retention.begin_session(899);
        assert!(retention.note(&lost));
        // One that finds it to end before the last look has compared the tip after that.
        let seen = look(start, 1, (1, 950), 1_000);
        assert!(retention.note(&seen));
        retention.begin_session(920);
        assert!(retention.note(&look(start, 2, (1, 930), 1_000)));
    }

    /// A stream that is never purged is never asked for its old messages.
    #[test]
    fn memory_for_a_stream_that_is_never_purged_is_bounded() {
        let (mut retention, start) = (Retention::default(), Instant::now());
        let window = look(start, 0, (1, 1), 1).duplicate_window.as_secs();
        for second in 0..20_000 {
            assert!(retention.note(&look(start, second, (1, 10 + second), 10)));
            let known = u64::try_from(retention.ends.len()).expect("few");
            assert!(known <= window + 2, "{known} ends after {second} looks, one a second");
        }
    }

    #[test]
    fn a_checkpoint_is_wanted_when_it_would_make_room() {
        let wants = |last, checkpoint, applied| {
            let (mut retention, look) = (Retention::default(), look(Instant::now(), 0, (1, last), 1_000));
            assert!(retention.note(&look));
            retention.wants_checkpoint(&look, checkpoint, applied)
        };
        assert!(!wants(250, 0, 250));
        assert!(wants(251, 0, 251));
        assert!(!wants(600, 400, 600));
        assert!(!wants(700, 0, 200), "what is not applied would not go by it");
        assert!(wants(760, 0, 200));
        assert!(!wants(760, 700, 760));
        assert!(!wants(1_000, 1_000, 1_000));
    }
}
