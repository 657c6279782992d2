//! What a node owns grows and shrinks, and the commands that work on its directory.

use serde_json::json;

use super::{BOARD, Cluster, SHARDS, define, members, members_on, owner, parts, score};
use crate::support::nats::{Nats, shard_status, wait_until};
use crate::support::node::Node;
use crate::support::raw::get;
use crate::support::snapshots::{restore, run, snapshot, text, verify};

#[test]
fn a_shard_that_is_new_on_a_node_is_filled_from_its_stream_and_one_that_goes_stays_on_disk() {
    let mut cluster = Cluster::start();
    assert_eq!(define(&cluster.none.client(), BOARD, &json!({})).0, 201);
    let mut last = std::collections::BTreeMap::new();
    for (member, _) in members(4) {
        last.extend(parts(&score(&cluster.none.client(), &member, 1).1));
    }
    cluster.wait_applied(&last);
    assert!(cluster.low.terminate().success());
    let data = cluster.low.data_dir().to_owned();
    let mut more = owner(&cluster.nats, "low", "0-2").at(&data).start();
    wait_until("the shard is filled", || {
        shard_status(&more.client(), 2)["state"] == "live" && members_on(&more, 2) == 4
    });
    wait_until("both owners are listed", || {
        let shard = shard_status(&cluster.none.client(), 2);
        shard["owners"].as_array().is_some_and(|owners| owners.len() == 2)
    });
    assert!(more.log().contains("did not own at its last start"), "{}", more.log());
    let floor = || cluster.nats.last_of("KV_RANKTREE_FLOORS", "$KV.RANKTREE_FLOORS.low.2");
    wait_until("it says what it needs of the stream", || floor().is_some());
    assert!(more.terminate().success());
    verify(&data);
    let mut fewer = owner(&cluster.nats, "low", "0-1").at(&data).start();
    // At each start, until they are gone.
    for _ in 0..2 {
        let told = "the data directory has shards that this node does not own: 2;";
        assert!(fewer.log().contains(told), "{}", fewer.log());
        assert!(fewer.terminate().success());
        fewer = owner(&cluster.nats, "low", "0-1").at(&data).start();
    }
    assert!(data.join("shard-002").exists());
    assert_eq!(shard_status(&fewer.client(), 2)["owner"], "remote");
    // Its data of the shard hold the stream for nobody, and it is no owner.
    wait_until("it says so", || {
        fewer.log().contains("its stream is not held back for this node's data of it")
    });
    let owners = |node: &Node| shard_status(&node.client(), 2)["owners"].as_array().map(Vec::len);
    wait_until("one owner is left", || owners(&cluster.none) == Some(1) && owners(&fewer) == Some(1));
    let of_shard = shard_status(&cluster.none.client(), 2);
    assert_eq!(of_shard["owners"][0]["node"], "high", "{of_shard}");
    assert_eq!(cluster.none.metric("ranktree_shard_owners{shard=\"2\"}"), Some(1.0));
    assert!(fewer.terminate().success());
    verify(&data);
    // Given back, it is filled once more.
    let mut again = owner(&cluster.nats, "low", "0-2").at(&data).start();
    wait_until("the shard is filled", || shard_status(&again.client(), 2)["state"] == "live");
    wait_until("both owners are listed", || owners(&cluster.none) == Some(2));
    assert!(again.terminate().success());
    verify(&data);
}

/// As by a mistyped `--own`: whole boards cannot be read, and every node says why.
#[test]
fn a_shard_that_no_node_owns_is_told_by_every_node_until_one_does() {
    let nats = Nats::start();
    let low = owner(&nats, "low", "0-1").shards(SHARDS).start();
    let typo = owner(&nats, "typo", "2").start();
    let none = owner(&nats, "none", "none").start();
    let nodes = [&low, &typo, &none];
    let metric = |node: &Node, of: &str, shard: u16| node.metric(&format!("{of}{{shard=\"{shard}\"}}"));
    for node in nodes {
        wait_until("it is degraded", || node.client().get("/v1/status").1["degraded"] == true);
        let ready = get(node.address(), "/readyz");
        assert!(ready.contains("\nready, degraded\nshard 3: no node that runs owns it\n"), "{ready}");
        assert!(!ready.contains("shard 2"), "{ready}");
        wait_until("it is measured", || metric(node, "ranktree_shard_owners", 3) == Some(0.0));
        assert_eq!(metric(node, "ranktree_shard_owners_live", 3), Some(0.0));
        assert_eq!(metric(node, "ranktree_shard_owners_live", 2), Some(1.0));
        wait_until("it is logged", || node.log().contains("no node that runs owns these shards"));
    }
    let mended = owner(&nats, "mended", "3").start();
    for node in nodes.into_iter().chain([&mended]) {
        wait_until("it is owned", || metric(node, "ranktree_shard_owners_live", 3) == Some(1.0));
        let ready = get(node.address(), "/readyz");
        assert!(ready.ends_with("ready\n"), "{ready}");
        assert_eq!(node.client().get("/v1/status").1["degraded"], false);
    }
    assert_eq!(define(&low.client(), BOARD, &json!({})).0, 201);
    assert_eq!(none.client().get(&format!("/v1/boards/{BOARD}/top")).0, 200);
}

#[test]
fn commands_work_on_some_shards_or_say_why_not() {
    let mut cluster = Cluster::start();
    assert_eq!(define(&cluster.none.client(), BOARD, &json!({})).0, 201);
    let mut last = std::collections::BTreeMap::new();
    for (member, _) in members(4) {
        last.extend(parts(&score(&cluster.none.client(), &member, 1).1));
    }
    cluster.wait_applied(&last);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let taken = folder.path().join("taken");
    let manifest = snapshot(&cluster.high, &taken);
    assert_eq!(manifest["shard_count"], SHARDS);
    let shards: Vec<_> =
        manifest["shards"].as_array().expect("a list").iter().map(|shard| &shard["shard"]).collect();
    assert_eq!(shards, [2, 3]);
    assert!(cluster.high.terminate().success());
    let data = cluster.high.data_dir().to_owned();
    let on = |command: &[&str]| run(&[command, &["--data-dir", text(&data)]].concat());
    let (code, said) = on(&["rebuild"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("shard 2: rebuilt") && !said.contains("shard 0"), "{said}");
    let (code, said) = on(&["export", "--board", BOARD]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("holds the shards 2-3 of 4") && said.contains("--url"), "{said}");
    let nats = cluster.nats.url();
    let checked = |own: &str| on(&["config", "check", "--nats", &nats, "--own", own]);
    assert_eq!(checked("2,3").0, Some(0), "{}", checked("2,3").1);
    assert!(!checked("2,3").1.contains("to be noted"), "{}", checked("2,3").1);
    // A slip that leaves a shard to nobody, or takes another node's.
    let (code, said) = checked("1,2");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("did not own at its last start: 1;"), "{said}");
    assert!(said.contains("has shards that this node does not own: 3;"), "{said}");
    let (code, said) = checked("2,4");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("there is no shard 4"), "{said}");
    // In another place, the copy goes on where it was taken.
    let restored = folder.path().join("restored");
    let (code, said) = restore(&taken, &restored, &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("start the service with --shards 4 --own 2-3"), "{said}");
    let high = owner(&cluster.nats, "again", "2-3").at(&restored).start();
    for shard in [2, 3] {
        assert_eq!(members_on(&high, shard), 4);
    }
    // Nothing fills shards that are missing without NATS.
    let (status, said) = crate::support::node::Node::at(&data).shards(SHARDS).refusal();
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("Start with --nats URL --prefix ranktree --own 2-3"), "{said}");
}
