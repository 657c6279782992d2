//! Questions to shards over a real nats-server: owners that answer, refuse, freeze, or send anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_nats::Client;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use ranktree::applied_sequence::{AppliedSequence, applied_sequence};
use ranktree::board::Definition;
use ranktree::cluster::questions::{
    AskSubjects, AskingShards, KnownOwner, KnownShard, Link, OwnerSource, Owners, QuestionService,
    ServiceLimits, ShardEnd, StreamEnds, Trimming,
};
use ranktree::query::question::{
    BoardLife, Question, Reply, RunQuestion, RunStart, ShardReply, answer, check,
};
use ranktree::query::{AnsweringShard, AskTerms, NoReply, ShardClient};
use ranktree::state::{Applied, BoardEvent, Change, Entry, EntryState, Incarnation, Shard, Step, TreeId};
use ranktree::state_lock::{Purpose, StateLock};
use ranktree::types::{BoardName, NodeName, Score, Sequence, ShardId, Timestamp};
use ranktree::writer::{Health, ShardState};
use tokio::sync::watch;

use crate::support::nats_server::NatsServer;

const SHARD: ShardId = ShardId(0);
/// Far above what anything here needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A shard in memory, and the writer's ends of it.
struct Owner {
    shard: AnsweringShard,
    applied: AppliedSequence,
}

impl Owner {
    /// A live shard of so many members, all with the same score.
    fn new(members: u32) -> Self {
        let definition: Arc<Definition> = Arc::default();
        let mut shard = Shard::new(SHARD);
        let (board, incarnation) = (life().board, life().incarnation);
        let define =
            BoardEvent::Define { board, incarnation, number: None, definition: Arc::clone(&definition) };
        let mut step = Step { events: vec![define], ..Step::default() };
        step.applied = Applied { sequence: Sequence(5), ..Applied::default() };
        for number in 0..members {
            let member = format!("member-{number:06}");
            let score = Score::new(&[7]).expect("one key");
            let words = definition.entry_words(&score, Timestamp::default(), member.as_bytes());
            let handle = shard.members.nth_next_handle(usize::try_from(number).expect("few"));
            step.added.push(member.into_bytes().into());
            let after = Entry {
                state: EntryState::Listed(words),
                updated_at: Timestamp::default(),
                version: None,
                has_metadata: false,
            };
            step.changes.push(Change { tree: TreeId(0), handle, after: Some(after) });
        }
        shard.apply(&step);
        let (applied, seen) = applied_sequence(Sequence(5));
        let health = Arc::new(Health::default());
        health.set_state(ShardState::Live);
        let shard = AnsweringShard {
            id: SHARD,
            state: Arc::new(StateLock::new(shard)),
            applied: seen,
            health,
            store: Arc::default(),
            summaries: Arc::default(),
        };
        Self { shard, applied }
    }

    fn apply(&self, sequence: u64) {
        let applied = Applied { sequence: Sequence(sequence), ..Applied::default() };
        self.shard.state.write(Purpose::Apply).apply(&Step { applied, ..Step::default() });
        self.applied.show(Sequence(sequence));
    }

    fn direct(&self, question: &Question<'_>) -> ShardReply {
        check(question).expect("it is within the limits");
        let state = self.shard.state.read(Purpose::Read);
        ShardReply { sequence: state.applied.sequence, is_live: true, reply: answer(&state, question) }
    }
}

fn life() -> BoardLife {
    BoardLife { board: BoardName::new("arena").expect("a good name"), incarnation: Incarnation(7) }
}

fn name(text: &str) -> NodeName {
    NodeName::new(text).expect("a good name")
}

fn top(below: u32) -> Question<'static> {
    let run = RunQuestion { start: RunStart::Top, worst: None, above: 0, below, metadata: true };
    Question::Runs(life(), vec![run])
}

/// Where the stream ends, as its leader would say.
struct End(watch::Receiver<Sequence>);

impl StreamEnds for End {
    fn end(&self, _: ShardId) -> BoxFuture<'_, Result<ShardEnd, String>> {
        Box::pin(async { Ok(ShardEnd(*self.0.borrow())) })
    }
}

struct Told(Vec<KnownOwner>);

impl OwnerSource for Told {
    fn owners(&self) -> Vec<KnownOwner> {
        self.0.clone()
    }
}

