//! Reads of windows after real jobs, compared with a model that sorts what each instance holds: at a node
//! that owns every shard and at one that owns none.
//!
//! Seasons begin so and so long before the test, so that it does not depend on the day.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::client::{Client, count_of, entry_path};
use crate::support::nats::wait_until;
use crate::support::place::{Place, at_each_place};
use crate::support::random::Random;

at_each_place![
    each_instance_has_the_ranks_of_its_own_jobs,
    a_board_without_all_time_is_read_and_written_by_its_current_instance,
    a_new_instance_is_there_and_empty_before_any_job_has_come,
    an_answer_has_the_metadata_of_the_entry_that_it_shows,
    an_entry_is_read_in_several_windows_at_once_and_a_write_says_which_it_entered,
    each_job_of_a_batch_says_which_instances_it_entered,
];

const MEMBERS: u64 = 60;

fn days(count: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * count)
}

fn ago(duration: SignedDuration) -> Timestamp {
    // Times are kept to the microsecond.
    let now = Timestamp::from_second(Timestamp::now().as_second()).expect("a time");
    now.checked_sub(duration).expect("a time")
}

fn ok((status, answer): (u16, Value)) -> Value {
    assert!((200..300).contains(&status), "{status}: {answer}");
    answer
}

/// The score of each member of an instance.
type Model = BTreeMap<String, i64>;

/// Best first; of equal scores, the smaller id.
fn sorted(model: &Model) -> Vec<(String, i64)> {
    let mut entries: Vec<_> = model.iter().map(|(member, score)| (member.clone(), *score)).collect();
    entries.sort_by(|(a, one), (b, other)| other.cmp(one).then_with(|| a.cmp(b)));
    entries
}

/// Compares every read of an instance with the model.
fn check(client: &Client, board: &str, window: &str, instance: &str, model: &Model) {
    let expected = sorted(model);
    let path = |rest: &str| format!("/v1/boards/{board}/{rest}");
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = ok(client.get(&path(&format!("top?limit=17&window={window}&cursor={cursor}"))));
        assert_eq!((&page["window"], count_of(&page["total"])), (&json!(instance), expected.len()), "{page}");
        let entry = |entry: &Value| {
            (entry["member"].as_str().expect("an id").to_owned(), entry["score"].as_i64().expect("a score"))
        };
        found.extend(page["entries"].as_array().expect("a list").iter().map(entry));
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    assert_eq!(found, expected, "{board} {window}");
    for (index, (member, score)) in expected.iter().enumerate().step_by(7) {
        let entry = ok(client.get(&format!("{}?window={window}", entry_path(board, member))));
        let better = expected.iter().filter(|(_, other)| other > score).count();
        assert_eq!(entry["window"], json!(instance));
        assert_eq!(
            (count_of(&entry["position"]), count_of(&entry["better"])),
            (index + 1, better),
            "{entry}"
        );
        let rank = ok(client.get(&path(&format!("rank?score={score}&window={window}"))));
        assert_eq!((count_of(&rank["rank"]), count_of(&rank["total"])), (better + 1, expected.len()));
        let at = ok(client.get(&path(&format!("score?position={}&window={window}", index + 1))));
        assert_eq!(at["score"], json!(score), "{at}");
        let page = ok(client.get(&path(&format!("positions/{}?limit=1&window={window}", index + 1))));
        assert_eq!(page["entries"][0]["member"], json!(member));
    }
    let count = ok(client.get(&path(&format!("count?min=50&window={window}"))));
    assert_eq!(count_of(&count["count"]), expected.iter().filter(|(_, score)| *score >= 50).count());
    let some: Vec<&str> = expected.iter().map(|(member, _)| member.as_str()).take(5).collect();
    let group = ok(client.post(&path(&format!("members:lookup?window={window}")), &json!({"members": some})));
    assert_eq!(
        (group["entries"].as_array().map(Vec::len), &group["window"]),
        (Some(some.len()), &json!(instance))
    );
}

