//! A node whose stream was purged past it, or that lost its disk, gets copies of its shards from another
//! owner by itself, whatever is killed meanwhile.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use async_nats::jetstream::stream::Config;
use serde_json::{Value, json};

use crate::support::client::{Client, count_of};
use crate::support::command::command;
use crate::support::nats::{Nats, Publisher, shard_status, wait_applied, wait_state, wait_until};
use crate::support::node::{NatsAddress, Node, NodeSetup};
use crate::support::slow_link::SlowLink;

/// With this much of metadata, a copy takes seconds over a slow link.
const MEMBERS: usize = 4_000;
const META_BYTES: usize = 900;
const BYTES_PER_SECOND: u64 = 400_000;
const STREAM_MIB: u64 = 64;

/// A node that checkpoints and purges soon, and soon forgets the others.
fn named(nats: &(impl NatsAddress + ?Sized), name: &str, shards: u16) -> NodeSetup {
    forgetting(nats, name, shards, "3s")
}

/// A node that no longer holds a stream back for another one that was silent for so long, and takes it for
/// gone after seven times as long.
fn forgetting(nats: &(impl NatsAddress + ?Sized), name: &str, shards: u16, after: &str) -> NodeSetup {
    let often = ["--checkpoint-seconds", "1", "--nats-keep", "0", "--nats-forget", after];
    let setup = Node::with_nats(nats).flags(&["--node", name]).flags(&often);
    setup.shards(shards).stream_mib(STREAM_MIB)
}

fn stream(shard: u16) -> String {
    format!("RANKTREE_JOBS_{shard}")
}

fn first(nats: &Nats, shard: u16) -> u64 {
    nats.info(&stream(shard)).state.first_sequence
}

/// Defines the board, and has the streams purged at once.
fn define(nats: &Nats, client: &Client, shards: u16) {
    crate::support::arena::define(client, &json!({ "policy": "incr" }));
    for shard in 0..shards {
        let config = nats.info(&stream(shard)).config;
        nats.update(&Config { duplicate_window: Duration::from_millis(100), ..config });
    }
}

/// Text that does not compress well.
fn noise(seed: usize) -> String {
    let mut state = u64::try_from(seed).expect("small") * 2 + 1;
    let mut text = String::new();
    while text.len() < META_BYTES {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        write!(text, "{:08x}", state >> 32).expect("writing to a string does not fail");
    }
    text
}

/// Jobs of many members.
fn jobs(members: usize, has_meta: bool) -> Vec<Value> {
    let job = |number| {
        let mut job = json!({ "board": "arena", "member": format!("m{number}"), "score": number % 97 });
        if has_meta {
            job["meta"] = json!({ "m": noise(number) });
        }
        job
    };
    (0..members).map(job).collect()
}

fn applied_all(nodes: &[&Node], sequences: &[u64]) {
    for node in nodes {
        wait_applied(&node.client(), sequences);
    }
}

/// Publishes until the streams are purged past all that came before.
fn publish_until_purged(nats: &Nats, shards: u16, alive: &[&Node]) {
    let before: Vec<u64> = (0..shards).map(|shard| nats.info(&stream(shard)).state.last_sequence).collect();
    wait_until("what was there is purged", || {
        let sequences = nats.publish_jobs(shards, &jobs(64, false), 1);
        applied_all(alive, &sequences);
        (0..shards).zip(&before).all(|(shard, before)| first(nats, shard) > before + 1)
    });
}

/// Publishes jobs without end, as game services do.
struct Traffic {
    ends: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Traffic {
    fn start(nats: &Nats, shards: u16) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let (publisher, end): (Publisher, _) = (nats.publisher(), Arc::clone(&ends));
        let jobs = jobs(500, false);
        let thread = thread::spawn(move || {
            for job in jobs.iter().cycle() {
                if end.load(Ordering::SeqCst) {
                    break;
                }
                let member = ranktree::types::MemberId::new(job["member"].as_str().expect("a string"));
                let shard = ranktree::types::shard_of(&member.expect("a good id"), shards);
                let subject = format!("ranktree.jobs.{shard}");
                publisher.publish(&subject, &job.to_string(), Duration::from_secs(60)).expect("it is stored");
                thread::sleep(Duration::from_millis(2));
            }
        });
        Self { ends, thread: Some(thread) }
    }

