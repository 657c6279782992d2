//! A member is removed from every board: what its version holds for, whatever comes late, and what is left of
//! it in lists of rejected jobs. At a node that owns all shards, and through one that owns none; and after a
//! kill.

use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::client::{Client, entry_path};
use crate::support::node::Node;
use crate::support::place::{Place, at_each_place};
use crate::support::raw::ask;

const SHARDS: u16 = 3;

at_each_place![
    the_version_of_a_removal_holds_for_every_board_and_the_profile_whatever_was_there,
    rejected_jobs_of_an_erased_member_have_nothing_of_it,
    a_removal_whose_version_is_in_a_body_removes_nothing,
    who_writes_the_greatest_version_to_a_board_protects_no_other_from_a_removal_or_a_ban,
];

fn ok((status, answer): (u16, Value)) -> Value {
    assert!((200..300).contains(&status), "{status}: {answer}");
    answer
}

fn post(client: &Client, job: &Value) -> Value {
    ok(client.post("/v1/jobs", job))["results"][0].clone()
}

fn erase(client: &Client, member: &str, version: Option<u64>) -> (u16, Value) {
    let version = version.map(|version| format!("?version={version}")).unwrap_or_default();
    client.send(Method::DELETE, &format!("/v1/members/{member}{version}"), None).expect("an answer")
}

/// Jobs of a member that come late, of each kind.
fn late_jobs(member: &str, version: u64) -> [Value; 6] {
    [
        json!({ "member": member, "op": "profile", "profile": { "name": "Alice" }, "version": version }),
        json!({ "member": member, "board": "arena", "score": 7, "version": version }),
        json!({ "member": member, "board": "daily", "score": 7, "op": "incr", "version": version }),
        json!({ "member": member, "board": "never", "score": 7, "version": version }),
        json!({ "member": member, "scores": { "arena": 1, "never": 2 }, "version": version }),
        json!({ "member": member, "op": "remove", "version": version }),
    ]
}

fn the_version_of_a_removal_holds_for_every_board_and_the_profile_whatever_was_there(place: Place) {
    let mut service = place.start(SHARDS);
    let client = service.client();
    for (board, windows) in [("arena", json!(["all"])), ("daily", json!(["day"])), ("never", json!(["all"]))]
    {
        ok(client.put(&format!("/v1/boards/{board}"), &json!({ "windows": windows })));
    }
    // Unknown; on boards without a profile; with a profile and on no board; with both, and with versions.
    let profile =
        |member: &str| json!({ "member": member, "op": "profile", "profile": { "n": 1 }, "version": 3 });
    let score =
        |member: &str| json!({ "member": member, "scores": { "arena": 5, "daily": 5 }, "version": 4 });
    for jobs in [vec![score("scored")], vec![profile("told")], vec![profile("both"), score("both")]] {
        assert_eq!(client.post("/v1/jobs", &json!(jobs)).0, 200);
    }
    let members = ["unknown", "scored", "told", "both"];
    for member in members {
        assert_eq!(erase(&client, member, Some(8)).0, 200, "{member}");
    }
    let late = |service: &Node| {
        let client = service.client().waiting_for_writes();
        for member in members {
            for version in [3, 7, 8] {
                for job in late_jobs(member, version) {
                    assert_eq!(post(&client, &job)["rejected"], "stale_version", "{job}");
                }
                assert_eq!(erase(&client, member, Some(version)).0, 409, "{member}");
            }
            assert_eq!(ok(client.get(&format!("/v1/members/{member}")))["entries"], json!([]));
        }
    };
    late(&service);
    if matches!(place, Place::OwnsAll) {
        service.kill9();
        service.restart();
        late(&service);
    }
    let client = service.client();
    for member in members {
        for job in late_jobs(member, 9).into_iter().take(4) {
            assert_eq!(post(&client, &job)["changed"], true, "{job}");
        }
        let entry = ok(client.get(&format!("{}?profile=true", entry_path("arena", member))));
        assert_eq!((&entry["score"], &entry["profile"]["name"]), (&json!(7), &json!("Alice")));
        // Without a version nothing is remembered beyond what entries knew.
        assert_eq!(erase(&client, member, None).0, 200);
        assert_eq!(client.get(&entry_path("arena", member)).0, 404);
    }
    service.end();
}

fn rejects(client: &Client) -> Vec<Value> {
    ok(client.get("/v1/rejects?limit=1000"))["rejects"].as_array().expect("a list").clone()
}

fn rejected_jobs_of_an_erased_member_have_nothing_of_it(place: Place) {
    let mut service = place.start(SHARDS);
    let client = service.client();
    let bounded = json!({ "keys": [{ "name": "score", "max": 10 }] });
    ok(client.put("/v1/boards/arena", &bounded));
    let job = |member: &str, secret: &str| json!({ "board": "arena", "member": member, "score": 11, "meta": { "secret": secret } });
    for round in 0..4 {
        for member in ["erased", "other"] {
            let secret = format!("{member} {round}");
            assert_eq!(post(&client, &job(member, &secret))["rejected"], "out_of_range");
        }
    }
    let text = |client: &Client| json!(rejects(client)).to_string();
    assert_eq!(rejects(&client).len(), 8);
    assert!(text(&client).contains("\"erased\"") && text(&client).contains("erased 3"));
    assert_eq!(erase(&client, "erased", None).0, 200);
    let nothing_is_left = |service: &Node| {
        let client = service.client();
        let all = rejects(&client);
        let of_erased: Vec<&Value> =
            all.iter().filter(|reject| reject["job"] == json!({ "erased": true })).collect();
        assert_eq!((all.len(), of_erased.len()), (8, 4), "{all:?}");
        for reject in of_erased {
            assert_eq!(reject["reason"], "out_of_range");
            assert!(reject["detail"].as_str().is_some_and(|text| text.contains("was erased")), "{reject}");
        }
        let text = text(&client);
        assert!(!text.contains("\"member\":\"erased\"") && !text.contains("erased 3"), "{text}");
        assert!(text.contains("other 3"), "others keep theirs");
    };
    nothing_is_left(&service);
    if matches!(place, Place::OwnsAll) {
        service.kill9();
        service.restart();
        nothing_is_left(&service);
        assert!(service.terminate().success());
        service.restart();
        nothing_is_left(&service);
    }
    // What comes afterwards is another matter.
    let client = service.client();
    assert_eq!(post(&client, &job("erased", "later"))["rejected"], "out_of_range");
    assert!(text(&client).contains("later"));
    service.end();
}

