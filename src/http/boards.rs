//! Boards: define, look at, drop.

use std::sync::Arc;

use axum::http::StatusCode;

use crate::access::Grant;
use crate::board::Definition;
use crate::http::api::Api;
use crate::http::call::Call;
use crate::http::definition;
use crate::http::error::Problem;
use crate::http::json::Object;
use crate::http::lists::BATCH_MAX;
use crate::http::new_boards::check_room;
use crate::http::params::Params;
use crate::http::reply::Reply;
use crate::http::views;
use crate::http::writes::{Publishing, check_live, publish_all, read_wait};
use crate::query::{BoardView, ShardHandle, read};
use crate::state::Incarnation;
use crate::state_lock::Purpose;
use crate::types::{AsOf, BoardName, Sequence, ShardId};
use crate::writer::{Defined, Known, Payload};

/// A definition's or a drop's size as a batch counts it: about what its record takes.
pub const EVENT_BYTES: usize = 512;

fn write_board(object: &mut Object<'_>, name: &str, definition: &Definition, total: u64) {
    object.text("board", name);
    views::definition(object, definition);
    let mut totals = object.object("totals");
    totals.count(views::WINDOW, total);
    totals.end();
}

pub async fn get(call: Call) -> Result<Reply, Problem> {
    call.read_params(&[]).await?;
    let answer = call.ask(|_| ())?;
    Ok(Reply::object(|object| {
        write_board(object, call.board(), &answer.definition, answer.total);
        views::tail(object, &answer.as_of, call.api.is_stale());
    }))
}

/// A board's name out of a parameter.
pub fn board_name(text: &str) -> Result<BoardName, Problem> {
    BoardName::new(text).map_err(|why| Problem::not_one(&why, text))
}

pub async fn list(call: Call) -> Result<Reply, Problem> {
    let params = call.read_params(&["limit", "cursor"]).await?;
    let most = u64::try_from(BATCH_MAX).unwrap_or(u64::MAX);
    let limit = usize::try_from(params.bounded("limit", most, 1, most)?).unwrap_or(BATCH_MAX);
    // The cursor is the name of the last board before.
    let cursor = params.get("cursor").filter(|text| !text.is_empty()).map(board_name).transpose()?;
    let allowed = |name: &BoardName| call.confined_to().is_none_or(|grant| grant.allows_board(name.as_str()));
    // One more tells whether there are more.
    let mut boards = call.api.registry.behind(cursor.as_ref(), limit + 1, allowed);
    let view = call.api.node.view();
    let next = boards.get(limit).and_then(|_| boards.get(limit - 1)).map(|(name, _)| name.clone());
    boards.truncate(limit);
    let as_of = AsOf(view.shards.iter().map(|shard| (shard.id, shard.applied.sequence)).collect());
    Ok(Reply::sized(boards.len() * 240 + 200, |object| {
        object.array("boards", &boards, |out, (name, known)| {
            let mut object = Object::begin(out);
            let total = BoardView::new(&view, name.as_str(), known).total();
            write_board(&mut object, name.as_str(), &known.definition, total);
            object.end();
        });
        match next {
            Some(name) => object.text("next_cursor", name.as_str()),
            None => object.null("next_cursor"),
        }
        views::tail(object, &as_of, call.api.is_stale());
    }))
}

pub async fn put(call: Call) -> Result<Reply, Problem> {
    read_wait(&call.api, &Params::parse(call.query(), &["wait"])?)?;
    let name = call.board_name()?;
    let definition = definition::parse(&call.body)?;
    let define = define(Arc::clone(&call.api), name.clone(), definition, call.limited().cloned());
    // On its own, so that a client that leaves does not leave the board defined on some shards only.
    let (created, token) = tokio::spawn(define).await.map_err(|_| Problem::internal())??;
    call.tell_who(if created { "a board was created" } else { "a board was defined again" });
    let answer = read(&call.api.node, &call.api.registry, name.as_str(), |_| ());
    let answer = answer.ok_or_else(Problem::unknown_board)?;
    let reply = Reply::object(|object| {
        write_board(object, name.as_str(), &answer.definition, answer.total);
        object.plain("token", &token);
        views::tail(object, &answer.as_of, call.api.is_stale());
    });
    Ok(reply.with_status(if created { StatusCode::CREATED } else { StatusCode::OK }))
}

/// Decides a definition and brings it to every shard that lacks it, unless it is one too many for the token.
async fn define(
    api: Arc<Api>,
    name: BoardName,
    definition: Definition,
    limited: Option<Arc<Grant>>,
) -> Result<(bool, AsOf), Problem> {
    let _in_order = api.boards.lock().await;
    if let Some(grant) = limited {
        check_room(&api, &grant, std::slice::from_ref(&name))?;
    }
    define_in_order(&api, &name, definition).await
}

