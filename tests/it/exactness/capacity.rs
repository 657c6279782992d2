//! A board with a capacity shows its best entries only, whatever is done to them, compared with a model that
//! sorts and cuts: at a node that owns every shard and at one that owns none.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::client::{Client, count_of, entry_path};
use crate::support::command::command;
use crate::support::nats::wait_until;
use crate::support::place::{Place, at_each_place};
use crate::support::random::Random;

at_each_place![
    every_answer_is_of_the_best_entries,
    what_is_beyond_the_capacity_is_kept,
    who_asks_for_hidden_entries_gets_those_beyond_the_capacity_too,
];

const MEMBERS: u64 = 90;

fn ok((status, answer): (u16, Value)) -> Value {
    assert!((200..300).contains(&status), "{status}: {answer}");
    answer
}

/// What is known of a board.
#[derive(Default)]
struct Model {
    scores: BTreeMap<String, i64>,
    hidden: BTreeSet<String>,
}

impl Model {
    /// Best first; of equal scores, the smaller id.
    fn shown(&self, capacity: Option<usize>) -> Vec<(String, i64)> {
        let listed = self.scores.iter().filter(|(member, _)| !self.hidden.contains(*member));
        let mut entries: Vec<_> = listed.map(|(member, score)| (member.clone(), *score)).collect();
        entries.sort_by(|(a, one), (b, other)| other.cmp(one).then_with(|| a.cmp(b)));
        entries.truncate(capacity.unwrap_or(usize::MAX));
        entries
    }
}

fn definition(capacity: Option<usize>) -> Value {
    json!({"ties": "member", "windows": ["all", "season"], "season": "manual", "capacity": capacity})
}

/// Changes random entries, and compares what each write answers with the model.
fn change(client: &Client, random: &mut Random, model: &mut Model, capacity: Option<usize>) {
    for _ in 0..12 {
        let (member, score) = (format!("m{}", random.below(MEMBERS)), random.below(12));
        let score = i64::try_from(score).expect("it is small");
        let place = |model: &Model| {
            let shown = model.shown(capacity);
            let found = shown.iter().zip(1..).find(|((other, _), _)| *other == member);
            found.map_or(json!(null), |((_, score), position)| json!([score, position]))
        };
        let before = place(model);
        let mut job = json!({"board": "arena", "member": member});
        match random.below(8) {
            0 => {
                job["op"] = json!("remove");
                // A ban outlasts what it hides.
                model.scores.remove(&member);
            }
            1 if model.scores.contains_key(&member) => {
                job["op"] = json!("hide");
                model.hidden.insert(member.clone());
            }
            2 if model.scores.contains_key(&member) => {
                job["op"] = json!("show");
                model.hidden.remove(&member);
            }
            _ => {
                job["score"] = json!(score);
                model.scores.insert(member.clone(), score);
            }
        }
        let answer = ok(client.post("/v1/jobs", &json!([job])));
        let result = &answer["results"][0];
        let told = |entry: &Value| match entry {
            Value::Null => json!(null),
            entry => json!([entry["score"], entry["position"]]),
        };
        assert_eq!(told(&result["entry"]), place(model), "{answer}");
        assert_eq!(told(&result["previous"]), before, "{answer}");
    }
}

/// Pages through a list.
fn pages(client: &Client, path: &str, total: usize) -> Vec<(String, i64)> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = ok(client.get(&format!("/v1/boards/arena/{path}&limit=7&cursor={cursor}")));
        assert_eq!(count_of(&page["total"]), total, "{page}");
        for entry in page["entries"].as_array().expect("a list") {
            let member = entry["member"].as_str().expect("an id").to_owned();
            found.push((member, entry["score"].as_i64().expect("a score")));
        }
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => return found,
        }
    }
}

