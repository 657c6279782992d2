//! What is refused, in words.

use super::{SHARDS, owner};
use crate::support::nats::Nats;
use crate::support::node::Node;

#[test]
fn lists_that_name_no_shards_are_refused() {
    let nats = Nats::start();
    for (own, shards, said) in [
        ("0,x", 4, "--own: numbers of shards and ranges are expected, joined by commas"),
        ("3-2", 4, "--own: the range 3-2 ends before it begins"),
        ("0-1,1", 4, "--own: it names shard 1 twice"),
        ("4", 4, "--own: there is no shard 4 among 4"),
        ("64", 4, "--own: there is no shard 64"),
    ] {
        let (status, log) = owner(&nats, "n", own).shards(shards).refusal();
        assert_eq!(status.code(), Some(2), "{log}");
        assert!(log.contains(said), "{log}");
    }
    let (status, log) = Node::flags(&["--own", "0"]).refusal();
    assert_eq!(status.code(), Some(2), "{log}");
    assert!(log.contains("--own is set without --nats"), "{log}");
}

#[test]
fn a_node_that_disagrees_with_the_streams_is_refused() {
    let nats = Nats::start();
    let (status, log) = owner(&nats, "first", "0").refusal();
    assert_eq!(status.code(), Some(2), "{log}");
    assert!(log.contains("it is not known how many shards there are in all"), "{log}");
    let first = owner(&nats, "first", "0-1").shards(SHARDS).start();
    // The first node has made the streams of all shards.
    for shard in 0..SHARDS {
        let stream = nats.info(&format!("RANKTREE_JOBS_{shard}"));
        assert_eq!(stream.config.metadata["ranktree-shards"], SHARDS.to_string());
    }
    let boards = nats.info("RANKTREE_BOARDS").config.metadata;
    assert_eq!(
        (&*boards["ranktree-shards"], &*boards["ranktree-hash"], &*boards["ranktree-auto-create"]),
        ("4", "fnv1a-32", "true")
    );
    let (status, log) = owner(&nats, "second", "2-3").shards(6).refusal();
    assert_eq!(status.code(), Some(2), "{log}");
    assert!(log.contains("have 4 shards, and not 6: start with --shards 4"), "{log}");
    let (status, log) = owner(&nats, "second", "2-4").refusal();
    assert_eq!(status.code(), Some(2), "{log}");
    assert!(log.contains("--own: there is no shard 4: there are 4"), "{log}");
    let (status, log) = owner(&nats, "second", "2-3").flags(&["--no-auto-create"]).refusal();
    assert_eq!(status.code(), Some(2), "{log}");
    assert!(log.contains("started with --no-auto-create"), "{log}");
    drop(first);
}

/// A refused start leaves nothing behind that the next one would be refused for.
#[test]
fn a_forgotten_number_of_shards_is_told_before_a_directory_is_made() {
    let nats = Nats::start();
    let first = Node::with_nats(&nats).shards(3).stream_mib(16).start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data_dir = folder.path().join("data");
    let (status, log) = Node::with_nats(&nats).at(&data_dir).refusal();
    assert_eq!(status.code(), Some(2), "{log}");
    assert!(log.contains("have 3 shards, and not 1: start with --shards 3"), "{log}");
    assert!(!data_dir.exists(), "nothing was made");
    let second = Node::with_nats(&nats).shards(3).flags(&["--node", "second"]).at(&data_dir).start();
    drop((first, second));
}
