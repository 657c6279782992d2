//! Plays random jobs to nodes and to the model, and compares them.
//!
//! The service's time is that of messages, which no test sets. So the model is told the time of every
//! message: the stream has it; without one, a job of each shard that has no time of its own shows it.
//! Whatever begins, ends, closes, is dropped or expires does so at a few moments that are known
//! beforehand, or else long before or after the test. What is compared while such a moment passes is
//! compared once more.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::Method;

use super::board::Board;
use super::calendar::{MINUTE, SECOND, Season, Window, micros, now, text};
use super::clusters::Cluster;
use super::jobs::{self, BOARDS, COUNTING, Moments, PLAIN};
use super::reads::{Asked, Check, Reader, With, same, score_json};
use super::rules::{Entry, Rules};
use super::world::{World, shard_of};
use crate::support::client::{Client, Reply, count_of};
use crate::support::command::signal;
use crate::support::nats::wait_until;
use crate::support::random::Random;

/// The board of the jobs that tell the times of their messages.
const CLOCK: &str = "clock";

pub struct Play {
    pub random: Random,
    pub world: World,
    pub cluster: Cluster,
    members: Vec<String>,
    /// A member of each shard.
    probes: Vec<String>,
    moments: Moments,
    /// All moments so far, and those that not all shards have heard of.
    known: Vec<i64>,
    pending: Vec<i64>,
    /// How many requests wrote jobs.
    requests: u64,
}

pub fn ok((status, answer): Reply) -> Value {
    assert!((200..300).contains(&status), "{status}: {answer}");
    answer
}

impl Play {
    /// Defines the boards. Their day ends at the next full minute but for some seconds.
    pub fn begin(cluster: Cluster) -> Self {
        let probe = |shard| {
            let mut ids = (0..).map(|number| format!("probe{number}"));
            ids.find(|id| shard_of(id, cluster.shards) == shard).expect("one is of the shard")
        };
        let probes = (0..cluster.shards).map(probe).collect();
        let turn = ((now() + 6 * SECOND) / MINUTE + 1) * MINUTE;
        let mut play = Self {
            random: Random::seeded(),
            world: World::new(cluster.shards),
            cluster,
            members: jobs::members(),
            probes,
            moments: Moments { turn, season: 0 },
            known: vec![turn],
            pending: vec![turn],
            requests: 0,
        };
        let client = play.cluster.client(0);
        wait_until("boards can be decided", || {
            client.put(&format!("/v1/boards/{CLOCK}"), &json!({})).0 < 300
        });
        play.world.boards.insert(CLOCK.to_owned(), Board::new(Rules::default(), play.world.shards));
        play.define(PLAIN, Rules::default());
        play.define(COUNTING, jobs::counting_rules(turn));
        for board in BOARDS {
            let rules = jobs::random_rules(&mut play.random, board, turn);
            play.define(board, rules);
        }
        play
    }

    fn any_client(&mut self) -> &Client {
        let node = self.random.index(self.cluster.nodes.len());
        self.cluster.client(node)
    }

    pub fn define(&mut self, board: &str, rules: Rules) {
        println!("{board}: {}", rules.json());
        let definition = rules.json();
        let known = self.world.boards.get(board).map(|known| &known.rules);
        let final_until = known.and_then(|known| known.final_until_before(&rules, now()));
        let rules = Rules { final_until, ..rules };
        ok(self.any_client().put(&format!("/v1/boards/{board}?force=true"), &definition));
        let shards = self.world.shards;
        let known =
            self.world.boards.entry(board.to_owned()).or_insert_with(|| Board::new(rules.clone(), shards));
        known.rules = rules;
    }

    /// A random job of a random member.
    fn job(&mut self, of_shard: Option<u16>) -> Value {
        let shards = self.cluster.shards;
        let of_shard = |member: &&String| of_shard.is_none_or(|shard| shard_of(member, shards) == shard);
        let members: Vec<&String> = self.members.iter().filter(of_shard).collect();
        if members.is_empty() {
            return jobs::bad_job(&mut self.random);
        }
        let member = *self.random.pick(&members);
        let boards = &self.world.boards;
        let rules = |board: &str| boards.get(board).map(|board| &board.rules);
        jobs::random_job(&mut self.random, member, self.moments, rules, now())
    }

