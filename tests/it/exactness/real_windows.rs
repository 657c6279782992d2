//! Thirty days of real scores through hours, days, weeks and months of a board at +05:30, as history that is
//! sent at once, over three shards and crashes: every instance is what sorting its own jobs by hand gives.
//!
//! The days are moved so that the last is yesterday, and so the test does not depend on the day it runs on.

use std::collections::BTreeMap;
use std::thread;

use jiff::Timestamp;
use jiff::tz::Offset;
use serde_json::{Value, json};

use crate::support::client::{Client, count_of};
use crate::support::node::Node;
use crate::support::real_jobs;

/// All of the data's boards, which have so many jobs.
const BOARDS: usize = 36;
const JOBS: usize = 108_000;
/// Clients that write and read at once, each on boards of its own.
const CLIENTS: usize = 4;
const POLICIES: [&str; 3] = ["set", "best", "incr"];
const WINDOWS: [&str; 5] = ["all", "hour", "day", "week", "month"];
/// Half an hour and five hours east.
const OFFSET_SECONDS: i32 = 5 * 3_600 + 1_800;

struct Job {
    board: String,
    member: String,
    score: i64,
    at: Timestamp,
}

/// The instances of a board, and of each the score of every member and the time at which it was reached.
type Instances = BTreeMap<String, BTreeMap<String, (i64, Timestamp)>>;

/// The real jobs, spread over six hours of their day.
fn jobs() -> Vec<Job> {
    let all = real_jobs::load();
    let micros = |at: ranktree::types::Timestamp| at.as_micros();
    let last = all.iter().map(|job| micros(job.at)).max().expect("there are jobs");
    let day = 86_400_000_000_i64;
    let yesterday = (Timestamp::now().as_microsecond() / day - 1) * day;
    let moved = (0..).zip(&all).map(|(number, job): (i64, _)| {
        let within = number % 6 * 3_600 + number % 13 * 60;
        let at = micros(job.at) - last + yesterday + within * 1_000_000;
        let at = Timestamp::from_microsecond(at).expect("a time");
        Job { board: job.board.clone(), member: job.member.clone(), score: job.score, at }
    });
    moved.collect()
}

fn policy(board: &str, names: &[String]) -> &'static str {
    let index = names.iter().position(|name| name == board).expect("a board");
    POLICIES[index % POLICIES.len()]
}

/// What the instances that a time falls in are called, by the civil calendar.
fn names_at(at: Timestamp) -> [String; 5] {
    let local = Offset::from_seconds(OFFSET_SECONDS).expect("an offset").to_datetime(at);
    let (date, week) = (local.date(), local.date().iso_week_date());
    [
        "all".to_owned(),
        format!("{date}T{:02}", local.hour()),
        date.to_string(),
        format!("{:04}-W{:02}", week.year(), week.week()),
        format!("{:04}-{:02}", date.year(), date.month()),
    ]
}

fn apply(instances: &mut Instances, policy: &str, job: &Job) {
    for name in names_at(job.at) {
        let entries = instances.entry(name).or_default();
        let held = entries.get(&job.member).copied();
        let score = match (policy, held) {
            ("incr", Some((held, _))) => held + job.score,
            ("best", Some((held, _))) => held.max(job.score),
            _ => job.score,
        };
        // An equal score keeps its place among the ties.
        if held.is_none_or(|(held, _)| held != score) {
            entries.insert(job.member.clone(), (score, job.at));
        }
    }
}

fn definition(policy: &str, grace: &str) -> Value {
    json!({"policy": policy, "windows": WINDOWS, "utc_offset": "+05:30", "grace": grace, "keep": 1_000})
}

fn ok((status, answer): (u16, Value)) -> Value {
    assert!((200..300).contains(&status), "{status}: {answer}");
    answer
}

/// The jobs of each board go in their order, those of several boards at once.
fn send(service: &Node, jobs: &[Job], names: &[String]) {
    let send = |jobs: &[&Job]| {
        let body: Vec<Value> = jobs
            .iter()
            .map(|Job { board, member, score, at }| {
                json!({"board": board, "member": member, "score": score, "at": at.to_string()})
            })
            .collect();
        // Without the ranks before and after each job, which would have to be counted.
        let answer = ok(service.client().post("/v1/jobs?results=changed", &body.into()));
        let results = answer["results"].as_array().expect("a list");
        assert_eq!(results.iter().find(|result| !result["changed"].is_boolean()), None);
    };
    thread::scope(|scope| {
        for boards in names.chunks(names.len().div_ceil(CLIENTS)) {
            let of_boards: Vec<&Job> = jobs.iter().filter(|job| boards.contains(&job.board)).collect();
            scope.spawn(move || of_boards.chunks(1_000).for_each(send));
        }
    });
}