/// Adds to the scores of random members, in the instance that `at` falls in and over all time.
fn send(client: &Client, random: &mut Random, at: Option<&str>, models: [&mut Model; 2]) {
    let mut jobs = Vec::new();
    let [all, instance] = models;
    for _ in 0..300 {
        let (member, score) = (format!("m{}", random.below(MEMBERS)), random.below(40));
        let score = i64::try_from(score).expect("it is small");
        for model in [&mut *all, &mut *instance] {
            *model.entry(member.clone()).or_default() += score;
        }
        let mut job = json!({"board": "arena", "member": member, "score": score});
        if let Some(at) = at {
            job["at"] = json!(at);
        }
        jobs.push(job);
    }
    let answer = ok(client.post("/v1/jobs", &jobs.into()));
    let rejected =
        answer["results"].as_array().expect("a list").iter().find(|result| result["rejected"].is_string());
    assert_eq!(rejected, None);
}

fn each_instance_has_the_ranks_of_its_own_jobs(place: Place) {
    for shards in [1, 3, 16] {
        let service = place.start(shards);
        let client = service.client();
        let starts = ago(days(100)).to_string();
        let definition = |grace: &str| {
            json!({"policy": "incr", "ties": "member", "windows": ["all", "season"],
                   "season": {"starts": starts, "every": "60d"}, "grace": grace})
        };
        // History comes while the season before is open.
        ok(client.put("/v1/boards/arena", &definition("300d")));
        let mut random = Random::new(u64::from(shards));
        let (mut all, mut first, mut second) = (Model::new(), Model::new(), Model::new());
        let before = ago(days(70)).to_string();
        send(&client, &mut random, Some(&before), [&mut all, &mut first]);
        send(&client, &mut random, None, [&mut all, &mut second]);
        send(&client, &mut random, Some(&before), [&mut all, &mut first]);
        let check_all = |first: &Model, all: &Model| {
            let top = ok(client.get("/v1/boards/arena/top"));
            assert_eq!((&top["window"], count_of(&top["total"])), (&json!("all"), all.len()));
            check(&client, "arena", "all", "all", all);
            check(&client, "arena", "season", "s2", &second);
            check(&client, "arena", "s2", "s2", &second);
            check(&client, "arena", "s1", "s1", first);
        };
        check_all(&first, &all);
        let board = ok(client.get("/v1/boards/arena"));
        let told = |instance: &Value| {
            (instance["name"].clone(), instance["open"].clone(), count_of(&instance["total"]))
        };
        let seasons = |board: &Value| {
            board["instances"]["season"].as_array().expect("a list").iter().map(told).collect::<Vec<_>>()
        };
        let expected = [(json!("s2"), json!(true), second.len()), (json!("s1"), json!(true), first.len())];
        assert_eq!(seasons(&board), expected);
        assert_eq!(board["instances"]["season"][1]["begin"], json!(starts));

        // A trim acts on one instance.
        let trim = json!({"positions_beyond": 10});
        let trimmed = ok(client.post("/v1/boards/arena:trim?window=s1", &trim));
        assert_eq!((&trimmed["window"], count_of(&trimmed["removed"])), (&json!("s1"), first.len() - 10));
        first = sorted(&first).into_iter().take(10).collect();
        check_all(&first, &all);

        // With a short grace it is closed, and final: late jobs count over all time only.
        ok(client.put("/v1/boards/arena", &definition("1h")));
        let mut nothing = Model::new();
        send(&client, &mut random, Some(&before), [&mut all, &mut nothing]);
        check_all(&first, &all);
        let (status, problem) = client.post("/v1/boards/arena:trim?window=s1", &trim);
        assert_eq!((status, &problem["code"]), (409, &json!("closed_window")), "{problem}");
        let open = seasons(&ok(client.get("/v1/boards/arena?window=season")));
        assert_eq!(
            open.iter().map(|(_, open, _)| open.clone()).collect::<Vec<_>>(),
            [json!(true), json!(false)]
        );

        let (status, problem) = client.get("/v1/boards/arena/top?window=s3");
        assert_eq!((status, &problem["code"]), (404, &json!("unknown_window")), "{problem}");
        // All instances go with the board's entries.
        ok(client.post("/v1/boards/arena:clear", &json!({})));
        for (window, instance) in [("all", "all"), ("s2", "s2"), ("s1", "s1")] {
            check(&client, "arena", window, instance, &Model::new());
        }
        service.end();
    }
}

