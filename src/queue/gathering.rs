//! For how many requests those who sync wait: a writer before it commits, the publish batcher before it sends
//! a message.
//!
//! Clients that were just answered mostly come back at once. If the first of them were served alone, the
//! others would wait for the sync after that: batches would be small and large in turn. So after a batch
//! about half as many are waited for as the last two batches had: the other half comes while these are
//! synced.
//!
//! A NATS server that syncs each message has a core busy with that, so fewer messages are worth a longer
//! wait. There nearly all are waited for who were just answered, beside those who wait already.
//!
//! Knows: how long is waited at most, and that a client that is alone does not wait. Must not know: what is
//! waited for, and how.

use std::time::{Duration, Instant};

/// A client that comes back at once is there by then.
const WAIT_MAX: Duration = Duration::from_millis(1);
/// Where nearly all are waited for, they need longer: they share the cores, and each takes some 30 µs of them
/// to come back. Whoever waits for them looks whether anybody still comes.
const NEARLY_ALL_WAIT_MAX: Duration = Duration::from_millis(3);
/// Nearly all are waited for no longer than this many batches take.
const NEARLY_ALL_BATCHES: u32 = 4;
/// A batch weighs so much in the mean of what batches take: a slow one among others is soon forgotten.
const WEIGHT: u32 = 4;

/// What the last batches were like.
#[derive(Default)]
pub struct Gathering {
    /// How many messages the last batch had, and the one before it.
    last: usize,
    before: usize,
    /// Whether fewer came than were waited for.
    fell_short: bool,
    handed_out: Option<Instant>,
    /// What a batch takes, from its hand-out until it is synced.
    takes: Duration,
}

impl Gathering {
    /// A batch is synced. How many messages should be waited for now, and until when.
    pub fn begin(&mut self, now: Instant) -> (usize, Instant) {
        self.note_synced(now);
        let wanted = if self.fell_short { self.last } else { (self.last + self.before).div_ceil(2) };
        (wanted.max(1), now + (self.takes / 2).min(WAIT_MAX))
    }

    fn note_synced(&mut self, now: Instant) {
        if let Some(at) = self.handed_out.take() {
            let took = now.saturating_duration_since(at);
            // Whatever else was done meanwhile is no reason to wait longer.
            self.takes = match self.takes {
                Duration::ZERO => took,
                mean => (mean * (WEIGHT - 1) + took.min(mean * 2)) / WEIGHT,
            };
        }
    }

    /// As [`Self::begin`], where a sync takes processor time: how many of the batch's clients should be
    /// waited for, nearly all of them, and half if fewer came the last time than were waited for.
    pub fn begin_with_nearly_all(&mut self, now: Instant) -> (usize, Instant) {
        self.note_synced(now);
        let back = match self.last {
            // It is alone.
            0 | 1 => 0,
            last if self.fell_short => last / 2,
            last => last - last / 10,
        };
        (back, now + (self.takes * NEARLY_ALL_BATCHES).min(NEARLY_ALL_WAIT_MAX))
    }

    /// A batch is handed out.
    ///
    /// # Arguments
    /// `wanted`: how many messages were waited for. `found`: how many were there then. `messages`: how many
    /// the batch has.
    pub fn end(&mut self, wanted: usize, found: usize, messages: usize, now: Instant) {
        self.fell_short = found < wanted;
        self.before = std::mem::replace(&mut self.last, messages);
        self.handed_out = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAKES: Duration = Duration::from_micros(300);

    /// What a writer waits for after batches of so many, which all take as long.
    fn wanted_after(batches: &[usize]) -> (usize, Duration) {
        let (mut gathering, mut now) = (Gathering::default(), Instant::now());
        for messages in batches {
            let (wanted, _) = gathering.begin(now);
            gathering.end(wanted, wanted.max(*messages), *messages, now);
            now += TAKES;
        }
        let (wanted, until) = gathering.begin(now);
        (wanted, until - now)
    }

    #[test]
    fn a_client_that_is_alone_is_not_kept_waiting() {
        assert_eq!(wanted_after(&[]).0, 1);
        assert_eq!(wanted_after(&[1]).0, 1);
        assert_eq!(wanted_after(&[1, 1, 1]).0, 1);
    }

    #[test]
    fn uneven_batches_become_even() {
        assert_eq!(wanted_after(&[2, 48]), (25, TAKES / 2));
        assert_eq!(wanted_after(&[2, 48, 25]).0, 37);
        assert_eq!(wanted_after(&[2, 48, 25, 25]).0, 25);
        assert_eq!(wanted_after(&[50, 50]).0, 50);
    }

    #[test]
    fn clients_that_stay_away_are_waited_for_once() {
        let (mut gathering, now) = (Gathering::default(), Instant::now());
        gathering.end(1, 50, 50, now);
        gathering.end(50, 50, 50, now);
        let (wanted, _) = gathering.begin(now + TAKES);
        assert_eq!(wanted, 50);
        gathering.end(wanted, 3, 3, now + TAKES);
        assert_eq!(gathering.begin(now + TAKES * 2).0, 3);
    }

    #[test]
    fn nearly_all_that_were_answered_are_waited_for_unless_they_stay_away() {
        let (mut gathering, now) = (Gathering::default(), Instant::now());
        gathering.end(1, 1, 1, now);
        let now = now + TAKES;
        assert_eq!(gathering.begin_with_nearly_all(now), (0, now + 4 * TAKES), "it is alone");
        for (answered, back) in [(2, 2), (9, 9), (50, 45)] {
            gathering.end(0, answered, answered, now);
            assert_eq!(gathering.begin_with_nearly_all(now).0, back);
        }
        gathering.end(45, 40, 40, now);
        assert_eq!(gathering.begin_with_nearly_all(now).0, 20);
        gathering.takes = Duration::from_secs(1);
        assert_eq!(gathering.begin_with_nearly_all(now).1, now + NEARLY_ALL_WAIT_MAX);
    }

    #[test]
    fn no_wait_is_long() {
        let (mut gathering, mut now) = (Gathering::default(), Instant::now());
        for took in [100, 100, 900_000, 100, 100, 900_000, 900_000, 900_000, 900_000, 900_000, 900_000] {
            gathering.end(1, 5, 5, now);
            now += Duration::from_micros(took);
            let (_, until) = gathering.begin(now);
            assert!(until - now <= WAIT_MAX);
            if took == 100 {
                assert!(until - now <= Duration::from_micros(100), "{:?}", until - now);
            }
        }
    }
}
