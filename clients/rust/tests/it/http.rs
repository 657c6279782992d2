//! The HTTP client against a real node.

use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::TryStreamExt;
use ranktree_client::types::{
    DefinitionInput, End, EntryInput, Job, KeyInput, Op, Policy, Reason, Ties, TrimInput, Wait, Window,
};
use ranktree_client::{Error, Ranktree, Score, Season, Time, Token};
use serde_json::json;

use crate::support::fake::Fake;
use crate::support::node::Node;
use crate::support::{free_port, until};

async fn fill(client: &Ranktree, board: &str, scores: &[(String, i64)]) -> Token {
    let jobs: Vec<_> = scores.iter().map(|(member, score)| Job::scored(board, member, *score)).collect();
    client.write_many(&jobs).await.expect("they are well-formed").token
}

fn scores(of: &[(&str, i64)]) -> Vec<(String, i64)> {
    of.iter().map(|(member, score)| ((*member).to_owned(), *score)).collect()
}

#[tokio::test]
async fn a_write_is_read_back() {
    let node = Node::alone().await;
    let client = node.client();
    let definition = DefinitionInput::new().policy(Policy::Best).ties(Ties::Member);
    let defined = client.define("written", &definition).await.expect("it is well-formed");
    assert_eq!((defined.policy, defined.ties), (Policy::Best, Ties::Member));
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_168_798);
    let job = EntryInput::from(1_200).at(at).meta(json!({ "car": "mx5" }));
    let written = client.write("written", "p42", job).wait(Wait::Applied).await.expect("it is applied");
    assert_eq!((written.changed, written.previous), (Some(true), None));
    let entry = client.member("written", "p42").after(&written.token).await.expect("it is there");
    assert_eq!((entry.score, entry.rank, entry.total), (Score::from(1_200), 1, 1));
    assert_eq!((entry.updated_at, entry.meta), (Time::from(at), json!({ "car": "mx5" })));
    let removed = client.remove("written", "p42").await.expect("it was there");
    assert_eq!(removed.changed, Some(true));
    let error = client.member("written", "p42").await.expect_err("it is gone");
    let Error::NotFound(problem) = error else { panic!("{error}") };
    assert_eq!((problem.status, &*problem.code), (404, "unknown_member"));
}

#[tokio::test]
async fn a_manual_season_is_opened() {
    let node = Node::alone().await;
    let client = node.client();
    let definition = DefinitionInput::new().windows([Window::All, Window::Season]).season(Season::Manual);
    let defined = client.define("league", &definition).await.expect("it is well-formed");
    assert_eq!(defined.season, Some(Season::Manual));
    let begin = Time::from("2100-01-01T00:00:00Z");
    let opened = client.open_season("league", Some(begin.clone())).await.expect("it is the first");
    assert_eq!((&*opened.season, opened.begin), ("s1", begin));
    let error = client.open_season("league", None).await.expect_err("the first has not begun");
    assert_eq!(error.code(), Some("season_conflict"));
    let every = DefinitionInput::new().windows([Window::Season]).season(Season::every(UNIX_EPOCH, "14d"));
    let defined = client.define("weeks", &every).await.expect("it is well-formed");
    assert_eq!(defined.season, Some(Season::every("1970-01-01T00:00:00Z", "2w")));
}

#[tokio::test]
async fn ids_of_members_survive_the_path() {
    let node = Node::alone().await;
    let client = node.client();
    let members = [
        "a/b",
        "..",
        ".",
        "日本",
        "with space",
        "%2F",
        "?a=b&c",
        "#",
        "a+b",
        ":lookup",
        "é\\\"'",
        "a,b",
        "...",
    ];
    for (member, score) in members.into_iter().zip(0_i64..) {
        client.write("ids", member, score).await.expect("it is an id");
        assert_eq!(client.member("ids", member).await.expect("it is there").member, member);
        let around = client.around("ids", member).await.expect("it is there");
        assert_eq!(around.entries[0].member, member);
        let boards = client.member_boards(member).boards(["ids"]).await.expect("it is there");
        assert_eq!(boards.entries[0].member, member);
    }
    let total = async || client.board("ids").await.expect("it is there").totals.all;
    assert_eq!(total().await, Some(13));
    for member in members {
        client.remove_everywhere(member).await.expect("it is there");
    }
    assert_eq!(total().await, Some(0));
}

