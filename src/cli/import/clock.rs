//! The times of rows that have none: each is a microsecond after the one before, so that equal scores keep
//! the order of their file, whichever connection is faster.

use jiff::fmt::rfc2822;

use crate::cli::client::Client;
use crate::types::Timestamp;

/// A smaller difference of clocks is not told from the time that an answer takes.
const DIFFERENCE_MIN_MICROS: i64 = 2_000_000;

pub struct Clock {
    next: i64,
}

impl Clock {
    /// Begins now, by the clock of the service where that differs: a time ahead of it would be refused.
    pub fn of_service(client: &Client) -> Self {
        let now = jiff::Timestamp::now().as_microsecond();
        let answer = client.get(&format!("{}/healthz", client.base()));
        let theirs = answer.ok().and_then(|answer| answer.date);
        let theirs = theirs.and_then(|date| rfc2822::parse(&date).ok());
        let theirs = theirs.map(|date| date.timestamp().as_microsecond());
        Self::starting(now, theirs)
    }

    fn starting(now: i64, theirs: Option<i64>) -> Self {
        let differs = |theirs: &i64| theirs.abs_diff(now) > DIFFERENCE_MIN_MICROS.unsigned_abs();
        Self { next: theirs.filter(differs).unwrap_or(now) }
    }

    /// The time of the next row. Rows are sent at less than a million a second, so no time is ahead of the
    /// clock.
    pub fn tick(&mut self) -> Timestamp {
        let time = Timestamp::from_micros(self.next).unwrap_or(Timestamp::MAX);
        self.next += 1;
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_later_than_the_one_before_by_the_clock_of_the_service() {
        const DAY: i64 = 86_400_000_000;
        for (theirs, expect) in [
            (None, DAY),
            (Some(DAY - 900_000), DAY),
            (Some(2 * DAY), 2 * DAY),
            (Some(DAY - 600_000_000), DAY - 600_000_000),
        ] {
            let mut clock = Clock::starting(DAY, theirs);
            let times = [clock.tick(), clock.tick(), clock.tick()].map(Timestamp::as_micros);
            assert_eq!(times, [expect, expect + 1, expect + 2]);
        }
    }
}