    /// Jobs of which the first ones, one of each shard, tell the time of the message.
    fn with_probes(&mut self, jobs: Vec<Value>) -> Vec<Value> {
        self.requests += 1;
        let probe = |member| json!({ "board": CLOCK, "member": member, "score": self.requests, "op": "set" });
        self.probes.iter().map(probe).chain(jobs).collect()
    }

    /// Writes jobs over HTTP.
    pub fn post(&mut self, jobs: Vec<Value>) {
        let jobs = self.with_probes(jobs);
        let answer = ok(self.any_client().post("/v1/jobs", &json!(jobs)));
        self.take_answer(&jobs, &answer);
    }

    pub fn post_some(&mut self, most: usize) {
        let number = 1 + self.random.index(most);
        let mut jobs: Vec<Value> = (0..number).map(|_| self.job(None)).collect();
        if self.random.below(4) == 0 {
            let board = format!("fresh{}", self.random.below(4));
            let member = self.random.pick(&self.members);
            jobs.push(json!({ "board": board, "member": member, "score": self.requests }));
        }
        self.post(jobs);
    }

    fn of_shard(&self, jobs: &[Value], shard: u16) -> Vec<(usize, Value)> {
        let home = |job: &Value| shard_of(job["member"].as_str().expect("an id"), self.cluster.shards);
        let numbered = jobs.iter().cloned().enumerate();
        numbered.filter(|(_, job)| home(job) == shard).collect()
    }

    fn take_answer(&mut self, jobs: &[Value], answer: &Value) {
        let results = answer["results"].as_array().unwrap_or_else(|| panic!("no results: {answer}"));
        assert_eq!(results.len(), jobs.len());
        for shard in 0..self.cluster.shards {
            let of_shard = self.of_shard(jobs, shard);
            let time = self.time_of(shard, answer, &results[usize::from(shard)]);
            let list: Vec<Value> = of_shard.iter().map(|(_, job)| job.clone()).collect();
            let outcomes = self.world.message(shard, time, &list);
            for ((index, job), outcome) in of_shard.iter().zip(outcomes) {
                let rejected = results[*index]["rejected"].as_str();
                assert_eq!(rejected, outcome.err(), "{job} at {}: {}", text(time), results[*index]);
            }
        }
    }

    /// The time of the message of a shard that an answer is about.
    ///
    /// # Arguments
    /// `probe`: what came of its first job. It has no entry if another node was too slow to count its part.
    fn time_of(&self, shard: u16, answer: &Value, probe: &Value) -> i64 {
        let time = &probe["entry"]["updated_at"];
        let Some(nats) = self.cluster.nats.as_ref().filter(|_| time.is_null()) else { return micros(time) };
        let token = answer["token"].as_str().unwrap_or_else(|| panic!("no token: {answer}"));
        let of_shard = token.split(',').find_map(|part| part.strip_prefix(&format!("{shard}:")));
        let sequence = of_shard.unwrap_or_else(|| panic!("nothing of shard {shard}: {answer}"));
        nats.stored_at(&format!("RANKTREE_JOBS_{shard}"), sequence.parse().expect("a sequence"))
    }

    /// Has an owner of a shard write jobs of its members.
    pub fn ask_an_owner(&mut self) {
        let shard = u16::try_from(self.random.below(u64::from(self.cluster.shards))).expect("a shard");
        self.requests += 1;
        let probe = self.probes.get(usize::from(shard)).expect("one of each shard");
        let mut jobs = vec![json!({ "board": CLOCK, "member": probe, "score": self.requests, "op": "set" })];
        for _ in 0..=self.random.index(20) {
            let job = self.job(Some(shard));
            jobs.extend(Some(job).filter(|job| job["member"].is_string() && !jobs::is_bad(job)));
        }
        let answer = self.cluster.write(shard, &json!(jobs));
        let results = answer["results"].as_array().unwrap_or_else(|| panic!("no results: {answer}"));
        let time = self.time_of(shard, &answer, &results[0]);
        let outcomes = self.world.message(shard, time, &jobs);
        for ((job, result), outcome) in jobs.iter().zip(results).zip(outcomes) {
            assert_eq!(result["rejected"].as_str(), outcome.err(), "{job} at {}: {result}", text(time));
        }
    }

