//! What came of a run, as a JSON document and as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// The document that `ranktree load --json` writes: one JSON object, whose fields keep their names and
/// meanings while `document` is 1. More may be added.
///
/// Times end in their unit; latencies are of operations that succeeded, from when they were due (without a
/// rate: from when they were sent) to their answer. Everything but `errors`, `warmup` and `schedule` leaves
/// the warm-up out.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The document's version.
    pub document: u32,
    /// `completed`, `interrupted` or `gave_up` (nothing succeeded for too long).
    pub ended: &'static str,
    /// Whether something succeeded, errors stayed within their limit, and it did not give up.
    pub succeeded: bool,
    pub workload: WorkloadSummary,
    /// How long was measured, to the last answer.
    pub seconds: f64,
    pub writes: Writes,
    /// `null` when the workload has no reads.
    pub reads: Option<Reads>,
    /// What the service made of what was stored, by its own counts, which are of the warm-up and of others'
    /// jobs too; `null` over NATS without a service that is asked.
    pub applied: Option<AppliedSummary>,
    /// From publishing to readers seeing it; `null` unless it was asked for.
    pub visible: Option<Latency>,
    /// `null` without a rate.
    pub schedule: Option<ScheduleSummary>,
    pub errors: Vec<ErrorSummary>,
    pub warmup: Warmup,
}

