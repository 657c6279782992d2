//! A whole service is restored on new machines and a new NATS, from snapshots that several nodes took at
//! several times.

use std::path::{Path, PathBuf};

use ranktree::types::{MemberId, shard_of};
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::nats::{Nats, shard_status, wait_state, wait_until};
use crate::support::node::Node;
use crate::support::snapshots::{run, snapshot, text};

const SHARDS: u16 = 6;
const MEMBERS: u64 = 60;
/// Which node owned which shards.
const OWNED: [(&str, &str); 3] = [("a", "0-3"), ("b", "2-5"), ("c", "0-1,4-5")];

fn start(nats: &Nats, name: &str, own: &str, data_dir: &Path) -> Node {
    let flags = ["--node", name, "--own", own, "--nats-halt-seconds", "2"];
    Node::with_nats(nats).flags(&flags).shards(SHARDS).stream_mib(16).at(data_dir).start()
}

fn member(number: u64) -> String {
    format!("m{number}")
}

fn shard(number: u64) -> u16 {
    shard_of(&MemberId::new(member(number)).expect("a good id"), SHARDS).0
}

/// Every member gets this score.
fn write(client: &Client, score: u64) -> String {
    let job = |n| json!({ "board": "arena", "member": member(n), "score": score });
    let jobs: Vec<_> = (0..MEMBERS).map(job).collect();
    let (status, answer) = client.post("/v1/jobs?wait=applied", &json!(jobs));
    assert_eq!(status, 200, "{answer}");
    answer["token"].as_str().expect("a token").to_owned()
}

fn read_after(client: &Client, token: &str) -> (u16, Value) {
    client.get(&format!("/v1/boards/arena/top?limit=1&timeout_ms=20000&after={token}"))
}

/// Also where other nodes are asked for the shard.
fn check_tokens(client: &Client, tokens: &Tokens) {
    for part in tokens.lost.split(',') {
        let (status, answer) = read_after(client, part);
        assert_eq!((status, &answer["code"]), (409, &json!("other_history")), "{part}: {answer}");
    }
    let (status, answer) = read_after(client, &tokens.kept);
    assert_eq!(status, 200, "{answer}");
}

fn wait_ready(node: &Node) {
    wait_until("it is ready", || node.client().get("/readyz").0 == 200);
}

/// Until the node answers of all shards: its owners have to hear of each other.
fn score(client: &Client, number: u64) -> Value {
    client.get(&format!("/v1/boards/arena/members/{}", member(number))).1["score"].clone()
}

struct Taken {
    folder: tempfile::TempDir,
    snapshots: Vec<PathBuf>,
}

/// Of what is in every snapshot, and of what is in none.
struct Tokens {
    kept: String,
    lost: String,
}

/// The snapshots of a service that is gone: the first node's is the oldest, and what was written after the
/// last one is in none.
fn taken() -> Taken {
    taken_and_tokens().0
}

fn taken_and_tokens() -> (Taken, Tokens) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let nats = Nats::start();
    let nodes = OWNED.map(|(name, own)| start(&nats, name, own, &folder.path().join(name)));
    nodes.iter().for_each(wait_ready);
    assert_eq!(nodes[0].client().put("/v1/boards/arena", &json!({})).0, 201);
    let (mut snapshots, mut tokens) = (Vec::new(), Vec::new());
    for (round, node) in (1..).zip(&nodes) {
        tokens.push(write(&node.client(), round));
        // The other owners of a shard apply it a moment later.
        assert_eq!(read_after(&node.client(), tokens.last().expect("just put there")).0, 200);
        snapshots.push(folder.path().join(format!("snapshot-{}", OWNED[snapshots.len()].0)));
        snapshot(node, snapshots.last().expect("just put there"));
    }
    let lost = write(&nodes[0].client(), 9);
    (Taken { folder, snapshots }, Tokens { kept: tokens.swap_remove(0), lost })
}

/// From which round a shard is: of the last node that owned it.
fn round_of(shard: u16) -> u64 {
    if [2, 3].contains(&shard) { 2 } else { 3 }
}

fn restore(taken: &Taken, to: &Path, more: &[&str]) -> (Option<i32>, String) {
    let from = taken.snapshots.iter().flat_map(|path| ["--from", text(path)]);
    let arguments: Vec<&str> = ["restore", "--data-dir", text(to)].into_iter().chain(from).collect();
    run(&[&arguments, more].concat())
}

