//! What root does below a path is done by the rights of the user whose folders it leads through.
//!
//! Whoever owns a folder on the way to a file decides what lies there, and where it leads, also between a
//! look at it and its use. So with root's rights a command would change, or give away, whatever that user
//! points at. Folders of root's with the sticky bit, such as /tmp, are root's, although everybody may write
//! to them: nobody else can move what is in them. Without that bit, whoever may write there could, so that
//! root's rights are not used below.
//!
//! Knows: whose a path is, and how a thread becomes its owner. Must not know: what is done there.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::os::fd::{AsFd, IntoRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Gid, Mode, OFlags, Uid, openat, readlinkat};
use rustix::process::geteuid;
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::cli::Failure;
use crate::storage::OPEN_FILES;

/// The marker of a data directory.
const MARKER: &str = "RANKTREE";
/// Bits of a mode: a group may write, and everybody may.
const WRITTEN_BY_GROUP: u32 = 0o020;
const WRITTEN_BY_ALL: u32 = 0o002;
/// Only their owners may move or remove what is in a folder.
const STICKY: u32 = 0o1000;
/// As many as the system follows.
const LINKS_MAX: u32 = 40;

/// If this thread is root's, and a folder on the way to a directory, or itself, is somebody else's, the
/// thread becomes that user for good, and so do the threads that it starts. Those that it has started stay
/// what they are.
///
/// Returns the path by which the thread reaches the directory from then on: an open folder, which stays the
/// same one wherever it is moved, and because the user may not be allowed to pass the directories above, as
/// with systemd's `DynamicUser`. Otherwise it is the path that was given. `with_real_paths` makes messages
/// readable again.
///
/// # Errors
/// When the path leads through folders of two other users, or a link of one; or the system refuses.
pub fn become_owner_of(directory: &Path) -> Result<PathBuf, Failure> {
    if !geteuid().is_root() {
        return Ok(directory.to_owned());
    }
    let way = Way::to(directory, Last::Folder)?.with_content()?.closed()?;
    if way.owner.is_none() { Ok(directory.to_owned()) } else { way.enter() }
}

/// As [`become_owner_of`], for one piece of work: the caller stays root.
///
/// # Errors
/// As [`become_owner_of`], and those of the work.
pub fn as_owner_of<T: Send>(
    directory: &Path,
    work: impl FnOnce(&Path) -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    if !geteuid().is_root() {
        return work(directory);
    }
    in_a_thread(|| work(&become_owner_of(directory)?))
}

/// Where a file is to be.
pub struct FilePlace {
    pub path: PathBuf,
    /// Flags to open it with: if this is root's, all links are resolved, and what is one by now is not
    /// followed.
    pub flags: i32,
}

/// As [`become_owner_of`], for a file: whose itself is does not count, only the folders that it is in.
pub fn become_owner_of_folder_of(file: &Path) -> Result<FilePlace, Failure> {
    let as_given = FilePlace { path: file.to_owned(), flags: 0 };
    if !geteuid().is_root() {
        return Ok(as_given);
    }
    let way = Way::to(file, Last::Name)?;
    if way.is_open && way.owner.is_none() {
        return Ok(as_given);
    }
    Ok(FilePlace { path: way.enter()?, flags: libc::O_NOFOLLOW })
}

/// As [`become_owner_of_folder_of`], for one piece of work: the caller stays root.
///
/// # Errors
/// As [`become_owner_of_folder_of`], and those of the work.
pub fn as_owner_of_folder_of<T: Send>(
    file: &Path,
    work: impl FnOnce(&FilePlace) -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    if !geteuid().is_root() {
        return work(&become_owner_of_folder_of(file)?);
    }
    in_a_thread(|| work(&become_owner_of_folder_of(file)?))
}

/// Creates a file, or empties it, by the rights of the user whose folder it is in.
///
/// # Errors
/// As [`become_owner_of_folder_of`], and when it cannot be made.
pub fn create_file(path: &Path) -> Result<File, Failure> {
    as_owner_of_folder_of(path, |place| {
        let mut options = File::options();
        options.write(true).create(true).truncate(true).custom_flags(place.flags);
        Ok(options.open(&place.path)?)
    })
}

/// Opens a file for reading, by the same rights: root would read out what the user's link leads to.
///
/// # Errors
/// As [`become_owner_of_folder_of`], and when it cannot be opened.
pub fn open_file(path: &Path) -> std::io::Result<File> {
    let opened = as_owner_of_folder_of(path, |place| {
        Ok(File::options().read(true).custom_flags(place.flags).open(&place.path))
    });
    opened.map_err(std::io::Error::other).flatten()
}

