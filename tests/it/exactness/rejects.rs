//! Lists rejects of a running service over HTTP and from the command line, with and without NATS, through a
//! node that owns no shard, and with tokens that may see only some.

use std::fs;

use ranktree::types::{MemberId, shard_of};
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::command;
use crate::support::nats::{Nats, wait_applied, wait_until};
use crate::support::node::Node;
use crate::support::place::{Place, at_each_place};

const SHARDS: u16 = 3;

at_each_place![rejections_of_all_shards_are_listed_newest_first];

fn home(member: &str) -> u16 {
    shard_of(&MemberId::new(member).expect("a good id"), SHARDS).0
}

/// A member of a shard.
fn member_of(shard: u16) -> String {
    (0..100)
        .map(|number| format!("m{number}"))
        .find(|member| home(member) == shard)
        .expect("one of a hundred")
}

/// All rejects, asked for a few at a time.
fn rejects(client: &Client, filters: &str, limit: usize) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/rejects?limit={limit}&cursor={cursor}{filters}");
        let (status, answer) = client.get(&path);
        assert_eq!(status, 200, "{path}: {answer}");
        let page = answer["rejects"].as_array().expect("a list");
        assert!(page.len() <= limit, "{answer}");
        all.extend(page.iter().cloned());
        match answer["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => return all,
        }
    }
}

/// What `ranktree rejects` lists.
fn listed(arguments: &[&str]) -> String {
    let output = command().arg("rejects").args(arguments).output().expect("the binary can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).expect("it is text")
}

/// Newest first, by time and then by shard and place.
fn order(reject: &Value) -> (std::cmp::Reverse<String>, u64, std::cmp::Reverse<(u64, u64)>) {
    let number = |name: &str| reject[name].as_u64().expect("a number");
    // To the microsecond and in UTC; with digits of one length, text order is that of time.
    let time = reject["rejected_at"].as_str().expect("a time");
    let (seconds, micros) =
        time.trim_end_matches('Z').split_once('.').unwrap_or((time.trim_end_matches('Z'), ""));
    let time = format!("{seconds}.{micros:0<6}");
    (std::cmp::Reverse(time), number("shard"), std::cmp::Reverse((number("sequence"), number("index"))))
}

/// The same rejects over HTTP, page by page, and from the command line. They are in their order.
fn check_running(service: &Node, expected: usize) -> Vec<Value> {
    let client = service.client();
    let all = rejects(&client, "", 1_000);
    assert_eq!(all.len(), expected);
    assert!(all.windows(2).all(|pair| order(&pair[0]) < order(&pair[1])), "{all:?}");
    for limit in [1, 2, 7] {
        assert_eq!(rejects(&client, "", limit), all, "pages of {limit}");
    }
    let whole = listed(&["--url", service.base()]);
    let lines: Vec<Value> = whole.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines, all);
    all
}

/// Twice as many rejects as an answer holds, over all shards. The offline list has the same text.
fn check_lists(service: &mut Node, expected: usize) -> Vec<Value> {
    let all = check_running(service, expected);
    let (url, data) = (service.base().to_owned(), service.data_dir().to_owned());
    let whole = listed(&["--url", &url]);
    let data = data.to_str().expect("UTF-8");
    let member = member_of(1);
    let filters: [&[&str]; 5] = [
        &[],
        &["--limit", "3"],
        &["--shard", "1", "--limit", "2"],
        &["--reason", "bad_score"],
        &["--member", &member, "--reason", "out_of_range"],
    ];
    let running = filters.map(|filters| listed(&[&["--url", &url], filters].concat()));
    let is_its = |reject: &&Value| reject["job"]["member"] == json!(member);
    let of_member = all.iter().filter(is_its).filter(|reject| reject["reason"] == "out_of_range");
    assert_eq!(running[4].lines().count(), of_member.count(), "{running:?}");
    assert_eq!(running[1], whole.split_inclusive('\n').take(3).collect::<String>());
    assert!(service.terminate().success());
    let stopped = filters.map(|filters| listed(&[&["--data-dir", data], filters].concat()));
    assert_eq!(running, stopped);
    all
}