#[tokio::test]
async fn integers_are_exact_up_to_64_bits() {
    let node = Node::alone().await;
    let client = node.client();
    let least = -(1 << 62);
    let keys = [KeyInput::new("points").min(least), KeyInput::new("time")];
    client.define("exact", &DefinitionInput::new().keys(keys)).await.expect("it is well-formed");
    for (number, score) in [[i64::MAX, i64::MIN], [(1 << 53) + 1, 5], [1 << 53, 4]].into_iter().enumerate() {
        let meta = json!({ "score": "1152921504606846976" });
        let job = EntryInput::from(Score::from(score)).meta(meta.clone());
        let written = client.write("exact", &format!("p{number}"), job).wait(Wait::Applied).await;
        let entry = written.expect("it is applied").entry.expect("it is shown");
        assert_eq!(entry.score, score);
        // What callers keep there is theirs.
        assert_eq!(entry.meta, meta);
    }
    assert_eq!(client.rank("exact", [(1 << 53) + 1, 5]).await.expect("it is a score").rank, 2);
    assert_eq!(client.board("exact").await.expect("it is there").keys[0].min, Some(least));
    let percentiles = client.percentiles("exact", [100]).await.expect("there are entries");
    assert_eq!(percentiles.percentiles[0].score, Some(Score::from([i64::MAX, i64::MIN])));
    let count = client.count("exact").min(1 << 53).max(i64::MAX).await.expect("it is there");
    assert_eq!((count.count, count.max), (3, Some(i64::MAX)));
    let best = client.top("exact").limit(1).await.expect("it is there");
    assert_eq!(best.entries[0].score[1], i64::MIN);
    // A version has no sign.
    let job = EntryInput::from(Score::from([1, 1])).version(u64::MAX);
    client.write("exact", "versioned", job.clone()).await.expect("it is the first");
    let error = client.write("exact", "versioned", job).wait(Wait::Applied).await.expect_err("it is applied");
    assert_eq!(error.code(), Some("stale_version"));
}

#[tokio::test]
async fn pages_are_gone_over_without_a_gap() {
    let node = Node::alone().await;
    let client = node.client();
    // Ties everywhere.
    let entries: Vec<_> = (0..500_i64).map(|number| (format!("p{number:03}"), number / 3)).collect();
    fill(&client, "pages", &entries).await;
    let best: Vec<u64> = client
        .top("pages")
        .limit(37)
        .stream()
        .map_ok(|entry| entry.position)
        .try_collect()
        .await
        .expect("all");
    assert_eq!(best, (1..=500).collect::<Vec<_>>());
    let worst = client.top("pages").limit(499).from(End::Bottom).stream();
    let worst: Vec<u64> = worst.map_ok(|entry| entry.position).try_collect().await.expect("all");
    assert_eq!(worst, (1..=500).rev().collect::<Vec<_>>());
    let middle = client.range("pages").min(10).max(20).limit(7).stream();
    let middle: Vec<i64> = middle.map_ok(|entry| entry.score.first()).try_collect().await.expect("all");
    assert_eq!(middle, (10..=20).rev().flat_map(|score| [score; 3]).collect::<Vec<_>>());
    assert_eq!(client.count("pages").min(10).max(20).await.expect("it is there").count, 33);
    fill(&client, "another", &scores(&[("p007", 1)])).await;
    let names = client.boards().limit(1).stream().map_ok(|board| board.board);
    assert_eq!(names.try_collect::<Vec<_>>().await.expect("all"), ["another", "pages"]);
    let boards = client.member_boards("p007").stream().map_ok(|entry| entry.board);
    assert_eq!(boards.try_collect::<Vec<_>>().await.expect("all"), ["another", "pages"]);
    let pages: Vec<_> = client.top("pages").limit(300).pages().try_collect().await.expect("all");
    assert_eq!(pages.iter().map(|page| page.entries.len()).collect::<Vec<_>>(), [300, 200]);
}

