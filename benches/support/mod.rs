//! What the benches share: an engine without a service around it, members by number, and scores to draw.

#![allow(dead_code, reason = "each bench uses a part of it")]
#![allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures are for people; numbers stay far below 2^53"
)]

pub mod arguments;
pub mod counts;
pub mod engine;
pub mod http;
pub mod machine;
pub mod measured;
pub mod nats;
pub mod postgres;
pub mod raw_nats;
pub mod raw_scores;
pub mod redis;
pub mod resp;
pub mod service;
pub mod thread_figures;
pub mod workload;
pub mod wrk;

use std::path::PathBuf;
use std::time::Duration;

pub use arguments::*;

/// The service's, which asks the system for memory in pages of 2 MiB.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A scratch folder, removed at the end unless `--keep true`: in `--dir`, or where the system puts such.
pub fn scratch() -> tempfile::TempDir {
    let base = argument("dir").map_or_else(std::env::temp_dir, PathBuf::from);
    let mut folder = tempfile::tempdir_in(base).expect("a scratch folder");
    if argument("keep").is_some() {
        folder.disable_cleanup(true);
        eprintln!("  kept in {}", folder.path().display());
    }
    folder
}

/// `10000000` as `10M`.
pub fn short(count: u64) -> String {
    match count {
        _ if count >= 1_000_000 && count.is_multiple_of(1_000_000) => format!("{}M", count / 1_000_000),
        _ if count >= 1_000 && count.is_multiple_of(1_000) => format!("{}k", count / 1_000),
        _ => count.to_string(),
    }
}

pub fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// The value at a share of sorted samples.
pub fn percentile(sorted: &[Duration], share: f64) -> Duration {
    let index = ((sorted.len() as f64 - 1.0) * share).round() as usize;
    sorted.get(index).copied().unwrap_or_default()
}

/// Resident memory of this process in bytes.
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells it");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}
