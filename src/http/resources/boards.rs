//! Boards: define, look at, drop.

use std::sync::Arc;
use std::time::Instant;

use axum::http::StatusCode;

use crate::access::Grant;
use crate::board::{Definition, DefinitionPatch};
use crate::http::api::Api;
use crate::http::guard::board_limit::check_board_limit;
use crate::http::render::fields;
use crate::http::render::json::Object;
use crate::http::render::problem::Problem;
use crate::http::render::reply::Reply;
use crate::http::request::call::Call;
use crate::http::request::definition;
use crate::http::request::json_body::BATCH_MAX;
use crate::http::request::params::{Params, board_name};
use crate::http::writes::boards::{ChangedBoard, change_board, definition_of, drop_board};
use crate::http::writes::options::read_wait;
use crate::http::writes::would_drop::check_keeps_all;
use crate::query::{
    Answer, InstanceAsked, InstancesOfWindow, ListInstances, NoBoard, OfBoard, ReadError, ReadOptions,
    ReadReply, TotalOnly, TotalsOf, WindowChoice, read,
};
use crate::types::{AsOf, BoardName, ShardId};
use crate::window::{Instance, Window};
use crate::writer::BoardChange;

/// Instances of each window when the request does not say, and at most.
pub const INSTANCES: u64 = 100;
pub const INSTANCES_MAX: u64 = 1_000;

/// What a POST may have behind a board's name. Names may end so, too.
const VERBS: [&str; 2] = [":clear", ":trim"];

