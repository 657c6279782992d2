//! Messages of a shard's stream: jobs on one subject, and commands on the other. Commands define, drop and
//! trim boards, store on them what others make together, erase what rejects have of members, free parked
//! jobs, and tell the time.
//!
//! A publisher of jobs must not be able to publish commands. Only the subject tells the two apart, because
//! the server checks who may publish to a subject, but not what headers a message has.

use std::borrow::Cow;
use std::sync::Arc;

use async_nats::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

use crate::job::{MAX_JOBS_PER_MESSAGE, Reject, RejectCode};
use crate::queue::nats::definition_json::{DefinitionJson, format_of};
use crate::queue::nats::store_json::StoreJson;
use crate::state::{Incarnation, RecordNumber, TrimPoint, TrimSide};
use crate::tree::{MAX_WORDS, Words};
use crate::types::{BoardName, MemberId};
use crate::wire::{self, BoardNames};
use crate::writer::{BadJob, Jobs, Payload};

/// The header with a command's name. It means nothing on a message of jobs.
pub const COMMAND_HEADER: &str = "Ranktree-Command";
/// The header with the format of a command. Absent: 1. A node that does not know the format stops, as it does
/// at a command that it does not know.
pub const FORMAT_HEADER: &str = "Ranktree-Format";
/// The formats of commands that this version reads, from the first one. A command that defines a board has
/// the format of the definition, and every other one the first.
const COMMAND_FORMATS: [&str; 3] = ["1", "2", "3"];
const DEFINE: &str = "define";
const DROP: &str = "drop";
const TRIM: &str = "trim";
const STORE: &str = "store";
const ERASE: &str = "erase";
const UNPARK_COMMAND: &str = "free";
const TICK: &str = "tick";
/// All commands. If a command's meaning changes so that an earlier ranktree would misread it, it gets another
/// name, which stops the earlier one.
const COMMANDS: [&str; 7] = [DEFINE, DROP, TRIM, STORE, ERASE, UNPARK_COMMAND, TICK];
/// What a short job in an array takes.
const JOB_BYTES: usize = 64;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandJson {
    board: String,
    incarnation: u64,
    /// The number of the record that the command comes from. Absent if it is the incarnation's, as in
    /// commands from before there were numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    definition: Option<DefinitionJson>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnparkJson {
    jobs: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TickJson {}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EraseJson<'a> {
    /// Of whom rejects are erased.
    #[serde(borrow)]
    members: Vec<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrimJson<'a> {
    #[serde(borrow)]
    board: Cow<'a, str>,
    incarnation: u64,
    /// Whether entries before the trim point are removed, and not those after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    better: bool,
    /// The key words of the trim point.
    words: Cow<'a, [u64]>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    member: Option<Cow<'a, str>>,
    /// Members whose entries are removed if they are on that side of it.
    #[serde(borrow)]
    members: Vec<Cow<'a, str>>,
}

/// The value of [`FORMAT_HEADER`] for a command.
pub fn command_format(payload: &Payload) -> &'static str {
    let [first, second, third] = COMMAND_FORMATS;
    match payload {
        // A version that cannot read it would reject it, and then differ.
        Payload::Define { board, .. } if board.is_service() => third,
        Payload::Define { definition, .. } => match format_of(definition) {
            1 => first,
            2 => second,
            _ => third,
        },
        _ => first,
    }
}

/// A command as a message: header and body.
pub fn encode(payload: &Payload) -> Option<(&'static str, Vec<u8>)> {
    let (command, board, incarnation, number, definition) = match payload {
        Payload::Define { board, incarnation, number, definition } => {
            (DEFINE, board, incarnation, number, Some(DefinitionJson::from(&**definition)))
        }
        Payload::Drop { board, incarnation, number } => (DROP, board, incarnation, number, None),
        Payload::Trim { board, incarnation, point, members } => {
            let json = TrimJson {
                board: board.as_str().into(),
                incarnation: incarnation.0,
                better: point.side == TrimSide::Better,
                words: point.words.as_slice().into(),
                member: point.member.as_deref().map(String::from_utf8_lossy),
                members: members.iter().map(|member| member.as_str().into()).collect(),
            };
            return Some((
                TRIM,
                serde_json::to_vec(&json).expect("the value has no maps whose keys are not strings"),
            ));
        }
        Payload::Store(order) => {
            let json = StoreJson::from(order);
            return Some((
                STORE,
                serde_json::to_vec(&json).expect("the value has no maps whose keys are not strings"),
            ));
        }
        Payload::Erase { members } => {
            let json = EraseJson { members: members.iter().map(|member| member.as_str().into()).collect() };
            return Some((
                ERASE,
                serde_json::to_vec(&json).expect("the value has no maps whose keys are not strings"),
            ));
        }
        Payload::Unpark { jobs } => {
            let json = UnparkJson { jobs: *jobs };
            return Some((
                UNPARK_COMMAND,
                serde_json::to_vec(&json).expect("the value has no maps whose keys are not strings"),
            ));
        }
        Payload::Tick => return Some((TICK, b"{}".to_vec())),
        Payload::Jobs(_) => return None,
    };
    let number = number.map(|number| number.0).filter(|number| *number != incarnation.0);
    let json = CommandJson { board: board.to_string(), incarnation: incarnation.0, number, definition };
    Some((command, serde_json::to_vec(&json).expect("the value has no maps whose keys are not strings")))
}

