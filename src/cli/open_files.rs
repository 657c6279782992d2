//! How many files the process may have open: connections and RocksDB's files share one limit, and a flood of
//! the first must not keep the second from being opened.

use rustix::process::{Resource, getrlimit, setrlimit};

/// For RocksDB, logs, and connections to NATS; also for the places that are kept for probes.
const FILES: u64 = 1_024;

/// Raises the limit to what the system allows, and says so if that is too few for this many connections.
pub fn raise_limit(connections_max: usize) {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => limit = raised,
            Err(error) => tracing::warn!(%error, "the limit of open files could not be raised"),
        }
    }
    let wanted = u64::try_from(connections_max).unwrap_or(u64::MAX).saturating_add(FILES);
    // None is no limit.
    if let Some(files_max) = limit.current.filter(|files_max| *files_max < wanted) {
        tracing::warn!(
            files_max,
            wanted,
            "the limit of open files is lower than --max-connections and the storage need; raise the hard \
             limit (ulimit -Hn, or LimitNOFILE in the service's unit), or lower --max-connections"
        );
    }
}
