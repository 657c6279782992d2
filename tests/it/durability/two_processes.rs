//! Two services on one data directory: the second one is refused, and the first one keeps running.

use serde_json::json;

use crate::support::command::run;
use crate::support::node::Node;

#[test]
fn a_data_directory_belongs_to_one_process_at_a_time() {
    let mut first = Node::shards(2).start();
    let (status, words) = Node::at(first.data_dir()).shards(2).refusal();
    assert_eq!(status.code(), Some(2), "{words}");
    assert!(words.contains("in use by another process"), "{words}");
    let verified = run("verify", first.data_dir());
    assert_eq!(verified.status.code(), Some(2), "verify must not read what is being written");
    let put = first.client().put("/v1/boards/arena/members/p42", &json!({"score": 1}));
    assert_eq!(put.0, 200, "{}", put.1);
    first.terminate();
    first.verify();
}
