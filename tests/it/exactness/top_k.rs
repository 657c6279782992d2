//! Boards of the kind `top_k` over NATS: what two replicas answer while they are killed is what `SpaceSaving`
//! over a map gives, once for each shard. So is what nodes answer that have a copy of a shard, or a snapshot.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ranktree::types::{MemberId, shard_of};
use serde_json::{Value, json};

use crate::support::client::{Client, entry_path};
use crate::support::nats::{Nats, wait_applied, wait_state, wait_until};
use crate::support::node::Node;
use crate::support::random::Random;
use crate::support::snapshots::{restore, snapshot};

const SHARDS: u16 = 3;
const CAPACITY: usize = 20;
const MEMBERS: u64 = 4_000;
const JOBS_PER_ROUND: u64 = 2_000;
const ROUNDS: u64 = 6;

#[derive(Debug, Clone)]
struct Counted {
    score: u64,
    error: u64,
    /// The number of the job that it was reached by.
    reached: u64,
}

#[derive(Default)]
struct Model {
    shards: [BTreeMap<String, Counted>; 3],
    truth: BTreeMap<String, u64>,
}

type Order = (Reverse<u64>, u64, u64, String);

fn order((id, entry): (&String, &Counted)) -> Order {
    (Reverse(entry.score), entry.reached, entry.error, id.clone())
}

impl Model {
    fn shard(&mut self, id: &str) -> &mut BTreeMap<String, Counted> {
        let shard = shard_of(&MemberId::new(id).expect("a good id"), SHARDS);
        &mut self.shards[usize::from(shard.0)]
    }

    fn count(&mut self, id: &str, by: u64, number: u64) {
        *self.truth.entry(id.to_owned()).or_default() += by;
        let shard = self.shard(id);
        if let Some(entry) = shard.get_mut(id) {
            (entry.score, entry.reached) = (entry.score + by, number);
            return;
        }
        let worst = shard.iter().map(order).max();
        let is_full = shard.len() == CAPACITY;
        let had_others = shard.values().any(|entry| entry.error > 0);
        let floor = worst.filter(|_| is_full || had_others);
        let error = floor.as_ref().map_or(0, |(Reverse(score), ..)| *score);
        if let Some((.., replaced)) = floor.filter(|_| is_full) {
            shard.remove(&replaced);
        }
        shard.insert(id.to_owned(), Counted { score: error + by, error, reached: number });
    }

    fn remove(&mut self, id: &str) {
        self.truth.remove(id);
        let shard = self.shard(id);
        let Some(gone) = shard.remove(id) else { return };
        let has_error = shard.values().any(|entry| entry.error > 0);
        if let Some((.., worst)) = shard.iter().map(order).max().filter(|_| gone.error > 0 && !has_error) {
            shard.get_mut(&worst).expect("it is there").error = gone.error;
        }
    }

    /// The best entries of all shards.
    fn shown(&self) -> Vec<Value> {
        let mut all: Vec<Order> = self.shards.iter().flatten().map(order).collect();
        all.sort_unstable();
        all.truncate(CAPACITY);
        all.into_iter().map(|(Reverse(score), _, error, id)| json!([id, score, error])).collect()
    }
}

fn top(client: &Client) -> Vec<Value> {
    let (status, page) = client.get("/v1/boards/searches/top?limit=100");
    assert_eq!(status, 200, "{page}");
    let entries = page["entries"].as_array().expect("a list").iter();
    entries.map(|entry| json!([entry["member"], entry["score"], entry["error"]])).collect()
}

/// Jobs of members some of whom are frequent, with times of their own.
fn jobs(random: &mut Random, model: &mut Model, round: u64, began: jiff::Timestamp) -> Vec<Value> {
    let numbers = (round * JOBS_PER_ROUND..).take(usize::try_from(JOBS_PER_ROUND).expect("it is small"));
    let jobs = numbers.map(|number| {
        let most = [10, 40, 300, MEMBERS][usize::try_from(random.below(4)).expect("it is small")];
        let (id, by) = (format!("m{}", random.below(most)), random.below(5));
        if random.below(100) == 0 {
            model.remove(&id);
            return json!({"board": "searches", "member": id, "op": "remove"});
        }
        let by = by.max(1);
        model.count(&id, by, number);
        let ahead = jiff::SignedDuration::from_millis(i64::try_from(number).expect("it is small"));
        let at = began.checked_add(ahead).expect("a time").to_string();
        json!({"board": "searches", "member": id, "score": by, "at": at})
    });
    jobs.collect()
}

