//! The real jobs, over one, three and ten shards, and over a crash: every rank, position and neighbour is the
//! model's.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::client::{Client, count_of, entry_path, score_of};
use crate::support::model::{self, Standing};
use crate::support::node::Node;
use crate::support::real_jobs::{self, RealJob};

const ABOVE: usize = 3;
const BELOW: usize = 3;
const BATCH: usize = 1_000;
/// Frequent checkpoints, so that the start after the crash loads one and replays the deltas after it.
const CHECKPOINT_ON_THE_WAY: [&str; 2] = ["--checkpoint-changes", "4000"];

/// What the service says about one member of one board: its entry, and those around it.
pub type Answers = BTreeMap<(String, String), (Value, Value)>;

#[test]
fn real_jobs_rank_like_the_model_on_any_number_of_shards_and_after_a_crash() {
    let jobs = real_jobs::load();
    let boards = expected(&jobs);
    assert_eq!(boards.len(), 36);
    assert_eq!(boards.values().map(Vec::len).sum::<usize>(), 3_677);
    assert!(boards.values().flatten().any(|standing| standing.tied > 1), "the data has ties");

    let mut first: Option<Answers> = None;
    for shards in [1, 3, 10] {
        let mut service = Node::shards(shards).flags(&CHECKPOINT_ON_THE_WAY).start();
        load(&service.client(), &jobs);
        let answers = check(&service.client(), &boards);
        service.kill9();
        service.restart();
        assert_same(&check(&service.client(), &boards), &answers, "after a crash as before");
        assert!(service.terminate().success());
        service.verify();
        assert_same(&answers, first.get_or_insert_with(|| answers.clone()), "with many shards as with one");
    }
}

pub fn expected(jobs: &[RealJob]) -> BTreeMap<String, Vec<Standing>> {
    let mut boards = BTreeMap::new();
    for RealJob { board, member, score, at } in jobs {
        boards.entry(board.clone()).or_insert_with(model::Board::with_defaults).set(member, &[*score], *at);
    }
    boards.into_iter().map(|(name, board)| (name, board.standings())).collect()
}

fn load(client: &Client, jobs: &[RealJob]) {
    for batch in jobs.chunks(BATCH) {
        let body = Value::Array(batch.iter().map(RealJob::to_json).collect());
        let (status, answer) = client.post("/v1/jobs", &body);
        assert_eq!(status, 200, "{answer}");
        let results = answer["results"].as_array().expect("one result per job");
        assert_eq!(results.len(), batch.len());
        for result in results {
            assert!(result["changed"].is_boolean(), "{result}");
        }
    }
}

/// Compares all answers with the model. Returns the answers without `as_of`, which may differ between
/// services.
pub fn check(client: &Client, boards: &BTreeMap<String, Vec<Standing>>) -> Answers {
    let mut answers = Answers::new();
    for (board, standings) in boards {
        let top = ask(client, &format!("/v1/boards/{board}/top?limit=1000"));
        check_list(&top, board, standings, standings.len());
        for standing in standings {
            let path = entry_path(board, &standing.member);
            let entry = ask(client, &path);
            check_entry(&entry, board, standing, standings.len());
            let around = ask(client, &format!("{path}/around?above={ABOVE}&below={BELOW}"));
            let neighbours = model::around(standings, standing.position, ABOVE, BELOW);
            check_list(&around, board, neighbours, standings.len());
            answers.insert((board.clone(), standing.member.clone()), (entry, around));
        }
    }
    answers
}

/// Shows only the first answer that differs, because thousands could not be read.
fn assert_same(answers: &Answers, before: &Answers, when: &str) {
    assert!(answers.keys().eq(before.keys()), "the same members answer {when}");
    for (place, answer) in answers {
        assert_eq!(Some(answer), before.get(place), "{place:?} {when}");
    }
}

fn ask(client: &Client, path: &str) -> Value {
    let (status, mut answer) = client.get(path);
    assert_eq!(status, 200, "{path}: {answer}");
    let as_of = answer.as_object_mut().and_then(|answer| answer.remove("as_of"));
    assert!(as_of.is_some_and(|as_of| as_of.is_string()), "{path} says what it was exact at");
    answer
}

fn check_entry(entry: &Value, board: &str, standing: &Standing, total: usize) {
    assert_eq!((&entry["board"], &entry["window"]), (&Value::from(board), &Value::from("all")), "{entry}");
    let Standing { member, score, rank, position, better, tied, worse } = standing;
    assert_eq!(
        (&entry["member"], score_of(&entry["score"])),
        (&Value::from(member.as_str()), score.clone()),
        "{entry}"
    );
    let counts = ["rank", "position", "better", "tied", "worse", "total"].map(|name| count_of(&entry[name]));
    assert_eq!(counts, [*rank, *position, *better, *tied, *worse, total], "{board}: {entry}");
    let percentile = entry["percentile"].as_f64().expect("a number");
    // Dividing two numbers of this size has an error of about 1e-14; an answer may be rounded to far fewer
    // digits.
    let difference = percentile * to_f64(total) - 100.0 * to_f64(*worse);
    assert!(difference.abs() <= 0.01 * to_f64(total), "{board}: {entry}");
}

fn check_list(list: &Value, board: &str, standings: &[Standing], total: usize) {
    assert_eq!((&list["board"], count_of(&list["total"])), (&Value::from(board), total), "{list}");
    let told = |entry: &Value| {
        let member = entry["member"].as_str().expect("a string").to_owned();
        (member, score_of(&entry["score"]), count_of(&entry["rank"]), count_of(&entry["position"]))
    };
    let found: Vec<_> = list["entries"].as_array().expect("a list").iter().map(told).collect();
    let expect = |standing: &Standing| {
        (standing.member.clone(), standing.score.clone(), standing.rank, standing.position)
    };
    assert_eq!(found, standings.iter().map(expect).collect::<Vec<_>>(), "{board}");
}

fn to_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).expect("a board of the real data has about a hundred entries"))
}
