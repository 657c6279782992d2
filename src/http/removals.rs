//! Boards emptied: cleared, or trimmed behind a position or a score.
//!
//! A board is cleared by beginning its next life, which every shard has in its queue like any definition. A trim is a series of
//! messages, each of which names some members and removes those of them that are still behind the place when it is applied:
//! so none of them is large, and what had come of a trim that was cut short stays as it is.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::http::api::Api;
use crate::http::boards::{EVENT_BYTES, publish_to};
use crate::http::call::Call;
use crate::http::error::Problem;
use crate::http::lists::parse_body;
use crate::http::params::Params;
use crate::http::reply::Reply;
use crate::http::writes::{Publishing, check_live, publish_all, read_wait};
use crate::query::{Behind, BoardView, ShardHandle, cut_behind_position, cut_behind_score, held, read};
use crate::queue::Publishers;
use crate::state::{Cut, Incarnation};
use crate::state_lock::Purpose;
use crate::types::{AsOf, BoardName, MemberId, Score, Sequence, ShardId};
use crate::wire::lenient::{score_of, unsigned_of};
use crate::writer::{Known, MessageOutcome, Payload};

/// Members that a message names: as many edits as a reader may have to wait for. Their ids take 64 KiB at most.
const MEMBERS_PER_MESSAGE: usize = 256;
/// Messages of a shard on their way at once: enough to share what a commit costs.
const MESSAGES_AT_ONCE: usize = 8;
/// What is shown of a value that is refused.
const SHOWN_CHARS: usize = 40;

/// What went, and where.
struct Removed {
    entries: u64,
    token: AsOf,
}

fn told(call: &Call, board: &BoardName, removed: &Removed) -> Reply {
    tracing::debug!(board = %board, entries = removed.entries, "entries of a board were removed");
    call.tell_who("entries of a board were removed");
    Reply::object(|object| {
        object.text("board", board.as_str());
        object.count("removed", removed.entries);
        object.plain("token", &removed.token);
    })
}

pub async fn clear(call: Call) -> Result<Reply, Problem> {
    read_wait(&call.api, &Params::parse(call.query(), &["wait"])?)?;
    let name = call.board_name()?;
    if !matches!(call.body.trim_ascii(), b"" | b"{}") {
        let detail =
            "clear takes no body, as it removes every entry; to remove some of them send it to :trim";
        return Err(Problem::bad_parameter(detail));
    }
    // On its own, so that a client that leaves does not leave the board cleared on some shards only.
    let clear = clear_board(Arc::clone(&call.api), name.clone());
    let removed = tokio::spawn(clear).await.map_err(|_| Problem::internal())??;
    Ok(told(&call, &name, &removed))
}

/// Clears a board everywhere. Should that fail halfway, it is empty to readers already, and goes on with the next definition, clear
/// or start.
async fn clear_board(api: Arc<Api>, name: BoardName) -> Result<Removed, Problem> {
    let _in_order = api.boards.lock().await;
    let shards: Vec<ShardId> = api.node.shards.iter().map(|shard| shard.id).collect();
    check_live(&api, shards.iter().copied())?;
    let entries = read(&api.node, &api.registry, name.as_str(), held);
    let entries = entries.ok_or_else(Problem::unknown_board)?.body;
    let token = if let Some(boards) = &api.boards_stream {
        AsOf(boards.clear_board(&name).await?)
    } else {
        let Known { incarnation, definition } =
            api.registry.begin_anew(&name).ok_or_else(Problem::unknown_board)?;
        let payload = || {
            let (board, definition) = (name.clone(), Arc::clone(&definition));
            Payload::Define { board, incarnation, number: None, definition }
        };
        let token = publish_to(&api, &shards, payload).await?;
        api.registry.finish_anew(&name, incarnation);
        token
    };
    Ok(Removed { entries, token })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TrimBody<'a> {
    #[serde(borrow, default, deserialize_with = "given")]
    positions_beyond: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    worse_than: Option<&'a RawValue>,
}

/// A value that is there, be it `null`.
fn given<'a, 'de: 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// Which entries are to go.
enum Which {
    Beyond(u64),
    Worse(Score),
}

fn parse_which(body: &[u8]) -> Result<Which, Problem> {
    // An array would be read as the fields' values in their order.
    let is_object = body.trim_ascii_start().starts_with(b"{");
    let body: TrimBody<'_> = parse_body(body)?;
    match (body.positions_beyond.filter(|_| is_object), body.worse_than.filter(|_| is_object)) {
        (Some(position), None) => {
            let position = unsigned_of(position.get()).filter(|position| *position > 0);
            position.map(Which::Beyond).ok_or_else(|| {
                Problem::bad_parameter(format!(
                    "positions_beyond is {}: send the last position that stays, a whole number from 1 on, or clear the board",
                    shown(body.positions_beyond)
                ))
            })
        }
        (None, Some(score)) => {
            let wrong =
                |why: String| Problem::bad_score(format!("worse_than is {}: {why}", shown(body.worse_than)));
            score_of(score.get()).map(Which::Worse).map_err(wrong)
        }
        _ => Err(Problem::bad_parameter(
            "send one of the two: {\"positions_beyond\":1000} or {\"worse_than\":100}",
        )),
    }
}

