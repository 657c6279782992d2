//! A run from its first operation to its summary.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::loadgen::applied::Watched;
use crate::loadgen::feed::Feed;
use crate::loadgen::http::Connection;
use crate::loadgen::nats::{self, PublisherOutputs, Via};
use crate::loadgen::schedule::Schedule;
use crate::loadgen::service::Service;
use crate::loadgen::summary::{
    AppliedSummary, ErrorSummary, Latency, Reads, ScheduleSummary, Summary, Warmup, WorkloadSummary, Writes,
};
use crate::loadgen::tally::{Counts, Interval, Tally};
use crate::loadgen::workload::{Distribution, Spec, Workload};
use crate::queue::nats::{BulkPublisher, NatsAccess};
use crate::tls_roots::ClientTls;

/// Between two reports of the progress.
const TICK: Duration = Duration::from_secs(1);
/// Sampled messages that are looked for at a time.
const WATCHERS: usize = 4;

/// Where writes go.
#[derive(Debug, Clone)]
pub enum Target {
    Nats {
        access: NatsAccess,
        prefix: String,
        /// `None`: the streams say.
        shards: Option<u16>,
        /// Messages without an answer, on each connection.
        in_flight: usize,
        via: Via,
    },
    Http {
        url: String,
    },
}

/// A run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// `shards` is filled in.
    pub spec: Spec,
    pub target: Target,
    /// Where reads go, and where it is seen what is visible; the target, if that is HTTP.
    pub read_url: Option<String>,
    /// Sent with every HTTP request.
    pub token: Option<String>,
    /// Needed for https.
    pub tls: Option<ClientTls>,
    pub connections: usize,
    /// Connections that make reads, if writes go to NATS.
    pub read_connections: usize,
    /// Jobs a second; `None`: as fast as possible.
    pub rate: Option<f64>,
    /// `None`: until the workload ends.
    pub duration: Option<Duration>,
    pub warmup: Duration,
    /// Measures when readers see what was written.
    pub visible: bool,
    /// Ends the run when nothing has succeeded for so long.
    pub give_up: Duration,
    /// More failures than this share of all operations, or rejects of all jobs, make it no success.
    pub error_ratio_max: f64,
}

/// Why there was no run.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct LoadError(String);

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Completed,
    Interrupted,
    GaveUp,
}

/// Runs to the end, until `interrupted`, or until nothing succeeds any more. `on_tick` hears every second how
/// it goes.
///
/// # Errors
/// When it cannot begin: a target that is not there, or a plan that cannot be.
pub async fn run(
    mut plan: Plan,
    mut on_tick: impl FnMut(&Interval),
    interrupted: impl Future<Output = ()>,
) -> Result<Summary, LoadError> {
    plan.spec.check().map_err(LoadError)?;
    let schedule = plan.rate.map(|rate| schedule(&plan.spec, rate)).transpose()?;
    let senders = Senders::connect(&mut plan).await?;
    let watched = match &senders.service {
        Some(service) => Some(Watched::begin(service).await),
        None => None,
    };
    let workload = Workload::new(plan.spec.clone());
    let length = plan.duration.map(|duration| duration + plan.warmup);
    let feed = Feed::start(workload, schedule, length)
        .map_err(|error| LoadError(format!("a thread could not be started: {error}")))?;
    let tally = Arc::new(Tally::new(feed.started() + plan.warmup));
    let mut tasks = senders.start(&plan, &feed, &tally);

    let mut ended = Ended::Completed;
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + TICK, TICK);
    let mut ticked = feed.started();
    tokio::pin!(interrupted);
    loop {
        tokio::select! {
            joined = tasks.join_next() => match joined {
                None => break,
                Some(Err(error)) => return Err(LoadError(format!("the generator failed: {error}"))),
                Some(Ok(())) => {}
            },
            () = &mut interrupted, if ended == Ended::Completed => {
                ended = Ended::Interrupted;
                feed.stop();
            }
            _ = ticks.tick() => {
                let now = Instant::now();
                on_tick(&tally.interval(feed.started(), (now - ticked).as_secs_f64()));
                ticked = now;
                let hopeful = tally.last_success().unwrap_or(feed.started());
                let failing = tally.with(|counts| !counts.errors.is_empty());
                let is_too_long = now - hopeful >= plan.give_up;
                // Once all operations are handed out, only answers are waited for, and these have timeouts.
                if ended == Ended::Completed && !feed.is_stopped() && failing && is_too_long {
                    ended = Ended::GaveUp;
                    feed.stop();
                }
            }
        }
    }
    let ended_at = Instant::now();
    let applied = match watched {
        Some(watched) => Some(watched.end(tally.with(Counts::jobs_stored)).await),
        None => None,
    };
    let ends = (ended, ended_at);
    Ok(tally.with(|counts| summarize(&plan, counts, ends, &feed, tally.measured_from(), applied)))
}

