//! The retry policy: how long to wait before the next try, and when to give up.

use std::time::{Duration, Instant};

/// How long to go on trying where nothing else is said.
pub const RETRY_FOR: Duration = Duration::from_secs(60);
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The tries of one request: pauses grow from one to the next.
pub struct Backoff {
    failing_since: Option<Instant>,
    pause: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { failing_since: None, pause: PAUSE_FIRST }
    }
}

impl Backoff {
    /// Whether a try has failed before.
    pub fn has_failed(&self) -> bool {
        self.failing_since.is_some()
    }

    /// A try has failed: how long to wait before the next one, or `None` to give up.
    ///
    /// # Arguments
    /// `at_least`: what the service asked for.
    /// `retry_for`: how long after the first failure the last try may be.
    pub fn pause(&mut self, at_least: Duration, retry_for: Duration) -> Option<Duration> {
        let since = *self.failing_since.get_or_insert_with(Instant::now);
        let pause = self.pause.max(at_least);
        // No sum: a service may ask to wait for longer than a duration can say.
        if pause > retry_for.saturating_sub(since.elapsed()) {
            return None;
        }
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_are_at_least_what_the_service_asks_for() {
        let mut backoff = Backoff::default();
        let pauses: Vec<_> = (0..8)
            .filter_map(|_| backoff.pause(Duration::ZERO, RETRY_FOR))
            .map(|pause| pause.as_millis())
            .collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        assert_eq!(backoff.pause(Duration::from_secs(7), RETRY_FOR), Some(Duration::from_secs(7)));
    }

    #[test]
    fn a_pause_beyond_the_time_for_retries_gives_up() {
        // Longer than there is, and so long that a sum of it and anything is no duration any more.
        for asked in [Duration::from_secs(61), Duration::from_secs(u64::MAX)] {
            assert_eq!(Backoff::default().pause(asked, RETRY_FOR), None);
        }
        assert_eq!(Backoff::default().pause(Duration::ZERO, Duration::ZERO), None);
    }
}
