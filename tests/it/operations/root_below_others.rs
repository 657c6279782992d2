//! What root reads and writes below another user's folder: by that user's rights, also if the user moves
//! things while it works; and special files that the user leaves in the data.
//!
//! Only root can try the first. Run by another user, the tests say so, and still check what they can.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use serde_json::{Value, json};

use crate::operations::restored_by_root::{BOARD, Place, USER, facts, is_root};
use crate::support::client::entry_path;
use crate::support::node::Node;
use crate::support::snapshots::{content, restore, run, text, verify};

/// A folder that belongs to the user, in one that everybody may pass.
fn folder_of_user(place: &Place, name: &str) -> PathBuf {
    let folder = place.path(name);
    fs::create_dir(&folder).expect("it can be made");
    chown(&folder, Some(USER), Some(USER)).expect("root may");
    folder
}

fn link_of_user(link: &Path, target: &Path) {
    symlink(target, link).expect("it can be made");
    lchown(link, Some(USER), Some(USER)).expect("root may");
}

#[test]
fn what_root_makes_below_somebody_elses_folder_belongs_to_that_user() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let theirs = folder_of_user(&place, "theirs");
    folder_of_user(&place, "theirs/man");
    // The user cannot even pass the folder above.
    let above = theirs.parent().expect("it has one");
    fs::set_permissions(above, fs::Permissions::from_mode(0o700)).expect("root may");
    let at = |name: &str| text(&theirs.join(name)).to_owned();
    let (original, rows) = (place.path("original"), place.path("rows.csv"));
    fs::write(&rows, "board,member,score\narena,m,x\n").expect("it can be written");
    let (output, made) = (at("out.ndjson"), at("new"));
    let export = ["export", "--board", BOARD, "--data-dir", text(&original), "--output", &output];
    let (code, said) = run(&export);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(&["man", &at("man")]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = restore(&place.path("copy"), Path::new(&made), &[]);
    assert_eq!(code, Some(0), "{said}");
    let mut node = Node::at(&original).shards(2).start();
    let (code, said) = run(&["snapshot", "--url", node.base(), "--to", &at("snap")]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(&["import", text(&rows), "--url", node.base(), "--rejects", &at("rejects.csv")]);
    assert_eq!(code, Some(2), "{said}");
    assert!(node.terminate().success());
    let found = facts(&theirs);
    for name in ["out.ndjson", "man/ranktree.1", "new/RANKTREE", "snap/SNAPSHOT.json", "rejects.csv"] {
        assert!(found.contains_key(&theirs.join(name)), "{name}");
    }
    let others: Vec<_> = found.into_iter().filter(|(_, facts)| facts.0 != USER).collect();
    assert!(others.is_empty(), "{others:?}");
    verify(&theirs.join("new"));
    assert_eq!(content(&theirs.join("new"), BOARD), content(&original, BOARD));
}

/// The copy is one that only root may read.
#[test]
fn a_snapshot_below_somebody_elses_folder_is_read_by_that_users_rights() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let (theirs, secret) = (folder_of_user(&place, "theirs"), place.path("copy"));
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o700)).expect("root may");
    link_of_user(&theirs.join("link"), &secret);
    let (code, said) = restore(&theirs.join("link"), &theirs.join("data"), &[]);
    assert!(code == Some(2) && said.contains("is a link that the user 12345 has made"), "{said}");
    assert!(!theirs.join("data").exists());
    fs::create_dir(theirs.join("swapped")).expect("it can be made");
    while_swapping(&theirs.join("swapped"), &theirs.join("link"), || {
        let (code, said) = restore(&theirs.join("swapped"), &theirs.join("data"), &[]);
        assert_eq!(code, Some(2), "{said}");
        assert!(!theirs.join("data/shard-000").exists(), "{said}");
    });
}