/// The same, for whoever holds the lock on boards.
pub async fn define_in_order(
    api: &Api,
    name: &BoardName,
    definition: Definition,
) -> Result<(bool, AsOf), Problem> {
    check_live(api, api.node.shards.iter().map(|shard| shard.id))?;
    if let Some(boards) = &api.boards_stream {
        let (created, token) = boards.define(name, &definition).await?;
        return Ok((created, AsOf(token)));
    }
    let (created, known) = match api.registry.define(name, definition)? {
        Defined::Created(known) => (true, known),
        Defined::Changed(known) | Defined::Same(known) => (false, known),
    };
    let (mut lacking, mut token) = (Vec::new(), Vec::new());
    for shard in &api.node.shards {
        let state = shard.state.read(Purpose::Boards);
        let there = state.board(name.as_str()).is_some_and(|board| {
            board.incarnation == known.incarnation && board.definition == known.definition
        });
        if there {
            token.push((shard.id, state.applied.sequence));
        } else {
            lacking.push(shard.id);
        }
    }
    let Known { incarnation, definition } = known;
    let payload = || {
        let (board, definition) = (name.clone(), Arc::clone(&definition));
        Payload::Define { board, incarnation, number: None, definition }
    };
    token.extend(publish_to(api, &lacking, payload).await?.0);
    // Should it have been cleared, and that have failed halfway.
    api.registry.finish_anew(name, incarnation);
    token.sort_by_key(|(shard, _)| *shard);
    Ok((created, AsOf(token)))
}

/// Publishes to each of the shards, and waits for all of them.
pub async fn publish_to(
    api: &Api,
    shards: &[ShardId],
    payload: impl Fn() -> Payload,
) -> Result<AsOf, Problem> {
    let handles = shards.iter().filter_map(|id| api.node.shards.get(id.index()));
    let publishings = handles.map(|shard| {
        let publishing = api.publishers.of(shard.id).store_command(payload(), EVENT_BYTES);
        let publishing: Publishing<'_, Sequence> = Box::pin(publishing);
        (shard.id, publishing)
    });
    let outcomes = publish_all(publishings.collect()).await?;
    let mut token: Vec<(ShardId, Sequence)> = Vec::with_capacity(shards.len());
    for (id, outcome) in shards.iter().zip(outcomes) {
        token.push((*id, outcome?));
    }
    Ok(AsOf(token))
}

pub async fn delete(call: Call) -> Result<Reply, Problem> {
    read_wait(&call.api, &Params::parse(call.query(), &["wait"])?)?;
    let name = call.board().to_owned();
    let token =
        tokio::spawn(drop_board(Arc::clone(&call.api), name)).await.map_err(|_| Problem::internal())??;
    call.tell_who("a board was dropped");
    Ok(Reply::object(|object| {
        object.text("board", call.board());
        object.bool("dropped", true);
        object.plain("token", &token);
    }))
}

/// Drops a board everywhere. Should that fail halfway, the board is unknown already, and dropping it again goes on.
async fn drop_board(api: Arc<Api>, name: String) -> Result<AsOf, Problem> {
    let _in_order = api.boards.lock().await;
    let shards: Vec<ShardId> = api.node.shards.iter().map(|shard| shard.id).collect();
    check_live(&api, shards.iter().copied())?;
    let name = BoardName::new(&name).map_err(|_| Problem::unknown_board())?;
    if let Some(boards) = &api.boards_stream {
        return Ok(AsOf(boards.drop_board(&name).await?));
    }
    let begun = api.registry.begin_drop(name.as_str());
    let incarnation = begun.or_else(|| drop_cut_short(&api, &name)).ok_or_else(Problem::unknown_board)?;
    // What is over on every shard is forgotten by `service`, which sees them all.
    let payload = || Payload::Drop { board: name.clone(), incarnation, number: None };
    let token = publish_to(&api, &shards, payload).await?;
    api.registry.finish_drop(name.as_str(), incarnation);
    Ok(token)
}

/// The life of a board whose drop some shards have made and others have not, because a crash or a disk came between: it goes on.
fn drop_cut_short(api: &Api, name: &BoardName) -> Option<Incarnation> {
    let shards = &api.node.shards;
    let over = shards
        .iter()
        .filter_map(|shard| shard.state.read(Purpose::Boards).dropped().get(name.as_str()))
        .max()?;
    let holds = |shard: &ShardHandle| {
        shard.state.read(Purpose::Boards).board(name.as_str()).is_some_and(|board| board.incarnation <= over)
    };
    shards.iter().any(holds).then_some(over)
}
