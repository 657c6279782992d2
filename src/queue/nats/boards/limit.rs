//! Boards that are one too many, also when several nodes make boards at the same moment.
//!
//! Knows: a record that follows the stream's last message is stored only if nothing else was stored since
//! the boards were counted. So the count is exact. It costs more than storing a record that follows the last
//! one of its board only, and is done where a limit is near.

use std::time::Duration;

use serde_json::json;

use crate::queue::nats::boards::boards_stream::{BoardRefused, BoardsStream};
use crate::queue::nats::boards::decision::Record;
use crate::queue::nats::boards::store::NewRecord;
use crate::queue::nats::names::BoardsMessage;
use crate::writer::{DefineRefused, MAX_BOARDS};

/// So far below the limit of all boards, they are counted before each is made: more than all nodes together
/// have in flight, each of which has a thousand at most.
pub const NEAR_THE_LIMIT: usize = 10_000;
/// How often a record is stored again because others were faster.
const ATTEMPTS: u32 = 200;
/// How long a message of the stream may take to be read here. After that, the stream's last message may be
/// one that was deleted, which nobody reads.
const READ_WITHIN: Duration = Duration::from_millis(300);
/// The same for a message that is certain to come.
const FENCE_READ_WITHIN: Duration = Duration::from_secs(10);

/// How many boards there may be of those with some prefixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardLimit {
    /// `None`: all boards count.
    pub prefixes: Option<Vec<String>>,
    pub most: usize,
}

impl BoardsStream {
    /// Stores the first record of a life, unless that is one board too many. `None`: another node has decided
    /// the board.
    pub(super) async fn store_new(
        &self,
        new: NewRecord,
        limit: Option<&BoardLimit>,
    ) -> Result<Option<Record>, BoardRefused> {
        self.check_limits(limit)?;
        let is_near = self.registry.count_named(None) + NEAR_THE_LIMIT >= MAX_BOARDS;
        if limit.is_none() && !is_near {
            return self.store(new).await;
        }
        let _counting = self.counting.lock().await;
        let mut through = *self.reached.borrow();
        for _ in 0..ATTEMPTS {
            self.check_limits(limit)?;
            let (record, name, after) = (new.record.clone(), new.name.clone(), new.after);
            let again = NewRecord { name: name.clone(), record: record.clone(), after };
            let sent = self.send_if_last(again, Some(through)).await?;
            if let Some(stored) = self.stored(record, sent.await)? {
                // Counted before the next one is.
                self.note(&name, &stored, true);
                self.reached.send_modify(|reached| *reached = stored.sequence.max(*reached));
                return Ok(Some(stored));
            }
            if self.last(&name).await?.map_or(0, |last| last.sequence) != after {
                return Ok(None);
            }
            through = self.read_through_end().await?;
        }
        Err(BoardRefused::Unavailable(
            "other nodes change boards all the time, so the boards could not be counted; try again"
                .to_owned(),
        ))
    }

    fn check_limits(&self, limit: Option<&BoardLimit>) -> Result<(), BoardRefused> {
        if self.registry.count_named(None) >= MAX_BOARDS {
            return Err(DefineRefused::TooMany.into());
        }
        let Some(BoardLimit { prefixes, most }) = limit else { return Ok(()) };
        let existing = self.registry.count_named(prefixes.as_deref());
        if existing >= *most { Err(BoardRefused::OverLimit { most: *most, existing }) } else { Ok(()) }
    }

    /// Waits until all of the stream was read that is there now. Returns the sequence of its last message.
    async fn read_through_end(&self) -> Result<u64, BoardRefused> {
        let stream = self.managing.context.get_stream(self.names.boards_stream()).await;
        let stream = stream.map_err(|error| self.unavailable(&error))?;
        let last = stream.cached_info().state.last_sequence;
        if let Some(reached) = self.reached(last, READ_WITHIN).await {
            return Ok(reached);
        }
        let fence = self.store_message(BoardsMessage::Fence, &json!({ "fence": self.process })).await?;
        let reached = self.reached(fence, FENCE_READ_WITHIN).await;
        reached.ok_or_else(|| {
            BoardRefused::Unavailable("this node is behind with reading it; try again in a moment".to_owned())
        })
    }

    /// The last sequence that was read, once that is this one at least.
    async fn reached(&self, sequence: u64, within: Duration) -> Option<u64> {
        let mut reached = self.reached.subscribe();
        let waited = tokio::time::timeout(within, reached.wait_for(|reached| *reached >= sequence)).await;
        Some(*waited.ok()?.ok()?)
    }
}
