//! A job's JSON, field by field: what is wrong with a job is told precisely.
//!
//! Knows: fields, their kinds, and which of them belong together. Must not know: boards' definitions, or
//! anything else that only the current state can judge. Strict: a field that is not understood is refused,
//! never ignored.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use smallvec::smallvec;

use crate::job::{
    Boards, Job, JobId, MAX_BOARDS_PER_JOB, MAX_JOB_ID_BYTES, MAX_JOBS_PER_MESSAGE, MAX_METADATA_BYTES,
    MAX_PROFILE_BYTES, Metadata, Op, Profile, Reject, RejectCode, Targets,
};
use crate::types::{BoardName, Malformed, MemberId, Score, Timestamp, quoted, shown};
use crate::wire::compact::compact_unescaped;
use crate::wire::fast_path::BoardNames;
use crate::wire::json_words::json_words;
use crate::wire::lenient::{JsonFields, Name, given, score_of, text_of, unsigned_of};

/// An example of a job, for error messages.
const EXAMPLE: &str = r#"{"board":"arena","member":"p42","score":1200}"#;

/// How deep metadata and profiles may be nested. Answers nest them some levels deeper, and many JSON parsers
/// stop at 128.
const METADATA_DEPTH_MAX: usize = 64;

/// Decodes by asking each value what it is, so that every mistake can be explained.
///
/// # Errors
/// When the bytes are no JSON, or neither an object nor an array of 1 to [`MAX_JOBS_PER_MESSAGE`].
pub fn decode_strictly(bytes: &[u8]) -> Result<Vec<Decoded>, Reject> {
    match serde_json::from_slice::<Jobs>(bytes) {
        Ok(jobs) => jobs.0,
        Err(error) => decode_each(bytes).ok_or_else(|| not_json(bytes, &error)),
    }
}

/// Decodes job by job an array that is well-formed and has a name that cannot be read, such as half of a
/// surrogate pair. Only the job with that name is refused.
fn decode_each(bytes: &[u8]) -> Option<Vec<Decoded>> {
    let jobs: Vec<&RawValue> = serde_json::from_slice(bytes).ok()?;
    let mut names = BoardNames::default();
    (1..=MAX_JOBS_PER_MESSAGE).contains(&jobs.len()).then(|| {
        jobs.iter().map(|job| read_fields(job.get().as_bytes())?.into_job(&mut names, None)).collect()
    })
}

fn read_fields(bytes: &[u8]) -> Result<Fields<'_>, Reject> {
    match serde_json::from_slice::<MaybeFields<'_>>(bytes) {
        Ok(fields) => fields.0.map_err(|found| not_an_object(&found)),
        Err(error) => Err(not_json(bytes, &error)),
    }
}

/// Decodes a job whose board and member the URL's path has named. The body may repeat them.
///
/// # Errors
/// When the bytes are no JSON, or no job, or name another board or member.
pub fn decode_for(bytes: &[u8], board: BoardName, member: MemberId) -> Decoded {
    read_fields(bytes)?.into_job(&mut BoardNames::default(), Some((board, member)))
}

fn malformed(detail: impl Into<String>) -> Reject {
    Reject::new(RejectCode::Malformed, detail)
}

fn not_json(bytes: &[u8], error: &serde_json::Error) -> Reject {
    malformed(format!("the job is not JSON: {}", json_words(bytes, error)))
}

fn not_an_object(found: &str) -> Reject {
    malformed(format!("a job must be a JSON object such as {EXAMPLE}; got {found}"))
}

/// A job's fields as JSON text. Absent and null are the same, except where a value is required.
#[derive(Default)]
struct Fields<'a> {
    board: Option<&'a RawValue>,
    member: Option<&'a RawValue>,
    score: Option<&'a RawValue>,
    scores: Option<&'a RawValue>,
    op: Option<&'a RawValue>,
    version: Option<&'a RawValue>,
    at: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    /// The text as the client wrote it: numbers keep all their digits, and fields their order.
    meta: Option<&'a RawValue>,
    /// The same.
    profile: Option<&'a RawValue>,
    /// What is wrong with the first field that is unknown or is given twice.
    error: Option<String>,
}

