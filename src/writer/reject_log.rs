//! Logs rejected jobs, at a limited rate: at most one line per reason every ten seconds.
//!
//! Knows: how many jobs were rejected since the last line, and one example. Shared by all shards of a
//! process, so that more shards do not mean more lines. The example holds what clients sent, which may be
//! anything, so whatever looks like a token is redacted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::job::RejectCode;
use crate::storage::codec::RejectRecord;
use crate::types::{Sequence, ShardId};

/// The least time between two lines for a reason.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// Bytes of a job that are logged.
const SHOWN_BYTES: usize = 300;
/// What every token of ours begins with; see `access::secret`.
const TOKEN_START: &str = "rkt_";
const REDACTED: &str = "rkt_***";

/// Rejections that are not logged yet.
#[derive(Default)]
pub struct RejectLog {
    /// Whether there is anything to log. Writers check it after each batch.
    has_unlogged: AtomicBool,
    reasons: Mutex<BTreeMap<RejectCode, Unlogged>>,
}

#[derive(Default)]
struct Unlogged {
    count: u64,
    example: Option<Example>,
    last_logged: Option<Instant>,
}

/// A rejected job, as it may be logged.
#[derive(Debug, PartialEq, Eq)]
struct Example {
    shard: ShardId,
    sequence: Sequence,
    index: u32,
    detail: String,
    job: String,
}

impl RejectLog {
    /// Counts rejected jobs, once they are stored.
    pub fn note(&self, shard: ShardId, rejects: &[RejectRecord]) {
        if rejects.is_empty() {
            return;
        }
        let mut reasons = self.reasons.lock();
        for reject in rejects {
            let unlogged = reasons.entry(reject.code).or_default();
            unlogged.count += 1;
            unlogged.example.get_or_insert_with(|| Example {
                shard,
                sequence: reject.sequence,
                index: reject.index,
                detail: redact_tokens(&reject.detail),
                job: shown(&reject.job),
            });
        }
        self.has_unlogged.store(true, Ordering::Relaxed);
    }

    /// Logs the reasons that are due.
    pub fn log_due(&self) {
        if !self.has_unlogged.load(Ordering::Relaxed) {
            return;
        }
        for (reason, count, Example { shard, sequence, index, detail, job }) in self.take_due(Instant::now())
        {
            tracing::warn!(
                %reason,
                jobs = count,
                %shard,
                %sequence,
                index,
                detail,
                job,
                "jobs were rejected; `jobs` counts those since the last such line, of which one is shown. GET /v1/rejects lists all"
            );
        }
    }

    fn take_due(&self, now: Instant) -> Vec<(RejectCode, u64, Example)> {
        let mut due = Vec::new();
        let mut reasons = self.reasons.lock();
        let mut has_unlogged = false;
        for (reason, unlogged) in reasons.iter_mut().filter(|(_, unlogged)| unlogged.count > 0) {
            let is_due = unlogged.last_logged.is_none_or(|last| now.duration_since(last) >= LOG_INTERVAL);
            match unlogged.example.take_if(|_| is_due) {
                Some(example) => {
                    due.push((*reason, std::mem::take(&mut unlogged.count), example));
                    unlogged.last_logged = Some(now);
                }
                None => has_unlogged = true,
            }
        }
        self.has_unlogged.store(has_unlogged, Ordering::Relaxed);
        due
    }
}

/// The beginning of a job, as a line of text.
fn shown(job: &[u8]) -> String {
    // Redact before truncating: half of a token would not look like one.
    let text = redact_tokens(&String::from_utf8_lossy(job));
    let mut end = text.len().min(SHOWN_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let (start, rest) = text.split_at(end);
    if rest.is_empty() { text } else { format!("{start}...") }
}

fn redact_tokens(text: &str) -> String {
    let is_of_token = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut parts = text.split(TOKEN_START);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(REDACTED);
        out.push_str(part.trim_start_matches(is_of_token));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Timestamp;

    fn reject(code: RejectCode, sequence: u64, job: &[u8]) -> RejectRecord {
        let (sequence, detail) = (Sequence(sequence), "why".to_owned());
        let (job, time) = (job.to_vec(), Timestamp::default());
        RejectRecord { sequence, index: 0, code, detail, job, time, board: None }
    }

    #[test]
    fn each_reason_is_logged_every_ten_seconds_with_count_and_first_example() {
        let (log, start) = (RejectLog::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let logged = |seconds| -> Vec<(RejectCode, u64, u64)> {
            let due = log.take_due(at(seconds)).into_iter();
            due.map(|(reason, count, example)| (reason, count, example.sequence.0)).collect()
        };
        let bad = |sequence| reject(RejectCode::BadScore, sequence, b"{}");
        assert_eq!(logged(0), []);
        log.note(ShardId(0), &[bad(1), bad(2)]);
        assert_eq!(logged(0), [(RejectCode::BadScore, 2, 1)]);
        log.note(ShardId(1), &[bad(3), reject(RejectCode::Malformed, 4, b"x"), bad(5)]);
        assert_eq!(logged(9), [(RejectCode::Malformed, 1, 4)]);
        log.note(ShardId(0), &[bad(6)]);
        assert_eq!(logged(10), [(RejectCode::BadScore, 3, 3)]);
        assert!(!log.has_unlogged.load(Ordering::Relaxed));
        assert_eq!(logged(100), []);
        log.note(ShardId(0), &[]);
        assert_eq!(logged(100), []);
    }

    #[test]
    fn an_example_shows_the_start_of_the_job_and_no_token() {
        for (job, expected) in [
            (&b"{\"member\":\"m\"}"[..], "{\"member\":\"m\"}".to_owned()),
            (b"\xff", "\u{fffd}".to_owned()),
            (b"Bearer rkt_abc-DEF_12 x rkt_", "Bearer rkt_*** x rkt_***".to_owned()),
            (b"rkt_rkt_secret\"", "rkt_***rkt_***\"".to_owned()),
            (&[b'x'; 300], "x".repeat(300)),
            (&[b'x'; 301], "x".repeat(300) + "..."),
            ("\u{e9}".repeat(200).as_bytes(), "\u{e9}".repeat(150) + "..."),
        ] {
            assert_eq!(shown(job), expected);
        }
        let cut = shown(&[&[b'x'; 292], &b"rkt_0123456789"[..]].concat());
        assert!(!cut.contains("0123"), "{cut}");
    }
}
