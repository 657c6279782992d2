//! When each operation of an open loop is due, whatever became of those before it.
//!
//! A generator that waits for an answer before it sends the next request sends less while the service is
//! slow, and so leaves out what it was to measure ("coordinated omission"). Here the schedule is fixed
//! beforehand, and latency counts from when an operation was due.

use std::time::Duration;

const PICOSECONDS: u128 = 1_000;

/// Operations at equal distances, the first at once.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// To the picosecond, so that a million operations a second do not drift apart from it.
    interval_ps: u128,
}

impl Schedule {
    /// `None` for a rate that is not above 0, or beyond a billion operations a second.
    pub fn per_second(operations: f64) -> Option<Self> {
        let seconds = operations.recip();
        if !(1e-9..=1e9).contains(&seconds) {
            return None;
        }
        // A thousand intervals, whose nanoseconds are the picoseconds of one.
        let interval_ps = Duration::from_secs_f64(seconds * 1_000.0).as_nanos();
        Some(Self { interval_ps: interval_ps.max(1) })
    }

    /// When the operation of this number is due, after the start.
    pub fn due(&self, number: u64) -> Duration {
        let nanos = u128::from(number) * self.interval_ps / PICOSECONDS;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many operations are due once this much time has passed.
    pub fn count(&self, elapsed: Duration) -> u64 {
        let count = elapsed.as_nanos() * PICOSECONDS / self.interval_ps + 1;
        u64::try_from(count).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_due_at_equal_distances_and_do_not_drift() {
        for rate in [0.5, 1.0, 3.0, 1_000.0, 333_333.0, 7_000_000.0] {
            let schedule = Schedule::per_second(rate).expect("a good rate");
            assert_eq!(schedule.due(0), Duration::ZERO);
            assert_eq!(schedule.count(Duration::ZERO), 1);
            let hour = schedule.count(Duration::from_secs(3_600));
            let expected = Duration::from_secs(3_600).as_secs_f64() * rate;
            let ratio = f64::from(u32::try_from(hour / 100).expect("it fits")) * 100.0 / expected;
            assert!(rate < 1_000.0 || (0.9999..1.0001).contains(&ratio), "{rate}: {hour} in an hour");
            for number in [1, 10, 12_345] {
                let due = schedule.due(number);
                let until_then = schedule.count(due + Duration::from_nanos(1));
                assert_eq!(until_then, number + 1, "{rate}: all up to {number} are due at {due:?}");
            }
        }
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e10] {
            assert!(Schedule::per_second(bad).is_none(), "{bad}");
        }
    }
}