/// What a message of the control subject asks for.
pub enum Control {
    /// A command, or a bad job if it cannot be read, because that must not stop the shard.
    Command(Payload),
    /// The name of a command of a later ranktree, with its format if only that is unknown. Other nodes may
    /// have carried it out, so this one must not continue without it.
    Unknown(String),
}

/// What a message of the control subject asks for.
pub fn decode_control(headers: Option<&HeaderMap>, bytes: &[u8]) -> Control {
    let header = |name| headers.and_then(|headers| headers.get(name)).map(HeaderValue::as_str);
    let (command, format) = (header(COMMAND_HEADER), header(FORMAT_HEADER).unwrap_or("1"));
    match command {
        Some(command) if !COMMANDS.contains(&command) => Control::Unknown(command.to_owned()),
        Some(command) if !COMMAND_FORMATS.contains(&format) => {
            Control::Unknown(format!("{command} of format {format}"))
        }
        Some(command) => {
            Control::Command(decode_command(command, bytes).unwrap_or_else(|| no_command(bytes)))
        }
        None => Control::Command(no_command(bytes)),
    }
}

/// A message on the control subject that is no command.
pub fn no_command(bytes: &[u8]) -> Payload {
    bad(bytes, Reject::new(RejectCode::Malformed, "the message is not a command that ranktree knows"))
}

fn decode_command(command: &str, bytes: &[u8]) -> Option<Payload> {
    if command == UNPARK_COMMAND {
        let UnparkJson { jobs } = serde_json::from_slice(bytes).ok()?;
        // The jobs that one message unparks are applied under one hold of the lock.
        return (1..=MAX_JOBS_PER_MESSAGE).contains(&jobs).then_some(Payload::Unpark { jobs });
    }
    if command == TICK {
        let TickJson {} = serde_json::from_slice(bytes).ok()?;
        return Some(Payload::Tick);
    }
    if command == TRIM {
        return decode_trim(serde_json::from_slice(bytes).ok()?);
    }
    if command == STORE {
        let json: StoreJson<'_> = serde_json::from_slice(bytes).ok()?;
        return json.read().map(Payload::Store);
    }
    if command == ERASE {
        let EraseJson { members } = serde_json::from_slice(bytes).ok()?;
        let members =
            members.iter().map(|member| MemberId::new(&**member).ok()).collect::<Option<Vec<_>>>()?;
        return (1..=MAX_JOBS_PER_MESSAGE).contains(&members.len()).then_some(Payload::Erase { members });
    }
    let json: CommandJson = serde_json::from_slice(bytes).ok()?;
    let board = BoardName::of_decision(&json.board).ok()?;
    let incarnation = Incarnation(json.incarnation);
    let number = Some(RecordNumber(json.number.unwrap_or(json.incarnation)));
    match (command, json.definition) {
        (DEFINE, Some(definition)) => {
            Some(Payload::Define { board, incarnation, number, definition: Arc::new(definition.read()?) })
        }
        (DROP, None) => Some(Payload::Drop { board, incarnation, number }),
        _ => None,
    }
}

/// `None` if it names no members, or more than one hold of the lock may remove.
fn decode_trim(json: TrimJson<'_>) -> Option<Payload> {
    let TrimJson { board, incarnation, better, words, member, members } = json;
    let side = if better { TrimSide::Better } else { TrimSide::Worse };
    let are_few = (1..=MAX_JOBS_PER_MESSAGE).contains(&members.len());
    if !are_few || !(1..=MAX_WORDS).contains(&words.len()) {
        return None;
    }
    let words = Words::from_slice(&words);
    let member = match member {
        Some(member) => Some(MemberId::new(&*member).ok()?.as_bytes().into()),
        None => None,
    };
    let members = members.iter().map(|member| MemberId::new(&**member));
    Some(Payload::Trim {
        board: BoardName::of_shard(&board).ok()?,
        incarnation: Incarnation(incarnation),
        point: TrimPoint { side, words, member },
        members: members.collect::<Result<_, _>>().ok()?,
    })
}