/// What a file cannot be read for would be told to the user in the file of rejected rows.
#[test]
fn a_file_of_rows_below_somebody_elses_folder_is_read_by_that_users_rights() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let (theirs, secret) = (folder_of_user(&place, "theirs"), place.path("secret"));
    fs::write(&secret, "member,score\nSECRET,x\n").expect("it can be written");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("root may");
    link_of_user(&theirs.join("link.csv"), &secret);
    let service = Node::start();
    let rejects = theirs.join("rejects.csv");
    let import = |file: &Path| {
        let files = ["import", text(file), "--rejects", text(&rejects), "--board", BOARD];
        run(&[&files[..], &["--url", service.base()]].concat())
    };
    let (code, said) = import(&theirs.join("link.csv"));
    assert!(code == Some(2) && said.contains("is a link that the user 12345 has made"), "{said}");
    // A file of root's that the user has put there cannot be read by the user, either.
    fs::hard_link(&secret, theirs.join("hard.csv")).expect("root may");
    let (code, said) = import(&theirs.join("hard.csv"));
    assert!(code == Some(2) && said.contains("Permission denied"), "{said}");
    let told = fs::read_to_string(&rejects).unwrap_or_default();
    assert!(!told.contains("SECRET") && !said.contains("SECRET"), "{told}{said}");
}

#[test]
fn settings_and_secrets_behind_another_users_link_are_not_read_by_root() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let (theirs, secret) = (folder_of_user(&place, "theirs"), place.path("secret"));
    fs::write(&secret, "root_only = \"root-secret-content\"\n").expect("it can be written");
    let (link, folder) = (theirs.join("link"), theirs.join("folder"));
    link_of_user(&link, &secret);
    link_of_user(&folder, secret.parent().expect("it has one"));
    let url = ["--url", "http://127.0.0.1:1"];
    for file in [link, folder.join("secret")] {
        let file = text(&file);
        for command in [
            &["export", "--board", BOARD, url[0], url[1], "--token-file", file][..],
            &["rejects", url[0], url[1], "--token-file", file],
            &["serve", "--listen", "127.0.0.1:0", "--data-dir", "none", "--tokens", file],
            &["config", "check", "--config", file],
        ] {
            let (code, said) = run(command);
            assert!(code != Some(0) && said.contains("is a link that another user has made"), "{said}");
            assert!(!said.contains("root_only") && !said.contains("root-secret"), "{said}");
        }
    }
}

#[test]
fn folders_of_two_users_are_refused_and_so_is_a_service_below_one() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let theirs = folder_of_user(&place, "theirs");
    let inner = theirs.join("inner");
    fs::create_dir(&inner).expect("it can be made");
    let (status, said) = Node::at(inner.join("data")).shards(2).refusal();
    assert!(!status.success() && said.contains("theirs belongs to the user 12345"), "{said}");
    chown(&inner, Some(USER + 1), None).expect("root may");
    let refused = [
        run(&["verify", "--data-dir", text(&inner)]),
        run(&["man", text(&inner)]),
        run(&[
            "export",
            "--board",
            BOARD,
            "--data-dir",
            text(&place.path("original")),
            "--output",
            text(&inner.join("x")),
        ]),
        restore(&place.path("copy"), &inner, &[]),
        restore(&inner, &place.path("new"), &[]),
    ];
    for (code, said) in refused {
        assert!(code == Some(2) && said.contains("to the user 12346") && said.contains("sudo -u"), "{said}");
    }
    assert_eq!(fs::read_dir(&inner).expect("it is there").count(), 0);
    // A folder of root's, whose shards are another user's.
    let data = place.data();
    for name in ["RANKTREE", "shard-000", "shard-001"] {
        chown(data.join(name), Some(USER), Some(USER)).expect("root may");
    }
    let (status, said) = Node::at(&data).shards(2).refusal();
    assert!(!status.success() && said.contains("belongs to the user 12345"), "{said}");
}

