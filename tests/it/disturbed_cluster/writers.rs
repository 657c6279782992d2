//! Writes while everything goes wrong: messages to NATS, requests to nodes, and a board that comes and goes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::thread;
use std::time::Duration;

use ranktree::types::{MemberId, shard_of};
use serde_json::{Value, json};
use ureq::http::Method;

use crate::disturbed_cluster::oracle::parse_as_of;
use crate::disturbed_cluster::world::{ARENA, SEASON, SHARDS, client, definition};
use crate::support::nats::Publisher;
use crate::support::random::Random;

pub const MEMBERS: usize = 300;
/// How long a publisher waits for an acknowledgement before it sends the same message again.
const PATIENCE: Duration = Duration::from_millis(1_500);
const PAUSE: Duration = Duration::from_millis(5);

pub fn member(number: usize) -> String {
    format!("p{number}")
}

pub fn shard(member: &str) -> usize {
    shard_of(&MemberId::new(member).expect("a good id"), SHARDS).index()
}

/// A job that was acknowledged, and what was said of it.
#[derive(Debug, Clone)]
pub struct Acknowledged {
    /// Found again in the message by it.
    pub id: u64,
    pub shard: usize,
    pub sequence: usize,
    pub member: String,
    /// The score after the job, where the answer told it.
    pub score: Option<i64>,
}

#[derive(Default)]
pub struct Writes {
    ids: AtomicU64,
    pub acknowledged: Mutex<Vec<Acknowledged>>,
    pub wrong: Mutex<Vec<String>>,
    /// How often the board that comes and goes was defined.
    pub lives: AtomicU64,
}

impl Writes {
    fn job(&self, board: &str, random: &mut Random) -> (u64, String, Value) {
        let (id, member) = (self.ids.fetch_add(1, Ordering::SeqCst), member(random.index(MEMBERS)));
        let job = json!({
            "board": board, "member": member, "score": 1 + random.below(20), "meta": { "id": id },
        });
        (id, member, job)
    }

    fn acknowledge(&self, id: u64, member: &str, sequence: usize, score: Option<i64>) {
        let acknowledged =
            Acknowledged { id, shard: shard(member), sequence, member: member.to_owned(), score };
        self.acknowledged.lock().expect("no panic").push(acknowledged);
    }

    /// Everybody begins with a score, so that reads of members find them.
    pub fn begin(urls: &str) {
        let publisher = Publisher::connect(urls);
        for number in 0..MEMBERS {
            let member = member(number);
            let job = json!({ "board": ARENA, "member": member, "score": number, "meta": { "id": -1 } });
            publish(&publisher, &format!("begin-{number}"), &member, &job);
        }
    }

    /// Publishes jobs until the end, each message again under its id until it is acknowledged.
    pub fn publish_until(&self, urls: &str, should_end: &AtomicBool, mut random: Random) {
        let publisher = Publisher::connect(urls);
        while !should_end.load(Ordering::SeqCst) {
            let (id, member, job) = self.job(ARENA, &mut random);
            let sequence = publish(&publisher, &format!("publisher-{id}"), &member, &job);
            self.acknowledge(id, &member, sequence, None);
            thread::sleep(PAUSE);
        }
    }

    /// Writes through nodes until the end, every other time waiting for the result. A write without an answer
    /// may be stored or not.
    pub fn put_until(&self, bases: &RwLock<Vec<String>>, should_end: &AtomicBool, mut random: Random) {
        while !should_end.load(Ordering::SeqCst) {
            let bases = bases.read().expect("no panic").clone();
            let writer = client(random.pick::<String>(&bases));
            for _ in 0..20 {
                let (id, member, mut job) = self.job(ARENA, &mut random);
                let waits = random.below(2) == 0;
                for field in ["board", "member"] {
                    job.as_object_mut().expect("an object").remove(field);
                }
                let wait = if waits { "?wait=applied" } else { "" };
                let path = format!("/v1/boards/{ARENA}/members/{member}{wait}");
                match writer.send(Method::PUT, &path, Some(&job)) {
                    Ok((200 | 202, answer)) => {
                        let token = parse_as_of(answer["token"].as_str().expect("a token"));
                        assert_eq!(token[0].0, shard(&member), "{answer}");
                        let score = answer["entry"]["score"].as_i64();
                        self.acknowledge(id, &member, token[0].1, score);
                    }
                    Ok((503 | 504, _)) | Err(_) => break,
                    Ok((status, answer)) => {
                        self.wrong.lock().expect("no panic").push(format!("{path}: {status} {answer}"));
                    }
                }
                thread::sleep(PAUSE);
            }
        }
    }

    /// Defines the board that comes and goes, gives it some entries, and drops it, until the end.
    pub fn define_and_drop_until(
        &self,
        urls: &str,
        bases: &RwLock<Vec<String>>,
        should_end: &AtomicBool,
        mut random: Random,
    ) {
        let publisher = Publisher::connect(urls);
        let path = format!("/v1/boards/{SEASON}");
        let mut again = |method: Method, body: Option<Value>, good: &[u16]| {
            while !should_end.load(Ordering::SeqCst) {
                let base = random.pick::<String>(&bases.read().expect("no panic")).clone();
                match client(&base).send(method.clone(), &path, body.as_ref()) {
                    Ok((status, _)) if good.contains(&status) => return true,
                    Ok((503 | 504, _)) | Err(_) => thread::sleep(PAUSE * 10),
                    Ok((status, answer)) => {
                        self.wrong
                            .lock()
                            .expect("no panic")
                            .push(format!("{method} {path}: {status} {answer}"));
                        return true;
                    }
                }
            }
            false
        };
        let mut jobs = Random::new(self.ids.fetch_add(1, Ordering::SeqCst));
        while again(Method::PUT, Some(definition()), &[200, 201]) {
            self.lives.fetch_add(1, Ordering::SeqCst);
            for _ in 0..60 {
                let (id, member, job) = self.job(SEASON, &mut jobs);
                publish(&publisher, &format!("season-{id}"), &member, &job);
                thread::sleep(PAUSE);
            }
            // A drop whose answer was lost is found done.
            if !again(Method::DELETE, None, &[200, 404]) {
                break;
            }
        }
    }
}

fn publish(publisher: &Publisher, id: &str, member: &str, job: &Value) -> usize {
    let subject = format!("ranktree.jobs.{}", shard(member));
    loop {
        if let Some(sequence) = publisher.publish_as(id, &subject, &job.to_string(), PATIENCE) {
            return usize::try_from(sequence).expect("it fits");
        }
        thread::sleep(PAUSE);
    }
}