    /// Writes one job, and compares what the answer says of its entry and of the one before.
    pub fn post_one(&mut self) {
        self.settle();
        self.cluster.wait_applied();
        let mut job = self.job(None);
        if self.pending.iter().any(|moment| *moment < now() + 10 * SECOND) || job["board"].is_null() {
            job = json!({ "board": PLAIN, "member": job["member"], "score": self.random.below(12) });
        }
        let board = job["board"].as_str().expect("a name").to_owned();
        let member = job["member"].as_str().expect("an id").to_owned();
        let place = |world: &World| {
            let board = world.boards.get(&board).expect("it is defined");
            let shown = board.shown("all");
            let index = shown.iter().position(|(id, _)| *id == member)?;
            let score = &shown[index].1.score;
            let better =
                shown.iter().filter(|(_, other)| board.rules.compare_scores(&other.score, score).is_lt());
            Some(json!({ "score": score_json(score), "rank": better.count() + 1, "position": index + 1 }))
        };
        let before = place(&self.world);
        let from = now();
        let jobs = self.with_probes(vec![job]);
        let answer = ok(self.any_client().post("/v1/jobs", &json!(jobs)));
        self.take_answer(&jobs, &answer);
        let result =
            answer["results"].as_array().and_then(|results| results.last()).expect("one for each job");
        let known = self.world.boards.get(&board).expect("it is defined");
        // Without entries: another node was too slow to count its part.
        let has_entries = result.get("previous").is_some();
        if !known.rules.has_all() || !has_entries || self.has_passed(from) {
            return;
        }
        same(&result["previous"], &json!(before), &format!("previous of {jobs:?}"))
            .unwrap_or_else(|why| panic!("{why}"));
        let shown = known.shown("all");
        let asked = Asked { name: &board, board: known, window: "", instance: "all", shown: &shown };
        let index = shown.iter().position(|(id, _)| *id == member);
        let reader = self.reader(0, "", now(), true);
        // One that expires with its message was there when its job was done.
        let was_there = index.is_none() && result["entry"].is_object() && known.rules.entry_ttl.is_some();
        let has_expired = |ttl: i64| micros(&result["entry"]["updated_at"]) + ttl <= now();
        if was_there && known.rules.entry_ttl.is_some_and(has_expired) {
            return;
        }
        let checked = match index {
            Some(index) => reader.check_entry(&asked, &result["entry"], index, With::default(), "the entry"),
            None => same(&result["entry"], &Value::Null, "the entry"),
        };
        checked.unwrap_or_else(|why| panic!("{jobs:?}: {why}"));
    }

    /// Publishes messages; a node is killed meanwhile, and started again.
    pub fn publish(&mut self, messages: usize) {
        let (killed, started) = (self.random.index(messages), self.random.index(messages));
        let node = self.random.index(self.cluster.nodes.len());
        let mut sent = Vec::new();
        for number in 0..messages {
            if number == killed {
                self.cluster.kill9(node);
            }
            if number == started && started > killed {
                self.cluster.restart(node);
            }
            let shard = u16::try_from(self.random.below(u64::from(self.cluster.shards))).expect("a shard");
            let mut jobs: Vec<Value> = Vec::new();
            for _ in 0..=self.random.index(6) {
                jobs.push(match self.random.below(20) {
                    0 => jobs::bad_job(&mut self.random),
                    // Some of these are of other shards.
                    1 => self.job(None),
                    _ => self.job(Some(shard)),
                });
            }
            let body = if let [job] = jobs.as_slice() { job.clone() } else { json!(jobs) };
            let nats = self.cluster.nats.as_ref().expect("there is a stream");
            let sequence = nats.publish(&format!("ranktree.jobs.{shard}"), body.to_string());
            sent.push((shard, sequence, jobs));
        }
        if started <= killed {
            self.cluster.restart(node);
        }
        for (shard, sequence, jobs) in sent {
            let nats = self.cluster.nats.as_ref().expect("there is a stream");
            let time = nats.stored_at(&format!("RANKTREE_JOBS_{shard}"), sequence);
            self.world.message(shard, time, &jobs);
        }
    }

