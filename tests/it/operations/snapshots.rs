//! A snapshot of a node under write load holds exactly what was applied up to the sequences that it states. A
//! node that is restored from it goes on from there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ranktree::types::{MemberId, shard_of};
use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::client::{Client, entry_path};
use crate::support::command::command;
use crate::support::cut_link::CutLink;
use crate::support::nats::{Nats, wait_applied, wait_until};
use crate::support::node::Node;
use crate::support::snapshots::{
    applied_in, content, manifest, ranked, restore, run, served, snapshot, text, verify,
};

const BOARD: &str = "arena";
const SHARDS: u16 = 3;
const WRITERS: u64 = 4;
/// Few, so that each is written often.
const MEMBERS_PER_WRITER: u64 = 40;
const ROUNDS: usize = 5;

/// A write that was answered or stored.
struct Written {
    shard: usize,
    sequence: u64,
    member: String,
    score: i64,
}

/// What the board holds once each shard has applied this much. Of a member's writes, the later one comes
/// later in the list.
fn model(written: &[Written], applied: &[u64]) -> BTreeMap<String, (i64, u64)> {
    let mut scores = BTreeMap::new();
    for Written { shard, sequence, member, score } in written {
        if *sequence <= applied[*shard] {
            scores.insert(member.clone(), *score);
        }
    }
    ranked(&scores)
}

/// The shard and the sequence of a token for one write.
fn place_of(answer: &Value) -> (usize, u64) {
    let token = answer["token"].as_str().expect("a token");
    let (shard, sequence) = token.split_once(':').expect("a shard and a sequence");
    (shard.parse().expect("a number"), sequence.parse().expect("a number"))
}

/// Writes by HTTP until it is told to end.
fn write(client: &Client, writer: u64, ending: &AtomicBool) -> Vec<Written> {
    let mut written = Vec::new();
    for number in 0.. {
        if ending.load(Ordering::SeqCst) {
            break;
        }
        let member = format!("{writer}-{}", number * 7 % MEMBERS_PER_WRITER);
        // Few different ones, so that there are ties.
        let score = i64::try_from(number % 97).expect("small");
        let (status, answer) =
            client.put(&entry_path(BOARD, &member), &json!({"score": score, "meta": {"number": number}}));
        assert_eq!(status, 200, "{answer}");
        let (shard, sequence) = place_of(&answer);
        written.push(Written { shard, sequence, member, score });
    }
    written
}

