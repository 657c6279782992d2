//! A node is started with data that were filled from elsewhere: without NATS, or from the streams under
//! another prefix, or of another service. The start is refused in words, before it makes a stream or changes
//! a byte, and `config check` says the same. A first start with a mistyped prefix is told in the log, and
//! takes no jobs that nobody would apply.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::client::{Client, entry_path};
use crate::support::nats::{Nats, wait_state, wait_until};
use crate::support::node::{Node, NodeSetup};
use crate::support::snapshots::{files_of, restore, run, snapshot};

const SHARDS: u16 = 2;

fn on(nats: &Nats, data: &Path) -> NodeSetup {
    Node::with_nats(nats).shards(SHARDS).stream_mib(16).at(data)
}

/// Ends a node that has applied a job on each of its shards.
fn fill(mut node: Node) {
    let client = node.client().waiting_for_writes();
    for member in 0..20 {
        let (status, answer) =
            client.put(&entry_path("arena", &format!("m{member}")), &json!({ "score": member }));
        assert_eq!(status, 200, "{answer}");
    }
    assert!(node.terminate().success());
}

/// A start with these flags is refused with all of these words, and so is `config check`; nothing is changed.
fn is_refused(nats: &Nats, data: &Path, flags: &[&str], words: &[&str]) {
    let (files, there) = (files_of(data), nats.stream_names());
    let (status, said) = Node::shards(SHARDS).at(data).flags(flags).refusal();
    assert_eq!(status.code(), Some(2), "{said}");
    let data_dir = data.to_str().expect("it is UTF-8");
    let check = ["config", "check", "--shards", "2", "--data-dir", data_dir];
    let (code, checked) = run(&[&check, flags].concat());
    assert_eq!(code, Some(1), "{checked}");
    for said in [said, checked] {
        for word in words {
            assert!(said.contains(word), "{word:?} is not said: {said}");
        }
    }
    assert_eq!(nats.stream_names(), there, "a stream was made");
    assert_eq!(files_of(data), files, "the directory was changed");
}

#[test]
fn data_that_were_filled_without_nats_are_refused_before_a_stream_is_made() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary folder"));
    let data = folder.path().join("data");
    fill(Node::shards(SHARDS).at(&data).start());
    let url = nats.url();
    let words =
        ["was filled without NATS", "new --data-dir", "ranktree export --data-dir", "ranktree import"];
    for more in
        [&[][..], &["--prefix", "other"], &["--accept-gap", "0", "--accept-gap", "1"], &["--adopt", "0"]]
    {
        is_refused(&nats, &data, &[&["--nats", url.as_str()], more].concat(), &words);
    }
    // NATS is not asked for that.
    is_refused(&nats, &data, &["--nats", "nats://127.0.0.1:1"], &words);
    // Without the file of the directory, and with one good shard beside.
    fs::remove_file(data.join("RANKTREE")).expect("it is there");
    is_refused(&nats, &data, &["--nats", &url], &words);
    assert_eq!(nats.stream_names(), [""; 0]);
    // It is as it was.
    let mut alone = Node::shards(SHARDS).at(&data).start();
    assert_eq!(alone.client().get(&entry_path("arena", "m7")).1["score"], 7);
    assert!(alone.terminate().success());
}

#[test]
fn a_directory_without_a_job_may_be_taken_to_nats() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary folder"));
    let data = folder.path().join("data");
    assert!(Node::shards(SHARDS).at(&data).start().terminate().success());
    fill(on(&nats, &data).start());
}

#[test]
fn data_of_streams_are_refused_without_nats() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary folder"));
    let data = folder.path().join("data");
    fill(on(&nats, &data).start());
    is_refused(&nats, &data, &[], &["filled from the stream RANKTREE_JOBS_0", "Start with --nats"]);
    fill(on(&nats, &data).start());
}

#[test]
fn a_directory_is_refused_under_another_prefix_whatever_it_holds() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary folder"));
    let url = nats.url();
    let data = |name: &str| folder.path().join(name);
    fill(on(&nats, &data("full")).flags(&["--prefix", "first"]).start());
    assert!(
        on(&nats, &data("empty")).flags(&["--prefix", "first", "--node", "b"]).start().terminate().success()
    );
    let own = ["--prefix", "first", "--node", "c", "--own", "none"];
    assert!(on(&nats, &data("none")).flags(&own).start().terminate().success());
    let words = ["streams under the prefix first", "--prefix is frist", "Start with --prefix first"];
    for (name, more) in [("full", &[][..]), ("empty", &[]), ("none", &["--own", "none"])] {
        for url in [url.as_str(), "nats://127.0.0.1:1"] {
            let flags = [&["--nats", url, "--prefix", "frist"], more].concat();
            is_refused(&nats, &data(name), &flags, &words);
        }
    }
    // The directory has lost its file, or is restored from a snapshot: its shards know.
    let mut node = on(&nats, &data("full")).flags(&["--prefix", "first"]).start();
    snapshot(&node, &data("taken"));
    assert!(node.terminate().success());
    let (code, said) = restore(&data("taken"), &data("restored"), &[]);
    assert_eq!(code, Some(0), "{said}");
    fs::remove_file(data("full").join("RANKTREE")).expect("it is there");
    for name in ["full", "restored"] {
        is_refused(&nats, &data(name), &["--nats", &url, "--prefix", "frist"], &words);
    }
    fill(on(&nats, &data("full")).flags(&["--prefix", "first"]).start());
}

