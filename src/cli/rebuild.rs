//! `ranktree rebuild`.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::Failure;
use crate::cli::progress::Progress;
use crate::storage::{StorageResources, Store, rebuild, shard_directory, shards_in};
use crate::types::ShardId;

/// Makes every tree again from members and deltas, and writes a new checkpoint. The service must be stopped. Can be
/// interrupted and run again.
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
    for id in (0..shards).map(ShardId) {
        let progress = Progress::new(format!("shard {id}"));
        let store = Store::open(&shard_directory(&args.data_dir, id), id, shards, &resources)?;
        let figures = rebuild(&store, &|what, done, total| progress.note(what, done, total))?;
        progress.finish();
        let seconds = figures.took.as_secs_f64();
        println!(
            "shard {id}: rebuilt; {} records, {} bytes written in {seconds:.1} s",
            figures.pages, figures.bytes
        );
    }
    Ok(ExitCode::SUCCESS)
}