fn shown(value: Option<&RawValue>) -> String {
    value.map(RawValue::get).unwrap_or_default().chars().take(SHOWN_CHARS).collect()
}

/// Behind which place entries go; `None`: none do.
fn place(board: &BoardView<'_>, which: &Which) -> Result<Option<Cut>, Problem> {
    match which {
        Which::Beyond(position) => Ok(cut_behind_position(board, *position)),
        Which::Worse(score) => {
            let (keys, given) = (board.definition.keys.len(), score.keys().len());
            if given > keys {
                let detail = format!("the board's scores have {keys} keys, and worse_than has {given}");
                return Err(Problem::bad_score(detail));
            }
            Ok(Some(cut_behind_score(board, score)))
        }
    }
}

/// Goes on for as long as the client waits: what is left then may be had removed by the same request.
pub async fn trim(call: Call) -> Result<Reply, Problem> {
    read_wait(&call.api, &Params::parse(call.query(), &["wait"])?)?;
    let (api, name) = (&call.api, call.board_name()?);
    let which = parse_which(&call.body)?;
    check_live(api, api.node.shards.iter().map(|shard| shard.id))?;
    if let Some(boards) = &api.boards_stream {
        let due = boards.drops_before(api.node.shards.iter().map(|shard| (shard.id, &name)));
        boards.let_drops_arrive(due).await?;
    }
    let found = call.ask(|board| (board.incarnation, place(board, &which)))?;
    let (incarnation, cut) = found.body;
    let mut lanes: Vec<Lane<'_>> = Vec::with_capacity(api.node.shards.len());
    for (shard, (_, as_of)) in api.node.shards.iter().zip(&found.as_of.0) {
        lanes.push(Lane { shard, behind: None, found: VecDeque::new(), sequence: *as_of });
    }
    let mut entries = 0;
    if let Some(cut) = cut? {
        for lane in &mut lanes {
            lane.behind = Some(Behind::new(name.clone(), incarnation, cut.clone()));
        }
        let trimming = Trimming { name: name.clone(), incarnation, cut };
        loop {
            let removed = trimming.round(&api.publishers, &mut lanes).await?;
            let Some(removed) = removed else { break };
            entries += removed;
        }
    }
    let token = AsOf(lanes.iter().map(|lane| (lane.shard.id, lane.sequence)).collect());
    Ok(told(&call, &name, &Removed { entries, token }))
}

/// What all messages of a trim say.
struct Trimming {
    name: BoardName,
    incarnation: Incarnation,
    cut: Cut,
}

/// A trim's way through one shard.
struct Lane<'a> {
    shard: &'a ShardHandle,
    /// `None` where there is nothing to do.
    behind: Option<Behind>,
    /// Whose entries were found and not named yet.
    found: VecDeque<MemberId>,
    /// Of the last message, or at which the place was found.
    sequence: Sequence,
}

impl Lane<'_> {
    /// Finds whom the next messages name, unless there is nobody left.
    async fn look(&mut self) {
        let Some(behind) = &mut self.behind else { return };
        while self.found.len() < MEMBERS_PER_MESSAGE * MESSAGES_AT_ONCE && !behind.is_over() {
            self.found.extend(behind.look(&self.shard.state.read(Purpose::Read)));
            // Looking for the few hidden ones of many may take long.
            tokio::task::yield_now().await;
        }
    }
}

impl Trimming {
    /// Publishes the next messages of every shard, and waits until they are applied. How many entries they removed; `None` if
    /// there are none.
    async fn round(&self, publishers: &Publishers, lanes: &mut [Lane<'_>]) -> Result<Option<u64>, Problem> {
        let mut publishings: Vec<(ShardId, Publishing<'_, MessageOutcome>)> = Vec::new();
        for lane in lanes.iter_mut() {
            lane.look().await;
            for _ in 0..MESSAGES_AT_ONCE {
                let members: Vec<MemberId> =
                    lane.found.drain(..lane.found.len().min(MEMBERS_PER_MESSAGE)).collect();
                if members.is_empty() {
                    break;
                }
                let bytes = members.iter().map(|member| member.as_bytes().len()).sum::<usize>() + EVENT_BYTES;
                let (board, incarnation, behind) = (self.name.clone(), self.incarnation, self.cut.clone());
                let payload = Payload::Trim { board, incarnation, behind, members };
                let shard = lane.shard.id;
                let publishing = publishers.of(shard).apply_command(payload, bytes);
                publishings.push((shard, Box::pin(publishing)));
            }
        }
        if publishings.is_empty() {
            return Ok(None);
        }
        let ids: Vec<ShardId> = publishings.iter().map(|(id, _)| *id).collect();
        let mut removed = 0;
        for (id, outcome) in ids.iter().zip(publish_all(publishings).await?) {
            let outcome = outcome?;
            removed += outcome.removed;
            if let Some(lane) = lanes.iter_mut().find(|lane| lane.shard.id == *id) {
                lane.sequence = lane.sequence.max(outcome.sequence);
            }
        }
        Ok(Some(removed))
    }
}
