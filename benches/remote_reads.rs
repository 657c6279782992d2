//! Reads over shards of other nodes, against the same reads over shards in memory.
//!
//! One process has both ends: two owners with half of the shards each, and a node that owns none, with a
//! connection each to a real nats-server. Prints `RATIO remote_<read>_<shards>_shards …` (the median over
//! NATS / the median in memory) and `remote_<read>_…` with both in microseconds.
//!
//! Approximate ranks against exact ones: `RATIO approximate_<read>_<shards>_shards_remote …` is the median
//! of the exact read over NATS / that of the approximate one from summaries, and `…_in_memory` the same where
//! all shards are in memory. `summary_<shards>_shards` is how long a shard's lock is held for a summary, and
//! `approximate_error_…` the largest error that an answer told.
//!
//! `cargo bench --bench remote_reads -- --members 1000000 --reads 2000`

#![allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "figures are for people; numbers stay far below 2^53"
)]

mod support;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use ranktree::applied_sequence::applied_sequence;
use ranktree::board::Definition;
use ranktree::cluster::questions::{
    AskSubjects, AskingShards, KnownOwner, KnownShard, Link, OwnerSource, Owners, QuestionService,
    ServiceLimits, ShardEnd, StreamEnds, Trimming,
};
use ranktree::query::question::BoardLife;
use ranktree::query::summary::{ApproximateShards, Summaries, SummarySizes, summarize};
use ranktree::query::{
    AnsweringShard, Around, AroundMember, BoardRead, End, InstanceAsked, LocalShards, MemberOf, Node,
    OfBoard, RanksOf, ReadOptions, ShardClient, ShardHandle, Start, Top, read_in_memory, read_remote,
};
use ranktree::state::{Applied, BoardEvent, Change, Entry, EntryState, Incarnation, Shard, Step, TreeId};
use ranktree::state_lock::{Purpose, StateLock};
use ranktree::types::{BoardName, MemberId, NodeName, Score, Sequence, ShardId, Timestamp, shard_of};
use ranktree::writer::{Health, Registry, ShardState};
use tokio::sync::watch;

use support::nats::Nats;
use support::workload::id;
use support::{micros, number, percentile, scratch};

const MEMBERS_PER_STEP: usize = 10_000;

struct AtOnce;

impl StreamEnds for AtOnce {
    fn end(&self, _: ShardId) -> BoxFuture<'_, Result<ShardEnd, String>> {
        Box::pin(async { Ok(ShardEnd(Sequence(0))) })
    }
}

struct Told(Vec<KnownOwner>);

impl OwnerSource for Told {
    fn owners(&self) -> Vec<KnownOwner> {
        self.0.clone()
    }
}

fn board() -> BoardName {
    BoardName::new("arena").expect("a good name")
}

fn shards(count: u16, members: u64) -> Vec<ShardHandle> {
    let definition: Arc<Definition> = Arc::default();
    let mut random = SmallRng::seed_from_u64(11);
    let mut of_shard: Vec<Vec<(MemberId, i64)>> = (0..count).map(|_| Vec::new()).collect();
    for member in 0..members {
        let member = MemberId::new(id(member).as_str()).expect("a good id");
        of_shard[shard_of(&member, count).index()].push((member, random.random_range(0..1 << 40)));
    }
    let shard = |(number, members): (u16, Vec<(MemberId, i64)>)| {
        let mut shard = Shard::new(ShardId(number));
        let (board, incarnation) = (board(), Incarnation(1));
        let definition = Arc::clone(&definition);
        let define =
            BoardEvent::Define { board, incarnation, number: None, definition: Arc::clone(&definition) };
        shard.apply(&Step { events: vec![define], ..Step::default() });
        for (sequence, members) in (1..).zip(members.chunks(MEMBERS_PER_STEP)) {
            let applied = Applied { sequence: Sequence(sequence), ..Applied::default() };
            let mut step = Step { applied, ..Step::default() };
            for (nth, (member, score)) in members.iter().enumerate() {
                let score = Score::new(&[*score]).expect("one key");
                let words = definition.entry_words(&score, Timestamp::default(), member.as_bytes());
                step.added.push(member.as_bytes().into());
                let after = Entry {
                    state: EntryState::Listed(words),
                    updated_at: Timestamp::default(),
                    version: None,
                    has_metadata: false,
                };
                let handle = shard.members.nth_next_handle(nth);
                step.changes.push(Change { tree: TreeId(0), handle, after: Some(after) });
            }
            shard.apply(&step);
        }
        let health = Arc::new(Health::default());
        health.set_state(ShardState::Live);
        ShardHandle {
            id: ShardId(number),
            applied: applied_sequence(shard.applied.sequence).1,
            state: Arc::new(StateLock::new(shard)),
            started: watch::channel(true).1,
            health,
            store: Arc::default(),
            summaries: Arc::default(),
        }
    };
    (0..).zip(of_shard).map(shard).collect()
}

