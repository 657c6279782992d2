//! `ranktree restore`.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use indicatif::{HumanBytes, HumanCount};
use parking_lot::Mutex;
use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, Uid, chownat, openat, statat};
use rustix::io::Errno;

use crate::cli::Failure;
use crate::cli::offline::exit_on_signal;
use crate::cli::progress::Progress;
use crate::config::{DataArgs, FileArgs};
use crate::snapshot::{Restored, restore};
use crate::storage::{DataLayout, shard_directory};
use crate::types::ShardId;

/// The file of a data directory that says which shards it has.
const MARKER: &str = "RANKTREE";

const EXAMPLES: &str = "\
Examples:
  Into a new data directory:
    ranktree restore --from /backup/ranks-sunday --data-dir ./data
  Into that of a stopped service, whose shards are kept beside the new ones:
    ranktree restore --from /backup/ranks-sunday --data-dir /var/lib/ranktree --replace

The snapshot is copied into the data directory and checked there: that every shard and every file is there, that all \
checksums are right, that the shards open, and all that `ranktree verify` checks. The shards that were there are touched \
only afterwards. They are moved into a folder of the data directory, named before-restore- and the time; nothing is deleted. \
Remove that folder once the service runs well. To go back, stop the service, move the new shards and the file RANKTREE away, \
and move the content of that folder back.

The data directory needs room for the snapshot beside what is there. The snapshot itself is only read, and stays as it is.

If restore is interrupted while it puts the shards in place, the service refuses to start, and says so; the same command again \
completes it. If it is interrupted before that, the data directory is as it was.

Start the service with the number of shards that is printed. Without NATS, the writes since the snapshot are gone. With NATS, \
the node applies what it missed from the streams, as far as they reach back.

Exit status: 0 restored, 2 failure.";

/// Checks a snapshot, and puts it into the data directory of a stopped service.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// The directory that `ranktree snapshot` has written
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// Moves the shards that the data directory holds aside; without it, a data directory that is not empty
    /// is refused
    #[arg(long)]
    replace: bool,
    /// Read where the arguments are.
    #[command(flatten)]
    _file: FileArgs,
    #[command(flatten)]
    data: DataArgs,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let progress = Arc::new(Progress::new("restore".to_owned()));
    exit_on_signal(Arc::new(Mutex::new(Arc::clone(&progress))))?;
    let note = |what, done, total| progress.note(what, done, total);
    let restored = restore(&args.from, &args.data.data_dir, args.replace, &note);
    progress.finish();
    let restored = restored?;
    give_to_owner(&args.data.data_dir, &restored)?;
    tell(&restored);
    Ok(ExitCode::SUCCESS)
}

/// What root has made belongs to the owner of the data directory, who runs the service.
fn give_to_owner(data_dir: &Path, Restored { manifest, moved_to, .. }: &Restored) -> Result<(), Failure> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let shards = manifest.shards.iter().map(|shard| shard_directory(data_dir, ShardId(shard.shard)));
    let made = shards.chain([data_dir.join(MARKER)]).chain(moved_to.clone());
    let owner = std::fs::metadata(data_dir).map(|found| (found.uid(), found.gid()));
    let given = owner.and_then(|owner| made.into_iter().try_for_each(|path| give(&path, owner)));
    given.map_err(|error| {
        let folder = data_dir.display();
        format!(
            "the snapshot is restored, but its files cannot be given to the owner of {folder}: {error}; \
             give them to the service's user with chown -R"
        )
        .into()
    })
}

/// Changes the owner of a file, or of a directory and what is in it, unless it is root's no more.
fn give(path: &Path, owner: (u32, u32)) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let parent = std::fs::File::open(parent)?;
    Ok(give_at(parent.as_fd(), Path::new(name), owner)?)
}

/// As [`give`], for a name in an open directory. Follows no links: the directory's owner can put links there
/// at any moment, and root would give away what they lead to.
fn give_at(parent: BorrowedFd<'_>, name: &Path, owner: (u32, u32)) -> rustix::io::Result<()> {
    let found = match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        found => found?,
    };
    if found.st_uid != 0 {
        return Ok(());
    }
    if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let below = openat(parent, name, flags, Mode::empty())?;
        for entry in Dir::read_from(&below)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                give_at(below.as_fd(), Path::new(OsStr::from_bytes(name)), owner)?;
            }
        }
    }
    let (user, group) = (Uid::from_raw(owner.0), Gid::from_raw(owner.1));
    chownat(parent, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)
}

fn tell(restored: &Restored) {
    let Restored { manifest, moved_to, was_interrupted } = restored;
    if *was_interrupted {
        println!("completed the restore that was interrupted");
    }
    println!("taken at    {} by ranktree {}", manifest.taken_at, manifest.version);
    println!("shards      {:>12}", HumanCount(u64::from(manifest.shard_count)).to_string());
    println!("size        {:>12}", HumanBytes(manifest.bytes()).to_string());
    for shard in &manifest.shards {
        println!("shard {:<5} applied {}", shard.shard, shard.applied_sequence);
    }
    if let Some(moved_to) = moved_to {
        println!("the shards of before are in {}", moved_to.display());
    }
    let DataLayout { shards, own } = manifest.layout();
    let own = if own.is_first(shards) { String::new() } else { format!(" --own {own}") };
    println!("start the service with --shards {shards}{own}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only root can give files away.
    #[test]
    fn what_root_has_made_is_given_away_and_nothing_else() {
        const USER: u32 = 12_345;
        const OTHER: u32 = 23_456;
        if !rustix::process::geteuid().is_root() {
            println!("not root, so there is nothing to give");
            return;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("shard-000/below")).expect("it can be made");
        for name in ["shard-000/below/a", "shard-000/others", "elsewhere"] {
            std::fs::write(path(name), "").expect("it can be written");
        }
        std::os::unix::fs::symlink(path("elsewhere"), path("shard-000/link")).expect("it can be made");
        std::os::unix::fs::chown(path("shard-000/others"), Some(OTHER), None).expect("root may");
        give(&path("shard-000"), (USER, USER)).expect("root may");
        give(&path("missing"), (USER, USER)).expect("there is nothing to do");
        let owner = |name: &str| std::fs::symlink_metadata(path(name)).expect("it is there").uid();
        for name in ["shard-000", "shard-000/below", "shard-000/below/a", "shard-000/link"] {
            assert_eq!(owner(name), USER, "{name}");
        }
        assert_eq!((owner("shard-000/others"), owner("elsewhere")), (OTHER, 0));
    }
}
