//! An export of one instance of a board comes back as that instance: the same entries, order, ties, times and
//! metadata, into any number of shards, whatever the board's policy; and it changes nothing else.
//!
//! Seasons begin so and so long before the test, so that it does not depend on the day.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::command;
use crate::support::nats::wait_until;
use crate::support::node::Node;

/// More than a page, and few enough scores that most entries are tied.
const MEMBERS: i64 = 1_300;

fn ago(hours: i64) -> Timestamp {
    // Times are kept to the microsecond.
    let now = Timestamp::from_second(Timestamp::now().as_second()).expect("a time");
    now.checked_sub(SignedDuration::from_hours(hours)).expect("a time")
}

fn ok((status, answer): (u16, Value)) -> Value {
    assert!((200..300).contains(&status), "{status}: {answer}");
    answer
}

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let output = command().args(arguments).stdin(Stdio::null()).output();
    let Output { status, stdout, stderr } = output.expect("the binary can be started");
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

fn done(arguments: &[&str]) -> String {
    let (code, said) = run(arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {said}");
    said
}

/// All entries of an instance in their order, with the time at which each score was reached.
fn entries(client: &Client, board: &str, window: &str) -> Vec<Value> {
    let (mut entries, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!(
            "/v1/boards/{board}/top?window={window}&limit=1000&reached_at=true&profile=true&cursor={cursor}"
        );
        let mut page = ok(client.get(&path));
        entries.append(page["entries"].as_array_mut().expect("a page"));
        match &page["next_cursor"] {
            Value::String(next) => cursor.clone_from(next),
            _ => return entries,
        }
    }
}

fn assert_same(found: &[Value], expect: &[Value], which: &str) {
    for (found, expect) in found.iter().zip(expect) {
        assert_eq!(found, expect, "{which}");
    }
    assert_eq!(found.len(), expect.len(), "{which}");
}

fn send(client: &Client, jobs: &[Value]) {
    for jobs in jobs.chunks(1_000) {
        let answer = ok(client.post("/v1/jobs", &Value::from(jobs)));
        let results = answer["results"].as_array().expect("a list");
        assert_eq!(results.iter().find(|result| !result["rejected"].is_null()), None);
    }
}

/// A board of this policy and rule for ties, with seasons of 30 days.
fn definition(starts: &str, policy: &str, ties: &str, windows: &[&str], grace: &str) -> Value {
    json!({"policy": policy, "ties": ties, "windows": windows, "grace": grace, "keep": 50,
           "keys": [{"name": "points"}, {"name": "time", "order": "asc"}],
           "season": {"starts": starts, "every": "30d"}})
}

/// Scores in the first, second and fourth season: ties, several jobs for a member, equal scores that only
/// move the time of the last update, metadata, and profiles.
fn fill(client: &Client, board: &str) {
    let mut jobs = Vec::new();
    for (season, hours) in [(1, 2_350), (2, 1_600), (4, 100)] {
        let begin = ago(hours);
        let at = |seconds: i64| begin.checked_add(SignedDuration::from_secs(seconds)).expect("a time");
        for number in 0..MEMBERS {
            // Ids whose order is neither numeric nor the order of arrival.
            let member = format!("{}, \"{number}\" 日本", (number * 7_919) % 1_000);
            let score = json!([number % 5 + season, number % 2]);
            let mut job =
                json!({"board": board, "member": member, "score": score, "at": at(number % 60).to_string()});
            if number % 11 == 0 {
                job["meta"] = json!({"car": format!("\"{number}\", mx5")});
            }
            jobs.push(job);
            let later = at(100 + number % 7).to_string();
            match number % 3 {
                0 => jobs.push(
                    json!({"board": board, "member": member, "score": [1, 0], "op": "incr", "at": later}),
                ),
                // The same score again: the time of the update moves, and the place among ties does not.
                1 => jobs.push(
                    json!({"board": board, "member": member, "score": score, "op": "set", "at": later}),
                ),
                _ => {}
            }
            if number % 100 == 0 {
                jobs.push(json!({"member": member, "op": "profile", "profile": {"n": number}}));
            }
        }
    }
    send(client, &jobs);
}

#[test]
fn a_season_is_exported_and_imported_as_the_same_season() {
    for (policy, ties) in [("incr", "first"), ("set", "last"), ("best", "member")] {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
        let mut source = Node::at(folder.path().join("source")).shards(3).start();
        let client = source.client();
        let windows = ["all", "season"];
        // The fourth season began ten days ago.
        let starts = ago(2_400).to_string();
        ok(client.put("/v1/boards/league", &definition(&starts, policy, ties, &windows, "300d")));
        fill(&client, "league");
        // The past seasons are final.
        ok(client.put("/v1/boards/league", &definition(&starts, policy, ties, &windows, "1h")));
        let expect = entries(&client, "league", "s2");
        assert_eq!(expect.len(), usize::try_from(MEMBERS).expect("small"));
        let tied = expect.windows(2).filter(|pair| pair[0]["rank"] == pair[1]["rank"]).count();
        assert!(tied > 1_000, "{tied}");
        let kept = expect.iter().filter(|entry| entry["reached_at"] != entry["updated_at"]).count();
        assert!(kept > 100 || ties == "member", "{kept}");
        let current = entries(&client, "league", "season");

        let base = source.base().to_owned();
        let export = |from: &[&str], name: &str, extra: &[&str]| {
            let to = path(name);
            let said = done(&[&["export", "--board", "league", "--output", &to], from, extra].concat());
            assert!(said.contains(": all rows"), "{said}");
            fs::read_to_string(to).expect("it was written")
        };
        let live = export(&["--url", &base, "--window", "s2"], "live.ndjson", &["--profiles"]);
        let live_csv = export(&["--url", &base, "--window", "s2"], "live.csv", &[]);
        export(&["--url", &base, "--window", "season"], "current.ndjson", &["--profiles"]);
        let first: Value = serde_json::from_str(live.lines().next().expect("a line")).expect("JSON");
        assert_eq!((&first["window"], &first["definition"]["policy"]), (&json!("s2"), &json!(policy)));
        source.terminate();
        let data = path("source");
        assert!(live == export(&["--data-dir", &data, "--window", "s2"], "stopped.ndjson", &["--profiles"]));
        assert!(live_csv == export(&["--data-dir", &data, "--window", "s2"], "stopped.csv", &[]));

        for (shards, file) in [(1, "stopped.ndjson"), (5, "live.csv")] {
            let target = Node::shards(shards).flags(&["--no-auto-create"]).start();
            let (client, url) = (target.client(), target.base());
            let which = format!("{policy} {ties} {file}");
            let profiles = |entries: &[Value]| {
                let mut entries = entries.to_vec();
                if file.ends_with("csv") {
                    for entry in &mut entries {
                        entry["profile"] = Value::Null;
                    }
                }
                entries
            };
            // Into a board of its own, twice: a second import changes nothing.
            for _ in 0..2 {
                done(&["import", &path(file), "--url", url, "--board", "old"]);
                assert_same(&entries(&client, "old", "s2"), &profiles(&expect), &which);
            }
            let mut board = ok(client.get("/v1/boards/old?window=s2"));
            assert_eq!((&board["windows"], &board["keep"]), (&json!(["season"]), &json!(1_000)), "{board}");
            let s2 = board["instances"]["season"][0].take();
            assert_eq!((&s2["begin"], &s2["end"]), (&first["begin"], &first["end"]), "{s2}");
            // It closes, and stays.
            ok(client.put("/v1/boards/old", &definition(&starts, policy, ties, &["season"], "1h")));
            let board = ok(client.get("/v1/boards/old?window=s2"));
            assert_eq!(board["instances"]["season"][0]["open"], json!(false));
            assert_same(&entries(&client, "old", "s2"), &profiles(&expect), &which);
            let (code, said) = run(&["import", &path(file), "--url", url, "--board", "old"]);
            assert!(code == Some(2) && said.contains("s2 of the board is closed"), "{said}");

            // A board with the same windows has an `all`, which the rows would change.
            ok(client.put("/v1/boards/league", &definition(&starts, policy, ties, &windows, "300d")));
            let job = json!([{"board": "league", "member": "somebody", "op": "set", "score": [7, 7]}]);
            ok(client.post("/v1/jobs", &job));
            let before = (entries(&client, "league", "all"), entries(&client, "league", "season"));
            let (code, said) = run(&["import", &path(file), "--url", url]);
            assert!(code == Some(2) && said.contains("they would change all of the board"), "{said}");
            assert!(said.contains("--into-all-windows") && said.contains("--board NAME"), "{said}");
            assert_eq!((entries(&client, "league", "all"), entries(&client, "league", "season")), before);
            done(&["import", &path(file), "--url", url, "--into-all-windows"]);
            assert_same(&entries(&client, "league", "s2"), &profiles(&expect), &which);
            assert_eq!(entries(&client, "league", "season"), before.1, "the current season is another one");
            assert_eq!(entries(&client, "league", "all").len(), expect.len() + 1);

            // The current season goes into the same board as the one before.
            ok(client.put("/v1/boards/seasons", &definition(&starts, policy, ties, &["season"], "300d")));
            done(&["import", &path(file), "--url", url, "--board", "seasons"]);
            done(&["import", &path("current.ndjson"), "--url", url, "--board", "seasons"]);
            assert_same(
                &entries(&client, "seasons", "s2"),
                &expect_profiles(&client, "seasons", &expect),
                &which,
            );
            let found = entries(&client, "seasons", "s4");
            assert_same(&found, &expect_profiles(&client, "seasons", &current), &which);
        }
    }
}

/// The entries with the profiles that the service has: a CSV brings none.
fn expect_profiles(client: &Client, board: &str, expect: &[Value]) -> Vec<Value> {
    let by_member: std::collections::BTreeMap<String, Value> = entries(client, board, "s2")
        .into_iter()
        .map(|mut entry| (entry["member"].to_string(), entry["profile"].take()))
        .collect();
    let mut expect = expect.to_vec();
    for entry in &mut expect {
        entry["profile"] = by_member.get(&entry["member"].to_string()).cloned().unwrap_or_default();
    }
    expect
}

#[test]
fn a_season_that_was_opened_comes_back_as_a_regular_one_of_its_number() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let mut source = Node::at(folder.path().join("source")).shards(3).start();
    let (client, url) = (source.client(), source.base().to_owned());
    ok(client
        .put("/v1/boards/league", &json!({"policy": "incr", "windows": ["season"], "season": "manual"})));
    // Before the first season there is only what the board is.
    let said = done(&["export", "--all", "--url", &url, "--output", &path("none.ndjson")]);
    assert!(said.lines().any(|line| line.split_whitespace().eq(["rows", "0"])), "{said}");
    assert_eq!(fs::read_to_string(path("none.ndjson")).expect("it was written").lines().count(), 1);
    let (code, said) = run(&["export", "--board", "league", "--window", "season", "--url", &url]);
    assert!(code == Some(2) && said.contains("first season has not begun"), "{said}");

    for number in 1..=3 {
        ok(client.post("/v1/boards/league/seasons?force=true", &json!({})));
        wait_until("the season has begun", || {
            client.get("/v1/boards/league/top?window=season").1["window"] == json!(format!("s{number}"))
        });
        let job =
            |member: i64| json!({"board": "league", "member": format!("m{member}"), "score": member % 3});
        send(&client, &(0..40).map(job).collect::<Vec<_>>());
    }
    let expect = entries(&client, "league", "s2");
    for (window, name) in [("s2", "s2.ndjson"), ("season", "s3.ndjson")] {
        done(&["export", "--board", "league", "--window", window, "--url", &url, "--output", &path(name)]);
    }
    // Back into the same board, whose seasons are still open.
    ok(client.post("/v1/boards/league:clear", &json!({})));
    assert!(entries(&client, "league", "s2").is_empty());
    for name in ["s2.ndjson", "s3.ndjson"] {
        done(&["import", &path(name), "--url", &url]);
    }
    assert_same(&entries(&client, "league", "s2"), &expect, "the same board");
    assert_eq!(entries(&client, "league", "s3").len(), 40);
    source.terminate();

    let target = Node::shards(2).start();
    let (client, url) = (target.client(), target.base());
    // It was a moment long, and seasons of a minute would go soon.
    let (code, said) = run(&["import", &path("s2.ndjson"), "--url", url, "--board", "league-s2"]);
    assert!(code == Some(2) && said.contains("s2 would be dropped with all of its entries at"), "{said}");
    assert_eq!(client.get("/v1/boards/league-s2").0, 404);
    let text = fs::read_to_string(path("s2.ndjson")).expect("it was written");
    let mut first: Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    let begin: Timestamp = first["begin"].as_str().expect("a time").parse().expect("a time");
    let end = begin.checked_add(SignedDuration::from_mins(10)).expect("a time");
    let text = text.replacen(&first["end"].to_string(), &format!("\"{end}\""), 1);
    first["end"] = json!(end.to_string());
    fs::write(path("s2.ndjson"), text).expect("it can be written");
    let said = done(&["import", &path("s2.ndjson"), "--url", url, "--board", "league-s2"]);
    // 1,000 seasons and the grace of 10,000.
    let drops_at = end.checked_add(SignedDuration::from_mins(110_000)).expect("a time");
    let told = format!("s2 is dropped with all of its entries at {drops_at}");
    assert!(said.contains(&told), "{told}: {said}");
    assert_same(&entries(&client, "league-s2", "s2"), &expect, "another service");
    let board = ok(client.get("/v1/boards/league-s2?window=s2"));
    assert_eq!(board["instances"]["season"][0]["begin"], first["begin"], "{board}");
    // Seasons of that service's own are others.
    ok(client
        .put("/v1/boards/league", &json!({"policy": "incr", "windows": ["season"], "season": "manual"})));
    let (code, said) = run(&["import", &path("s2.ndjson"), "--url", url]);
    assert!(code == Some(2) && said.contains("unknown_window"), "{said}");
    let (code, said) = run(&["import", &path("s3.ndjson"), "--url", url, "--board", "league-s3"]);
    assert!(code == Some(2) && said.contains("s3 has not ended"), "{said}");
    let (code, said) = run(&["import", &path("s3.ndjson"), "--url", url, "--board", "league-s2"]);
    assert!(code == Some(2) && said.contains("s3 has not begun"), "{said}");
    let text = fs::read_to_string(path("s2.ndjson")).expect("it was written");
    let later = text.replacen(&first["end"].to_string(), "\"2199-01-01T00:00:00Z\"", 1);
    fs::write(path("later.ndjson"), later).expect("it can be written");
    let (code, said) = run(&["import", &path("later.ndjson"), "--url", url, "--board", "league-s2"]);
    assert!(code == Some(2) && said.contains("s2 of the board is from"), "{said}");
}

