//! Pages of rejects, from real directories.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::Value;
use tempfile::TempDir;

use crate::http::tests::{Fixture, start};
use crate::job::RejectCode;
use crate::state::Applied;
use crate::storage::codec::{DeltaEncoder, RejectRecord};
use crate::storage::{Commit, StorageResources, Store};
use crate::types::{Sequence, ShardId, Timestamp};

const SHARDS: u16 = 3;

struct Stored {
    service: Fixture,
    _folder: TempDir,
}

fn stored() -> Stored {
    let service = start(SHARDS);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let resources = StorageResources::new(8 << 20, SHARDS);
    for shard in &service.api.operations.node.shards {
        let path = folder.path().join(shard.id.to_string());
        let store = Store::open(&path, shard.id, SHARDS, &resources).expect("a new directory");
        shard.store.put(Arc::new(store));
    }
    Stored { service, _folder: folder }
}

fn reject(sequence: u64, index: u32, seconds: i64, code: RejectCode) -> RejectRecord {
    let time = Timestamp::from_micros(seconds * 1_000_000).expect("a good time");
    let job = format!("{{\"board\":\"b\",\"at\":{sequence}}}").into_bytes();
    RejectRecord { sequence: Sequence(sequence), index, code, detail: "why".to_owned(), job, time }
}

impl Stored {
    fn commit(&self, shard: u16, rejects: Vec<RejectRecord>) {
        let sequence = rejects.last().expect("there are some").sequence;
        let applied = Applied { sequence, ..Applied::default() };
        let delta = DeltaEncoder::new(sequence, applied, &[], 0).finish();
        let store =
            self.service.api.operations.node.shards[ShardId(shard).index()].store.get().expect("it is open");
        store.commit(&Commit { applied, delta, rejects, ..Commit::default() }, false).expect("it is written");
    }

    /// Each as shard, sequence and index, and where the next page begins.
    async fn page(&self, query: &str) -> (Vec<(u64, u64, u64)>, Option<String>) {
        let answer = self.service.get(&format!("/v1/rejects?{query}")).await;
        let number = |value: &Value| value.as_u64().expect("a number");
        let places = answer["rejects"].as_array().expect("a list").iter();
        let places =
            places.map(|one| (number(&one["shard"]), number(&one["sequence"]), number(&one["index"])));
        (places.collect(), answer["next_cursor"].as_str().map(str::to_owned))
    }

