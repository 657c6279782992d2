//! A node with NATS that cannot commit: the messages in the stream are applied later, and no answer
//! contradicts that. A limit on file sizes simulates the full disk.

use serde_json::json;

use crate::support::client::entry_path;
use crate::support::nats::{Nats, applied, wait_applied, wait_state};
use crate::support::node::{Node, limit_files};

#[test]
fn a_write_whose_commit_fails_has_an_unknown_outcome_and_is_applied_once_the_disk_has_room() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).stream_mib(16).start();
    let client = service.client();
    let path = format!("{}?wait=applied", entry_path("arena", "alice"));
    let (status, answer) = client.put("/v1/boards/arena", &json!({}));
    assert_eq!(status, 201, "{answer}");
    let (status, answer) = client.put(&path, &json!({ "score": 1 }));
    assert_eq!((status, &answer["changed"]), (200, &json!(true)), "{answer}");

    limit_files(&service, "0");
    let (status, answer) = client.put(&path, &json!({ "score": 2 }));
    assert_eq!((status, &answer["code"]), (503, &json!("commit_unknown")), "{answer}");
    let detail = answer["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("is applied as soon as this node can commit again"), "{detail}");
    let (status, answer) = client.get(&entry_path("arena", "alice"));
    assert_eq!((status, &answer["score"], &answer["stale"]), (200, &json!(1), &json!(true)), "{answer}");

    limit_files(&service, "unlimited");
    wait_state(&client, 0, "live");
    let last = nats.info("RANKTREE_JOBS_0").state.last_sequence;
    wait_applied(&client, &[last]);
    assert_eq!(applied(&client, 0), last);
    let (status, answer) = client.get(&entry_path("arena", "alice"));
    assert_eq!((status, &answer["score"]), (200, &json!(2)), "{answer}");
    assert!(service.terminate().success());
    service.verify();
}
