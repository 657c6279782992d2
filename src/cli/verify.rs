//! `ranktree verify`.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::Failure;
use crate::cli::progress::Progress;
use crate::storage::{StorageResources, Store, shard_directory, shards_in, verify};
use crate::types::ShardId;

/// Recomputes every tree from members and deltas, and compares it with the stored one: order, scores, ties, counts,
/// versions, times. Changes nothing. The service must be stopped.
///
/// Exit code 0: all is well; 1: something is wrong, and is listed; 2: the data cannot be read.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The service's data directory
    #[arg(long, env = "RANKTREE_DATA_DIR", value_name = "DIR", default_value = "./data")]
    data_dir: PathBuf,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let shards = shards_in(&args.data_dir)?;
    if shards == 0 {
        return Err(
            format!("{} holds no shards; give the service's --data-dir", args.data_dir.display()).into()
        );
    }
    let resources = StorageResources::new(64 << 20, 1);
    let mut wrong = 0;
    for id in (0..shards).map(ShardId) {
        let progress = Progress::new(format!("shard {id}"));
        let store = Store::open(&shard_directory(&args.data_dir, id), id, shards, &resources)?;
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
