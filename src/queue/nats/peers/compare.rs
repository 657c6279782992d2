//! Compares the hashes of this node's shards with those of their other owners, and halts a shard whose
//! replicas differ.
//!
//! Knows: that a difference is stored: a restart does not make it vanish. Must not know: what follows from
//! hashes (`judge`) and when (`decide`), or how a writer halts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::queue::nats::jetstream::JetStream;
use crate::queue::nats::peers::decide::{Decided, Decision, Deliberation};
use crate::queue::nats::peers::hashes::OwnHashes;
use crate::queue::nats::peers::known::Hearing;
use crate::queue::nats::shard::NatsShard;
use crate::storage::codec::Divergence;
use crate::storage::{StorageError, Store};
use crate::types::{NodeName, Sequence, ShardId, count};
use crate::writer::{Diverged, Health};

/// How often hashes are compared. Entries are renewed every two seconds.
const COMPARE_INTERVAL: Duration = Duration::from_millis(500);

/// What is known of a shard beside its hashes.
#[derive(Default)]
struct Comparison {
    deliberation: Deliberation,
    /// The last difference that was logged and not halted for.
    logged: Option<Divergence>,
    /// What is in memory is to be stored, too.
    is_unstored: bool,
}

impl JetStream {
    /// Takes up what an earlier run has found, before the shard's writer starts: a shard that was halted
    /// stays halted, unless the operator says that its data are right.
    ///
    /// # Errors
    /// When the disk cannot be read or refuses.
    pub fn take_up_divergence(
        &self,
        shard: ShardId,
        store: &Store,
        health: &Health,
    ) -> Result<(), StorageError> {
        let found = store.divergence()?;
        if self.settings.accept_diverged.contains(&shard.0) {
            store.forget_hash_points()?;
            let applied = store.meta()?.map_or(0, |meta| meta.applied_sequence);
            health.set(|health| health.accepted_through = Sequence(applied));
            match found {
                Some(found) => {
                    store.note_divergence(None)?;
                    tracing::warn!(%shard, node = %found.node, sequence = %found.sequence, "what this node holds is taken to be right although another replica differs, because of --accept-diverged");
                }
                None => {
                    tracing::info!(%shard, "no other replica was found to differ, so --accept-diverged was not needed; remove it");
                }
            }
            return Ok(());
        }
        if let Some(found) = found {
            // If it names this node, these data are a copy of the one that has found this node to differ.
            let is_own = found.node == self.peers.this.name;
            health.set(|health| health.found = Some((Arc::new(diverged(shard, found)), !is_own)));
        }
        Ok(())
    }

    /// Compares for as long as the service runs.
    pub async fn compare_replicas(&self, shard: &NatsShard) {
        let mut comparison = Comparison::default();
        loop {
            tokio::time::sleep(COMPARE_INTERVAL).await;
            if let Err(error) = self.compare(shard, &mut comparison).await {
                let error = format!("that another replica differs could not be stored: {error}");
                if self.managing.should_log(&error) {
                    tracing::warn!(shard = %shard.id, error, "trying again");
                }
            }
        }
    }

    async fn compare(&self, shard: &NatsShard, comparison: &mut Comparison) -> Result<(), String> {
        // Of three replicas, the odd one's entry may be the first that is read.
        if self.peers.hearing() == Hearing::Unread {
            return Ok(());
        }
        let Some(own) = shard.own_hashes(&self.peers.this.name) else { return Ok(()) };
        let mut others = self.peers.hashes_of_others(shard.id, &own.stream);
        if self.settings.accept_diverged.contains(&shard.id.0) {
            // They have halted because of what the operator has judged already.
            others.said.retain(|other| other.diverged.is_none());
        }
        let found = shard.health.found();
        let is_halted = shard.health.divergence().is_some();
        let halted = found.as_ref().filter(|_| is_halted).map(|found| &found.found);
        let Decided { decision, differing, asks } =
            comparison.deliberation.decide(&own, others, halted, Instant::now());
        shard.health.set(|health| health.replicas_differing = count(differing));
        match decision {
            Decision::Undecided => {}
            Decision::Halt(found) => {
                // At once in memory.
                shard.health.set(|health| health.found = Some((Arc::new(diverged(shard.id, found)), true)));
                comparison.is_unstored = true;
            }
            Decision::Resume => {
                tracing::warn!(shard = %shard.id, "the replicas agree again, or more have this one's hash than differ from it, or the replica that this one is a copy of goes on, so the shard is no longer halted");
                shard.health.set(|health| health.found = None);
                comparison.is_unstored = true;
            }
            Decision::Outvoted(found) => {
                if comparison.logged.as_ref() != Some(&found) {
                    tracing::error!(shard = %shard.id, reason = outvoted(&found), "a replica differs");
                }
                comparison.logged = Some(found);
            }
            Decision::GoOn => {
                // Nobody waits any more for this node to say that it was mended.
                if found.is_some() && asks == Some(false) {
                    shard.health.set(|health| health.found = None);
                    comparison.is_unstored = true;
                }
            }
        }
        if comparison.is_unstored {
            let found = shard.health.found().map(|found| found.found.clone());
            shard.with_store(move |store| store.note_divergence(found.as_ref())).await?;
            comparison.is_unstored = false;
        }
        Ok(())
    }
}

impl NatsShard {
    /// This node's hashes of the shard's log; `None` while it is not known which stream's sequences they are
    /// of.
    ///
    /// # Arguments
    /// `node`: this node's name.
    pub fn own_hashes(&self, node: &NodeName) -> Option<OwnHashes> {
        let stream = self.stream.stream();
        let is_known = self.stream.sequence_offset() == Some(0) && !stream.is_empty();
        let found = self.health.found().map(|found: Arc<Diverged>| found.found.clone());
        is_known.then(|| OwnHashes {
            node: node.clone(),
            hashes: self.health.get(|health| health.hashes.clone()),
            found,
            copied_from: self.health.get(|health| health.copied_from.clone()),
            accepted_through: self.health.get(|health| health.accepted_through),
            stream,
        })
    }
}

fn diverged(shard: ShardId, found: Divergence) -> Diverged {
    let Divergence { stream, sequence, own, node, theirs, .. } = &found;
    let reason = format!(
        "what this node has applied of the stream {stream} up to message {sequence} is not what the node \
         {node} has applied (hash {own:016x} here, {theirs:016x} there): one of the two replicas of shard {shard} is wrong; find \
         out which (docs/runbooks.md#ranktreereplicasdiffer), and give it a copy of the other one's data: \
         this shard then goes on by itself; or start with --accept-diverged {shard} where the data are right"
    );
    Diverged { found, reason }
}

fn outvoted(found: &Divergence) -> String {
    let Divergence { stream, sequence, own, node, theirs, .. } = found;
    format!(
        "the node {node} has another hash of the stream {stream} up to message {sequence} ({theirs:016x} \
         there, {own:016x} here), but more replicas have this node's hash, so this one goes on; give {node} \
         a copy of another replica's data"
    )
}