/// A board whose only season so far began 50 days ago.
fn with_ttl(starts: &str, ttl: &Value) -> Value {
    json!({"windows": ["season", "all"], "season": {"starts": starts, "every": "60d"}, "entry_ttl": ttl})
}

/// Exports `all` and the season of a board with an `entry_ttl` of 30 days, whose entries were reached longer
/// ago than that and updated since, into files of these names; the entries of both.
fn export_with_ttl(folder: &Path, starts: &str) -> (Vec<Value>, Vec<Value>) {
    let mut source = Node::at(folder.join("source")).shards(3).start();
    let (client, url) = (source.client(), source.base().to_owned());
    ok(client.put("/v1/boards/arena", &with_ttl(starts, &Value::Null)));
    // All were reached longer ago than the entry_ttl; those that were updated since stay.
    let job = |number: i64, hours: i64| {
        let at = ago(hours).checked_add(SignedDuration::from_secs(number)).expect("a time").to_string();
        json!({"board": "arena", "member": format!("m{}", number * 37 % 100), "score": number % 4, "at": at,
               "meta": {"car": number}})
    };
    send(&client, &(0..100).map(|number| job(number, 24 * 40)).collect::<Vec<_>>());
    send(&client, &(0..100).rev().filter(|n| n % 3 > 0).map(|n| job(n, 24 * 10)).collect::<Vec<_>>());
    ok(client.put("/v1/boards/arena?force=true", &with_ttl(starts, &json!("30d"))));
    for window in ["all", "season"] {
        wait_until("the others have left", || entries(&client, "arena", window).len() == 66);
    }
    let expect = (entries(&client, "arena", "all"), entries(&client, "arena", "season"));
    assert!(expect.0.iter().all(|entry| entry["reached_at"] != entry["updated_at"]));
    for window in ["all", "season"] {
        let to = folder.join(window);
        let to = to.to_str().expect("UTF-8");
        done(&["export", "--board", "arena", "--window", window, "--url", &url, "--output", to]);
    }
    source.terminate();
    expect
}