/// Evenly spread, so many operations a second that the messages among them bring so many jobs.
fn schedule(spec: &Spec, rate: f64) -> Result<Schedule, LoadError> {
    let jobs = u32::try_from(spec.jobs_per_message)
        .expect("the number of jobs in a message was checked to be at most 1,000");
    let operations = rate / f64::from(jobs) / (1.0 - spec.read_ratio);
    let wrong =
        || LoadError(format!("the rate must be above 0 and at most a billion jobs a second; got {rate}"));
    Schedule::per_second(operations).ok_or_else(wrong)
}

/// What sends, connected where that says early what is wrong.
struct Senders {
    publishers: Vec<BulkPublisher>,
    in_flight: usize,
    via: Via,
    service: Option<Service>,
}

impl Senders {
    async fn connect(plan: &mut Plan) -> Result<Self, LoadError> {
        let token = plan.token.as_deref();
        let read_url = match &plan.target {
            Target::Http { url } => Some(url),
            Target::Nats { .. } => plan.read_url.as_ref(),
        };
        let service = read_url.map(|url| Service::new(url, token, plan.tls.clone()));
        let service = service.transpose().map_err(LoadError)?;
        if let Some(service) = &service {
            Connection::new(service.clone()).check().await.map_err(LoadError)?;
        }
        let Target::Nats { access, prefix, shards, in_flight, via } = &plan.target else {
            plan.spec.shards = None;
            return Ok(Self { publishers: Vec::new(), in_flight: 0, via: Via::Stream, service });
        };
        if service.is_none() && (plan.spec.read_ratio > 0.0 || plan.visible) {
            let why = "--read-ratio and --visible ask a service over HTTP; name it with --read-url";
            return Err(LoadError(why.to_owned()));
        }
        let mut publishers = Vec::new();
        let mut shards = *shards;
        for _ in 0..plan.connections.max(1) {
            let publisher = BulkPublisher::connect(access, prefix, shards, *in_flight).await;
            let publisher = publisher.map_err(LoadError)?;
            shards = Some(publisher.shards());
            publishers.push(publisher);
        }
        plan.spec.shards = shards;
        Ok(Self { publishers, in_flight: *in_flight, via: *via, service })
    }

    fn start(self, plan: &Plan, feed: &Arc<Feed>, tally: &Arc<Tally>) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        if self.publishers.is_empty() {
            let spec = Arc::new(plan.spec.clone());
            for service in std::iter::repeat_n(self.service, plan.connections.max(1)).flatten() {
                let (feed, tally, spec) = (Arc::clone(feed), Arc::clone(tally), Arc::clone(&spec));
                tasks.spawn(Connection::new(service).work(feed, tally, spec, plan.visible));
            }
            return tasks;
        }
        let mut outputs = PublisherOutputs { reads: None, samples: None };
        if let Some(service) = self.service {
            if plan.spec.read_ratio > 0.0 {
                let connections = plan.read_connections.max(1);
                let (reads, queue) = mpsc::channel(connections);
                let queue = Arc::new(tokio::sync::Mutex::new(queue));
                for _ in 0..connections {
                    tasks.spawn(nats::read(service.clone(), Arc::clone(&queue), Arc::clone(tally)));
                }
                outputs.reads = Some(reads);
            }
            if plan.visible {
                // One waits at most while all are busy, so that what is looked for is not old already.
                let (samples, queue) = mpsc::channel(1);
                let queue = Arc::new(tokio::sync::Mutex::new(queue));
                for _ in 0..WATCHERS {
                    tasks.spawn(nats::watch(service.clone(), Arc::clone(&queue), Arc::clone(tally)));
                }
                outputs.samples = Some(samples);
            }
        }
        for publisher in self.publishers {
            let (feed, tally) = (Arc::clone(feed), Arc::clone(tally));
            tasks.spawn(nats::publish(
                publisher,
                self.via,
                feed,
                tally,
                self.in_flight.max(1),
                outputs.clone(),
            ));
        }
        tasks
    }
}