impl<'a> Fields<'a> {
    fn read<A: MapAccess<'a>>(mut map: A) -> Result<Self, A::Error> {
        let mut fields = Self::default();
        while let Some(Name(name)) = map.next_key::<Name<'a>>()? {
            let slot = match name.as_ref() {
                "board" => &mut fields.board,
                "member" => &mut fields.member,
                "score" => &mut fields.score,
                "scores" => &mut fields.scores,
                "op" => &mut fields.op,
                "version" => &mut fields.version,
                "at" => &mut fields.at,
                "id" => &mut fields.id,
                "meta" => &mut fields.meta,
                "profile" => &mut fields.profile,
                other => {
                    map.next_value::<IgnoredAny>()?;
                    fields.error.get_or_insert_with(|| {
                        format!(
                            "a job has no field named {}; it may have board, member, score, scores, op, version, \
                             at, id, meta and profile",
                            quoted(other)
                        )
                    });
                    continue;
                }
            };
            let twice = slot.replace(map.next_value()?).is_some();
            if twice {
                fields.error.get_or_insert_with(|| format!("{name} is given twice"));
            }
        }
        Ok(fields)
    }

    /// # Arguments
    /// `from_path`: the board and the member that the path of the request names.
    fn into_job(self, names: &mut BoardNames, from_path: Option<(BoardName, MemberId)>) -> Decoded {
        let op = read_op(given(self.op))?;
        if let Some(error) = self.error {
            return Err(malformed(error));
        }
        let (board_from_path, member_from_path) = from_path.unzip();
        let member = read_member(given(self.member), member_from_path)?;
        let version = read_version(given(self.version))?;
        let at = read_at(given(self.at))?;
        let id = read_id(given(self.id))?;
        if op == Some(Op::Profile) {
            let (targets, op) = (Targets::Profile(self.only_profile(board_from_path.as_ref())?), op);
            return Ok(Job { member, targets, op, version, at, meta: None, id });
        }
        if let Some(profile) = given(self.profile) {
            let detail = format!("only the operation profile takes a profile; got {}", shown(profile));
            return Err(malformed(detail));
        }
        let targets = if op.is_none_or(Op::takes_score) {
            scored_targets(names, given(self.board), self.score, given(self.scores), board_from_path)?
        } else {
            let op = op.map(Op::name).unwrap_or_default();
            if let Some(score) = given(self.score).or(given(self.scores)) {
                return Err(malformed(format!("{op} takes no score; got {}", shown(score))));
            }
            if let Some(meta) = given(self.meta) {
                return Err(malformed(format!("{op} takes no meta; got {}", shown(meta))));
            }
            match board_of(names, given(self.board), board_from_path)? {
                Some(board) => Targets::Boards(smallvec![(board, None)]),
                // Every other operation takes a score.
                None => Targets::EveryBoard,
            }
        };
        let meta = read_meta(given(self.meta))?;
        Ok(Job { member, targets, op, version, at, meta, id })
    }

    /// The profile of a job that has nothing else for its member.
    fn only_profile(&self, board_from_path: Option<&BoardName>) -> Result<Profile, Reject> {
        if let Some(board) = board_from_path {
            return Err(malformed(format!(
                "profile is of a member, not of its entry on {board}: send it to /v1/jobs"
            )));
        }
        let others =
            [("board", self.board), ("score", self.score), ("scores", self.scores), ("meta", self.meta)];
        for (name, value) in others {
            if let Some(value) = given(value) {
                return Err(malformed(format!("profile takes no {name}; got {}", shown(value))));
            }
        }
        let raw = given(self.profile).ok_or_else(|| malformed("profile is missing"))?;
        let text = read_object("profile", r#"{"name": "Alice"}"#, raw, MAX_PROFILE_BYTES)?;
        Ok(Profile(text.into()))
    }
}