/// Both ends of the questions.
struct Cluster {
    asking: Arc<AskingShards>,
    _owners: Vec<(QuestionService, watch::Sender<u64>)>,
}

impl Cluster {
    async fn start(url: &str, shards: &[ShardHandle]) -> Self {
        let link = async || {
            let (connected, count) = watch::channel(1);
            (Link::new(async_nats::connect(url).await.expect("nats-server is there"), count), connected)
        };
        let (mut owners, mut known) = (Vec::new(), Vec::new());
        for half in 0..2_u16 {
            let name = NodeName::new(&format!("owner-{half}")).expect("a good name");
            let own: Vec<_> = shards.iter().filter(|shard| shard.id.0 % 2 == half).collect();
            let known_shard = |shard: &ShardHandle| KnownShard { id: shard.id, is_live: true, applied: 0 };
            let shards = own.iter().map(|shard| known_shard(shard)).collect();
            known.push(KnownOwner { name: name.clone(), heard_at: Instant::now(), shards });
            let (link, connected) = link().await;
            let answering = own.into_iter().map(AnsweringShard::of).collect();
            let (subjects, limits) = (AskSubjects::new("bench"), ServiceLimits::default());
            let (ends, trimming) = (Arc::new(AtOnce), Trimming::new(Vec::new()));
            let service = QuestionService::start(link, subjects, name, answering, ends, trimming, limits);
            owners.push((service, connected));
        }
        let (link, _connected) = link().await;
        let count = u16::try_from(shards.len()).expect("a few");
        let choice = Owners::start(Arc::new(Told(known)));
        let asking = AskingShards::open(link, AskSubjects::new("bench"), choice, count, Vec::new()).await;
        Self { asking: Arc::new(asking.expect("it is connected")), _owners: owners }
    }
}

fn main() {
    let (members, reads) = (number("members", 1_000_000), number("reads", 2_000));
    let folder = scratch();
    let nats = Nats::start(folder.path()).expect("nats-server starts");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for count in [1, 4, 16] {
        let node = Node::in_memory(shards(count, members));
        let registry = Registry::new(true);
        registry.register_boards_of(&node.shards[0].state.read(Purpose::Read));
        let cluster = runtime.block_on(async {
            loop {
                if async_nats::connect(nats.url()).await.is_ok() {
                    return Cluster::start(&nats.url(), &node.shards).await;
                }
            }
        });
        let bench = Bench { runtime: &runtime, node: &node, registry: &registry, cluster: &cluster, reads };
        let mut random = SmallRng::seed_from_u64(12);
        let mut member =
            move || MemberId::new(id(random.random_range(0..members)).as_str()).expect("a good id");
        let mut random = SmallRng::seed_from_u64(13);
        let scores: Vec<[Score; 1]> =
            (0..reads).map(|_| [Score::new(&[random.random_range(0..1 << 40)]).expect("one key")]).collect();
        bench.run("rank", scores.iter().map(|score| RanksOf { scores: score }));
        let members: Vec<MemberId> = (0..reads).map(|_| member()).collect();
        bench.run("member", members.iter().map(|member| MemberOf { member: member.clone() }));
        bench.summarize();
        bench.approximate("rank", scores.iter().map(|score| RanksOf { scores: score }));
        bench.approximate("member", members.iter().map(|member| MemberOf { member: member.clone() }));
        let around = Around { above: 4, below: 4, fill: false };
        bench.run("around", members.iter().map(|member| AroundMember { member: member.clone(), around }));
        bench.run("top_10", members.iter().map(|_| Top { start: Start::End(End::Top), limit: 10 }));
    }
}

struct Bench<'b> {
    runtime: &'b tokio::runtime::Runtime,
    node: &'b Node,
    registry: &'b Registry,
    cluster: &'b Cluster,
    reads: u64,
}