fn rejections_of_all_shards_are_listed_newest_first(place: Place) {
    let mut service = place.start(SHARDS);
    let client = service.client();
    let bounded = json!({ "keys": [{ "name": "score", "min": 0, "max": 10 }] });
    assert_eq!(client.put("/v1/boards/arena", &bounded).0, 201);
    assert!(rejects(&client, "", 10).is_empty());
    for round in 0..6 {
        for shard in 0..SHARDS {
            let member = member_of(shard);
            let jobs = json!([
                { "board": "arena", "member": member, "score": 11 + round },
                { "board": "arena", "member": member, "score": 1 },
                { "board": "arena", "member": member, "score": [1, 2] }
            ]);
            let (status, answer) = client.post("/v1/jobs", &jobs);
            assert_eq!(
                (status, &answer["results"][0]["rejected"]),
                (200, &"out_of_range".into()),
                "{answer}"
            );
        }
    }
    let all = match place {
        Place::OwnsAll => check_lists(&mut service, 36),
        Place::OwnsNothing => check_running(&service, 36),
    };
    assert_eq!(all[0]["shard"], 2, "the last one that was refused comes first");
    assert_eq!((&all[0]["reason"], &all[0]["index"]), (&"bad_score".into(), &2.into()));
    assert_eq!(all[35]["job"], json!({ "member": member_of(0), "board": "arena", "score": 11 }));
}

#[test]
fn undecodable_jobs_and_jobs_of_other_shards_are_listed_and_logged_with_nats() {
    const SECRET: &str = "rkt_0123456789abcdef";
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).shards(SHARDS).stream_mib(64).start();
    let client = service.client();
    let garbage = nats.publish("ranktree.jobs.0", format!("\u{1} Bearer {SECRET}"));
    let stranger = json!({ "board": "arena", "member": member_of(2), "score": 1 });
    let strange = nats.publish("ranktree.jobs.1", stranger.to_string());
    let mut last = 0;
    for score in 0..500 {
        let bad = json!({ "board": "arena", "member": member_of(2), "score": format!("{score}.5") });
        last = nats.publish("ranktree.jobs.2", bad.to_string());
    }
    wait_applied(&client, &[garbage, strange, last]);
    let found = rejects(&client, "&reason=wrong_shard", 2);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((&found[0]["shard"], &found[0]["sequence"]), (&1.into(), &strange.into()));
    // The job's text, with its fields in the order in which ranktree writes them.
    assert_eq!(found[0]["job"], stranger);
    let found = rejects(&client, "&reason=malformed&shard=0", 2);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["job"], format!("\u{1} Bearer {SECRET}"));
    assert!(rejects(&client, "&reason=malformed&shard=1", 2).is_empty());

    let told = |reason: &str| -> Vec<String> {
        let log = service.log();
        let is_of = |line: &&str| line.contains("jobs were rejected") && line.contains(reason);
        log.lines().filter(is_of).map(str::to_owned).collect()
    };
    // The first reject is logged at once, with those of its batch; the rest ten seconds later, in one line.
    wait_until("all rejects are logged", || {
        let counts = told("bad_score").into_iter().filter_map(|line| {
            let rest = line.split("jobs=").nth(1)?.to_owned();
            rest.split_whitespace().next()?.parse::<u64>().ok()
        });
        counts.sum::<u64>() == 500
    });
    let lines = told("bad_score");
    assert!(lines.len() <= 12, "{} lines of one reason in less than two minutes", lines.len());
    assert!(lines[0].contains("WARN") && lines[0].contains(&member_of(2)), "{}", lines[0]);
    assert_eq!((told("wrong_shard").len(), told("malformed").len()), (1, 1));
    assert!(!service.log().contains(SECRET), "a token is not for the log");
    assert!(told("malformed")[0].contains("rkt_***"), "{:?}", told("malformed"));
    check_lists(&mut service, 502);
}

/// The tokens of a service: its flags' file, and each token by name.
fn tokens(folder: &std::path::Path, wanted: &[&[&str]]) -> (String, Vec<String>) {
    let (mut lines, mut secrets) = (String::new(), Vec::new());
    for arguments in wanted {
        let made = command().args(["token", "new"]).args(*arguments).output().expect("it can be started");
        let said = String::from_utf8(made.stderr).expect("UTF-8");
        let secret = said.split_whitespace().find(|word| word.starts_with("rkt_")).expect("it shows it");
        secrets.push(secret.to_owned());
        lines += &String::from_utf8(made.stdout).expect("UTF-8");
        lines.push('\n');
    }
    let file = folder.join("tokens.toml");
    fs::write(&file, lines).expect("it can be written");
    (file.to_str().expect("UTF-8").to_owned(), secrets)
}

