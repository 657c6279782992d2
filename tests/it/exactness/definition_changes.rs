//! What a change of a definition would drop is said beforehand, and is what it then drops: at a node that
//! owns every shard and at one that owns none.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::client::{Client, count_of};
use crate::support::nats::wait_until;
use crate::support::place::{Place, at_each_place};

at_each_place![
    what_a_change_would_drop_is_what_it_drops,
    a_closed_season_keeps_its_entries_whatever_is_defined_afterwards,
];

/// How many days before today the boards have entries of.
const DAYS: i64 = 9;

fn ok((status, answer): (u16, Value)) -> Value {
    assert!((200..300).contains(&status), "{status}: {answer}");
    answer
}

fn minutes_ago(minutes: i64) -> String {
    let now = Timestamp::from_second(Timestamp::now().as_second()).expect("a time");
    now.checked_sub(SignedDuration::from_mins(minutes)).expect("a time").to_string()
}

/// The members of each instance that a reader finds.
fn read_all(client: &Client, board: &str) -> BTreeMap<String, BTreeSet<String>> {
    let shown = ok(client.get(&format!("/v1/boards/{board}?window=day&limit=1000")));
    let days = shown["instances"]["day"].as_array().expect("a list");
    let days = days.iter().map(|day| day["name"].as_str().expect("a name").to_owned());
    let names = days.chain(["all".to_owned()]);
    let read = |name: String| {
        let top = ok(client.get(&format!("/v1/boards/{board}/top?window={name}&limit=1000")));
        let entries = top["entries"].as_array().expect("a list");
        let member = |entry: &Value| entry["member"].as_str().expect("an id").to_owned();
        let members: BTreeSet<String> = entries.iter().map(member).collect();
        assert_eq!(members.len(), count_of(&top["total"]), "{board} {name}");
        (!members.is_empty()).then_some((name, members))
    };
    names.filter_map(read).collect()
}

/// A board with entries of each day, then with these settings.
fn make(client: &Client, board: &str, settings: &Value) {
    let path = format!("/v1/boards/{board}");
    ok(client.put(&path, &json!({"windows": ["day", "all"], "grace": "60d", "keep": 40})));
    let job = |n: i64| {
        // Some of a day are hours apart, and some members come again the day after.
        let at = minutes_ago(24 * 60 * (n / 4) + 7 * 60 * (n % 4));
        json!({"board": board, "member": format!("m{:02}", n - n % 4 / 3), "score": n, "at": at})
    };
    let jobs: Vec<Value> = (0..4 * DAYS).map(job).collect();
    ok(client.post("/v1/jobs", &jobs.into()));
    let (status, answer) = client.put(&format!("{path}?force=true"), settings);
    assert_eq!(status, 200, "{settings}: {answer}");
}

/// A message for every shard: what a definition drops is gone with the message after it.
fn message_for_each_shard(client: &Client) {
    let jobs: Vec<Value> =
        (0..60).map(|n| json!({"board": "other", "member": format!("m{n}"), "score": n})).collect();
    ok(client.post("/v1/jobs", &jobs.into()));
}

