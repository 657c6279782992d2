//! The load generator against the real service: its figures match what was applied, and errors are reported.

use std::collections::BTreeMap;
use std::process::{Child, Command, Output};

use async_nats::jetstream::stream::{Config, DiscardPolicy};
use ranktree::job::{Op, Targets};
use ranktree::loadgen::{Distribution, OpMix, Operation, Spec, Workload};
use ranktree::types::BoardName;
use ranktree::wire;
use serde_json::Value;

use crate::support::client::{Client, count_of};
use crate::support::command;
use crate::support::nats::{Nats, shard_status, wait_until};
use crate::support::node::Node;
use crate::support::secured::{Secured, shipped};

/// The result of a run: exit code, summary, and standard error.
fn finish(child: Child) -> (i32, Value, String) {
    let Output { status, stdout, stderr } = child.wait_with_output().expect("it can be waited for");
    let words = String::from_utf8_lossy(&stderr).into_owned();
    let code = status.code().expect("it ended by itself");
    if stdout.is_empty() {
        return (code, Value::Null, words);
    }
    (code, serde_json::from_slice(&stdout).expect("one JSON document and nothing else"), words)
}

fn load(arguments: &[&str]) -> (i32, Value, String) {
    finish(command::spawn(&[&["load", "--json"], arguments].concat()))
}

/// The score of each member of a board if every job of a run of increments was applied exactly once.
fn expected_sums(jobs: u64, jobs_per_message: usize, shards: Option<u16>) -> BTreeMap<String, i64> {
    let workload = Workload::new(Spec {
        members: 300,
        boards: vec![BoardName::new("load0").expect("a good name")],
        distribution: Distribution::Zipf(0.99),
        ops: OpMix::new(vec![(Op::Incr, 1)]).expect("a share"),
        scores: 0..1_000,
        jobs_per_message,
        shards,
        read_ratio: 0.0,
        read_parameters: String::new(),
        jobs: Some(jobs),
        seed: 7,
    });
    let mut sums = BTreeMap::new();
    for operation in workload {
        let Operation::Write(message) = operation else { panic!("there are no reads") };
        for job in wire::decode(&message.body).expect("well-formed") {
            let job = job.expect("a good job");
            let Targets::Boards(boards) = &job.targets else { panic!("{job:?}") };
            let step = boards[0].1.as_ref().expect("a score").keys()[0];
            *sums.entry(job.member.as_str().to_owned()).or_default() += step;
        }
    }
    sums
}

const INCREMENTS: [&str; 10] =
    ["--members", "300", "--distribution", "zipf", "--op", "incr", "--scores", "1000", "--seed", "7"];

fn sums(client: &Client) -> BTreeMap<String, i64> {
    let (status, answer) = client.get("/v1/boards/load0/top?limit=1000");
    // The first job creates the board, which may take a moment.
    if status == 404 {
        return BTreeMap::new();
    }
    assert_eq!(status, 200, "{answer}");
    let entries = answer["entries"].as_array().expect("a list");
    let sum = |entry: &Value| {
        let member = entry["member"].as_str().expect("a string").to_owned();
        (member, entry["score"].as_i64().expect("an integer"))
    };
    entries.iter().map(sum).collect()
}

