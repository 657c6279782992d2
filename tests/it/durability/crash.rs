//! kill -9 at random moments, again and again, in the middle of concurrent writes by the real binary.
//!
//! Each writer sends one request after the other and remembers what was answered. A request that was cut off
//! may have been applied or not, and nothing else: not twice, not a part of a job. After each crash all
//! scores are read back, compared with what the writers know, and ranked by the model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use ranktree::board::{Order, Ties};
use ranktree::types::Timestamp;
use serde_json::{Value, json};
use ureq::http::Method;

use crate::support::client::{Client, Reply, count_of, entry_path, score_of};
use crate::support::model;
use crate::support::node::Node;
use crate::support::random::Random;
use crate::support::rounds::rounds;

const ROUNDS: [u64; 3] = [8, 20, 50];
const VERIFIED_EVERY: u64 = 10;
/// The test ends after so many times that many rounds, even if few checkpoints were loaded.
const ROUNDS_TIMES_MAX: u64 = 20;
/// Answers before a crash: at least the first number and fewer than the second, on any machine.
const ANSWERS: (u64, u64) = (10, 400);
const SHARDS: u16 = 3;
/// Checkpoints are so frequent that crashes interrupt some, and that starts load one and replay the deltas
/// after it.
const CHECKPOINT_OFTEN: [&str; 2] = ["--checkpoint-changes", "100"];
const WRITERS_PER_KIND: u64 = 2;
const MEMBERS_PER_WRITER: u64 = 12;
/// The least number of different checkpoints that starts should have loaded, over all shards.
const CHECKPOINTS_MIN: usize = 15;
/// Entries that no writer changes, so that every shard's trees have several nodes, and checkpoints have pages
/// that they need not write. There are few of them, because more members make checkpoints rarer.
const BYSTANDERS: usize = 600;
/// So few scores that most entries are tied.
const SCORES: u64 = 50;

/// Jobs without an operation add.
const ADDS: &str = "adds";
/// Jobs without an operation set.
const SETS: &str = "sets";

