//! What root does in a data directory of somebody else's is done by that user's rights. Whatever the user has
//! put there, nothing outside of it is changed, given away, or copied from.
//!
//! Only root can try that. Run by another user, the tests say so, and still check what they can.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::operations::snapshots::fill;
use crate::support::files::copy_folder;
use crate::support::node::Node;
use crate::support::snapshots::{content, restore, run, snapshot, text, verify};
use crate::support::tools::left_out;

pub const BOARD: &str = "arena";
/// Nobody's number.
pub const USER: u32 = 12_345;

/// A snapshot of a node, and the directory of the node, which is stopped; and what is neither's.
pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let place = Self { folder };
        let mut node = Node::at(place.path("original")).shards(2).start();
        fill(&node.client(), 300);
        snapshot(&node, &place.path("copy"));
        assert!(node.terminate().success());
        fs::create_dir_all(place.path("outside/shard-000")).expect("it can be made");
        for name in ["mine", "shard-000/mine", "shard-000/CURRENT"] {
            fs::write(place.path("outside").join(name), "mine").expect("it can be written");
        }
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The node's directory once more, where there was none.
    pub fn data(&self) -> PathBuf {
        let data = self.path("data");
        let _ = fs::remove_dir_all(&data);
        copy_folder(&self.path("original"), &data);
        data
    }
}

/// Everything below a folder: whose it is, its mode, and its content.
pub fn facts(folder: &Path) -> BTreeMap<PathBuf, (u32, u32, Vec<u8>)> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(path) = folders.pop() {
        let facts = fs::symlink_metadata(&path).expect("it is there");
        let mut content = Vec::new();
        if facts.is_dir() {
            let entries = fs::read_dir(&path).expect("it can be listed");
            folders.extend(entries.map(|entry| entry.expect("it can be listed").path()));
        } else if facts.is_symlink() {
            content = text(&fs::read_link(&path).expect("it is one")).as_bytes().to_vec();
        } else {
            content = fs::read(&path).expect("it can be read");
        }
        found.insert(path, (facts.uid(), facts.mode(), content));
    }
    found
}

pub fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        left_out("that nothing is done by root's rights: only root can try it; `make test-root` does");
    }
    is_root
}

/// Gives all of a folder to the user; links themselves, not what they lead to.
fn give_all(folder: &Path) {
    for path in facts(folder).keys() {
        lchown(path, Some(USER), Some(USER)).expect("root may");
    }
}

/// What somebody may have put into the directory: a name, and where the link of that name leads outside.
const LINKS: [(&str, &str); 9] = [
    ("RESTORING.new", "mine"),
    ("RANKTREE.new", "mine"),
    ("restore.staged", ""),
    ("copies.staged", ""),
    ("shard-000", "shard-000"),
    ("shard-002", "shard-000"),
    ("shard-001/RANKTREE.new", "mine"),
    ("shard-001/staging", "shard-000"),
    ("RANKTREE", "mine"),
];

#[test]
fn links_in_the_data_directory_lead_a_restore_nowhere() {
    let place = Place::new();
    let original = content(&place.path("original"), BOARD);
    let outside = facts(&place.path("outside"));
    let owners: &[Option<u32>] = if is_root() { &[None, Some(USER)] } else { &[None] };
    for owner in owners {
        for (name, target) in LINKS {
            let data = place.data();
            let link = data.join(name);
            let removed = if link.is_dir() { fs::remove_dir_all(&link) } else { fs::remove_file(&link) };
            // Most are not there.
            let _ = removed;
            symlink(place.path("outside").join(target), &link).expect("it can be made");
            if owner.is_some() {
                give_all(&data);
            }
            let (code, said) = restore(&place.path("copy"), &data, &["--replace"]);
            assert_eq!(facts(&place.path("outside")), outside, "{name} of {owner:?}: {said}");
            assert_eq!(code, Some(0), "{name} of {owner:?}: {said}");
            if owner.is_some() {
                let others: Vec<_> = facts(&data).into_iter().filter(|(_, facts)| facts.0 != USER).collect();
                assert!(others.is_empty(), "{name}: {others:?}");
            }
            assert_eq!(content(&data, BOARD), original, "{name} of {owner:?}");
            assert_eq!(facts(&place.path("outside")), outside, "{name} of {owner:?}");
        }
    }
}

