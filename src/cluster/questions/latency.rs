//! After how long a second owner is asked.
//!
//! The delay follows the replies of late, as a connection's retransmission timer does (RFC 6298): their
//! smoothed time and four times its smoothed deviation. It is bounded on both sides: below, so that a quiet
//! shard's jitter does not double its questions, and above, so that a node that has just failed costs little.

use std::time::Duration;

use parking_lot::Mutex;

const FIRST: Duration = Duration::from_millis(30);
const LEAST: Duration = Duration::from_millis(8);
const MOST: Duration = Duration::from_millis(100);

/// The replies of one shard of late.
#[derive(Debug, Default)]
pub struct Latency(Mutex<Option<Smoothed>>);

#[derive(Debug, Clone, Copy)]
struct Smoothed {
    mean: f64,
    deviation: f64,
}

impl Latency {
    pub fn note(&self, took: Duration) {
        let took = took.as_secs_f64();
        let mut known = self.0.lock();
        *known = Some(match *known {
            None => Smoothed { mean: took, deviation: took / 2.0 },
            Some(Smoothed { mean, deviation }) => Smoothed {
                mean: mean + (took - mean) / 8.0,
                deviation: deviation + ((took - mean).abs() - deviation) / 4.0,
            },
        });
    }

    /// After how long a second owner is asked.
    pub fn hedge_after(&self) -> Duration {
        let known = *self.0.lock();
        known.map_or(FIRST, |known| {
            let delay = 4.0f64.mul_add(known.deviation, known.mean);
            Duration::try_from_secs_f64(delay).unwrap_or(MOST).clamp(LEAST, MOST)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_follows_the_replies_within_its_bounds() {
        let latency = Latency::default();
        assert_eq!(latency.hedge_after(), FIRST);
        for _ in 0..50 {
            latency.note(Duration::from_micros(300));
        }
        assert_eq!(latency.hedge_after(), LEAST);
        for _ in 0..50 {
            latency.note(Duration::from_millis(20));
        }
        let settled = latency.hedge_after();
        assert!((Duration::from_millis(19)..Duration::from_millis(25)).contains(&settled), "{settled:?}");
        latency.note(Duration::from_secs(10));
        assert_eq!(latency.hedge_after(), MOST);
    }
}
