//! Memory that the service takes at its start stays with it.

use crate::support::node::Node;

/// The memory of the process that the system has given, in MiB.
fn resident_mib(node: &Node) -> f64 {
    let answer = ureq::get(format!("{}/metrics", node.base())).call().expect("metrics are served");
    let metrics = answer.into_body().read_to_string().expect("they are text");
    let line = metrics.lines().find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
    let bytes: f64 = line.and_then(|text| text.parse().ok()).expect("the process's metrics are there");
    bytes / f64::from(1 << 20)
}

#[test]
fn memory_that_was_touched_at_the_start_stays_and_more_than_there_is_is_refused() {
    let node = Node::flags(&["--touch-memory", "512"]).start();
    let resident = resident_mib(&node);
    assert!(resident > 512.0, "{resident} MiB");
    let (_, words) = Node::flags(&["--touch-memory", "999999999"]).refusal();
    assert!(words.contains("MiB that are free") && words.contains("give a lower number"), "{words}");
}
