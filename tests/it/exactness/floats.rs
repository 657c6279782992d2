//! Boards whose scores are doubles rank as doubles compare, whatever is written: fractions, subnormals,
//! infinities and both zeros. Every read is compared with a model that sorts numbers of `f64`, at a node that
//! owns every shard and at one that owns none; and what is on disk comes back.

#![allow(clippy::float_cmp, reason = "the same double is what must come back")]

use std::cmp::Ordering;
use std::collections::BTreeMap;

use ranktree::types::Double;
use serde_json::{Value, json};

use crate::support::client::{Client, count_of, entry_path};
use crate::support::node::Node;
use crate::support::place::{Place, at_each_place};
use crate::support::random::Random;
use crate::support::snapshots::{restore, snapshot, verify};

at_each_place![
    every_read_of_doubles_is_as_sorted_by_hand,
    digits_come_back_as_the_shortest_ones,
    what_is_no_number_of_the_board_is_refused_in_words,
    one_key_of_several_may_be_a_double,
];

const BOARD: &str = "/v1/boards/laps";
/// Few values, so that there are ties, and every kind of double.
const VALUES: [f64; 16] = [
    0.0,
    -0.0,
    0.1,
    0.2,
    0.300_000_000_000_000_04,
    -1.5,
    12.0,
    5e-324,
    -5e-324,
    2.225_073_858_507_201_4e-308,
    1e21,
    9_007_199_254_740_992.0,
    1e308,
    -1e308,
    f64::INFINITY,
    f64::NEG_INFINITY,
];

fn ok((status, answer): (u16, Value)) -> Value {
    assert!((200..300).contains(&status), "{status}: {answer}");
    answer
}

/// A double as a job has it.
fn sent(value: f64) -> Value {
    if value.is_infinite() { json!(value.to_string()) } else { json!(value) }
}

/// A double of an answer.
fn read(value: &Value) -> f64 {
    match value {
        Value::String(text) => text.parse().expect("an infinity"),
        number => number.as_f64().expect("a number"),
    }
}

/// A double as [`read`] sees it in the digits of an answer: serde's own parser may be a last digit off.
fn seen(value: f64) -> f64 {
    let digits = Double::new(value).expect("a number").to_string();
    read(&serde_json::from_str(&digits).unwrap_or(Value::String(digits)))
}

fn text(value: f64) -> String {
    value.to_string().replace('+', "%2B")
}

type Model = BTreeMap<String, f64>;

/// Best first; of equal scores, the smaller id.
fn sorted(model: &Model, is_ascending: bool) -> Vec<(String, f64)> {
    let mut entries: Vec<_> = model.iter().map(|(member, score)| (member.clone(), *score)).collect();
    entries.sort_by(|(a, one), (b, other)| {
        let order = one.partial_cmp(other).expect("they are numbers");
        if is_ascending { order } else { order.reverse() }.then_with(|| a.cmp(b))
    });
    entries
}

/// Pages through a list.
fn pages(client: &Client, path: &str) -> Vec<(String, f64)> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = ok(client.get(&format!("{BOARD}/{path}&limit=7&cursor={cursor}")));
        for entry in page["entries"].as_array().expect("a list") {
            found.push((entry["member"].as_str().expect("an id").to_owned(), read(&entry["score"])));
        }
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => return found,
        }
    }
}