    /// All pages, and how many they are.
    async fn all(&self, query: &str) -> (Vec<(u64, u64, u64)>, usize) {
        let (mut all, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let (places, next) = self.page(&format!("{query}&cursor={cursor}")).await;
            all.extend(places);
            pages += 1;
            match next {
                Some(next) => cursor = next,
                None => return (all, pages),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejects_of_all_shards_are_in_one_order_whatever_the_size_of_pages() {
    use RejectCode::{BadScore, Malformed, StaleVersion};
    let stored = stored();
    assert_eq!(stored.all("limit=10").await, (vec![], 1));
    // Equal times within and across shards.
    stored.commit(0, vec![reject(1, 0, 0, BadScore), reject(4, 0, 10, Malformed)]);
    stored.commit(1, vec![reject(1, 7, 0, Malformed), reject(9, 0, 10, BadScore)]);
    stored.commit(1, vec![reject(9, 1, 10, StaleVersion), reject(12, 0, 30, BadScore)]);
    stored.commit(0, vec![reject(5, 0, 20, BadScore), reject(5, 1, 20, BadScore)]);
    let expected =
        vec![(1, 12, 0), (0, 5, 1), (0, 5, 0), (0, 4, 0), (1, 9, 1), (1, 9, 0), (0, 1, 0), (1, 1, 7)];
    for limit in 1..=9 {
        assert_eq!(stored.all(&format!("limit={limit}")).await.0, expected, "pages of {limit}");
    }
    let only = |keep: fn(&(u64, u64, u64)) -> bool| expected.iter().copied().filter(keep).collect::<Vec<_>>();
    assert_eq!(stored.all("limit=2&shard=1").await.0, only(|place| place.0 == 1));
    assert_eq!(stored.all("shard=2").await.0, []);
    let of_reason = [(0, 4, 0), (1, 1, 7)];
    assert_eq!(stored.all("limit=1&reason=malformed").await.0, of_reason);
    assert_eq!(stored.all("shard=1&reason=stale_version").await.0, [(1, 9, 1)]);
    // What comes meanwhile is in none of the pages that follow the first one, also of a shard that had none.
    let (first, next) = stored.page("limit=2").await;
    stored.commit(0, vec![reject(8, 0, 15, BadScore)]);
    stored.commit(2, vec![reject(1, 0, 5, BadScore)]);
    let (rest, _) = stored.page(&format!("cursor={}", next.expect("there is more"))).await;
    assert_eq!([first, rest].concat(), expected);
    assert_eq!(stored.all("limit=3").await.0.len(), expected.len() + 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_reads_a_bounded_number_of_rejects_however_few_the_filters_let_through() {
    const OTHERS: u64 = 3_500;
    let stored = stored();
    stored.commit(1, vec![reject(1, 0, 1, RejectCode::Malformed)]);
    let others = (2..2 + OTHERS).map(|sequence| reject(sequence, 0, 2, RejectCode::BadScore));
    stored.commit(1, others.collect());
    let (found, next) = stored.page("limit=5&reason=malformed").await;
    assert_eq!(found, []);
    assert!(next.is_some(), "there is more to look at");
    // 1,005 at a time.
    assert_eq!(stored.all("limit=5&reason=malformed").await, (vec![(1, 1, 0)], 4));
    // Long ones end a page earlier.
    let long =
        |sequence| RejectRecord { job: vec![0; 4_096], ..reject(sequence, 0, 3, RejectCode::TooLarge) };
    stored.commit(2, (1..=100).map(long).collect());
    let (first, next) = stored.page("limit=1000&reason=too_large").await;
    assert!((40..100).contains(&first.len()) && next.is_some(), "{} of 24 KiB each", first.len());
    assert_eq!(stored.all("limit=1000&reason=too_large").await.0.len(), 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_parameters_of_rejects_are_refused_with_the_reason() {
    let stored = stored();
    let service = &stored.service;
    stored.commit(0, vec![reject(1, 0, 1, RejectCode::BadScore), reject(2, 0, 1, RejectCode::BadScore)]);
    let (_, next) = stored.page("limit=1&shard=0").await;
    let next = next.expect("there is more");
    for (query, code, said) in [
        ("shard=3".to_owned(), "bad_parameter", "numbered from 0 to 2"),
        ("shard=x".to_owned(), "bad_parameter", "whole number"),
        ("reason=bad".to_owned(), "bad_parameter", "the reasons are malformed, unknown_board"),
        ("limit=0".to_owned(), "bad_parameter", "at least 1"),
        ("limit=1001".to_owned(), "too_large", "at most 1000"),
        ("cursor=x".to_owned(), "bad_cursor", "this shard and reason"),
        (format!("cursor={next}"), "bad_cursor", "this shard and reason"),
        (format!("cursor={next}&shard=1"), "bad_cursor", "this shard and reason"),
        (format!("cursor={next}&shard=0&reason=malformed"), "bad_cursor", "this shard and reason"),
    ] {
        let (status, problem) = service.send("GET", &format!("/v1/rejects?{query}"), "").await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{query}: {problem}");
        assert_eq!(problem["code"], code, "{query}: {problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(said)), "{problem}");
    }
    // While the writer reopens one store, the rejects of other shards can still be read.
    service.api.operations.node.shards[1].store.take();
    let (status, problem) = service.send("GET", "/v1/rejects", "").await;
    assert_eq!((status, &problem["code"]), (StatusCode::SERVICE_UNAVAILABLE, &"shard_unavailable".into()));
    assert_eq!(stored.all("shard=0").await.0, [(0, 2, 0), (0, 1, 0)]);
}

/// The writer is a script here, and tells nobody what the store has found: this does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejects_that_are_damaged_are_refused_as_such_and_the_node_says_so() {
    let stored = stored();
    stored.commit(1, vec![reject(1, 0, 1, RejectCode::BadScore)]);
    stored.commit(0, vec![reject(2, 0, 1, RejectCode::BadScore)]);
    let shard = &stored.service.api.operations.node.shards[1];
    let store = shard.store.get().expect("it is open");
    assert_eq!(store.first_damage(), None);
    let key = store.keys_from(&[0x03]).expect("readable").remove(0);
    store.damage(&key, Some(b"\xff")).expect("the disk takes it");
    let (status, problem) = stored.service.send("GET", "/v1/rejects", "").await;
    assert_eq!((status, &problem["code"]), (StatusCode::SERVICE_UNAVAILABLE, &"shard_damaged".into()));
    let detail = problem["detail"].as_str().expect("text");
    assert!(detail.contains("shard 1") && detail.contains("ranktree verify"), "{detail}");
    assert_eq!(stored.all("shard=0").await.0, [(0, 2, 0)]);

    let damage = store.first_damage().expect("it was found");
    assert!(
        damage.contains("is damaged: ") && damage.contains("ranktree restore --from SNAPSHOT"),
        "{damage}"
    );
    assert!(shard.health.note_damage(damage) && !shard.health.note_damage("something else"));
    let status = stored.service.get("/v1/status").await;
    assert_eq!((&status["ready"], &status["degraded"]), (&true.into(), &true.into()), "{status}");
    assert_eq!(
        (&status["shards"][0]["damage"], &status["shards"][1]["damage"]),
        (&Value::Null, &damage.into())
    );
    let ready = stored.service.get("/readyz").await;
    let ready = ready.as_str().expect("text");
    assert!(ready.starts_with("ready, degraded\nshard 1: its files are damaged: "), "{ready}");
}

/// As README has the request, to be completed by whoever sends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_filter_of_rejects_is_none() {
    let stored = stored();
    stored.commit(1, vec![reject(1, 0, 1, RejectCode::Malformed)]);
    assert_eq!(stored.all("reason=&shard=").await.0, [(1, 1, 0)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejects_of_a_member_are_those_that_its_erasure_reaches() {
    let stored = stored();
    let of = |sequence: u64, job: &str| RejectRecord {
        job: job.as_bytes().to_vec(),
        ..reject(sequence, 0, 1, RejectCode::BadScore)
    };
    stored.commit(
        0,
        vec![
            of(1, r#"{"member":"p42","board":"b"}"#),
            of(2, r#"{"member":"p4","board":"b"}"#),
            of(3, r#"[{"member":"p42"},1"#),
        ],
    );
    stored.commit(
        1,
        vec![
            of(1, r#"{"member":"q","meta":{"friend":"p42"}}"#),
            of(2, r#"{"board":"b","member":"p42"}"#),
            of(3, r#"{"Member":"p42"}"#),
        ],
    );
    for limit in 1..4 {
        let all = stored.all(&format!("member=p42&limit={limit}")).await.0;
        assert_eq!(all, [(0, 3, 0), (0, 1, 0), (1, 2, 0)], "{limit}");
    }
    assert_eq!(stored.all("member=p42&shard=1").await.0, [(1, 2, 0)]);
    assert_eq!(stored.all("member=p42&reason=malformed").await.0, []);
    assert_eq!(stored.all("member=nobody").await.0, []);
    let (_, next) = stored.page("member=p42&limit=1").await;
    let of_another = format!("/v1/rejects?member=p4&cursor={}", next.expect("there are more"));
    let too_long = format!("/v1/rejects?member={}", "m".repeat(300));
    let refusals = [
        ("GET", of_another.as_str(), "", 422, "bad_cursor"),
        ("GET", too_long.as_str(), "", 422, "bad_member"),
    ];
    stored.service.check_refusals(&refusals).await;
}