/// Ends the writers, also when the test fails while they write.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn snapshots_under_load_hold_what_was_applied_up_to_their_sequences() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    // Checkpoints come all the time, and replace files while snapshots are taken.
    let mut node = Node::shards(SHARDS).flags(&["--checkpoint-changes", "50"]).start();
    let ending = AtomicBool::new(false);
    let (written, manifests) = thread::scope(|scope| {
        let end = End(&ending);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (client, ending) = (node.client(), &ending);
                scope.spawn(move || write(&client, writer, ending))
            })
            .collect();
        let mut manifests = Vec::new();
        for round in 0..ROUNDS {
            let path = entry_path("other", &format!("m{round}"));
            let (status, answer) = node.client().put(&path, &json!({"score": 1}));
            assert_eq!(status, 200, "{answer}");
            manifests.push(snapshot(&node, &folder.path().join(round.to_string())));
        }
        drop(end);
        let written = writers.into_iter().flat_map(|writer| writer.join().expect("no panic"));
        (written.collect::<Vec<_>>(), manifests)
    });
    let last = served(&node, BOARD);
    for (round, manifest) in manifests.iter().enumerate() {
        let data_dir = folder.path().join(format!("data-{round}"));
        let (code, said) = restore(&folder.path().join(round.to_string()), &data_dir, &[]);
        assert!(code == Some(0) && said.contains("start the service with --shards 3"), "{said}");
        verify(&data_dir);
        let expect = model(&written, &applied_in(manifest));
        assert_eq!(content(&data_dir, BOARD), expect, "round {round}");
        // Whatever was answered before the snapshot began is in it.
        assert_eq!(content(&data_dir, "other").len(), round + 1);
    }
    let sequences: Vec<_> = manifests.iter().map(applied_in).collect();
    assert!(sequences.is_sorted() && sequences.first() != sequences.last(), "{sequences:?}");
    assert!(!node.data_dir().join("snapshots").exists(), "copies that were fetched are removed");

    // A restored node is a node like any other: it writes, and beyond all that was ever written.
    let data_dir = folder.path().join("data-0");
    let mut restored = Node::at(&data_dir).shards(SHARDS).start();
    let answer = restored.client().put(&entry_path(BOARD, "new"), &json!({"score": 1})).1;
    let (shard, sequence) = place_of(&answer);
    assert!(written.iter().all(|write| write.shard != shard || write.sequence < sequence), "{answer}");
    assert!(restored.terminate().success());
    restored.verify();

    // With --replace, what was there is kept beside the new shards.
    let newest = folder.path().join((ROUNDS - 1).to_string());
    let (code, said) = restore(&newest, &data_dir, &["--replace"]);
    assert!(code == Some(0) && said.contains("the shards of before are in "), "{said}");
    assert_eq!(content(&data_dir, BOARD), model(&written, &applied_in(&manifests[ROUNDS - 1])));
    let aside = said.lines().find_map(|line| line.strip_prefix("the shards of before are in "));
    let aside = Path::new(aside.expect("it says so"));
    assert!(aside.starts_with(&data_dir), "{}", aside.display());
    verify(aside);
    assert_eq!(content(aside, BOARD).get("new").map(|(score, _)| *score), Some(1));

    // The original is untouched by all of it.
    assert!(node.terminate().success());
    node.verify();
    assert_eq!(content(node.data_dir(), BOARD), last);
}

#[test]
fn restored_node_catches_up_from_its_stream_to_what_the_original_has() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let nats = Nats::start();
    let flags = ["--checkpoint-changes", "200"];
    let mut node = Node::with_nats(&nats).shards(SHARDS).stream_mib(64).flags(&flags).start();
    wait_until("the board is defined", || {
        node.client().put(&format!("/v1/boards/{BOARD}"), &json!({})).0 < 300
    });
    let ending = AtomicBool::new(false);
    let (taken, fetched) = (folder.path().join("taken"), folder.path().join("data"));
    let written = thread::scope(|scope| {
        let end = End(&ending);
        let writer = scope.spawn(|| {
            let (publisher, mut written) = (nats.publisher(), Vec::new());
            for number in 0_u64.. {
                if ending.load(Ordering::SeqCst) {
                    break;
                }
                let member = format!("m{}", number * 7 % 500);
                let score = i64::try_from(number % 1_003).expect("small");
                let shard = shard_of(&MemberId::new(member.as_str()).expect("an id"), SHARDS).index();
                let job = json!({"board": BOARD, "member": member, "score": score}).to_string();
                let subject = format!("ranktree.jobs.{shard}");
                let sequence = publisher.publish(&subject, &job, std::time::Duration::from_secs(60));
                let sequence = sequence.expect("it is stored");
                written.push(Written { shard, sequence, member, score });
            }
            written
        });
        // Something of what is published is applied.
        wait_until("jobs are applied", || served(&node, BOARD).len() > 100);
        snapshot(&node, &taken);
        let (code, said) = restore(&taken, &fetched, &[]);
        assert_eq!(code, Some(0), "{said}");
        // And more comes after the snapshot.
        let at = applied_in(&manifest(&taken));
        let is_ahead = || {
            let (_, status) = node.client().get("/v1/status");
            let applied =
                |shard: usize| status["shards"][shard]["applied_sequence"].as_u64().expect("a number");
            at.iter().enumerate().all(|(shard, sequence)| applied(shard) > sequence + 50)
        };
        wait_until("the node has applied more than the snapshot holds", is_ahead);
        drop(end);
        writer.join().expect("no panic")
    });
    verify(&fetched);
    let manifest = manifest(&taken);
    for (shard, copy) in manifest["shards"].as_array().expect("a list").iter().enumerate() {
        let stream = copy["stream"].as_str().expect("it is text");
        assert!(stream.starts_with(&format!("RANKTREE_JOBS_{shard}@")), "{stream}");
    }
    assert_eq!(content(&fetched, BOARD), model(&written, &applied_in(&manifest)));

    let mut restored = Node::with_nats(&nats).at(&fetched).shards(SHARDS).stream_mib(64).start();
    let ends: Vec<u64> =
        (0..SHARDS).map(|shard| nats.info(&format!("RANKTREE_JOBS_{shard}")).state.last_sequence).collect();
    for node in [&node, &restored] {
        wait_applied(&node.client(), &ends);
    }
    let all = served(&node, BOARD);
    assert_eq!(served(&restored, BOARD), all);
    assert_eq!(all, model(&written, &ends));
    for node in [&mut node, &mut restored] {
        assert!(node.terminate().success());
        node.verify();
    }
}

