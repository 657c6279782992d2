//! Reads through every node, one after the other, for as long as the test lasts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, RwLock};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::Method;

use crate::disturbed_cluster::oracle::parse_as_of;
use crate::disturbed_cluster::recorder::Recorder;
use crate::disturbed_cluster::world::{ARENA, SEASON, SHARDS, client};
use crate::disturbed_cluster::writers::{MEMBERS, member};
use crate::support::random::Random;

/// After a node did not answer.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, Clone)]
pub enum Question {
    Rank(i64),
    Member(String),
    Around(String),
    Top,
    Positions(usize),
    All,
    Count(i64, i64),
    ScoreAt(usize),
    Lookup(Vec<String>),
}

/// What a node said, to be checked at the end.
pub struct Answer {
    pub node: usize,
    pub board: &'static str,
    pub question: Question,
    pub body: Value,
}

/// All answers, and how many requests had none, by node and reason.
#[derive(Default)]
pub struct Answers {
    pub given: Mutex<Vec<Answer>>,
    pub not_given: Mutex<BTreeMap<(usize, String), usize>>,
    pub wrong: Mutex<Vec<String>>,
}

/// Reads through one node until the end.
pub fn read(
    node: usize,
    bases: &RwLock<Vec<String>>,
    recorder: &Recorder,
    answers: &Answers,
    should_end: &AtomicBool,
    mut random: Random,
) {
    let (mut base, mut reader) = (String::new(), client(""));
    while !should_end.load(Ordering::SeqCst) {
        let now = bases.read().expect("no panic")[node].clone();
        if now != base {
            (base, reader) = (now.clone(), client(&now));
        }
        let board = if random.below(4) == 0 { SEASON } else { ARENA };
        let question = question(&mut random);
        // Sometimes not older than what is stored by now.
        let after = (random.below(8) == 0).then(|| {
            let shard = random.index(usize::from(SHARDS));
            (shard, recorder.recorded(shard))
        });
        let (method, mut path, body) = request(board, &question);
        if let Some((shard, sequence)) = after.filter(|(_, sequence)| *sequence > 0) {
            let separator = if path.contains('?') { '&' } else { '?' };
            path = format!("{path}{separator}after={shard}:{sequence}&timeout_ms=2000");
        }
        let not_given = |why: String| {
            *answers.not_given.lock().expect("no panic").entry((node, why)).or_default() += 1;
        };
        match reader.send(method, &path, body.as_ref()) {
            Err(_) => {
                not_given("no connection".to_owned());
                thread::sleep(PAUSE);
            }
            Ok((200, body)) => {
                if let Some((shard, sequence)) = after
                    && let Some(text) = body["as_of"].as_str()
                    && parse_as_of(text).iter().any(|(of, at)| *of == shard && *at < sequence)
                {
                    let mut wrong = answers.wrong.lock().expect("no panic");
                    wrong.push(format!("{path} was answered as of {text}"));
                }
                answers.given.lock().expect("no panic").push(Answer { node, board, question, body });
            }
            Ok((status @ (503 | 504), body)) => {
                not_given(format!("{status} {}", body["code"].as_str().unwrap_or("without a code")));
                thread::sleep(PAUSE);
            }
            // Between two lives of the board; and the place that was asked for may be behind its end.
            Ok((404, _)) if board == SEASON => {}
            Ok((status, body)) => {
                let mut wrong = answers.wrong.lock().expect("no panic");
                wrong.push(format!("node {node}: {path} was answered {status} {body}"));
            }
        }
    }
}

fn question(random: &mut Random) -> Question {
    let any = |random: &mut Random| member(random.index(MEMBERS));
    match random.below(9) {
        0 => Question::Rank(random.score(3_000)),
        1 => Question::Member(any(random)),
        2 => Question::Around(any(random)),
        3 => Question::Top,
        4 => Question::Positions(1 + random.index(MEMBERS)),
        5 => Question::All,
        6 => {
            let min = random.score(2_000);
            Question::Count(min, min + random.score(500))
        }
        7 => Question::ScoreAt(1 + random.index(MEMBERS)),
        _ => Question::Lookup(
            (0..5).map(|_| any(random)).collect::<std::collections::BTreeSet<_>>().into_iter().collect(),
        ),
    }
}

fn request(board: &str, question: &Question) -> (Method, String, Option<Value>) {
    let of = |rest: String| format!("/v1/boards/{board}/{rest}");
    match question {
        Question::Rank(score) => (Method::GET, of(format!("rank?score={score}")), None),
        Question::Member(member) => (Method::GET, of(format!("members/{member}")), None),
        Question::Around(member) => {
            (Method::GET, of(format!("members/{member}/around?above=3&below=3")), None)
        }
        Question::Top => (Method::GET, of("top?limit=10".to_owned()), None),
        Question::Positions(from) => (Method::GET, of(format!("positions/{from}?limit=5")), None),
        Question::All => (Method::GET, of("top?limit=1000".to_owned()), None),
        Question::Count(min, max) => (Method::GET, of(format!("count?min={min}&max={max}")), None),
        Question::ScoreAt(position) => (Method::GET, of(format!("score?position={position}")), None),
        Question::Lookup(members) => {
            (Method::POST, of("members:lookup".to_owned()), Some(json!({ "members": members })))
        }
    }
}