#[test]
fn a_whole_service_comes_back_from_the_newest_copy_of_each_shard() {
    let (taken, tokens) = taken_and_tokens();
    let at = |name: &str| taken.folder.path().join(name);
    let (code, said) = restore(&taken, &at("new-a"), &["--shards", "0-5", "--bind-new-streams"]);
    assert_eq!(code, Some(0), "{said}");
    for shard in 0..SHARDS {
        let from = if round_of(shard) == 2 { "snapshot-b" } else { "snapshot-c" };
        let line =
            said.lines().find(|line| line.starts_with(&format!("shard {shard} "))).expect("it is told");
        let (chosen, older) = line.split_once(" (and ").unwrap_or((line, ""));
        assert!(chosen.contains(from), "{said}");
        assert!(older.is_empty() || !older.contains(from), "{said}");
    }
    assert!(said.contains("start it before all other nodes"), "{said}");

    let nats = Nats::start();
    let mut first = start(&nats, "a", "0-5", &at("new-a"));
    wait_ready(&first);
    let check = |client: &Client| {
        wait_until("all shards answer", || client.get("/v1/boards/arena/top?limit=1").0 == 200);
        for number in 0..MEMBERS {
            assert_eq!(score(client, number), json!(round_of(shard(number))), "{}", member(number));
        }
    };
    check(&first.client());
    check_tokens(&first.client(), &tokens);
    for shard in 0..SHARDS {
        let applied = shard_status(&first.client(), usize::from(shard))["applied_sequence"].clone();
        let state = nats.info(&format!("RANKTREE_JOBS_{shard}")).state;
        assert_eq!(
            (state.messages, json!(state.last_sequence)),
            (0, applied),
            "it begins after what there was"
        );
    }
    // The others begin with nothing, and take copies by themselves.
    let mut others = [("b", "2-5"), ("c", "0-1,4-5")]
        .map(|(name, own)| start(&nats, name, own, &at(&format!("new-{name}"))));
    others.iter().for_each(wait_ready);
    for node in &others {
        check(&node.client());
        check_tokens(&node.client(), &tokens);
    }
    // The first one gives up what it does not own.
    assert!(first.terminate().success());
    drop(first);
    let mut first = start(&nats, "a", "0-3", &at("new-a"));
    wait_ready(&first);
    check(&first.client());
    let new = write(&others[1].client(), 7);
    for node in others.iter().chain([&first]) {
        assert_eq!(read_after(&node.client(), &new).0, 200);
        check_tokens(&node.client(), &tokens);
        wait_until("all have the new writes", || {
            (0..MEMBERS).all(|number| score(&node.client(), number) == json!(7))
        });
        let has_two = |shard: &Value| {
            let owners = shard["owners"].as_array().expect("a list").iter();
            shard["state"] == "live" && owners.filter(|owner| owner["state"] == "live").count() == 2
        };
        wait_until("each shard has two owners that are live", || {
            let (_, status) = node.client().get("/v1/status");
            status["shards"].as_array().expect("a list").iter().all(has_two)
        });
    }
    // It is bound: another start has nothing to say of that.
    for node in others.iter_mut().chain([&mut first]) {
        assert!(node.terminate().success());
        node.verify();
    }
}