/// Compares every read with the model.
fn check(client: &Client, model: &Model, capacity: Option<usize>) {
    let shown = model.shown(capacity);
    let total = shown.len();
    let board = |rest: &str| format!("/v1/boards/arena/{rest}");
    let mut found = pages(client, "top?from=top", total);
    assert_eq!(found, shown, "{capacity:?}");
    found = pages(client, "top?from=bottom", total);
    found.reverse();
    assert_eq!(found, shown, "{capacity:?}");
    let within = |min: i64, max: i64| shown.iter().filter(move |(_, score)| (min..=max).contains(score));
    assert_eq!(pages(client, "range?min=3&max=8", total), within(3, 8).cloned().collect::<Vec<_>>());
    let count = ok(client.get(&board("count?min=3&max=8")));
    assert_eq!(count_of(&count["count"]), within(3, 8).count(), "{count}");
    for path in ["histogram?edges=0,4,8", "histogram?buckets=4"] {
        let spread = ok(client.get(&board(path)));
        let buckets = spread["buckets"].as_array().expect("a list");
        let inside: usize = buckets.iter().map(|bucket| count_of(&bucket["count"])).sum();
        assert_eq!(count_of(&spread["below"]) + inside + count_of(&spread["above"]), total, "{spread}");
        for bucket in buckets {
            let bound = |name: &str| bucket[name].as_i64().expect("a score");
            assert_eq!(count_of(&bucket["count"]), within(bound("min"), bound("max")).count(), "{spread}");
        }
    }
    for score in -1..13 {
        let rank = ok(client.get(&board(&format!("rank?score={score}"))));
        let better = shown.iter().filter(|(_, other)| *other > score).count();
        let tied = within(score, score).count();
        assert_eq!([&rank["better"], &rank["tied"], &rank["total"]].map(count_of), [better, tied, total]);
        let shards = rank["shards"].as_array().expect("a list");
        let sum = |name: &str| shards.iter().map(|shard| count_of(&shard[name])).sum::<usize>();
        assert_eq!([sum("better"), sum("tied"), sum("total")], [better, tied, total], "{rank}");
    }
    for percentile in [0.0, 10.0, 50.0, 90.0, 100.0] {
        let found = ok(client.get(&board(&format!("percentiles?p={percentile}"))));
        let worse = |score: i64| shown.iter().filter(|(_, other)| *other < score).count();
        // In thousandths, in which all of these are whole.
        let reaches = |(_, score): &&(String, i64)| {
            f64::from(u32::try_from(worse(*score)).expect("few")) * 100.0
                >= percentile * f64::from(u32::try_from(total).expect("few"))
        };
        let expected = shown.iter().rev().find(reaches).or(shown.first());
        assert_eq!(found["percentiles"][0]["score"], json!(expected.map(|(_, score)| score)), "{found}");
    }
    for (index, (member, score)) in shown.iter().enumerate().step_by(5) {
        let position = ok(client.get(&board(&format!("positions/{}?limit=3", index + 1))));
        let members: Vec<&str> =
            shown.iter().skip(index).take(3).map(|(member, _)| member.as_str()).collect();
        let of = |answer: &Value| {
            let entries = answer["entries"].as_array().expect("a list").iter();
            entries.map(|entry| entry["member"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(of(&position), members);
        let around = ok(client.get(&format!("{}/around?above=2&below=2", entry_path("arena", member))));
        let first = index.saturating_sub(2);
        let near: Vec<&str> =
            shown.iter().take(index + 3).skip(first).map(|(member, _)| member.as_str()).collect();
        assert_eq!(of(&around), near);
        let at = ok(client.get(&board(&format!("score?position={}", index + 1))));
        assert_eq!(at["score"], json!(score));
    }
    assert_eq!(client.get(&board(&format!("score?position={}", total + 1))).0, 404);
    assert_eq!(
        ok(client.get(&board(&format!("positions/{}", total + 1))))["entries"],
        json!([]),
        "nothing is behind the last one"
    );
    let members: Vec<String> = (0..MEMBERS).map(|member| format!("m{member}")).collect();
    let group = ok(client.post(&board("members:lookup"), &json!({"members": members})));
    assert_eq!(group["entries"].as_array().map(Vec::len), Some(total));
    for member in members.iter().step_by(4) {
        let path = entry_path("arena", member);
        let expected = shown.iter().position(|(other, _)| other == member);
        let (status, entry) = client.get(&path);
        let boards = ok(client.get(&format!("/v1/members/{member}?boards=arena")));
        let is_missing = group["not_found"].as_array().expect("a list").contains(&json!(member));
        assert_eq!(is_missing, expected.is_none());
        if let Some(index) = expected {
            assert_eq!([&entry["position"], &entry["total"]].map(count_of), [index + 1, total], "{entry}");
            assert_eq!(boards["entries"][0]["position"], entry["position"]);
            let worse = shown.iter().filter(|(_, other)| other < &shown[index].1).count();
            assert_eq!(count_of(&entry["worse"]), worse);
        } else {
            assert_eq!((status, &entry["code"]), (404, &json!("unknown_member")), "{entry}");
            assert_eq!(client.get(&format!("{path}/around")).0, 404);
            assert_eq!(boards["not_found"], json!(["arena"]));
        }
    }
    let told = ok(client.get("/v1/boards/arena"));
    assert_eq!(told["capacity"], json!(capacity));
    assert_eq!([&told["totals"]["all"], &told["instances"]["all"][0]["total"]].map(count_of), [total, total]);
}

fn every_answer_is_of_the_best_entries(place: Place) {
    for shards in [1, 3, 16] {
        let mut service = place.start(shards);
        let mut client = service.client();
        ok(client.put("/v1/boards/arena", &definition(Some(20))));
        let (mut random, mut model) = (Random::new(u64::from(shards)), Model::default());
        let mut jobs = Vec::new();
        for number in 0..MEMBERS {
            let (member, score) = (format!("m{number}"), random.below(12));
            jobs.push(json!({"board": "arena", "member": member, "score": score}));
            model.scores.insert(member, i64::try_from(score).expect("it is small"));
        }
        ok(client.post("/v1/jobs", &jobs.into()));
        check(&client, &model, Some(20));
        for capacity in [Some(1), Some(60), None, Some(7)] {
            let answer = ok(client.put("/v1/boards/arena?force=true", &definition(capacity)));
            assert_eq!(answer["capacity"], json!(capacity));
            change(&client, &mut random, &mut model, capacity);
            check(&client, &model, capacity);
        }
        service.kill9();
        service.restart();
        client = service.client();
        wait_until("all shards are there", || client.get("/v1/boards/arena/top").0 == 200);
        check(&client, &model, Some(7));
        service.end();
    }
}

fn what_is_beyond_the_capacity_is_kept(place: Place) {
    let service = place.start(3);
    let client = service.client();
    let day = jiff::SignedDuration::from_hours(24);
    let ago = |days: i32| {
        let time = jiff::Timestamp::now().checked_sub(day * days).expect("a time");
        jiff::Timestamp::from_second(time.as_second()).expect("a time").to_string()
    };
    let starts = ago(100);
    let definition = |capacity: Option<u64>| {
        json!({"windows": ["all", "season"], "season": {"starts": starts, "every": "60d"}, "grace": "300d",
               "capacity": capacity})
    };
    ok(client.put("/v1/boards/arena", &definition(Some(3))));
    let before = ago(70);
    for (score, member) in (1..).zip(["f", "e", "d", "c", "b", "a"]) {
        ok(client.put(&entry_path("arena", member), &json!({"score": 100 - score, "at": before})));
        ok(client.put(&entry_path("arena", member), &json!({"score": score})));
    }
    let top = |window: &str| {
        let answer = ok(client.get(&format!("/v1/boards/arena/top?limit=100&window={window}")));
        let entries = answer["entries"].as_array().expect("a list").iter();
        let members: Vec<&str> = entries.map(|entry| entry["member"].as_str().expect("an id")).collect();
        assert_eq!(count_of(&answer["total"]), members.len());
        members.join(" ")
    };
    let tops = || ["all", "s2", "s1"].map(top);
    assert_eq!(tops(), ["a b c", "a b c", "f e d"]);
    let (status, problem) = client.get(&entry_path("arena", "d"));
    assert_eq!((status, &problem["code"]), (404, &json!("unknown_member")));
    assert!(problem["detail"].as_str().expect("words").contains("beyond the best 3"), "{problem}");
    let exported = command()
        .args(["export", "--board", "arena", "--rows-only", "--url", service.base()])
        .output()
        .expect("it runs");
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    assert_eq!(String::from_utf8_lossy(&exported.stdout).lines().count(), 3, "what is shown");

    // Whoever is behind it follows when one before it leaves.
    let (status, _) = client.send(Method::DELETE, &entry_path("arena", "b"), None).expect("it is there");
    assert_eq!(status, 200);
    assert_eq!(tops(), ["a c d", "a c d", "f e d"]);
    ok(client.put(&entry_path("arena", "e"), &json!({"score": 50})));
    assert_eq!(tops(), ["e a c", "e a c", "f e d"]);

    // A trim removes what is not shown, too.
    let trim = |window: &str, beyond: u64| {
        let path = format!("/v1/boards/arena:trim?window={window}");
        count_of(&ok(client.post(&path, &json!({"positions_beyond": beyond})))["removed"])
    };
    assert_eq!((trim("s2", 4), trim("s1", 2)), (1, 3));
    assert_eq!(tops(), ["e a c", "e a c", "f e"]);
    ok(client.put("/v1/boards/arena", &definition(None)));
    assert_eq!(tops(), ["e a c d f", "e a c d", "f e"]);
    ok(client.put("/v1/boards/arena?force=true", &definition(Some(1))));
    assert_eq!(tops(), ["e", "e", "f"]);
    let (status, problem) = client.put("/v1/boards/arena", &definition(Some(0)));
    assert_eq!((status, &problem["code"]), (422, &json!("invalid_definition")), "{problem}");
    let board = ok(client.get("/v1/boards/arena"));
    let totals: Vec<usize> = board["instances"]["season"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|instance| count_of(&instance["total"]))
        .collect();
    assert_eq!(totals, [1, 1]);
    let cleared = ok(client.post("/v1/boards/arena:clear", &json!({})));
    assert_eq!(count_of(&cleared["removed"]), 5, "those beyond the capacity included");
    service.end();
}

/// All that is kept of a member is told to whoever may see what is hidden.
fn who_asks_for_hidden_entries_gets_those_beyond_the_capacity_too(place: Place) {
    let service = place.start(3);
    let client = service.client();
    let definition = json!({"ties": "member", "windows": ["all", "day"], "capacity": 2});
    ok(client.put("/v1/boards/arena", &definition));
    for (score, member) in (1..).zip(["e", "d", "c", "b", "a"]) {
        ok(client.put(&entry_path("arena", member), &json!({"score": score, "meta": {"of": member}})));
    }
    ok(client.post("/v1/jobs", &json!([{"member": "e", "board": "arena", "op": "hide"}])));

    // The rank among all that are kept, of which the hidden one is none but for itself.
    for (member, rank, total, hidden) in [("c", 3, 4, false), ("d", 4, 4, false), ("e", 5, 5, true)] {
        let all = ok(client.get(&format!("/v1/members/{member}?windows=*&hidden=true&profile=true")));
        let entries = all["entries"].as_array().expect("a list");
        assert_eq!(entries.len(), 2, "{all}");
        let one = ok(client.get(&format!("{}?hidden=true", entry_path("arena", member))));
        let by_window = ok(client.get(&format!("{}?hidden=true&windows=*", entry_path("arena", member))));
        let windows = ["all", "day"].map(|window| &by_window["windows"][window]);
        for entry in entries.iter().chain([&one]).chain(windows) {
            assert_eq!(entry["beyond_capacity"], true, "{entry}");
            assert_eq!(entry["hidden"], if hidden { json!(true) } else { Value::Null }, "{entry}");
            assert_eq!(entry["meta"], json!({"of": member}), "{entry}");
            let told = ["rank", "position", "total"].map(|name| count_of(&entry[name]));
            assert_eq!(told, [rank, rank, total], "{entry}");
            let sum: usize = ["better", "tied", "worse"].map(|name| count_of(&entry[name])).iter().sum();
            assert_eq!(sum, total, "{entry}");
        }
        // Players are told nothing of it.
        assert_eq!(client.get(&entry_path("arena", member)).0, 404);
        let all = ok(client.get(&format!("/v1/members/{member}?windows=*")));
        assert_eq!(all["entries"], json!([]), "{all}");
    }
    let shown = ok(client.get(&format!("{}?hidden=true", entry_path("arena", "b"))));
    let told = (&shown["rank"], &shown["total"], shown.get("beyond_capacity"));
    assert_eq!(told, (&json!(2), &json!(2), None), "{shown}");
    service.end();
}
