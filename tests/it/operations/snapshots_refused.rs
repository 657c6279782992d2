//! Restore refuses what is no whole snapshot, and data directories that are in use or not empty, and leaves
//! everything as it was.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::operations::snapshots::fill;
use crate::support::files::copy_folder;
use crate::support::node::Node;
use crate::support::snapshots::{content, files_of, manifest, restore, run, served, snapshot, text};

const BOARD: &str = "arena";

/// The largest file of a shard of a snapshot whose name ends so.
fn largest(shard: &Path, ending: &str) -> std::path::PathBuf {
    let files = fs::read_dir(shard).expect("it is there").map(|entry| entry.expect("readable").path());
    let files = files.filter(|path| text(path).ends_with(ending));
    files.max_by_key(|path| path.metadata().expect("it is there").len()).expect("there is one")
}

fn change(path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("it is there");
    edit(&mut bytes);
    fs::write(path, bytes).expect("it can be written");
}

/// Damages a copy of a snapshot.
type Damage = fn(&Path);

#[test]
fn damaged_and_foreign_snapshots_are_refused_and_the_data_directory_is_untouched() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| folder.path().join(name);
    let mut node = Node::at(path("data")).shards(2).start();
    fill(&node.client(), 2_000);
    snapshot(&node, &path("whole"));
    fill(&node.client(), 2_500);
    snapshot(&node, &path("later"));
    assert!(node.terminate().success());
    let before = files_of(&path("data"));
    fs::create_dir(path("empty")).expect("it can be made");

    let damages: [(&str, Damage, &str); 8] = [
        (
            "a flipped byte",
            |copy| change(&largest(&copy.join("shard-001"), ".sst"), |bytes| bytes[100] ^= 1),
            "does not have its checksum",
        ),
        (
            "a file that is cut",
            |copy| change(&largest(&copy.join("shard-000"), ".sst"), |bytes| bytes.truncate(bytes.len() - 1)),
            "bytes in place of",
        ),
        (
            "a missing file",
            |copy| fs::remove_file(largest(&copy.join("shard-000"), ".sst")).expect("it is there"),
            "is missing",
        ),
        (
            "a missing shard",
            |copy| fs::remove_dir_all(copy.join("shard-001")).expect("it is there"),
            "is missing",
        ),
        (
            "a shard of another snapshot",
            |copy| {
                fs::remove_dir_all(copy.join("shard-001")).expect("it is there");
                copy_folder(&copy.with_file_name("later").join("shard-001"), &copy.join("shard-001"));
            },
            "is damaged: ",
        ),
        (
            "another format",
            |copy| {
                let mut manifest = manifest(copy);
                manifest["format"] = json!(2);
                fs::write(copy.join("SNAPSHOT.json"), manifest.to_string()).expect("it can be written");
            },
            "has format 2, and this ranktree reads format 1",
        ),
        (
            "an edited manifest",
            |copy| {
                let mut manifest = manifest(copy);
                manifest["shards"].as_array_mut().and_then(Vec::pop).expect("two");
                manifest["shard_count"] = json!(1);
                fs::write(copy.join("SNAPSHOT.json"), manifest.to_string()).expect("it can be written");
            },
            "does not have the checksum that it states",
        ),
        (
            "no manifest",
            |copy| fs::remove_file(copy.join("SNAPSHOT.json")).expect("it is there"),
            "holds no snapshot",
        ),
    ];
    for (name, damage, expect) in damages {
        let copy = path("damaged");
        copy_folder(&path("whole"), &copy);
        damage(&copy);
        for more in [&["--replace"][..], &[]] {
            let (code, said) = restore(&copy, &path("data"), more);
            // Without --replace, what is there may be the reason.
            let is_said = said.contains(expect) || (more.is_empty() && said.contains("is not empty"));
            assert!(code == Some(2) && is_said, "{name}: {said}");
            assert_eq!(files_of(&path("data")), before, "{name}");
        }
        // What a restore makes goes with it, and what was there stays.
        for target in ["none", "above/below/none", "empty", "empty/none"] {
            let (code, said) = restore(&copy, &path(target), &[]);
            assert!(code == Some(2) && said.contains(expect), "{name}, {target}: {said}");
        }
        assert!(!path("none").exists() && !path("above").exists(), "{name}");
        assert_eq!(fs::read_dir(path("empty")).expect("it was there").count(), 0, "{name}");
        fs::remove_dir_all(&copy).expect("it is ours");
    }
    // A directory that is no snapshot leaves no data directory behind.
    let (code, said) = restore(&path("empty"), &path("none"), &[]);
    assert!(code == Some(2) && said.contains("holds no snapshot"), "{said}");
    assert!(!path("none").exists());
    // The shards are looked into, too: a manifest that states another sequence, with a checksum of its own.
    let copy = path("lying");
    copy_folder(&path("whole"), &copy);
    restate(&copy);
    let (code, said) = restore(&copy, &path("data"), &["--replace"]);
    assert!(code == Some(2) && said.contains("its manifest states the applied sequence 1 of"), "{said}");
    assert_eq!(files_of(&path("data")), before);
    // All is as it was.
    node.restart();
    assert_eq!(served(&node, BOARD).len(), 2_500);
}

