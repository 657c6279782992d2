//! Which of the boards that jobs were said to wait for are to be created.
//!
//! A shard says so when it parks a job. What was decided about the board may follow in the shard's stream: a
//! shard that is filled from its stream meets jobs in front of the definition, and of the drop, that they
//! were followed by. A board that was created for such a job would be a new life of one that was dropped.
//!
//! Knows: a job waits for a board if it is still parked once the shard has applied the commands that its
//! stream had. Must not know: how boards are created (`decide`).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use crate::queue::nats::boards::boards_stream::BoardsStream;
use crate::queue::nats::shard::NatsShard;
use crate::state_lock::Purpose;
use crate::types::{BoardName, Sequence};

/// How long a shard may take to apply the commands in its stream. Its boards wait longer then: it says every
/// two seconds which ones jobs wait for.
const COMMANDS_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a batch may take to be shown. Jobs that it frees are known as parked until then.
const BATCH_SHOWN_WITHIN: Duration = Duration::from_secs(1);

impl BoardsStream {
    /// Of the boards that shards of this node have said to be wanted: those for which a job waits that no
    /// command frees which is in the stream already.
    pub(super) async fn still_wanted(&self, said: BTreeSet<BoardName>) -> BTreeSet<BoardName> {
        if said.is_empty() {
            return said;
        }
        let on_shards = join_all(self.shards.iter().map(|shard| self.wanted_on(shard, &said))).await;
        let mut wanted = BTreeSet::new();
        for on_shard in on_shards {
            match on_shard {
                Ok(names) => wanted.extend(names),
                Err(error) if !self.managing.should_log(&error) => {}
                Err(error) => {
                    tracing::warn!(error, "it cannot be told which boards jobs wait for; trying again");
                }
            }
        }
        wanted
    }

    async fn wanted_on(
        &self,
        shard: &NatsShard,
        said: &BTreeSet<BoardName>,
    ) -> Result<Vec<BoardName>, String> {
        let parked: Vec<&BoardName> = said.iter().filter(|name| is_parked(shard, name)).collect();
        if parked.is_empty() || shard.is_halted() {
            return Ok(Vec::new());
        }
        let last = self.last_command(shard).await?.map_or(0, |(sequence, _)| sequence);
        let applying = self.wait_until_applied(shard, last);
        let Ok(applied) = tokio::time::timeout(COMMANDS_TIMEOUT, applying).await else {
            return Ok(Vec::new());
        };
        applied?;
        // Jobs from before a drop may be freed by the batch that has just applied it.
        let until = Instant::now() + BATCH_SHOWN_WITHIN;
        if !shard.health.parked_places.wait_until_batch_ends(until).await {
            return Ok(Vec::new());
        }
        let is_known = |name: &BoardName| shard.state.read(Purpose::Boards).board(name.as_str()).is_some();
        let waits = |name: &&BoardName| is_parked(shard, name) && !is_known(name);
        Ok(parked.into_iter().filter(waits).cloned().collect())
    }
}

fn is_parked(shard: &NatsShard, name: &BoardName) -> bool {
    shard.health.parked_places.holds(name, Sequence(u64::MAX))
}