#[test]
fn every_job_acknowledged_by_nats_is_applied_once() {
    let nats = Nats::start();
    let url = nats.url();
    let service = Node::with_nats(&nats).shards(3).start();
    let client = service.client();
    let read_url = format!("http://{}", service.address());
    for (jobs, per_message, via) in
        [("20000", "100", "stream"), ("5000", "1", "stream"), ("3000", "1", "service")]
    {
        let target =
            ["--nats", &url, "--jobs", jobs, "--jobs-per-message", per_message, "--in-flight", "200"];
        let reads = ["--via", via, "--read-url", &read_url, "--read-ratio", "0.3", "--visible"];
        let (code, summary, words) = load(&[&INCREMENTS[..], &target, &reads].concat());
        assert_eq!(code, 0, "{summary} {words}");
        assert_eq!((&summary["ended"], &summary["succeeded"]), (&"completed".into(), &true.into()));
        assert_eq!(summary["workload"]["shards"], 3, "found out from the streams");
        assert_eq!(summary["writes"]["jobs"].to_string(), jobs);
        assert_eq!(summary["writes"]["latency"]["count"], summary["writes"]["messages"]);
        assert_eq!(summary["errors"], Value::Array(Vec::new()));
        assert!(count_of(&summary["reads"]["requests"]) > 0, "{summary}");
        assert_eq!(summary["reads"]["failed"], 0);
        assert!(count_of(&summary["visible"]["count"]) > 0, "{summary}");
        assert_eq!(summary["schedule"], Value::Null);
        let applied = &summary["applied"];
        assert_eq!((applied["jobs_stored"].to_string().as_str(), &applied["trouble"]), (jobs, &Value::Null));
        assert_eq!(
            (&applied["jobs_applied"], &applied["jobs_rejected"]),
            (&applied["jobs_stored"], &serde_json::json!({}))
        );
        assert!(applied["caught_up_seconds"].is_f64(), "{applied}");
        assert!(count_of(&applied["jobs_applied_at_end"]) <= count_of(&applied["jobs_applied"]), "{applied}");
    }
    let mut expected = expected_sums(20_000, 100, Some(3));
    for jobs in [5_000, 3_000] {
        for (member, sum) in expected_sums(jobs, 1, Some(3)) {
            *expected.entry(member).or_default() += sum;
        }
    }
    wait_until("all is applied", || sums(&client) == expected);
    for shard in 0..3 {
        let status = shard_status(&client, shard);
        assert_eq!((&status["rejects"], &status["state"]), (&0.into(), &"live".into()), "{status}");
    }
}

/// A node counts the jobs of its own shards only. What the others' owners applied is asked of them.
#[test]
fn a_node_that_owns_no_shard_tells_what_the_owners_applied() {
    let nats = Nats::start();
    let url = nats.url();
    let node = |name, own| Node::with_nats(&nats).flags(&["--node", name, "--own", own]);
    let first = node("first", "0").shards(2).start();
    let mut second = node("second", "1").start();
    let none = node("none", "none").start();
    let known = |owner: &str| {
        let (_, status) = none.client().get("/v1/status");
        let shards = status["shards"].as_array().expect("a list");
        shards.iter().filter(|shard| shard["owners"][0]["state"] == owner).count()
    };
    wait_until("the owners are known", || known("live") == 2);
    let jobs = ["--jobs", "2000", "--jobs-per-message", "20"];
    let of = |node: &Node| format!("http://{}", node.address());
    let over_nats = |node: &Node| ["--nats".to_owned(), url.clone(), "--read-url".to_owned(), of(node)];
    let over_http = ["--http".to_owned(), of(&none)];
    for target in [&over_nats(&none)[..], &over_http, &over_nats(&first)] {
        let target: Vec<&str> = target.iter().map(String::as_str).collect();
        let (code, summary, words) = load(&[&jobs[..], &target].concat());
        assert_eq!(code, 0, "{summary} {words}");
        let applied = &summary["applied"];
        assert_eq!(
            (&applied["jobs_applied"], &applied["trouble"]),
            (&2_000.into(), &Value::Null),
            "{summary}"
        );
        assert!(applied["caught_up_seconds"].is_f64(), "{applied}");
    }
    second.kill9();
    wait_until("the owner is silent", || known("silent") == 1);
    let (code, summary, words) = load(&[&jobs[..], &["--nats", &url, "--read-url", &of(&none)]].concat());
    let why = summary["applied"]["trouble"].as_str().unwrap_or_default();
    assert!(why.contains("does not count the jobs of shard 1; no owner"), "{code} {summary} {words}");
}