/// A member of a board.
type Place = (&'static str, String);
/// The score there; `None` if there is no entry.
type Scores = BTreeMap<Place, Option<i64>>;

#[test]
fn answered_writes_survive_every_crash_and_count_once() {
    let (mut random, rounds) = (Random::seeded(), rounds(ROUNDS));

    let mut service = Node::shards(SHARDS).flags(&CHECKPOINT_OFTEN).start();
    create_boards(&service.client());
    let mut known = add_bystanders(&service.client(), &mut random);
    let mut writers: Vec<_> = Kind::ALL
        .into_iter()
        .flat_map(|kind| (0..WRITERS_PER_KIND).map(move |number| (kind, number)))
        .map(|(kind, number)| Writer::new(kind, number, Random::new(random.next())))
        .collect();

    let mut checkpoints = BTreeSet::new();
    let mut round = 0;
    // A busy machine lets checkpoints wait, so that fewer of them complete before a crash.
    while round < rounds || checkpoints.len() <= CHECKPOINTS_MIN && round < ROUNDS_TIMES_MAX * rounds {
        round += 1;
        let answers = ANSWERS.0 + random.below(ANSWERS.1 - ANSWERS.0);
        write_until_killed(&mut service, &mut writers, answers);
        if round % VERIFIED_EVERY == 0 {
            service.verify();
        }
        service.restart();
        checkpoints.extend(checkpoint_sequences(&service.client()));
        let actual = read_back(&service.client());
        for writer in &mut writers {
            writer.settle(&actual);
            known.extend(writer.known.clone());
        }
        let expected = known.iter().filter_map(|(place, score)| score.map(|score| (place, score)));
        let actual = actual.iter().filter_map(|(place, score)| score.map(|score| (place, score)));
        assert!(expected.eq(actual), "round {round}: there are the entries that were written, and no others");
    }

    assert!(service.terminate().success());
    service.verify();
    let checkpoints = checkpoints.len();
    assert!(checkpoints > CHECKPOINTS_MIN, "{checkpoints} checkpoints were loaded: the crashes missed them");
    for writer in &writers {
        let Writer { kind, answered, cut_off, .. } = writer;
        assert!(*answered > rounds, "{kind:?} had {answered} answers, and hardly wrote");
        assert!(*cut_off > 0, "{kind:?} was never cut off, so that the crashes missed it");
    }
}

fn create_boards(client: &Client) {
    // With ties by member, positions follow from what clients know, and not from the service's clock.
    for (board, policy) in [(ADDS, "incr"), (SETS, "set")] {
        let (status, answer) =
            client.put(&format!("/v1/boards/{board}"), &json!({ "policy": policy, "ties": "member" }));
        assert_eq!(status, 201, "{answer}");
    }
}

fn add_bystanders(client: &Client, random: &mut Random) -> Scores {
    let mut scores = Scores::new();
    for index in 0..BYSTANDERS {
        scores.insert((SETS, format!("bystander {index}")), Some(random_score(random)));
    }
    let jobs: Vec<_> = scores
        .iter()
        .map(|((board, member), score)| json!({ "board": board, "member": member, "score": score }))
        .collect();
    for batch in jobs.chunks(1_000) {
        let (status, answer) = client.post("/v1/jobs", &Value::from(batch));
        assert_eq!(status, 200, "{answer}");
    }
    scores
}

/// The checkpoint that each shard was loaded from.
fn checkpoint_sequences(client: &Client) -> Vec<(usize, usize)> {
    let (status, answer) = client.get("/v1/status");
    assert_eq!(status, 200, "{answer}");
    let shards = answer["shards"].as_array().expect("a list");
    assert_eq!(shards.len(), usize::from(SHARDS));
    shards.iter().map(|shard| (count_of(&shard["shard"]), count_of(&shard["checkpoint_sequence"]))).collect()
}

fn random_score(random: &mut Random) -> i64 {
    i64::try_from(random.below(SCORES)).expect("a small number")
}

/// A writer's report about a request: that it was answered, or an error that must not happen.
type Said = Result<(), String>;

/// Lets all writers write, kills the service after so many answers, and waits for them to notice.
fn write_until_killed(service: &mut Node, writers: &mut [Writer], answers: u64) {
    let killed = AtomicBool::new(false);
    let (say, said) = channel::<Said>();
    thread::scope(|scope| {
        for writer in writers {
            let (client, killed, say) = (service.client(), &killed, say.clone());
            scope.spawn(move || writer.write(&client, killed, &say));
        }
        drop(say);
        let early = (0..answers).map_while(|_| said.recv().ok()).find_map(Result::err);
        killed.store(true, Ordering::SeqCst);
        service.kill9();
        assert_eq!(early, None, "before the crash");
        assert_eq!(said.iter().find_map(Result::err), None, "during the crash");
    });
}

/// Reads every entry of both boards, and compares ranks and positions with the model's. Returns the scores.
fn read_back(client: &Client) -> Scores {
    let mut scores = Scores::new();
    for board in [ADDS, SETS] {
        let mut model = model::Board::new(&[Order::Descending], Ties::Member);
        let mut found = Vec::new();
        let mut total = 1;
        while found.len() < total {
            let position = found.len() + 1;
            let (status, page) = client.get(&format!("/v1/boards/{board}/positions/{position}?limit=1000"));
            if status == 404 && found.is_empty() {
                // The board may not exist yet if the first crash came early.
                break;
            }
            assert_eq!(status, 200, "{page}");
            total = count_of(&page["total"]);
            let entries = page["entries"].as_array().expect("a list");
            assert!(!entries.is_empty() || total == 0, "a page before the end is not empty");
            for entry in entries {
                let member = entry["member"].as_str().expect("a string").to_owned();
                let score = score_of(&entry["score"]);
                model.set(&member, &score, Timestamp::default());
                scores.insert((board, member.clone()), score.first().copied());
                found.push((member, score, count_of(&entry["rank"]), count_of(&entry["position"])));
            }
        }
        let standings = model.standings();
        let expected: Vec<_> =
            standings.iter().map(|s| (s.member.clone(), s.score.clone(), s.rank, s.position)).collect();
        assert_eq!(found, expected, "{board} ranks as the model does");
        // The counts of one entry are computed in another way than those of a page.
        for standing in standings.iter().step_by(97) {
            let (status, entry) = client.get(&entry_path(board, &standing.member));
            assert_eq!(status, 200, "{entry}");
            let counts = ["better", "tied", "worse", "total"].map(|name| count_of(&entry[name]));
            assert_eq!(counts, [standing.better, standing.tied, standing.worse, standings.len()], "{entry}");
        }
    }
    scores
}

/// What a writer writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Adds 1 to a member. Sent once.
    Add,
    /// Adds 1 to a member, with a version, and sends it again until it is answered.
    AddWithVersion,
    /// Adds 1 to several members in one request, each a job of its own.
    AddToMany,
    /// Sets a member's score, or removes it.
    Set,
    /// Adds 1 on one board and sets the sum on the other, in one job.
    Both,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Add, Self::AddWithVersion, Self::AddToMany, Self::Set, Self::Both];

    fn boards(self) -> &'static [&'static str] {
        match self {
            Self::Add | Self::AddWithVersion | Self::AddToMany => &[ADDS],
            Self::Set => &[SETS],
            Self::Both => &[ADDS, SETS],
        }
    }
}

