//! How many of the stored jobs the service applied and rejected, by its own counts before and after a run.
//!
//! Knows: which of the service's metrics count jobs. Over NATS nothing else says what was applied and what
//! was rejected, and over HTTP nothing else where an answer says only that a job is stored.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::loadgen::http::Connection;
use crate::loadgen::summary::AppliedSummary;
use crate::metrics::{JOBS_APPLIED_TOTAL, JOBS_REJECTED_TOTAL};
use crate::types::decimal;

/// Between two reads of the counts while the service still applies jobs.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// A service whose counts do not change for so long is not waited for.
const STALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Jobs that a service has counted since it was started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counted {
    applied: u64,
    rejected: BTreeMap<String, u64>,
}

impl Counted {
    /// Reads metrics as Prometheus has them.
    fn read(text: &str) -> Self {
        let mut counted = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, rest)) = line.split_once('{') else { continue };
            let Some((labels, value)) = rest.rsplit_once("} ") else { continue };
            let Some(count) = decimal::<u64>(value) else { continue };
            if name == JOBS_APPLIED_TOTAL {
                counted.applied += count;
            } else if name == JOBS_REJECTED_TOTAL
                && let Some(reason) = labels.split("reason=\"").nth(1).and_then(|rest| rest.split('"').next())
            {
                *counted.rejected.entry(reason.to_owned()).or_default() += count;
            }
        }
        counted
    }

    /// What was counted since; `None` if the service counts anew.
    fn since(&self, before: &Self) -> Option<Self> {
        let mut since =
            Self { applied: self.applied.checked_sub(before.applied)?, rejected: BTreeMap::new() };
        for (reason, count) in &self.rejected {
            let more = count.checked_sub(before.rejected.get(reason).copied().unwrap_or(0))?;
            if more > 0 {
                since.rejected.insert(reason.clone(), more);
            }
        }
        Some(since)
    }

    fn done(&self) -> u64 {
        self.applied + self.rejected.values().sum::<u64>()
    }
}

/// A service whose counts are looked at.
pub struct Watched {
    connection: Connection,
    /// An error: why they are not known.
    before: Result<Counted, String>,
}

impl Watched {
    /// Before the first job is sent.
    pub async fn begin(mut connection: Connection) -> Self {
        let before = look(&mut connection).await;
        Self { connection, before }
    }

    /// After the last one was stored: looks at once, and again until all is applied or rejected, or nothing
    /// goes on any more.
    ///
    /// # Arguments
    /// `stored`: jobs that were sent and may be counted by now.
    pub async fn end(mut self, stored: u64) -> AppliedSummary {
        match self.follow(stored).await {
            Ok(applied) => applied,
            Err(problem) => AppliedSummary::unknown(stored, problem),
        }
    }

    async fn follow(&mut self, stored: u64) -> Result<AppliedSummary, String> {
        let before = self.before.clone()?;
        let started = Instant::now();
        let (mut at_end, mut progress) = (None, (0, started));
        loop {
            let counted = look(&mut self.connection).await?.since(&before);
            let counted =
                counted.ok_or("the service was restarted during the run, and counts from zero again")?;
            let done = counted.done();
            let at_end = *at_end.get_or_insert(counted.applied);
            if done > progress.0 {
                progress = (done, Instant::now());
            }
            let is_done = done >= stored;
            if is_done || progress.1.elapsed() >= STALL_TIMEOUT {
                return Ok(AppliedSummary {
                    jobs_stored: stored,
                    jobs_applied: Some(counted.applied),
                    jobs_applied_at_end: Some(at_end),
                    caught_up_seconds: is_done.then(|| started.elapsed().as_secs_f64()),
                    jobs_rejected: counted.rejected,
                    problem: None,
                });
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }
}

async fn look(connection: &mut Connection) -> Result<Counted, String> {
    let text = connection.metrics().await.map_err(|error| error.detail)?;
    Ok(Counted::read(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_summed_over_shards_and_told_since_before() {
        let text = |applied: u64, bad: u64| {
            format!(
                "# HELP ranktree_jobs_applied_total Jobs applied\nranktree_jobs_applied_total{{shard=\"0\"}} {applied}\n\
                 ranktree_jobs_applied_total{{shard=\"1\"}} 5\nranktree_members{{shard=\"0\"}} 7\nranktree_build_info 1\n\
                 ranktree_jobs_rejected_total{{shard=\"0\",reason=\"bad_score\"}} {bad}\n\
                 ranktree_jobs_rejected_total{{shard=\"1\",reason=\"bad_score\"}} 1\n\
                 ranktree_jobs_rejected_total{{shard=\"1\",reason=\"malformed\"}} 2\n"
            )
        };
        let (before, after) = (Counted::read(&text(10, 0)), Counted::read(&text(13, 4)));
        assert_eq!((before.applied, before.done()), (15, 18));
        let since = after.since(&before).expect("it went on counting");
        assert_eq!(
            (since.applied, since.rejected.clone()),
            (3, BTreeMap::from([("bad_score".to_owned(), 4)]))
        );
        assert_eq!(since.done(), 7);
        assert_eq!(before.since(&after), None, "it counts from zero again");
    }
}
