//! What a command makes is refused where it would take something away: in a data directory, in the file that
//! is read.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::support::nats::Nats;
use crate::support::node::Node;
use crate::support::snapshots::{restore, run, snapshot, text};

/// All files below a folder, with what is in them.
fn files_below(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("it is there") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push((text(&path).to_owned(), fs::read(&path).expect("it can be read")));
        }
    }
    found.sort();
    found
}

#[test]
fn nothing_is_written_into_a_data_directory_and_no_other_service_begins_in_one() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let mut service = Node::at(&data).shards(2).start();
    assert_eq!(service.client().put("/v1/boards/arena/members/m", &json!({"score": 1})).0, 200);
    snapshot(&service, &copy);
    assert!(service.terminate().success(), "{}", service.log());
    let other = Node::start();
    assert_eq!(other.client().put("/v1/boards/arena/members/m", &json!({"score": 2})).0, 200);
    let rows = folder.path().join("rows.csv");
    fs::write(&rows, "member,score\nm,x\n").expect("it can be written");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&data, &link).expect("it can be made");
    let before = files_below(&data);
    for place in ["RANKTREE", "new.csv", "shard-001/CURRENT", "shard-000/new.csv", "snapshots/new.csv"] {
        for through in [&data, &link] {
            let place = through.join(place);
            let export = ["export", "--board", "arena", "--url", other.base(), "--output", text(&place)];
            let board = ["--board", "arena", "--url", other.base()];
            let import = [&["import", text(&rows), "--rejects", text(&place)][..], &board].concat();
            for (flag, command) in [("--output", &export[..]), ("--rejects", &import[..])] {
                let (code, said) = run(command);
                let expect = format!("may be removed with them; give a place elsewhere with {flag}");
                assert!(code == Some(2) && said.contains(&expect), "{command:?}: {said}");
            }
        }
    }
    for inner in ["inner", "snapshots", "snapshots/inner", "shard-000/inner"] {
        let inner = data.join(inner);
        let expect = "which holds a service's data";
        let (status, said) = Node::at(&inner).shards(1).refusal();
        assert!(!status.success() && said.contains(expect), "{said}");
        let (code, said) = restore(&copy, &inner, &[]);
        assert!(code == Some(2) && said.contains(expect), "{said}");
    }
    assert_eq!(files_below(&data), before);
}

#[test]
fn rejected_rows_are_not_written_into_the_file_that_is_read() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let [rows, more, link, hard] =
        ["rows.csv", "more.csv", "link", "hard"].map(|name| folder.path().join(name));
    for file in [&rows, &more] {
        fs::write(file, "member,score\nm,1\n").expect("it can be written");
    }
    std::os::unix::fs::symlink(&more, &link).expect("it can be made");
    fs::hard_link(&rows, &hard).expect("it can be made");
    let service = Node::start();
    for rejects in [&rows, &more, &link, &hard] {
        for dry in [&["--dry-run"][..], &["--unchecked"], &[]] {
            let files = ["import", text(&rows), text(&more), "--rejects", text(rejects)];
            let board = ["--board", "arena", "--url", service.base()];
            let (code, said) = run(&[&files[..], &board, dry].concat());
            assert!(code == Some(2) && said.contains("give --rejects another file"), "{said}");
        }
    }
    // Nor over anything else that no import has written.
    let (notes, bad) = (folder.path().join("notes"), folder.path().join("bad.csv"));
    fs::write(&notes, "dear\n").expect("it can be written");
    fs::write(&bad, "member,score\nm,x\n").expect("it can be written");
    let into = |file: &Path, more: &[&str]| {
        let board = ["--board", "arena", "--url", service.base(), "--rejects", text(file)];
        run(&[&["import", text(&bad)][..], &board, more].concat())
    };
    for dry in [&["--dry-run"][..], &["--unchecked"], &[]] {
        let (code, said) = into(&notes, dry);
        assert!(code == Some(2) && said.contains("give --rejects another name"), "{said}");
        assert_eq!(fs::read_to_string(&notes).expect("it is there"), "dear\n");
    }
    fs::write(&notes, "").expect("it can be written");
    for _ in 0..2 {
        assert_eq!(into(&notes, &["--dry-run"]).0, Some(1));
        let rejects = fs::read_to_string(&notes).expect("it is there");
        assert!(rejects.starts_with("line,code,detail\n2,bad_score,"), "{rejects}");
    }
    assert_eq!(fs::read_to_string(&rows).expect("it is there"), "member,score\nm,1\n");
    assert_eq!(fs::read_to_string(&more).expect("it is there"), "member,score\nm,1\n");
    assert_eq!(service.client().get("/v1/boards/arena").0, 404, "nothing was sent");
}

/// A copy that is half done has neither the record of the data directory nor its first shard.
#[test]
fn no_service_begins_empty_beside_a_shard_that_holds_data() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let data = folder.path().join("data");
    let mut service = Node::at(&data).shards(2).start();
    assert_eq!(service.client().put("/v1/boards/arena/members/m", &json!({"score": 1})).0, 200);
    assert!(service.terminate().success(), "{}", service.log());
    fs::remove_file(data.join("RANKTREE")).expect("it is there");
    fs::remove_dir_all(data.join("shard-000")).expect("it is there");
    let before = files_below(&data);
    for shards in [1, 2] {
        let (status, said) = Node::at(&data).shards(shards).refusal();
        assert!(
            !status.success() && (said.contains("2 shards") || said.contains("missing or empty")),
            "{said}"
        );
        assert!(files_below(&data) == before, "nothing is written: {said}");
    }
}

/// A start in the folder above, by mistake, would keep the service below from its data.
#[test]
fn no_service_begins_above_another_ones_data() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let data = folder.path().join("data");
    let mut service = Node::at(&data).start();
    assert_eq!(service.client().put("/v1/boards/arena/members/m", &json!({"score": 1})).0, 200);
    assert!(service.terminate().success(), "{}", service.log());
    let before = files_below(folder.path());
    let (status, said) = Node::at(folder.path()).refusal();
    assert!(!status.success() && said.contains("holds one, ") && said.contains(text(&data)), "{said}");
    let (code, checked) = run(&["config", "check", "--data-dir", text(folder.path())]);
    assert!(code == Some(1) && checked.contains("holds one, "), "{checked}");
    assert!(files_below(folder.path()) == before, "nothing is written: {said}");
    let service = Node::at(&data).start();
    assert_eq!(service.client().get("/v1/boards/arena/members/m").0, 200);
}

#[test]
fn a_link_that_leads_nowhere_and_a_directory_in_use_are_named_as_the_operator_knows_them() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary directory"));
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path().join("unmounted"), &link).expect("it can be made");
    let (status, said) = Node::at(&link).refusal();
    let told = format!("{} is a link that leads nowhere; mount or make what it names", text(&link));
    assert!(status.code() == Some(2) && said.contains(&told), "{said}");
    assert!(!folder.path().join("unmounted").exists());
    let node = Node::with_nats(&nats).start();
    let (status, said) = Node::with_nats(&nats).at(node.data_dir()).refusal();
    let told = format!("{} is in use by another process", text(node.data_dir()));
    assert!(status.code() == Some(2) && said.contains(&told), "{said}");
}