fn scored_targets(
    names: &mut BoardNames,
    board: Option<&str>,
    score: Option<&RawValue>,
    scores: Option<&str>,
    from_path: Option<BoardName>,
) -> Result<Targets, Reject> {
    if let Some(scores) = scores {
        if from_path.is_some() || board.is_some() || given(score).is_some() {
            return Err(malformed("scores cannot be combined with board or score"));
        }
        if !scores.starts_with('{') {
            let found = shown(scores);
            return Err(malformed(format!(
                "scores must be an object such as {{\"arena\": 1200}}; got {found}"
            )));
        }
        let JsonFields(scores) =
            serde_json::from_str(scores).map_err(|error| not_json(scores.as_bytes(), &error))?;
        if scores.is_empty() {
            return Err(malformed("scores names no board"));
        }
        if scores.len() > MAX_BOARDS_PER_JOB {
            let detail = format!("a job may change at most {MAX_BOARDS_PER_JOB} boards");
            return Err(Reject::new(RejectCode::TooLarge, detail));
        }
        let mut boards = Boards::with_capacity(scores.len());
        for (name, score) in scores {
            let name = names.get(&name)?;
            if boards.iter().any(|(known, _)| *known == name) {
                return Err(malformed(format!("scores names {name} twice")));
            }
            let score = read_score(score)
                .map_err(|reject| Reject { detail: format!("{name}: {}", reject.detail), ..reject })?;
            boards.push((name, Some(score)));
        }
        return Ok(Targets::Boards(boards));
    }
    let board = board_of(names, board, from_path)?.ok_or_else(|| malformed("board is missing"))?;
    let score = read_score(score.ok_or_else(|| malformed("score is missing"))?)?;
    Ok(Targets::Boards(smallvec![(board, Some(score))]))
}

fn read_score(value: &RawValue) -> Result<Score, Reject> {
    score_of(value.get()).map_err(|why| Reject::new(RejectCode::BadScore, format!("not a score: {why}")))
}

fn read_op(value: Option<&str>) -> Result<Option<Op>, Reject> {
    let Some(value) = value else { return Ok(None) };
    let name = text_of(value);
    let op = name.as_deref().and_then(Op::of_name);
    let known = || {
        let found = shown(value);
        malformed(format!(
            "op must be set, best, incr, create, update, remove, hide, show or profile; got {found}"
        ))
    };
    op.map(Some).ok_or_else(known)
}

fn read_member(value: Option<&str>, from_path: Option<MemberId>) -> Result<MemberId, Reject> {
    let bad = |detail: String| Reject::new(RejectCode::BadMember, detail);
    let Some(value) = value else { return from_path.ok_or_else(|| bad("member is missing".to_owned())) };
    let text = text_of(value).ok_or_else(|| bad(format!("member must be a string; got {}", shown(value))))?;
    match from_path {
        None => MemberId::new(text.as_ref()).map_err(|why| bad(why.got(&text))),
        Some(named) if text == named.as_str() => Ok(named),
        Some(named) => {
            let (found, path) = (quoted(&text), quoted(named.as_str()));
            Err(malformed(format!(
                "member is {found}, but the path names {path}; leave member out of the body"
            )))
        }
    }
}

fn board_of(
    names: &mut BoardNames,
    value: Option<&str>,
    from_path: Option<BoardName>,
) -> Result<Option<BoardName>, Reject> {
    let Some(value) = value else { return Ok(from_path) };
    let text =
        text_of(value).ok_or_else(|| malformed(format!("board must be a string; got {}", shown(value))))?;
    match from_path {
        None => names.get(&text).map(Some),
        Some(named) if text == named.as_str() => Ok(Some(named)),
        Some(named) => {
            let found = quoted(&text);
            Err(malformed(format!(
                "board is {found}, but the path names {named}; leave board out of the body"
            )))
        }
    }
}

fn read_version(value: Option<&str>) -> Result<Option<u64>, Reject> {
    let Some(value) = value else { return Ok(None) };
    let refused = || {
        malformed(format!(
            "version must be an unsigned 64-bit integer such as 17, or its decimal string; got {}",
            shown(value)
        ))
    };
    unsigned_of(value).map(Some).ok_or_else(refused)
}

fn read_at(value: Option<&str>) -> Result<Option<Timestamp>, Reject> {
    let Some(value) = value else { return Ok(None) };
    let text = text_of(value).unwrap_or_default();
    let refused = |why: Malformed| malformed(format!("at: {why}, in quotation marks; got {}", shown(value)));
    Timestamp::parse(&text).map(Some).map_err(refused)
}

fn read_id(value: Option<&str>) -> Result<Option<JobId>, Reject> {
    let Some(value) = value else { return Ok(None) };
    let id = text_of(value).and_then(|text| JobId::new(&text));
    id.map(Some).ok_or_else(|| {
        malformed(format!(
            "id must be a string of 1 to {MAX_JOB_ID_BYTES} bytes without control characters; got {}",
            shown(value)
        ))
    })
}