/// What a node says that comes with data that lost, or too late, is a step that leads on.
#[test]
fn every_reason_of_a_restored_node_names_the_step_that_leads_on() {
    let taken = taken();
    let at = |name: &str| taken.folder.path().join(name);
    let bind = ["--shards", "0-5", "--bind-new-streams"];
    assert_eq!(restore(&taken, &at("new-a"), &bind).0, Some(0));

    // The others were started first, and took writes.
    let nats = Nats::start();
    let early = start(&nats, "b", "0-5", &at("early"));
    wait_ready(&early);
    write(&early.client(), 1);
    let flags = ["--node", "a", "--own", "0-5"];
    let (_, reason) = Node::with_nats(&nats).flags(&flags).shards(SHARDS).at(at("new-a")).refusal();
    assert!(reason.contains("a node with an empty data directory was started before"), "{reason}");
    assert!(reason.contains("delete these streams") && reason.contains("start this node first"), "{reason}");
    drop((early, nats));
    // As it says: new streams, and this node first.
    let nats = Nats::start();
    let first = start(&nats, "a", "0-5", &at("new-a"));
    wait_ready(&first);

    // A node that was restored by itself, without being bound, is told whose data count.
    let own = ["--from", text(&taken.snapshots[0]), "--data-dir"];
    let lost = at("lost");
    let (code, said) = run(&[&["restore"][..], &own, &[text(&lost)]].concat());
    assert_eq!(code, Some(0), "{said}");
    let mut loser = start(&nats, "c", "0-3", &lost);
    // It has to hear of the other one first, which says so every two seconds.
    wait_until("it is told whose data count", || {
        wait_state(&loser.client(), 0, "halted").contains("the node a has the data")
    });
    let reason = wait_state(&loser.client(), 0, "halted");
    assert!(reason.contains("move its directory of the shard, shard-000, out of --data-dir"), "{reason}");
    assert!(loser.terminate().success());
    for shard in 0..4 {
        let name = format!("shard-{shard:03}");
        std::fs::rename(lost.join(&name), at(&format!("moved-{name}"))).expect("it can be moved");
    }
    drop(loser);
    let loser = start(&nats, "c", "0-3", &lost);
    wait_ready(&loser);
    wait_until("it has the newest data", || {
        (0..MEMBERS).all(|number| score(&loser.client(), number) == json!(round_of(shard(number))))
    });
}

#[test]
fn snapshots_that_do_not_belong_together_or_lack_a_shard_are_refused() {
    let taken = taken();
    let to = taken.folder.path().join("new");
    let only_first =
        Taken { snapshots: vec![taken.snapshots[0].clone()], folder: tempfile::tempdir().expect("one") };
    for (of, more, expect) in [
        (&only_first, &["--shards", "0-5"][..], "none of the snapshots has shard 4, 5"),
        (&taken, &["--shards", "5-6"], "there is no shard 6"),
    ] {
        let (code, said) = restore(of, &to, more);
        assert!(code == Some(2) && said.contains(expect), "{said}");
    }
    // Another service's snapshot, and one without NATS.
    let other = Node::shards(SHARDS).start();
    let of_other = taken.folder.path().join("other");
    snapshot(&other, &of_other);
    let (code, said) = restore(&taken, &to, &["--from", text(&of_other)]);
    assert!(code == Some(2) && said.contains("do not belong together"), "{said}");
    let alone = Taken { snapshots: vec![of_other], folder: tempfile::tempdir().expect("one") };
    let (code, said) = restore(&alone, &to, &["--bind-new-streams"]);
    assert!(code == Some(2) && said.contains("filled without NATS"), "{said}");
    assert!(!to.exists(), "nothing is left");
    // Two of three have all shards.
    let some = Taken { snapshots: taken.snapshots[..2].to_vec(), folder: tempfile::tempdir().expect("one") };
    let (code, said) = restore(&some, &to, &["--shards", "1,4"]);
    assert!(code == Some(0) && said.contains("--own 1,4"), "{said}");
}

#[test]
fn data_are_not_bound_to_streams_that_hold_what_they_have_applied() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary folder"));
    let at = |name: &str| folder.path().join(name);
    let mut node = start(&nats, "a", "0-5", &at("old"));
    wait_ready(&node);
    write(&node.client(), 1);
    snapshot(&node, &at("snapshot"));
    write(&node.client(), 2);
    assert!(node.terminate().success());
    let taken = Taken { snapshots: vec![at("snapshot")], folder: tempfile::tempdir().expect("one") };
    let (code, said) = restore(&taken, &at("bound"), &["--bind-new-streams"]);
    assert_eq!(code, Some(0), "{said}");
    let flags = ["--node", "a", "--own", "0-5"];
    let (_, reason) = Node::with_nats(&nats).flags(&flags).shards(SHARDS).at(at("bound")).refusal();
    let is_told = reason.contains("applied a second time") && reason.contains("without --bind-new-streams");
    assert!(is_told, "{reason}");
    // As it says.
    let (code, said) = restore(&taken, &at("bound"), &["--replace"]);
    assert_eq!(code, Some(0), "{said}");
    let node = start(&nats, "a", "0-5", &at("bound"));
    wait_ready(&node);
    wait_until("it has what came after the snapshot", || {
        (0..MEMBERS).all(|number| score(&node.client(), number) == json!(2))
    });
}