#[test]
fn a_snapshot_goes_on_where_its_connection_was_cut() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let node = Node::shards(2).start();
    fill(&node.client(), 4_000);
    // The answer that lists the files is not asked for twice, so the first connection carries it.
    let link = CutLink::start(node.address(), 16 << 10);
    let (to, data_dir) = (folder.path().join("copy"), folder.path().join("data"));
    let url = format!("http://{}", link.address());
    let (code, said) = run(&["snapshot", "--url", &url, "--to", text(&to)]);
    assert_eq!(code, Some(0), "{said}");
    assert!(link.connections() > 2, "{} connections", link.connections());
    let (code, said) = restore(&to, &data_dir, &[]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(content(&data_dir, BOARD), served(&node, BOARD));
}

/// Writes one score for each of so many members.
pub fn fill(client: &Client, members: u64) {
    let jobs: Vec<_> = (0..members)
        .map(|number| json!({"board": BOARD, "member": format!("m{number}"), "score": number % 1_000}))
        .collect();
    for jobs in jobs.chunks(1_000) {
        let (status, answer) = client.post("/v1/jobs?wait=applied&results=changed", &Value::from(jobs));
        assert_eq!(status, 200, "{answer}");
    }
}

#[test]
fn a_snapshot_takes_a_token_with_the_scope_admin_for_all_boards() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let tokens = folder.path().join("tokens.toml");
    let token = |scope: &str, name: &str, more: &[&str]| {
        let made = command().args(["token", "new", "--scope", scope, "--name", name]).args(more).output();
        let Output { stdout, stderr, .. } = made.expect("the binary can be started");
        let (listed, said) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        fs::write(&tokens, fs::read_to_string(&tokens).unwrap_or_default() + &listed).expect("writable");
        let secret =
            said.split_whitespace().find(|word| word.starts_with("rkt_")).expect("it shows the token");
        let file = folder.path().join(name);
        fs::write(&file, secret).expect("it can be written");
        file
    };
    let read = token("read", "reader", &[]);
    let write = token("write", "writer", &[]);
    let confined = token("admin", "confined", &["--board-prefix", "eu-"]);
    let admin = token("admin", "backup", &[]);
    let node = Node::flags(&["--tokens", text(&tokens)]).start();
    let to = folder.path().join("copy");
    let take = |token: &Path| {
        run(&["snapshot", "--url", node.base(), "--to", text(&to), "--token-file", text(token)])
    };
    for (token, code) in
        [(&read, "insufficient_scope"), (&write, "insufficient_scope"), (&confined, "forbidden_board")]
    {
        let (status, said) = take(token);
        assert!(status == Some(2) && said.contains(code), "{said}");
    }
    let (status, answer) = node.client().send(Method::POST, "/v1/snapshots", None).expect("it answers");
    assert_eq!(status, 401, "{answer}");
    assert!(!to.exists() && !folder.path().join("copy.partial").exists());
    let (status, said) = take(&admin);
    assert!(status == Some(0) && to.join("SNAPSHOT.json").exists(), "{said}");
    assert!(node.log().contains("a snapshot was begun") && node.log().contains("backup"), "{}", node.log());
}