/// Exchanges two names of a folder for as long as the work is tried.
fn while_swapping(one: &Path, other: &Path, work: impl Fn()) {
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let swapping = scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).expect("both are there");
            }
        });
        let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (0..20).for_each(|_| work())));
        ends.store(true, Ordering::Relaxed);
        swapping.join().expect("it swaps");
        worked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[test]
fn a_folder_that_is_swapped_for_a_link_while_root_works_leads_nowhere() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let (theirs, outside) = (folder_of_user(&place, "theirs"), place.path("outside"));
    let swapped = folder_of_user(&place, "theirs/swapped");
    link_of_user(&theirs.join("link"), &outside);
    let before = facts(&outside);
    let original = place.path("original");
    let mine = swapped.join("mine");
    while_swapping(&swapped, &theirs.join("link"), || {
        let _refused_or_done = run(&["man", text(&swapped)]);
        let export = ["export", "--board", BOARD, "--data-dir", text(&original), "--output", text(&mine)];
        let _refused_or_done = run(&[&export[..], &["--replace"]].concat());
        let _refused_or_done = run(&["rejects", "--data-dir", text(&swapped)]);
        assert_eq!(facts(&outside), before);
    });
    let roots: Vec<_> = facts(&theirs).into_iter().filter(|(_, facts)| facts.0 == 0).collect();
    assert!(roots.is_empty(), "{roots:?}");
}

#[test]
fn special_files_in_the_place_of_data_are_refused_and_nothing_waits_for_them() {
    let place = Place::new();
    for name in ["RANKTREE", "shard-000/RANKTREE", "shard-001/CURRENT", "shard-001/IDENTITY", "shard-000/any"]
    {
        let data = place.data();
        let file = data.join(name);
        // One of them is not there.
        let _ = fs::remove_file(&file);
        mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("it can be made");
        let (code, said) = run(&["verify", "--data-dir", text(&data)]);
        assert!(code == Some(2) && said.contains("not a regular file"), "{name}: {said}");
    }
    for name in ["shard-000/RANKTREE", "shard-001/CURRENT"] {
        let data = place.data();
        let file = data.join(name);
        File::create(&file).and_then(|file| file.set_len(1 << 40)).expect("it takes no room");
        let (code, said) = run(&["verify", "--data-dir", text(&data)]);
        assert!(code == Some(2) && said.contains("it has more than"), "{name}: {said}");
        fs::remove_file(&file).expect("it is there");
        symlink("/dev/zero", &file).expect("it can be made");
        let (code, said) = run(&["verify", "--data-dir", text(&data)]);
        assert_eq!(code, Some(2), "{name}: {said}");
    }
    // A data directory may be a link of one's own.
    symlink(place.data(), place.path("link")).expect("it can be made");
    verify(&place.path("link"));
    assert_eq!(fs::metadata(place.path("link")).map(|found| found.is_dir()).ok(), Some(true));
}

#[test]
fn metadata_reach_a_terminal_without_what_it_would_obey() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut node = Node::at(folder.path().join("data")).shards(1).start();
    let meta = json!({"a": "\u{9b}2J\u{7f}", "b": "x\u{202e}gpj"});
    let entry = json!({"score": 1, "meta": meta});
    assert_eq!(node.client().put(&entry_path(BOARD, "m"), &entry).0, 200);
    let exported = |format: &str| {
        let (code, said) =
            run(&["export", "--board", BOARD, "--rows-only", "--url", node.base(), "--format", format]);
        assert_eq!(code, Some(0), "{said}");
        assert!(!said.contains(['\u{9b}', '\u{7f}', '\u{202e}']), "{said:?}");
        said
    };
    let row: Value = serde_json::from_str(exported("ndjson").lines().next().expect("a row")).expect("JSON");
    assert_eq!(row["meta"], meta, "it is the same JSON");
    assert!(exported("csv").contains(r"\u009b2J\u007f"));
    assert!(node.terminate().success());
}
