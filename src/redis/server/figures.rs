//! What is counted of commands and connections.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use parking_lot::Mutex;

use crate::metrics::{
    REDIS_COMMAND_ERRORS_TOTAL, REDIS_COMMAND_SECONDS, REDIS_CONNECTIONS, REDIS_CONNECTIONS_ENDED_TOTAL,
    REDIS_UNKNOWN_COMMANDS_TOTAL,
};
use crate::redis::commands::{COMMANDS, is_of_redis};

/// A command that takes longer gets a line in the log.
const SLOW: Duration = Duration::from_millis(250);
/// The least time between two such lines.
const LINE_INTERVAL: Duration = Duration::from_secs(1);
/// The same of tokens that are refused: a client that tries tokens would fill the log.
const REFUSAL_INTERVAL: Duration = Duration::from_secs(10);
/// Why connections are ended or turned away, as metrics name it.
const ENDS: [&str; 7] =
    ["handshake", "http", "over_limit", "protocol", "refused", "slow_reader", "slow_request"];

/// What is counted.
pub struct Figures {
    by_command: HashMap<&'static str, CommandFigures, foldhash::fast::RandomState>,
    connections: Gauge,
    slow_lines: LineLimit,
    refusal_lines: LineLimit,
}

/// Limits how often the log has a line.
#[derive(Default)]
struct LineLimit(Mutex<Option<Instant>>);

impl LineLimit {
    fn takes_line(&self, interval: Duration) -> bool {
        let (mut last, now) = (self.0.lock(), Instant::now());
        let is_due = last.is_none_or(|last| now.duration_since(last) >= interval);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

/// What is counted of one command.
pub struct CommandFigures {
    seconds: Histogram,
    errors: Counter,
    calls: AtomicU64,
    failed: AtomicU64,
    micros: AtomicU64,
}

/// What `INFO` tells of a command.
pub struct CommandStats {
    pub name: &'static str,
    pub calls: u64,
    pub failed: u64,
    pub micros: u64,
}

impl Figures {
    /// All counters exist from the start, so that their rates can be asked for.
    pub fn new() -> Self {
        for reason in ENDS {
            counter!(REDIS_CONNECTIONS_ENDED_TOTAL, "reason" => reason).increment(0);
        }
        counter!(REDIS_UNKNOWN_COMMANDS_TOTAL, "command" => "other").increment(0);
        let of_command = |name: &'static str| CommandFigures {
            seconds: histogram!(REDIS_COMMAND_SECONDS, "command" => name),
            errors: counter!(REDIS_COMMAND_ERRORS_TOTAL, "command" => name),
            calls: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            micros: AtomicU64::new(0),
        };
        let by_command = COMMANDS.iter().map(|spec| (spec.name, of_command(spec.name))).collect();
        let (slow_lines, refusal_lines) = Default::default();
        let figures = Self { by_command, connections: gauge!(REDIS_CONNECTIONS), slow_lines, refusal_lines };
        figures.by_command.values().for_each(|command| command.errors.increment(0));
        figures.connections.set(0.0);
        figures
    }

    /// Notes a command that is answered.
    pub fn note(&self, command: &'static str, took: Duration, has_failed: bool) {
        let Some(figures) = self.by_command.get(command) else { return };
        figures.seconds.record(took);
        figures.calls.fetch_add(1, Ordering::Relaxed);
        figures.micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        if has_failed {
            figures.errors.increment(1);
            figures.failed.fetch_add(1, Ordering::Relaxed);
        }
        if took > SLOW && self.slow_lines.takes_line(LINE_INTERVAL) {
            tracing::warn!(command, seconds = took.as_secs_f64(), "a command of Redis' protocol was slow");
        }
    }

    /// Notes a token that is none of the service's. That its command has failed is counted besides.
    pub fn note_refused_token(&self, client: &str) {
        if self.refusal_lines.takes_line(REFUSAL_INTERVAL) {
            tracing::warn!(client, "a token of a client of Redis' protocol was refused");
        }
    }

    /// Notes a command that is not here.
    pub fn note_unknown(name: &[u8]) {
        let name = is_of_redis(name).unwrap_or("other");
        counter!(REDIS_UNKNOWN_COMMANDS_TOTAL, "command" => name).increment(1);
    }

    /// Notes a connection that is ended or turned away, for one of [`ENDS`].
    pub fn note_end(reason: &'static str) {
        counter!(REDIS_CONNECTIONS_ENDED_TOTAL, "reason" => reason).increment(1);
    }

    /// Counts a connection for as long as what is returned lives.
    pub fn count_connection(&self) -> CountedConnection {
        self.connections.increment(1.0);
        CountedConnection(self.connections.clone())
    }

    /// Of every command that was called, by name.
    pub fn stats(&self) -> Vec<CommandStats> {
        let stats = COMMANDS.iter().filter_map(|spec| {
            let figures = self.by_command.get(spec.name)?;
            let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
            let (calls, failed, micros) =
                (read(&figures.calls), read(&figures.failed), read(&figures.micros));
            (calls > 0).then_some(CommandStats { name: spec.name, calls, failed, micros })
        });
        stats.collect()
    }
}

/// Takes a connection out of the count when it is dropped.
pub struct CountedConnection(Gauge);

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}
