//! A changed definition changes what it names, and takes nothing from readers that nobody has given up: at a
//! node that owns every shard and at one that owns none.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::client::{Client, count_of};
use crate::support::place::{Place, at_each_place};

at_each_place![
    a_definition_that_leaves_keep_out_drops_no_archived_day,
    what_a_change_would_drop_is_counted_and_kept_without_consent,
    a_board_that_its_first_job_made_gets_the_definition_that_was_meant,
    increments_stop_at_bounds_that_clamp,
    a_trim_takes_away_scores_that_cannot_be_true,
];

const BOARD: &str = "/v1/boards/arena";

fn ok((status, answer): (u16, Value)) -> Value {
    assert!((200..300).contains(&status), "{status}: {answer}");
    answer
}

fn days_ago(days: i64) -> String {
    let now = Timestamp::from_second(Timestamp::now().as_second()).expect("a time");
    now.checked_sub(SignedDuration::from_hours(24 * days)).expect("a time").to_string()
}

/// A board with an entry in each of so many days that are over, and in today.
fn archive(client: &Client, days: i64) {
    let definition = json!({"windows": ["day", "all"], "grace": "60d", "keep": 30});
    ok(client.put(BOARD, &definition));
    let job =
        |day: i64| json!({"board": "arena", "member": format!("m{day}"), "score": day, "at": days_ago(day)});
    let jobs: Vec<Value> = (0..=days).map(job).collect();
    ok(client.post("/v1/jobs", &jobs.into()));
    ok(client.put(BOARD, &json!({"grace": "0s"})));
}

fn days_with_entries(client: &Client) -> usize {
    let board = ok(client.get(&format!("{BOARD}?window=day&limit=1000")));
    let days = board["instances"]["day"].as_array().expect("a list");
    days.iter().filter(|day| day["total"] == 1).count()
}

fn a_definition_that_leaves_keep_out_drops_no_archived_day(place: Place) {
    let served = place.start(3);
    let client = &served.client();
    archive(client, 20);
    assert_eq!(days_with_entries(client), 21);
    for body in
        [json!({}), json!({"windows": ["day", "all"]}), json!({"policy": "best"}), json!({"keep": 30})]
    {
        let answer = ok(client.put(BOARD, &body));
        assert_eq!((&answer["keep"], &answer["grace"]), (&json!(30), &json!("0s")), "{body}: {answer}");
        assert_eq!(days_with_entries(client), 21, "{body}");
    }
    assert_eq!(ok(client.get(BOARD))["policy"], "best");
    served.end();
}

fn what_a_change_would_drop_is_counted_and_kept_without_consent(place: Place) {
    let served = place.start(3);
    let client = &served.client();
    archive(client, 20);
    for (body, instances, entries) in [
        (json!({"keep": 6}), 14, 0),
        (json!({"keep": null}), 8, 0),
        (json!({"keep": 0}), 20, 0),
        (json!({"capacity": 5}), 0, 16),
        (json!({"entry_ttl": "36h"}), 0, 19),
        (json!({"keep": 6, "capacity": 20}), 14, 1),
    ] {
        let (status, problem) = client.put(BOARD, &body);
        assert_eq!((status, &problem["code"]), (409, &json!("would_drop")), "{body}: {problem}");
        assert_eq!(
            (count_of(&problem["instances"]), count_of(&problem["entries"])),
            (instances, entries),
            "{body}: {problem}"
        );
        assert!(problem["detail"].as_str().expect("words").contains("?force=true"), "{problem}");
        assert_eq!(days_with_entries(client), 21, "{body}");
        assert_eq!(count_of(&ok(client.get(BOARD))["totals"]["all"]), 21, "{body}");
    }
    // A shorter grace closes days, of which more than `keep` are dropped.
    ok(client.put(BOARD, &json!({"grace": "60d"})));
    ok(client.put(BOARD, &json!({"keep": 3})));
    let (status, problem) = client.put(BOARD, &json!({"grace": "0s"}));
    assert_eq!((status, count_of(&problem["instances"])), (409, 17), "{problem}");
    let (status, answer) = client.put(&format!("{BOARD}?force=true"), &json!({"grace": "0s"}));
    assert_eq!((status, &answer["keep"]), (200, &json!(3)), "{answer}");
    assert_eq!(days_with_entries(client), 4);
    // More is no loss.
    ok(client.put(BOARD, &json!({"keep": 9, "capacity": 21, "entry_ttl": "400d"})));
    served.end();
}