#[test]
fn entries_that_would_have_expired_come_back_with_their_times() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let starts = ago(24 * 50).to_string();
    let expect = export_with_ttl(folder.path(), &starts);
    let target = Node::shards(2).start();
    let (client, url) = (target.client(), target.base());
    let said = done(&["import", &path("all"), "--url", url]);
    assert!(said.contains("but for entry_ttl"), "{said}");
    assert_same(&entries(&client, "arena", "all"), &expect.0, "all");
    let ttl = || ok(client.get("/v1/boards/arena"))["entry_ttl"].take();
    assert_eq!(ttl(), json!("30d"), "it has it in the end");
    // Once more, now that it has it.
    let said = done(&["import", &path("all"), "--url", url]);
    assert!(said.contains("has an entry_ttl of \"30d\", which it gets again"), "{said}");
    assert_same(&entries(&client, "arena", "all"), &expect.0, "all, again");
    assert_eq!(ttl(), json!("30d"));
    // A board that is there keeps its settings, also one with seasons.
    let mut longer = with_ttl(&starts, &json!("40d"));
    longer["keep"] = json!(7);
    ok(client.put("/v1/boards/arena", &longer));
    done(&["import", &path("all"), "--url", url]);
    let kept = ok(client.get("/v1/boards/arena"));
    assert_eq!((&kept["entry_ttl"], &kept["keep"]), (&json!("40d"), &json!(7)));
    longer["entry_ttl"] = Value::Null;
    ok(client.put("/v1/boards/arena", &longer));
    let said = done(&["import", &path("all"), "--url", url]);
    assert!(said.contains("so it gets no entry_ttl, which is \"30d\" in the file"), "{said}");
    assert_eq!(ttl(), Value::Null);
    done(&["import", &path("season"), "--url", url, "--board", "past"]);
    assert_same(&entries(&client, "past", "s1"), &expect.1, "season");
    assert_eq!(ok(client.get("/v1/boards/past"))["entry_ttl"], Value::Null);
    // A board that has an entry_ttl has it again in the end.
    let other =
        json!({"windows": ["season"], "season": {"starts": starts, "every": "60d"}, "entry_ttl": "30d"});
    ok(client.put("/v1/boards/other", &other));
    let said = done(&["import", &path("season"), "--url", url, "--board", "other"]);
    assert!(said.contains("has an entry_ttl"), "{said}");
    assert_same(&entries(&client, "other", "s1"), &expect.1, "a board that has the season");
    assert_eq!(ok(client.get("/v1/boards/other"))["entry_ttl"], json!("30d"));
}

