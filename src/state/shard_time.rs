//! The time of a shard, and how it follows from the times of its messages.
//!
//! Knows: which times are believed. Must not know: what time brings.
//!
//! Instances close and are dropped, and entries expire, by the shard's time, which never runs backwards. One
//! message of a server whose clock is a month ahead would end a month's instances and entries for good. So a
//! message of more than an hour after the shard's time is a leap, and does not move that time. It is believed
//! once a message comes that is a minute after the first one of the leap, and forgotten once one comes that
//! is none. Nodes send ticks to quiet shards, so that hours without a job are no leap, and so that a leap is
//! judged soon.
//!
//! All of this follows from the messages alone: replicas and replays agree.

use std::time::Duration;

use crate::types::Timestamp;

/// A message that is later than this after the shard's time is a leap.
pub const LEAP: Duration = Duration::from_secs(60 * 60);
/// A leap is believed once a message comes that is so much later than its first one.
const BELIEVED_AFTER: Duration = Duration::from_secs(60);

/// What a shard knows of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShardTime {
    /// The effective time: the latest that is believed. It never decreases.
    pub effective: Timestamp,
    /// The time of the earliest message of a leap that is not believed yet.
    pub leap: Option<Timestamp>,
}

impl ShardTime {
    /// What is known after a message of this time.
    pub fn after(self, message: Timestamp) -> Self {
        let Self { effective, leap } = self;
        // The first message of a shard has nothing to be compared with, and nothing to destroy.
        let is_leap = |since: Timestamp| since != Timestamp::default() && message > since.plus(LEAP);
        if !is_leap(effective) {
            // A server's clock may be set back, or a new leader's clock may be behind. The time rises by the
            // least then, so that ties keep the order of the log.
            let effective = if message < effective { effective.next() } else { message };
            return Self { effective, leap: None };
        }
        match leap {
            // The message shows that time has passed since the first one of the leap. It may be another leap.
            Some(first) if message >= first.plus(BELIEVED_AFTER) && is_leap(first) => {
                Self { effective: first, leap: Some(message) }
            }
            Some(first) if message >= first.plus(BELIEVED_AFTER) => Self { effective: message, leap: None },
            Some(first) => Self { effective, leap: Some(first.min(message)) },
            None => Self { effective, leap: Some(message) },
        }
    }

    /// The time of the jobs of a message, after which this is known: the effective one, or the message's own
    /// while it is not known whether that is true. Nothing is closed or dropped by it, and no entry expires.
    pub fn of_message(self, message: Timestamp) -> Timestamp {
        if self.leap.is_some() { message } else { self.effective }
    }

    /// The latest time that an instance may begin at which a job has entered. While there is a leap, that is
    /// its end, and else the effective time.
    pub fn latest_begin(self) -> Timestamp {
        self.leap.map_or(self.effective, |first| first.plus(BELIEVED_AFTER))
    }
}

impl From<Timestamp> for ShardTime {
    fn from(effective: Timestamp) -> Self {
        Self { effective, leap: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000).expect("in range")
    }

    /// After messages of these times, in seconds after the tenth day.
    fn after(messages: &[i64]) -> ShardTime {
        let messages = messages.iter().map(|seconds| at(10 * DAY + seconds));
        messages.fold(ShardTime::from(at(10 * DAY)), ShardTime::after)
    }

    fn known(effective: i64, leap: Option<i64>) -> ShardTime {
        ShardTime { effective: at(10 * DAY + effective), leap: leap.map(|leap| at(10 * DAY + leap)) }
    }

    #[test]
    fn the_first_message_and_all_of_an_hour_at_most_are_believed_immediately() {
        assert_eq!(ShardTime::default().after(at(50 * DAY)), ShardTime::from(at(50 * DAY)));
        assert_eq!(after(&[HOUR]), known(HOUR, None));
        assert_eq!(after(&[HOUR, 2 * HOUR, 3 * HOUR]), known(3 * HOUR, None));
        let behind = after(&[-5, -5]);
        assert_eq!(behind.effective, at(10 * DAY).next().next());
    }

    #[test]
    fn a_leap_is_believed_after_a_minute_and_not_before() {
        assert_eq!(after(&[HOUR + 1]), known(0, Some(HOUR + 1)));
        assert_eq!(after(&[DAY, DAY + 1, DAY + 59]), known(0, Some(DAY)));
        assert_eq!(after(&[DAY, DAY + 59, DAY + MINUTE]), known(DAY + MINUTE, None));
        // The second is later than a minute, and no leap after the first.
        assert_eq!(after(&[DAY, DAY + HOUR]), known(DAY + HOUR, None));
    }

    #[test]
    fn a_leap_that_is_taken_back_leaves_nothing() {
        for back in [-DAY, 0, 5, HOUR] {
            let taken_back = after(&[40 * DAY, 40 * DAY + 5, back]);
            assert_eq!((taken_back.effective >= at(10 * DAY), taken_back.leap), (true, None), "{back}");
            assert!(taken_back.effective <= at(10 * DAY + HOUR), "{back}");
        }
        // A clock that is right and wrong by turns is never believed.
        let by_turns: Vec<i64> = (0..100).flat_map(|second| [second, 40 * DAY + 2 * second]).collect();
        assert_eq!(after(&by_turns), known(99, Some(40 * DAY + 198)));
    }

    /// A shard that was away for two days, of which one message is 40 days ahead.
    #[test]
    fn a_leap_within_a_leap_is_judged_by_itself() {
        // The nearer one takes the place of the other.
        assert_eq!(after(&[40 * DAY, 2 * DAY]), known(0, Some(2 * DAY)));
        assert_eq!(after(&[40 * DAY, 2 * DAY, 2 * DAY + MINUTE]), known(2 * DAY + MINUTE, None));
        // The further one says that the minute is over, and is another leap.
        assert_eq!(after(&[2 * DAY, 40 * DAY]), known(2 * DAY, Some(40 * DAY)));
        assert_eq!(after(&[2 * DAY, 40 * DAY, 2 * DAY + 5]), known(2 * DAY + 5, None));
        // So one message every two hours is believed with the next one.
        assert_eq!(after(&[2 * HOUR, 4 * HOUR, 6 * HOUR]), known(4 * HOUR, Some(6 * HOUR)));
    }

    #[test]
    fn jobs_of_a_leap_have_the_time_of_their_message() {
        let ahead = at(50 * DAY);
        assert_eq!(after(&[40 * DAY]).of_message(ahead), ahead);
        assert_eq!(after(&[]).of_message(at(0)), at(10 * DAY));
        assert_eq!(after(&[40 * DAY]).latest_begin(), at(50 * DAY + MINUTE));
        assert_eq!(after(&[5]).latest_begin(), at(10 * DAY + 5));
    }
}
