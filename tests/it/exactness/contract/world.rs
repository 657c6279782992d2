//! The model: all boards and profiles as plain maps, told every message of every shard with its time. It
//! shares no code with the service.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::board::{Asked, Board};
use super::calendar::{MINUTE, micros};
use super::rules::Rules;

/// Why a job is rejected.
pub type Code = &'static str;

#[derive(Default)]
pub struct Profile {
    pub json: Option<Value>,
    version: Option<u64>,
}

pub struct World {
    pub shards: u16,
    pub boards: BTreeMap<String, Board>,
    pub profiles: BTreeMap<String, Profile>,
    /// Who is hidden, on a board or on all of them: an empty name; and the version that says so.
    pub bans: Bans,
    /// Versions of members that hold on every board.
    versions: BTreeMap<String, u64>,
    /// How many jobs each shard rejected, and why.
    pub rejects: BTreeMap<(u16, Code), usize>,
    /// Of the last message of each shard.
    times: Vec<i64>,
}

/// FNV-1a, as the contract has it.
pub fn shard_of(member: &str, shards: u16) -> u16 {
    let hash = member
        .bytes()
        .fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619));
    u16::try_from(hash % u32::from(shards)).expect("below the number of shards")
}

impl World {
    pub fn new(shards: u16) -> Self {
        Self {
            shards,
            boards: BTreeMap::new(),
            profiles: BTreeMap::new(),
            bans: Bans::new(),
            versions: BTreeMap::new(),
            rejects: BTreeMap::new(),
            times: vec![0; usize::from(shards)],
        }
    }

    /// One message. What became of each of its jobs.
    pub fn message(&mut self, shard: u16, time: i64, jobs: &[Value]) -> Vec<Result<(), Code>> {
        let last = self.times.get_mut(usize::from(shard)).expect("a shard");
        assert!(*last <= time, "the time of a shard does not go back");
        *last = time;
        self.boards.values_mut().for_each(|board| board.pass(shard, time));
        let mut outcomes = Vec::new();
        for job in jobs {
            let outcome = self.job(shard, job, time);
            if let Err(code) = outcome {
                *self.rejects.entry((shard, code)).or_default() += 1;
            }
            // One that was too old when it came is gone for the next job.
            self.boards.values_mut().for_each(|board| board.expire(shard, time));
            outcomes.push(outcome);
        }
        outcomes
    }

    fn job(&mut self, shard: u16, job: &Value, now: i64) -> Result<(), Code> {
        if let Some(code) = code_of_a_bad_job(job) {
            return Err(code);
        }
        let member = job["member"].as_str().expect("an id");
        if shard_of(member, self.shards) != shard {
            return Err("wrong_shard");
        }
        let at = job.get("at").map(micros);
        if at.is_some_and(|at| at - now > 5 * MINUTE) {
            return Err("future_time");
        }
        let version = job.get("version").and_then(Value::as_u64);
        if let Some(profile) = job.get("profile") {
            return self.profile(member, version, Some(profile).filter(|profile| **profile != json!({})));
        }
        if let Some(op @ ("hide" | "show")) = job["op"].as_str() {
            let board = job["board"].as_str().unwrap_or_default();
            return self.ban(member, board, op, version, at.unwrap_or(now));
        }
        let scores = job.get("scores").and_then(Value::as_object);
        let boards: Vec<(String, Option<&Value>)> = match (job.get("board"), scores) {
            (Some(board), _) => vec![(board.as_str().expect("a name").to_owned(), job.get("score"))],
            (None, Some(scores)) => {
                scores.iter().map(|(board, score)| (board.clone(), Some(score))).collect()
            }
            (None, None) => return self.leave_everything(member, version),
        };
        // All or nothing.
        let before: Vec<_> =
            boards.iter().map(|(name, _)| (name.clone(), self.boards.get(name).cloned())).collect();
        for (name, score) in &boards {
            let board =
                self.boards.entry(name.clone()).or_insert_with(|| Board::new(Rules::default(), self.shards));
            let asked = Asked {
                member,
                op: job.get("op").and_then(Value::as_str).unwrap_or(board.rules.policy),
                score: score.map(score_of),
                version,
                known: self.versions.get(member).copied(),
                hidden: is_hidden(&self.bans, name, member),
                meta: job.get("meta"),
                time: at.unwrap_or(now),
                now,
            };
            if let Err(code) = board.job(&asked) {
                for (name, board) in before {
                    match board {
                        Some(board) => drop(self.boards.insert(name, board)),
                        None => drop(self.boards.remove(&name)),
                    }
                }
                return Err(code);
            }
        }
        Ok(())
    }