fn what_a_change_would_drop_is_what_it_drops(place: Place) {
    let served = place.start(3);
    let client = &served.client();
    let closed = json!({"grace": "0s"});
    let open = json!({"grace": "5d"});
    let lasting = json!({"grace": "0s", "entry_ttl": "100d", "capacity": 20});
    let mut refused = 0;
    for (number, (settings, change)) in [
        (&closed, json!({"entry_ttl": "36h"})),
        (&closed, json!({"entry_ttl": "200d"})),
        (&closed, json!({"entry_ttl": "1h", "grace": "20d"})),
        (&closed, json!({"grace": "3d"})),
        (&closed, json!({"keep": 4})),
        (&closed, json!({"keep": 4, "entry_ttl": "50h"})),
        (&closed, json!({"capacity": 2})),
        (&closed, json!({"capacity": 3, "entry_ttl": "40h"})),
        (&closed, json!({"windows": ["day", "all", "week"], "entry_ttl": "40h"})),
        (&open, json!({"entry_ttl": "36h"})),
        (&open, json!({"entry_ttl": "36h", "grace": "0s"})),
        (&open, json!({"entry_ttl": "36h", "grace": "20d"})),
        (&open, json!({"grace": "0s", "keep": 2})),
        (&open, json!({"grace": "2d", "entry_ttl": "1h"})),
        (&open, json!({"capacity": 1, "entry_ttl": "30h", "keep": 3, "grace": "1d"})),
        (&lasting, json!({"entry_ttl": "36h"})),
        (&lasting, json!({"grace": "10d"})),
        (&lasting, json!({"entry_ttl": "36h", "grace": "10d"})),
        (&lasting, json!({"entry_ttl": null})),
        (&lasting, json!({"capacity": null, "entry_ttl": "36h"})),
        (&lasting, json!({"capacity": 1, "entry_ttl": "26h"})),
        (&lasting, json!({"keep": null, "grace": "2d", "entry_ttl": "200d"})),
    ]
    .into_iter()
    .enumerate()
    {
        let (board, told) = (format!("board-{number}"), format!("{settings} {change}"));
        make(client, &board, settings);
        let (before, path) = (read_all(client, &board), format!("/v1/boards/{board}"));
        let (status, answer) = client.put(&path, &change);
        let said = match status {
            200 => (0, 0),
            409 => {
                assert_eq!(answer["code"], "would_drop", "{told}: {answer}");
                assert_eq!(read_all(client, &board), before, "{told}");
                refused += 1;
                let said = (count_of(&answer["instances"]), count_of(&answer["entries"]));
                ok(client.put(&format!("{path}?force=true"), &change));
                said
            }
            _ => panic!("{told}: {status}: {answer}"),
        };
        message_for_each_shard(client);
        message_for_each_shard(client);
        let after = read_all(client, &board);
        let dropped = |name: &str| {
            let (status, answer) = client.get(&format!("{path}/top?window={name}"));
            assert!(status == 200 || answer["code"] == "unknown_window", "{told}: {answer}");
            status != 200
        };
        let (mut instances, mut entries) = (0, 0);
        for (name, members) in &before {
            let left = after.get(name).cloned().unwrap_or_default();
            if left.is_empty() && dropped(name) {
                instances += 1;
            } else {
                entries += members.difference(&left).count();
            }
        }
        assert_eq!((instances, entries), said, "{told}");
    }
    assert!(refused > 10, "only {refused} of them drop something");
    served.end();
}

fn a_closed_season_keeps_its_entries_whatever_is_defined_afterwards(place: Place) {
    let served = place.start(3);
    let client = &served.client();
    let path = "/v1/boards/cup";
    ok(client.put(path, &json!({"windows": ["season"], "season": "manual", "grace": "0s"})));
    let open = |name: &str| {
        ok(client.post(&format!("{path}/seasons"), &json!({"name": name})));
        let current = || {
            let (status, board) = client.get(path);
            status == 200 && board["instances"]["season"][0]["name"] == name
        };
        wait_until("the season begins", current);
    };
    open("s1");
    let jobs: Vec<Value> =
        (0..12).map(|n| json!({"board": "cup", "member": format!("m{n}"), "score": n})).collect();
    ok(client.post("/v1/jobs", &jobs.into()));
    open("s2");
    let total = |season: &str| count_of(&ok(client.get(&format!("{path}/top?window={season}")))["total"]);
    // They are older than that when the last message comes.
    for change in [
        json!({"entry_ttl": "1s"}),
        json!({"grace": "1h"}),
        json!({"grace": "0s", "entry_ttl": "2s"}),
        json!({"entry_ttl": "1s", "grace": "2h"}),
    ] {
        let (status, answer) = client.put(path, &change);
        assert_eq!(status, 200, "{change}: {answer}");
        message_for_each_shard(client);
        assert_eq!(total("s1"), 12, "{change}");
    }
    // In the running season entries do expire.
    let jobs: Vec<Value> =
        (0..12).map(|n| json!({"board": "cup", "member": format!("m{n}"), "score": n})).collect();
    ok(client.post("/v1/jobs", &jobs.into()));
    wait_until("they expire", || total("s2") == 0);
    assert_eq!(total("s1"), 12);
    served.end();
}
