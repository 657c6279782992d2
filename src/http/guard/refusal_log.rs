//! Requests that are refused for who sends them: counted each, and told in the log now and then.
//!
//! Whoever tries tokens, or has one that was taken out, would fill the log; a line in ten seconds says as much.

use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::http::render::problem::Problem;
use crate::metrics::HTTP_UNAUTHORIZED_TOTAL;

/// How often the log says so at most.
const TELL_EVERY: Duration = Duration::from_secs(10);
/// So much of a path is told.
const PATH_CHARS_MAX: usize = 200;
/// The codes of these refusals, as metrics name them.
const REASONS: [&str; 5] =
    ["forbidden_board", "foreign_origin", "insufficient_scope", "invalid_token", "unauthorized"];

/// Where a request comes from, noted among its extensions.
#[derive(Debug, Clone, Copy)]
pub struct Client(pub IpAddr);

/// What is told of a refused request. Never its query, in which people put tokens.
#[derive(Debug, Clone, Copy)]
pub struct Refused<'a> {
    pub client: Option<Client>,
    pub method: &'a str,
    pub path: &'a str,
    /// The name of its token, if that is one of ours.
    pub token: Option<&'a str>,
}

/// Counts refusals.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    last: Option<Instant>,
    /// Refusals that the log knows nothing of.
    untold: u64,
}

impl Told {
    /// Whether to tell of a refusal now, and of how many others with it.
    fn tell(&mut self, now: Instant) -> Option<u64> {
        if self.last.is_some_and(|last| now.duration_since(last) < TELL_EVERY) {
            self.untold += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.untold))
    }
}

impl Refusals {
    pub fn new() -> Self {
        // There from the start, so that their rates can be asked for.
        for reason in REASONS {
            metrics::counter!(HTTP_UNAUTHORIZED_TOTAL, "reason" => reason).increment(0);
        }
        Self::default()
    }

    pub fn note(&self, problem: &Problem, refused: Refused<'_>) {
        let reason = problem.code();
        metrics::counter!(HTTP_UNAUTHORIZED_TOTAL, "reason" => reason).increment(1);
        let Some(others) = self.0.lock().tell(Instant::now()) else { return };
        let Refused { client, method, path, token } = refused;
        let path: String = path.chars().take(PATH_CHARS_MAX).collect();
        tracing::warn!(
            reason,
            client = client.map(|Client(address)| tracing::field::display(address)),
            token,
            method,
            ?path,
            others,
            "a request was refused; others: as many since this was last said"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_refusals_is_told_now_and_then_and_all_of_it() {
        let mut told = Told::default();
        let mut lines = Vec::new();
        for _ in 0..1_000 {
            lines.extend(told.tell(Instant::now()));
            tokio::time::advance(Duration::from_millis(25)).await;
        }
        assert_eq!(lines, [0, 399, 399]);
        assert_eq!(told.untold, 199);
    }
}
