//! `ranktree snapshot`: a copy of a running service's data, fetched over its API.
//!
//! Knows: what is asked for, and what is told. The directory is `directory`'s, the pieces are `fetch`'s.

mod directory;
mod fetch;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use indicatif::{HumanBytes, HumanCount};

use crate::cli::Failure;
use crate::cli::client::Reader;
use crate::cli::progress::Progress;
use crate::config::{ClientArgs, FileArgs};
use crate::snapshot::Manifest;
use directory::PartialDirectory;
use fetch::Begun;

const EXAMPLES: &str = "\
Examples:
  Of the service on this machine:
    ranktree snapshot --to /backup/ranks-sunday
  Of another one, with a token of the scope admin for all boards:
    ranktree snapshot --url https://ranks.example:8080 --token-file admin.token \\
      --to /backup/ranks-sunday

The copy of a shard holds everything up to its applied sequence, which SNAPSHOT.json states. The shards of one snapshot are \
copied within moments of each other. Writes and reads go on: the service makes hard links in its data directory, and the files \
are fetched from there. It holds two snapshots at a time and refuses more. One that its client has abandoned is removed after \
two minutes, and at a restart.

A connection that breaks is taken up again for a minute. The copy grows beside its place, as DIR.partial, and gets its name \
once it is complete, synced, and read again with every checksum right. So whatever has the name is whole. If snapshot is \
interrupted, the next one with the same --to removes what is left.

`ranktree restore` puts a snapshot into a data directory. The copy has everything that these shards hold: all boards, versions, \
hidden entries and rejected jobs. Only its owner can read it.

Exit status: 0 complete, 2 failure.";

/// Copies the data of a running service into a directory: every shard that the node owns, which is all of
/// them unless it has --own. Takes a token with the scope admin and for all boards, where the service asks
/// for tokens.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// The running service's base URL
    #[arg(long, value_name = "URL", env = "RANKTREE_URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// The directory to write, which must be empty or absent
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Read where the arguments are.
    #[command(flatten)]
    _file: FileArgs,
    #[command(flatten)]
    client: ClientArgs,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let started = Instant::now();
    let service = Reader::new(&args.url, &args.client, "snapshot")?;
    let directory = PartialDirectory::create(&args.to)?;
    let progress = Progress::new("snapshot".to_owned());
    progress.note("copying on the service", 0, 0);
    let fetched = Begun::begin(&service).and_then(|begun| {
        let fetched = begun.fetch(&service, &directory, &progress);
        begun.release(&service);
        fetched
    });
    let completed = fetched.and_then(|manifest| {
        directory.complete(&manifest, &progress)?;
        Ok(manifest)
    });
    progress.finish();
    tell(args, &completed?, started);
    Ok(ExitCode::SUCCESS)
}

fn tell(args: &Args, manifest: &Manifest, started: Instant) {
    let layout = manifest.layout();
    println!("shards      {:>12}", HumanCount(u64::from(manifest.shard_count)).to_string());
    if !layout.own.is_first(layout.shards) {
        println!(
            "of those    {:>12}, which is what the node owns; take one of the other nodes, too",
            layout.own
        );
    }
    println!("files       {:>12}", HumanCount(crate::types::count(manifest.files().count())).to_string());
    println!("size        {:>12}", HumanBytes(manifest.bytes()).to_string());
    println!("seconds     {:>12.2}", started.elapsed().as_secs_f64());
    for shard in &manifest.shards {
        println!("shard {:<5} applied {}", shard.shard, shard.applied_sequence);
    }
    println!("the snapshot is in {}", args.to.display());
}