/// The data are of this prefix, and of another server, or of streams that were deleted and made again.
#[test]
fn data_of_another_service_are_refused_before_they_are_changed() {
    let (nats, other, folder) =
        (Nats::start(), Nats::start(), tempfile::tempdir().expect("a temporary folder"));
    let data = |name: &str| folder.path().join(name);
    fill(on(&nats, &data("one")).start());
    fill(on(&other, &data("other")).start());
    let (files, there) = (files_of(&data("one")), other.stream_names());
    let (status, said) = on(&other, &data("one")).refusal();
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(
        said.contains("of the service") && said.contains("Start with the data directory of this"),
        "{said}"
    );
    assert_eq!((files_of(&data("one")), other.stream_names()), (files, there));
    fill(on(&nats, &data("one")).start());
}

/// The directory of another service, which holds nothing yet.
#[test]
fn a_directory_of_another_number_of_shards_than_the_streams_is_refused_before_it_is_changed() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary folder"));
    let data = |name: &str| folder.path().join(name);
    fill(on(&nats, &data("two")).start());
    for (name, setup) in [("alone", Node::shards(3)), ("streamed", Node::shards(3).with_nats(&Nats::start()))]
    {
        assert!(setup.at(data(name)).start().terminate().success());
        let (files, there) = (files_of(&data(name)), nats.stream_names());
        let (status, said) = Node::with_nats(&nats).shards(3).at(data(name)).refusal();
        assert_eq!(status.code(), Some(2), "{said}");
        assert!(
            said.contains("it is of 3 shards, and the streams under the prefix ranktree are of 2"),
            "{said}"
        );
        assert_eq!((files_of(&data(name)), nats.stream_names()), (files, there), "{name}");
    }
}

/// It is the operator's word that what was there is continued there.
#[test]
fn a_directory_is_moved_to_another_prefix_if_a_gap_of_each_shard_is_accepted() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary folder"));
    let data = folder.path().join("data");
    fill(on(&nats, &data).start());
    let url = nats.url();
    let moved = ["--nats", &url, "--prefix", "second", "--accept-gap", "1"];
    is_refused(&nats, &data, &moved, &["Start with --prefix ranktree"]);
    let both = ["--prefix", "second", "--accept-gap", "0", "--accept-gap", "1"];
    fill(on(&nats, &data).flags(&both).start());
    is_refused(&nats, &data, &["--nats", &url], &["Start with --prefix second"]);
    fill(on(&nats, &data).flags(&["--prefix", "second"]).start());
}

fn write(client: &Client, member: &str) -> (u16, Value) {
    client.put(&entry_path("arena", member), &json!({ "score": 1 }))
}

/// A first start with a mistyped prefix cannot be told from a new service. It is said, and no job is taken
/// that nobody would apply.
#[test]
fn a_new_prefix_is_told_beside_the_others_and_jobs_that_nobody_would_apply_are_refused() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary folder"));
    let data = |name: &str| folder.path().join(name);
    let first = on(&nats, &data("first")).start();
    wait_until("it says so", || first.log().contains("a new service begins"));
    assert!(!first.log().contains("under other prefixes"), "{}", first.log());
    let flags = ["--prefix", "rantkree", "--own", "0", "--node", "b"];
    let wrong = on(&nats, &data("wrong")).flags(&flags).start();
    wait_until("the other prefix is named", || {
        let log = wrong.log();
        log.contains("under other prefixes")
            && log.contains("prefix=\"rantkree\"")
            && log.contains("others=\"ranktree\"")
    });
    let client = wrong.client();
    let members: Vec<String> = (0..20).map(|number| format!("m{number}")).collect();
    let mut refused = 0;
    for member in &members {
        let (status, answer) = write(&client, member);
        if status == 202 {
            continue;
        }
        assert_eq!((status, &answer["code"]), (503, &json!("shard_unavailable")), "{answer}");
        let detail = answer["detail"].as_str().unwrap_or_default();
        assert!(detail.contains("shard 1") || detail.contains("no node has ever owned it"), "{answer}");
        refused += 1;
    }
    assert!(refused > 0 && refused < members.len(), "{refused} are of shard 1");
    assert_eq!(nats.info("RANTKREE_JOBS_1").state.messages, 0);
    // An owner comes, and goes: its stream takes jobs all the same.
    let flags = ["--prefix", "rantkree", "--own", "1", "--node", "c"];
    let mut owner = on(&nats, &data("owner")).flags(&flags).start();
    wait_until("jobs of every shard are taken", || {
        members.iter().all(|member| write(&client, member).0 == 202)
    });
    owner.kill9();
    for member in &members {
        assert_eq!(write(&client, member).0, 202);
    }
}

#[test]
fn a_first_start_with_a_wrong_prefix_or_number_of_shards_is_left_by_removing_the_empty_directory() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary folder"));
    fill(on(&nats, &folder.path().join("right")).start());
    let wrong = |name: &str| folder.path().join(name);
    // A start with another prefix, and one without NATS' answer that does not say how many shards there are.
    let mut started = [
        on(&nats, &wrong("prefix")).flags(&["--prefix", "rnaktree"]).start(),
        Node::shards(1).at(wrong("shards")).flags(&["--nats", "nats://127.0.0.1:1"]).start(),
    ];
    for shard in 0..usize::from(SHARDS) {
        wait_state(&started[0].client(), shard, "live");
    }
    for node in &mut started {
        assert!(node.terminate().success());
    }
    for name in ["prefix", "shards"] {
        let data = wrong(name);
        let url = nats.url();
        is_refused(&nats, &data, &["--nats", &url], &["no job was ever applied in it, remove", name]);
        fs::remove_dir_all(&data).expect("it is there");
        let node = on(&nats, &data).start();
        wait_until("the shards are filled", || node.client().get(&entry_path("arena", "m7")).0 == 200);
    }
}
