//! `ranktree verify`.

use std::process::ExitCode;

use crate::cli::Failure;
use crate::cli::progress::Progress;
use crate::config::DataArgs;
use crate::storage::{StorageResources, Store, missing_shard, shard_directory, shards_in, verify};
use crate::types::ShardId;

/// Recomputes every tree from members and deltas, and compares it with the stored one: order, scores, ties, counts,
/// versions, times. Changes nothing. The service must be stopped.
///
/// Exit code 0: all is well; 1: something is wrong, and is listed; 2: the data cannot be read.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    data: DataArgs,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let data_dir = args.data.data_dir()?;
    let shards = shards_in(&data_dir)?;
    if shards == 0 {
        return Err(format!("{} holds no shards; give the service's --data-dir", data_dir.display()).into());
    }
    if let Some(missing) = missing_shard(&data_dir, shards) {
        let path = shard_directory(&data_dir, missing);
        return Err(format!("{} is missing; bring it back before anything else", path.display()).into());
    }
    let resources = StorageResources::new(64 << 20, 1);
    let mut wrong = 0;
    for id in (0..shards).map(ShardId) {
        let progress = Progress::new(format!("shard {id}"));
        let store = Store::open(&shard_directory(&data_dir, id), id, shards, &resources)?;
        let (verified, findings) = verify(&store, &|what, done, total| progress.note(what, done, total))?;
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
    }
    if wrong == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    println!("{wrong} findings. `ranktree rebuild` makes the trees again from members.");
    Ok(ExitCode::from(1))
}
