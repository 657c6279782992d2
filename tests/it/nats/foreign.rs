//! A node is started with data that are not of its streams: the volume of an earlier service, the directory
//! of another prefix, one that was filled without NATS, or one foreign shard. It changes nothing in the
//! boards' stream, and other nodes go on as if it were not there.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::client::{Client, count_of};
use crate::support::files::copy_folder;
use crate::support::nats::{Nats, wait_applied, wait_state, wait_until};
use crate::support::node::{Node, NodeSetup};

const SHARDS: u16 = 2;
const BOARDS: &str = "RANKTREE_BOARDS";
const MEMBERS: usize = 40;
/// Boards that the healthy nodes have, and so has every wrong directory.
const NAMES: [&str; 3] = ["arena", "gone", "other"];

/// A node of the service, in a directory of its own below `folder`.
fn node(nats: &Nats, folder: &Path, name: &str) -> NodeSetup {
    Node::with_nats(nats)
        .shards(SHARDS)
        .stream_mib(16)
        .flags(&["--node", name, "--nats-halt-seconds", "1"])
        .at(folder.join(name))
}

/// Makes the boards of the healthy nodes, and gives each some entries.
fn fill(nats: &Nats, client: &Client, prefix: &str) {
    for board in NAMES {
        let mut answer = (503, Value::Null);
        wait_until("boards can be defined", || {
            answer = client.put(&format!("/v1/boards/{board}"), &json!({}));
            answer.0 != 503
        });
        assert_eq!(answer.0, 201, "{}", answer.1);
        for member in 0..MEMBERS {
            let (status, said) = client
                .put(&format!("/v1/boards/{board}/members/{prefix}{member}"), &json!({ "score": member }));
            assert!(matches!(status, 200 | 202), "{said}");
        }
    }
    wait_until("all is applied", || NAMES.iter().all(|board| total(client, board) == Some(MEMBERS)));
    assert!(nats.try_info(BOARDS).is_none_or(|info| info.state.messages >= 3));
}

fn total(client: &Client, board: &str) -> Option<usize> {
    let (status, answer) = client.get(&format!("/v1/boards/{board}/top?limit=1"));
    (status == 200 && answer["stale"].is_null()).then(|| count_of(&answer["total"]))
}

/// A directory that another service has filled, and that knows the same names: their lives have later numbers
/// there, one is another board, and one was dropped.
fn of_another_service(folder: &Path, shards: u16, nats: Option<&Nats>, prefix: &str) -> PathBuf {
    let data = folder.join("foreign");
    let setup = Node::shards(shards).at(&data);
    let setup = match nats {
        Some(nats) => setup.with_nats(nats).stream_mib(16).flags(&["--prefix", prefix]),
        None => setup,
    };
    let mut foreign = setup.start();
    let client = foreign.client().waiting_for_writes();
    for number in 0..30 {
        let (status, answer) = client.put(&format!("/v1/boards/b{number}"), &json!({}));
        assert_eq!(status, 201, "{answer}");
    }
    for board in NAMES {
        let definition = if board == "other" { json!({ "policy": "incr" }) } else { json!({}) };
        assert_eq!(client.put(&format!("/v1/boards/{board}"), &definition).0, 201);
        for member in 0..20 {
            let path = format!("/v1/boards/{board}/members/f{member}");
            assert_eq!(client.put(&path, &json!({ "score": 9 })).0, 200);
        }
    }
    let (status, answer) =
        client.send(ureq::http::Method::DELETE, "/v1/boards/gone", None).expect("it answers");
    assert_eq!(status, 200, "{answer}");
    assert!(foreign.terminate().success());
    data
}

/// The healthy service: two nodes, and the directory of a third that was one of it.
struct Service {
    nats: Nats,
    folder: TempDir,
    healthy: Vec<Node>,
    before: (u64, u64),
}

impl Service {
    fn start() -> Self {
        let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary folder"));
        let mut third = node(&nats, folder.path(), "third").start();
        let healthy: Vec<Node> =
            ["first", "second"].map(|name| node(&nats, folder.path(), name).start()).into();
        fill(&nats, &healthy[0].client(), "m");
        wait_until("the third one has it too", || total(&third.client(), "other") == Some(MEMBERS));
        assert!(third.terminate().success());
        drop(third);
        let before = Self::records(&nats);
        Self { nats, folder, healthy, before }
    }

    fn records(nats: &Nats) -> (u64, u64) {
        let state = nats.info(BOARDS).state;
        (state.last_sequence, state.messages)
    }

    fn data_of_third(&self) -> PathBuf {
        self.folder.path().join("third")
    }

    /// Starts the third node with what is in its directory, twice: it ends in these words, and nothing
    /// changes.
    fn is_refused(&self, words: &str) {
        for _ in 0..2 {
            match node(&self.nats, self.folder.path(), "third").start_or_refusal() {
                Ok(started) => panic!("it started: {}", started.client().get("/v1/status").1),
                Err(said) => assert!(said.contains(words), "{said}"),
            }
            self.is_unharmed();
        }
    }

    /// The boards' stream is as it was, and the healthy nodes serve every board, whole and not stale.
    fn is_unharmed(&self) {
        assert_eq!(Self::records(&self.nats), self.before, "the boards' stream has changed");
        for node in &self.healthy {
            let client = node.client();
            let (status, answer) = client.get("/readyz");
            assert_eq!(status, 200, "{answer} {}", client.get("/v1/status").1);
            for board in NAMES {
                assert_eq!(total(&client, board), Some(MEMBERS), "{board}");
            }
        }
        let path = "/v1/boards/gone/members/m1?wait=applied";
        assert_eq!(self.healthy[1].client().put(path, &json!({ "score": 1 })).0, 200);
    }