#[test]
fn every_job_answered_over_http_is_applied_once_with_concurrent_reads() {
    let service = Node::shards(2).start();
    let url = format!("http://{}", service.address());
    for (jobs, per_message) in [("2000", "50"), ("600", "1")] {
        let target = ["--url", &url, "--jobs", jobs, "--jobs-per-message", per_message, "--connections", "8"];
        let more = ["--read-ratio", "0.5", "--visible"];
        let (code, summary, words) = load(&[&INCREMENTS[..], &target, &more].concat());
        assert_eq!(code, 0, "{summary} {words}");
        assert_eq!(summary["writes"]["jobs"].to_string(), jobs);
        assert_eq!(summary["writes"]["jobs_rejected"], serde_json::json!({}));
        assert_eq!(summary["applied"]["jobs_applied"].to_string(), jobs, "{summary}");
        assert_eq!(summary["visible"]["count"], summary["writes"]["messages"]);
        assert!(count_of(&summary["reads"]["requests"]) > 0, "{summary}");
        assert_eq!((&summary["reads"]["failed"], &summary["errors"]), (&0.into(), &serde_json::json!([])));
    }
    let mut expected = expected_sums(2_000, 50, None);
    for (member, sum) in expected_sums(600, 1, None) {
        *expected.entry(member).or_default() += sum;
    }
    assert_eq!(sums(&service.client()), expected);
}

#[test]
fn boards_with_windows_are_defined_and_read_by_them() {
    let service = Node::shards(2).start();
    let url = format!("http://{}", service.address());
    let windows = ["--url", &url, "--boards", "2", "--windows", "all,day,week"];
    let reads = ["--read-window", "day", "--read-ratio", "0.5", "--jobs-per-message", "10"];
    // The second run finds the boards there, as the first one left them.
    for _ in 0..2 {
        let (code, summary, words) = load(&[&windows[..], &reads, &["--jobs", "3000"]].concat());
        assert_eq!(code, 0, "{summary} {words}");
        assert_eq!((&summary["reads"]["failed"], &summary["errors"]), (&0.into(), &serde_json::json!([])));
        assert_eq!(summary["workload"]["read_parameters"], "window=day");
        assert_eq!(summary["writes"]["jobs_rejected"], serde_json::json!({}));
    }
    for board in ["load0", "load1"] {
        let (_, board) = service.client().get(&format!("/v1/boards/{board}"));
        assert_eq!(board["windows"], serde_json::json!(["all", "day", "week"]));
        let total = |window: &str| {
            let instances = board["instances"][window].as_array().expect("a list");
            instances.iter().map(|instance| count_of(&instance["total"])).sum::<usize>()
        };
        assert!(total("all") > 1_000, "{board}");
        // A run over midnight is in two days.
        assert!(["day", "week"].iter().all(|window| total(window) >= total("all")), "{board}");
    }
    let (code, _, words) = load(&["--url", &url, "--windows", "all,hour", "--jobs", "1"]);
    assert!(code == 2 && words.contains("it is there with the windows all, day, week"), "{words}");
    let (code, _, words) = load(&["--nats", "nats://127.0.0.1:1", "--windows", "day", "--jobs", "1"]);
    assert!(code == 2 && words.contains("--read-url"), "{words}");
}

#[test]
fn the_rate_decides_how_much_is_sent() {
    let service = Node::start();
    let url = format!("http://{}", service.address());
    let rate = ["--rate", "2000", "--jobs-per-message", "10", "--duration", "1500ms", "--warmup", "500ms"];
    let (code, summary, words) = load(&[&["--url", &url][..], &rate].concat());
    assert_eq!(code, 0, "{summary} {words}");
    let schedule = &summary["schedule"];
    let begun = count_of(&schedule["operations"]);
    // Two seconds with 200 messages each, the first at once. A busy machine may not send the last ones.
    assert!((400..=401).contains(&(begun + count_of(&schedule["never_begun"]))), "{schedule}");
    assert!(begun > 0, "{schedule}");
    let (measured, warmup) = (&summary["writes"], &summary["warmup"]);
    assert_eq!(count_of(&measured["messages"]) + count_of(&warmup["messages"]), begun, "{summary}");
    // This many are due during the warm-up. A busy machine may send some of them later.
    assert!(count_of(&warmup["messages"]) <= 101, "{warmup}");
    assert_eq!(count_of(&measured["jobs"]), count_of(&measured["messages"]) * 10);
}