fn in_a_thread<T: Send>(work: impl FnOnce() -> Result<T, Failure> + Send) -> Result<T, Failure> {
    std::thread::scope(|scope| {
        scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Refuses to start a service as root on data that somebody else can move: the service writes files there
/// whose names that user knows.
pub fn refuse_data_of_others(data_dir: &Path) -> Result<(), Failure> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let way = Way::to(data_dir, Last::Folder)?.with_content()?;
    if let (None, Some(folder)) = (&way.owner, &way.open_to_others) {
        tracing::warn!(
            folder = %folder.display(),
            "it belongs to root, and other users may write to it: they could exchange the service's data, and \
             commands such as restore refuse it; chmod go-w it"
        );
    }
    let Some(Owner { user, folder, .. }) = way.owner else { return Ok(()) };
    let (folder, data_dir) = (folder.display(), data_dir.display());
    Err(format!(
        "{folder} belongs to the user {user}, and this process runs as root. The service would leave files in \
         {data_dir} that {user} cannot read, and write wherever that user's links lead; run it as that user, such as \
         by User= in its unit, docker run --user, or sudo -u '#{user}'"
    )
    .into())
}

/// Refuses a path that leads through a link of somebody else's, or through folders of two others, if this
/// process is root's. It could lead anywhere, by the time that it is used.
pub fn refuse_links_of_others(path: &Path) -> Result<(), Failure> {
    if !geteuid().is_root() {
        return Ok(());
    }
    Way::to(path, Last::Name).map(drop)
}

/// What the last name of a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// A folder, whose owner counts as those of the folders above it.
    Folder,
    /// Whatever it is, it is looked at only to see whether it is a link.
    Name,
}

/// The way to a path, without links, as far as it is there.
struct Way {
    /// The last folder of it, held open.
    folder: File,
    /// Where that is.
    real: PathBuf,
    /// What is below it: the last name, or what is not there.
    rest: PathBuf,
    /// The only one but root who owns folders of it.
    owner: Option<Owner>,
    /// The last folder of root's in which others may move what is there.
    open_to_others: Option<PathBuf>,
    /// Whether it leads to what a process has open, such as /dev/stdout.
    is_open: bool,
}

struct Owner {
    user: u32,
    group: u32,
    /// The last of the folders that are this user's.
    folder: PathBuf,
}

impl Way {
    /// Goes from / downwards, each step from the open folder before it, so that nothing that is moved
    /// meanwhile is passed unseen.
    ///
    /// # Errors
    /// When it leads through folders of two users who are not root, or a link of one; or the system refuses.
    fn to(path: &Path, last: Last) -> Result<Self, Failure> {
        let start = std::path::absolute(path).and_then(|absolute| Ok((absolute, root()?)));
        let (absolute, folder) =
            start.map_err(|error| format!("{} cannot be looked up: {error}", path.display()))?;
        let (real, rest) = (PathBuf::from("/"), PathBuf::new());
        let mut way = Self { folder, real, rest, owner: None, open_to_others: None, is_open: false };
        let facts = way.folder.metadata()?;
        way.count(&facts, Path::new("/"))?;
        let (mut ahead, mut links) = (Vec::new(), 0);
        push_names(&mut ahead, &absolute);
        while let Some(name) = ahead.pop() {
            // Whatever is not there, or cannot be passed, is told by whoever uses the path.
            let Ok(found) = open_way(&way.folder, &name) else {
                ahead.push(name);
                break;
            };
            let facts = found.metadata()?;
            if facts.is_symlink() {
                let link = way.real.join(&name);
                if facts.uid() != 0 {
                    return Err(link_of_another(&link, facts.uid()));
                }
                links += 1;
                way.is_open = link.starts_with("/proc");
                if way.is_open || links > LINKS_MAX {
                    ahead.push(name);
                    break;
                }
                let target = readlinkat(&found, "", Vec::<u8>::new())?;
                let target = Path::new(OsStr::from_bytes(target.as_bytes()));
                if target.is_absolute() {
                    (way.folder, way.real) = (root()?, PathBuf::from("/"));
                }
                push_names(&mut ahead, target);
            } else if facts.is_dir() && (last == Last::Folder || !ahead.is_empty() || name == "..") {
                if name == ".." {
                    way.real.pop();
                } else {
                    way.real.push(&name);
                }
                let real = way.real.clone();
                way.count(&facts, &real)?;
                way.folder = found;
            } else {
                ahead.push(name);
                break;
            }
        }
        way.rest = ahead.into_iter().rev().collect();
        Ok(way)
    }

    /// Counts who owns the shards in a folder of root's, too: a volume may be the group's whose members run
    /// the service.
    fn with_content(mut self) -> Result<Self, Failure> {
        if self.owner.is_some() || !self.rest.as_os_str().is_empty() {
            return Ok(self);
        }
        // What is no folder, or cannot be read, is refused by whoever uses it.
        let Ok(entries) = std::fs::read_dir(&self.real) else { return Ok(self) };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let is_of_data = name == MARKER || name.as_bytes().starts_with(b"shard-");
            let facts = if is_of_data { entry.metadata().ok() } else { None };
            match facts {
                Some(facts) if facts.is_symlink() && facts.uid() != 0 => {
                    return Err(link_of_another(&entry.path(), facts.uid()));
                }
                Some(facts) => self.count(&facts, &entry.path())?,
                None => {}
            }
        }
        Ok(self)
    }

    /// # Errors
    /// When root's own rights would be used, and somebody else can move what lies on the way.
    fn closed(self) -> Result<Self, Failure> {
        match self.open_to_others.as_ref().filter(|_| self.owner.is_none() && !self.is_open) {
            None => Ok(self),
            Some(folder) => Err(format!(
                "{} belongs to root, and other users may write to it, so that they could exchange what root uses \
                 there; take that right away (chmod go-w)",
                folder.display()
            )
            .into()),
        }
    }

    /// Counts the owner of a folder.
    fn count(&mut self, facts: &Metadata, folder: &Path) -> Result<(), Failure> {
        let user = facts.uid();
        if user == 0 {
            // Members of root's own group are taken for root.
            let others = if facts.gid() == 0 { WRITTEN_BY_ALL } else { WRITTEN_BY_ALL | WRITTEN_BY_GROUP };
            if facts.is_dir() && facts.mode() & others != 0 && facts.mode() & STICKY == 0 {
                self.open_to_others = Some(folder.to_owned());
            }
            return Ok(());
        }
        if let Some(before) = self.owner.as_ref().filter(|before| before.user != user) {
            let (above, other, here) = (before.folder.display(), before.user, folder.display());
            return Err(format!(
                "{above} belongs to the user {other}, and {here} to the user {user}, so root works there by the rights \
                 of neither; run this as the one who may do it, such as by sudo -u '#{user}', or give a path whose \
                 folders all belong to root"
            )
            .into());
        }
        // Somebody else may have put a directory of root's group there.
        let group = if facts.gid() == 0 { user } else { facts.gid() };
        self.owner = Some(Owner { user, group, folder: folder.to_owned() });
        Ok(())
    }

    /// Becomes the owner, if there is one, and returns the path by which all of this is reached.
    fn enter(self) -> Result<PathBuf, Failure> {
        let Self { folder, real, rest, owner, .. } = self;
        let below = |folder: PathBuf| {
            if rest.as_os_str().is_empty() { folder } else { folder.join(&rest) }
        };
        let Some(owner) = owner else { return Ok(below(real)) };
        let (user, group) = (Uid::from_raw(owner.user), Gid::from_raw(owner.group));
        let became = set_thread_groups(&[])
            .and_then(|()| set_thread_res_gid(group, group, group))
            .and_then(|()| set_thread_res_uid(user, user, user));
        let (theirs, user) = (owner.folder.display(), owner.user);
        if let Err(error) = became {
            return Err(format!(
                "{theirs} belongs to the user {user}, and root works there by that user's rights only, but cannot \
                 take them on: {error}; run this as that user, such as by sudo -u '#{user}'"
            )
            .into());
        }
        tracing::info!(user, "{theirs} belongs to another user than root, and is used by that user's rights");
        // It stays open as long as the process runs.
        let reached = PathBuf::from(format!("{OPEN_FILES}{}", folder.into_raw_fd()));
        Ok(below(if reached.is_dir() { reached } else { real }))
    }
}