    fn end(mut self) {
        self.ends.store(true, Ordering::SeqCst);
        self.thread.take().expect("it runs").join().expect("everything was stored");
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
    }
}

/// Everything that a stopped node's boards hold.
fn exported(node: &Node) -> String {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let to = folder.path().join("arena.jsonl");
    let mut export = command();
    export.args(["export", "--board", "arena", "--data-dir"]).arg(node.data_dir()).arg("--output").arg(&to);
    let output = export.output().expect("the binary can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(&to).expect("it was written")
}

/// Waits until all nodes have applied all that is stored, ends them, and compares what they hold.
fn end_alike(nats: &Nats, shards: u16, nodes: Vec<Node>) {
    let ends: Vec<u64> = (0..shards).map(|shard| nats.info(&stream(shard)).state.last_sequence).collect();
    for node in &nodes {
        wait_applied(&node.client(), &ends);
    }
    let mut held = BTreeSet::new();
    for mut node in nodes {
        assert!(node.terminate().success());
        assert!(!node.log().contains("is halted"), "{}", node.log());
        node.verify();
        held.insert(exported(&node));
        for left in ["copies.given", "copies.staged/shard-000", "copies.staged/shard-000.before"] {
            assert!(!node.data_dir().join(left).exists(), "{left} is left");
        }
    }
    assert_eq!(held.len(), 1, "the nodes hold the same");
    assert!(held.iter().all(|text| text.lines().count() > 1));
}

fn installed(node: &Node) -> Option<f64> {
    node.metric("ranktree_copies_total{result=\"installed\"}")
}

/// A shard is live a moment before its copy is counted.
fn wait_installed(node: &Node, copies: f64) {
    wait_until("the copies are counted", || installed(node) == Some(copies));
}

fn wait_all_live(node: &Node, shards: u16) {
    for shard in 0..shards {
        wait_state(&node.client(), usize::from(shard), "live");
    }
}

/// Bytes and total of the copy that a shard is getting.
fn copying(client: &Client, shard: usize) -> Option<(u64, u64)> {
    let copying = shard_status(client, shard)["copying"].clone();
    let count = |name: &str| u64::try_from(count_of(&copying[name])).expect("it fits");
    (!copying.is_null()).then(|| (count("bytes"), count("total")))
}

fn wait_copying(client: &Client, share: f64) {
    wait_until("a copy is on its way", || {
        copying(client, 0).is_some_and(|(bytes, total)| {
            #[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "they are small")]
            let done = bytes as f64 / total as f64;
            total > 0 && done >= share
        })
    });
}

fn empty(folder: &Path) {
    for entry in fs::read_dir(folder).expect("it is there") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            fs::remove_dir_all(&path).expect("it can be removed");
        } else {
            fs::remove_file(&path).expect("it can be removed");
        }
    }
}