#[test]
fn a_token_confined_to_boards_lists_only_their_rejections() {
    let (nats, folder) = (Nats::start(), tempfile::tempdir().expect("a temporary directory"));
    let (file, secrets) = tokens(
        folder.path(),
        &[
            &["--scope", "read", "--name", "all"],
            &["--scope", "read", "--board-prefix", "eu-", "--name", "eu"],
            &["--scope", "write", "--name", "game"],
        ],
    );
    let mut service = Node::with_nats(&nats).stream_mib(64).flags(&["--tokens", &file]).start();
    let with = |index: usize| service.client().with_token(&secrets[index]);
    let bad = |board: &str| json!({ "board": board, "member": "m", "score": "1200 points" }).to_string();
    let mut last = 0;
    for body in [
        bad("eu-a"),
        bad("us-a"),
        json!({ "scores": { "eu-a": "x", "us-a": 1 }, "member": "m" }).to_string(),
        json!({ "scores": { "eu-a": "x", "eu-b": 1 }, "member": "m" }).to_string(),
        "{\"board\":\"eu-a\",\"board\":\"us-a\"}".to_owned(),
        format!("[{},{}", bad("eu-a"), bad("us-a")),
        "us-a".to_owned(),
        json!({ "member": "", "op": "remove" }).to_string(),
    ] {
        last = nats.publish("ranktree.jobs.0", body);
    }
    wait_applied(&with(0), &[last]);
    let places = |client: &Client, filters: &str| -> Vec<u64> {
        let all = rejects(client, filters, 3);
        all.iter().map(|reject| reject["sequence"].as_u64().expect("a number")).collect()
    };
    assert_eq!(places(&with(0), ""), [8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(places(&with(1), ""), [4, 1]);
    assert!(places(&with(1), "&reason=malformed").is_empty());
    assert_eq!(places(&with(2), "").len(), 8, "who may write may read");
    assert_eq!(service.client().get("/v1/rejects").0, 401);
    // The command takes a token like the others, and says so if it has none.
    let list = |token: Option<&str>| {
        let mut list = command();
        list.args(["rejects", "--url", service.base()]);
        if let Some(token) = token {
            list.env("RANKTREE_TOKEN", token);
        }
        list.output().expect("the binary can be started")
    };
    let listed = list(Some(&secrets[1]));
    assert!(listed.status.success());
    assert_eq!(String::from_utf8_lossy(&listed.stdout).lines().count(), 2);
    let refused = list(None);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("401"), "{said}");
    assert!(service.terminate().success());
    for secret in &secrets {
        assert!(!service.log().contains(secret), "a token is not for the log");
    }
}

/// A list that ends at its limit is not taken for all that there is.
#[test]
fn a_list_of_rejects_is_whole_or_says_that_there_are_more() {
    let mut service = Node::shards(2).start();
    let client = service.client();
    let bounded = json!({ "keys": [{ "name": "score", "max": 1 }] });
    assert_eq!(client.put("/v1/boards/bounded", &bounded).0, 201);
    let late = |number: usize| json!({ "board": "bounded", "member": format!("m{number}"), "score": 2 });
    // More than a page.
    for from in [0, 600] {
        let jobs: Vec<Value> = (from..from + 600).map(late).collect();
        assert_eq!(client.post("/v1/jobs", &json!(jobs)).0, 200);
    }
    let (url, data) = (service.base().to_owned(), service.data_dir().to_str().expect("UTF-8").to_owned());
    let check = |place: [&str; 2]| {
        for (limit, lines, says_more) in
            [(None, 1_200, false), (Some("7"), 7, true), (Some("1200"), 1_200, false)]
        {
            let limit = limit.map(|limit| ["--limit", limit]);
            let run = command().arg("rejects").args(place).args(limit.iter().flatten()).output();
            let output = run.expect("the binary can be started");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{said}");
            assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), lines, "{limit:?}");
            assert_eq!(said.contains("leave out --limit to list all"), says_more, "{limit:?}: {said}");
        }
    };
    check(["--url", &url]);
    assert!(service.terminate().success());
    check(["--data-dir", &data]);
}