/// A request, and the scores after it is applied.
#[derive(Clone)]
struct Request {
    method: Method,
    path: String,
    body: Option<Value>,
    after: Scores,
}

struct Writer {
    kind: Kind,
    random: Random,
    members: Vec<String>,
    /// The scores of the writer's own members, which no other writer changes.
    known: Scores,
    /// The request that was sent and not answered, if any.
    in_flight: Option<Request>,
    version: u64,
    answered: u64,
    cut_off: u64,
}

impl Writer {
    fn new(kind: Kind, number: u64, random: Random) -> Self {
        let members = (0..MEMBERS_PER_WRITER).map(|member| format!("{kind:?} {number}/{member}"));
        let members: Vec<_> = members.collect();
        let places =
            members.iter().flat_map(|member| kind.boards().iter().map(|board| (*board, member.clone())));
        let known = places.map(|place| (place, None)).collect();
        Self { kind, random, members, known, in_flight: None, version: 0, answered: 0, cut_off: 0 }
    }

    /// Writes until the service is killed, and reports every answer.
    fn write(&mut self, client: &Client, killed: &AtomicBool, say: &Sender<Said>) {
        loop {
            let request = match self.in_flight.take() {
                Some(cut_off) => cut_off,
                None => self.next_request(),
            };
            let reply = client.send(request.method.clone(), &request.path, request.body.as_ref());
            match reply {
                Ok(reply) if self.is_applied(&reply) => {
                    self.answered += 1;
                    self.known.extend(request.after);
                    let _ = say.send(Ok(()));
                }
                Ok(reply) => {
                    let _ = say.send(Err(format!("{:?} {}: {reply:?}", self.kind, request.path)));
                    return;
                }
                Err(error) => {
                    if !killed.load(Ordering::SeqCst) {
                        let _ = say.send(Err(format!("{:?} {}: {error}", self.kind, request.path)));
                    }
                    self.cut_off += 1;
                    self.in_flight = Some(request);
                    return;
                }
            }
        }
    }

    fn is_applied(&self, (status, answer): &Reply) -> bool {
        let is_stale = *status == 409 && answer["code"] == "stale_version";
        match self.kind {
            Kind::AddWithVersion => *status == 200 || is_stale,
            Kind::Add | Kind::Set => *status == 200,
            Kind::AddToMany | Kind::Both => {
                let results = answer["results"].as_array();
                *status == 200
                    && results.is_some_and(|all| all.iter().all(|one| one.get("rejected").is_none()))
            }
        }
    }