/// What was sent, and where to.
#[derive(Debug, Clone, Serialize)]
pub struct WorkloadSummary {
    /// `nats` or `http`.
    pub transport: &'static str,
    /// Without a password.
    pub url: String,
    /// Over NATS.
    pub shards: Option<u16>,
    pub members: u32,
    pub boards: usize,
    pub distribution: String,
    pub jobs_per_message: usize,
    pub read_ratio: f64,
    /// What every read asked besides.
    pub read_parameters: String,
    pub connections: usize,
    pub seed: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Writes {
    /// Messages, or requests, that were answered as stored or applied.
    pub messages: u64,
    pub messages_per_second: f64,
    /// The jobs in them, without those that were rejected.
    pub jobs: u64,
    pub jobs_per_second: f64,
    /// Jobs rejected one by one, by reason, as answers told. Over NATS there are none: see `applied`.
    pub jobs_rejected: BTreeMap<String, u64>,
    pub messages_failed: u64,
    /// The jobs in them.
    pub jobs_failed: u64,
    pub latency: Latency,
}

#[derive(Debug, Clone, Serialize)]
pub struct AppliedSummary {
    /// Jobs that were stored, or applied at once, or rejected one by one; of the warm-up too.
    pub jobs_stored: u64,
    /// Jobs that the service applied since the run began, once it got on with nothing any more; `null` if it
    /// could not be asked.
    pub jobs_applied: Option<u64>,
    /// Of them, those that were applied when the last answer had come.
    pub jobs_applied_at_end: Option<u64>,
    /// How long after that it took until all was applied or rejected; `null` if that was not seen.
    pub caught_up_seconds: Option<f64>,
    /// By reason.
    pub jobs_rejected: BTreeMap<String, u64>,
    /// Why it is not known.
    #[serde(rename = "trouble")]
    pub problem: Option<String>,
}

impl AppliedSummary {
    pub fn unknown(jobs_stored: u64, problem: String) -> Self {
        Self {
            jobs_stored,
            jobs_applied: None,
            jobs_applied_at_end: None,
            caught_up_seconds: None,
            jobs_rejected: BTreeMap::new(),
            problem: Some(problem),
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct Reads {
    pub requests: u64,
    pub requests_per_second: f64,
    /// Of them, those about a member or board that is not there (yet).
    pub not_found: u64,
    pub failed: u64,
    pub latency: Latency,
}

#[derive(Debug, Clone, Serialize)]
pub struct Latency {
    pub count: u64,
    pub mean_us: f64,
    pub p50_us: u64,
    pub p90_us: u64,
    pub p99_us: u64,
    pub p999_us: u64,
    pub max_us: u64,
}

impl From<&Histogram<u64>> for Latency {
    fn from(histogram: &Histogram<u64>) -> Self {
        let quantile =
            |quantile| if histogram.is_empty() { 0 } else { histogram.value_at_quantile(quantile) };
        Self {
            count: histogram.len(),
            mean_us: histogram.mean(),
            p50_us: quantile(0.5),
            p90_us: quantile(0.9),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            max_us: histogram.max(),
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct ScheduleSummary {
    pub jobs_per_second: f64,
    /// At most one in a hundred operations began more than 10 ms after it was due, or never.
    pub kept: bool,
    pub operations: u64,
    pub late: u64,
    pub late_max_ms: f64,
    /// Operations that were due before the end and not begun.
    pub never_begun: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct ErrorSummary {
    pub kind: String,
    /// Requests or messages.
    pub count: u64,
    /// The first one's words.
    pub detail: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct Warmup {
    pub messages: u64,
    pub jobs: u64,
    pub reads: u64,
}

impl Summary {
    /// As text for people, several lines.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_text(&mut out);
        out
    }

    fn write_text(&self, out: &mut String) -> std::fmt::Result {
        let Self { workload, writes, .. } = self;
        let how = match self.ended {
            "interrupted" => "interrupted after",
            "gave_up" => "gave up after",
            _ => "done in",
        };
        writeln!(
            out,
            "{how} {:.2} s  {}  {} members, {}, {} job(s) a message, seed {}",
            self.seconds,
            workload.url,
            grouped(workload.members.into()),
            workload.distribution,
            workload.jobs_per_message,
            workload.seed
        )?;
        writeln!(
            out,
            "  writes   {} messages, {} jobs   {} messages/s, {} jobs/s",
            grouped(writes.messages),
            grouped(writes.jobs),
            rate(writes.messages_per_second),
            rate(writes.jobs_per_second)
        )?;
        write_latency(out, &writes.latency)?;
        for (reason, count) in &writes.jobs_rejected {
            writeln!(out, "           {} jobs rejected: {reason}", grouped(*count))?;
        }
        write_applied(out, self.applied.as_ref(), writes.jobs_rejected.is_empty())?;
        if let Some(reads) = &self.reads {
            let not_found = match reads.not_found {
                0 => String::new(),
                count => format!(", {} not found", grouped(count)),
            };
            let asked = match self.workload.read_parameters.as_str() {
                "" => String::new(),
                asked => format!(" with {asked}"),
            };
            writeln!(
                out,
                "  reads    {} requests{asked}{not_found}   {} requests/s",
                grouped(reads.requests),
                rate(reads.requests_per_second)
            )?;
            write_latency(out, &reads.latency)?;
        }
        if let Some(visible) = &self.visible {
            writeln!(
                out,
                "  visible  {} writes were followed until readers saw them",
                grouped(visible.count)
            )?;
            write_latency(out, visible)?;
        }
        if let Some(schedule) = &self.schedule {
            let late = format!(
                "{} of {} operations began more than 10 ms after they were due, the latest after {:.1} ms; {} never \
                 began",
                grouped(schedule.late),
                grouped(schedule.operations),
                schedule.late_max_ms,
                grouped(schedule.never_begun)
            );
            let wanted = rate(schedule.jobs_per_second);
            if schedule.kept {
                writeln!(out, "  schedule kept, {wanted} jobs/s: {late}")?;
            } else {
                writeln!(
                    out,
                    "  SCHEDULE NOT KEPT, {wanted} jobs/s: {late}. The service, or this generator (more --connections, \
                     more --in-flight, another machine), is slower than that; latencies include the wait"
                )?;
            }
        }
        let Warmup { messages, jobs, reads } = self.warmup;
        if messages + reads > 0 {
            writeln!(
                out,
                "  warm-up  {} messages, {} jobs, {} reads, not counted above",
                grouped(messages),
                grouped(jobs),
                grouped(reads)
            )?;
        }
        if self.errors.is_empty() {
            return writeln!(out, "  errors   none");
        }
        for error in &self.errors {
            writeln!(out, "  error    {} x {}: {}", grouped(error.count), error.kind, error.detail)?;
        }
        Ok(())
    }
}

/// # Arguments
/// `with_rejects`: whether those that the service counted are told: not where answers have told them.
fn write_applied(out: &mut String, applied: Option<&AppliedSummary>, with_rejects: bool) -> std::fmt::Result {
    let Some(applied) = applied else {
        return writeln!(out, "  applied  not known, because no service was named with --read-url");
    };
    let stored = grouped(applied.jobs_stored);
    let (Some(jobs), Some(at_end)) = (applied.jobs_applied, applied.jobs_applied_at_end) else {
        let why = applied.problem.as_deref().unwrap_or("the service was not asked");
        return writeln!(out, "  applied  not known of {stored} jobs stored: {why}");
    };
    let rest = match applied.caught_up_seconds {
        Some(seconds) => format!("the rest was applied or rejected within {}", human_time(Duration::from_secs_f64(seconds))),
        None => "THE REST WAS NOT APPLIED: the jobs wait for their boards, or the service has stopped applying jobs or restarted; see GET /v1/status"
            .to_owned(),
    };
    writeln!(
        out,
        "  applied  {} of {stored} jobs stored; {} when the last answer came, {rest}",
        grouped(jobs),
        grouped(at_end)
    )?;
    for (reason, count) in applied.jobs_rejected.iter().filter(|_| with_rejects) {
        writeln!(out, "           {} jobs rejected: {reason}", grouped(*count))?;
    }
    Ok(())
}

fn write_latency(out: &mut String, latency: &Latency) -> std::fmt::Result {
    if latency.count == 0 {
        return Ok(());
    }
    let time = |micros| human_time(Duration::from_micros(micros));
    writeln!(
        out,
        "           p50 {}  p90 {}  p99 {}  p99.9 {}  max {}",
        time(latency.p50_us),
        time(latency.p90_us),
        time(latency.p99_us),
        time(latency.p999_us),
        time(latency.max_us)
    )
}

/// `812 µs`, `3.4 ms`, `1.25 s`.
pub fn human_time(time: Duration) -> String {
    if time < Duration::from_millis(1) {
        format!("{} µs", time.as_micros())
    } else if time < Duration::from_secs(1) {
        format!("{:.1} ms", time.as_secs_f64() * 1_000.0)
    } else {
        format!("{:.2} s", time.as_secs_f64())
    }
}

fn rate(per_second: f64) -> String {
    if per_second < 100.0 {
        return format!("{per_second:.1}");
    }
    // Its digits, grouped; fractions of a job are of no interest.
    format!("{per_second:.0}").parse().map_or_else(|_| format!("{per_second:.0}"), grouped)
}

fn grouped(count: u64) -> String {
    indicatif::HumanCount(count).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_are_for_people() {
        let micros = |micros| human_time(Duration::from_micros(micros));
        assert_eq!([micros(812), micros(3_412), micros(1_250_000)], ["812 µs", "3.4 ms", "1.25 s"]);
        assert_eq!([rate(12.34), rate(1_234_567.8)], ["12.3", "1,234,568"]);
    }

    #[test]
    fn the_text_says_when_the_schedule_was_not_kept() {
        let latency =
            || Latency { count: 5, mean_us: 1.0, p50_us: 1, p90_us: 2, p99_us: 3, p999_us: 4, max_us: 5 };
        let schedule = ScheduleSummary {
            jobs_per_second: 1e6,
            kept: true,
            operations: 5,
            late: 0,
            late_max_ms: 0.1,
            never_begun: 0,
        };
        let mut summary = Summary {
            document: 1,
            ended: "completed",
            succeeded: true,
            workload: WorkloadSummary {
                transport: "nats",
                url: "nats://a:1".to_owned(),
                shards: Some(2),
                members: 1_000,
                boards: 1,
                distribution: "uniform".to_owned(),
                jobs_per_message: 1,
                read_ratio: 0.0,
                read_parameters: String::new(),
                connections: 1,
                seed: 1,
            },
            seconds: 1.0,
            writes: Writes {
                messages: 5,
                messages_per_second: 5.0,
                jobs: 5,
                jobs_per_second: 5.0,
                jobs_rejected: BTreeMap::new(),
                messages_failed: 0,
                jobs_failed: 0,
                latency: latency(),
            },
            reads: None,
            applied: None,
            visible: None,
            schedule: Some(schedule.clone()),
            errors: Vec::new(),
            warmup: Warmup { messages: 0, jobs: 0, reads: 0 },
        };
        let text = summary.text();
        assert!(text.contains("schedule kept, 1,000,000 jobs/s") && text.contains("errors   none"), "{text}");
        summary.schedule = Some(ScheduleSummary { kept: false, late: 5, ..schedule });
        let full = ErrorSummary { kind: "stream_full".to_owned(), count: 3, detail: "full".to_owned() };
        summary.errors.push(full);
        let text = summary.text();
        assert!(text.contains("SCHEDULE NOT KEPT"), "{text}");
        assert!(text.contains("applied  not known, because no service was named"), "{text}");
        let mut applied = AppliedSummary {
            jobs_stored: 1_005,
            jobs_applied: Some(1_002),
            jobs_applied_at_end: Some(900),
            caught_up_seconds: Some(1.25),
            jobs_rejected: BTreeMap::from([("bad_score".to_owned(), 3)]),
            problem: None,
        };
        summary.applied = Some(applied.clone());
        let text = summary.text();
        let said = "applied  1,002 of 1,005 jobs stored; 900 when the last answer came, the rest was applied or rejected within 1.25 s\n";
        assert!(text.contains(said) && text.contains("3 jobs rejected: bad_score"), "{text}");
        applied.caught_up_seconds = None;
        summary.applied = Some(applied);
        assert!(summary.text().contains("THE REST WAS NOT APPLIED"), "{}", summary.text());
        summary.applied = Some(AppliedSummary::unknown(5, "no permission".to_owned()));
        assert!(summary.text().contains("not known of 5 jobs stored: no permission"), "{}", summary.text());
        assert!(text.contains("3 x stream_full: full"), "{text}");
    }
}
