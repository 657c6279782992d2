//! Requests that are refused for who sends them. Each is counted; the log has a line now and then.
//!
//! A client that tries tokens, or that has a token which was removed, would fill the log. A line in ten
//! seconds says as much.

use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::http::render::problem::Problem;
use crate::metrics::HTTP_UNAUTHORIZED_TOTAL;

/// The least time between two lines.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// The most characters of a path in a line.
const PATH_CHARS_MAX: usize = 200;
/// The codes of these refusals, as metrics name them.
const REASONS: [&str; 6] = [
    "forbidden_board",
    "forbidden_profile",
    "foreign_origin",
    "insufficient_scope",
    "invalid_token",
    "unauthorized",
];

/// The client's address, which the connection puts among a request's extensions.
#[derive(Debug, Clone, Copy)]
pub struct ClientAddress(pub IpAddr);

/// What the log says of a refused request. Never its query, in which people put tokens.
#[derive(Debug, Clone, Copy)]
pub struct RefusedRequest<'a> {
    pub client: Option<ClientAddress>,
    pub method: &'a str,
    pub path: &'a str,
    /// The name of its token, if that is one of the node's.
    pub token: Option<&'a str>,
}

/// Counts refused requests.
#[derive(Debug, Default)]
pub struct RefusalLog(Mutex<LineLimit>);

/// Limits how often the log has a line.
#[derive(Debug, Default)]
struct LineLimit {
    last: Option<Instant>,
    /// Refusals since the last line.
    unlogged: u64,
}

impl LineLimit {
    /// Returns the number of refusals since the last line if this one may be logged; `None` if it may not.
    fn take_line(&mut self, now: Instant) -> Option<u64> {
        if self.last.is_some_and(|last| now.duration_since(last) < LINE_INTERVAL) {
            self.unlogged += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.unlogged))
    }
}

impl RefusalLog {
    pub fn new() -> Self {
        // The counters exist from the start, so that their rates can be asked for.
        for reason in REASONS {
            metrics::counter!(HTTP_UNAUTHORIZED_TOTAL, "reason" => reason).increment(0);
        }
        Self::default()
    }

    pub fn note(&self, problem: &Problem, refused: RefusedRequest<'_>) {
        let reason = problem.code();
        metrics::counter!(HTTP_UNAUTHORIZED_TOTAL, "reason" => reason).increment(1);
        let Some(others) = self.0.lock().take_line(Instant::now()) else { return };
        let RefusedRequest { client, method, path, token } = refused;
        let path: String = path.chars().take(PATH_CHARS_MAX).collect();
        tracing::warn!(
            reason,
            client = client.map(|ClientAddress(address)| tracing::field::display(address)),
            token,
            method,
            ?path,
            others,
            "a request was refused; `others` counts the refused requests since the last such line"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_refusals_gets_a_line_in_ten_seconds_that_counts_them_all() {
        let mut limit = LineLimit::default();
        let mut lines = Vec::new();
        for _ in 0..1_000 {
            lines.extend(limit.take_line(Instant::now()));
            tokio::time::advance(Duration::from_millis(25)).await;
        }
        assert_eq!(lines, [0, 399, 399]);
        assert_eq!(limit.unlogged, 199);
    }
}
