//! `GET /v1/hidden`: who is hidden, on a board or on all boards.

use crate::access::Scope;
use crate::http::render::fields;
use crate::http::render::json::{self, Object};
use crate::http::render::problem::Problem;
use crate::http::render::reply::Reply;
use crate::http::request::call::Call;
use crate::http::request::params::{Params, board_name, member_id};
use crate::http::resources::lists::{PAGE, PAGE_MAX};
use crate::query::{HiddenCursor, HiddenMembers};
use crate::types::BoardName;

pub async fn list(call: Box<Call>) -> Result<Reply, Problem> {
    let params = call.read_params(&["board", "member", "limit", "cursor"]).await?;
    let board = params.get("board").map(board_name).transpose()?;
    let member = params.get("member").map(member_id).transpose()?;
    let limit = params.bounded("limit", PAGE, 1, PAGE_MAX)?;
    let after = match params.given("cursor") {
        None => None,
        Some(text) => Some(HiddenCursor::decode(text).ok_or_else(|| {
            Problem::bad_parameter("cursor must be the next_cursor of the page before, with the same board")
        })?),
    };
    let grant = call.confined_to();
    if let (Some(grant), Some(board)) = (grant, &board)
        && !grant.allows_board(board.as_str())
    {
        let problem =
            Problem::forbidden_board(format!("the token does not give access to the board {board}"));
        call.note_refusal(&problem);
        return Err(problem);
    }
    let prefixes = grant.and_then(|grant| grant.board_prefixes.clone());
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let page = call
        .api
        .operations
        .read(&call.reading, &HiddenMembers { board, prefixes, member, after, limit })
        .await?;
    Ok(Reply::sized(page.bans.len() * 96 + 200, |object| {
        object.array("hidden", &page.bans, |out, ban| {
            let mut object = Object::begin(out);
            object.text("member", ban.member.as_str());
            object.or_null("board", ban.scope.as_ref().map(BoardName::as_str), Object::text);
            json::time(object.name("since"), ban.since);
            object.end();
        });
        let next = page.next.as_ref().map(HiddenCursor::encode);
        object.or_null("next_cursor", next.as_deref(), Object::text);
        fields::as_of(object, &page.as_of);
        call.write_freshness(object);
    }))
}

/// Whether the request asks for hidden entries, too, which is for moderators.
///
/// # Errors
/// When the parameter is not as it should be, or the token does not allow it.
pub fn asks_for_hidden(call: &Call, params: &Params<'_>) -> Result<bool, Problem> {
    let hidden = params.flag("hidden")?;
    if hidden && !call.allows(Scope::Write) {
        let problem = Problem::insufficient_scope(Scope::Write);
        call.note_refusal(&problem);
        return Err(problem);
    }
    Ok(hidden)
}