#[test]
fn full_and_missing_streams_are_reported_with_advice() {
    let nats = Nats::start();
    let url = nats.url();
    let (code, _, words) = load(&["--nats", &url]);
    assert_eq!(code, 2, "{words}");
    assert!(words.contains("start `ranktree serve --nats` first"), "{words}");
    let (code, summary, words) = load(&["--nats", &url, "--shards", "1", "--jobs", "10"]);
    assert_eq!(code, 1, "{words}");
    let error = &summary["errors"][0];
    assert_eq!((&error["kind"], &error["count"]), (&"no_stream".into(), &10.into()), "{summary}");
    assert!(words.contains("no operation succeeded"), "{words}");
    nats.create(Config {
        name: "RANKTREE_JOBS_0".to_owned(),
        subjects: vec!["ranktree.jobs.0".to_owned()],
        discard: DiscardPolicy::New,
        max_bytes: 100_000,
        metadata: [("ranktree-shards".to_owned(), "1".to_owned())].into(),
        ..Config::default()
    });
    let (code, summary, words) = load(&["--nats", &url, "--jobs", "5000", "--jobs-per-message", "10"]);
    assert_eq!(code, 1, "{summary} {words}");
    let error = &summary["errors"][0];
    assert_eq!(error["kind"], "stream_full", "{summary}");
    assert!(error["detail"].as_str().expect("words").contains("RANKTREE_JOBS_0 is full"), "{error}");
    let (stored, failed) = (&summary["writes"]["messages"], &summary["writes"]["messages_failed"]);
    assert_eq!(nats.info("RANKTREE_JOBS_0").state.messages.to_string(), stored.to_string());
    assert_eq!(count_of(stored) + count_of(failed), 500, "{summary}");
    assert_eq!(error["count"], *failed);
}

#[test]
fn a_user_who_may_only_publish_can_load_and_refused_credentials_are_reported() {
    let server = Secured::start(&shipped());
    let url = server.url();
    let (node, game) = (server.file("node", "node-secret"), server.file("game", "game-secret"));
    let log_in = ["--nats", &url, "--nats-user", "node", "--nats-password-file", &node];
    let service = Node::shards(2).flags(&log_in).start();
    let log_in = ["--nats", &url, "--nats-user", "game", "--nats-password-file", &game];
    let jobs = ["--shards", "2", "--jobs", "2000", "--jobs-per-message", "50"];
    let (code, summary, words) = load(&[&INCREMENTS[..], &log_in, &jobs].concat());
    assert_eq!(code, 0, "{summary} {words}");
    let client = service.client();
    let expected = expected_sums(2_000, 50, Some(2));
    wait_until("all is applied", || sums(&client) == expected);
    let (code, _, words) = load(&log_in);
    assert_eq!(code, 2, "{words}");
    assert!(words.contains("needs --shards") && words.contains("ermissions"), "{words}");
    let wrong = ["--nats", &url, "--nats-user", "game", "--nats-password-file", &node];
    let (code, _, words) = load(&wrong);
    assert_eq!(code, 2, "{words}");
    assert!(words.contains("refused the credentials"), "{words}");
}

#[test]
fn a_run_gives_up_on_a_killed_service_and_counts_its_errors() {
    let mut service = Node::start();
    let url = format!("http://{}", service.address());
    let run = command::spawn(&[
        "load",
        "--json",
        "--url",
        &url,
        "--connections",
        "4",
        "--duration",
        "10m",
        "--give-up",
        "5s",
    ]);
    let client = service.client();
    wait_until("some jobs are applied", || count_of(&shard_status(&client, 0)["applied_sequence"]) > 100);
    service.kill9();
    let (code, summary, words) = finish(run);
    assert_eq!(code, 1, "{summary} {words}");
    assert_eq!((&summary["ended"], &summary["succeeded"]), (&"gave_up".into(), &false.into()));
    assert!(count_of(&summary["writes"]["messages"]) > 0, "{summary}");
    let errors = summary["errors"].as_array().expect("a list");
    let connect = errors.iter().find(|error| error["kind"] == "connect").expect("nobody is there any more");
    assert!(connect["detail"].as_str().expect("words").contains("is `ranktree serve` running"), "{connect}");
    let failed: usize = errors.iter().map(|error| count_of(&error["count"])).sum();
    assert_eq!(failed, count_of(&summary["writes"]["messages_failed"]));
    let (code, _, words) = load(&["--url", &url]);
    assert_eq!(code, 2, "{words}");
    assert!(words.contains("is `ranktree serve` running"), "{words}");
}