fn a_board_without_all_time_is_read_and_written_by_its_current_instance(place: Place) {
    let service = place.start(3);
    let client = service.client();
    let starts = ago(days(100)).to_string();
    ok(client.put(
        "/v1/boards/league",
        &json!({"windows": ["season"], "season": {"starts": starts, "every": "60d"}, "grace": "300d"}),
    ));
    ok(client.put("/v1/boards/arena", &json!({})));
    let before = ago(days(70)).to_string();
    for member in ["a", "b", "c", "d", "e"] {
        ok(client.put(&entry_path("league", member), &json!({"score": 5, "at": before})));
        ok(client.put(&entry_path("league", member), &json!({"score": 7})));
        ok(client.put(&entry_path("arena", member), &json!({"score": 9})));
    }
    let answer = ok(client.put(&entry_path("league", "c"), &json!({"score": 8, "meta": {"car": "mx5"}})));
    let (entry, previous) = (&answer["entry"], &answer["previous"]);
    assert_eq!((&entry["board"], &entry["window"]), (&json!("league"), &json!("s2")), "{answer}");
    assert_eq!((&entry["score"], &entry["position"], &entry["total"]), (&json!(8), &json!(1), &json!(5)));
    assert_eq!((&entry["meta"], &previous["score"]), (&json!({"car": "mx5"}), &json!(7)), "{answer}");
    let read = ok(client.get(&entry_path("league", "c")));
    assert_eq!(
        (&read["window"], &read["score"], &read["meta"]),
        (&json!("s2"), &json!(8), &json!({"car": "mx5"}))
    );
    let jobs = json!([{"member": "c", "scores": {"league": 6, "arena": 3}}]);
    let answer = ok(client.post("/v1/jobs", &jobs));
    let boards = &answer["results"][0]["boards"];
    assert_eq!(
        (&boards["league"]["entry"]["window"], &boards["arena"]["entry"]["window"]),
        (&json!("s2"), &json!("all")),
        "{answer}"
    );

    let entries = |query: &str| {
        let answer = ok(client.get(&format!("/v1/members/c?{query}")));
        let told = |entry: &Value| {
            format!("{} {} {}", entry["board"], entry["window"], entry["score"]).replace('"', "")
        };
        let mut told: Vec<String> = answer["entries"].as_array().expect("a list").iter().map(told).collect();
        told.sort_unstable();
        (told.join(", "), answer["not_found"].clone())
    };
    assert_eq!(entries(""), ("arena all 3, league s2 6".to_owned(), json!([])));
    assert_eq!(entries("window=season"), ("league s2 6".to_owned(), json!([])));
    assert_eq!(entries("boards=league,arena&window=s1"), ("league s1 5".to_owned(), json!(["arena"])));
    let board = ok(client.get("/v1/boards/league"));
    assert_eq!(board["totals"], json!({"season": 5}));
    let (status, problem) = client.get("/v1/boards/league/top?window=all");
    assert_eq!((status, &problem["code"]), (404, &json!("unknown_window")), "{problem}");
    let (_, list) = client.get("/v1/boards");
    let names: Vec<&Value> =
        list["boards"].as_array().expect("a list").iter().map(|board| &board["board"]).collect();
    assert_eq!(names, [&json!("arena"), &json!("league")], "instances are no boards");
    ok(client.send(ureq::http::Method::DELETE, "/v1/boards/league", None).expect("it is there"));
    assert_eq!(entries("").0, "arena all 3");
    service.end();
}

