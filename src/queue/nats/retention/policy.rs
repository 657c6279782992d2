//! What of a shard's stream may be purged: decided from what looks at the stream found, and from nothing else.
//!
//! Knows: a message may go once a checkpoint holds it. Beyond that a number of messages is kept for other nodes, and what
//! is younger than the stream's duplicate window is kept for retries; both give way when the stream fills up, because a full
//! stream refuses publishers. Must not know: how a stream is looked at or purged.

use std::time::{Duration, Instant};

use crate::queue::nats::retention::sizes::{Ends, Sizes};

/// What is kept for other nodes may take half of the stream, and what makes room leaves half.
const KEPT_SHARE: u64 = 2;
/// Above three quarters the stream is filling up: a quarter is left for what arrives while room is made.
const FILLING: (u64, u64) = (3, 4);
/// A checkpoint is due when a quarter of the stream could go by it.
const CHECKPOINT_SHARE: u64 = 4;
/// And when a sixteenth could, if the stream is filling up: each costs the disk some syncs.
const CHECKPOINT_SHARE_FILLING: u64 = 16;

/// What a look at a stream found.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub at: Instant,
    /// One after the last if it is empty.
    pub first: u64,
    pub last: u64,
    pub messages: u64,
    pub bytes: u64,
    /// Most that it may hold; 0 for no limit.
    pub bytes_max: u64,
    pub messages_max: u64,
    pub duplicate_window: Duration,
}

impl Look {
    fn is_filling(&self) -> bool {
        let fills = |is: u64, most: u64| most > 0 && is > most / FILLING.1 * FILLING.0;
        fills(self.bytes, self.bytes_max) || fills(self.messages, self.messages_max)
    }

    /// Bytes that the stream may grow by before it is worth another look.
    pub fn bytes_to_next(&self) -> u64 {
        (self.bytes_max / CHECKPOINT_SHARE_FILLING).max(1)
    }
}

/// What may be purged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purge {
    /// The first message that stays.
    pub before: u64,
    /// Messages that are younger than the duplicate window: after a restart of the server it no longer knows their ids.
    pub early: u64,
}

/// What is known of a stream since the session with it began.
#[derive(Default)]
pub struct Retention {
    ends: Ends,
    sizes: Sizes,
    /// Of what is purged, nothing is beyond this.
    end_seen: u64,
    went_back: bool,
}

impl Retention {
    /// A session has found that the stream continues what was applied.
    ///
    /// # Arguments
    /// `end`: where the stream ended when that session began. One that ends before that by now has lost messages since.
    pub fn begin_session(&mut self, end: u64) {
        if self.went_back || end < self.end_seen {
            *self = Self::default();
        }
        self.end_seen = self.end_seen.max(end);
    }

    /// Takes note of a look. `false` if the stream ends before where it was seen to end: it may have lost messages, and use
    /// their sequences again.
    pub fn note(&mut self, look: &Look) -> bool {
        self.went_back |= look.last < self.end_seen;
        if self.went_back {
            return false;
        }
        self.end_seen = look.last;
        self.ends.note(look.at, look.last);
        // Ends of before the window are of no more use, also where nothing is ever purged.
        let _ = self.ends.before(look.at, look.duplicate_window);
        self.sizes.note(look.first, look.last, look.messages, look.bytes);
        true
    }

    /// What may go, if anything may.
    ///
    /// # Arguments
    /// `checkpoint`: the last sequence that is safe in a checkpoint. It stays, because a start compares it.
    /// `keeps`: messages that are kept all the same, unless they take half of the stream.
    pub fn purge(&mut self, look: &Look, checkpoint: u64, keeps: u64) -> Option<Purge> {
        if self.went_back {
            return None;
        }
        // Purging beyond the end would empty the stream, and move it on.
        let safe = checkpoint.min(self.end_seen);
        let settled = self.settled(look);
        let half = self.half(look);
        let old = safe.saturating_sub(keeps).max(half).min(safe).min(settled);
        let before = if look.is_filling() { old.max(half.min(safe)) } else { old };
        let early = before.saturating_sub(settled.max(look.first));
        (before > look.first).then_some(Purge { before, early })
    }

    /// Whether room waits for a checkpoint.
    pub fn wants_checkpoint(&self, look: &Look, checkpoint: u64, applied: u64) -> bool {
        let share = if look.is_filling() { CHECKPOINT_SHARE_FILLING } else { CHECKPOINT_SHARE };
        let is_much = |is: u64, most: u64| most > 0 && is > most / share;
        let checkpoint = checkpoint.max(look.first.saturating_sub(1));
        is_much(self.sizes.between(checkpoint, applied), look.bytes_max)
            || is_much(applied.saturating_sub(checkpoint), look.messages_max)
    }

    /// The last message that is known to be older than the duplicate window; 0 if none is.
    pub fn settled(&mut self, look: &Look) -> u64 {
        self.ends.before(look.at, look.duplicate_window).unwrap_or(0)
    }

    /// Bytes of the messages after one sequence up to and with another, as of the last look.
    pub fn bytes_between(&self, after: u64, up_to: u64) -> u64 {
        self.sizes.between(after, up_to)
    }

    /// Before which message the stream would have to be purged to be half full.
    fn half(&self, look: &Look) -> u64 {
        let over = |is: u64, most: u64| if most > 0 { is.saturating_sub(most / KEPT_SHARE) } else { 0 };
        let by_bytes = match over(look.bytes, look.bytes_max) {
            0 => 0,
            bytes => self.sizes.first_after(bytes),
        };
        match over(look.messages, look.messages_max) {
            0 => by_bytes,
            messages => by_bytes.max(look.first + messages),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u64 = 1_000_000;
    const WINDOW: Duration = Duration::from_secs(120);

    /// A stream of messages of one size, looked at after so many seconds.
    fn look(start: Instant, second: u64, (first, last): (u64, u64), size: u64) -> Look {
        let messages = (last + 1).saturating_sub(first);
        Look {
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

    /// What may go after two looks, a window and a second apart, if all but the newest `young` messages came before the first.
    fn purge_of(last: u64, size: u64, young: u64, checkpoint: u64, keeps: u64) -> Option<Purge> {
        let (mut retention, start) = (Retention::default(), Instant::now());
        assert!(retention.note(&look(start, 0, (1, last - young), size)));
        let now = look(start, 121, (1, last), size);
        assert!(retention.note(&now));
        retention.purge(&now, checkpoint, keeps)
    }

    #[test]
    fn what_is_kept_is_bounded_by_count_and_by_half_of_the_bytes() {
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
    fn young_messages_stay_until_the_stream_fills_up_and_give_way_then_the_oldest_first() {
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
    fn a_stream_that_is_limited_by_messages_makes_room_too() {
        let mut retention = Retention::default();
        let limited = Look { messages_max: 1_000, ..look(Instant::now(), 0, (1, 900), 10) };
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

    /// Where nothing is ever purged, nobody asks what is old.
    #[test]
    fn what_is_known_of_a_stream_that_is_never_purged_is_bounded() {
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