    fn profile(&mut self, member: &str, version: Option<u64>, json: Option<&Value>) -> Result<(), Code> {
        let known = self.profiles.entry(member.to_owned()).or_default();
        if version.is_some() && version <= known.version {
            return Err("stale_version");
        }
        known.version = version.or(known.version);
        known.json = json.cloned();
        Ok(())
    }

    /// A ban begins or ends, on a board or on all of them. It is of a board's name, and creates none.
    fn ban(
        &mut self,
        member: &str,
        board: &str,
        op: &str,
        version: Option<u64>,
        time: i64,
    ) -> Result<(), Code> {
        let ban = (board.to_owned(), member.to_owned());
        let mut bans = self.bans.clone();
        let known_ban = bans.get(&ban).copied();
        if version.is_some() && known_ban.is_some_and(|known| version <= known) {
            return Err("stale_version");
        }
        if op == "hide" {
            bans.insert(ban, version.or(known_ban.flatten()));
        } else {
            bans.remove(&ban);
        }
        let known = self.versions.get(member).copied();
        if board.is_empty() {
            if version.is_some() && version <= known {
                return Err("stale_version");
            }
            self.versions.extend(version.map(|version| (member.to_owned(), version)));
            for (name, board) in &mut self.boards {
                board.hide_or_show(member, is_hidden(&bans, name, member));
            }
        } else if let Some(known_board) = self.boards.get_mut(board) {
            let hidden = is_hidden(&bans, board, member);
            let (score, meta, now) = (None, None, time);
            known_board.job(&Asked { member, op, score, version, known, hidden, meta, time, now })?;
        } else if known_ban.is_none() {
            return Err("unknown_board");
        }
        self.bans = bans;
        Ok(())
    }

    fn leave_everything(&mut self, member: &str, version: Option<u64>) -> Result<(), Code> {
        let profile = self.profiles.get_mut(member);
        let profile = profile.filter(|known| known.json.is_some() || known.version.is_some());
        if version.is_some() && version <= self.versions.get(member).copied() {
            return Err("stale_version");
        }
        let is_newer = |known: Option<u64>| version.is_some() && version <= known;
        if let Some(known) = profile {
            if !is_newer(known.version) {
                (known.json, known.version) = (None, version.or(known.version));
            }
        } else if version.is_some() {
            self.profiles.insert(member.to_owned(), Profile { json: None, version });
        }
        self.versions.extend(version.map(|version| (member.to_owned(), version)));
        let leaving = self.boards.values_mut().filter(|board| !is_newer(board.version(member)));
        leaving.for_each(|board| board.leave(member));
        Ok(())
    }
}

type Bans = BTreeMap<(String, String), Option<u64>>;

fn is_hidden(bans: &Bans, board: &str, member: &str) -> bool {
    let has = |board: &str| bans.contains_key(&(board.to_owned(), member.to_owned()));
    has("") || has(board)
}

pub fn score_of(score: &Value) -> Vec<i64> {
    match score {
        Value::Array(keys) => keys.iter().flat_map(score_of).collect(),
        Value::String(text) => vec![text.parse().expect("an integer")],
        one => vec![one.as_i64().expect("an integer")],
    }
}

/// Jobs that are rejected whatever the boards hold.
pub fn bad_jobs() -> [(Code, Value); 7] {
    [
        ("malformed", json!({ "board": "arena", "member": "a", "scor": 1 })),
        ("malformed", json!({ "board": "ar ena", "member": "a", "score": 1 })),
        ("malformed", json!({ "board": "arena", "member": "a", "op": "hide", "score": 1 })),
        ("bad_member", json!({ "board": "arena", "member": "", "score": 1 })),
        ("bad_score", json!({ "board": "arena", "member": "a", "score": 1.5 })),
        ("bad_score", json!({ "board": "arena", "member": "a", "score": "9223372036854775808" })),
        (
            "too_large",
            json!({ "board": "arena", "member": "a", "score": 1, "meta": { "text": "x".repeat(1_024) } }),
        ),
    ]
}

fn code_of_a_bad_job(job: &Value) -> Option<Code> {
    bad_jobs().into_iter().find(|(_, bad)| bad == job).map(|(code, _)| code)
}
