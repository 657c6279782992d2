//! A node whose clock is wrong says so, and reads the instances that are current by the clock of the NATS
//! server, which stamps the jobs.

use serde_json::{Value, json};

use crate::support::client::entry_path;
use crate::support::clock::shifted;
use crate::support::nats::{Nats, wait_until};
use crate::support::node::Node;
use crate::support::raw::get;

#[test]
fn a_node_whose_clock_is_wrong_says_so_and_reads_what_is_current() {
    let nats = Nats::start();
    let right = Node::with_nats(&nats).shards(2).flags(&["--node", "right"]).start();
    let season = json!({"starts": jiff::Timestamp::now().to_string(), "every": "30d"});
    let definition = json!({"windows": ["season", "all"], "season": season, "keep": 3});
    assert_eq!(right.client().put("/v1/boards/b", &definition).0, 201);
    let put = |node: &Node, member: &str, score: i64| {
        let path = format!("{}?wait=applied&windows=season", entry_path("b", member));
        let (status, answer) = node.client().put(&path, &json!({"score": score}));
        assert_eq!(status, 200, "{answer}");
        answer
    };
    put(&right, "ann", 7);
    assert_eq!(right.metric("ranktree_clock_skew_seconds"), Some(0.0));
    for (shift, seconds, words) in
        [("+400d", 34_560_000.0, "seconds ahead of that"), ("-2h", -7_200.0, "seconds behind that")]
    {
        let Some(clock) = shifted(shift) else { return };
        let variables: Vec<(&str, &str)> =
            clock.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        // One that owns a shard, and one that owns none of those that it reads.
        for own in ["0", "0-1"] {
            let node = format!("wrong{own}");
            let flags = ["--node", &node, "--own", own];
            let mut wrong = Node::with_nats(&nats).shards(2).environment(&variables).flags(&flags).start();
            let client = wrong.client();
            wait_until("its skew is known", || {
                let skew = wrong.metric("ranktree_clock_skew_seconds").unwrap_or_default();
                (skew - seconds).abs() < 60.0
            });
            let ready = get(wrong.address(), "/readyz");
            let is_told = ready.contains("\nready, degraded\n") && ready.contains(words);
            assert!(ready.starts_with("HTTP/1.1 200") && is_told, "{ready}");
            assert_eq!(client.get("/v1/status").1["degraded"], json!(true));
            wait_until("it is logged", || wrong.log().contains(words));
            for window in ["season", "s1"] {
                let (status, page) = client.get(&format!("/v1/boards/b/top?window={window}"));
                assert_eq!(
                    (status, &page["window"], &page["total"]),
                    (200, &json!("s1"), &json!(1)),
                    "{page}"
                );
            }
            let (status, board) = client.get("/v1/boards/b");
            assert_eq!(status, 200, "{board}");
            let listed: Vec<&Value> =
                board["instances"]["season"].as_array().expect("a list").iter().collect();
            assert_eq!(listed.len(), 1, "{board}");
            assert_eq!((&listed[0]["name"], &listed[0]["open"]), (&json!("s1"), &json!(true)), "{board}");
            // What a write answers is of the instance that it has entered.
            let entered = put(&wrong, "ann", 7);
            assert_eq!(entered["windows"]["season"]["window"], json!("s1"), "{entered}");
            assert!(wrong.terminate().success());
        }
    }
    let ready = get(right.address(), "/readyz");
    assert!(!ready.contains("clock"), "{ready}");
}