    fn next_request(&mut self) -> Request {
        let member = self.random.pick(&self.members).clone();
        let sum = self.score(ADDS, &member) + 1;
        match self.kind {
            Kind::Add => put(ADDS, &member, &json!({ "score": 1 }), sum),
            Kind::AddWithVersion => {
                self.version += 1;
                put(ADDS, &member, &json!({ "score": 1, "version": self.version }), sum)
            }
            Kind::AddToMany => {
                let count =
                    usize::try_from(1 + self.random.below(MEMBERS_PER_WRITER)).expect("a small number");
                let members = self.members.iter().take(count);
                let after = members.map(|m| ((ADDS, m.clone()), Some(self.score(ADDS, m) + 1)));
                let after: Scores = after.collect();
                let job = |(board, member): &Place| json!({ "board": board, "member": member, "score": 1 });
                jobs(after.keys().map(job).collect(), after)
            }
            Kind::Set if self.is_listed(SETS, &member) && self.random.below(8) == 0 => {
                let after = Scores::from([((SETS, member.clone()), None)]);
                Request { method: Method::DELETE, path: entry_path(SETS, &member), body: None, after }
            }
            Kind::Set => {
                let score = random_score(&mut self.random);
                put(SETS, &member, &json!({ "score": score }), score)
            }
            Kind::Both => {
                let after = [ADDS, SETS].map(|board| ((board, member.clone()), Some(sum)));
                jobs(vec![json!({ "member": member, "scores": { ADDS: 1, SETS: sum } })], Scores::from(after))
            }
        }
    }

    fn is_listed(&self, board: &'static str, member: &str) -> bool {
        score_in(&self.known, &(board, member.to_owned())).is_some()
    }

    fn score(&self, board: &'static str, member: &str) -> i64 {
        score_in(&self.known, &(board, member.to_owned())).unwrap_or_default()
    }

    /// Compares the scores after a crash with the expected ones, and finds out whether the request that was
    /// cut off was applied.
    fn settle(&mut self, actual: &Scores) {
        if let Some(request) = &self.in_flight {
            let differs = |place: &&Place| score_in(&request.after, place) != score_in(&self.known, place);
            let landed = |place: &&Place| score_in(&request.after, place) == score_in(actual, place);
            let changed: Vec<_> = request.after.keys().filter(differs).collect();
            let applied: Vec<_> = changed.iter().copied().filter(landed).cloned().collect();
            if self.kind != Kind::AddToMany {
                assert!(
                    applied.is_empty() || applied.len() == changed.len(),
                    "of one job that changes {changed:?}, only {applied:?} were applied"
                );
            }
            self.known.extend(applied.into_iter().map(|place| (place.clone(), score_in(actual, &place))));
        }
        for (place, known) in &self.known {
            let found = score_in(actual, place);
            assert_eq!(found, *known, "{:?} after {} answers: {place:?}", self.kind, self.answered);
        }
        // Only a job with a version may be sent again: whether it was applied before must make no difference.
        if self.kind != Kind::AddWithVersion {
            self.in_flight = None;
        }
    }
}

fn score_in(scores: &Scores, place: &Place) -> Option<i64> {
    scores.get(place).copied().flatten()
}

fn put(board: &'static str, member: &str, body: &Value, score: i64) -> Request {
    Request {
        method: Method::PUT,
        path: entry_path(board, member),
        body: Some(body.clone()),
        after: Scores::from([((board, member.to_owned()), Some(score))]),
    }
}

fn jobs(jobs: Vec<Value>, after: Scores) -> Request {
    Request { method: Method::POST, path: "/v1/jobs".to_owned(), body: Some(Value::Array(jobs)), after }
}
