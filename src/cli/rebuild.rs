//! `ranktree rebuild`.

use std::process::ExitCode;

use crate::cli::Failure;
use crate::cli::progress::Progress;
use crate::config::DataArgs;
use crate::storage::{StorageResources, Store, missing_shard, rebuild, shard_directory, shards_in};
use crate::types::ShardId;

/// Makes every tree again from members and deltas, and writes a new checkpoint. The service must be stopped. Can be
/// interrupted and run again.
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
    for id in (0..shards).map(ShardId) {
        let progress = Progress::new(format!("shard {id}"));
        let store = Store::open(&shard_directory(&data_dir, id), id, shards, &resources)?;
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