/// # Arguments
/// `total`: the entries of an instance; `None` if the board has no such one.
fn write_board(object: &mut Object<'_>, name: &str, definition: &Definition, total: Option<(Instance, u64)>) {
    object.text("board", name);
    fields::definition(object, definition);
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
    if let (Some(before), Some(known)) = (before, call.api.registry.get(board.as_str())) {
        let is_of_window =
            asked.choice == WindowChoice::Default || asked.choice == WindowChoice::Current(before.window);
        if !is_of_window || !known.definition.windows.contains(&before.window) {
            return Err(Problem::bad_cursor());
        }
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let answer = call.ask_shards(&ListInstances { board, asked, before, limit }).await?;
    call.record_read(started);
    let is_verb = VERBS.iter().any(|verb| call.board().ends_with(verb));
    let answer = answer.map_err(|why| match why {
        NoBoard::Unknown if is_verb => Problem::unknown_board_or_verb(),
        why => call.api.no_board(why),
    })?;
    let instances: usize = answer.windows.iter().map(|window| window.instances.len()).sum();
    Ok(Reply::sized(600 + 140 * instances, |object| {
        write_board(object, call.board(), &answer.definition, answer.total);
        write_instances(object, &answer.windows);
        let planned = answer.definition.seasons.as_ref().map(|seasons| seasons.planned(call.api.now()));
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
            match &listed.span.end {
                Some(end) => object.plain("end", end),
                None => object.null("end"),
            }
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
    let mut boards = call.api.registry.page_after(cursor.as_ref(), limit + 1, allowed);
    let next = boards.get(limit).and_then(|_| boards.get(limit - 1)).map(|(name, _)| name.clone());
    boards.truncate(limit);
    let instance = call.instance_asked();
    let (totals, as_of) = call.ask_shards(&TotalsOf { boards: &boards, instance }).await?;
    Ok(Reply::sized(boards.len() * 240 + 200, |object| {
        object.array("boards", boards.iter().zip(&totals), |out, ((name, known), total)| {
            let mut object = Object::begin(out);
            write_board(&mut object, name.as_str(), &known.definition, *total);
            object.end();
        });
        match next {
            Some(name) => object.text("next_cursor", name.as_str()),
            None => object.null("next_cursor"),
        }
        call.write_answer_end(object, &as_of);
    }))
}

pub async fn put(call: Box<Call>) -> Result<Reply, Problem> {
    let params = Params::parse(call.query(), &["wait", "force"])?;
    read_wait(&call.api, &params)?;
    let name = call.board_name()?;
    let asked =
        DefinitionAsked { patch: definition::parse(&call.body, &name)?, may_drop: params.flag("force")? };
    let define =
        define_within_limit(Arc::clone(&call.api), name.clone(), asked, call.board_limited().cloned());
    let change = call.begin_change("a board's definition was confirmed or changed");
    // In a task of its own: a client that leaves must not leave the board defined on some shards only.
    let defined = tokio::spawn(async move {
        let defined = define.await;
        let is_new = defined.as_ref().is_ok_and(|defined| defined.created);
        let change = if is_new { change.named("a board was created") } else { change };
        change.finish(&defined);
        defined
    });
    let defined = defined.await.map_err(|_| Problem::internal())??;
    let reply = Reply::object(|object| {
        write_board(object, name.as_str(), &defined.definition, defined.total);
        object.plain("token", &defined.token);
        call.note_missing(&defined.missing);
        call.write_answer_end(object, &defined.as_of);
    });
    Ok(reply.with_status(if defined.created { StatusCode::CREATED } else { StatusCode::OK }))
}

/// What a client asks of a board's definition.
struct DefinitionAsked {
    patch: DefinitionPatch,
    /// Whether the client consents to what a change drops.
    may_drop: bool,
}

/// A board right after it was defined.
struct DefinedBoard {
    created: bool,
    token: AsOf,
    definition: Arc<Definition>,
    /// Entries of the default window on the shards that told, in which `missing` have no part.
    total: Option<(Instance, u64)>,
    as_of: AsOf,
    missing: Vec<ShardId>,
}

/// Defines a board, unless it is one too many for the token.
///
/// # Arguments
/// `grant`: the token, if there is a limit to its boards.
async fn define_within_limit(
    api: Arc<Api>,
    name: BoardName,
    asked: DefinitionAsked,
    grant: Option<Arc<Grant>>,
) -> Result<DefinedBoard, Problem> {
    let _in_order = api.board_changes.lock().await;
    if let Some(grant) = &grant {
        check_board_limit(&api.registry, grant, std::slice::from_ref(&name))?;
    }
    let change = BoardChange::Define(asked.patch);
    if !asked.may_drop
        && let Some(known) = definition_of(&api, &name).await?
    {
        let changed = change.applied_to(Some(&known), api.now())?;
        check_keeps_all(&api, &name, (&known, &changed)).await?;
    }
    let ChangedBoard { created, definition, token } =
        change_board(&api, &name, &change, grant.as_deref()).await?;
    // The lock keeps this node from beginning a drop: one that waits for its turn must not make this answer
    // "unknown board".
    let instance = InstanceAsked { choice: WindowChoice::Default, now: api.now() };
    let asked = OfBoard { board: name.clone(), instance, read: TotalOnly };
    // The board is defined, whether or not all shards can tell how many entries it has.
    let options = ReadOptions { partial: true, ..ReadOptions::default() };
    let unread = |missing, as_of: AsOf| (None, missing, as_of);
    let (answer, missing, as_of) = match read(&api.node, &api.registry, &asked, &options).await {
        Ok(ReadReply { answer: Ok(answer), missing, .. }) => {
            let Answer { as_of, definition, instance, total, .. } = answer;
            (Some((definition, Some((instance, total)))), missing, as_of)
        }
        Err(ReadError::Unavailable(shards)) => {
            unread(shards.into_iter().map(|shard| shard.shard).collect(), token.clone())
        }
        // No season has begun. Or another node has dropped the board since: the answer is of the moment
        // before.
        Ok(ReadReply { answer: Err(_), .. })
        | Err(ReadError::KeptChanging(_) | ReadError::NotYetApplied(_)) => unread(Vec::new(), token.clone()),
    };
    let (definition, total) = answer.unwrap_or_else(|| {
        let current = instance.of(&definition).ok();
        (definition, current.map(|current| (current, 0)))
    });
    // A board that is new has no entries anywhere.
    let missing = if created { Vec::new() } else { missing };
    Ok(DefinedBoard { created, token, definition, total, as_of, missing })
}

pub async fn delete(call: Box<Call>) -> Result<Reply, Problem> {
    read_wait(&call.api, &Params::parse(call.query(), &["wait"])?)?;
    let name = call.board().to_owned();
    let (api, change) = (Arc::clone(&call.api), call.begin_change("a board was dropped"));
    let dropped = tokio::spawn(async move {
        let dropped = drop_board(api, name).await;
        change.finish(&dropped);
        dropped
    });
    let token = dropped.await.map_err(|_| Problem::internal())??;
    Ok(Reply::object(|object| {
        object.text("board", call.board());
        object.bool("dropped", true);
        object.plain("token", &token);
    }))
}