fn a_new_instance_is_there_and_empty_before_any_job_has_come(place: Place) {
    let service = place.start(3);
    let client = service.client();
    // The first season ends in a moment.
    let starts = ago(days(60)).checked_add(SignedDuration::from_secs(4)).expect("a time").to_string();
    ok(client.put(
        "/v1/boards/arena",
        &json!({"windows": ["all", "season"], "season": {"starts": starts, "every": "60d"}, "grace": "1d"}),
    ));
    let at = ago(SignedDuration::from_hours(1)).to_string();
    for member in ["a", "b", "c"] {
        ok(client.put(&entry_path("arena", member), &json!({"score": 5, "at": at})));
    }
    wait_until("the next season has begun", || {
        client.get("/v1/boards/arena/top?window=season").1["window"] == json!("s2")
    });
    let top = ok(client.get("/v1/boards/arena/top?window=season"));
    assert_eq!((&top["entries"], &top["total"]), (&json!([]), &json!(0)));
    let (status, problem) = client.get(&format!("{}?window=season", entry_path("arena", "a")));
    assert_eq!((status, &problem["code"]), (404, &json!("unknown_member")), "{problem}");
    assert_eq!(ok(client.get("/v1/boards/arena/rank?score=1&window=season"))["rank"], json!(1));
    assert_eq!(ok(client.get("/v1/boards/arena/count?window=s2"))["count"], json!(0));
    assert_eq!(ok(client.get("/v1/boards/arena/top?window=s1"))["total"], json!(3));
    let seasons = ok(client.get("/v1/boards/arena"))["instances"]["season"].clone();
    assert_eq!((&seasons[0]["name"], &seasons[0]["total"]), (&json!("s2"), &json!(0)), "{seasons}");
    assert_eq!((&seasons[1]["name"], &seasons[1]["total"]), (&json!("s1"), &json!(3)), "{seasons}");
    // A late job still enters the one before, and one of now the new one.
    ok(client.put(&entry_path("arena", "d"), &json!({"score": 5, "at": at})));
    ok(client.put(&entry_path("arena", "a"), &json!({"score": 6})));
    assert_eq!(ok(client.get("/v1/boards/arena/top?window=s1"))["total"], json!(4));
    let top = ok(client.get("/v1/boards/arena/top?window=season"));
    assert_eq!((&top["entries"][0]["score"], &top["total"]), (&json!(6), &json!(1)), "{top}");
    service.end();
}

/// A job may be the best of the season and not of all time.
fn an_answer_has_the_metadata_of_the_entry_that_it_shows(place: Place) {
    let service = place.start(3);
    let client = service.client();
    let seasons = json!({"starts": ago(days(100)).to_string(), "every": "60d"});
    let windows = json!({"policy": "best", "windows": ["all", "season"], "season": seasons, "grace": "300d"});
    ok(client.put("/v1/boards/arena", &windows));
    let before = ago(days(70)).to_string();
    for member in ["a", "b", "c", "d", "e"] {
        let path = entry_path("arena", member);
        ok(client.put(&path, &json!({"score": 9, "at": before, "meta": {"car": "mx5"}})));
        let answer = ok(client.put(&path, &json!({"score": 5, "meta": {"car": "2cv"}})));
        assert_eq!((&answer["changed"], &answer["entry"]["score"]), (&json!(true), &json!(9)), "{answer}");
        assert_eq!(answer["entry"]["meta"], json!({"car": "mx5"}), "{answer}");
        assert_eq!(ok(client.get(&path))["meta"], json!({"car": "mx5"}));
        let of_season = ok(client.get(&format!("{path}?window=season")));
        assert_eq!((&of_season["score"], &of_season["meta"]), (&json!(5), &json!({"car": "2cv"})));
        let answer = ok(client.put(&path, &json!({"score": 10, "meta": {"car": "r4"}})));
        assert_eq!(answer["entry"]["meta"], json!({"car": "r4"}), "{answer}");
    }
    service.end();
}