fn a_board_that_its_first_job_made_gets_the_definition_that_was_meant(place: Place) {
    let served = place.start(3);
    let client = &served.client();
    let put = |member: &str, score: i64| {
        ok(client.put(&format!("{BOARD}/members/{member}"), &json!({"score": score})))
    };
    put("m1", 10);
    let meant = json!({"policy": "best", "windows": ["all", "day"], "keep": 30});
    let answer = ok(client.put(BOARD, &meant));
    assert_eq!((&answer["policy"], &answer["windows"]), (&json!("best"), &json!(["all", "day"])), "{answer}");
    // The windows begin with the next job, which the new policy judges.
    put("m1", 7);
    put("m2", 5);
    let read = |path: &str| ok(client.get(&format!("{BOARD}/{path}")));
    assert_eq!(read("members/m1")["score"], 10);
    assert_eq!(read("members/m1?window=day")["score"], 7);
    assert_eq!(count_of(&read("top?window=day")["total"]), 2);
    for taken_away in [json!({"windows": ["day"]}), json!({"windows": ["all"]}), json!({"windows": null})] {
        let (status, problem) = client.put(BOARD, &taken_away);
        assert_eq!((status, &problem["code"]), (409, &json!("board_differs")), "{taken_away}: {problem}");
    }
    // Each of its shards has it, and so has the next life of the board.
    ok(client.post(&format!("{BOARD}:clear"), &json!({})));
    assert_eq!(ok(client.get(BOARD))["windows"], json!(["all", "day"]));
    served.end();
}

fn increments_stop_at_bounds_that_clamp(place: Place) {
    let served = place.start(3);
    let client = &served.client();
    let key = json!({"name": "hp", "min": 0, "max": 100, "below_min": "clamp", "above_max": "clamp"});
    let answer = ok(client.put(BOARD, &json!({"keys": [key], "policy": "incr"})));
    assert_eq!(
        answer["keys"][0],
        json!({"name": "hp", "order": "desc", "min": 0, "max": 100,
                                         "below_min": "clamp", "above_max": "clamp"})
    );
    for member in 0..6 {
        let path = format!("{BOARD}/members/m{member}");
        for (step, expected) in [(60, 60), (60, 100), (-30, 70), (i64::MIN, 0), (i64::MAX, 100)] {
            let answer = ok(client.put(&path, &json!({"score": step.to_string()})));
            assert_eq!(answer["entry"]["score"], expected, "{step}: {answer}");
        }
        let (status, problem) = client.put(&path, &json!({"score": 101, "op": "set"}));
        assert_eq!((status, &problem["code"]), (409, &json!("out_of_range")), "{problem}");
    }
    // Without clamping they are refused, as the bound that is left out stays.
    ok(client.put(BOARD, &json!({"keys": [{"name": "hp", "above_max": null}]})));
    let (status, problem) = client.put(&format!("{BOARD}/members/m1"), &json!({"score": 1}));
    assert_eq!((status, &problem["code"]), (409, &json!("out_of_range")), "{problem}");
    served.end();
}

fn a_trim_takes_away_scores_that_cannot_be_true(place: Place) {
    let served = place.start(3);
    let client = &served.client();
    let keys = json!([{"name": "points"}, {"name": "time_ms", "order": "asc"}]);
    ok(client.put(BOARD, &json!({"keys": keys})));
    let job = |n: i64| json!({"board": "arena", "member": format!("m{n:03}"), "score": [n / 2, n % 2]});
    let jobs: Vec<Value> = (0..600).map(job).collect();
    let answer = ok(client.post("/v1/jobs", &jobs.into()));
    assert_eq!(answer["results"].as_array().map(Vec::len), Some(600));
    let trim = |body: Value| count_of(&ok(client.post(&format!("{BOARD}:trim"), &body))["removed"]);
    // Better than [290, 1] are [290, 0] and all with more points.
    assert_eq!(trim(json!({"better_than": [290, 1]})), 19);
    assert_eq!(trim(json!({"better_than": [290, 1]})), 0);
    assert_eq!(trim(json!({"better_than": 200})), 179);
    assert_eq!(trim(json!({"worse_than": 100})), 200);
    let top = ok(client.get(&format!("{BOARD}/top?limit=1")));
    assert_eq!((&top["entries"][0]["score"], count_of(&top["total"])), (&json!([200, 0]), 202), "{top}");
    served.end();
}
