//! The clock that messages are stamped by, as this machine knows it.
//!
//! With NATS that is its server's, and this machine's own may be wrong: which instances of a window there are
//! must not follow from it. How far the two are apart is learned from messages that come as soon as they are
//! stamped, such as what nodes say of themselves every two seconds. They are of one stream, whose leader
//! stands for all servers. Without NATS the two are one.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;

use crate::types::Timestamp;

/// Ahead by less, or behind, the clock is right: messages take time, and clocks are set by steps of some
/// milliseconds.
const TOLERATED_MICROS: i64 = 1_000_000;
/// Messages that say how far the clocks are apart: of a few, the one that took the least time is nearest to
/// it.
const KEPT: usize = 5;

#[derive(Debug, Default)]
pub struct MessageClock {
    /// How much later messages were received than they were stamped, in microseconds, by the two clocks.
    late: Mutex<VecDeque<i64>>,
}

impl MessageClock {
    /// Notes a message that was received when this machine's clock said `received`.
    pub fn note(&self, stamped: Timestamp, received: Timestamp) {
        let mut late = self.late.lock();
        if late.len() >= KEPT {
            late.pop_front();
        }
        late.push_back(received.as_micros().saturating_sub(stamped.as_micros()));
    }

    /// How far this machine's clock is ahead of the server's, in microseconds: negative if it is behind, and
    /// 0 within a second.
    pub fn skew_micros(&self) -> i64 {
        let ahead = self.late.lock().iter().min().copied().unwrap_or(0);
        if ahead.abs() > TOLERATED_MICROS { ahead } else { 0 }
    }

    /// The same in words. `None` within a second.
    pub fn skew(&self) -> Option<String> {
        let skew = self.skew_micros();
        let direction = if skew < 0 { "behind" } else { "ahead of" };
        let seconds = Duration::from_micros(skew.unsigned_abs()).as_secs();
        (skew != 0).then(|| format!("{seconds} seconds {direction} that of the NATS server"))
    }

    pub fn skew_seconds(&self) -> f64 {
        let skew = self.skew_micros();
        let seconds = Duration::from_micros(skew.unsigned_abs()).as_secs_f64();
        if skew < 0 { -seconds } else { seconds }
    }

    /// What a message would be stamped with now.
    pub fn now(&self) -> Timestamp {
        let now = jiff::Timestamp::now().as_microsecond();
        Timestamp::from_micros(now.saturating_sub(self.skew_micros())).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros).expect("in range")
    }

    #[test]
    fn what_took_the_least_time_says_how_far_the_clocks_are_apart() {
        let clock = MessageClock::default();
        assert_eq!((clock.skew_micros(), clock.skew()), (0, None), "nothing is known");
        let hour = 3_600_000_000;
        for (late, expect) in [
            // A machine that stood still for a minute, and one that did not.
            (60_000_000, 60_000_000),
            (20_000, 0),
            (90_000_000, 0),
            // The clock is set: back at once, ahead once nothing else is remembered.
            (-hour, -hour),
            (hour, -hour),
            (hour + 7, -hour),
            (hour + 9, -hour),
            (hour + 8, -hour),
            (hour + 8, hour),
        ] {
            clock.note(at(50 * hour), at(50 * hour + late));
            assert_eq!(clock.skew_micros(), expect, "{late}");
        }
        assert_eq!(clock.skew().as_deref(), Some("3600 seconds ahead of that of the NATS server"));
        let own = MessageClock::default().now().as_micros();
        assert!((own - hour - clock.now().as_micros()).abs() < 60_000_000, "{own}");
    }
}
