//! A board's entries in order: from an end, from a cursor, from a position.

use crate::http::render::fields::{self, CopiedParts};
use crate::http::render::problem::Problem;
use crate::http::render::reply::Reply;
use crate::http::request::call::Call;
use crate::http::request::json_body::BATCH_MAX;
use crate::http::request::params::{invalid_value, number};
use crate::http::resources::ranks::refused_bounds;
use crate::query::{
    Answer, Bounds, End, FromPosition, NoBoard, Page, PageCursor, Range, Start, Top, WindowChoice,
};
use crate::window::Instance;

/// The most entries of a page.
pub const PAGE_MAX: u64 = 1_000;
/// Entries of a page when the request does not say.
pub const PAGE: u64 = 10;

pub async fn top(call: Box<Call>) -> Result<Reply, Problem> {
    let params = call
        .read_params(&["limit", "cursor", "from", "reached_at", "version", "movement", "with", "with_rank"])
        .await?;
    let limit = params.bounded("limit", PAGE, 1, PAGE_MAX)?;
    let from = match params.get("from") {
        None => None,
        Some("top") => Some(End::Top),
        Some("bottom") => Some(End::Bottom),
        Some(other) => return Err(invalid_value("from must be top or bottom", other)),
    };
    let (start, window) = match params.given("cursor") {
        None => (Start::End(from.unwrap_or(End::Top)), call.window()),
        Some(text) => {
            let (cursor, instance) = read_cursor(&call, text)?;
            if from.is_some_and(|from| from != cursor.from) {
                return Err(Problem::bad_cursor());
            }
            (Start::After(cursor), WindowChoice::Named(instance))
        }
    };
    let parts = CopiedParts { reached_at: params.flag("reached_at")?, version: params.flag("version")? };
    let limit = usize::try_from(limit).unwrap_or(BATCH_MAX);
    let asked = call.with_movement(&params, Top { start, limit }, limit)?;
    let columns = call.columns(&params, limit).await?;
    let (answer, found) = call.ask_table(window, asked, columns).await?.split();
    Ok(page(&call, &answer, &found, parts))
}

pub async fn range(call: Box<Call>) -> Result<Reply, Problem> {
    let params = call.read_params(&["min", "max", "limit", "cursor", "with", "with_rank"]).await?;
    let limit = params.bounded("limit", PAGE, 1, PAGE_MAX)?;
    let bounds = Bounds { min: params.bound("min")?, max: params.bound("max")? };
    let (after, window) = match params.given("cursor") {
        None => (None, call.window()),
        Some(text) => {
            let (cursor, instance) = read_cursor(&call, text)?;
            if cursor.from != End::Top {
                return Err(Problem::bad_cursor());
            }
            (Some(cursor), WindowChoice::Named(instance))
        }
    };
    let limit = usize::try_from(limit).unwrap_or(BATCH_MAX);
    let columns = call.columns(&params, limit).await?;
    let (answer, found) = call.ask_table(window, Range { bounds, after, limit }, columns).await?.split();
    Ok(page(&call, &answer, &found.map_err(refused_bounds)?, CopiedParts::default()))
}

/// A cursor of the board of the path, and the instance that it is of. Pages go on in that instance, also if
/// the window has another current one since.
fn read_cursor(call: &Call, text: &str) -> Result<(PageCursor, Instance), Problem> {
    let known = call
        .api
        .operations
        .registry
        .get(call.board())
        .ok_or_else(|| call.api.operations.no_board(NoBoard::Unknown))?;
    let read = PageCursor::decode(call.cursor_here(text)?, call.board(), known.definition.columns());
    let read = read.filter(|(_, instance)| call.window().may_be(&known.definition, *instance));
    read.ok_or_else(Problem::bad_cursor)
}

pub async fn positions(call: Box<Call>) -> Result<Reply, Problem> {
    let params = call.read_params(&["limit", "with", "with_rank"]).await?;
    let limit = params.bounded("limit", PAGE, 1, PAGE_MAX)?;
    let position: Option<u64> = number(call.segment("position")).filter(|position| *position > 0);
    let position = position.ok_or_else(|| {
        invalid_value("a position must be a whole number, 1 or greater", call.segment("position"))
    })?;
    let limit = usize::try_from(limit).unwrap_or(BATCH_MAX);
    let columns = call.columns(&params, limit).await?;
    let asked = FromPosition { position, limit };
    let (answer, found) = call.ask_table(call.window(), asked, columns).await?.split();
    Ok(page(&call, &answer, &found, CopiedParts::default()))
}

fn page(call: &Call, answer: &Answer<()>, page: &Page, parts: CopiedParts) -> Reply {
    Reply::sized(page.entries.len() * 160 + 400, |object| {
        fields::write_answer_start(object, call.board(), answer);
        if parts == CopiedParts::default() {
            fields::entries(object, &page.entries);
        } else {
            fields::copied_entries(object, &page.entries, parts);
        }
        let next = page.next.as_ref().map(|next| next.encode(call.board(), answer.instance));
        call.write_next_cursor(object, next);
        call.write_answer_end(object, &answer.as_of);
    })
}