fn summarize(
    plan: &Plan,
    counts: &Counts,
    (ended, ended_at): (Ended, Instant),
    feed: &Feed,
    measured_from: Instant,
    applied: Option<AppliedSummary>,
) -> Summary {
    // Watching the samples may take longer, and is no part of the rate.
    let last_answer = counts.ended.unwrap_or(ended_at);
    let seconds = last_answer.saturating_duration_since(measured_from).as_secs_f64();
    let per_second = |count: u64| if seconds > 0.0 { to_f64(count) / seconds } else { 0.0 };
    let spec = &plan.spec;
    let (transport, url) = match &plan.target {
        Target::Nats { access, via: Via::Stream, .. } => ("nats", access.servers.to_string()),
        Target::Nats { access, via: Via::Service, .. } => ("nats service", access.servers.to_string()),
        Target::Http { url } => ("http", url.clone()),
    };
    let operations = feed.dispatched();
    let never_begun = feed.never_dispatched(ended_at);
    let schedule = plan.rate.map(|jobs_per_second| ScheduleSummary {
        jobs_per_second,
        // The last few operations of a run that ends in time may not have been taken yet.
        kept: (counts.late + never_begun) * 100 <= operations.max(100),
        operations,
        late: counts.late,
        late_max_ms: counts.late_max.as_secs_f64() * 1_000.0,
        never_begun,
    });
    let failed = counts.messages_failed + counts.reads_failed;
    let answered = counts.messages_acked + counts.reads_answered;
    // Answers tell of them, or the service counts them, or both do.
    let counted = applied.as_ref().map_or(0, |applied| applied.jobs_rejected.values().sum());
    let rejected = counts.jobs_rejected.values().sum::<u64>().max(counted);
    let within = |bad: u64, good: u64| to_f64(bad) <= plan.error_ratio_max * to_f64(bad + good);
    let succeeded = answered > 0
        && within(failed, answered)
        && within(rejected, counts.jobs_acked)
        && ended != Ended::GaveUp;
    let errors = counts.errors.iter().map(|(kind, (count, detail))| ErrorSummary {
        kind: kind.clone(),
        count: *count,
        detail: detail.clone(),
    });
    Summary {
        document: 1,
        ended: match ended {
            Ended::Completed => "completed",
            Ended::Interrupted => "interrupted",
            Ended::GaveUp => "gave_up",
        },
        succeeded,
        workload: WorkloadSummary {
            transport,
            url,
            shards: spec.shards,
            members: spec.members,
            boards: spec.boards.len(),
            distribution: match spec.distribution {
                Distribution::Uniform => "uniform".to_owned(),
                Distribution::Zipf(exponent) => format!("zipf:{exponent}"),
            },
            jobs_per_message: spec.jobs_per_message,
            read_ratio: spec.read_ratio,
            read_parameters: spec.read_parameters.clone(),
            connections: plan.connections.max(1),
            seed: spec.seed,
        },
        seconds,
        writes: Writes {
            messages: counts.messages_acked,
            messages_per_second: per_second(counts.messages_acked),
            jobs: counts.jobs_acked,
            jobs_per_second: per_second(counts.jobs_acked),
            jobs_rejected: counts.jobs_rejected.clone(),
            messages_failed: counts.messages_failed,
            jobs_failed: counts.jobs_failed,
            latency: Latency::from(&counts.writes.total),
        },
        reads: (spec.read_ratio > 0.0).then(|| Reads {
            requests: counts.reads_answered,
            requests_per_second: per_second(counts.reads_answered),
            not_found: counts.reads_not_found,
            failed: counts.reads_failed,
            latency: Latency::from(&counts.reads.total),
        }),
        applied,
        visible: plan.visible.then(|| Latency::from(&counts.visible.total)),
        schedule,
        errors: errors.collect(),
        warmup: Warmup {
            messages: counts.warmup_messages,
            jobs: counts.warmup_jobs,
            reads: counts.warmup_reads,
        },
    }
}

#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "for rates and shares, which are shown with a few digits"
)]
fn to_f64(count: u64) -> f64 {
    count as f64
}