#[test]
fn a_plan_that_names_folders_outside_is_refused_and_gives_nothing_away() {
    let place = Place::new();
    let outside = facts(&place.path("outside"));
    let absolute = text(&place.path("outside")).to_owned();
    let names = [absolute.as_str(), "../outside", "before-restore-x/../../outside", "", "..", "shard-001"];
    let owners: &[Option<u32>] = if is_root() { &[None, Some(USER)] } else { &[None] };
    for owner in owners {
        for name in names {
            let data = place.data();
            let plan = json!({"format": 1, "snapshot": "x", "shards": 2, "moved_to": name});
            fs::write(data.join("RESTORING"), plan.to_string()).expect("it can be written");
            if owner.is_some() {
                give_all(&data);
            }
            let before = facts(&data);
            for more in [&["--replace"][..], &[]] {
                let (code, said) = restore(&place.path("copy"), &data, more);
                let is_said = said.contains("RESTORING is none that ranktree has written");
                assert!(code == Some(2) && is_said, "{name:?} of {owner:?}: {said}");
                assert_eq!(facts(&data), before, "{name:?} of {owner:?}");
                assert_eq!(facts(&place.path("outside")), outside, "{name:?} of {owner:?}");
            }
        }
        // A folder of a name of ours, that is a link.
        let data = place.data();
        let plan = json!({"format": 1, "snapshot": "x", "shards": 2, "moved_to": "before-restore-x"});
        fs::write(data.join("RESTORING"), plan.to_string()).expect("it can be written");
        symlink(place.path("outside"), data.join("before-restore-x")).expect("it can be made");
        if owner.is_some() {
            give_all(&data);
        }
        let before = facts(&data);
        let (code, said) = restore(&place.path("copy"), &data, &["--replace"]);
        assert!(
            code == Some(2) && said.contains("before-restore-x is in the place of a directory"),
            "{said}"
        );
        assert_eq!((facts(&data), facts(&place.path("outside"))), (before, outside.clone()));
    }
}

#[test]
fn links_in_a_snapshot_are_not_followed() {
    let place = Place::new();
    let manifest = fs::read(place.path("copy/SNAPSHOT.json")).expect("it is there");
    for name in ["SNAPSHOT.json", "shard-000", "shard-001/CURRENT", "shard-001/RANKTREE"] {
        let copy = place.path("linked");
        let _ = fs::remove_dir_all(&copy);
        copy_folder(&place.path("copy"), &copy);
        let (linked, real) = (copy.join(name), place.path("real"));
        let _ = if real.is_dir() { fs::remove_dir_all(&real) } else { fs::remove_file(&real) };
        fs::rename(&linked, &real).expect("it can be moved");
        symlink(&real, &linked).expect("it can be made");
        let (code, said) = restore(&copy, &place.path("new"), &[]);
        assert_eq!(code, Some(2), "{name}: {said}");
        let is_said = ["it is a link", "is not a regular file", "Not a directory"]
            .iter()
            .any(|words| said.contains(words));
        assert!(is_said, "{name}: {said}");
        let made = fs::read_dir(place.path("new")).map_or(0, Iterator::count);
        assert_eq!(made, 0, "{name}");
    }
    assert_eq!(fs::read(place.path("copy/SNAPSHOT.json")).expect("it is there"), manifest);
}

