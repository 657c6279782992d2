//! Game services that count members up by `incr` jobs, and send each message again until they know that it is
//! stored.
//!
//! A try whose answer was lost may have been stored after all, so that the next one is a duplicate. There are
//! two ways to make it harmless: a version in the job, which ranktree compares, and a `Nats-Msg-Id`, by which
//! the server knows the message for the length of the stream's duplicate window. In the end every member must
//! have been counted up exactly as often as its writer says: nothing lost, nothing twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ranktree::types::{MemberId, shard_of};
use serde_json::{Value, json};

use crate::support::client::{Client, count_of, entry_path};
use crate::support::nats::Publisher;
use crate::support::random::Random;

/// The board, of policy `incr` or created by the jobs, which say so themselves.
pub const BOARD: &str = "adds";
const WRITERS: u64 = 4;
const MEMBERS_PER_WRITER: u64 = 8;
/// An answer to the first try that takes longer is taken for lost; later ones are given as much more time, or
/// a message would never be known to be stored where the servers are slower.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// What makes it harmless to send a message twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retries {
    Version,
    MessageId,
}

/// How many messages the writers may have begun, so that a quick machine does not publish more than a slow
/// one: what is published must not fill the streams.
pub struct Budget {
    allowed: AtomicU64,
    begun: AtomicU64,
}

/// Some 350 bytes each: 50 times as many fit into 64 MiB.
const MESSAGES_AT_A_TIME: u64 = 3_000;

impl Budget {
    fn new() -> Self {
        Self { allowed: AtomicU64::new(MESSAGES_AT_A_TIME), begun: AtomicU64::new(0) }
    }

    /// Lets the writers go on. Those that they have not begun so far are not begun later.
    pub fn refill(&self) {
        self.allowed.store(self.begun.load(Ordering::SeqCst) + MESSAGES_AT_A_TIME, Ordering::SeqCst);
    }

    /// Waits until a message may be begun; `false` if the writers are to end.
    fn take(&self, ending: &AtomicBool) -> bool {
        while !ending.load(Ordering::SeqCst) {
            if self.begun.load(Ordering::SeqCst) < self.allowed.load(Ordering::SeqCst) {
                self.begun.fetch_add(1, Ordering::SeqCst);
                return true;
            }
            thread::sleep(Duration::from_millis(1));
        }
        false
    }
}

/// What the writers did.
#[derive(Default)]
pub struct Counted {
    /// How often each member was counted up.
    pub members: BTreeMap<String, u64>,
    pub messages: u64,
    pub tries: u64,
}

/// Ends the writers, also when the test fails while they write.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Has members counted up for as long as `disturb` takes, which refills the writers' budget in each of its
/// rounds.
///
/// # Arguments
/// `retries`: the ways of the writers, in turn.
/// `window`: the duplicate window of the streams, within which a message has to be stored that is known by
/// its id.
pub fn count_up(
    urls: &str,
    shards: u16,
    retries: &[Retries],
    window: Duration,
    random: &mut Random,
    disturb: impl FnOnce(&mut Random, &Budget),
) -> Counted {
    let (ending, budget) = (AtomicBool::new(false), Budget::new());
    let mut all = Counted::default();
    thread::scope(|scope| {
        let end = End(&ending);
        let writers: Vec<_> = (0..WRITERS)
            .zip(retries.iter().cycle())
            .map(|(number, retries)| {
                let (publisher, random) = (Publisher::connect(urls), Random::new(random.next()));
                let (ending, budget) = (&ending, &budget);
                let writer = Writer { number, retries: *retries, shards, window, publisher, random };
                scope.spawn(move || writer.write(ending, budget))
            })
            .collect();
        disturb(random, &budget);
        drop(end);
        for writer in writers {
            let Counted { members, messages, tries } = writer.join().expect("no panic");
            all.members.extend(members);
            all.messages += messages;
            all.tries += tries;
        }
    });
    all
}

struct Writer {
    number: u64,
    retries: Retries,
    shards: u16,
    window: Duration,
    publisher: Publisher,
    random: Random,
}

impl Writer {
    fn write(mut self, ending: &AtomicBool, budget: &Budget) -> Counted {
        let members: Vec<_> =
            (0..MEMBERS_PER_WRITER).map(|member| format!("w{}/{member}", self.number)).collect();
        let mut counted = Counted::default();
        counted.members.extend(members.iter().map(|member| (member.clone(), 0)));
        let home = |member: &str| shard_of(&MemberId::new(member).expect("a good id"), self.shards);
        while budget.take(ending) {
            // All of one shard, in one message.
            let first = home(self.random.pick::<String>(&members));
            let together: Vec<_> = members.iter().filter(|member| home(member) == first).take(3).collect();
            counted.messages += 1;
            let version = (self.retries == Retries::Version).then_some(counted.messages);
            let job = |member: &&String| match version {
                Some(version) => {
                    json!({ "board": BOARD, "member": member, "op": "incr", "score": 1, "version": version })
                }
                None => json!({ "board": BOARD, "member": member, "op": "incr", "score": 1 }),
            };
            let body = Value::from(together.iter().map(job).collect::<Vec<_>>()).to_string();
            let subject = format!("ranktree.jobs.{first}");
            let id = format!("w{}-{}", self.number, counted.messages);
            let started = Instant::now();
            let mut patience = Duration::ZERO;
            loop {
                counted.tries += 1;
                patience += ANSWER_TIMEOUT;
                let stored = match self.retries {
                    Retries::Version => self.publisher.publish(&subject, &body, patience),
                    Retries::MessageId => self.publisher.publish_as(&id, &subject, &body, patience),
                };
                // What is asked of whoever relies on the id.
                assert!(
                    self.retries == Retries::Version || started.elapsed() < self.window,
                    "{id} took {:?} to be stored",
                    started.elapsed()
                );
                if stored.is_some() && self.random.below(10) > 0 {
                    break;
                }
                // Not stored, as far as this end knows; or a duplicate for its own sake.
            }
            for member in together {
                *counted.members.entry(member.clone()).or_default() += 1;
            }
        }
        counted
    }
}

/// Compares every member's score with how often it was counted up.
pub fn check(client: &Client, counted: &Counted) {
    assert!(counted.tries > counted.messages, "no try was ever repeated");
    for (member, count) in &counted.members {
        let (status, entry) = client.get(&entry_path(BOARD, member));
        let found = if status == 404 { 0 } else { count_of(&entry["score"]) };
        assert_eq!(u64::try_from(found).expect("small"), *count, "{member}: {entry}");
    }
}