#[test]
fn a_node_whose_stream_was_purged_past_it_gets_copies_and_is_level() {
    let nats = Nats::start();
    let (a, mut b) = (named(&nats, "a", 2).start(), named(&nats, "b", 2).start());
    define(&nats, &a.client(), 2);
    let traffic = Traffic::start(&nats, 2);
    applied_all(&[&a, &b], &nats.publish_jobs(2, &jobs(500, true), 1));
    b.kill9();
    publish_until_purged(&nats, 2, &[&a]);
    b.restart();
    wait_all_live(&b, 2);
    wait_installed(&b, 2.0);
    wait_until("no copy is needed any more", || {
        b.metric("ranktree_shard_copy_needed{shard=\"1\"}") == Some(0.0)
    });
    assert!(b.metric("ranktree_copy_bytes_total{direction=\"fetched\"}") > Some(10_000.0));
    assert!(b.log().contains("fetching a copy of the shard from another node"), "{}", b.log());
    wait_until("none is on its way", || copying(&b.client(), 0).is_none());
    // It purges and is purged for as before.
    publish_until_purged(&nats, 2, &[&a, &b]);
    wait_until("the copies are let go of", || {
        a.metric("ranktree_copies_under_way{direction=\"given\"}") == Some(0.0)
    });
    // After a restart it needs none. Nothing is purged meanwhile, however long that takes.
    traffic.end();
    wait_until("all is purged that is applied", || {
        let mut states = (0..2).map(|shard| nats.info(&stream(shard)).state);
        states.all(|state| state.first_sequence >= state.last_sequence)
    });
    b.kill9();
    b.restart();
    wait_all_live(&b, 2);
    assert_eq!(installed(&b), Some(0.0));
    end_alike(&nats, 2, vec![a, b]);
}

#[test]
fn an_empty_node_gets_copies_whether_it_is_new_or_lost_its_disk() {
    let nats = Nats::start();
    let (a, mut b) = (named(&nats, "a", 1).start(), named(&nats, "b", 1).start());
    define(&nats, &a.client(), 1);
    applied_all(&[&a, &b], &nats.publish_jobs(1, &jobs(300, true), 1));
    publish_until_purged(&nats, 1, &[&a, &b]);
    b.kill9();
    empty(b.data_dir());
    b.restart();
    let c = named(&nats, "c", 1).start();
    for node in [&b, &c] {
        wait_all_live(node, 1);
        wait_installed(node, 1.0);
    }
    // A new one that finds the whole stream takes that.
    let other = Nats::start();
    // The first one would soon purge, too.
    let keeps = ["--nats-no-purge"];
    let one = named(&other, "a", 1).flags(&keeps).start();
    define(&other, &one.client(), 1);
    let two = named(&other, "b", 1).flags(&keeps).start();
    wait_all_live(&two, 1);
    assert_eq!(installed(&two), Some(0.0));
    drop((one, two));
    end_alike(&nats, 1, vec![a, b, c]);
}

#[test]
fn one_lost_shard_of_several_gets_a_copy_although_the_stream_is_whole() {
    let nats = Nats::start();
    let keeps = ["--nats-no-purge"];
    let (a, mut b) = (named(&nats, "a", 3).flags(&keeps).start(), named(&nats, "b", 3).flags(&keeps).start());
    define(&nats, &a.client(), 3);
    let traffic = Traffic::start(&nats, 3);
    applied_all(&[&a, &b], &nats.publish_jobs(3, &jobs(600, false), 1));
    b.kill9();
    fs::remove_dir_all(b.data_dir().join("shard-001")).expect("it is there");
    b.restart();
    wait_all_live(&b, 3);
    wait_installed(&b, 1.0);
    let log = b.log();
    let said =
        |level: &str, words: &str| log.lines().any(|line| line.contains(level) && line.contains(words));
    assert!(said("WARN", "the shard's directory is missing or empty"), "{log}");
    traffic.end();
    end_alike(&nats, 3, vec![a, b]);
}

/// A slow link to the server gives time to kill.
fn slow() -> (Nats, SlowLink, Node, Node) {
    let nats = Nats::start();
    let url = nats.url();
    let link = SlowLink::start(url.strip_prefix("nats://").expect("a URL"), 0);
    let a = named(&nats, "a", 1).start();
    // A question to the other node times out after 20 s: it is not to be taken for gone by then.
    let mut b = forgetting(&*format!("nats://{}", link.address()), "b", 1, "60s").start();
    define(&nats, &a.client(), 1);
    applied_all(&[&a, &b], &nats.publish_jobs(1, &jobs(MEMBERS, true), 10));
    b.kill9();
    publish_until_purged(&nats, 1, &[&a]);
    link.pace(BYTES_PER_SECOND);
    (nats, link, a, b)
}

