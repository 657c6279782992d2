//! How many of the stored jobs the service applied and rejected, by its own counts before and after a run.
//!
//! Knows: which of the service's metrics count jobs. Over NATS nothing else says what was applied and what
//! was rejected, and over HTTP nothing else where an answer says only that a job is stored. A node counts the
//! jobs of its own shards only, so those of the others are asked of an owner.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::loadgen::http::Connection;
use crate::loadgen::service::Service;
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
    ///
    /// # Arguments
    /// `shards`: those that are counted; `None`: all that the metrics are of.
    fn read(text: &str, shards: Option<&BTreeSet<u16>>) -> Self {
        let mut counted = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, rest)) = line.split_once('{') else { continue };
            let Some((labels, value)) = rest.rsplit_once("} ") else { continue };
            let Some(count) = decimal::<u64>(value) else { continue };
            let shard = label(labels, "shard").and_then(decimal::<u16>);
            if shards.is_some_and(|counted| shard.is_none_or(|shard| !counted.contains(&shard))) {
                continue;
            }
            if name == JOBS_APPLIED_TOTAL {
                counted.applied += count;
            } else if name == JOBS_REJECTED_TOTAL
                && let Some(reason) = label(labels, "reason")
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

    fn add(&mut self, other: Self) {
        self.applied += other.applied;
        for (reason, count) in other.rejected {
            *self.rejected.entry(reason).or_default() += count;
        }
    }

    fn done(&self) -> u64 {
        self.applied + self.rejected.values().sum::<u64>()
    }
}

/// The value of a metric's label.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let value = labels.split(',').find_map(|label| label.strip_prefix(name)?.strip_prefix("=\""))?;
    value.strip_suffix('"')
}

/// What a service's status says of shards and nodes. Only what is needed of it.
#[derive(Deserialize)]
struct StatusJson {
    shards: Vec<ShardJson>,
    nodes: Vec<NodeJson>,
}

#[derive(Deserialize)]
struct ShardJson {
    shard: u16,
    /// `local` or `remote`.
    owner: String,
    owners: Vec<OwnerJson>,
}

#[derive(Deserialize)]
struct OwnerJson {
    node: String,
}

#[derive(Deserialize)]
struct NodeJson {
    node: String,
    address: Option<String>,
    alive: bool,
}

/// The shards that the asked node does not own, by the address of an owner; and those of which no owner is
/// known that could be asked.
fn elsewhere(status: &StatusJson) -> (BTreeMap<&str, BTreeSet<u16>>, BTreeSet<u16>) {
    let (mut owned, mut nowhere) = (BTreeMap::<&str, BTreeSet<u16>>::new(), BTreeSet::new());
    for shard in status.shards.iter().filter(|shard| shard.owner == "remote") {
        let nodes = shard.owners.iter().filter_map(|owner| {
            status.nodes.iter().find(|node| node.alive && node.node == owner.node)?.address.as_deref()
        });
        match nodes.min() {
            Some(address) => _ = owned.entry(address).or_default().insert(shard.shard),
            None => _ = nowhere.insert(shard.shard),
        }
    }
    (owned, nowhere)
}

/// `shard 3`, `shards 0, 1`.
fn named(shards: &BTreeSet<u16>) -> String {
    let numbers: Vec<String> = shards.iter().map(u16::to_string).collect();
    format!("{} {}", if numbers.len() == 1 { "shard" } else { "shards" }, numbers.join(", "))
}

/// A node whose counts are looked at.
struct Counter {
    connection: Connection,
    /// Those that are counted here; `None`: all that it owns.
    shards: Option<BTreeSet<u16>>,
    before: Counted,
}

impl Counter {
    async fn begin(mut connection: Connection, shards: Option<BTreeSet<u16>>) -> Result<Self, String> {
        let before = look(&mut connection, shards.as_ref()).await?;
        Ok(Self { connection, shards, before })
    }
}

/// A service whose counts are looked at: the node that was named, and for shards that it does not own, one
/// of their owners.
pub struct Watched {
    /// An error: why they are not known.
    counters: Result<Vec<Counter>, String>,
}

impl Watched {
    /// Before the first job is sent.
    pub async fn begin(service: &Service) -> Self {
        Self { counters: counters(service).await }
    }