#[tokio::test]
async fn every_read_answers() {
    let node = Node::alone().await;
    let client = node.client();
    let given = scores(&[("alice", 30), ("bob", 20), ("carol", 20), ("dave", 10)]);
    let token = fill(&client, "reads", &given).await;
    let page = client.top("reads").limit(2).after(&token).await.expect("it is there");
    assert_eq!(page.entries.iter().map(|entry| &*entry.member).collect::<Vec<_>>(), ["alice", "bob"]);
    let later = client.positions("reads", 3).await.expect("it is there");
    assert_eq!(later.entries.iter().map(|entry| entry.rank).collect::<Vec<_>>(), [2, 4]);
    let group = client.lookup("reads", ["dave", "alice", "nobody"]).await.expect("it is there");
    let ranks: Vec<_> = group.entries.iter().map(|entry| (entry.group_rank, &*entry.member)).collect();
    assert_eq!(ranks, [(1, "alice"), (2, "dave")]);
    assert_eq!(group.not_found, ["nobody"]);
    let ranks = client.ranks("reads", [31, 20, 0]).await.expect("they are scores").ranks;
    assert_eq!(ranks.iter().map(|rank| rank.rank).collect::<Vec<_>>(), [1, 2, 5]);
    let place = client.score("reads").rank(2).await.expect("it is there");
    assert_eq!((place.score, place.tied), (Score::from(20), 2));
    let place = client.score("reads").percentile(100.0).await.expect("it is there");
    assert_eq!(place.score, 30);
    let histogram = client.histogram("reads").edges([0, 15, 25]).await.expect("it is there");
    assert_eq!(histogram.buckets.iter().map(|bucket| bucket.count).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((histogram.below, histogram.above), (0, 1));
    let around = client.around("reads", "bob").above(1).below(0).fill(true).await.expect("it is there");
    assert_eq!(around.entries.len(), 2);
    let boards = client.member_boards("bob").boards(["reads", "none"]).await.expect("it is somewhere");
    assert_eq!((boards.entries[0].rank, &*boards.not_found), (2, &["none".to_owned()][..]));
    let status = client.status().await.expect("it is alive");
    assert!(status.ready && status.shards.len() == 2, "{status:?}");
    assert!(status.shards.iter().all(|shard| shard.state == "live"), "{status:?}");
    let trim = TrimInput::new().positions_beyond(2);
    assert_eq!(client.trim("reads", &trim).await.expect("it is there").removed, 2);
    assert_eq!(client.clear("reads").await.expect("it is there").removed, 2);
    assert!(client.drop_board("reads").await.expect("it is there").dropped);
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let node = Node::alone().await;
    let client = node.client();
    let definition = DefinitionInput::new().keys([KeyInput::new("points").min(0).max(100)]);
    client.define("bounded", &definition).await.expect("it is well-formed");
    let error = client.write("bounded", "p42", 101).wait(Wait::Applied).await.expect_err("it is too much");
    assert!(matches!(&error, Error::Rejected(problem) if problem.code == "out_of_range"), "{error}");
    let jobs = [Job::scored("bounded", "p1", 1), Job::scored("bounded", "p1", 1).version(0)];
    let written = client.write_many(&jobs).await.expect("they are well-formed");
    let results = written.results.expect("there is no NATS");
    assert_eq!((results[0].changed, results[1].rejected.clone()), (Some(true), None));
    let jobs = [Job::scored("bounded", "p1", 1), Job::scored("bounded", "x".repeat(257), 1)];
    let error = client.write_many(&jobs).await.expect_err("one is not well-formed");
    let Error::Invalid(problem) = error else { panic!("{error}") };
    assert_eq!((problem.errors[0].index, problem.errors[0].code.as_str()), (1, "bad_member"));
    let differs = client.define("bounded", &DefinitionInput::new().ties(Ties::Last)).await;
    assert_eq!(differs.expect_err("it cannot change").code(), Some("board_differs"));
    let late = client.member("bounded", "p1").after("0:1000000").timeout_ms(1).await;
    let late = late.expect_err("there is no such message");
    assert!(matches!(&late, Error::NotYetApplied(problem) if problem.code == "not_yet_applied"), "{late}");
    let hidden = Job::new("p1").board("bounded").op(Op::Hide);
    client.write_many(&[hidden]).await.expect("it is well-formed");
    let stale = client.write("bounded", "p1", EntryInput::from(1).version(0)).wait(Wait::Applied).await;
    let stale = stale.expect_err("it has that version");
    assert!(matches!(&stale, Error::Rejected(problem) if problem.code == "stale_version"), "{stale}");
    let reasons = client.rejects().limit(1).stream().map_ok(|reject| reject.reason);
    let reasons: Vec<_> = reasons.try_collect().await.expect("all");
    assert_eq!(reasons, [Reason::StaleVersion, Reason::OutOfRange]);
}

#[tokio::test]
async fn no_node_is_told_from_no_answer() {
    let nobody = Ranktree::builder(format!("http://127.0.0.1:{}", free_port())).retries(1).build();
    let nobody = nobody.expect("it is an address");
    let error = nobody.write("arena", "p42", 1).await.expect_err("nobody listens");
    assert!(matches!(error, Error::ConnectionFailed { may_be_applied: false, .. }), "{error}");
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let url = format!("http://{}", silent.local_addr().expect("it listens"));
    let client = Ranktree::builder(url).timeout(Duration::from_millis(200)).retries(0).build();
    let client = client.expect("it is an address");
    let error = client.write("arena", "p42", 1).await.expect_err("it says nothing");
    assert!(matches!(error, Error::ConnectionFailed { may_be_applied: true, .. }), "{error}");
    let error = client.member("arena", "p42").await.expect_err("it says nothing");
    assert!(matches!(error, Error::ConnectionFailed { may_be_applied: false, .. }), "{error}");
    for wrong in ["127.0.0.1:8080", "ftp://127.0.0.1", "http://user:secret@127.0.0.1"] {
        assert!(matches!(Ranktree::new(wrong), Err(Error::Argument(_))), "{wrong}");
    }
}

#[tokio::test]
async fn an_overloaded_node_is_asked_again() {
    let fake = Fake::start().await;
    let client = Ranktree::new(&fake.url).expect("it is an address");
    let overloaded = r#"{"code":"overloaded","detail":"too many requests"}"#;
    fake.answer(503, "retry-after: 0\r\n", overloaded);
    fake.answer(200, "", r#"{"token":"0:1"}"#);
    assert_eq!(client.write("arena", "p42", 1).await.expect("the second time").token, "0:1");
    // Nobody knows what became of it, so that it is for the caller to decide.
    fake.answer(503, "", r#"{"code":"commit_unknown","detail":"?"}"#);
    let error = client.write("arena", "p42", 1).await.expect_err("it is not sent again");
    assert!(matches!(&error, Error::Unavailable(problem) if problem.code == "commit_unknown"), "{error}");
    assert_eq!(fake.asked().len(), 3);
    for _ in 0..3 {
        fake.answer(503, "retry-after: 0\r\n", overloaded);
    }
    let error = client.top("arena").await.expect_err("three times");
    assert_eq!(error.problem().and_then(|problem| problem.retry_after), Some(Duration::ZERO));
    assert_eq!(fake.asked().len(), 6);
    fake.answer(200, "", "no JSON");
    let error = client.top("arena").await.expect_err("it cannot be read");
    assert!(error.to_string().contains("cannot be read"), "{error}");
}

#[tokio::test]
async fn a_bearer_token_is_sent_and_judged() {
    let fake = Fake::start().await;
    let client = Ranktree::builder(&fake.url).bearer("rkt_abc").build().expect("it is an address");
    fake.answer(401, "", r#"{"code":"invalid_token","detail":"the token is unknown"}"#);
    let error = client.write("arena", "p42", 1).await.expect_err("it is refused");
    assert!(matches!(error, Error::Access(_)), "{error}");
    assert!(fake.asked()[0].to_lowercase().contains("authorization: bearer rkt_abc"), "{:?}", fake.asked());
}

#[tokio::test]
async fn a_read_waits_for_a_write_of_another_client() {
    let node = Node::alone().await;
    let client = node.client();
    let first = fill(&client, "waits", &scores(&[("p1", 1)])).await;
    let (shard, sequence) = first.sequences().expect("it is a token")[0];
    let next = Token::of(shard, sequence + 1);
    let reading = tokio::spawn(node.client().board("waits").after(next).timeout_ms(60_000).into_future());
    let mut number = 1;
    until("the read is answered", async || {
        number += 1;
        fill(&client, "waits", &[(format!("p{number}"), number)]).await;
        reading.is_finished().then_some(())
    })
    .await;
    let board = reading.await.expect("it does not panic").expect("it was applied");
    assert!(board.totals.all > Some(1), "{board:?}");
}

#[tokio::test]
async fn a_read_is_sent_again_until_the_node_is_back() {
    let mut node = Node::alone().await;
    let token = fill(&node.client(), "killed", &scores(&[("p42", 7)])).await;
    let patient = Ranktree::builder(&node.url).retries(1_000).build().expect("it is an address");
    patient.status().await.expect("it is alive");
    node.kill();
    let reading = tokio::spawn(patient.member("killed", "p42").after(token).into_future());
    let error = node.client().top("killed").await.expect_err("nobody listens");
    assert!(matches!(error, Error::ConnectionFailed { may_be_applied: false, .. }), "{error}");
    assert!(!reading.is_finished());
    node.start_again().await;
    let entry = reading.await.expect("it does not panic").expect("it was on disk");
    assert_eq!(entry.score, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_client_serves_many_tasks() {
    let node = Node::alone().await;
    let client = node.client();
    let writes = (0..50)
        .map(|number: i64| tokio::spawn(client.write("tasks", &format!("p{number}"), number).into_future()));
    for write in writes.collect::<Vec<_>>() {
        write.await.expect("it does not panic").expect("it is applied");
    }
    let entries = client.top("tasks").limit(8).stream().map_ok(|entry| entry.score.first());
    let entries: Vec<i64> = entries.try_collect().await.expect("all");
    assert_eq!(entries, (0..50).rev().collect::<Vec<_>>());
}