fn check(client: &Client, model: &Model, is_ascending: bool) {
    let shown = sorted(model, is_ascending);
    let told = |entries: &mut dyn Iterator<Item = &(String, f64)>| -> Vec<(String, f64)> {
        entries.map(|(member, score)| (member.clone(), seen(*score))).collect()
    };
    assert_eq!(pages(client, "top?from=top"), told(&mut shown.iter()));
    let mut from_bottom = pages(client, "top?from=bottom");
    from_bottom.reverse();
    assert_eq!(from_bottom, told(&mut shown.iter()));
    let within = |min: f64, max: f64| shown.iter().filter(move |(_, score)| *score >= min && *score <= max);
    for (min, max) in
        [(-1.5, 0.2), (0.0, 0.0), (5e-324, 1e21), (f64::NEG_INFINITY, -5e-324), (0.15, f64::INFINITY)]
    {
        let bounds = format!("min={}&max={}", text(min), text(max));
        let expect = told(&mut within(min, max));
        assert_eq!(pages(client, &format!("range?{bounds}")), expect, "{bounds}");
        let count = ok(client.get(&format!("{BOARD}/count?{bounds}")));
        assert_eq!(count_of(&count["count"]), expect.len(), "{bounds}");
    }
    for path in ["histogram?edges=-inf,-1.5,0,0.25,inf", "histogram?buckets=4", "histogram?buckets=1"] {
        let spread = ok(client.get(&format!("{BOARD}/{path}")));
        let buckets = spread["buckets"].as_array().expect("a list");
        let inside: usize = buckets.iter().map(|bucket| count_of(&bucket["count"])).sum();
        assert_eq!(count_of(&spread["below"]) + inside + count_of(&spread["above"]), shown.len(), "{spread}");
        let counts: Vec<usize> = buckets.iter().map(|bucket| count_of(&bucket["count"])).collect();
        if path.contains("edges") {
            // Each edge belongs to the bucket that it begins, and the last one to the last.
            let below = |edge: f64| shown.iter().filter(|(_, score)| *score < edge).count();
            let expect = [below(-1.5), below(0.0), below(0.25), shown.len()];
            let steps = expect.iter().scan(0, |last, next| Some(next - std::mem::replace(last, *next)));
            assert_eq!(counts, steps.collect::<Vec<_>>(), "{spread}");
        } else {
            assert_eq!(inside, shown.len(), "{spread}");
        }
    }
    let better = |score: f64| {
        let is_better = |other: f64| if is_ascending { other < score } else { other > score };
        shown.iter().filter(|(_, other)| is_better(*other)).count()
    };
    let scores: Vec<f64> = VALUES.into_iter().chain([0.15, -7.25, 1e300]).collect();
    let body = json!({"scores": scores.iter().map(|score| sent(*score)).collect::<Vec<_>>()});
    let ranks = ok(client.post(&format!("{BOARD}/ranks:of"), &body));
    for (score, of_many) in scores.iter().zip(ranks["ranks"].as_array().expect("a list")) {
        let rank = ok(client.get(&format!("{BOARD}/rank?score={}", text(*score))));
        for rank in [&rank, of_many] {
            let tied = within(*score, *score).count();
            assert_eq!([&rank["better"], &rank["tied"]].map(count_of), [better(*score), tied], "{rank}");
            assert_eq!(read(&rank["score"]).partial_cmp(&seen(*score)), Some(Ordering::Equal), "{rank}");
        }
    }
    for (index, (member, score)) in shown.iter().enumerate().step_by(5) {
        let entry = ok(client.get(&entry_path("laps", member)));
        assert_eq!(
            (read(&entry["score"]), count_of(&entry["position"])),
            (seen(*score), index + 1),
            "{entry}"
        );
        assert_eq!(count_of(&entry["rank"]), better(*score) + 1, "{entry}");
        let around = ok(client.get(&format!("{}/around?above=2&below=2", entry_path("laps", member))));
        let names: Vec<_> =
            around["entries"].as_array().expect("a list").iter().map(|e| &e["member"]).collect();
        let expect: Vec<_> = shown[index.saturating_sub(2)..(index + 3).min(shown.len())].iter().collect();
        assert_eq!(names, expect.iter().map(|(member, _)| member).collect::<Vec<_>>());
        let at = ok(client.get(&format!("{BOARD}/score?position={}", index + 1)));
        assert_eq!(read(&at["score"]), seen(*score), "{at}");
    }
}

/// Random jobs, which the model decides, too.
fn change(client: &Client, random: &mut Random, model: &mut Model, is_ascending: bool) {
    for _ in 0..60 {
        let (member, value) = (format!("m{}", random.below(40)), *random.pick(&VALUES));
        let op = *random.pick(&["set", "incr", "best", "remove"]);
        let mut job = json!({"board": "laps", "member": member, "op": op});
        let held = model.get(&member).copied();
        let expect = match (op, held) {
            ("remove", _) => None,
            ("incr", held) => Some(held.unwrap_or(0.0) + value),
            ("best", Some(held)) if is_ascending => Some(held.min(value)),
            ("best", Some(held)) => Some(held.max(value)),
            _ => Some(value),
        };
        if expect.is_some() {
            job["score"] = sent(value);
        }
        let answer = ok(client.post("/v1/jobs", &json!([job])));
        let result = &answer["results"][0];
        match expect {
            Some(sum) if sum.is_nan() => {
                assert_eq!(result["rejected"], "bad_score", "{job} on {held:?}: {answer}");
            }
            Some(score) => {
                assert_eq!(read(&result["entry"]["score"]), seen(score), "{job} on {held:?}: {answer}");
                model.insert(member, score);
            }
            None => {
                assert_eq!(result["entry"], Value::Null, "{answer}");
                model.remove(&member);
            }
        }
    }
}