impl Bench<'_> {
    /// How long it takes to summarise each shard.
    fn summarize(&self) {
        let life = BoardLife { board: board(), incarnation: Incarnation(1) };
        let mut held = Vec::new();
        let mut bytes = 0;
        for _ in 0..20 {
            for shard in &self.node.shards {
                let state = shard.state.read(Purpose::Summary);
                let started = Instant::now();
                let summary = summarize(&state, &life, &SummarySizes::SERVICE);
                held.push(started.elapsed());
                bytes = summary.bytes();
            }
        }
        held.sort_unstable();
        println!(
            "summary_{}_shards: p50 {:.0} us, largest {:.0} us, {bytes} bytes",
            self.node.shard_count(),
            micros(percentile(&held, 0.5)),
            micros(percentile(&held, 1.0)),
        );
    }

    /// The same reads from summaries and exactly, with all shards in memory and over NATS.
    fn approximate<R: BoardRead + Clone>(&self, name: &str, reads: impl Iterator<Item = R>) {
        let options = ReadOptions::default();
        let count = self.node.shard_count();
        let in_memory: Arc<dyn ShardClient> = Arc::new(LocalShards::new(&self.node.shards, count));
        let over_nats: Arc<dyn ShardClient> = Arc::<AskingShards>::clone(&self.cluster.asking);
        let reads: Vec<R> = reads.collect();
        for (place, shards) in [("in_memory", in_memory), ("remote", over_nats)] {
            let summaries = Summaries::new(shards);
            let (mut exact, mut approximate, mut error) = (Vec::new(), Vec::new(), 0);
            self.runtime.block_on(async {
                for (nth, read) in reads.iter().enumerate() {
                    let read =
                        OfBoard { board: board(), instance: InstanceAsked::default(), read: read.clone() };
                    let started = Instant::now();
                    if place == "remote" {
                        let reply = read_remote(&*self.cluster.asking, self.registry, &read, &options).await;
                        black_box(reply.expect("all shards reply"));
                    } else {
                        let answer =
                            read_in_memory(self.node, self.registry, &read).expect("it is in memory");
                        black_box(answer.expect("the board is there"));
                    }
                    exact.push(started.elapsed());
                    let started = Instant::now();
                    let shards = ApproximateShards::new(&summaries);
                    let reply = read_remote(&shards, self.registry, &read, &options).await;
                    black_box(reply.expect("all shards reply"));
                    if nth == 0 {
                        // The first one has asked for the summaries.
                        summaries.refresh(false).await;
                    } else {
                        approximate.push(started.elapsed());
                        error = error.max(shards.rank_error(0));
                    }
                }
            });
            exact.sort_unstable();
            approximate.sort_unstable();
            let median = |sorted: &[Duration]| micros(percentile(sorted, 0.5));
            let (exact, approximate) = (median(&exact), median(&approximate));
            println!(
                "approximate_{name}_{count}_shards_{place}: p50 {approximate:.1} us, exact {exact:.1} us"
            );
            println!("approximate_error_{name}_{count}_shards_{place}: {error}");
            println!("RATIO approximate_{name}_{count}_shards_{place} {:.2}", exact / approximate);
        }
    }

    fn run<R: BoardRead>(&self, name: &str, reads: impl Iterator<Item = R>) {
        let options = ReadOptions::default();
        let (mut local, mut remote) = (Vec::new(), Vec::new());
        self.runtime.block_on(async {
            for read in reads {
                let read = OfBoard { board: board(), instance: InstanceAsked::default(), read };
                let started = Instant::now();
                let answer = read_in_memory(self.node, self.registry, &read).expect("it is in memory");
                black_box(answer.expect("the board is there"));
                local.push(started.elapsed());
                // The services need a moment to subscribe at first.
                while read_remote(&*self.cluster.asking, self.registry, &read, &options).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                let started = Instant::now();
                let reply = read_remote(&*self.cluster.asking, self.registry, &read, &options).await;
                black_box(reply.expect("all shards reply"));
                remote.push(started.elapsed());
            }
        });
        local.sort_unstable();
        remote.sort_unstable();
        let shards = self.node.shard_count();
        let of = |sorted: &[Duration], share| micros(percentile(sorted, share));
        println!(
            "remote_{name}_{shards}_shards: p50 {:.0} us, p99 {:.0} us; in memory p50 {:.2} us; {} reads",
            of(&remote, 0.5),
            of(&remote, 0.99),
            of(&local, 0.5),
            self.reads
        );
        println!("RATIO remote_{name}_{shards}_shards {:.1}", of(&remote, 0.5) / of(&local, 0.5));
    }
}
