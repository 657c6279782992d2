//! `ranktree verify`.

use std::process::ExitCode;

use crate::cli::Failure;
use crate::cli::offline::{For, Offline};
use crate::storage::verify;

/// Reads everything, recomputes every tree from members and deltas, and compares it with the stored one: order, scores,
/// ties, counts, versions, times, metadata. Writes nothing, and needs no permission to. The service must be stopped.
///
/// Exit code 0: all is well; 1: something is wrong, and is listed; 2: the data of a shard cannot be read, or must not be
/// used.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    offline: Offline,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let (mut wrong, mut refused) = (0, 0);
    args.offline.each_shard(For::Reading, |id, store, progress| {
        let looked_at = store.and_then(|store| {
            let found = verify(&store, &|what, done, total| progress.note(what, done, total))?;
            Ok((found, store.torn_end()))
        });
        progress.finish();
        let ((verified, findings), torn_end) = match looked_at {
            Ok(looked_at) => looked_at,
            Err(error) => {
                println!("shard {id}: {error}");
                refused += 1;
                return Ok(());
            }
        };
        println!(
            "shard {id}: {} boards, {} members, {} entries, {} deltas after the checkpoint, applied {}: {}",
            verified.boards,
            verified.members,
            verified.entries,
            verified.deltas,
            verified.applied,
            if findings.is_empty() { "all is well" } else { "something is wrong" },
        );
        if let Some(torn_end) = torn_end {
            println!("  {torn_end}, as a power failure leaves it; nothing that was synced is missing");
        }
        for finding in &findings {
            println!("  {finding}");
        }
        wrong += findings.len();
        Ok(())
    })?;
    if wrong > 0 {
        println!("{wrong} findings. `ranktree rebuild` makes the trees again from members.");
    }
    match (refused, wrong) {
        (0, 0) => Ok(ExitCode::SUCCESS),
        (0, _) => Ok(ExitCode::from(1)),
        _ => Err(format!("{refused} shards cannot be used as they are").into()),
    }
}
