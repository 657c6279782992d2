//! The publisher against a real nats-server and a real node.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use async_nats::ConnectOptions;
use futures_util::TryStreamExt;
use futures_util::future::{join_all, try_join_all};
use ranktree_client::nats::{PublishError, Publisher};
use ranktree_client::types::{DefinitionInput, EntryInput, Job, JobResult, Op, Policy};
use ranktree_client::{Error, Ranktree, Score, Token, latest, shard_of};
use serde_json::json;
use tempfile::TempDir;

use crate::support::link::Link;
use crate::support::nats::Nats;
use crate::support::node::Node;
use crate::support::{root, until};

fn job(member: &str) -> Job {
    Job::scored("arena", member, 1).op(Op::Incr)
}

/// Jobs for a board that does not exist wait for its definition, and tokens do not wait for that.
async fn arena(node: &Node) -> Ranktree {
    let client = node.client();
    client.define("arena", &DefinitionInput::new()).await.expect("it is well-formed");
    client
}

async fn servers() -> (Nats, Node, Ranktree) {
    let nats = Nats::start().await;
    let node = Node::of(&nats).await;
    let client = arena(&node).await;
    (nats, node, client)
}

async fn connect(url: &str) -> Publisher {
    Publisher::connect(url).await.expect("the server and the streams are there")
}

fn members_of(shard: u32, count: usize) -> Vec<String> {
    let members = (0..).map(|number| format!("p{number}"));
    members.filter(|member| shard_of(member, 3) == Ok(shard)).take(count).collect()
}

async fn written(publisher: &Publisher, jobs: &[Job]) -> Vec<JobResult> {
    let written = publisher.write(jobs).await.expect("a node that is ready takes requests");
    written.results.expect("there are results")
}

