//! `ranktree restore`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use indicatif::{HumanBytes, HumanCount};
use parking_lot::Mutex;

use crate::cli::Failure;
use crate::cli::as_owner::{as_owner_of, become_owner_of};
use crate::cli::offline::exit_on_signal;
use crate::cli::outside_data::check_no_data_above;
use crate::cli::progress::Progress;
use crate::config::{DataArgs, FileArgs};
use crate::snapshot::{Chosen, Replace, Restored, SnapshotSource, refuse_overlap, restore};
use crate::storage::{DataLayout, with_real_paths};
use crate::types::ShardSet;

const EXAMPLES: &str = "\
Examples:
  Into a new data directory:
    ranktree restore --from /backup/ranks-sunday --data-dir ./data
  Into that of a stopped service, whose shards are kept beside the new ones:
    ranktree restore --from /backup/ranks-sunday --data-dir /var/lib/ranktree --replace
  A whole service on new machines and a new NATS, from the snapshots of its nodes:
    ranktree restore --from /backup/a --from /backup/b --shards 0-5 --bind-new-streams --data-dir ./data

The snapshot is copied into the data directory and checked there: that every shard and every file is there, that all \
checksums are right, that the shards open, and all that `ranktree verify` checks. The shards that were there are touched \
only afterwards. They are moved into a folder of the data directory, named before-restore- and the time; nothing is deleted. \
Remove that folder once the service runs well. To go back, stop the service, move the new shards and the file RANKTREE away, \
and move the content of that folder back.

The data directory needs room for the snapshot beside what is there. The snapshot itself is only read, and stays as it is. Run by root, restore \
reads the snapshot, and works in the data directory, by the rights of the user whose folders each of them is in, and all that \
it makes belongs to that user.

If restore is interrupted while it puts the shards in place, the service refuses to start, and says so; the same command again \
completes it. If it is interrupted before that, the data directory is as it was.

Start the service with the number of shards that is printed. Without NATS, the writes since the snapshot are gone. With NATS, \
the node applies what it missed from the streams, as far as they reach back.

Exit status: 0 restored, 2 failure.";

/// Checks a snapshot, and puts it into the data directory of a stopped service.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// The directory that `ranktree snapshot` has written; given several times, the newest copy of each shard
    /// is taken
    #[arg(long, value_name = "DIR", required = true)]
    from: Vec<PathBuf>,
    /// The shards to restore, such as 0-5; otherwise all that the snapshots have
    #[arg(long, value_name = "LIST", value_parser = ShardSet::parse)]
    shards: Option<ShardSet>,
    /// Has the next start bind the data to new streams, because those that they are of are gone: for one node
    /// of the service, which is started before the others
    #[arg(long)]
    bind_new_streams: bool,
    /// Moves the shards that the data directory holds aside; without it, a data directory that is not empty
    /// is refused
    #[arg(long)]
    replace: bool,
    /// As --replace, also where some of what is there is another service's than the snapshot's
    #[arg(long)]
    replace_another_service: bool,
    /// Read where the arguments are.
    #[command(flatten)]
    _file: FileArgs,
    #[command(flatten)]
    data: DataArgs,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    // The thread that reads the snapshot has the rights of the snapshot's owner. All others are started after
    // this one became the directory's owner.
    let mut sources = Vec::with_capacity(args.from.len());
    for from in args.from.iter().collect::<BTreeSet<_>>() {
        sources.push((from.clone(), as_owner_of(from, |from| Ok(SnapshotSource::open(from)?))?));
        refuse_overlap(from, &args.data.data_dir)?;
    }
    let (from, chosen) = match sources.pop() {
        // What is wrong with the only one is told once an interrupted restore is completed.
        Some((_, only)) if sources.is_empty() && args.shards.is_none() => (only, Vec::new()),
        last => {
            sources.extend(last);
            SnapshotSource::newest_of(sources, args.shards.as_ref())?
        }
    };
    check_no_data_above(&args.data.data_dir)?;
    let data_dir = become_owner_of(&args.data.data_dir)?;
    let progress = Arc::new(Progress::new("restore".to_owned()));
    exit_on_signal(Arc::new(Mutex::new(Arc::clone(&progress))))?;
    let note = |what, done, total| progress.note(what, done, total);
    let replace = match args {
        Args { replace_another_service: true, .. } => Replace::All,
        Args { replace: true, .. } => Replace::OfService,
        Args { .. } => Replace::None,
    };
    let restored = restore(from, &data_dir, replace, args.bind_new_streams, &note);
    progress.finish();
    let restored = restored?;
    tell(&restored, &chosen, args.bind_new_streams);
    println!("restored into {}", with_real_paths(&data_dir.display()));
    Ok(ExitCode::SUCCESS)
}

fn tell(restored: &Restored, chosen: &[Chosen], binds: bool) {
    let Restored { manifest, moved_to, another, was_interrupted } = restored;
    if *was_interrupted {
        println!("completed the restore that was interrupted");
    }
    println!("taken at    {} by ranktree {}", manifest.taken_at, manifest.version);
    println!("shards      {:>12}", HumanCount(u64::from(manifest.shard_count)).to_string());
    println!("size        {:>12}", HumanBytes(manifest.bytes()).to_string());
    for shard in &manifest.shards {
        let chosen = chosen.iter().find(|chosen| chosen.shard.0 == shard.shard);
        let from = chosen.map_or_else(String::new, told_of);
        println!("shard {:<5} applied {}{from}", shard.shard, shard.applied_sequence);
    }
    if let Some(moved_to) = moved_to {
        println!("the shards of before are in {}", with_real_paths(&moved_to.display()));
        if let Some(another) = another {
            println!("some of them are of another service, {another}");
        }
    }
    let DataLayout { shards, own } = manifest.layout();
    let own = if own.is_first(shards) { String::new() } else { format!(" --own {own}") };
    println!("start the service with --shards {shards}{own}");
    if binds {
        println!(
            "it binds these data to new streams: start it before all other nodes, and those with empty data \
             directories once GET /v1/status shows its shards live"
        );
    }
}

/// From which snapshot a shard is, and which older copies others have.
fn told_of(chosen: &Chosen) -> String {
    let older: Vec<String> =
        chosen.older.iter().map(|(path, applied)| format!("{applied} in {}", path.display())).collect();
    let older = if older.is_empty() { String::new() } else { format!(" (and {})", older.join(", ")) };
    with_real_paths(&format!(" from {}{older}", chosen.from.display()))
}