    /// Writes jobs over HTTP to a single node, which is killed meanwhile, and finds out which shards have
    /// committed them.
    pub fn post_to_a_killed_node(&mut self) {
        let jobs: Vec<Value> = (0..20).map(|_| self.job(None)).collect();
        let jobs = self.with_probes(jobs);
        let (pid, delay) = (self.cluster.nodes[0].pid(), Duration::from_micros(self.random.below(6_000)));
        let killer = thread::spawn(move || {
            thread::sleep(delay);
            signal("KILL", pid);
        });
        let answer = self.cluster.client(0).send(Method::POST, "/v1/jobs", Some(&json!(jobs)));
        killer.join().expect("no panic");
        self.cluster.kill9(0);
        self.cluster.restart(0);
        match answer {
            Ok((200, answer)) => self.take_answer(&jobs, &answer),
            Ok(_) | Err(_) => {
                for shard in 0..self.cluster.shards {
                    let path = format!("/v1/boards/{CLOCK}/members/{}", self.probes[usize::from(shard)]);
                    let (_, probe) = self.cluster.client(0).get(&path);
                    if probe["score"] == json!(self.requests) {
                        let list: Vec<Value> =
                            self.of_shard(&jobs, shard).into_iter().map(|(_, job)| job).collect();
                        self.world.message(shard, micros(&probe["updated_at"]), &list);
                    }
                }
            }
        }
    }

    /// Tells all shards the time, a few times: a message does a bounded part of what is due.
    pub fn settle(&mut self) {
        let began = now();
        for _ in 0..3 {
            self.post(Vec::new());
        }
        self.pending.retain(|moment| *moment >= began);
    }

    /// Waits for what is due soon.
    fn wait_for_moments(&mut self, soon: i64) {
        let due = self.pending.iter().copied().filter(|moment| *moment <= now() + soon).max();
        if let Some(due) = due {
            // Time has to pass, whatever the machine.
            wait_until("the moment has come", || now() > due);
        }
        self.settle();
    }

    /// Whether something began or ended since.
    fn has_passed(&self, from: i64) -> bool {
        let to = now();
        self.known.iter().any(|moment| (from..=to).contains(moment))
    }

    /// Has an operator change a board, while no jobs come. If a moment passes meanwhile, it is not known on
    /// which side of it the change was, so the board begins anew.
    fn operate(&mut self, board: &str, act: impl FnOnce(&mut Self)) {
        self.settle();
        self.cluster.wait_applied();
        let from = now();
        act(self);
        self.settle();
        if self.has_passed(from) {
            self.replace(board);
        }
    }

    /// Drops a board, and defines another of the same name.
    fn replace(&mut self, board: &str) {
        loop {
            self.settle();
            let from = now();
            let path = format!("/v1/boards/{board}");
            let node = self.any_client();
            ok(node.send(Method::DELETE, &path, None).expect("the node answers"));
            self.world.boards.remove(board);
            let rules = jobs::random_rules(&mut self.random, board, self.moments.turn);
            self.wait_until_nodes_know(board, false);
            self.define(board, rules);
            self.settle();
            if !self.has_passed(from) {
                return;
            }
        }
    }

    /// Another node may answer for a board as it was, for a moment.
    fn wait_until_nodes_know(&self, board: &str, is_there: bool) {
        for node in 0..self.cluster.nodes.len() {
            let path = format!("/v1/boards/{board}");
            wait_until("the nodes know of the board", || {
                (self.cluster.client(node).get(&path).0 == 200) == is_there
            });
        }
    }

    /// One change of a random board.
    pub fn change_a_board(&mut self) {
        let board = *self.random.pick(&BOARDS);
        match self.random.below(12) {
            0..4 => {
                let known = self.world.boards.get(board).expect("it is defined").rules.clone();
                self.operate(board, |play| {
                    let rules = jobs::changed_rules(&mut play.random, &known, now());
                    play.define(board, rules);
                });
            }
            4..7 => self.operate(board, |play| play.trim(board)),
            7 => {
                self.operate(board, |play| {
                    println!("{board}: cleared");
                    ok(play.any_client().post(&format!("/v1/boards/{board}:clear"), &json!({})));
                    play.world.boards.get_mut(board).expect("it is defined").clear();
                });
            }
            8 => {
                println!("{board}: replaced");
                self.replace(board);
            }
            _ => self.open_a_season(),
        }
    }

