//! `ranktree verify`.

use std::process::ExitCode;

use crate::cli::Failure;
use crate::cli::offline::Offline;
use crate::storage::verify;

/// Recomputes every tree from members and deltas, and compares it with the stored one: order, scores, ties, counts,
/// versions, times. Changes nothing. The service must be stopped.
///
/// Exit code 0: all is well; 1: something is wrong, and is listed; 2: the data cannot be read.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    offline: Offline,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut wrong = 0;
    args.offline.each_shard(|id, store, progress| {
        let (verified, findings) = verify(store, &|what, done, total| progress.note(what, done, total))?;
        progress.finish();
        println!(
            "shard {id}: {} boards, {} members, {} entries, {} deltas after the checkpoint, applied {}: {}",
            verified.boards,
            verified.members,
            verified.entries,
            verified.deltas,
            verified.applied,
            if findings.is_empty() { "all is well" } else { "something is wrong" },
        );
        for finding in &findings {
            println!("  {finding}");
        }
        wrong += findings.len();
        Ok(())
    })?;
    if wrong == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    println!("{wrong} findings. `ranktree rebuild` makes the trees again from members.");
    Ok(ExitCode::from(1))
}