/// As a token of some boards may: their entries, and the profile if the token writes those.
fn who_writes_the_greatest_version_to_a_board_protects_no_other_from_a_removal_or_a_ban(place: Place) {
    let service = place.start(SHARDS);
    let client = service.client();
    for (board, windows) in [("theirs", json!(["day", "all"])), ("a", json!(["all"])), ("b", json!(["day"]))]
    {
        ok(client.put(&format!("/v1/boards/{board}"), &json!({ "windows": windows })));
    }
    let boards_of = |member: &str, filter: &str| -> Vec<String> {
        let of_member = ok(client.get(&format!("/v1/members/{member}{filter}")));
        let entries = of_member["entries"].as_array().expect("a list");
        entries.iter().map(|entry| entry["board"].as_str().expect("a name").to_owned()).collect()
    };
    for (number, (greatest, has_profile)) in
        [(u64::MAX, false), (u64::MAX, true), (i64::MAX.unsigned_abs(), true), (8, false)]
            .into_iter()
            .enumerate()
    {
        let member = format!("m{number}");
        let write = |board: &str, version: u64| {
            let job = json!({ "member": member, "board": board, "score": 5, "version": version });
            assert_eq!(post(&client, &job)["changed"], true);
        };
        write("a", 3);
        write("b", 3);
        write("theirs", greatest);
        if has_profile {
            let job =
                json!({ "member": member, "op": "profile", "profile": { "n": 1 }, "version": greatest });
            assert_eq!(post(&client, &job)["changed"], true);
        }
        let hidden = json!({ "member": member, "op": "hide", "version": 7 });
        assert_eq!(post(&client, &hidden)["changed"], true, "{greatest}");
        assert_eq!(boards_of(&member, ""), Vec::<String>::new());
        let shown = json!({ "member": member, "op": "show", "version": 8 });
        assert_eq!(post(&client, &shown)["changed"], true);
        let (status, told) = erase(&client, &member, Some(8));
        assert_eq!((status, &told["code"]), (409, &json!("stale_version")), "of all boards: {told}");
        let (status, told) = erase(&client, &member, Some(9));
        let left = usize::from(greatest >= 9);
        let told_counts = (&told["changed"], &told["counts"]["boards"], &told["counts"]["changed"]);
        assert_eq!((status, told_counts), (200, (&json!(true), &json!(3), &json!(3 - left))), "{told}");
        let detail = told["detail"].as_str().unwrap_or_default();
        if left == 0 {
            assert_eq!((detail, &told["counts"]["left"]), ("", &Value::Null), "{told}");
            continue;
        }
        assert_eq!(told["counts"]["left"], 1, "{told}");
        assert!(detail.contains("board theirs") && detail.contains("without a version"), "{told}");
        assert_eq!(detail.contains("the profile"), has_profile, "{told}");
        assert_eq!(boards_of(&member, ""), ["theirs"]);
        // The removal holds where it applied: nothing older comes back.
        for board in ["a", "b"] {
            let late = json!({ "member": member, "board": board, "score": 5, "version": 9 });
            assert_eq!(post(&client, &late)["rejected"], "stale_version");
        }
        assert_eq!(erase(&client, &member, None).0, 200);
        assert_eq!(boards_of(&member, "?hidden=true"), Vec::<String>::new());
    }
    service.end();
}

/// Its client believes that the version holds.
fn a_removal_whose_version_is_in_a_body_removes_nothing(place: Place) {
    let service = place.start(SHARDS);
    let client = service.client();
    post(&client, &json!({ "member": "p", "board": "arena", "score": 5, "version": 4 }));
    let address = service.base().trim_start_matches("http://");
    for path in ["/v1/members/p", "/v1/boards/arena/members/p", "/v1/boards/arena"] {
        // As curl -X DELETE --json sends it.
        let head = format!("DELETE {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
        let said = ask(address, &format!("{head}content-length: 13\r\n\r\n{{\"version\":9}}"));
        assert!(said.starts_with("HTTP/1.1 422") && said.contains("bad_parameter"), "{path}: {said}");
        assert!(said.contains("?version="), "{path}: {said}");
    }
    assert_eq!(ok(client.get(&entry_path("arena", "p")))["score"], 5);
    assert_eq!(erase(&client, "p", Some(9)).0, 200);
    let late = json!({ "member": "p", "board": "arena", "score": 5, "version": 9 });
    assert_eq!(post(&client, &late)["rejected"], "stale_version");
    service.end();
}