#[test]
fn an_interrupt_ends_a_run_with_its_summary() {
    let service = Node::start();
    let url = format!("http://{}", service.address());
    let run = command::spawn(&["load", "--json", "--url", &url, "--connections", "4", "--duration", "10m"]);
    let client = service.client();
    wait_until("some jobs are applied", || count_of(&shard_status(&client, 0)["applied_sequence"]) > 100);
    let kill = Command::new("sh").arg("-c").arg(format!("kill -INT {}", run.id())).status();
    assert!(kill.expect("there is a shell").success());
    let (code, summary, words) = finish(run);
    assert_eq!((code, &summary["ended"]), (0, &"interrupted".into()), "{summary} {words}");
    assert_eq!(summary["errors"], serde_json::json!([]));
    let sent = count_of(&summary["writes"]["messages"]);
    assert!(sent > 100, "{summary}");
    assert_eq!(count_of(&shard_status(&client, 0)["applied_sequence"]), sent, "every answer was waited for");
}

/// Scores up to 1,000 for a board that accepts scores up to 100. Most jobs are rejected, which NATS does not
/// tell the publisher.
#[test]
fn rejected_jobs_are_counted_by_reason_over_http_and_nats() {
    let nats = Nats::start();
    let url = nats.url();
    let service = Node::with_nats(&nats).shards(2).start();
    let client = service.client();
    let bounded = serde_json::json!({ "keys": [{ "name": "score", "min": 0, "max": 100 }] });
    wait_until("the board is defined", || matches!(client.put("/v1/boards/load0", &bounded).0, 200 | 201));
    let http = format!("http://{}", service.address());
    let jobs = ["--jobs", "4000", "--jobs-per-message", "40", "--scores", "1000", "--limit-errors", "100"];
    let of_nats = ["--nats", &url, "--read-url", &http];
    let mut rejected = 0;
    for target in [&of_nats[..], &["--http", &http], &["--http", &http, "--visible"]] {
        let (code, summary, words) = load(&[target, &jobs].concat());
        assert_eq!(code, 0, "{summary} {words}");
        let applied = &summary["applied"];
        let (stored, good) = (count_of(&applied["jobs_stored"]), count_of(&applied["jobs_applied"]));
        let bad = count_of(&applied["jobs_rejected"]["out_of_range"]);
        assert_eq!((stored, good + bad), (4_000, 4_000), "{summary}");
        assert!(good > 0 && bad > 2_000, "{applied}");
        // An HTTP answer with wait=applied reports rejections, too.
        let told = &summary["writes"]["jobs_rejected"];
        let expected = if target.contains(&"--visible") {
            applied["jobs_rejected"].clone()
        } else {
            serde_json::json!({})
        };
        assert_eq!(*told, expected, "{summary}");
        rejected += bad;
    }
    let status = |shard| count_of(&shard_status(&client, shard)["rejects"]);
    assert_eq!(status(0) + status(1), rejected);
    // The summary as text; and the run fails if --limit-errors allows fewer errors.
    let strict = ["load", "--jobs", "400", "--scores", "1000"];
    let output = command::spawn(&[&strict[..], &of_nats].concat()).wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("of 400 jobs stored") && text.contains("jobs rejected: out_of_range"), "{text}");
    // Without --read-url, no service is asked for its counts.
    let (code, summary, words) = load(&["--nats", &url, "--jobs", "10"]);
    assert_eq!((code, &summary["applied"]), (0, &Value::Null), "{words}");
}