    /// With its own directory again, the third node is as good as the others, and boards change by it.
    fn mend_with(mut self, right: &Path) {
        let third = self.data_of_third();
        fs::remove_dir_all(&third).expect("it is there");
        fs::rename(right, &third).expect("it can be moved");
        let mut mended = node(&self.nats, self.folder.path(), "third").start();
        let client = mended.client();
        for shard in 0..usize::from(SHARDS) {
            wait_state(&client, shard, "live");
        }
        for board in NAMES {
            wait_until("it has all boards", || total(&client, board) == Some(MEMBERS));
        }
        let mut status = 503;
        wait_until("boards are decided by it", || {
            status = client.put("/v1/boards/new", &json!({})).0;
            status != 503
        });
        assert_eq!(status, 201);
        wait_until("the others hear of it", || {
            self.healthy.iter().all(|node| node.client().get("/v1/boards/new").0 == 200)
        });
        for node in self.healthy.iter_mut().chain([&mut mended]) {
            assert!(node.terminate().success());
            node.verify();
        }
    }
}

/// Keeps what is in a directory, and puts something else in its place.
fn put_in_place(of: &Path, other: &Path) -> PathBuf {
    let aside = of.with_extension("aside");
    fs::rename(of, &aside).expect("it can be moved");
    copy_folder(other, of);
    aside
}

/// Three nodes, all streams new: two begin with nothing, and the third one has the volume of the service that
/// was there before.
#[test]
fn an_old_volume_beside_new_streams_ends_no_board() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary folder"));
    let old = of_another_service(folder.path(), SHARDS, Some(&nats), "ranktree");
    for stream in ["BOARDS", "JOBS_0", "JOBS_1", "REJECTS"] {
        nats.delete(&format!("RANKTREE_{stream}"));
    }
    for bucket in ["NODES", "FLOORS"] {
        nats.delete(&format!("KV_RANKTREE_{bucket}"));
    }
    let healthy: Vec<Node> = ["first", "second"].map(|name| node(&nats, folder.path(), name).start()).into();
    fill(&nats, &healthy[0].client(), "m");
    wait_until("both have all boards", || {
        healthy.iter().all(|node| NAMES.iter().all(|board| total(&node.client(), board) == Some(MEMBERS)))
    });
    let before = Service::records(&nats);
    let service = Service { nats, folder, healthy, before };
    fs::rename(&old, service.data_of_third()).expect("it can be moved");
    service.is_refused("does not fit");
    // An empty directory is right here.
    let right = service.folder.path().join("right");
    fs::create_dir(&right).expect("it can be made");
    service.mend_with(&right);
}

#[test]
fn one_start_with_the_directory_of_another_service_ends_no_board() {
    let service = Service::start();
    let other = Nats::start();
    let wrong = of_another_service(service.folder.path(), SHARDS, Some(&other), "ranktree");
    let right = put_in_place(&service.data_of_third(), &wrong);
    service.is_refused("does not fit");
    service.mend_with(&right);
}

#[test]
fn the_directory_of_another_prefix_ends_no_board() {
    let service = Service::start();
    let wrong = of_another_service(service.folder.path(), SHARDS, Some(&service.nats), "second");
    let right = put_in_place(&service.data_of_third(), &wrong);
    service.is_refused("does not fit");
    service.mend_with(&right);
}

#[test]
fn a_directory_that_was_filled_without_nats_ends_no_board() {
    let service = Service::start();
    let wrong = of_another_service(service.folder.path(), SHARDS, None, "");
    let right = put_in_place(&service.data_of_third(), &wrong);
    service.is_refused("does not fit");
    service.mend_with(&right);
}

/// One shard of another service, filled from NATS or without, beside good ones of the node's own.
#[test]
fn one_foreign_shard_beside_good_ones_ends_no_board() {
    let service = Service::start();
    let other = Nats::start();
    let third = service.data_of_third();
    for (with_nats, shard) in [(true, 0), (true, 1), (false, 0), (false, 1)] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let wrong =
            of_another_service(folder.path(), SHARDS, with_nats.then_some(&other), &format!("p{shard}"));
        let name = format!("shard-00{shard}");
        let right = third.with_extension("kept");
        copy_folder(&third, &right);
        fs::remove_dir_all(third.join(&name)).expect("it is there");
        copy_folder(&wrong.join(&name), &third.join(&name));
        service.is_refused(&format!("shard {shard} cannot be opened"));
        fs::remove_dir_all(&third).expect("it is there");
        fs::rename(&right, &third).expect("it can be moved");
    }
    let right = third.with_extension("kept");
    copy_folder(&third, &right);
    service.mend_with(&right);
}

/// The right directory is back, and nothing is left of the wrong one: neither in the stream nor on the nodes.
#[test]
fn boards_of_a_wrong_directory_are_not_taken_over_when_its_node_halts() {
    let service = Service::start();
    let wrong = of_another_service(service.folder.path(), SHARDS, None, "");
    let right = put_in_place(&service.data_of_third(), &wrong);
    service.is_refused("does not fit");
    for node in &service.healthy {
        assert_eq!(node.client().get("/v1/boards/b1").0, 404);
    }
    wait_applied(
        &service.healthy[0].client(),
        &service.nats.publish_jobs(
            SHARDS,
            &[json!({
                "board": "arena", "member": "late", "score": 1
            })],
            1,
        ),
    );
    assert_eq!(total(&service.healthy[0].client(), "arena"), Some(MEMBERS + 1));
    drop(right);
}
