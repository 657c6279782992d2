//! `ranktree rebuild`.

use std::process::ExitCode;

use crate::cli::Failure;
use crate::cli::offline::Offline;
use crate::storage::{check_rebuildable, rebuild};

/// Makes every tree again from members and deltas, and writes a new checkpoint. Every shard is read before
/// any is written to: if one cannot be rebuilt, nothing is changed. The service must be stopped. Can be
/// interrupted and run again.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    offline: Offline,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    args.offline.rewrite_each_shard(
        |store, progress| check_rebuildable(store, &|what, done, total| progress.note(what, done, total)),
        |id, store, progress| {
            let figures = rebuild(store, &|what, done, total| progress.note(what, done, total))?;
            progress.finish();
            let (records, bytes, seconds) = (figures.pages, figures.bytes, figures.took.as_secs_f64());
            println!("shard {id}: rebuilt; {records} records, {bytes} bytes written in {seconds:.1} s");
            Ok(())
        },
    )?;
    Ok(ExitCode::SUCCESS)
}