fn each_job_of_a_batch_says_which_instances_it_entered(place: Place) {
    let served = place.start(3);
    let client = &served.client();
    ok(client.put("/v1/boards/arena", &json!({"windows": ["all", "day"], "policy": "incr"})));
    ok(client.put("/v1/boards/plain", &json!({})));
    let job = |board: &str, member: &str, more: Value| {
        let mut job = json!({"board": board, "member": member});
        job.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        job
    };
    let late = ago(days(3)).to_string();
    let jobs = json!([
        job("arena", "now", json!({"score": 5})),
        job("arena", "late", json!({"score": 7, "at": late})),
        job("arena", "now", json!({"score": 2, "at": late})),
        job("arena", "new", json!({"score": 1, "version": 2})),
        job("arena", "new", json!({"score": 1, "version": 1})),
        job("plain", "now", json!({"score": 3})),
        json!({"member": "now", "op": "profile", "profile": {"n": 1}}),
        job("arena", "gone", json!({"op": "remove"})),
    ]);
    for (results, again) in [("", false), ("&results=changed", true)] {
        let answer = ok(client.post(&format!("/v1/jobs?windows=*&wait=applied{results}"), &jobs));
        let results = answer["results"].as_array().expect("a list");
        let score = |nth: usize, window: &str| &results[nth]["windows"][window]["score"];
        // What it comes to is read after all of them.
        let [now, all] = if again { [10, 14] } else { [5, 7] };
        assert_eq!((score(0, "day"), score(0, "all")), (&json!(now), &json!(all)), "{answer}");
        assert_eq!(results[1]["windows"]["day"], Value::Null, "{answer}");
        assert_eq!(score(1, "all"), &json!(if again { 14 } else { 7 }), "{answer}");
        assert_eq!(results[2]["windows"]["day"], Value::Null, "{answer}");
        assert_eq!(score(2, "all"), &json!(all), "{answer}");
        if !again {
            assert_eq!(score(3, "day"), &json!(1), "{answer}");
        }
        assert_eq!(results[4]["rejected"], "stale_version", "{answer}");
        assert_eq!((results[4].get("windows"), results[6].get("windows")), (None, None), "{answer}");
        let plain = results[5]["windows"].as_object().expect("by name");
        assert_eq!((plain.len(), &plain["all"]["score"]), (1, &json!(3)), "{answer}");
        assert_eq!(results[7]["windows"], json!({"all": null, "day": null}), "{answer}");
    }
    let refused = |query: &str, jobs: &Value, code: &str, words: &str| {
        let (status, problem) = client.post(&format!("/v1/jobs?{query}"), jobs);
        assert_eq!((status, problem["code"].as_str()), (422, Some(code)), "{query}: {problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(words)), "{problem}");
    };
    let several = json!([{"member": "m", "scores": {"arena": 1, "plain": 2}}]);
    refused("windows=all&wait=applied", &several, "bad_parameter", "job 0 names several");
    let many: Value = (0..501).map(|n| job("plain", &format!("m{n}"), json!({"score": 1}))).collect();
    refused("windows=all,day&wait=applied", &many, "too_large", "send fewer jobs");
    assert_eq!(client.get("/v1/boards/plain/members/m0").0, 404, "nothing of it was written");
}

fn an_entry_is_read_in_several_windows_at_once_and_a_write_says_which_it_entered(place: Place) {
    let served = place.start(3);
    let client = &served.client();
    for board in ["arena", "other"] {
        ok(client.put(&format!("/v1/boards/{board}"), &json!({"windows": ["all", "day"], "policy": "incr"})));
    }
    ok(client.put("/v1/boards/plain", &json!({})));
    let entry = entry_path("arena", "m");
    let written = ok(client.put(&format!("{entry}?windows=*"), &json!({"score": 5})));
    let day = written["windows"]["day"]["window"].as_str().expect("it is of today").to_owned();
    assert_eq!(
        (&written["windows"]["all"]["score"], &written["windows"]["day"]["score"]),
        (&json!(5), &json!(5))
    );
    // Too late for its day, and in time for all time.
    let late = json!({"score": 7, "at": ago(days(3)).to_string()});
    let written = ok(client.put(&format!("{}?windows=all,day", entry_path("arena", "late")), &late));
    assert_eq!(written["windows"]["all"]["score"], 7, "{written}");
    assert_eq!(written["windows"]["day"], Value::Null, "{written}");
    // Late, and in time for what was open at its time: that is told, also beside entries of today.
    let late = json!({"windows": ["day", "hour"], "policy": "incr", "grace": "72h"});
    ok(client.put("/v1/boards/late", &late));
    let at = ago(jiff::SignedDuration::from_hours(30)).to_string();
    let [of_day, of_hour] = [10, 13].map(|length| json!(at[..length]));
    ok(client.put(&entry_path("late", "both"), &json!({"score": 1})));
    for member in ["late", "both"] {
        for query in ["windows=*", "windows=hour,day"] {
            let path = format!("{}?{query}", entry_path("late", member));
            let written = ok(client.put(&path, &json!({"score": 7, "at": at})));
            let windows = written["windows"].as_object().expect("by name");
            assert_eq!(windows.len(), 2, "{written}");
            let told = (&windows["day"]["window"], &windows["hour"]["window"]);
            assert_eq!(told, (&of_day, &of_hour), "{member} {query}: {written}");
            assert_eq!(windows["day"]["score"], windows["hour"]["score"], "{written}");
        }
    }
    let read = |query: &str| client.get(&format!("{entry}?{query}"));
    for query in ["windows=*".to_owned(), "windows=all,day".to_owned(), format!("windows=all,day,{day}")] {
        let answer = ok(read(&query));
        assert_eq!((&answer["member"], &answer["board"]), (&json!("m"), &json!("arena")), "{answer}");
        let windows = answer["windows"].as_object().expect("by name");
        assert_eq!(windows.len(), if query.contains("20") { 3 } else { 2 }, "{answer}");
        for (name, shown) in windows {
            let alone = ok(read(&format!("window={name}")));
            for field in ["window", "score", "rank", "position", "total", "updated_at"] {
                assert_eq!(shown[field], alone[field], "{name}: {answer}");
            }
        }
    }
    for (query, status, code) in [
        ("windows=week", 404, "unknown_window"),
        ("windows=all,year", 422, "bad_parameter"),
        ("windows=all&window=day", 422, "bad_parameter"),
        ("windows=all&movement=day", 422, "bad_parameter"),
    ] {
        let (found, problem) = read(query);
        assert_eq!((found, problem["code"].as_str()), (status, Some(code)), "{query}: {problem}");
    }
    let (status, problem) = client.get(&format!("{}?windows=*", entry_path("arena", "nobody")));
    assert_eq!((status, &problem["code"]), (404, &json!("unknown_member")), "{problem}");
    // Of all boards, every instance that holds an entry; of boards that are named, the current ones.
    ok(client.put(&entry_path("other", "m"), &json!({"score": 1})));
    ok(client.put(&entry_path("plain", "m"), &json!({"score": 2})));
    let listed = |query: &str| {
        let answer = ok(client.get(&format!("/v1/members/m?{query}")));
        let entries = answer["entries"].as_array().expect("a list").iter();
        let name = |entry: &Value| format!("{} {}", entry["board"], entry["window"]).replace('"', "");
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    };
    let all = vec![
        format!("arena {day}"),
        "arena all".to_owned(),
        format!("other {day}"),
        "other all".to_owned(),
        "plain all".to_owned(),
    ];
    assert_eq!(listed("windows=*"), all);
    assert_eq!(listed("boards=arena,plain&windows=*"), [&all[..2], &all[4..]].concat());
    assert_eq!(listed("windows=day"), [all[0].clone(), all[2].clone()]);
    assert_eq!(listed(""), [all[1].clone(), all[3].clone(), all[4].clone()]);
    served.end();
}
