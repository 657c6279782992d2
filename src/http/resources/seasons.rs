//! Seasons: opening the next one, moving or cancelling one that is planned.

use axum::http::StatusCode;
use serde::Deserialize;

use crate::board::Definition;
use crate::http::render::problem::Problem;
use crate::http::render::reply::Reply;
use crate::http::request::call::Call;
use crate::http::request::change::Change;
use crate::http::request::json_body::parse_body;
use crate::http::request::params::Params;
use crate::operations::{BoardChanges, ChangedSeasons, Failure, SeasonChange, Wait};
use crate::types::{AsOf, BoardName, Timestamp, quoted};
use crate::window::{Instance, Window};

/// What the log says of changes.
const OPENED: &str = "a season of a board was opened";
const MOVED: &str = "a planned season of a board was moved";
const CANCELLED: &str = "a planned season of a board was cancelled";
/// Of a request that was sent once more, as after a lost answer.
const CONFIRMED: &str = "a season of a board was confirmed";

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeasonBody {
    #[serde(default)]
    at: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

impl SeasonBody {
    fn parse(body: &[u8]) -> Result<Self, Problem> {
        let body = body.trim_ascii();
        if body.is_empty() {
            return Ok(Self::default());
        }
        // serde would read an array as the values of the fields in their order.
        if body.starts_with(b"[") {
            return Err(Problem::bad_parameter(
                r#"the body must be an object such as {"name":"s2","at":"2026-12-01T00:00:00Z"}, or none at all"#,
            ));
        }
        parse_body(body)
    }

    /// When the season is to begin. `None`: as soon as possible.
    fn begin(&self) -> Result<Option<Timestamp>, Problem> {
        let read = |at: &String| {
            Timestamp::parse(at).map_err(|_| {
                Problem::bad_parameter(format!(
                    "at must be a time such as 2026-12-01T00:00:00Z, until 2262; got {}",
                    quoted(at)
                ))
            })
        };
        self.at.as_ref().map(read).transpose()
    }
}

/// The number of a season from its name.
fn number_of(name: &str) -> Option<u32> {
    let instance = Instance::of_name(name).filter(|instance| instance.window == Window::Season)?;
    u32::try_from(instance.number).ok()
}

fn number_in_path(call: &Call) -> Result<u32, Problem> {
    let name = call.segment("season");
    number_of(name).ok_or_else(|| {
        Problem::unknown_season(format!("a season has a name such as s7; got {}", quoted(name)))
    })
}

fn begin_of(definition: &Definition, number: u32) -> Option<Timestamp> {
    Some(definition.seasons.as_ref()?.span(i64::from(number))?.begin)
}

pub async fn open(call: Box<Call>) -> Result<Reply, Problem> {
    let params = Params::parse(call.query(), &["wait", "force"])?;
    params.write_options(Wait::UntilApplied)?;
    let force = params.flag("force")?;
    let (name, body) = (call.board_name()?, SeasonBody::parse(&call.body)?);
    let at = body.begin()?;
    let number = body.name.as_deref().map(|name| {
        number_of(name).ok_or_else(|| {
            Problem::bad_parameter(format!("name must be that of a season, such as s2; got {}", quoted(name)))
        })
    });
    let number = number.transpose()?;
    let change = SeasonChange::Open { number, at, force };
    let opened = call.begin_change(OPENED).forced(force);
    let ChangedSeasons { definition, token, changed } = change_of(&call, opened, &name, change).await?;
    // The one that was opened is the last that is planned.
    let seasons = definition.seasons.as_ref();
    let last = seasons.and_then(|seasons| seasons.planned(call.api.operations.now()).last().copied());
    let number = number.or(last.map(|(number, _)| number)).unwrap_or_default();
    let begin = begin_of(&definition, number).unwrap_or_default();
    let reply = reply(&name, number, Some(begin), &token);
    Ok(reply.with_status(if changed { StatusCode::CREATED } else { StatusCode::OK }))
}

pub async fn move_planned(call: Box<Call>) -> Result<Reply, Problem> {
    Params::parse(call.query(), &["wait"])?.write_options(Wait::UntilApplied)?;
    let (name, number) = (call.board_name()?, number_in_path(&call)?);
    let body = SeasonBody::parse(&call.body)?;
    let at = body.begin()?.filter(|_| body.name.is_none()).ok_or_else(|| {
        Problem::bad_parameter(r#"the body must be an object such as {"at":"2026-12-01T00:00:00Z"}"#)
    })?;
    let change = SeasonChange::Move { number, at };
    let ChangedSeasons { token, .. } = change_of(&call, call.begin_change(MOVED), &name, change).await?;
    Ok(reply(&name, number, Some(at), &token))
}

pub async fn cancel(call: Box<Call>) -> Result<Reply, Problem> {
    Params::parse(call.query(), &["wait"])?.write_options(Wait::UntilApplied)?;
    let (name, number) = (call.board_name()?, number_in_path(&call)?);
    let change = SeasonChange::Cancel { number };
    let ChangedSeasons { token, .. } = change_of(&call, call.begin_change(CANCELLED), &name, change).await?;
    Ok(reply(&name, number, None, &token))
}

/// # Arguments
/// `noted`: what the log says of it.
async fn change_of(
    call: &Call,
    noted: Change,
    name: &BoardName,
    change: SeasonChange,
) -> Result<ChangedSeasons, Problem> {
    let name = name.clone();
    let noted = |made: &Result<ChangedSeasons, Failure>| {
        let is_as_before = made.as_ref().is_ok_and(|made| !made.changed);
        let noted = if is_as_before { noted.named(CONFIRMED) } else { noted };
        noted.finish_operation(made);
    };
    let change = move |boards: BoardChanges| boards.change_seasons(name, change);
    Ok(call.api.operations.change_boards(change, noted).await?)
}

/// # Arguments
/// `begin`: `None`: it was cancelled.
fn reply(name: &BoardName, number: u32, begin: Option<Timestamp>, token: &AsOf) -> Reply {
    Reply::object(|object| {
        object.text("board", name.as_str());
        object.text("season", &format!("s{number}"));
        match &begin {
            Some(begin) => object.plain("begin", begin),
            None => object.bool("cancelled", true),
        }
        object.plain("token", token);
    })
}
