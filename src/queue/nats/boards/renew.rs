//! Renews records that are to be delivered once more.

use futures_util::StreamExt as _;

use crate::queue::nats::boards::boards_stream::{BoardRefused, BoardsStream};
use crate::queue::nats::boards::decision::Record;
use crate::queue::nats::boards::record::RecordJson;
use crate::queue::nats::boards::store::NewRecord;
use crate::state_lock::Purpose;
use crate::types::BoardName;

/// Boards whose records are read at once.
const RENEWED_AT_ONCE: usize = 64;

impl BoardsStream {
    /// Reads the last record of a pending board again before it is delivered once more: this node may have
    /// missed that the board was dropped since. If a shard would ignore the record as a late one, it is
    /// stored a second time in the stream, with a later number.
    ///
    /// # Errors
    /// When the servers do not answer.
    pub(super) async fn renew(
        &self,
        name: &BoardName,
        known: &Record,
    ) -> Result<Option<Record>, BoardRefused> {
        let Some(last) = self.last(name).await? else {
            let life = known.decision.incarnation;
            if !known.is_alive() {
                return Ok(Some(known.clone()));
            }
            let is_held = self.shards.iter().any(|shard| {
                shard
                    .state
                    .read(Purpose::Boards)
                    .board(name.as_str())
                    .is_some_and(|board| board.incarnation == life)
            });
            // The board was dropped so long ago that the stream has forgotten it. If a shard still holds it,
            // either the shard has yet to apply the drop, or the stream is another one, which is reconciled
            // with the shards soon.
            if !is_held {
                self.pending.lock().forget(name, life);
                self.registry.forget(name, life);
            }
            return Ok(None);
        };
        if !self.is_too_late(name, &last) {
            self.note(name, &last, true);
            return Ok(Some(last));
        }
        let record = RecordJson::of(&last.decision, self.next_number());
        // If another node won the race, the next look finds its record.
        let renewed = self.store(NewRecord { name: name.clone(), record, after: last.sequence }).await?;
        if let Some(renewed) = &renewed {
            self.note(name, renewed, true);
        }
        Ok(renewed)
    }

    /// As [`BoardsStream::renew`], for many boards. Boards whose record cannot be read now are left out.
    pub(super) async fn renew_all(&self, known: Vec<(BoardName, Record)>) -> Vec<(BoardName, Record)> {
        let renewing = known.into_iter().map(|(name, known)| async move {
            let renewed = self.renew(&name, &known).await;
            if let Err(error) = &renewed {
                tracing::warn!(board = %name, %error, "the record of a board could not be renewed, so the board is not sent to its shards; trying again");
            }
            Some((name, renewed.ok()??))
        });
        let renewing = futures_util::stream::iter(renewing).buffer_unordered(RENEWED_AT_ONCE);
        renewing.filter_map(std::future::ready).collect().await
    }
}