fn read_meta(raw: Option<&str>) -> Result<Option<Metadata>, Reject> {
    let Some(raw) = raw else { return Ok(None) };
    let text = read_object("meta", r#"{"car": "mx5"}"#, raw, MAX_METADATA_BYTES)?;
    Ok(Some(Metadata(text.into())))
}

/// The compact form of a JSON object that is kept as text.
fn read_object(name: &str, example: &str, raw: &str, limit: usize) -> Result<String, Reject> {
    if !raw.starts_with('{') {
        let found = shown(raw);
        return Err(malformed(format!("{name} must be a JSON object such as {example}; got {found}")));
    }
    // Raw text was only skipped over. A value that no client could read, such as 1e999, must not reach an
    // answer.
    serde_json::from_str::<Value>(raw)
        .map_err(|error| malformed(format!("{name}: {}", json_words(raw.as_bytes(), &error))))?;
    let (text, depth) = compact_unescaped(raw);
    if text.len() > limit {
        let detail =
            format!("{name} has {} bytes as compact JSON in UTF-8; the limit is {limit}", text.len());
        return Err(Reject::new(RejectCode::TooLarge, detail));
    }
    if depth > METADATA_DEPTH_MAX {
        return Err(malformed(format!(
            "{name} is nested {depth} levels deep; the limit is {METADATA_DEPTH_MAX}"
        )));
    }
    Ok(text)
}

/// A job's fields; for JSON that is no object, the kind of value found.
struct MaybeFields<'a>(Result<Fields<'a>, String>);

/// One job or an array of them.
struct Jobs(Result<Vec<Decoded>, Reject>);

impl<'de> Deserialize<'de> for MaybeFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldsVisitor)
    }
}

impl<'de> Deserialize<'de> for Jobs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JobsVisitor)
    }
}

/// Visits of JSON that is neither object nor array. All give the same answer, with the value found.
macro_rules! visit_scalars {
    ($value:ty, $answer:expr) => {
        type Value = $value;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON value")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($answer("null".to_owned()))
        }

        fn visit_bool<E>(self, found: bool) -> Result<Self::Value, E> {
            Ok($answer(found.to_string()))
        }

        fn visit_i64<E>(self, found: i64) -> Result<Self::Value, E> {
            Ok($answer(found.to_string()))
        }

        fn visit_u64<E>(self, found: u64) -> Result<Self::Value, E> {
            Ok($answer(found.to_string()))
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($answer("a number".to_owned()))
        }

        fn visit_str<E>(self, found: &str) -> Result<Self::Value, E> {
            Ok($answer(quoted(found)))
        }
    };
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    visit_scalars!(MaybeFields<'de>, |found| MaybeFields(Err(found)));

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<MaybeFields<'de>, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(MaybeFields(Err("an array".to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<MaybeFields<'de>, A::Error> {
        Fields::read(map).map(|fields| MaybeFields(Ok(fields)))
    }
}

struct JobsVisitor;

impl<'de> Visitor<'de> for JobsVisitor {
    visit_scalars!(Jobs, |found: String| Jobs(Err(malformed(format!(
        "one job such as {EXAMPLE}, or an array of 1 to {MAX_JOBS_PER_MESSAGE} jobs, is expected; got {found}"
    )))));

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Jobs, A::Error> {
        let mut names = BoardNames::default();
        let mut jobs = Vec::new();
        while let Some(MaybeFields(fields)) = items.next_element()? {
            if jobs.len() == MAX_JOBS_PER_MESSAGE {
                let mut count = jobs.len() + 1;
                while items.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                let detail = format!("the array has {count} jobs; the limit is {MAX_JOBS_PER_MESSAGE}");
                return Ok(Jobs(Err(Reject::new(RejectCode::TooLarge, detail))));
            }
            let job = fields.map_err(|found| not_an_object(&found));
            jobs.push(job.and_then(|fields: Fields<'_>| fields.into_job(&mut names, None)));
        }
        Ok(Jobs(if jobs.is_empty() {
            Err(malformed("an array of jobs must hold at least one job"))
        } else {
            Ok(jobs)
        }))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Jobs, A::Error> {
        let job = Fields::read(map)?.into_job(&mut BoardNames::default(), None);
        Ok(Jobs(Ok(vec![job])))
    }
}

/// A job, or the reason why the bytes are no job.
pub type Decoded = Result<Job, Reject>;
