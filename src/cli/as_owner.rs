//! What root does with a data directory is done by the rights of the directory's owner.
//!
//! The owner runs the service, which somebody may have taken over. Whoever writes to the directory decides
//! what its files say and where its links lead, so with root's rights a command would change, or give away,
//! whatever they point at.
//!
//! Knows: whose a path is, and how a thread becomes its owner. Must not know: what is done there.

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd as _, IntoRawFd as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Gid, Uid};
use rustix::process::geteuid;
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::cli::Failure;
use crate::storage::OPEN_FILES;

/// If this thread is root's, and a directory is somebody else's, the thread becomes that user for good, and
/// so do the threads that it starts. Those that it has started stay what they are.
///
/// Returns the path by which the thread reaches the directory from then on: an open file, because the user
/// may not be allowed to pass the directories above, as with systemd's `DynamicUser`. Otherwise it is the
/// path that was given. `with_real_paths` makes messages readable again.
///
/// # Errors
/// When the path leads through a link of somebody else's, or the system refuses.
pub fn become_owner_of(directory: &Path) -> Result<PathBuf, Failure> {
    if !geteuid().is_root() {
        return Ok(directory.to_owned());
    }
    refuse_links_of_others(directory)?;
    // What is not there, and what is no directory, is refused by whoever uses it.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(directory);
    let Ok(opened) = opened else { return Ok(directory.to_owned()) };
    let facts = opened.metadata()?;
    if facts.uid() == 0 {
        return Ok(directory.to_owned());
    }
    // Somebody else may have put a directory of root's group there.
    let group = if facts.gid() == 0 { facts.uid() } else { facts.gid() };
    let (user, group) = (Uid::from_raw(facts.uid()), Gid::from_raw(group));
    let became = set_thread_groups(&[])
        .and_then(|()| set_thread_res_gid(group, group, group))
        .and_then(|()| set_thread_res_uid(user, user, user));
    if let Err(error) = became {
        let (folder, user) = (directory.display(), user.as_raw());
        return Err(format!(
            "{folder} belongs to the user {user}, and root works there by that user's rights only, but cannot take \
             them on: {error}; run this as that user, such as by sudo -u '#{user}'"
        )
        .into());
    }
    tracing::info!(
        user = user.as_raw(),
        "{} belongs to another user than root, and is used by that user's rights",
        directory.display()
    );
    let reached = PathBuf::from(format!("{OPEN_FILES}{}", opened.as_raw_fd()));
    // It stays open as long as the process runs.
    let _ = opened.into_raw_fd();
    Ok(if reached.is_dir() { reached } else { directory.to_owned() })
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
    std::thread::scope(|scope| {
        let working = scope.spawn(|| work(&become_owner_of(directory)?));
        working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Refuses to start a service as root on somebody else's data: the service writes files there whose names its
/// owner knows.
///
/// # Errors
/// When that is so.
pub fn refuse_data_of_others(data_dir: &Path) -> Result<(), Failure> {
    if !geteuid().is_root() {
        return Ok(());
    }
    refuse_links_of_others(data_dir)?;
    match std::fs::metadata(data_dir) {
        Ok(found) if found.uid() != 0 => {
            let (folder, user) = (data_dir.display(), found.uid());
            Err(format!(
                "{folder} belongs to the user {user}, and this process runs as root. The service would leave files \
                 there that {user} cannot read, and write wherever that user's links lead; run it as that user, such \
                 as by User= in its unit, docker run --user, or sudo -u '#{user}'. Or give the directory and \
                 everything in it to root (chown -R)"
            )
            .into())
        }
        _ => Ok(()),
    }
}

/// Refuses a path that leads through a link of somebody else's, if this process is root's. It could lead
/// anywhere, by the time that it is used.
///
/// # Errors
/// When that is so.
pub fn refuse_links_of_others(path: &Path) -> Result<(), Failure> {
    if !geteuid().is_root() {
        return Ok(());
    }
    match link_of_others(path) {
        None => Ok(()),
        Some((link, user)) => {
            let link = link.display();
            Err(format!(
                "{link} is a link that the user {user} has made, and root does not follow it: it could lead anywhere \
                 by the time that it is used. Give the path that it leads to"
            )
            .into())
        }
    }
}

/// The first link on the way to a path that is not root's, and whose it is.
fn link_of_others(path: &Path) -> Option<(PathBuf, u32)> {
    let path = std::path::absolute(path).ok()?;
    let mut way = PathBuf::new();
    for component in path.components() {
        way.push(component);
        let Component::Normal(_) = component else { continue };
        // Below what is not there, there are no links.
        let found = std::fs::symlink_metadata(&way).ok()?;
        if !found.is_symlink() {
            continue;
        }
        if found.uid() != 0 {
            return Some((way, found.uid()));
        }
        // Of a link of root's, the way that it leads.
        let target = std::fs::read_link(&way).ok()?;
        way.pop();
        let target = way.join(target);
        // Links in a circle lead nowhere.
        let real = target.canonicalize().ok()?;
        if let Some(found) = link_of_others(&target) {
            return Some(found);
        }
        way = real;
    }
    None
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