/// Writes a manifest anew that states another applied sequence.
fn restate(copy: &Path) {
    let mut bare = manifest(copy);
    bare["shards"][0]["applied_sequence"] = json!(1);
    bare["checksum"] = json!("");
    let checksum = crc32c::crc32c(bare.to_string().as_bytes());
    bare["checksum"] = Value::from(format!("{checksum:08x}"));
    fs::write(copy.join("SNAPSHOT.json"), bare.to_string()).expect("it can be written");
}

#[test]
fn data_directories_in_use_or_not_empty_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| folder.path().join(name);
    let mut node = Node::at(path("data")).shards(2).start();
    fill(&node.client(), 1_000);
    snapshot(&node, &path("copy"));
    for more in [&["--replace"][..], &[]] {
        let (code, said) = restore(&path("copy"), &path("data"), more);
        assert!(code == Some(2) && said.contains("is in use by another process"), "{said}");
    }
    fill(&node.client(), 1_200);
    assert_eq!(served(&node, BOARD).len(), 1_200);
    assert!(node.terminate().success());
    let before = files_of(&path("data"));
    let (code, said) = restore(&path("copy"), &path("data"), &[]);
    let expect = "is not empty: it has RANKTREE, shard-000, shard-001; give an empty directory";
    assert!(code == Some(2) && said.contains(expect), "{said}");
    assert_eq!(files_of(&path("data")), before);
    // Another number of shards comes into place as a whole.
    let mut other = Node::at(path("other")).shards(5).start();
    assert!(other.terminate().success());
    // It is another service's, which is told before anything is done, and takes consent.
    let before = files_of(&path("other"));
    let (code, said) = restore(&path("copy"), &path("other"), &["--replace"]);
    assert!(code == Some(2) && said.contains("holds data of the service"), "{said}");
    assert!(said.contains("--replace-another-service"), "{said}");
    assert_eq!(files_of(&path("other")), before);
    let (code, said) = restore(&path("copy"), &path("other"), &["--replace-another-service"]);
    assert!(code == Some(0) && said.contains("start the service with --shards 2"), "{said}");
    assert!(said.contains("some of them are of another service"), "{said}");
    assert_eq!(content(&path("other"), BOARD).len(), 1_000);
    let (code, said) = restore(&path("copy"), &path("none"), &[]);
    assert_eq!(code, Some(0), "{said}");
    // One foreign shard is told, too, also where the directory itself has lost its file; of the same service
    // none is, whichever copy it is.
    let mut other = Node::at(path("third")).shards(2).start();
    assert!(other.terminate().success());
    for loses_file in [false, true] {
        let mixed = path(&format!("mixed-{loses_file}"));
        copy_folder(&path("data"), &mixed);
        fs::remove_dir_all(mixed.join("shard-001")).expect("it is there");
        copy_folder(&path("third/shard-001"), &mixed.join("shard-001"));
        if loses_file {
            fs::remove_file(mixed.join("RANKTREE")).expect("it is there");
        }
        let (code, said) = restore(&path("copy"), &mixed, &["--replace"]);
        assert!(code == Some(2) && said.contains("--replace-another-service"), "{said}");
    }
    for same in ["data", "none"] {
        let (code, said) = restore(&path("copy"), &path(same), &["--replace"]);
        assert!(code == Some(0) && !said.contains("another service"), "{said}");
    }
    // A directory that only has what earlier restores moved aside is empty.
    for name in ["RANKTREE", "shard-000", "shard-001"] {
        let path = path("other").join(name);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("it is there");
    }
    let (code, said) = restore(&path("copy"), &path("other"), &[]);
    assert_eq!(code, Some(0), "{said}");
}

/// A restore from the data directory into itself would move the snapshot aside and use it up.
#[test]
fn snapshots_inside_of_a_data_directory_are_neither_taken_nor_restored() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| folder.path().join(name);
    let mut node = Node::at(path("data")).shards(2).start();
    fill(&node.client(), 1_000);
    snapshot(&node, &path("copy"));
    for inside in ["data/copy", "data/shard-000/copy"] {
        let (code, said) = run(&["snapshot", "--url", node.base(), "--to", text(&path(inside))]);
        assert!(code == Some(2) && said.contains("holds a service's data"), "{said}");
        assert!(!path(inside).exists());
    }
    assert!(node.terminate().success());
    std::os::unix::fs::symlink(path("copy"), path("link")).expect("it can be made");
    let before = files_of(&path("copy"));
    for data in ["copy", "copy/", "link", "copy/data", ""] {
        let (code, said) = restore(&path("copy"), &path(data), &["--replace"]);
        assert!(code == Some(2) && said.contains("would use the snapshot up"), "{data}: {said}");
        assert_eq!(files_of(&path("copy")), before, "{data}");
    }
    let (code, said) = restore(&path("copy"), &path("data"), &["--replace"]);
    assert_eq!(code, Some(0), "{said}");
}
