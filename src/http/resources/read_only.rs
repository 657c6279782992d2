//! `POST /v1/readonly`: a board or the service takes no writes, or takes them again.

use std::sync::Arc;

use serde::Deserialize;

use crate::board::ReadOnly;
use crate::http::render::json::Object;
use crate::http::render::problem::Problem;
use crate::http::render::reply::Reply;
use crate::http::request::call::Call;
use crate::http::request::json_body::parse_body;
use crate::http::request::params::{Params, board_name};
use crate::operations::{BoardChanges, Failure, SetReadOnly, Wait};
use crate::types::BoardName;

/// What the log says of changes.
const SERVICE_SET: &str = "the service was made read-only";
const SERVICE_FREED: &str = "the service was made writable";
const BOARD_SET: &str = "a board was made read-only";
const BOARD_FREED: &str = "a board was made writable";
/// Of a request that was sent once more.
const CONFIRMED: &str = "being read-only was confirmed";

const FORM: &str =
    r#"the body must be an object such as {"readonly":true,"reason":"moving to new machines"}"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    #[serde(default)]
    board: Option<String>,
    readonly: bool,
    #[serde(default)]
    reason: Option<String>,
}

impl Body {
    fn parse(body: &[u8]) -> Result<Self, Problem> {
        // serde would read an array as the values of the fields in their order.
        if !body.trim_ascii_start().starts_with(b"{") {
            return Err(Problem::bad_parameter(FORM));
        }
        parse_body(body)
    }

    /// Why it is to be read-only. `None`: it is not to be.
    fn reason(&self) -> Result<Option<Arc<str>>, Problem> {
        if let Some(reason) = &self.reason {
            ReadOnly::check_reason(reason).map_err(|why| Problem::bad_parameter(why.to_string()))?;
        }
        if !self.readonly {
            return Ok(None);
        }
        let Some(reason) = &self.reason else {
            return Err(Problem::bad_parameter(format!(
                "reason is missing, which refused clients are told: {FORM}"
            )));
        };
        Ok(Some(reason.as_str().into()))
    }
}

pub async fn post(call: Box<Call>) -> Result<Reply, Problem> {
    Params::parse(call.query(), &["wait"])?.write_options(Wait::UntilApplied)?;
    let body = Body::parse(&call.body)?;
    let (board, reason) = (body.board.as_deref().map(board_name).transpose()?, body.reason()?);
    if let Some(grant) = call.confined_to()
        && !board.as_ref().is_some_and(|board| grant.allows_board(board.as_str()))
    {
        let problem = Problem::forbidden_board(match &board {
            Some(board) => format!("the token does not give access to the board {board}"),
            None => "this request affects every board, but the token is confined to some boards".to_owned(),
        });
        call.note_refusal(&problem);
        return Err(problem);
    }
    let what = match (&board, &reason) {
        (None, Some(_)) => SERVICE_SET,
        (None, None) => SERVICE_FREED,
        (Some(_), Some(_)) => BOARD_SET,
        (Some(_), None) => BOARD_FREED,
    };
    let noted = call.begin_change(what).about(board.as_ref().map(BoardName::as_str), reason.as_deref());
    let noted = |made: &Result<SetReadOnly, Failure>| {
        let is_as_before = made.as_ref().is_ok_and(|made| !made.changed);
        let noted = if is_as_before { noted.named(CONFIRMED) } else { noted };
        noted.finish_operation(made);
    };
    let named = board.clone();
    let change = move |boards: BoardChanges| boards.set_read_only(named, reason);
    let set = call.api.operations.change_boards(change, noted).await?;
    Ok(Reply::object(|object| {
        object.or_null("board", board.as_ref().map(BoardName::as_str), Object::text);
        object.bool("readonly", set.read_only.is_some());
        object.or_null("reason", set.read_only.as_ref().map(|set| set.reason.as_str()), Object::text);
        object.or_null("since", set.read_only.as_ref().map(|set| set.since), Object::time);
        object.plain("token", &set.token);
    }))
}

/// Shows why and since when a board or the service is read-only; null if it is not.
pub fn write(object: &mut Object<'_>, read_only: Option<&ReadOnly>) {
    let Some(read_only) = read_only else { return object.null("read_only") };
    let mut shown = object.object("read_only");
    shown.text("reason", &read_only.reason);
    shown.time("since", read_only.since);
    shown.end();
}
