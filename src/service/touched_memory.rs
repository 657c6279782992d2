//! Memory that is taken from the system before it is needed.
//!
//! The system gives memory when it is first touched. A writer that touches new memory under its shard's lock
//! lets readers wait for the system, on a virtual machine for milliseconds (docs/benchmarks.md, stalls).

use std::{fs, hint};

use crate::allocator;
use crate::service::ServiceError;

/// The pieces that are taken: small enough that the allocator gives them to others in parts later.
const PIECE_BYTES: usize = 1 << 20;
/// What is left to everybody else on the machine.
const LEFT_MIB: usize = 256;

/// Has the system give so much memory, and leaves it to the allocator, which keeps it from then on. Only the
/// program's own allocator, mimalloc, is meant: RocksDB has another.
///
/// # Errors
/// When the machine has less memory that is free.
pub fn touch(mebibytes: usize) -> Result<(), ServiceError> {
    if mebibytes == 0 {
        return Ok(());
    }
    if let Some(available) = available_mib()
        && mebibytes.saturating_add(LEFT_MIB) > available
    {
        return Err(ServiceError::TouchMemory { asked: mebibytes, available });
    }
    tracing::info!(mebibytes, "takes memory from the system");
    allocator::keep_all();
    let touched: Vec<Vec<u8>> = (0..mebibytes).map(|_| vec![1; PIECE_BYTES]).collect();
    hint::black_box(touched);
    Ok(())
}

/// Memory that the system could give, as Linux estimates it.
fn available_mib() -> Option<usize> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes >> 10)
}