/// Compares all entries of every instance: members, scores, ranks and positions. Returns how many there are.
fn check(service: &Node, boards: &BTreeMap<String, Instances>) -> usize {
    let boards: Vec<(&String, &Instances)> = boards.iter().collect();
    thread::scope(|scope| {
        let of_client = boards.chunks(boards.len().div_ceil(CLIENTS));
        let checks = of_client.map(|boards| scope.spawn(|| check_boards(&service.client(), boards)));
        let checks: Vec<_> = checks.collect();
        checks.into_iter().map(|check| check.join().expect("no panic")).sum()
    })
}

fn check_boards(client: &Client, boards: &[(&String, &Instances)]) -> usize {
    let mut checked = 0;
    for (board, instances) in boards {
        for (instance, entries) in *instances {
            let mut sorted: Vec<_> = entries
                .iter()
                .map(|(member, (score, reached))| (-score, *reached, member.as_bytes()))
                .collect();
            sorted.sort_unstable();
            let top = ok(client.get(&format!("/v1/boards/{board}/top?limit=1000&window={instance}")));
            assert_eq!(
                (&top["window"], count_of(&top["total"])),
                (&json!(instance), sorted.len()),
                "{board}"
            );
            let found = top["entries"].as_array().expect("a list");
            assert_eq!(found.len(), sorted.len().min(1_000), "{board} {instance}");
            let mut rank = 0;
            for (index, (entry, (score, _, member))) in found.iter().zip(&sorted).enumerate() {
                if index == 0 || sorted[index - 1].0 != *score {
                    rank = index + 1;
                }
                let told = (entry["member"].as_str().map(str::as_bytes), entry["score"].as_i64());
                assert_eq!(told, (Some(*member), Some(-score)), "{board} {instance}: {entry}");
                let places = (count_of(&entry["rank"]), count_of(&entry["position"]));
                assert_eq!(places, (rank, index + 1), "{board} {instance}: {entry}");
            }
            checked += found.len();
        }
    }
    checked
}

#[test]
fn thirty_days_of_real_scores_rank_in_every_instance_as_sorted_by_hand() {
    let jobs = jobs();
    let mut names: Vec<String> = jobs.iter().map(|job| job.board.clone()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!((names.len(), jobs.len()), (BOARDS, JOBS));
    let mut boards: BTreeMap<String, Instances> = BTreeMap::new();
    for job in &jobs {
        apply(boards.entry(job.board.clone()).or_default(), policy(&job.board, &names), job);
    }
    let instances: usize = boards.values().map(BTreeMap::len).sum();
    assert!(instances > BOARDS * (1 + 150 + 30 + 4 + 1), "{instances}");

    // Frequent checkpoints, so that a start loads one and replays the deltas after it.
    let mut service = Node::shards(3).flags(&["--checkpoint-changes", "20000"]).start();
    let define = |client: &Client, grace: &str| {
        for board in &names {
            ok(client.put(&format!("/v1/boards/{board}"), &definition(policy(board, &names), grace)));
        }
    };
    define(&service.client(), "60d");
    for part in jobs.chunks(jobs.len() / 3 + 1) {
        send(&service, part, &names);
        service.kill9();
        service.restart();
    }
    let checked = check(&service, &boards);
    assert!(checked > 240_000, "{checked}");

    // With a short grace all but the current ones are closed, and are what they were.
    define(&service.client(), "1h");
    let client = service.client();
    let earliest = jobs.iter().map(|job| job.at).min().expect("there are jobs");
    let late = json!([{"board": names[0], "member": "late", "score": 1, "at": earliest.to_string()}]);
    ok(client.post("/v1/jobs", &late));
    let all = boards.get_mut(&names[0]).and_then(|board| board.get_mut("all")).expect("it has entries");
    all.insert("late".to_owned(), (1, earliest));
    // By the calendar a job of a month ago may still be in the month.
    let month = names_at(earliest)[4].clone();
    let is_open = ok(client.get(&format!("/v1/boards/{}?window={month}", names[0])));
    if is_open["instances"]["month"][0]["open"] == json!(true) {
        let month =
            boards.get_mut(&names[0]).and_then(|board| board.get_mut(&month)).expect("it has entries");
        month.insert("late".to_owned(), (1, earliest));
    }
    service.kill9();
    service.restart();
    assert!(check(&service, &boards) > checked);
    assert!(service.terminate().success());
    service.verify();
}
