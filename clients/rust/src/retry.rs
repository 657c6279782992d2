//! What may be sent again, and when. Knows nothing of connections.

use std::time::Duration;

use crate::error::Problem;

/// A pause between tries grows from here to `PAUSE_MAX`.
const PAUSE_MIN: Duration = Duration::from_millis(50);
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(2);

/// How long to wait after a try, counted from 0.
pub(crate) fn pause(number: u32) -> Duration {
    let longest = PAUSE_MIN.saturating_mul(2_u32.saturating_pow(number.min(16))).min(PAUSE_MAX);
    // Spread, so that clients that failed at the same moment do not come back at the same moment.
    longest.mul_f64(0.5 + fastrand::f64() / 2.0)
}

/// Whether a request that was refused may be sent again as it is.
///
/// A write may be only if the service says that it is overloaded, and has stored no part of it.
pub(crate) fn is_repeatable(is_read: bool, problem: &Problem) -> bool {
    let is_overloaded = problem.code == "overloaded";
    if problem.status != 503 {
        false
    } else if is_read {
        is_overloaded || problem.code == "shard_unavailable"
    } else {
        is_overloaded && problem.token.is_none() && problem.results.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_two_seconds() {
        for (number, longest) in [(0, 50), (1, 100), (5, 1_600), (6, 2_000), (1_000, 2_000)] {
            let longest = Duration::from_millis(longest);
            let pause = pause(number);
            assert!(longest / 2 <= pause && pause <= longest, "{pause:?} after try {number}");
        }
    }

    #[test]
    fn writes_are_sent_again_only_if_no_part_of_them_was_stored() {
        for (is_read, status, body, expected) in [
            (true, 503, r#"{"code":"overloaded"}"#, true),
            (true, 503, r#"{"code":"shard_unavailable"}"#, true),
            (true, 503, r#"{"code":"shard_damaged"}"#, false),
            (true, 500, r#"{"code":"internal"}"#, false),
            (false, 503, r#"{"code":"overloaded"}"#, true),
            (false, 503, r#"{"code":"overloaded","token":"0:1"}"#, false),
            (false, 503, r#"{"code":"overloaded","results":[{"stored":true}]}"#, false),
            (false, 503, r#"{"code":"shard_unavailable"}"#, false),
            (false, 503, r#"{"code":"commit_unknown"}"#, false),
        ] {
            let problem = Problem::read(status, body.as_bytes(), None);
            assert_eq!(is_repeatable(is_read, &problem), expected, "{is_read} {body}");
        }
    }
}