fn publish_error(error: Error) -> PublishError {
    match error {
        Error::Publish(error) => error,
        error => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_published_job_is_ranked() {
    let (nats, _node, client) = servers().await;
    let publisher = connect(&nats.url).await;
    assert_eq!(publisher.shards(), 3);
    let token = publisher.publish(&Job::scored("arena", "p42", 1_200)).await.expect("it is stored");
    assert_eq!(token.sequences().expect("it is a token")[0].0, 1);
    let entry = client.member("arena", "p42").after(&token).await.expect("it is applied");
    assert_eq!((entry.score, entry.rank), (Score::from(1_200), 1));
    // An answer over HTTP is 202 there: a token, and nothing else.
    let accepted =
        client.write("arena", "p42", EntryInput::from(5).op(Op::Incr)).await.expect("it is stored");
    assert_eq!((accepted.changed, accepted.entry), (None, None));
    let many = client.write_many(&[job("p42")]).await.expect("it is stored");
    assert_eq!(many.results, None);
    let all =
        latest([&token, &accepted.token, &many.token]).expect("they are tokens").expect("there are some");
    assert_eq!(client.member("arena", "p42").after(all).await.expect("it is applied").score, 1_206);
    publisher.close().await;
    let error = publisher.publish(&job("p42")).await.expect_err("it is closed");
    assert!(matches!(error, Error::Argument(_)), "{error}");
}

#[tokio::test]
async fn an_id_counts_once() {
    let (nats, _node, client) = servers().await;
    let publisher = connect(&nats.url).await;
    let publish = || publisher.publish(&job("p42")).message_id("match-8841-p42");
    let first = publish().await.expect("it is stored");
    for _ in 0..2 {
        assert_eq!(publish().await.expect("it is stored already"), first);
    }
    assert_eq!(client.member("arena", "p42").after(first).await.expect("it is applied").score, 1);
    let jobs: Vec<_> = (0..2_500).map(|number| job(&format!("p{number}"))).collect();
    let publish = || publisher.publish_many(&jobs).message_id("match-8842");
    let first = publish().await.expect("they are stored");
    assert_eq!(publish().await.expect("they are stored already"), first);
    let board = client.board("arena").after(first).await.expect("they are applied");
    assert_eq!(board.totals.all, Some(2_500));
    let rank = client.rank("arena", 1).await.expect("it is a score");
    assert_eq!(rank.better, 1, "p42 has two points, and nobody else");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_the_same_moment_share_messages_and_stay_in_order() {
    let (nats, _node, client) = servers().await;
    let before = nats.last_sequences(3).await;
    let publisher = connect(&nats.url).await;
    let mut stored = Vec::new();
    for number in 0..7_000_i64 {
        let job = Job::scored("arena", format!("p{}", number % 700), number).op(Op::Set);
        stored.push(publisher.publish(&job).submit().await.expect("there is room"));
    }
    let tokens = try_join_all(stored).await.expect("they are stored");
    let token = latest(&tokens).expect("they are tokens").expect("there are some");
    // Each member's jobs stayed in their order: the last one stands.
    let entries = client.top("arena").limit(1_000).after(token).stream();
    let entries = entries.map_ok(|entry| (entry.member, entry.score.first()));
    let found: BTreeMap<String, i64> = entries.try_collect().await.expect("all");
    assert_eq!(found, (0..700).map(|number| (format!("p{number}"), 6_300 + number)).collect());
    let after = nats.last_sequences(3).await;
    let messages = after.iter().sum::<u64>() - before.iter().sum::<u64>();
    assert!(messages < 3_500, "{messages} messages for 7,000 jobs");
}

#[tokio::test]
async fn a_job_with_an_id_has_a_message_of_its_own_and_lists_without_one_share_them() {
    let (nats, _node, _client) = servers().await;
    let publisher = connect(&nats.url).await;
    let before = nats.last_sequences(3).await[1];
    let member = &members_of(1, 1)[0];
    let mut stored = Vec::new();
    for number in 0..50 {
        let publish = publisher.publish(&job(member)).message_id(format!("match-{number}"));
        stored.push(publish.submit().await.expect("there is room"));
    }
    let tokens = try_join_all(stored).await.expect("they are stored");
    assert_eq!(tokens, (1..=50).map(|number| Token::of(1, before + number)).collect::<Vec<_>>());
    // As the documents say: one id for many jobs keeps them together.
    let jobs = vec![job(member); 50];
    publisher.publish_many(&jobs).message_id("match-50").await.expect("they are stored");
    assert_eq!(nats.last_sequences(3).await[1], before + 51);
    let lists = (0..400).map(|_| publisher.publish_many(&jobs[..2]).into_future());
    try_join_all(lists).await.expect("they are stored");
    // One for each list if they did not share.
    let messages = nats.last_sequences(3).await[1] - before - 51;
    assert!(messages < 200, "{messages} messages for 400 lists");
}

#[tokio::test]
async fn arrays_are_cut_at_a_thousand_jobs_and_127_kib() {
    let (nats, _node, client) = servers().await;
    let publisher = connect(&nats.url).await;
    let member = &members_of(0, 1)[0];
    let mut jobs = vec![job(member).meta(json!({ "text": "x".repeat(900) })); 300];
    jobs.extend(vec![job(member); 2_001]);
    let token = publisher.publish_many(&jobs).await.expect("they are stored");
    assert_eq!(client.member("arena", member).after(token).await.expect("it is applied").score, 2_301);
    let refused = async |job: Job| publisher.publish(&job).await.expect_err("it cannot be sent").to_string();
    let long = refused(job("p1").meta(json!({ "text": "x".repeat(200_000) }))).await;
    assert!(long.contains("at most"), "{long}");
    for wrong in [String::new(), "x".repeat(257)] {
        let told = refused(job(&wrong)).await;
        assert!(told.contains("1 to 256 bytes"), "{told}");
    }
    assert!(matches!(publisher.publish_many(&[]).await, Err(Error::Argument(_))));
    let id = publisher.publish(&job("p1")).message_id("é").await.expect_err("it is no id");
    assert!(id.to_string().contains("printable"), "{id}");
}

/// The node is killed between a publish, whose acknowledgement is lost, and its retry.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_acknowledgement_and_a_killed_node_count_once() {
    let (nats, mut node, client) = servers().await;
    let link = Link::to(nats.port).await;
    let before = nats.last_sequences(3).await;
    let publisher = Publisher::builder().ack_timeout(Duration::from_secs(1)).connect(link.url("nats")).await;
    let publisher = publisher.expect("the link is open");
    link.set_deaf(true);
    let publishing = publisher.publish(&job("p42")).message_id("match-8841-p42").submit().await;
    let publishing = tokio::spawn(publishing.expect("there is room"));
    until("the stream has the message", async || (nats.last_sequences(3).await[1] > before[1]).then_some(()))
        .await;
    until("its acknowledgement is lost", async || (link.lost() > 0).then_some(())).await;
    node.kill();
    assert!(!publishing.is_finished());
    let lost = link.lost();
    // The publisher sends it again, and the server acknowledges again: that is lost as well.
    until("the first retry is lost", async || (link.lost() > lost).then_some(())).await;
    link.set_deaf(false);
    let token = publishing.await.expect("it does not panic").expect("it is stored");
    node.start_again().await;
    let score = async || {
        let entry = client.member("arena", "p42").after(&token).timeout_ms(60_000).await;
        entry.expect("it is applied").score.first()
    };
    assert_eq!(score().await, 1);
    // Another process, which knows no more than the id, tries again.
    let again = connect(&nats.url).await;
    let repeated = again.publish(&job("p42")).message_id("match-8841-p42").await;
    assert_eq!(repeated.expect("it is stored already"), token);
    assert_eq!(score().await, 1);
    let last = nats.last_sequences(3).await[1];
    assert_eq!((last, token), (before[1] + 1, Token::of(1, last)));
}

#[tokio::test(flavor = "multi_thread")]
async fn giving_up_says_what_is_known() {
    let (nats, _node, _client) = servers().await;
    let link = Link::to(nats.port).await;
    let hasty =
        Publisher::builder().ack_timeout(Duration::from_millis(200)).give_up_after(Duration::from_secs(1));
    let publisher = hasty.connect(link.url("nats")).await.expect("the link is open");
    link.set_deaf(true);
    let unknown = publisher.publish(&job("p42")).message_id("match-1").await;
    let unknown = publish_error(unknown.expect_err("nobody hears the acknowledgement"));
    assert!(unknown.may_be_stored && unknown.message_id.as_deref() == Some("match-1"), "{unknown:?}");
    let many = publisher.publish_many(&[job("p42"), job("alice")]).message_id("match-2").await;
    let Err(Error::PublishMany(many)) = many else { panic!("{many:?}") };
    assert_eq!((many.token.as_ref(), many.errors().count(), many.may_be_stored()), (None, 2, true));
    // What is behind a message that failed is not sent, so that no job overtakes another.
    let first = publisher.publish_many(&vec![job("p42"); 1_500]).message_id("match-3").await;
    let Err(Error::PublishMany(first)) = first else { panic!("{first:?}") };
    assert_eq!(first.message_id.as_deref(), Some("match-3"));
    let known = |error: &PublishError| (error.message_id.clone(), error.may_be_stored);
    let id = |id: &str| Some(id.to_owned());
    let errors: Vec<_> = first.errors().map(known).collect();
    assert_eq!(errors, [(id("match-3.1.0"), true), (id("match-3.1.1"), false)]);
    // The server would take one job, published alone under the id of an array, for all of it.
    let members = members_of(1, 3);
    let shared = members.iter().map(|member| publisher.publish(&job(member)).into_future());
    for outcome in join_all(shared).await {
        let error = publish_error(outcome.expect_err("nobody hears the acknowledgement"));
        assert_eq!(known(&error), (None, true));
    }
    let Err(Error::PublishMany(many)) = publisher.publish_many(&vec![job("p42"); 1_500]).await else {
        panic!("nobody hears the acknowledgement")
    };
    assert_eq!(many.message_id, None);
    assert_eq!(many.errors().map(known).collect::<Vec<_>>(), [(None, true), (None, false)]);
    link.set_deaf(false);
    let absent = Publisher::builder().shards(3).prefix("nobody").give_up_after(Duration::from_millis(500));
    let absent = absent.connect(&nats.url).await.expect("the server is there");
    let error = publish_error(absent.publish(&job("p42")).await.expect_err("there is no stream"));
    assert!(error.detail.contains("there is no stream NOBODY_JOBS_1") && !error.may_be_stored, "{error:?}");
    let long =
        Publisher::builder().shards(3).give_up_after(Duration::from_secs(111)).connect(&nats.url).await;
    let long = long.expect_err("it is too long").to_string();
    assert!(long.contains("at most 110 s"), "{long}");
    let unknown = Publisher::builder().prefix("nobody").connect(&nats.url).await;
    let unknown = unknown.expect_err("there is no stream").to_string();
    assert!(unknown.contains("NOBODY_JOBS_0") && unknown.contains("give `shards`"), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_gets_what_waited() {
    let (mut nats, _node, client) = servers().await;
    let publisher = connect(&nats.url).await;
    nats.kill();
    let jobs =
        (0..100).map(|number| tokio::spawn(publisher.publish(&job(&format!("p{number}"))).into_future()));
    let jobs: Vec<_> = jobs.collect();
    nats.start_again().await;
    let mut tokens = Vec::new();
    for outcome in join_all(jobs).await {
        tokens.push(outcome.expect("it does not panic").expect("it is stored"));
    }
    let token = latest(&tokens).expect("they are tokens").expect("there are some");
    let page =
        client.top("arena").limit(1_000).after(token).timeout_ms(60_000).await.expect("they are applied");
    assert_eq!(page.entries.iter().map(|entry| entry.score.first()).collect::<Vec<_>>(), [1; 100]);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_count_once_while_servers_are_killed_and_connections_are_cut() {
    let (mut nats, mut node, client) = servers().await;
    let link = Link::to(nats.port).await;
    let publisher = Publisher::builder().ack_timeout(Duration::from_secs(1)).connect(link.url("nats")).await;
    let publisher = publisher.expect("the link is open");
    let mut stored = Vec::new();
    for round in 0..6 {
        let lost = link.lost();
        link.set_deaf(round == 1 || round == 3);
        for number in 0..200 {
            let job = job(&format!("p{}", number % 50));
            // Every other one has a message of its own.
            let publish = publisher.publish(&job);
            let publish = match number % 2 {
                0 => publish.message_id(format!("round-{round}-{number}")),
                _ => publish,
            };
            stored.push(publish.submit().await.expect("there is room"));
        }
        match round {
            1 | 3 => {
                until("acknowledgements are lost", async || (link.lost() > lost).then_some(())).await;
                link.cut();
            }
            2 => {
                nats.kill();
                nats.start_again().await;
            }
            4 => {
                node.kill();
                node.start_again().await;
            }
            _ => {}
        }
    }
    let tokens = try_join_all(stored).await.expect("they are stored");
    let token = latest(&tokens).expect("they are tokens").expect("there are some");
    let page =
        client.top("arena").limit(1_000).after(token).timeout_ms(60_000).await.expect("they are applied");
    assert_eq!(page.entries.iter().map(|entry| entry.score.first()).collect::<Vec<_>>(), [24; 50]);
    publisher.close().await;
}

#[tokio::test]
async fn nodes_write_jobs_and_answer() {
    let (nats, mut node, _client) = servers().await;
    let members = members_of(2, 2);
    let [first, second] = &members[..] else { panic!("{members:?}") };
    let publisher = connect(&nats.url).await;
    let jobs = [Job::scored("arena", first, 1 << 60).op(Op::Set), job(second)];
    let results = written(&publisher, &jobs).await;
    assert_eq!(results[0].entry.as_ref().expect("it is shown").score, 1 << 60);
    let short = publisher.write(&[job(first)]).changed_only().await.expect("a node answers");
    let short = short.results.expect("a node answers with them");
    assert_eq!((short.len(), short[0].changed, &short[0].entry), (1, Some(true), &None));
    let error =
        publisher.write(&[Job::scored("no board", first, 1)]).await.expect_err("it is not well-formed");
    assert!(matches!(&error, Error::Invalid(problem) if problem.errors[0].index == 0), "{error}");
    let error = publisher.write(&[job("p42"), job("alice")]).await.expect_err("they are of two shards");
    assert!(error.to_string().contains("belong to one shard"), "{error}");
    node.kill();
    let shards = until("the server knows that the node is gone", async || {
        match publisher.write(&[job(first)]).timeout(Duration::from_secs(1)).await {
            Err(Error::Unavailable(problem)) => Some(problem.shards),
            Err(Error::ConnectionFailed { may_be_applied: true, .. }) => None,
            other => panic!("{other:?}"),
        }
    })
    .await;
    assert_eq!(shards, [2]);
}

#[tokio::test]
async fn a_game_with_the_least_permissions_publishes() {
    let folder = TempDir::new().expect("there is room for temporary files");
    let config = folder.path().join("nats.conf");
    let mut text =
        fs::read_to_string(root().join("deploy/nats/ranktree.conf")).expect("it comes with the source");
    for user in ["NODE", "GAME", "REJECTS"] {
        text = text.replace(&format!("$RANKTREE_{user}_PASSWORD"), &format!("\"nats_{user}\""));
    }
    fs::write(&config, text).expect("the folder is the test's own");
    let nats = Nats::with_flags(&["-c", &config.display().to_string()]).await;
    let url = nats.url.replace("nats://", "nats://node:nats_NODE@");
    let node = Node::start(&["--nats", &url, "--shards", "3"]).await;
    let client = arena(&node).await;
    let options = || {
        let options = ConnectOptions::with_user_and_password("game".to_owned(), "nats_GAME".to_owned());
        options.custom_inbox_prefix("_INBOX.game")
    };
    let publisher = Publisher::builder().shards(3).connect_with(&nats.url, options()).await;
    let publisher = publisher.expect("the user is known");
    let token = publisher.publish(&job("p42")).message_id("match-1").await.expect("it may");
    assert_eq!(publisher.publish(&job("p42")).message_id("match-1").await.expect("it may"), token);
    assert_eq!(client.member("arena", "p42").after(token).await.expect("it is applied").score, 1);
    assert_eq!(written(&publisher, &[job("p42")]).await[0].changed, Some(true));
    let unknown = Publisher::builder().connect_with(&nats.url, options()).await;
    let unknown = unknown.expect_err("it may not ask").to_string();
    assert!(unknown.contains("give `shards`"), "{unknown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_beyond_the_bound_wait_for_room_and_dropped_ones_are_not_sent() {
    let (nats, _node, client) = servers().await;
    client.define("points", &DefinitionInput::new().policy(Policy::Incr)).await.expect("it is well-formed");
    let link = Link::to(nats.port).await;
    let publisher = Publisher::builder().max_waiting(2).ack_timeout(Duration::from_secs(1));
    let publisher = publisher.connect(link.url("nats")).await.expect("the link is open");
    let members = members_of(0, 3);
    link.set_deaf(true);
    let first = publisher.publish(&job(&members[0])).submit().await.expect("there is room");
    until("it is on its way", async || (link.lost() > 0).then_some(())).await;
    // It waits behind the first; then its future is dropped.
    let dropped = tokio::spawn(publisher.publish(&job(&members[1])).into_future());
    until("it waits", async || {
        // There is no room for a third.
        let third = publisher.publish(&job(&members[2])).submit();
        tokio::time::timeout(Duration::from_millis(50), third).await.is_err().then_some(())
    })
    .await;
    dropped.abort();
    assert!(dropped.await.is_err_and(|error| error.is_cancelled()));
    link.set_deaf(false);
    let first = first.await.expect("it is stored");
    let third = publisher.publish(&job(&members[2])).await.expect("there is room again");
    let token = latest([&first, &third]).expect("they are tokens").expect("there are some");
    let page = client.top("arena").after(token).await.expect("they are applied");
    let mut found: Vec<_> = page.entries.iter().map(|entry| &*entry.member).collect();
    found.sort_unstable();
    let mut expected = vec![&*members[0], &*members[2]];
    expected.sort_unstable();
    assert_eq!(found, expected);
}