#[test]
fn an_import_that_failed_says_which_board_lacks_its_entry_ttl_and_the_next_one_gives_it() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let starts = ago(24 * 50).to_string();
    let (expect, _) = export_with_ttl(folder.path(), &starts);
    let target = Node::shards(2).start();
    let (client, url) = (target.client(), target.base());
    // The definition of the board twice, as of exports that were put together, and then no job.
    let text = fs::read_to_string(path("all")).expect("it was written");
    let first = text.lines().next().expect("a line");
    fs::write(path("bad"), format!("{text}{first}\nno job\n")).expect("it can be written");
    fs::write(path("twice"), format!("{first}\n{text}")).expect("it can be written");
    let ttl = || ok(client.get("/v1/boards/arena"))["entry_ttl"].take();
    let lacks = |ttl: &str| format!("did not give board arena its entry_ttl, which is \"{ttl}\"");
    let (code, said) = run(&["import", &path("bad"), "--url", url, "--limit-errors", "0", "--unchecked"]);
    assert!(code == Some(2) && said.matches(&lacks("30d")).count() == 1, "{said}");
    assert_eq!(ttl(), Value::Null);
    let said = done(&["import", &path("twice"), "--url", url]);
    assert!(said.contains("but for entry_ttl, which it gets after all rows"), "{said}");
    assert_same(&entries(&client, "arena", "all"), &expect, "the second import");
    assert_eq!(ttl(), json!("30d"));

    // A board that had another one gets that: by hand, if no import knows it any more.
    ok(client.put("/v1/boards/arena", &with_ttl(&starts, &json!("45d"))));
    let (code, said) = run(&["import", &path("bad"), "--url", url, "--limit-errors", "0", "--unchecked"]);
    assert!(code == Some(2) && said.matches(&lacks("45d")).count() == 1, "{said}");
    ok(client.put("/v1/boards/arena", &with_ttl(&starts, &json!("45d"))));
    done(&["import", &path("twice"), "--url", url]);
    assert_eq!(ttl(), json!("45d"));
    assert_same(&entries(&client, "arena", "all"), &expect, "the third import");
}

