//! Boards: define, look at, drop.

use std::sync::Arc;
use std::time::Instant;

use axum::http::StatusCode;

use crate::board::{Definition, ReadOnly};
use crate::http::render::fields;
use crate::http::render::json::Object;
use crate::http::render::problem::Problem;
use crate::http::render::reply::Reply;
use crate::http::request::call::Call;
use crate::http::request::definition;
use crate::http::request::json_body::BATCH_MAX;
use crate::http::request::params::{Params, board_name};
use crate::http::resources::read_only;
use crate::operations::{BoardChanges, DefinedBoard, Failure, Wait};
use crate::query::{InstancesOfWindow, ListInstances, NoBoard, TotalsOf, WindowChoice};
use crate::types::BoardName;
use crate::window::{Instance, Window};

/// Instances of each window when the request does not say, and at most.
pub const INSTANCES: u64 = 100;
pub const INSTANCES_MAX: u64 = 1_000;

/// What a POST may have behind a board's name. Names may end so, too.
const VERBS: [&str; 2] = [":clear", ":trim"];

/// # Arguments
/// `total`: the entries of an instance; `None` if the board has no such one.
fn write_board(
    object: &mut Object<'_>,
    (name, definition): (&str, &Definition),
    of_service: Option<&Arc<ReadOnly>>,
    total: Option<(Instance, u64)>,
) {
    object.text("board", name);
    fields::definition(object, definition);
    read_only::write(object, of_service.or(definition.read_only.as_ref()).map(|read_only| &**read_only));
    let mut totals = object.object("totals");
    if let Some((instance, total)) = total {
        totals.count(instance.window.name(), total);
    }
    totals.end();
}