#[test]
fn a_node_killed_while_it_fetches_a_copy_has_the_old_data_or_the_new() {
    let (nats, link, a, mut b) = slow();
    let traffic = Traffic::start(&nats, 1);
    for share in [0.0, 0.3, 0.6] {
        b.restart();
        wait_copying(&b.client(), share);
        assert_eq!(shard_status(&b.client(), 0)["state"], "catching_up");
        b.kill9();
        // The data of before is untouched.
        b.verify();
    }
    empty(&b.data_dir().join("shard-000"));
    b.restart();
    wait_copying(&b.client(), 0.1);
    b.kill9();
    // It stays known that the shard's data is lost, also without NATS and for offline commands.
    assert!(b.data_dir().join("copies.staged/shard-000").exists());
    let (_, said) = Node::at(b.data_dir()).refusal();
    assert!(said.contains("Start with --nats URL --prefix ranktree --own 0"), "{said}");
    // It ends while it fetches, too.
    b.restart();
    wait_copying(&b.client(), 0.2);
    link.pace(BYTES_PER_SECOND / 2);
    // Until it has the copy, it asks the other owner, and answers nothing from its empty shard.
    wait_until("the other owner answers", || {
        let (status, answer) = b.client().get("/v1/boards/arena/top?limit=10");
        let entries = answer["entries"].as_array().map(Vec::len);
        assert!(entries.is_none_or(|entries| entries == 10), "{answer}");
        status == 200
    });
    assert!(b.terminate().success());
    let verified = crate::support::command::run("verify", b.data_dir());
    let said = String::from_utf8_lossy(&[verified.stdout, verified.stderr].concat()).into_owned();
    assert!(!verified.status.success() && said.contains("holds no shard"), "{said}");
    // The last pieces come at once, so the copy may be being put in place when it is killed.
    link.pace(BYTES_PER_SECOND);
    b.restart();
    wait_until("nearly all of the copy is there, or all", || {
        let nearly_all = |(bytes, total): (u64, u64)| bytes * 20 >= total * 19;
        installed(&b) == Some(1.0) || copying(&b.client(), 0).is_some_and(nearly_all)
    });
    b.kill9();
    link.open();
    b.restart();
    wait_all_live(&b, 1);
    traffic.end();
    end_alike(&nats, 1, vec![a, b]);
}

#[test]
fn no_purge_takes_what_comes_after_a_copy_that_is_being_fetched() {
    let (nats, link, a, mut b) = slow();
    let traffic = Traffic::start(&nats, 1);
    b.restart();
    wait_copying(&b.client(), 0.1);
    // The giver may need longer for a hundred messages than the copy takes.
    link.pace(BYTES_PER_SECOND / 2);
    let floor = || {
        let entry = nats.last_of("KV_RANKTREE_FLOORS", "$KV.RANKTREE_FLOORS.b.0").expect("it is stored");
        u64::try_from(count_of(&entry["sequence"])).expect("it fits")
    };
    let held = floor();
    let checkpoint = || {
        let status = shard_status(&a.client(), 0);
        u64::try_from(count_of(&status["checkpoint_sequence"])).expect("it fits")
    };
    // The giver goes on to checkpoint and would purge.
    wait_until("the giver has a later checkpoint, or the copy is complete", || {
        checkpoint() > held + 100 || copying(&b.client(), 0).is_none()
    });
    assert!(copying(&b.client(), 0).is_some(), "the link is slow enough");
    assert!(first(&nats, 0) <= held + 1, "{} is purged, and {held} is the copy's", first(&nats, 0));
    assert_eq!(floor(), held);
    assert!(a.metric("ranktree_copies_under_way{direction=\"given\"}") >= Some(1.0));
    link.open();
    wait_all_live(&b, 1);
    wait_installed(&b, 1.0);
    assert_eq!(b.metric("ranktree_copies_total{result=\"failed\"}"), Some(0.0));
    publish_until_purged(&nats, 1, &[&a, &b]);
    traffic.end();
    end_alike(&nats, 1, vec![a, b]);
}