/// Owners that were heard of once, and never again.
fn told(owners: &[(&str, bool)]) -> Arc<dyn OwnerSource> {
    let heard_at = Instant::now();
    let owner = |(node, is_live): &(&str, bool)| KnownOwner {
        name: name(node),
        heard_at,
        shards: vec![KnownShard { id: SHARD, is_live: *is_live, applied: 0 }],
    };
    Arc::new(Told(owners.iter().map(owner).collect()))
}

struct Scene {
    server: NatsServer,
}

impl Scene {
    async fn client(&self) -> Client {
        async_nats::connect(self.server.url()).await.expect("it is let in")
    }

    async fn link(&self) -> (Link, watch::Sender<u64>) {
        let (connected, count) = watch::channel(1);
        (Link::new(self.client().await, count), connected)
    }

    /// An owner that answers. It is dropped with what is returned.
    async fn serve(&self, node: &str, owner: &Owner, limits: ServiceLimits) -> Serving {
        let (end, ended) = watch::channel(Sequence(0));
        let (link, connected) = self.link().await;
        let shards = vec![owner.shard.clone()];
        let (subjects, trimming) = (AskSubjects::new("t"), Trimming::new(Vec::new()));
        let service = QuestionService::start(
            link,
            subjects,
            name(node),
            shards,
            Arc::new(End(ended)),
            trimming,
            limits,
        );
        Serving { service, end, connected }
    }

    async fn asking(&self, owners: Arc<dyn OwnerSource>) -> AskingShards {
        let (link, _connected) = self.link().await;
        let (subjects, owners) = (AskSubjects::new("t"), Owners::start(owners));
        AskingShards::open(link, subjects, owners, 1, Vec::new()).await.expect("it is connected")
    }
}

struct Serving {
    service: QuestionService,
    /// Where the stream ends.
    end: watch::Sender<Sequence>,
    /// Counts how often the service was connected.
    connected: watch::Sender<u64>,
}

fn with_server<F: Future<Output = ()>>(arguments: &[&str], test: impl FnOnce(Arc<Scene>) -> F) {
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    let scene = Arc::new(Scene { server: NatsServer::start(&arguments) });
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test(scene)).await.expect("it does not hang") });
}

async fn ask(asking: &AskingShards, question: &Question<'_>) -> Result<ShardReply, NoReply> {
    asking.ask(SHARD, question, AskTerms::default()).await
}

