//! For how many requests those who sync wait: a writer before it commits, the publish batcher before it sends
//! a message.
//!
//! Clients that were just answered mostly come back at once. If the first of them were served alone, the
//! others would wait for the sync after that: batches would be small and large in turn. So after a batch
//! about half as many are waited for as the last two batches had: the other half comes while these are
//! synced.
//!
//! Knows: nobody waits for long. The wait is less than half as long as a batch takes, and for a client that
//! is alone there is none. Must not know: what is waited for, and how.

use std::time::{Duration, Instant};

/// A client that comes back at once is there by then.
const WAIT_MAX: Duration = Duration::from_millis(1);
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
        if let Some(at) = self.handed_out.take() {
            let took = now.saturating_duration_since(at);
            // Whatever else was done meanwhile is no reason to wait longer.
            self.takes = match self.takes {
                Duration::ZERO => took,
                mean => (mean * (WEIGHT - 1) + took.min(mean * 2)) / WEIGHT,
            };
        }
        let wanted = if self.fell_short { self.last } else { (self.last + self.before).div_ceil(2) };
        (wanted.max(1), now + (self.takes / 2).min(WAIT_MAX))
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