pub async fn get(call: Box<Call>) -> Result<Reply, Problem> {
    let params = call.read_params(&["limit", "cursor"]).await?;
    let limit = params.bounded("limit", INSTANCES, 1, INSTANCES_MAX)?;
    // The cursor is the name of the last instance before.
    let before = params.given("cursor").map(|text| Instance::of_name(text).ok_or_else(Problem::bad_cursor));
    let before = before.transpose()?;
    let (board, started) = (call.wait_for_board_of_path().await?, Instant::now());
    let asked = call.instance_asked();
    if let (Some(before), Some(known)) = (before, call.api.operations.registry.get(board.as_str())) {
        let is_of_window =
            asked.choice == WindowChoice::Default || asked.choice == WindowChoice::Current(before.window);
        if !is_of_window || !known.definition.windows.contains(&before.window) {
            return Err(Problem::bad_cursor());
        }
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let answer =
        call.api.operations.read(&call.reading, &ListInstances { board, asked, before, limit }).await?;
    call.record_read(started);
    let is_verb = VERBS.iter().any(|verb| call.board().ends_with(verb));
    let answer = answer.map_err(|why| match why {
        NoBoard::Unknown if is_verb => Problem::unknown_board_or_verb(),
        why => call.api.operations.no_board(why).into(),
    })?;
    let of_service = call.api.operations.read_only();
    let instances: usize = answer.windows.iter().map(|window| window.instances.len()).sum();
    Ok(Reply::sized(600 + 140 * instances, |object| {
        write_board(object, (call.board(), &answer.definition), of_service.as_ref(), answer.total);
        write_instances(object, &answer.windows);
        let planned =
            answer.definition.seasons.as_ref().map(|seasons| seasons.planned(call.api.operations.now()));
        object.array("planned_seasons", &planned.unwrap_or_default(), |out, (number, begin)| {
            let mut object = Object::begin(out);
            object.text("name", &format!("s{number}"));
            object.plain("begin", begin);
            object.end();
        });
        call.write_answer_end(object, &answer.as_of);
    }))
}

fn write_instances(object: &mut Object<'_>, windows: &[InstancesOfWindow]) {
    let mut by_window = object.object("instances");
    for window in windows {
        by_window.array(window.window.name(), &window.instances, |out, listed| {
            let mut object = Object::begin(out);
            object.plain("name", &listed.instance);
            match listed.instance.window {
                Window::All => object.null("begin"),
                _ => object.plain("begin", &listed.span.begin),
            }
            object.or_null("end", listed.span.end.as_ref(), Object::plain);
            object.bool("open", listed.is_open);
            object.count("total", listed.total);
            object.end();
        });
    }
    by_window.end();
    let mut cursors = object.object("next_cursors");
    for window in windows {
        if let Some(next) = &window.next {
            cursors.plain(window.window.name(), next);
        }
    }
    cursors.end();
}

pub async fn list(call: Box<Call>) -> Result<Reply, Problem> {
    let params = call.read_params(&["limit", "cursor"]).await?;
    let most = u64::try_from(BATCH_MAX).unwrap_or(u64::MAX);
    let limit = usize::try_from(params.bounded("limit", most, 1, most)?).unwrap_or(BATCH_MAX);
    // The cursor is the name of the last board before.
    let cursor = params.get("cursor").filter(|text| !text.is_empty()).map(board_name).transpose()?;
    let allowed = |name: &BoardName| call.confined_to().is_none_or(|grant| grant.allows_board(name.as_str()));
    // One board more tells whether there is a next page.
    let mut boards = call.api.operations.registry.page_after(cursor.as_ref(), limit + 1, allowed);
    let next = boards.get(limit).and_then(|_| boards.get(limit - 1)).map(|(name, _)| name.clone());
    boards.truncate(limit);
    let instance = call.instance_asked();
    let (totals, as_of) =
        call.api.operations.read(&call.reading, &TotalsOf { boards: &boards, instance }).await?;
    let of_service = call.api.operations.read_only();
    Ok(Reply::sized(boards.len() * 260 + 200, |object| {
        object.array("boards", boards.iter().zip(&totals), |out, ((name, known), total)| {
            let mut object = Object::begin(out);
            write_board(&mut object, (name.as_str(), &known.definition), of_service.as_ref(), *total);
            object.end();
        });
        object.or_null("next_cursor", next.as_ref().map(BoardName::as_str), Object::text);
        call.write_answer_end(object, &as_of);
    }))
}

pub async fn put(call: Box<Call>) -> Result<Reply, Problem> {
    let params = Params::parse(call.query(), &["wait", "force"])?;
    params.write_options(Wait::UntilApplied)?;
    let name = call.board_name()?;
    let (patch, may_drop) = (definition::parse(&call.body, &name)?, params.flag("force")?);
    let change = call.begin_change("a board's definition was confirmed or changed").forced(may_drop);
    let noted = |defined: &Result<DefinedBoard, Failure>| {
        let is_new = defined.as_ref().is_ok_and(|defined| defined.board.created);
        let change = if is_new { change.named("a board was created") } else { change };
        change.finish_operation(defined);
    };
    let (named, grant) = (name.clone(), call.board_limited().cloned());
    let define = move |boards: BoardChanges| boards.define(named, patch, may_drop, grant);
    let defined = call.api.operations.change_boards(define, noted).await?;
    let DefinedBoard { board, total, as_of, missing } = defined;
    let of_service = call.api.operations.read_only();
    let reply = Reply::object(|object| {
        write_board(object, (name.as_str(), &board.definition), of_service.as_ref(), total);
        object.plain("token", &board.token);
        call.reading.note_missing(&missing);
        call.write_answer_end(object, &as_of);
    });
    Ok(reply.with_status(if board.created { StatusCode::CREATED } else { StatusCode::OK }))
}

pub async fn delete(call: Box<Call>) -> Result<Reply, Problem> {
    Params::parse(call.query(), &["wait"])?.write_options(Wait::UntilApplied)?;
    let name = call.board_name()?;
    let token = call.change_boards("a board was dropped", move |boards| boards.drop(name)).await?;
    Ok(Reply::object(|object| {
        object.text("board", call.board());
        object.bool("dropped", true);
        object.plain("token", &token);
    }))
}