fn link_of_another(link: &Path, user: u32) -> Failure {
    let link = link.display();
    format!(
        "{link} is a link that the user {user} has made, and root does not follow it: it could lead anywhere by the \
         time that it is used. Give the path that it leads to"
    )
    .into()
}

fn root() -> std::io::Result<File> {
    open_way(CWD, OsStr::new("/"))
}

/// Opens whatever has a name, only to look at it and to go on from it. A link is not followed.
fn open_way(folder: impl AsFd, name: &OsStr) -> std::io::Result<File> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(folder, name, flags, Mode::empty())?))
}

/// Puts the names of a path before those that are ahead, the next one last.
fn push_names(ahead: &mut Vec<OsString>, path: &Path) {
    let names = path.components().rev().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    ahead.extend(names);
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};

    use super::*;

    const USER: u32 = 12_345;
    const GROUP: u32 = 23_456;

    /// Only root can become somebody else.
    fn is_root() -> bool {
        let is_root = geteuid().is_root();
        if !is_root {
            println!("not root, so there is no other user to become");
        }
        is_root
    }

    #[test]
    fn work_in_a_directory_of_somebody_else_has_that_users_rights_only() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = folder.path().join("data");
        std::fs::create_dir(&data).expect("it can be made");
        std::fs::write(folder.path().join("of-root"), "of root").expect("it can be written");
        let work = |reached: &Path| {
            std::fs::write(reached.join("made"), "made")?;
            symlink(folder.path().join("of-root"), reached.join("link"))?;
            Ok::<_, Failure>(std::fs::write(reached.join("link"), "overwritten").is_err())
        };
        if !is_root() {
            assert!(!as_owner_of(&data, work).expect("all is this user's"), "it is this user's own file");
            return;
        }
        // The user cannot pass the directory above.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).expect("root may");
        for group in [GROUP, 0] {
            chown(&data, Some(USER), Some(group)).expect("root may");
            assert!(
                as_owner_of(&data, work).expect("the user may"),
                "root's file is not the user's to write"
            );
            let made = std::fs::metadata(data.join("made")).expect("it was made");
            assert_eq!((made.uid(), made.gid()), (USER, if group == 0 { USER } else { group }));
            std::fs::remove_file(data.join("made")).expect("root may");
            std::fs::remove_file(data.join("link")).expect("root may");
        }
        let of_root = std::fs::read_to_string(folder.path().join("of-root")).expect("it is there");
        assert_eq!(of_root, "of root");
        assert!(geteuid().is_root(), "the caller stays what it was");
        let refused = refuse_data_of_others(&data).expect_err("it is somebody else's").to_string();
        assert!(refused.contains("belongs to the user 12345"), "{refused}");
        refuse_data_of_others(folder.path()).expect("it is root's");
        refuse_data_of_others(&folder.path().join("none")).expect("it will be root's");
    }

    #[test]
    fn a_folder_of_roots_that_others_may_write_to_is_roots_only_with_the_sticky_bit() {
        if !is_root() {
            return;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (shared, data) = (folder.path().join("shared"), folder.path().join("shared/below/data"));
        std::fs::create_dir_all(&data).expect("it can be made");
        let nothing = |_: &Path| Ok(());
        for (mode, group, is_roots) in [
            (0o755, 0, true),
            (0o1777, 0, true),
            (0o1775, GROUP, true),
            (0o777, 0, false),
            (0o2775, GROUP, false),
            (0o775, 0, true),
        ] {
            chown(&shared, Some(0), Some(group)).expect("root may");
            std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(mode)).expect("root may");
            for path in [&shared, &data, &data.join("none")] {
                if let Err(said) = as_owner_of(path, nothing) {
                    let said = said.to_string();
                    assert!(
                        said.contains("other users may write to it") && said.contains("chmod go-w"),
                        "{said}"
                    );
                    assert!(!is_roots, "{mode:o} {}: {said}", path.display());
                }
                assert_eq!(as_owner_of(path, nothing).is_ok(), is_roots, "{mode:o} {}", path.display());
            }
        }
        // A volume of the group whose members run the service: root works by the rights of one of them.
        let volume = folder.path().join("volume");
        std::fs::create_dir_all(volume.join("shard-000")).expect("it can be made");
        std::fs::set_permissions(&volume, std::fs::Permissions::from_mode(0o2775)).expect("root may");
        chown(volume.join("shard-000"), Some(USER), Some(GROUP)).expect("root may");
        as_owner_of(&volume, nothing).expect("the user may");
    }

    #[test]
    fn root_follows_its_own_links_and_no_others() {
        if !is_root() {
            return;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("real/below")).expect("it can be made");
        symlink(path("real"), path("own")).expect("it can be made");
        symlink("real/below", path("others")).expect("it can be made");
        symlink(path("others"), path("real/to-others")).expect("it can be made");
        symlink("circle", path("circle")).expect("it can be made");
        lchown(path("others"), Some(USER), None).expect("root may");
        for good in ["real", "real/below/none/at/all", "own", "own/below", "none", "circle"] {
            refuse_links_of_others(&path(good)).expect(good);
        }
        for bad in ["others", "others/x", "real/to-others", "own/to-others/x", "own/../others"] {
            let refused = refuse_links_of_others(&path(bad)).expect_err(bad).to_string();
            assert!(refused.contains("others is a link that the user 12345 has made"), "{refused}");
        }
    }
}
