//! This node's own entries: who it is and how its shards are, every two seconds; what its shards hold after
//! any crash, when that changes and every minute.
//!
//! Floors are stored again every minute, so that whoever reads them first can tell from their age how long a
//! node has been silent, whatever became of the other bucket.

use std::time::{Duration, Instant};

use async_nats::jetstream::message::PublishMessage;

use crate::queue::nats::consume::shard_stream::Prepared;
use crate::queue::nats::jetstream::JetStream;
use crate::queue::nats::peers::claim::{Claim, NotClaimed, RENEW_INTERVAL};
use crate::queue::nats::peers::entries::{self, FloorEntry, NodeEntry, ShardEntry};
use crate::queue::nats::peers::gauges::PeerGauges;
use crate::queue::nats::peers::hashes::HashesEntry;
use crate::queue::nats::shard::NatsShard;
use crate::queue::this_node::ThisNode;
use crate::types::{ShardId, ShardSet};

const FLOOR_INTERVAL: Duration = Duration::from_secs(60);
/// The same problem is logged at most this often.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// What was stored last of a shard.
struct StoredFloor {
    stream: String,
    sequence: u64,
    at: Instant,
    /// How often the bucket had been read from the beginning: it may be another bucket since.
    reading: u64,
}

/// Logs a problem when it begins, and now and then while it lasts.
#[derive(Default)]
struct ProblemLog(Option<(String, Instant)>);

impl ProblemLog {
    fn should_log(&mut self, problem: &str) -> bool {
        let said = self.0.as_ref().is_some_and(|(said, at)| said == problem && at.elapsed() < LOG_INTERVAL);
        if !said {
            self.0 = Some((problem.to_owned(), Instant::now()));
        }
        !said
    }
}

impl JetStream {
    /// Keeps this node's entries up to date, for as long as the service runs.
    pub async fn renew_entries(&self, shards: &[NatsShard], mut claim: Option<Claim>) {
        let mut stored: Vec<Option<StoredFloor>> = shards.iter().map(|_| None).collect();
        let (mut log, mut gauges) = (ProblemLog::default(), PeerGauges::default());
        let (mut clock_log, mut owner_log) = (ProblemLog::default(), ProblemLog::default());
        let is_owned = |id: &ShardId| shards.iter().any(|shard| shard.id == *id);
        loop {
            let all = (0..self.facts.shards).map(ShardId);
            let unowned: ShardSet =
                self.peers.without_owner(all.filter(|id| !is_owned(id))).into_iter().collect();
            if !unowned.is_empty() && owner_log.should_log(&unowned.to_string()) {
                tracing::warn!(
                    shards = %unowned,
                    "no node that runs owns these shards, so that reads of whole boards are refused; start their owner, or correct --own of a node"
                );
            }
            if let Some(skew) = self.peers.clock.skew()
                && clock_log.should_log("skew")
            {
                tracing::warn!(
                    "this machine's clock is {skew}: which instances of windows there are is told by the server's; set the clock that is wrong"
                );
            }
            if self.managing.is_up() && *self.prepared.borrow() == Prepared::Ready {
                let renewed = self.renew(shards, claim).await;
                claim = renewed.as_ref().ok().copied();
                let done = match renewed {
                    Ok(_) => self.store_floors(shards, &mut stored).await,
                    Err(NotClaimed::Unknown(reason)) => Err(reason),
                    Err(NotClaimed::Taken(reason)) => {
                        if log.should_log(&reason) {
                            // It goes on: what it has applied is right, and so are its answers.
                            tracing::error!(
                                reason,
                                "this node does not tell the others what it needs of the streams, which they may purge"
                            );
                        }
                        self.peers.set_own_problem(Some(reason));
                        Ok(())
                    }
                };
                if let Err(reason) = done
                    && log.should_log(&reason)
                {
                    tracing::warn!(
                        reason,
                        "what this node says of itself to the others cannot be stored; trying again"
                    );
                }
            }
            gauges.set(shards, self.facts.shards, &self.peers);
            tokio::time::sleep(RENEW_INTERVAL).await;
        }
    }

    async fn renew(&self, shards: &[NatsShard], claim: Option<Claim>) -> Result<Claim, NotClaimed> {
        let claim = match claim {
            Some(claim) => claim,
            None => self.find_claim().await?,
        };
        let claim = self.store_entry(&self.own_entry(shards), claim).await?;
        self.peers.set_own_problem(None);
        Ok(claim)
    }