/// What a message of the jobs subject asks for. An unreadable message is a bad job, because it must not stop
/// the shard.
pub fn decode_jobs(names: &mut BoardNames, bytes: &[u8]) -> Payload {
    // Roughly as many as there are, so that a vector of them does not grow many times.
    let is_array = bytes.first() == Some(&b'[');
    let jobs = if is_array { MAX_JOBS_PER_MESSAGE.min(bytes.len() / JOB_BYTES) } else { 1 };
    let mut plain = Jobs::with_capacity(jobs);
    if wire::decode_plain(names, bytes, |job| plain.push(Ok(job))) {
        return Payload::Jobs(plain);
    }
    let decoded = match wire::decode_strictly(bytes) {
        Ok(decoded) => decoded,
        Err(reject) => return bad(bytes, reject),
    };
    if decoded.iter().all(Result::is_ok) {
        return Payload::Jobs(
            decoded.into_iter().map(|job| job.map_err(|reject| bad_job(bytes, reject))).collect(),
        );
    }
    // Rare, so only now is it worked out where each job begins and ends.
    let parts: Vec<&serde_json::value::RawValue> = serde_json::from_slice(bytes).unwrap_or_default();
    let jobs = decoded.into_iter().take(MAX_JOBS_PER_MESSAGE).enumerate().map(|(index, job)| {
        job.map_err(|reject| bad_job(parts.get(index).map_or(bytes, |part| part.get().as_bytes()), reject))
    });
    Payload::Jobs(jobs.collect())
}

fn bad(bytes: &[u8], reject: Reject) -> Payload {
    Payload::Jobs(smallvec![Err(bad_job(bytes, reject))])
}

