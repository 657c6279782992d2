//! `ranktree verify`.

use std::fmt::Display;
use std::process::ExitCode;

use crate::cli::Failure;
use crate::cli::escaped::escaped_text;
use crate::cli::offline::Offline;
use crate::storage::{verify, verify_parked, with_real_paths};
use crate::writer::lines_of;

const AFTER_HELP: &str = "\
The line of a shard counts boards; instances of their windows, such as days and seasons, apart from all, and only those that \
members of the shard have entered; for boards with movement the trees that it needs; the \
members; and the entries of boards and instances.

Exit status: 0 all is well, 1 something is wrong and is listed, 2 the data of a shard cannot be read or must not be used.";

/// Reads everything, recomputes every tree from members and deltas, and compares it with the stored one:
/// order, scores, ties, counts, versions, times, metadata. Reads every job that waits for its board. Writes
/// nothing, and needs no permission to. The service must be stopped.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER_HELP)]
pub struct Args {
    #[command(flatten)]
    offline: Offline,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let (mut wrong, mut wrong_parked, mut wrong_markers, mut refused) = (0, 0, 0, 0);
    args.offline.each_shard(|id, store, progress| {
        let looked_at = store.and_then(|store| {
            let note = |what, done, total| progress.note(what, done, total);
            let found = verify(&store, &note)?;
            let parked = verify_parked(&store, &lines_of, &note)?;
            Ok((found, parked, store.has_damaged_marker(), store.torn_end()))
        });
        progress.finish();
        let ((verified, findings), (parked, of_parked), has_damaged_marker, torn_end) = match looked_at {
            Ok(looked_at) => looked_at,
            Err(error) => {
                println!("shard {id}: {}", escaped_text(&with_real_paths(&error)));
                refused += 1;
                return Ok(());
            }
        };
        let movement = match verified.movement {
            0 => String::new(),
            trees => count(trees, "tree for movement", "trees for movement") + ", ",
        };
        println!(
            "shard {id}: {}, {}, {movement}{}, {}, {}, {} after the checkpoint, applied {}: {}",
            count(verified.boards, "board", "boards"),
            count(verified.instances, "instance of a window", "instances of windows"),
            count(verified.members, "member", "members"),
            count(verified.entries, "entry", "entries"),
            count(parked, "parked job", "parked jobs"),
            count(verified.deltas, "delta", "deltas"),
            verified.applied,
            if findings.is_empty() && of_parked.is_empty() && !has_damaged_marker {
                "no errors found"
            } else {
                "errors were found"
            },
        );
        if has_damaged_marker {
            println!("  the file RANKTREE is damaged: the next start writes it again from the other files");
            wrong_markers += 1;
        }
        if let Some(torn_end) = torn_end {
            println!("  {torn_end}. A power failure does that; nothing that was synced is missing");
        }
        for finding in findings.iter().chain(&of_parked) {
            println!("  {}", escaped_text(finding));
        }
        wrong += findings.len();
        wrong_parked += of_parked.len();
        Ok(())
    })?;
    if wrong > 0 {
        let findings = count(wrong, "finding", "findings");
        println!("{findings}. `ranktree rebuild` rebuilds the trees from the members.");
    }
    if wrong_parked > 0 {
        println!(
            "{} in parked jobs: restore the whole directory from a copy. Or move the data directory away \
             and start with an empty one, which is filled from the streams as far as they reach back (if \
             their beginning was purged, start once with --accept-gap for each shard).",
            count(wrong_parked, "finding", "findings"),
        );
    }
    match (refused, wrong + wrong_parked + wrong_markers) {
        (0, 0) => Ok(ExitCode::SUCCESS),
        (0, _) => Ok(ExitCode::from(1)),
        _ => Err(format!("{} could not be opened or read", count(refused, "shard", "shards")).into()),
    }
}

/// A number of things, in words.
fn count<N: Copy + Display + PartialEq + From<u8>>(number: N, one: &str, several: &str) -> String {
    let noun = if number == N::from(1) { one } else { several };
    format!("{number} {noun}")
}