#[test]
fn replicas_that_are_killed_keep_the_same_frequent_members() {
    let mut random = Random::new(13);
    let nats = Nats::start();
    let start = |name: &str| {
        let flags = ["--node", name, "--checkpoint-changes", "500"];
        Node::with_nats(&nats).shards(SHARDS).stream_mib(64).flags(&flags).start()
    };
    let (mut one, mut two) = (start("one"), start("two"));
    for shard in 0..usize::from(SHARDS) {
        wait_state(&one.client(), shard, "live");
        wait_state(&two.client(), shard, "live");
    }
    let definition = json!({"kind": "top_k", "capacity": CAPACITY});
    let (status, answer) = one.client().put("/v1/boards/searches", &definition);
    assert_eq!(
        (status, &answer["kind"], &answer["policy"]),
        (201, &json!("top_k"), &json!("incr")),
        "{answer}"
    );
    let (status, problem) =
        two.client().put("/v1/boards/searches", &json!({"kind": "top_k", "capacity": 21}));
    assert_eq!((status, &problem["code"]), (409, &json!("board_differs")), "{problem}");
    let (status, problem) =
        two.client().put("/v1/boards/searches", &json!({"kind": "ranking", "capacity": CAPACITY}));
    assert_eq!((status, &problem["code"]), (409, &json!("board_differs")), "{problem}");

    let hour = jiff::SignedDuration::from_hours(1);
    let began = jiff::Timestamp::now().checked_sub(hour).expect("a time");
    let began = jiff::Timestamp::from_second(began.as_second()).expect("a time");
    let mut model = Model::default();
    for round in 0..ROUNDS {
        let jobs = jobs(&mut random, &mut model, round, began);
        let (before, after) = jobs.split_at(jobs.len() / 2);
        nats.publish_jobs(SHARDS, before, 7);
        if round % 2 == 0 {
            two.kill9();
        } else {
            one.kill9();
        }
        let ends = nats.publish_jobs(SHARDS, after, 50);
        if round % 2 == 0 {
            two.restart();
        } else {
            one.restart();
        }
        for node in [&one, &two] {
            wait_applied(&node.client(), &ends);
            assert_eq!(top(&node.client()), model.shown(), "round {round}");
        }
    }

    let client = two.client();
    for entry in model.shown() {
        let id = entry[0].as_str().expect("an id");
        let (score, error) = (entry[1].as_u64().expect("a score"), entry[2].as_u64().expect("an error"));
        let truth = model.truth[id];
        assert!(score - error <= truth && truth <= score, "{truth}: {entry}");
        let path = entry_path("searches", id);
        let (status, found) = client.get(&path);
        assert_eq!((status, &found["score"], &found["error"]), (200, &entry[1], &entry[2]), "{found}");
        let (_, around) = client.get(&format!("{path}/around?above=0&below=0"));
        assert_eq!(around["entries"][0]["error"], entry[2], "{around}");
        let (_, group) = client.post("/v1/boards/searches/members:lookup", &json!({"members": [id]}));
        assert_eq!(group["entries"][0]["error"], entry[2], "{group}");
        let (_, boards) = client.get(&format!("/v1/members/{id}"));
        assert_eq!(boards["entries"][0]["error"], entry[2], "{boards}");
    }
    let writing = client.waiting_for_writes();
    let (status, answer) = writing.put(&entry_path("searches", "new"), &json!({"score": 2}));
    assert_eq!(status, 200, "{answer}");
    for refused in [json!({"score": 2, "op": "set"}), json!({"score": -2}), json!({"score": 2, "version": 1})]
    {
        let (status, problem) = writing.put(&entry_path("searches", "new"), &refused);
        assert_eq!((status, &problem["code"]), (409, &json!("bad_score")), "{refused} {problem}");
        let detail = problem["detail"].as_str().expect("words");
        assert!(detail.contains("top_k"), "{detail}");
    }
    let set = json!([{"board": "searches", "member": "new", "op": "set", "score": 1}]);
    let (_, answer) = writing.post("/v1/jobs", &set);
    assert!(answer.to_string().contains("takes incr, remove, hide and show; got set"), "{answer}");
    for node in [&mut one, &mut two] {
        assert!(node.terminate().success(), "{}", node.log());
        node.verify();
    }
}

/// The memory of what is counted goes with copies and snapshots: who is replaced next, and by how much scores
/// may be too high.
#[test]
fn a_copy_of_a_shard_and_a_restored_snapshot_go_on_counting_alike() {
    let mut random = Random::new(14);
    let nats = Nats::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    let start = |name: &str| {
        let flags = ["--node", name, "--checkpoint-changes", "500"];
        Node::with_nats(&nats).at(path(name)).shards(SHARDS).stream_mib(64).flags(&flags).start()
    };
    let live = |node: &Node| {
        for shard in 0..usize::from(SHARDS) {
            wait_state(&node.client(), shard, "live");
        }
    };
    let (one, mut two) = (start("one"), start("two"));
    live(&one);
    live(&two);
    let definition = json!({"kind": "top_k", "capacity": CAPACITY});
    wait_until("the board is defined", || one.client().put("/v1/boards/searches", &definition).0 < 300);
    let hour = jiff::SignedDuration::from_hours(1);
    let began = jiff::Timestamp::now().checked_sub(hour).expect("a time");
    let began = jiff::Timestamp::from_second(began.as_second()).expect("a time");
    let mut model = Model::default();
    let mut play = |round: u64, nodes: &[&Node]| {
        let ends = nats.publish_jobs(SHARDS, &jobs(&mut random, &mut model, round, began), 20);
        for node in nodes {
            live(node);
            wait_applied(&node.client(), &ends);
            assert_eq!(top(&node.client()), model.shown(), "round {round}");
        }
    };
    play(0, &[&one, &two]);
    two.kill9();
    std::fs::remove_dir_all(two.data_dir().join("shard-001")).expect("it is there");
    two.restart();
    play(1, &[&one, &two]);
    assert!(two.log().contains("fetching a copy of the shard from another node"), "{}", two.log());
    snapshot(&two, &path("snapshot"));
    play(2, &[&one, &two]);
    let (code, said) = restore(&path("snapshot"), &path("three"), &[]);
    assert_eq!(code, Some(0), "{said}");
    let three = start("three");
    play(3, &[&one, &two, &three]);
    for mut node in [one, two, three] {
        assert!(node.terminate().success(), "{}", node.log());
        assert!(!node.log().contains("is halted"), "{}", node.log());
        node.verify();
    }
}
