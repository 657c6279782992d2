//! `:clear` and `:trim`: removing all entries of a board, those after a position, or those on one side of a
//! score.
//!
//! A clear begins the board's next life, which every shard gets through its queue like any definition. A trim
//! finds the trim point once, over all shards, and removes what is on one side of it (`operations/trim.rs`).

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::board::ScoreRefused;
use crate::http::render::problem::Problem;
use crate::http::render::reply::Reply;
use crate::http::request::call::Call;
use crate::http::request::json_body::parse_body;
use crate::http::request::params::Params;
use crate::operations::{Removed, Wait};
use crate::query::{FindTrimPoint, TrimFrom};
use crate::state::TrimSide;
use crate::types::BoardName;
use crate::window::Instance;
use crate::wire::lenient::{score_of, unsigned_of};

/// The most characters that are shown of a value that is refused.
const SHOWN_CHARS: usize = 40;

/// What the log says of both.
const REMOVED: &str = "entries of a board were removed";

const TRIM_FORMS: &str = "send exactly one of the three: {\"positions_beyond\":1000}, {\"worse_than\":100} or {\"better_than\":9000}";

/// # Arguments
/// `instance`: the one that was trimmed.
fn reply(board: &BoardName, instance: Option<Instance>, removed: &Removed) -> Reply {
    tracing::debug!(board = %board, entries = removed.entries, "entries of a board were removed");
    Reply::object(|object| {
        object.text("board", board.as_str());
        if let Some(instance) = &instance {
            object.plain("window", instance);
        }
        object.count("removed", removed.entries);
        object.plain("token", &removed.token);
    })
}

pub async fn clear(call: Box<Call>) -> Result<Reply, Problem> {
    Params::parse(call.query(), &["wait"])?.write_options(Wait::UntilApplied)?;
    let name = call.board_name()?;
    let cleared = name.clone();
    let removed = call.change_boards(REMOVED, move |boards| boards.clear(cleared)).await?;
    Ok(reply(&name, None, &removed))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TrimBody<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    positions_beyond: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    worse_than: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    better_than: Option<&'a RawValue>,
}

/// A value that is present, `null` included.
fn present<'a, 'de: 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

fn parse_trim_start(body: &[u8]) -> Result<TrimFrom, Problem> {
    if body.trim_ascii().is_empty() {
        return Err(Problem::bad_parameter(TRIM_FORMS));
    }
    // serde would read an array as the values of the fields in their order.
    let is_object = body.trim_ascii_start().starts_with(b"{");
    let body: TrimBody<'_> = parse_body(body)?;
    let given = |field: Option<&'_ RawValue>| field.is_some_and(|_| is_object);
    let TrimBody { positions_beyond, worse_than, better_than } = body;
    if [positions_beyond, worse_than, better_than].into_iter().filter(|field| given(*field)).count() != 1 {
        return Err(Problem::bad_parameter(TRIM_FORMS));
    }
    let of_score = |(name, score, side): (&str, &RawValue, TrimSide)| {
        let wrong = |why: String| Problem::bad_score(format!("{name} is {}: {why}", shown(Some(score))));
        score_of(score.get()).map(|score| TrimFrom::Score(score, side)).map_err(wrong)
    };
    match (positions_beyond, worse_than, better_than) {
        (Some(position), ..) => {
            let position = unsigned_of(position.get()).filter(|position| *position > 0);
            position.map(TrimFrom::Position).ok_or_else(|| {
                Problem::bad_parameter(format!(
                    "positions_beyond must be the last position that stays, a whole number of 1 or more; got {}. To remove every entry, clear the board",
                    shown(positions_beyond)
                ))
            })
        }
        (_, Some(score), _) => of_score(("worse_than", score, TrimSide::Worse)),
        (.., Some(score)) => of_score(("better_than", score, TrimSide::Better)),
        _ => Err(Problem::bad_parameter(TRIM_FORMS)),
    }
}

fn shown(value: Option<&RawValue>) -> String {
    value.map(RawValue::get).unwrap_or_default().chars().take(SHOWN_CHARS).collect()
}

/// The score of a trim has more keys than the board's.
fn too_many_keys(given: usize, keys: usize) -> Problem {
    let plural = if keys == 1 { "" } else { "s" };
    Problem::bad_score(format!(
        "the board's scores have {keys} key{plural}, and the trim's has {given}; give the first key, or the first keys as a list"
    ))
}

pub async fn trim(call: Box<Call>) -> Result<Reply, Problem> {
    let params = Params::parse(call.query(), &["wait", "window"])?;
    params.write_options(Wait::UntilApplied)?;
    call.read_window(&params)?;
    let (operations, name) = (&call.api.operations, call.board_name()?);
    let start = parse_trim_start(&call.body)?;
    let sent = match &start {
        TrimFrom::Score(score, _) => score.keys().len(),
        TrimFrom::Position(_) => 0,
    };
    Box::pin(operations.before_trim(&name)).await?;
    let (found, (incarnation, point)) = call.ask(FindTrimPoint(start)).await?.split();
    let instance = found.instance;
    // The current instance of a window is open.
    if !found.definition.is_open(instance, operations.now()) {
        return Err(Problem::closed_window(instance));
    }
    let refused = |refused| match refused {
        ScoreRefused::KeyCount => too_many_keys(sent, found.definition.keys.len()),
        other => Problem::bad_score(format!("not a score: {other}")),
    };
    let removed = match point.map_err(refused)? {
        Some(point) => {
            let change = call.begin_change(REMOVED);
            let on_shards = instance.name_on_shards(&name);
            let removed = operations.trim(on_shards, (incarnation, point), &found.as_of).await;
            change.finish_operation(&removed);
            removed?
        }
        None => Removed { entries: 0, token: found.as_of },
    };
    Ok(reply(&name, Some(instance), &removed))
}