    pub(super) fn own_entry(&self, shards: &[NatsShard]) -> NodeEntry {
        let of_shard = |shard: &NatsShard| {
            let applied = shard.applied.get().0;
            ShardEntry {
                shard: shard.id.0,
                state: shard.health.state().name().to_owned(),
                stream: shard.stream.filled_from(),
                applied,
                checkpoint: shard.health.get(|health| health.checkpoint_sequence),
                safe: shard.health.safe_sequence(),
                lag: shard.health.get(|health| health.last_sequence).saturating_sub(applied),
                hashes: self.hashes_entry(shard),
            }
        };
        // Data of another service are none of this one's shards, whatever their directory is called: the
        // sequences that they have applied are of other messages.
        let service = self.service();
        let is_foreign = |shard: &NatsShard| {
            shard.stream.service().zip(service).is_some_and(|(own, theirs)| own != theirs)
        };
        let this = &self.peers.this;
        NodeEntry {
            run: self.process.clone(),
            directory: this.directory.clone(),
            address: this.address.clone(),
            version: ThisNode::VERSION.to_owned(),
            shards: shards.iter().filter(|shard| !is_foreign(shard)).map(of_shard).collect(),
        }
    }

    fn hashes_entry(&self, shard: &NatsShard) -> Option<HashesEntry> {
        let own = shard.own_hashes(&self.peers.this.name)?;
        let asked = self.peers.asked(shard.id, &own.stream);
        Some(own.entry(shard.health.divergence().is_some(), &asked))
    }

    /// Stores what the shards hold after any crash, as far as it is news. Deletes what nobody needs.
    async fn store_floors(
        &self,
        shards: &[NatsShard],
        stored: &mut [Option<StoredFloor>],
    ) -> Result<(), String> {
        let bucket = self.names.floors_bucket();
        let reading = self.peers.reading();
        for (shard, stored) in shards.iter().zip(stored) {
            // Before a session has read the stream, it is not known which stream the data are of.
            let offset = shard.stream.sequence_offset();
            let safe = || offset.map(|offset| shard.health.safe_sequence().saturating_sub(offset));
            let floor = shard.stream.copies.floor(&shard.stream.stream(), safe);
            let Some((stream, sequence)) = floor else { continue };
            let is_news = stored.as_ref().is_none_or(|stored| {
                (&stored.stream, stored.sequence, stored.reading) != (&stream, sequence, reading)
                    || stored.at.elapsed() >= FLOOR_INTERVAL
            });
            if !is_news {
                continue;
            }
            let floor = FloorEntry::new(&self.peers.this, stream.clone(), sequence);
            let message = PublishMessage::build().payload(entries::encode(&floor).into());
            let subject = bucket.shard_subject(&self.peers.this.name, shard.id);
            let sent = self.managing.context.send_publish(subject, message).await;
            let sent = sent.map_err(|error| self.managing.explain(&error))?;
            sent.await.map_err(|error| self.managing.explain(&error))?;
            shard.stream.copies.note_stored((stream.clone(), sequence));
            *stored = Some(StoredFloor { stream, sequence, at: Instant::now(), reading });
        }
        let is_owned = |id: ShardId| shards.iter().any(|shard| shard.id == id);
        for (shard, name) in self.peers.given_up(is_owned) {
            // Other nodes read that it is deleted. Should it come after the node has owned the shard again,
            // its next floor takes its place.
            let message = PublishMessage::build().header(entries::OPERATION, "DEL");
            let sent = self.managing.context.send_publish(bucket.shard_subject(&name, shard), message).await;
            let sent = sent.map_err(|error| self.managing.explain(&error))?;
            sent.await.map_err(|error| self.managing.explain(&error))?;
            tracing::info!(
                %shard,
                "this node does not own the shard any more, and another applies it: its stream is not held back for this node's data of it, which may be removed"
            );
        }
        let deletable = self.peers.take_deletable();
        if deletable.is_empty() {
            return Ok(());
        }
        let stream = self.managing.context.get_stream_no_info(bucket.stream()).await;
        let stream = stream.map_err(|error| self.managing.explain(&error))?;
        for sequence in deletable {
            // Another node may have been first, or the owner may be back with a later entry.
            if let Err(error) = stream.delete_message(sequence).await {
                tracing::debug!(sequence, %error, "an old floor was not deleted");
            }
        }
        Ok(())
    }
}