    /// After the last one was stored: looks at once, and again until all is applied or rejected, or nothing
    /// goes on any more.
    ///
    /// # Arguments
    /// `stored`: jobs that were sent and may be counted by now.
    pub async fn end(self, stored: u64) -> AppliedSummary {
        let followed = match self.counters {
            Ok(mut counters) => follow(&mut counters, stored).await,
            Err(problem) => Err(problem),
        };
        followed.unwrap_or_else(|problem| AppliedSummary::unknown(stored, problem))
    }
}

async fn counters(service: &Service) -> Result<Vec<Counter>, String> {
    let mut connection = Connection::new(service.clone());
    let status = connection.status().await;
    let mut counters = vec![Counter::begin(connection, None).await?];
    // A token may be too weak for the status. What this node counts is better than nothing then.
    let Ok(status) = status else { return Ok(counters) };
    let Ok(status) = serde_json::from_slice::<StatusJson>(&status) else { return Ok(counters) };
    let (owned, nowhere) = elsewhere(&status);
    let unknown = |shards: &BTreeSet<u16>, why: &str| {
        format!(
            "{} owns other shards and does not count the jobs of {}; {why}; name a node that owns every shard \
             to have them counted",
            service.url(),
            named(shards)
        )
    };
    if !nowhere.is_empty() {
        return Err(unknown(&nowhere, "no owner of them is heard of"));
    }
    for (address, shards) in owned {
        let counter = match service.at(address) {
            Ok(owner) => Counter::begin(Connection::new(owner), Some(shards.clone())).await,
            Err(why) => Err(why),
        };
        let why = |why| unknown(&shards, &format!("their owner at {address} could not be asked: {why}"));
        counters.push(counter.map_err(why)?);
    }
    Ok(counters)
}

async fn follow(counters: &mut [Counter], stored: u64) -> Result<AppliedSummary, String> {
    let started = Instant::now();
    let (mut at_end, mut progress) = (None, (0, started));
    loop {
        let mut counted = Counted::default();
        for counter in &mut *counters {
            let now = look(&mut counter.connection, counter.shards.as_ref()).await?;
            let since = now.since(&counter.before);
            counted.add(since.ok_or("the service was restarted during the run, and counts from zero again")?);
        }
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

async fn look(connection: &mut Connection, shards: Option<&BTreeSet<u16>>) -> Result<Counted, String> {
    let text = connection.metrics().await.map_err(|error| error.detail)?;
    Ok(Counted::read(&text, shards))
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
        let (before, after) = (Counted::read(&text(10, 0), None), Counted::read(&text(13, 4), None));
        assert_eq!((before.applied, before.done()), (15, 18));
        let since = after.since(&before).expect("it went on counting");
        assert_eq!(
            (since.applied, since.rejected.clone()),
            (3, BTreeMap::from([("bad_score".to_owned(), 4)]))
        );
        assert_eq!(since.done(), 7);
        assert_eq!(before.since(&after), None, "it counts from zero again");
        let of_one = Counted::read(&text(10, 4), Some(&BTreeSet::from([1])));
        assert_eq!((of_one.applied, of_one.done()), (5, 8), "another node may count the other shard");
    }

    #[test]
    fn shards_of_other_nodes_are_asked_of_an_owner_that_is_heard_of() {
        let status: StatusJson = serde_json::from_value(serde_json::json!({
            "shards": [
                { "shard": 0, "owner": "local", "owners": [{ "node": "here" }, { "node": "b" }] },
                { "shard": 1, "owner": "remote", "owners": [{ "node": "gone" }, { "node": "b" }] },
                { "shard": 2, "owner": "remote", "owners": [{ "node": "b" }] },
                { "shard": 3, "owner": "remote", "owners": [{ "node": "gone" }] },
                { "shard": 4, "owner": "remote", "owners": [] },
            ],
            "nodes": [
                { "node": "here", "address": "http://h:1", "alive": true },
                { "node": "b", "address": "http://h:2", "alive": true },
                { "node": "gone", "address": "http://h:0", "alive": false },
            ],
        }))
        .expect("a status");
        let (owned, nowhere) = elsewhere(&status);
        assert_eq!(owned, BTreeMap::from([("http://h:2", BTreeSet::from([1, 2]))]));
        assert_eq!(named(&nowhere), "shards 3, 4");
    }
}
