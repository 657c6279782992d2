//! What keys are as boards, and what HTTP shows of them.

use serde_json::json;

use crate::support::client::entry_path;
use crate::support::node::Node;
use crate::support::redis::{ask, start};

#[test]
fn the_first_zadd_makes_a_board_whose_positions_are_those_of_zrevrange() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (node, mut redis) = start(folder.path(), Node::shards(1));
    let http = node.client();
    assert_eq!(ask(&mut redis, &["ZADD", "arena", "1.5", "a", "2", "b", "2", "c", "-inf", "d"]), "4");
    let (_, board) = http.get("/v1/boards/arena");
    assert_eq!((&board["keys"][0]["type"], &board["keys"][0]["order"]), (&json!("float"), &json!("desc")));
    assert_eq!(board["ties"], "member_desc");
    assert_eq!(ask(&mut redis, &["ZREVRANGE", "arena", "0", "-1"]), r#"["c" "b" "a" "d"]"#);
    let (_, top) = http.get("/v1/boards/arena/top?limit=10");
    let members: Vec<_> =
        top["entries"].as_array().expect("a list").iter().map(|entry| &entry["member"]).collect();
    assert_eq!(members, ["c", "b", "a", "d"]);
    assert_eq!(http.get(&entry_path("arena", "a")).1["position"], 3);
    assert_eq!(ask(&mut redis, &["ZREVRANK", "arena", "a"]), "2");
    assert_eq!(ask(&mut redis, &["ZRANK", "arena", "a", "WITHSCORE"]), r#"[1 "1.5"]"#);
    // What HTTP writes, Redis' protocol reads.
    assert_eq!(http.put("/v1/boards/arena/members/e", &json!({"score": 0.1})).0, 200);
    assert_eq!(ask(&mut redis, &["ZSCORE", "arena", "e"]), r#""0.1""#);
    // A board without entries is no key, and keeps its definition.
    assert_eq!(ask(&mut redis, &["ZREM", "arena", "a", "b", "c", "d", "e", "none"]), "5");
    assert_eq!(ask(&mut redis, &["EXISTS", "arena"]), "0");
    assert_eq!(http.get("/v1/boards/arena").0, 200);
    assert_eq!(ask(&mut redis, &["ZADD", "arena", "1", "a"]), "1");
    assert_eq!(ask(&mut redis, &["DEL", "arena", "none"]), "1");
    assert_eq!(http.get("/v1/boards/arena").0, 404);
}

#[test]
fn a_board_of_integers_answers_with_all_digits_and_by_its_own_order() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (node, mut redis) = start(folder.path(), Node::shards(3));
    let http = node.client();
    let times = json!({"keys": [{"name": "ms", "order": "asc"}], "ties": "member"});
    assert_eq!(http.put("/v1/boards/times", &times).0, 201);
    let greatest = "9223372036854775807";
    assert_eq!(ask(&mut redis, &["ZADD", "times", greatest, "z", "10", "a", "20", "b", "20", "c"]), "4");
    assert_eq!(ask(&mut redis, &["ZSCORE", "times", "z"]), format!("{greatest:?}"));
    assert_eq!(ask(&mut redis, &["ZINCRBY", "times", "-1", "z"]), r#""9223372036854775806""#);
    // The best is the least: its positions are those of ZRANGE.
    assert_eq!(ask(&mut redis, &["ZRANGE", "times", "0", "1"]), r#"["a" "b"]"#);
    assert_eq!(ask(&mut redis, &["ZRANK", "times", "a"]), "0");
    assert_eq!(ask(&mut redis, &["ZREVRANK", "times", "a"]), "3");
    assert_eq!(http.get(&entry_path("times", "a")).1["position"], 1);
    assert_eq!(ask(&mut redis, &["ZCOUNT", "times", "(10", "20.5"]), "2");
    assert_eq!(ask(&mut redis, &["ZADD", "times", "LT", "CH", "15", "a", "15", "b"]), "1");
    let refused = ask(&mut redis, &["ZADD", "times", "1.5", "a"]);
    assert!(refused.contains("not a valid float") && refused.contains("fraction"), "{refused}");
    assert_eq!(ask(&mut redis, &["ZSCORE", "times", "a"]), r#""10""#);
}

#[test]
fn boards_that_are_no_sorted_sets_and_policies_that_contradict_are_refused_in_words() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (node, mut redis) = start(folder.path(), Node::shards(1));
    let http = node.client();
    for (name, definition) in [
        ("two", json!({"keys": [{"name": "points"}, {"name": "ms", "order": "asc"}]})),
        ("some", json!({"kind": "top_k", "capacity": 10})),
        ("best", json!({"policy": "best"})),
        ("sum", json!({"policy": "incr"})),
    ] {
        assert_eq!(http.put(&format!("/v1/boards/{name}"), &definition).0, 201, "{name}");
    }
    for (command, expect) in [
        ("ZADD two 1 a", "2 keys"),
        ("ZRANGE two 0 -1", "2 keys"),
        ("ZADD some 1 a", "top_k"),
        ("ZADD best 1 a", "use ZADD with GT"),
        ("ZADD sum 1 a", "use ZINCRBY"),
        ("ZADD arena@day 1 a", "ok"),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let said = ask(&mut redis, &words);
        if expect == "ok" {
            assert_eq!(said, "1", "{command}");
        } else {
            assert!(said.starts_with("error") && said.contains(expect), "{command}: {said}");
        }
    }
    assert_eq!(ask(&mut redis, &["ZADD", "best", "GT", "5", "a", "7", "b"]), "2");
    assert_eq!(ask(&mut redis, &["ZADD", "best", "GT", "CH", "4", "a", "8", "b"]), "1");
    assert_eq!(ask(&mut redis, &["ZINCRBY", "sum", "5", "a"]), r#""5""#);
    assert_eq!(ask(&mut redis, &["ZINCRBY", "sum", "5", "a"]), r#""10""#);
}

#[test]
fn a_windows_instance_is_read_by_its_name_behind_an_at_sign() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (node, mut redis) = start(folder.path(), Node::shards(1));
    let http = node.client();
    assert_eq!(http.put("/v1/boards/arena", &json!({"windows": ["all", "week"]})).0, 201);
    assert_eq!(ask(&mut redis, &["ZADD", "arena", "1", "a", "2", "b"]), "2");
    assert_eq!(ask(&mut redis, &["ZREVRANGE", "arena@week", "0", "-1"]), r#"["b" "a"]"#);
    assert_eq!(ask(&mut redis, &["ZCARD", "arena@all"]), "2");
    let refused = ask(&mut redis, &["ZADD", "arena@week", "3", "c"]);
    assert!(refused.contains("read only") && refused.contains("write to arena"), "{refused}");
    // It has no window of this name, and neither has a board of one window.
    assert_eq!(ask(&mut redis, &["ZCARD", "other@day"]), "0");
    assert_eq!(ask(&mut redis, &["ZADD", "scores", "1", "a"]), "1");
    for key in ["arena@day", "arena@s1", "scores@day", "scores@all", "scores@2026-W47"] {
        assert_eq!(ask(&mut redis, &["EXISTS", key]), "0", "{key}");
        assert_eq!(ask(&mut redis, &["ZSCORE", key, "c"]), "nil", "{key}");
        assert_eq!(ask(&mut redis, &["ZADD", key, "3", "c"]), "1", "{key}");
        assert_eq!(ask(&mut redis, &["ZRANGE", key, "0", "-1"]), r#"["c"]"#, "{key}");
    }
    assert_eq!(ask(&mut redis, &["ZCARD", "arena"]), "2");
}

#[test]
fn commands_that_are_not_there_are_refused_by_name_and_counted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (node, mut redis) = start(folder.path(), Node::shards(1));
    for (command, expect) in [
        ("SET a b", "unknown command 'SET', with args beginning with: 'a' 'b'"),
        ("RENAME a b", "a board keeps its name"),
        ("BZPOPMIN a 0", "no blocking commands"),
        ("nonsense", "unknown command 'nonsense'"),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let said = ask(&mut redis, &words);
        assert!(said.contains(expect), "{said}");
    }
    let unknown =
        |name: &str| node.metric(&format!("ranktree_redis_unknown_commands_total{{command=\"{name}\"}}"));
    assert_eq!([unknown("set"), unknown("bzpopmin"), unknown("other")], [Some(1.0); 3]);
    assert!(ask(&mut redis, &["ZADD", "arena", "x", "a"]).contains("not a valid float"));
    let errors = node.metric("ranktree_redis_command_errors_total{command=\"zadd\"}");
    assert_eq!(errors, Some(1.0));
}