#[test]
fn an_export_is_of_the_boards_first_window_unless_it_is_asked_for_another() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut source = Node::at(folder.path().join("source")).shards(3).start();
    let (client, url) = (source.client(), source.base().to_owned());
    for (board, windows) in
        [("daily", json!(["month", "day"])), ("plain", json!(["all"])), ("both", json!(["all", "day"]))]
    {
        ok(client.put(&format!("/v1/boards/{board}"), &json!({"windows": windows})));
        send(&client, &[json!({"board": board, "member": "m", "score": 1})]);
    }
    for (board, starts) in [("begun", ago(24)), ("soon", ago(-24))] {
        let season = json!({"starts": starts.to_string(), "every": "30d"});
        ok(client.put(&format!("/v1/boards/{board}"), &json!({"windows": ["season"], "season": season})));
    }
    let this_month = ok(client.get("/v1/boards/daily/top"))["window"].as_str().expect("a name").to_owned();
    let today =
        ok(client.get("/v1/boards/daily/top?window=day"))["window"].as_str().expect("a name").to_owned();
    let data_dir = folder.path().join("source");
    let sources = [vec!["--url", &url], vec!["--data-dir", data_dir.to_str().expect("UTF-8")]];
    for (number, from) in sources.iter().enumerate() {
        if number == 1 {
            source.terminate();
        }
        let export = |arguments: &[&str]| {
            let to = folder.path().join("out");
            let to_text = to.to_str().expect("UTF-8");
            let said = done(&[&["export", "--replace", "--output", to_text], &from[..], arguments].concat());
            (windows_in(&to), said)
        };
        let (windows, said) = export(&["--board", "daily"]);
        assert_eq!(windows, [("daily".to_owned(), this_month.clone())]);
        assert!(said.contains(&this_month) && said.contains("has other windows"), "{said}");
        assert_eq!(export(&["--board", "daily", "--window", "day"]).0, [("daily".to_owned(), today.clone())]);
        assert_eq!(export(&["--board", "plain"]).0, [("plain".to_owned(), "all".to_owned())]);
        let (windows, said) = export(&["--all"]);
        let names: Vec<&str> = windows.iter().map(|(_, window)| window.as_str()).collect();
        // The line of a board whose first season has not begun names no instance.
        assert_eq!(names, ["s1", "all", this_month.as_str(), "all", "all"]);
        assert!(said.contains("4 of the boards have other windows"), "{said}");
        // Boards without such a window or instance are left out, and named.
        let (windows, said) = export(&["--all", "--window", "day"]);
        let boards: Vec<&str> = windows.iter().map(|(board, _)| board.as_str()).collect();
        assert_eq!(boards, ["both", "daily"]);
        assert!(said.contains("board plain is left out") && said.contains("has no window day"), "{said}");
        let (windows, said) = export(&["--all", "--window", "s1"]);
        assert_eq!(windows, [("begun".to_owned(), "s1".to_owned())]);
        assert!(said.contains("board soon is left out") && said.contains("has not begun"), "{said}");
        let refused = |arguments: &[&str]| {
            let (code, said) = run(&[&["export"], &from[..], arguments].concat());
            assert_eq!(code, Some(2), "{said}");
            said
        };
        assert!(refused(&["--board", "daily", "--window", "all"]).contains("has no window all"));
        assert!(refused(&["--board", "daily", "--window", "2199-01"]).contains("has not begun"));
        assert!(refused(&["--all", "--window", "hour"]).contains("none of the 5 boards has hour"));
        assert!(refused(&["--board", "daily", "--window", "today"]).contains("the window must be all, hour"));
    }
}

/// The boards of an export, and the instance of each.
fn windows_in(file: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(file).expect("it was written");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let boards = lines.filter(|line| line["definition"].is_object()).map(|line| {
        let text = |name: &str| line[name].as_str().unwrap_or("all").to_owned();
        (text("board"), text("window"))
    });
    boards.collect()
}
