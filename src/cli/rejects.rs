//! `ranktree rejects`.

use std::process::ExitCode;

use crate::cli::Failure;
use crate::cli::offline::{For, Offline};
use crate::queue::reject_text;

/// Lists stored rejects of a stopped service's data, the newest of each shard first, one JSON object a line: shard,
/// sequence, index, reason, detail and the job. A running service publishes them to `{prefix}.rejects.{shard}`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    offline: Offline,
    /// Rejects to list of each shard
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    limit: usize,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    args.offline.each_shard(For::Reading, |id, store, _| {
        for reject in store?.rejects(args.limit)? {
            println!("{}", reject_text(id, &reject));
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}
