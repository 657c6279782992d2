//! Definitions, clears and drops of boards: decided once, and brought to every shard.

use std::sync::Arc;

use crate::access::Grant;
use crate::board::Definition;
use crate::http::api::Api;
use crate::http::render::problem::Problem;
use crate::http::writes::publish::{check_every_shard, publish_to};
use crate::query::{CountAll, InstanceAsked, NoBoard, OfBoard, ReadOptions, ShardHandle, WindowChoice, read};
use crate::queue::nats::BoardLimit;
use crate::state::Incarnation;
use crate::state_lock::Purpose;
use crate::types::{AsOf, BoardName, ShardId};
use crate::writer::{Defined, Payload, RegisteredBoard};

/// Entries that a clear or a trim removed, and the token of the last removal.
pub struct Removed {
    pub entries: u64,
    pub token: AsOf,
}

/// Decides a definition and brings it to every shard that lacks it. The caller holds the lock on changes of
/// boards. Returns whether the board is new.
///
/// # Arguments
/// `grant`: the client's token, if there is a limit to its boards. Without NATS the caller has counted them.
///
/// # Errors
/// When the definition is refused, or a shard does not take it.
pub async fn define(
    api: &Api,
    name: &BoardName,
    definition: Definition,
    grant: Option<&Grant>,
) -> Result<(bool, AsOf), Problem> {
    check_every_shard(api)?;
    if let Some(boards) = &api.boards_stream {
        let most = grant.and_then(|grant| grant.max_boards).and_then(|most| usize::try_from(most).ok());
        let prefixes = grant.and_then(|grant| grant.board_prefixes.clone());
        let limit = most.map(|most| BoardLimit { prefixes, most });
        let (created, token) = boards.define(name, &definition, limit.as_ref()).await?;
        return Ok((created, AsOf(token)));
    }
    let (created, known) = match api.registry.define(name, definition)? {
        Defined::Created(known) => (true, known),
        Defined::Changed(known) | Defined::Same(known) => (false, known),
    };
    let (mut lacking, mut token) = (Vec::new(), Vec::new());
    for shard in &api.node.shards {
        let state = shard.state.read(Purpose::Boards);
        let has_it = state.board(name.as_str()).is_some_and(|board| {
            board.incarnation == known.incarnation && board.definition == known.definition
        });
        if has_it {
            token.push((shard.id, state.applied.sequence));
        } else {
            lacking.push(shard.id);
        }
    }
    let RegisteredBoard { incarnation, definition } = known;
    let payload = || {
        let (board, definition) = (name.clone(), Arc::clone(&definition));
        Payload::Define { board, incarnation, number: None, definition }
    };
    token.extend(publish_to(api, &lacking, payload).await?.0);
    // Completes a clear that failed halfway.
    api.registry.finish_next_incarnation(name, incarnation);
    token.sort_by_key(|(shard, _)| *shard);
    Ok((created, AsOf(token)))
}

/// Clears a board on every shard. If that fails halfway, readers find the board empty already, and the next
/// definition, clear or start completes it.
///
/// # Errors
/// When there is no such board, or a shard does not take the clear.
pub async fn clear_board(api: Arc<Api>, name: BoardName) -> Result<Removed, Problem> {
    let _in_order = api.board_changes.lock().await;
    let shards: Vec<ShardId> = api.node.shards.iter().map(|shard| shard.id).collect();
    check_every_shard(&api)?;
    let instance = InstanceAsked { choice: WindowChoice::Default, now: api.now() };
    let asked = OfBoard { board: name.clone(), instance, read: CountAll };
    let entries = read(&api.node, &api.registry, &asked, &ReadOptions::default()).await?;
    let entries = match entries.answer {
        Ok(answer) => answer.body,
        // No season has begun.
        Err(NoBoard::Window(_)) => 0,
        Err(NoBoard::Unknown) => return Err(api.unknown_board()),
    };
    let token = if let Some(boards) = &api.boards_stream {
        AsOf(boards.clear_board(&name).await?)
    } else {
        let RegisteredBoard { incarnation, definition } =
            api.registry.begin_next_incarnation(&name).ok_or_else(Problem::unknown_board)?;
        let payload = || {
            let (board, definition) = (name.clone(), Arc::clone(&definition));
            Payload::Define { board, incarnation, number: None, definition }
        };
        let token = publish_to(&api, &shards, payload).await?;
        api.registry.finish_next_incarnation(&name, incarnation);
        token
    };
    Ok(Removed { entries, token })
}

/// Drops a board on every shard. If that fails halfway, readers do not find the board any more, and the next
/// drop completes it.
///
/// # Errors
/// When there is no such board, or a shard does not take the drop.
pub async fn drop_board(api: Arc<Api>, name: String) -> Result<AsOf, Problem> {
    let _in_order = api.board_changes.lock().await;
    let shards: Vec<ShardId> = api.node.shards.iter().map(|shard| shard.id).collect();
    check_every_shard(&api)?;
    let name = BoardName::new(&name).map_err(|why| Problem::malformed_text(&why, &name))?;
    if let Some(boards) = &api.boards_stream {
        return Ok(AsOf(boards.drop_board(&name).await?));
    }
    let begun = api.registry.begin_drop(name.as_str());
    let incarnation = begun.or_else(|| half_dropped(&api, &name)).ok_or_else(Problem::unknown_board)?;
    let payload = || Payload::Drop { board: name.clone(), incarnation, number: None };
    let token = publish_to(&api, &shards, payload).await?;
    api.registry.finish_drop(name.as_str(), incarnation);
    // The drop is over on every shard. Each batch that drops a board copies what its shard remembers of
    // drops: that must not grow with their number. `service` forgets the drops that a crash leaves behind.
    let complete = [(name, incarnation)];
    for shard in &api.node.shards {
        shard.state.write(Purpose::Boards).forget_dropped(&complete);
    }
    Ok(token)
}

/// The life of a board that some shards have dropped and others have not, because of a crash or a failed
/// disk.
fn half_dropped(api: &Api, name: &BoardName) -> Option<Incarnation> {
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