/// Asks until some owner answers: a service needs a moment to subscribe.
async fn ask_until_answered(asking: &AskingShards, question: &Question<'_>) -> ShardReply {
    loop {
        if let Ok(reply) = ask(asking, question).await {
            return reply;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Asks until nobody is there any more.
async fn ask_until_gone(asking: &AskingShards) {
    while !ask(asking, &top(1)).await.is_err_and(|why| why.to_string().contains("no node that is up owns it"))
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn a_reply_is_what_the_shard_says_in_memory_by_name_and_in_the_group() {
    with_server(&[], |scene| async move {
        let owner = Owner::new(50);
        let _serving = scene.serve("a.b:1", &owner, ServiceLimits::default()).await;
        for owners in [told(&[("a.b:1", true)]), told(&[])] {
            let asking = scene.asking(owners).await;
            for question in [top(10), top(0), Question::Counts(vec![(life(), Vec::new())])] {
                assert_eq!(ask_until_answered(&asking, &question).await, owner.direct(&question));
            }
        }
    });
}

#[test]
fn a_shard_without_owners_is_unavailable_and_says_why() {
    with_server(&[], |scene| async move {
        let why = "no node that is up owns it";
        for owners in [told(&[]), told(&[("gone", true)]), told(&[("gone", true), ("late", false)])] {
            let asking = scene.asking(owners).await;
            let refused = ask(&asking, &top(1)).await.expect_err("nobody is there").to_string();
            assert!(refused.contains(why), "{refused}");
        }
        let asking = scene.asking(told(&[])).await;
        let owner = Owner::new(1);
        let serving = scene.serve("a", &owner, ServiceLimits::default()).await;
        ask_until_answered(&asking, &top(1)).await;
        serving.service.end();
        ask_until_gone(&asking).await;
    });
}

/// A node that is subscribed and never answers, as one that is stopped.
async fn freeze(scene: &Scene, node: &str) -> Arc<AtomicUsize> {
    let client = scene.client().await;
    let mut questions = client.subscribe(format!("t.ask.0.{node}")).await.expect("it is connected");
    client.flush().await.expect("the server answers");
    let heard = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&heard);
    tokio::spawn(async move {
        let _client = client;
        while questions.next().await.is_some() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    heard
}

#[test]
fn an_owner_that_freezes_is_replaced_by_another_and_passed_over_then() {
    with_server(&[], |scene| async move {
        let owner = Owner::new(50);
        let serving = scene.serve("good", &owner, ServiceLimits::default()).await;
        let only = scene.asking(told(&[("good", true)])).await;
        ask_until_answered(&only, &top(1)).await;
        let heard = freeze(&scene, "frozen").await;
        let asking = scene.asking(told(&[("frozen", true), ("good", true)])).await;
        for _ in 0..50 {
            assert_eq!(ask(&asking, &top(3)).await, Ok(owner.direct(&top(3))));
        }
        // It was asked until it had failed once. Its entry is not renewed.
        let heard = heard.load(Ordering::Relaxed);
        assert!((1..10).contains(&heard), "{heard} questions");
        // If it is the only owner, it is waited for until the deadline. Nobody else may hear the question.
        drop(serving);
        let asking = scene.asking(told(&[("frozen", true)])).await;
        let until = Some(Instant::now() + Duration::from_millis(300));
        let refused = asking.ask(SHARD, &top(1), AskTerms { until, ..AskTerms::default() }).await;
        let refused = refused.expect_err("nobody answers").to_string();
        assert!(refused.contains("no owner replied in time"), "{refused}");
    });
}

#[test]
fn what_is_no_reply_is_followed_by_another_owner() {
    with_server(&[], |scene| async move {
        let owner = Owner::new(50);
        let _serving = scene.serve("good", &owner, ServiceLimits::default()).await;
        let asking = scene.asking(told(&[("good", true)])).await;
        ask_until_answered(&asking, &top(1)).await;
        let client = scene.client().await;
        let mut questions = client.subscribe("t.ask.0.bad").await.expect("it is connected");
        client.flush().await.expect("the server answers");
        let garbage: [&'static [u8]; 7] =
            [b"", b"{}", &[1, 0, 1], &[1, 0, 1, 1, 9, 9], &[1, 1, 2, 3], &[0], &[9; 900]];
        tokio::spawn(async move {
            let mut garbage = garbage.into_iter().cycle();
            while let Some(message) = questions.next().await {
                let (reply, body) =
                    (message.reply.expect("it is a question"), garbage.next().expect("endless"));
                client.publish(reply, body.into()).await.expect("it is connected");
            }
        });
        for _ in 0..20 {
            // Each with its own memory of who failed.
            let asking = scene.asking(told(&[("bad", true), ("good", true)])).await;
            assert_eq!(ask(&asking, &top(3)).await, Ok(owner.direct(&top(3))));
        }
    });
}

/// It can be read, and does not fit: of another kind, or of a sequence before the one that was asked for.
#[test]
fn a_reply_that_does_not_fit_the_question_is_followed_by_another_owner() {
    with_server(&[], |scene| async move {
        let owner = Owner::new(50);
        let _serving = scene.serve("good", &owner, ServiceLimits::default()).await;
        let client = scene.client().await;
        let mut all = client.subscribe(">").await.expect("it is connected");
        client.flush().await.expect("the server answers");
        let asking = scene.asking(told(&[("good", true)])).await;
        let reply_to = async |all: &mut async_nats::Subscriber, question: &Question<'_>| {
            ask_until_answered(&asking, question).await;
            loop {
                let message = all.next().await.expect("it is connected");
                if message.payload.starts_with(&[1, 0, 1]) && message.reply.is_none() {
                    return message.payload;
                }
            }
        };
        let earlier = reply_to(&mut all, &top(3)).await;
        owner.apply(6);
        let of_another_kind = reply_to(&mut all, &Question::Counts(vec![(life(), Vec::new())])).await;
        let lies = [of_another_kind, earlier];
        let mut questions = client.subscribe("t.ask.0.bad").await.expect("it is connected");
        client.flush().await.expect("the server answers");
        tokio::spawn(async move {
            let mut lies = lies.into_iter().cycle();
            while let Some(message) = questions.next().await {
                let reply = message.reply.expect("it is a question");
                client.publish(reply, lies.next().expect("endless")).await.expect("it is connected");
            }
        });
        for _ in 0..20 {
            // Each with its own memory of who failed.
            let asking = scene.asking(told(&[("bad", true), ("good", true)])).await;
            let terms =
                AskTerms { least: Sequence(6), until: Some(Instant::now() + PATIENCE), profiles: false };
            assert_eq!(asking.ask(SHARD, &top(3), terms).await, Ok(owner.direct(&top(3))));
        }
    });
}

#[test]
fn a_service_answers_whatever_it_is_sent_and_goes_on() {
    with_server(&[], |scene| async move {
        let owner = Owner::new(50);
        let _serving = scene.serve("a", &owner, ServiceLimits::default()).await;
        let asking = scene.asking(told(&[("a", true)])).await;
        ask_until_answered(&asking, &top(1)).await;
        let client = scene.client().await;
        for garbage in
            [&b""[..], b"{\"op\":1}", &[1], &[1, 0, 0, 0], &[2, 0, 0, 0, 0], &[1; 4_000], &[255; 4_000]]
        {
            let refused = client.request("t.ask.0.a", garbage.into()).await.expect("it answers");
            assert_eq!(refused.payload.first(), Some(&0), "{garbage:?}");
            let words = String::from_utf8_lossy(&refused.payload[2..]).into_owned();
            assert!(words.contains("not understood"), "{words}");
            // Without anybody to answer to.
            client.publish("t.ask.0.a", garbage.into()).await.expect("it is connected");
        }
        // Nor where only nodes may publish.
        let mut control = client.subscribe("t.control.0").await.expect("it is connected");
        client.publish_with_reply("t.ask.0.a", "t.control.0", "".into()).await.expect("it is connected");
        let answered = tokio::time::timeout(Duration::from_millis(300), control.next()).await;
        assert!(answered.is_err(), "{answered:?}");
        let refused = client.request("t.ask.0.a", vec![7, 1, 2].into()).await.expect("it answers");
        let words = String::from_utf8_lossy(&refused.payload[2..]).into_owned();
        assert!(words.contains("format 7") && words.contains("reads format 1"), "{words}");
        assert_eq!(ask(&asking, &top(3)).await, Ok(owner.direct(&top(3))));
        let asked = top(1_000_000);
        let refused = ask(&asking, &asked).await.expect_err("it asks for too much").to_string();
        assert!(refused.contains("1000000 entries, and the limit is"), "{refused}");
    });
}

#[test]
fn a_reply_larger_than_a_message_arrives_in_parts() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let config = folder.path().join("nats.conf");
    std::fs::write(&config, "max_payload: 32768").expect("it can be written");
    with_server(&["-c", config.to_str().expect("it is text")], |scene| async move {
        let owner = Owner::new(10_000);
        let _serving = scene.serve("a", &owner, ServiceLimits::default()).await;
        let asking = scene.asking(told(&[])).await;
        let reply = ask_until_answered(&asking, &top(10_000)).await;
        assert_eq!(reply, owner.direct(&top(10_000)));
        let Reply::Runs(runs) = reply.reply else { panic!("it is another kind") };
        assert_eq!(runs.iter().flatten().map(|run| run.below.len()).sum::<usize>(), 10_000);
        // A question that NATS would not let through is not sent.
        let members = vec!["a member of this shard"; 4_000];
        let question = Question::Lookup { board: life(), members, keys: Vec::new(), metadata: false };
        let refused = ask(&asking, &question).await.expect_err("it is too large").to_string();
        assert!(refused.contains("NATS lets 32768 through"), "{refused}");
    });
}

#[test]
fn a_question_waits_for_its_sequence_until_its_deadline() {
    with_server(&[], |scene| async move {
        let owner = Owner::new(3);
        let _serving = scene.serve("a", &owner, ServiceLimits::default()).await;
        let asking = scene.asking(told(&[("a", true)])).await;
        ask_until_answered(&asking, &top(1)).await;
        let until = |wait| Some(Instant::now() + wait);
        let terms =
            AskTerms { least: Sequence(6), until: until(Duration::from_millis(700)), profiles: false };
        assert_eq!(asking.ask(SHARD, &top(1), terms).await, Err(NoReply::NotYetApplied(SHARD)));
        let question = top(1);
        let waiting = asking.ask(
            SHARD,
            &question,
            AskTerms { least: Sequence(6), until: until(PATIENCE), profiles: false },
        );
        let applying = async {
            // Longer than an owner waits at once.
            tokio::time::sleep(Duration::from_millis(1_200)).await;
            owner.apply(6);
        };
        let (reply, ()) = futures_util::future::join(waiting, applying).await;
        assert_eq!(reply.map(|reply| reply.sequence), Ok(Sequence(6)));
    });
}

#[test]
fn a_shard_answers_for_the_others_only_while_it_is_level() {
    with_server(&[], |scene| async move {
        let owner = Owner::new(3);
        let serving = scene.serve("a", &owner, ServiceLimits::default()).await;
        let (group, by_name) = (scene.asking(told(&[])).await, scene.asking(told(&[("a", true)])).await);
        assert!(ask_until_answered(&group, &top(1)).await.is_live);
        // It was away, and the stream has gone on.
        serving.end.send_replace(Sequence(6));
        serving.connected.send_modify(|count| *count += 1);
        ask_until_gone(&group).await;
        // If nobody else is there, it answers, and says that it may be behind.
        let reply = ask(&by_name, &top(1)).await.expect("it answers");
        assert_eq!((reply.sequence, reply.is_live), (Sequence(5), false));
        owner.apply(6);
        assert_eq!(ask_until_answered(&group, &top(1)).await.sequence, Sequence(6));
        let is_live = async || ask(&by_name, &top(1)).await.is_ok_and(|reply| reply.is_live);
        while !is_live().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for state in [ShardState::Halted("why".to_owned()), ShardState::CatchingUp("why".to_owned())] {
            owner.shard.health.set_state(state);
            ask_until_gone(&group).await;
            assert!(!ask(&by_name, &top(1)).await.expect("it answers").is_live);
            owner.shard.health.set_state(ShardState::Live);
            assert!(ask_until_answered(&group, &top(1)).await.is_live);
        }
    });
}

#[test]
fn a_replica_that_is_behind_is_not_asked_while_another_is_level() {
    with_server(&[], |scene| async move {
        let (behind, level) = (Owner::new(3), Owner::new(3));
        level.apply(9);
        let back = scene.serve("back", &behind, ServiceLimits::default()).await;
        let _serving = scene.serve("level", &level, ServiceLimits::default()).await;
        // As it was before it went away; this takes its time to be known.
        let owners = || told(&[("back", true), ("level", true)]);
        for node in ["back", "level"] {
            ask_until_answered(&scene.asking(told(&[(node, true)])).await, &top(1)).await;
        }
        back.end.send_replace(Sequence(9));
        back.connected.send_modify(|count| *count += 1);
        for _ in 0..20 {
            let asking = scene.asking(owners()).await;
            for _ in 0..3 {
                let reply = ask(&asking, &top(1)).await.expect("one is level");
                assert_eq!((reply.sequence, reply.is_live), (Sequence(9), true));
            }
        }
    });
}

#[test]
fn a_node_with_too_much_to_do_says_so_and_another_is_asked() {
    with_server(&[], |scene| async move {
        let owner = Owner::new(3);
        let _busy = scene.serve("busy", &owner, ServiceLimits { at_once: 0, waiting: 0 }).await;
        let asking = scene.asking(told(&[("busy", true)])).await;
        loop {
            let refused = ask(&asking, &top(1)).await.expect_err("it is busy").to_string();
            if refused.contains("too many questions in work") {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let _idle = scene.serve("idle", &owner, ServiceLimits::default()).await;
        ask_until_answered(&scene.asking(told(&[("idle", true)])).await, &top(1)).await;
        let asking = scene.asking(told(&[("busy", true), ("idle", true)])).await;
        for _ in 0..20 {
            assert!(ask(&asking, &top(1)).await.is_ok());
        }
    });
}

#[test]
fn a_question_waits_only_where_there_is_room_to_wait() {
    with_server(&[], |scene| async move {
        let owner = Owner::new(3);
        let _full = scene.serve("full", &owner, ServiceLimits { at_once: 9, waiting: 0 }).await;
        let asking = scene.asking(told(&[("full", true)])).await;
        ask_until_answered(&asking, &top(1)).await;
        let refused =
            asking.ask(SHARD, &top(1), AskTerms { least: Sequence(6), until: None, profiles: false }).await;
        let refused = refused.expect_err("it is full").to_string();
        assert!(refused.contains("too many questions wait"), "{refused}");
    });
}