#[test]
fn commands_on_stopped_data_leave_nothing_of_roots_in_somebody_elses_directory() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let data = place.data();
    give_all(&data);
    // The user may not pass the directories above, as with systemd's DynamicUser.
    fs::set_permissions(place.folder.path(), fs::Permissions::from_mode(0o700)).expect("root may");
    let all_are_the_users = |after: &str| {
        let others: Vec<_> = facts(&data).into_iter().filter(|(_, facts)| facts.0 != USER).collect();
        assert!(others.is_empty(), "after {after}: {others:?}");
    };
    let before = facts(&data);
    verify(&data);
    assert_eq!(facts(&data), before, "verify writes nothing");
    // The output is root's, where the user may write nothing.
    let output = place.path("arena.ndjson");
    let export = ["export", "--board", BOARD, "--data-dir", text(&data), "--output", text(&output)];
    let (code, said) = run(&export);
    assert!(code == Some(0) && output.is_file(), "{said}");
    let (code, said) = run(&["rejects", "--data-dir", text(&data)]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(facts(&data), before, "export and rejects write nothing");
    let (code, said) = run(&["rebuild", "--data-dir", text(&data)]);
    assert_eq!(code, Some(0), "{said}");
    all_are_the_users("rebuild");
    let (code, said) = restore(&place.path("copy"), &data, &["--replace"]);
    assert_eq!(code, Some(0), "{said}");
    all_are_the_users("restore");
    let aside = said.lines().find_map(|line| line.strip_prefix("the shards of before are in "));
    let aside = Path::new(aside.expect("it says so"));
    assert!(aside.starts_with(data.canonicalize().expect("it is there")), "{}", aside.display());
    // Errors name real paths.
    fs::remove_dir_all(data.join("shard-001")).expect("root may");
    let (code, said) = run(&["verify", "--data-dir", text(&data)]);
    assert!(code == Some(2) && said.contains(text(&data.join("shard-001"))), "{said}");
    // A service of root's would leave files that the user's cannot read.
    let (status, said) = Node::at(&data).shards(2).refusal();
    assert!(!status.success() && said.contains("belongs to the user 12345"), "{said}");
    all_are_the_users("a refused start");
}

#[test]
fn output_of_root_does_not_follow_links_of_others() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let theirs = place.path("theirs");
    fs::create_dir(&theirs).expect("it can be made");
    chown(&theirs, Some(USER), Some(USER)).expect("root may");
    for (link, target) in [
        ("out.ndjson", "mine"),
        ("out.ndjson.partial", "mine"),
        ("folder", "shard-000"),
        ("snap.partial", ""),
    ] {
        symlink(place.path("outside").join(target), theirs.join(link)).expect("it can be made");
        lchown(theirs.join(link), Some(USER), Some(USER)).expect("root may");
    }
    let outside = facts(&place.path("outside"));
    let original = place.path("original");
    let export = |to: &str| {
        let to = theirs.join(to);
        run(&["export", "--board", BOARD, "--data-dir", text(&original), "--output", text(&to)])
    };
    for to in ["out.ndjson", "folder/mine", "folder/new"] {
        let (code, said) = export(to);
        assert!(code == Some(2) && said.contains("is a link that the user 12345 has made"), "{to}: {said}");
        assert_eq!(facts(&place.path("outside")), outside, "{to}");
    }
    // The file that is written until the export is complete is made anew.
    fs::remove_file(theirs.join("out.ndjson")).expect("root may");
    assert_eq!(export("out.ndjson").0, Some(0));
    assert_eq!(facts(&place.path("outside")), outside);
    let mut node = Node::at(&original).shards(2).start();
    let (code, said) = run(&["snapshot", "--url", node.base(), "--to", text(&theirs.join("snap"))]);
    assert!(code == Some(2) && said.contains("is a link that the user 12345 has made"), "{said}");
    let rejects = theirs.join("folder/mine");
    fs::write(place.path("rows.csv"), "board,member,score\na,b,1\n").expect("it can be written");
    let rows = place.path("rows.csv");
    let (code, said) = run(&["import", text(&rows), "--url", node.base(), "--rejects", text(&rejects)]);
    assert!(code == Some(2) && said.contains("is a link that the user 12345 has made"), "{said}");
    assert_eq!(facts(&place.path("outside")), outside);
    assert!(node.terminate().success());
}