    /// Removes entries of an open instance.
    fn trim(&mut self, board: &str) {
        let time = now();
        let known = self.world.boards.get(board).expect("it is defined").clone();
        let windows = known.rules.windows.iter().copied();
        let slices = windows.filter_map(|window| match window {
            Window::All => Some(("all".to_owned(), true)),
            window => {
                let slice = known.rules.slice_at(window, time)?;
                Some((slice.name.clone(), known.rules.is_open(&slice, time)))
            }
        });
        let slices: Vec<(String, bool)> = slices.collect();
        if slices.is_empty() {
            return;
        }
        let (instance, _) = self.random.pick(&slices).clone();
        let listed = known.listed(&instance);
        let place = self.random.index(listed.len().max(1)) + 1;
        let (body, last, worst) = if self.random.below(2) == 0 {
            // Hidden entries behind the last listed one go, too.
            let last = listed.get(place - 1);
            (
                json!({ "positions_beyond": place }),
                last.map(|(id, entry)| ((*id).to_owned(), (*entry).clone())),
                None,
            )
        } else {
            let score = listed
                .get(place - 1)
                .map_or_else(|| vec![3; known.rules.keys.len()], |(_, entry)| entry.score.clone());
            (json!({ "worse_than": score_json(&score) }), None, Some(score))
        };
        println!("{board}, {instance}: trimmed: {body}");
        let is_after = |rules: &Rules, id: &str, entry: &Entry| match (&last, &worst) {
            (Some((last_id, last)), _) => rules.compare((id, entry), (last_id, last)).is_gt(),
            (None, Some(score)) => rules.compare_scores(&entry.score, score).is_gt(),
            (None, None) => false,
        };
        let answer = ok(self.any_client().post(&format!("/v1/boards/{board}:trim?window={instance}"), &body));
        let trimmed = self.world.boards.get_mut(board).expect("it is defined").trim(&instance, is_after);
        assert_eq!(count_of(&answer["removed"]), trimmed, "{board} {instance} {body}: {answer}");
    }

    /// Opens the next season of a board with manual ones, in a few seconds.
    pub fn open_a_season(&mut self) {
        let is_manual = |board: &&&str| {
            let known = self.world.boards.get(**board).expect("it is defined");
            matches!(known.rules.season, Season::Manual(_))
        };
        let manual: Vec<&&str> = BOARDS.iter().filter(is_manual).collect();
        // One at a time; and its side of the turn of the day is known.
        let turn = self.moments.turn;
        let awaited = self.pending.iter().any(|moment| *moment != turn);
        if manual.is_empty() || awaited {
            return;
        }
        let board = **self.random.pick(&manual);
        self.settle();
        loop {
            let begin = now() + 1_300_000 + self.random.score(1_000_000);
            if self.pending.contains(&turn) && begin >= turn - SECOND {
                return;
            }
            println!("{board}: a season from {} on", text(begin));
            let (status, answer) = self
                .any_client()
                .post(&format!("/v1/boards/{board}/seasons?force=true"), &json!({ "at": text(begin) }));
            if status == 201 {
                let rules = &mut self.world.boards.get_mut(board).expect("it is defined").rules;
                let Season::Manual(begins) = &mut rules.season else { panic!("they are manual") };
                begins.push(begin);
                assert_eq!(answer["season"], format!("s{}", begins.len()), "{answer}");
                self.known.push(begin);
                self.pending.push(begin);
                self.moments.season = begin;
                return;
            }
            assert_eq!(status, 422, "the request took longer than until then: {answer}");
        }
    }

    pub fn reader<'a>(&'a self, node: usize, after: &'a str, now: i64, is_thorough: bool) -> Reader<'a> {
        let (client, members) = (self.cluster.client(node), self.members.as_slice());
        Reader { client, world: &self.world, after, now, members, is_thorough }
    }

    /// Compares all reads at every node with the model.
    pub fn check(&mut self, is_thorough: bool) {
        loop {
            self.wait_for_moments(4 * SECOND);
            let (token, from) = (self.cluster.token(), now());
            let mut random = self.random.fork();
            let check = |node| self.reader(node, &token, from, is_thorough).check_all(&mut random);
            let checked: Check = (0..self.cluster.nodes.len()).try_for_each(check);
            match checked {
                Ok(()) => return,
                Err(_) if self.has_passed(from) => {}
                Err(why) => panic!("at {}, the turn being {}: {why}", text(from), text(self.moments.turn)),
            }
        }
    }

    /// Waits until the day has ended.
    pub fn wait_for_the_turn(&mut self) {
        self.wait_for_moments(10 * MINUTE);
    }
}
