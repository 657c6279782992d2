//! The times of the embedded queue's messages: each later than the one before, so that ties keep the order of
//! arrival, and not led far astray by a clock that is wrong for a moment.
//!
//! Knows: a clock that leaps forward is believed only once it has stayed there. Until then times go on from
//! where the clock was, by the system's steady clock. Of a clock that is far behind the last message nobody
//! can say here which of the two is right: messages have its times, and the shard goes by its own
//! ([`ShardTime`](crate::state::ShardTime)), which never decreases.

use std::time::{Duration, Instant};

use crate::types::Timestamp;

/// A clock that is further ahead than this of where it should be has leapt.
const LEAP: Duration = Duration::from_secs(5 * 60);
/// How long it must have stayed there. After a suspended machine goes on, times are behind for so long.
const BELIEVED_AFTER: Duration = Duration::from_secs(60);
/// An operator is told of a clock that is further from the last message than this when the queue begins.
const APART: Duration = Duration::from_secs(60 * 60);

/// Gives messages their times.
pub struct MessageClock {
    /// The last time that was given.
    last: Timestamp,
    /// What the clock said when it was believed last, and when that was.
    believed: (Timestamp, Instant),
    leapt_at: Option<Instant>,
}

impl MessageClock {
    pub fn new() -> Self {
        Self { last: Timestamp::default(), believed: (now(), Instant::now()), leapt_at: None }
    }

    /// Times go on after that of the last message, and an operator is told if that is far from the clock.
    pub fn resume(&mut self, last: Timestamp) {
        self.last = last;
        let clock = now();
        match apart(clock, last) {
            Some(Apart::Ahead) => tracing::warn!(
                %clock, %last,
                "this machine's clock is far ahead of the shard's last message: the service was stopped for so \
                 long, or the clock is wrong. Nothing is closed, dropped or expired by the clock until it has \
                 stood there for a minute. If it is wrong, stop the service within that minute and set it right"
            ),
            Some(Apart::Behind) => tracing::warn!(
                %clock, %last,
                "this machine's clock is far behind the shard's last message: it is wrong, or it was wrong when \
                 that message came. If ranktree_time_ahead_seconds is 0, the shard never believed that message, \
                 and nothing is lost. Otherwise the shard's time goes on by a microsecond with each message, and \
                 windows do not change, until the clock has reached it"
            ),
            None => {}
        }
    }

    /// The time of the next message.
    pub fn next(&mut self) -> Timestamp {
        let read = self.read(now(), Instant::now());
        // The last message was stamped by a clock that was far ahead of this one.
        let has_gone_back = read.plus(LEAP) < self.last;
        self.last = if has_gone_back { read } else { read.max(self.last.next()) };
        self.last
    }

    /// # Arguments
    /// `says`: what the clock says. `steady`: the steady clock.
    fn read(&mut self, says: Timestamp, steady: Instant) -> Timestamp {
        let (before, at) = self.believed;
        let expected = before.plus(steady.saturating_duration_since(at));
        if says <= expected.plus(LEAP) {
            if self.leapt_at.take().is_some() {
                tracing::warn!("the clock is back where it was");
            }
            self.believed = (says, steady);
            return says;
        }
        let since = *self.leapt_at.get_or_insert_with(|| {
            tracing::warn!(
                clock = %says, expected = %expected,
                "the clock has leapt forward; it is believed if it stays there for {} seconds",
                BELIEVED_AFTER.as_secs()
            );
            steady
        });
        if steady.saturating_duration_since(since) < BELIEVED_AFTER {
            return expected;
        }
        tracing::warn!(clock = %says, "the clock has stayed where it leapt to, and is believed");
        (self.believed, self.leapt_at) = ((says, steady), None);
        says
    }
}

/// How a clock differs from the last message.
#[derive(Debug, PartialEq, Eq)]
enum Apart {
    Ahead,
    Behind,
}

fn apart(clock: Timestamp, last: Timestamp) -> Option<Apart> {
    // A shard without messages has nothing to be compared with.
    if last == Timestamp::default() {
        return None;
    }
    if clock > last.plus(APART) {
        return Some(Apart::Ahead);
    }
    (last > clock.plus(APART)).then_some(Apart::Behind)
}

fn now() -> Timestamp {
    Timestamp::from_micros(jiff::Timestamp::now().as_microsecond()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000).expect("in range")
    }

    #[test]
    fn leap_of_the_clock_is_believed_only_if_it_lasts() {
        let begin = Instant::now();
        let mut clock = MessageClock { last: at(0), believed: (at(1_000), begin), leapt_at: None };
        let mut read = |says: i64, after: u64| clock.read(at(says), begin + Duration::from_secs(after));
        assert_eq!(read(1_001, 1), at(1_001));
        // One wrong reading: the time goes on steadily.
        assert_eq!(read(2_000_000_000, 2), at(1_002));
        assert_eq!(read(1_003, 3), at(1_003));
        // Small leaps, and any number backwards, are followed.
        assert_eq!(read(1_300, 4), at(1_300));
        assert_eq!(read(900, 5), at(900));
        // It leaps and stays.
        assert_eq!(read(90_000, 10), at(905));
        assert_eq!(read(90_059, 69), at(964));
        assert_eq!(read(90_060, 70), at(90_060));
        assert_eq!(read(90_061, 71), at(90_061));
    }

    #[test]
    fn times_rise_strictly_and_go_back_with_a_clock_that_was_far_ahead() {
        let rises = |clock: &mut MessageClock| {
            let given: Vec<Timestamp> = (0..100).map(|_| clock.next()).collect();
            assert!(given.is_sorted_by(|a, b| a < b), "{given:?}");
            given
        };
        let mut clock = MessageClock::new();
        let before = rises(&mut clock);
        clock.resume(now().plus(LEAP / 2));
        let later = rises(&mut clock);
        assert!(before[99] < later[0], "a little ahead is as if the clock had been set back");
        for ahead in [now().plus(40 * 24 * APART), Timestamp::MAX] {
            clock.resume(ahead);
            let back = rises(&mut clock);
            assert!(back[0] < now().plus(LEAP), "{back:?}");
        }
    }

    #[test]
    fn a_clock_is_compared_with_the_last_message() {
        let last = at(1_000_000);
        assert_eq!(apart(last, last), None);
        assert_eq!(apart(last.plus(APART), last), None);
        assert_eq!(apart(last.plus(2 * APART), last), Some(Apart::Ahead));
        assert_eq!(apart(last, last.plus(2 * APART)), Some(Apart::Behind));
        assert_eq!(apart(last, Timestamp::default()), None, "a new shard");
    }
}
