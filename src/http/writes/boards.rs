//! Definitions, clears and drops of boards: decided once, and brought to every shard.

use std::sync::Arc;

use crate::access::Grant;
use crate::board::Definition;
use crate::http::api::Api;
use crate::http::render::problem::Problem;
use crate::http::writes::publish::{check_every_shard, publish_to};
use crate::query::{CountAll, InstanceAsked, NoBoard, OfBoard, ReadOptions, ShardHandle, WindowChoice, read};
use crate::queue::nats::{BoardLimit, Decided};
use crate::state::Incarnation;
use crate::state_lock::Purpose;
use crate::types::{AsOf, BoardName, ShardId, Timestamp};
use crate::writer::{BoardChange, Defined, Payload, RegisteredBoard, SeasonChange};

/// Entries that a clear or a trim removed, and the token of the last removal.
pub struct Removed {
    pub entries: u64,
    pub token: AsOf,
}

/// A board as it was decided.
pub struct ChangedBoard {
    /// Whether it is new.
    pub created: bool,
    pub definition: Arc<Definition>,
    /// Names every shard, with a sequence from which on the definition is in force there.
    pub token: AsOf,
}

/// The time by which windows are judged: this node's, or that of its shards if that is ahead. A message whose
/// time no shard believes yet does not count: what follows from it would stay.
pub fn now(api: &Api) -> Timestamp {
    let clock = Timestamp::from_micros(jiff::Timestamp::now().as_microsecond()).unwrap_or_default();
    clock.max(api.node.time())
}

/// Decides what a board is, and brings that to every shard that lacks it. The caller holds the lock on
/// changes of boards.
///
/// # Arguments
/// `grant`: the client's token, if there is a limit to its boards. Without NATS the caller has counted them.
///
/// # Errors
/// When the board cannot become what is asked, or a shard does not take it.
pub async fn change_board(
    api: &Api,
    name: &BoardName,
    change: &BoardChange,
    grant: Option<&Grant>,
) -> Result<ChangedBoard, Problem> {
    check_every_shard(api)?;
    let now = now(api);
    if let Some(boards) = &api.boards_stream {
        let most = grant.and_then(|grant| grant.max_boards).and_then(|most| usize::try_from(most).ok());
        let prefixes = grant.and_then(|grant| grant.board_prefixes.clone());
        let limit = most.map(|most| BoardLimit { prefixes, most });
        let decided = boards.change(name, change, now, limit.as_ref()).await?;
        let Decided { created, definition, in_force } = decided;
        return Ok(ChangedBoard { created, definition, token: AsOf(in_force) });
    }
    let (created, known) = match api.registry.change(name, change, now)? {
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
    Ok(ChangedBoard { created, definition, token: AsOf(token) })
}

/// A board's seasons after a change of them.
pub struct ChangedSeasons {
    pub definition: Arc<Definition>,
    pub token: AsOf,
    /// Whether they were others before.
    pub changed: bool,
}

/// Opens a season of a board, or moves or cancels a planned one.
///
/// # Errors
/// When there is no such board, or it has no seasons; when they cannot change so; when a shard does not take
/// the change.
pub async fn change_seasons(
    api: Arc<Api>,
    name: BoardName,
    change: SeasonChange,
) -> Result<ChangedSeasons, Problem> {
    let _in_order = api.board_changes.lock().await;
    let before = definition_of(&api, &name).await?;
    let season = BoardChange::Season(change);
    let ChangedBoard { definition, token, .. } = change_board(&api, &name, &season, None).await?;
    let changed = before.is_none_or(|before| before.seasons != definition.seasons);
    Ok(ChangedSeasons { definition, token, changed })
}

/// A board's definition as it was last decided. `None`: there is no such board.
///
/// # Errors
/// When the boards' stream cannot be read.
pub async fn definition_of(api: &Api, name: &BoardName) -> Result<Option<Arc<Definition>>, Problem> {
    match &api.boards_stream {
        Some(boards) => Ok(boards.definition(name).await?),
        None => Ok(api.registry.get(name.as_str()).map(|known| known.definition)),
    }
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
        Err(why) => return Err(api.no_board(why)),
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