fn bad_job(bytes: &[u8], reject: Reject) -> BadJob {
    BadJob { bytes: wire::cut_job(bytes), member: None, reject }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Definition, Policy};
    use crate::window::Window;

    #[test]
    fn commands_read_back_as_they_were() {
        let board = BoardName::new("a.b").expect("a good name");
        let incarnation = Incarnation(7);
        let definition = Arc::new(Definition { policy: Policy::Best, ..Definition::default() });
        for number in [7, 9].map(|number| Some(RecordNumber(number))) {
            let define = Payload::Define {
                board: board.clone(),
                incarnation,
                number,
                definition: Arc::clone(&definition),
            };
            let (command, bytes) = encode(&define).expect("a command");
            let Some(Payload::Define { board: b, incarnation: i, number: n, definition: d }) =
                decode_command(command, &bytes)
            else {
                panic!("{}", String::from_utf8_lossy(&bytes));
            };
            assert_eq!((&b, i, n, &d), (&board, incarnation, number, &definition));
            let (command, bytes) =
                encode(&Payload::Drop { board: board.clone(), incarnation, number }).expect("a command");
            let Some(Payload::Drop { board: b, incarnation: i, number: n }) = decode_command(command, &bytes)
            else {
                panic!("{}", String::from_utf8_lossy(&bytes));
            };
            assert_eq!((&b, i, n), (&board, incarnation, number));
        }
        // Commands from before there were numbers look like those whose number is the incarnation's.
        let number = Some(RecordNumber(7));
        let (_, bytes) =
            encode(&Payload::Drop { board: board.clone(), incarnation, number }).expect("a command");
        assert_eq!(bytes, br#"{"board":"a.b","incarnation":7}"#);
        let (command, unpark) = encode(&Payload::Unpark { jobs: 256 }).expect("a command");
        let Some(Payload::Unpark { jobs: 256 }) = decode_command(command, &unpark) else {
            panic!("{}", String::from_utf8_lossy(&unpark));
        };
        for jobs in ["0", "1001", "-1", "\"1\""] {
            assert!(decode_command(command, format!("{{\"jobs\":{jobs}}}").as_bytes()).is_none(), "{jobs}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(COMMAND_HEADER, "define");
        for poison in [&b""[..], b"\xff", b"{}", b"{\"board\":\"a\",\"incarnation\":1}"] {
            let Control::Command(Payload::Jobs(jobs)) = decode_control(Some(&headers), poison) else {
                panic!("{poison:?}")
            };
            assert!(jobs.iter().all(Result::is_err) && jobs.len() == 1);
        }
        // A command without its header, and a command on the jobs subject, are no commands.
        let Control::Command(without_header) = decode_control(None, &bytes) else { panic!("no header") };
        for payload in [without_header, decode_jobs(&mut BoardNames::default(), &bytes)] {
            let Payload::Jobs(jobs) = payload else { panic!("no header and no command") };
            let [Err(bad)] = &jobs[..] else { panic!("one bad job") };
            assert_eq!(bad.reject.code, RejectCode::Malformed);
        }
    }

    /// A node from before windows stops at the command, and does not go on without the board.
    #[test]
    fn a_definition_that_older_nodes_cannot_read_has_a_format_of_its_own() {
        let plain = Definition { keep: 3, ..Definition::default() };
        let windowed = Definition { windows: vec![Window::All, Window::Day], ..Definition::default() };
        for (definition, format) in [(plain, "1"), (windowed, "2")] {
            let (board, incarnation) = (BoardName::new("a").expect("a good name"), Incarnation(7));
            let define =
                Payload::Define { board, incarnation, number: None, definition: Arc::new(definition) };
            assert_eq!(command_format(&define), format);
            let (command, bytes) = encode(&define).expect("a command");
            let mut headers = HeaderMap::new();
            headers.insert(COMMAND_HEADER, command);
            headers.insert(FORMAT_HEADER, format);
            let Control::Command(Payload::Define { definition: read, .. }) =
                decode_control(Some(&headers), &bytes)
            else {
                panic!("{}", String::from_utf8_lossy(&bytes));
            };
            let Payload::Define { definition, .. } = define else { unreachable!("made above") };
            assert_eq!(read, definition);
        }
    }

    #[test]
    fn a_trim_reads_back_as_it_was() {
        let members: Vec<MemberId> =
            ["p42", "a\"b\\c", "日本"].map(|id| MemberId::new(id).expect("an id")).into();
        for member in [None, Some("日本".as_bytes().into())] {
            let side = if member.is_some() { TrimSide::Worse } else { TrimSide::Better };
            let point = TrimPoint { side, words: Words::from_slice(&[0, u64::MAX, 7]), member };
            let board = BoardName::new("a.b").expect("a good name");
            let trim = Payload::Trim {
                board: board.clone(),
                incarnation: Incarnation(7),
                point: point.clone(),
                members: members.clone(),
            };
            let (command, bytes) = encode(&trim).expect("a command");
            let Some(Payload::Trim { board: b, incarnation: i, point: c, members: m }) =
                decode_command(command, &bytes)
            else {
                panic!("{}", String::from_utf8_lossy(&bytes));
            };
            assert_eq!((b, i, c, &m), (board, Incarnation(7), point, &members));
        }
        let many = vec!["m"; MAX_JOBS_PER_MESSAGE + 1];
        for (words, members) in [
            (vec![1], vec![]),
            (vec![1], many),
            (vec![1], vec![""]),
            (vec![], vec!["m"]),
            (vec![1; MAX_WORDS + 1], vec!["m"]),
        ] {
            let json = serde_json::json!({
                "board": "a", "incarnation": 1, "words": words, "members": members
            });
            assert!(decode_command(TRIM, json.to_string().as_bytes()).is_none(), "{json}");
        }
    }

    #[test]
    fn a_command_of_a_later_version_is_told_from_a_message_that_is_no_command() {
        let mut headers = HeaderMap::new();
        headers.insert(COMMAND_HEADER, "explode");
        let Control::Unknown(name) = decode_control(Some(&headers), b"{}") else { panic!("it is known") };
        assert_eq!(name, "explode");
        for command in COMMANDS {
            headers.insert(COMMAND_HEADER, command);
            let Control::Command(Payload::Jobs(jobs)) = decode_control(Some(&headers), b"{\"x\":1}") else {
                panic!("{command}")
            };
            assert!(jobs.iter().all(Result::is_err) && jobs.len() == 1, "{command}");
        }
        headers.insert(COMMAND_HEADER, DROP);
        let drop = br#"{"board":"a","incarnation":7}"#;
        for (format, is_known) in [("1", true), ("2", true), ("3", true), ("4", false), ("", false)] {
            headers.insert(FORMAT_HEADER, format);
            match decode_control(Some(&headers), drop) {
                Control::Command(Payload::Drop { .. }) => assert!(is_known, "{format}"),
                Control::Unknown(name) => {
                    assert!(!is_known && name == format!("drop of format {format}"), "{name}");
                }
                Control::Command(_) => panic!("{format}"),
            }
        }
    }

    #[test]
    fn a_bad_job_of_an_array_is_kept_with_its_own_bytes() {
        let bytes = br#"[{"board":"a","member":"m","score":1}, {"board":"a","member":"m","score":"x"}]"#;
        let Payload::Jobs(jobs) = decode_jobs(&mut BoardNames::default(), bytes) else { panic!("jobs") };
        let bad = jobs[1].as_ref().expect_err("no number");
        assert_eq!(bad.bytes, br#"{"board":"a","member":"m","score":"x"}"#);
        assert!(jobs[0].is_ok());
    }
}
