//! A board's entries in order: from an end, from a cursor, from a position.

use serde::Deserialize;
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::http::call::Call;
use crate::http::error::Problem;
use crate::http::params::{not_so, number};
use crate::http::ranks::bound;
use crate::http::reply::Reply;
use crate::http::views;
use crate::query::{self, Answer, End, Page, PageCursor, Start};
use crate::types::shown;
use crate::wire::json_words;
use crate::wire::lenient::Members;

/// The most entries of a page, and items of a batch.
pub const BATCH_MAX: usize = 1_000;
pub const PAGE_MAX: u64 = 1_000;
/// Entries of a page when the request does not say.
pub const PAGE: u64 = 10;

/// Reads a body of a shape of its own.
pub fn parse_body<'a, B: Deserialize<'a>>(body: &'a [u8]) -> Result<B, Problem> {
    serde_json::from_slice(body).map_err(|error| match error.classify() {
        Category::Data => {
            let why = json_words(body, &error);
            Problem::bad_parameter(format!("the body is not as it should be: {why}"))
        }
        Category::Syntax | Category::Eof | Category::Io => Problem::not_json(body, &error),
    })
}

/// Reads a body `{"name": [...]}` of up to [`BATCH_MAX`] items, each as its JSON. `form` is what the body may look like, for
/// messages.
pub fn parse_list<'a>(body: &'a [u8], name: &str, form: &str) -> Result<Vec<&'a str>, Problem> {
    let wrong = |found: &str| {
        Problem::bad_parameter(format!("the body is a JSON object such as {form}, not {}", shown(found)))
    };
    let json: &RawValue = serde_json::from_slice(body).map_err(|error| Problem::not_json(body, &error))?;
    if !json.get().starts_with('{') {
        return Err(wrong(json.get()));
    }
    let read = serde_json::from_str(json.get());
    let Members(fields) = read.map_err(|error| Problem::not_json(body, &error))?;
    let list = match fields.as_slice() {
        [(only, list)] if only == name && list.get().starts_with('[') => list.get(),
        _ => return Err(wrong(json.get())),
    };
    let items: Vec<&RawValue> =
        serde_json::from_str(list).map_err(|error| Problem::not_json(body, &error))?;
    if items.len() > BATCH_MAX {
        return Err(Problem::over_limit(format!(
            "at most {BATCH_MAX} {name} at a time, not {}",
            items.len()
        )));
    }
    Ok(items.into_iter().map(RawValue::get).collect())
}

pub async fn top(call: Call) -> Result<Reply, Problem> {
    let params = call.read_params(&["limit", "cursor", "from", "reached_at"]).await?;
    let limit = params.bounded("limit", PAGE, 1, PAGE_MAX)?;
    let from = match params.get("from") {
        None => None,
        Some("top") => Some(End::Top),
        Some("bottom") => Some(End::Bottom),
        Some(other) => return Err(not_so("from is top or bottom", other)),
    };
    let start = match params.get("cursor").filter(|text| !text.is_empty()) {
        None => Start::End(from.unwrap_or(End::Top)),
        Some(text) => {
            let known = call.api.registry.get(call.board()).ok_or_else(Problem::unknown_board)?;
            let cursor = PageCursor::decode(text, call.board(), known.definition.columns());
            let cursor = cursor.filter(|cursor| from.is_none_or(|from| from == cursor.from));
            Start::Behind(cursor.ok_or_else(Problem::bad_cursor)?)
        }
    };
    let with_reached = params.flag("reached_at")?;
    let limit = usize::try_from(limit).unwrap_or(BATCH_MAX);
    let answer = call.ask_entries(move |board| query::top(board, &start, limit)).await?;
    Ok(page(&call, &answer, with_reached))
}

pub async fn range(call: Call) -> Result<Reply, Problem> {
    let params = call.read_params(&["min", "max", "limit", "cursor"]).await?;
    let limit = params.bounded("limit", PAGE, 1, PAGE_MAX)?;
    let (min, max) = (bound(&params, "min")?.unwrap_or(i64::MIN), bound(&params, "max")?.unwrap_or(i64::MAX));
    if min > max {
        return Err(Problem::bad_parameter("min is above max"));
    }
    let cursor = match params.get("cursor").filter(|text| !text.is_empty()) {
        None => None,
        Some(text) => {
            let known = call.api.registry.get(call.board()).ok_or_else(Problem::unknown_board)?;
            let cursor = PageCursor::decode(text, call.board(), known.definition.columns());
            let cursor = cursor.filter(|cursor| cursor.from == End::Top);
            Some(cursor.ok_or_else(Problem::bad_cursor)?)
        }
    };
    let limit = usize::try_from(limit).unwrap_or(BATCH_MAX);
    let answer = call.ask_entries(move |board| query::range(board, min, max, cursor.as_ref(), limit)).await?;
    Ok(page(&call, &answer, false))
}

pub async fn positions(call: Call) -> Result<Reply, Problem> {
    let params = call.read_params(&["limit"]).await?;
    let limit = params.bounded("limit", PAGE, 1, PAGE_MAX)?;
    let position: Option<u64> = number(call.segment("position")).filter(|position| *position > 0);
    let position =
        position.ok_or_else(|| not_so("a position is a whole number from 1 on", call.segment("position")))?;
    let limit = usize::try_from(limit).unwrap_or(BATCH_MAX);
    let answer = call.ask_entries(move |board| query::from_position(board, position, limit)).await?;
    Ok(page(&call, &answer, false))
}

fn page(call: &Call, answer: &Answer<Page>, with_reached: bool) -> Reply {
    Reply::sized(answer.body.entries.len() * 160 + 400, |object| {
        views::head(object, call.board(), answer);
        if with_reached {
            views::entries_with_reached(object, &answer.body.entries);
        } else {
            views::entries(object, &answer.body.entries);
        }
        views::next_cursor(object, call.board(), answer.body.next.as_ref());
        views::tail(object, &answer.as_of, call.api.is_stale());
    })
}