#[test]
fn when_the_giver_is_killed_another_owner_gives_a_copy() {
    let (nats, link, mut a, mut b) = slow();
    let traffic = Traffic::start(&nats, 1);
    let mut c = named(&nats, "c", 1).start();
    wait_all_live(&c, 1);
    b.restart();
    wait_copying(&b.client(), 0.1);
    let from = shard_status(&b.client(), 0)["copying"]["from"].clone();
    let giver = if from == "a" { &mut a } else { &mut c };
    giver.kill9();
    wait_until("another one gives a copy", || {
        let now = shard_status(&b.client(), 0)["copying"]["from"].clone();
        !now.is_null() && now != from
    });
    link.open();
    wait_all_live(&b, 1);
    let giver = if from == "a" { &mut a } else { &mut c };
    giver.restart();
    wait_all_live(giver, 1);
    traffic.end();
    end_alike(&nats, 1, vec![a, b, c]);
}

#[test]
fn when_the_only_giver_is_killed_the_node_waits_until_it_is_back() {
    let (nats, link, mut a, mut b) = slow();
    b.restart();
    wait_copying(&b.client(), 0.1);
    a.kill9();
    // It halts once the other is silent, and says whom it waits for.
    let reason = wait_state(&b.client(), 0, "halted");
    assert!(reason.contains("it waits for another owner") && reason.contains("a is silent"), "{reason}");
    link.open();
    a.restart();
    wait_all_live(&b, 1);
    let last = nats.publish_jobs(1, &jobs(10, false), 1);
    applied_all(&[&a, &b], &last);
    assert!(b.terminate().success() && a.terminate().success());
    b.verify();
    assert_eq!(exported(&a), exported(&b));
}

#[test]
fn a_copy_goes_on_after_a_connection_was_lost() {
    let (nats, link, a, mut b) = slow();
    b.restart();
    wait_copying(&b.client(), 0.2);
    link.drop_all(true);
    thread::sleep(Duration::from_secs(2));
    link.drop_all(false);
    link.open();
    wait_all_live(&b, 1);
    wait_installed(&b, 1.0);
    assert_eq!(b.metric("ranktree_copies_total{result=\"failed\"}"), Some(0.0), "it began anew");
    end_alike(&nats, 1, vec![a, b]);
}

#[test]
fn without_another_owner_a_lost_shard_is_refused_and_a_purged_one_halts() {
    let nats = Nats::start();
    let mut a = named(&nats, "a", 2).start();
    define(&nats, &a.client(), 2);
    applied_all(&[&a], &nats.publish_jobs(2, &jobs(100, false), 1));
    assert!(a.terminate().success());
    let copy = named(&nats, "a", 2).copy_of(&a);
    fs::remove_dir_all(a.data_dir().join("shard-001")).expect("it is there");
    for _ in 0..2 {
        let (status, said) = named(&nats, "a", 2).at(a.data_dir()).refusal();
        assert!(!status.success() && said.contains("shard-001 is missing or empty"), "{said}");
    }
    for shard in 0..2 {
        nats.publish_jobs(2, &jobs(100, false), 1);
        nats.purge(&stream(shard), nats.info(&stream(shard)).state.last_sequence);
    }
    // Its own floors are those of another data directory, which is silent: it is not forgotten at once.
    let mut back = copy.start();
    let reason = wait_state(&back.client(), 1, "halted");
    assert!(reason.contains("no longer has the messages") && reason.contains("--accept-gap 1"), "{reason}");
    assert!(back.terminate().success());
}