fn every_read_of_doubles_is_as_sorted_by_hand(place: Place) {
    let mut random = Random::seeded();
    for order in ["asc", "desc"] {
        let service = place.start(3);
        let client = service.client();
        let definition = json!({"keys": [{"name": "s", "type": "float", "order": order}], "ties": "member"});
        ok(client.put(BOARD, &definition));
        let mut model = Model::new();
        for _ in 0..3 {
            change(&client, &mut random, &mut model, order == "asc");
            check(&client, &model, order == "asc");
        }
        service.end();
    }
}

fn digits_come_back_as_the_shortest_ones(place: Place) {
    let service = place.start(2);
    let client = service.client();
    ok(client.put(BOARD, &json!({"keys": [{"name": "s", "type": "float"}], "ties": "member"})));
    for (given, expect) in [
        ("0.1", "0.1"),
        ("1e21", "1e21"),
        ("5e-324", "5e-324"),
        ("1.7976931348623157e308", "1.7976931348623157e308"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("12", "12"),
        ("12.50", "12.5"),
        ("9007199254740993", "9007199254740992"),
        ("\"0.1\"", "0.1"),
        ("\"42.0\"", "42"),
        ("\"inf\"", "\"inf\""),
        ("\"-inf\"", "\"-inf\""),
    ] {
        let url = format!("{}{}?wait=applied", service.base(), entry_path("laps", "p"));
        let body = format!("{{\"score\":{given}}}");
        let mut answer = ureq::put(&url).send(&body).expect(given);
        let answer = answer.body_mut().read_to_string().expect("a text");
        let is_there = format!("\"score\":{expect},");
        assert!(answer.contains(&is_there), "{given}: {answer}");
        let top = format!("{}{BOARD}/top", service.base());
        let top = ureq::get(&top).call().expect("a page").body_mut().read_to_string().expect("a text");
        assert!(top.contains(&is_there), "{given}: {top}");
    }
}

fn what_is_no_number_of_the_board_is_refused_in_words(place: Place) {
    let service = place.start(2);
    let client = service.client();
    ok(client.put(BOARD, &json!({"keys": [{"name": "s", "type": "float", "min": -0.5, "max": "inf"}]})));
    ok(client.put("/v1/boards/points", &json!({})));
    // The same once more is no change, and another type is a contradiction.
    assert_eq!(client.put(BOARD, &json!({"keys": [{"name": "s", "type": "float", "min": -0.5}]})).0, 200);
    let found = ok(client.get(BOARD));
    let key = &found["keys"][0];
    assert_eq!(*key, json!({"name": "s", "order": "desc", "type": "float", "min": -0.5}), "{found}");
    for (board, type_asked) in [(BOARD, "integer"), ("/v1/boards/points", "float")] {
        let name = if board == BOARD { "s" } else { "score" };
        let (status, answer) = client.put(board, &json!({"keys": [{"name": name, "type": type_asked}]}));
        assert_eq!(status, 409, "{answer}");
        assert!(answer["detail"].as_str().expect("words").contains("the type of key"), "{answer}");
    }
    let refused = |board: &str, score: Value| {
        let (status, answer) = client.put(&entry_path(board, "p"), &json!({ "score": score }));
        assert!(status == 422 || status == 409, "{status}: {answer}");
        (
            answer["code"].as_str().expect("a code").to_owned(),
            answer["detail"].as_str().expect("words").to_owned(),
        )
    };
    for (board, score, code, words) in [
        ("points", json!(1.5), "bad_score", "1.5 has a fraction; only exact integers are accepted"),
        ("points", json!("inf"), "bad_score", "\"inf\" is not a decimal integer such as 1200"),
        ("points", json!(1e21), "bad_score", "1e21 is outside the signed 64-bit range"),
        ("laps", json!("nan"), "bad_score", "\"nan\" is not a decimal integer"),
        ("laps", json!("fast"), "bad_score", "\"fast\" is not a decimal integer"),
        ("laps", json!([1.5, 2]), "bad_score", "a score of this board has 1 key (s)"),
        ("laps", json!(-0.75), "out_of_range", "s would be -0.75, but must be -0.5 or more on this board"),
        ("laps", json!("-inf"), "out_of_range", "s would be -inf, but must be -0.5 or more on this board"),
    ] {
        let (found, detail) = refused(board, score.clone());
        assert_eq!(found, code, "{board} {score}: {detail}");
        assert!(detail.contains(words), "{board} {score}: {detail}");
    }
    // A whole request is refused for a number that is none of its board.
    let jobs = json!([{"board": "laps", "member": "p", "score": 1.5}, {"board": "points", "member": "p", "score": 1.5}]);
    let (status, answer) = client.post("/v1/jobs", &jobs);
    assert_eq!((status, &answer["errors"][0]["index"]), (422, &json!(1)), "{answer}");
    assert_eq!(client.get(&entry_path("laps", "p")).0, 404);
    for bad in ["count?min=1.5", "range?max=0.1", "histogram?edges=1,2.5", "rank?score=0.1"] {
        let (status, answer) = client.get(&format!("/v1/boards/points/{bad}"));
        assert_eq!((status, answer["code"].as_str()), (422, Some("bad_score")), "{bad}: {answer}");
        assert!(answer["detail"].as_str().expect("words").contains("has a fraction"), "{bad}: {answer}");
        assert_eq!(client.get(&format!("{BOARD}/{bad}")).0, 200, "{bad}");
    }
    // Too large is infinite, and infinity less infinity is nothing.
    ok(client.put(&entry_path("laps", "p"), &json!({"score": 1e308})));
    let answer = ok(client.put(&entry_path("laps", "p"), &json!({"score": 1e308, "op": "incr"})));
    assert_eq!(answer["entry"]["score"], "inf", "{answer}");
    let (status, answer) = client.put(&entry_path("laps", "p"), &json!({"score": "-inf", "op": "incr"}));
    assert_eq!((status, answer["code"].as_str()), (409, Some("bad_score")), "{answer}");
    assert!(answer["detail"].as_str().expect("words").contains("gives no number"), "{answer}");
}

fn one_key_of_several_may_be_a_double(place: Place) {
    let service = place.start(3);
    let client = service.client();
    let keys = json!([{"name": "wins"}, {"name": "lap", "type": "float", "order": "asc", "max": 99.5, "above_max": "clamp"}]);
    ok(client.put(BOARD, &json!({"keys": keys, "windows": ["all", "day"], "capacity": 3, "movement": true})));
    let scores =
        [("a", json!([2, 83.25])), ("b", json!([2, 83.5])), ("c", json!([3, 99.5])), ("d", json!([2, 83]))];
    for (member, score) in &scores {
        ok(client.put(&entry_path("laps", member), &json!({ "score": score })));
    }
    let top = ok(client.get(&format!("{BOARD}/top?movement=day")));
    let found: Vec<_> =
        top["entries"].as_array().expect("a list").iter().map(|e| (&e["member"], &e["score"])).collect();
    assert_eq!(json!(found), json!([["c", [3, 99.5]], ["d", [2, 83]], ["a", [2, 83.25]]]), "{top}");
    let day = ok(client.get(&format!("{BOARD}/top?window=day")));
    assert_eq!(day["entries"][0]["score"], json!([3, 99.5]));
    let answer = ok(client.put(&entry_path("laps", "d"), &json!({"score": [0, 50.25], "op": "incr"})));
    assert_eq!(answer["entry"]["score"], Value::Null, "it is beyond the capacity: {answer}");
    ok(client.put(BOARD, &json!({"capacity": null})));
    assert_eq!(ok(client.get(&entry_path("laps", "d")))["score"], json!([2, 99.5]), "it is clamped");
    let lookup = ok(client.post(&format!("{BOARD}/members:lookup"), &json!({"members": ["b", "d", "x"]})));
    assert_eq!(lookup["entries"][1]["score"], json!([2, 99.5]), "{lookup}");
    let (status, answer) = client.put(&entry_path("laps", "d"), &json!({"score": [2.5, 1]}));
    assert_eq!((status, answer["code"].as_str()), (422, Some("bad_score")), "{answer}");
    let trimmed = ok(client.post(&format!("{BOARD}:trim"), &json!({"worse_than": [2, 83.25]})));
    assert_eq!(count_of(&trimmed["removed"]), 2, "{trimmed}");
}

#[test]
fn a_board_of_doubles_survives_kills_a_snapshot_and_a_rebuild() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut node = Node::at(folder.path().join("data")).shards(2).start();
    let mut random = Random::seeded();
    let mut model = Model::new();
    ok(node.client().put(BOARD, &json!({"keys": [{"name": "s", "type": "float"}], "ties": "member"})));
    for round in 0..3 {
        change(&node.client(), &mut random, &mut model, false);
        if round == 1 {
            assert!(node.terminate().success(), "{}", node.log());
        } else {
            node.kill9();
        }
        node.restart();
        check(&node.client(), &model, false);
    }
    let copy = folder.path().join("copy");
    snapshot(&node, &copy);
    let restored = folder.path().join("restored");
    restore(&copy, &restored, &[]);
    verify(&restored);
    let node = Node::at(restored).shards(2).start();
    check(&node.client(), &model, false);
}
