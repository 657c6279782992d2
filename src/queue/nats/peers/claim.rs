//! A name is one node's: an entry under it is stored only behind the one that this process has seen last.
//!
//! Knows: an entry of another data directory under this name belongs to a running node if it is renewed while
//! this one looks. If it is not renewed, its node has ended, and the name is free. So nobody's clock counts.

use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::LastRawMessageErrorKind;

use crate::queue::nats::jetstream::{JetStream, SetupError};
use crate::queue::nats::peers::entries::{self, NodeEntry, UnreadableEntry};

/// How often a node renews its entry.
pub const RENEW_INTERVAL: Duration = Duration::from_secs(2);
/// An entry of another node that is not renewed for so long is taken over.
const FREE_AFTER: Duration = Duration::from_secs(5);
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// The right to this node's name: the place of the entry that the next one has to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub after: u64,
}

/// Why an entry was not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotClaimed {
    /// Another node that is running has the name.
    Taken(String),
    /// It is not known, or the server could not store it.
    Unknown(String),
}

/// The last entry under a name.
struct LastEntry {
    sequence: u64,
    entry: Result<NodeEntry, UnreadableEntry>,
}

impl JetStream {
    /// Makes sure that no other running node has this node's name, before the node takes part.
    ///
    /// # Errors
    /// When another one has it. That it cannot be found out is no error: the node goes on, and `renew` finds
    /// it out later.
    pub async fn claim_name(&self) -> Result<Option<Claim>, SetupError> {
        let claimed = match self.claim_once().await {
            // Another node may have started under this name at the same moment, and been first.
            Err(NotClaimed::Unknown(_)) => self.claim_once().await,
            claimed => claimed,
        };
        match claimed {
            Ok(claim) => Ok(Some(claim)),
            Err(NotClaimed::Taken(reason)) => Err(SetupError::Refused(reason)),
            Err(NotClaimed::Unknown(reason)) => {
                tracing::warn!(
                    reason,
                    "it cannot be found out yet whether another node has this node's name"
                );
                Ok(None)
            }
        }
    }

    async fn claim_once(&self) -> Result<Claim, NotClaimed> {
        let claim = self.find_claim().await?;
        self.store_entry(&self.own_entry(&[]), claim).await
    }

    /// Waits until the name is free, or is known to be taken.
    pub(super) async fn find_claim(&self) -> Result<Claim, NotClaimed> {
        let Some(mut seen) = self.last_entry().await? else { return Ok(Claim { after: 0 }) };
        let began = tokio::time::Instant::now();
        while !self.is_own(&seen) && began.elapsed() < FREE_AFTER {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let Some(now) = self.last_entry().await? else { return Ok(Claim { after: 0 }) };
            // A body that no node has written renews nothing.
            let is_foreign = now.entry == Err(UnreadableEntry::Foreign);
            if now.sequence != seen.sequence && !self.is_own(&now) && !is_foreign {
                return Err(NotClaimed::Taken(self.why_taken(&now)));
            }
            seen = now;
        }
        Ok(Claim { after: seen.sequence })
    }

    /// Whether an entry was written with this data directory, by this process or an earlier one: the
    /// directory's lock lets one process at a time use it. Once this one has stored an entry, another
    /// process with this directory has a copy of its disk.
    fn is_own(&self, last: &LastEntry) -> bool {
        let is_own = |entry: &NodeEntry| {
            entry.directory == self.peers.this.directory
                && (entry.run == self.peers.run || !self.peers.has_claimed())
        };
        last.entry.as_ref().is_ok_and(is_own)
    }

    fn why_taken(&self, by: &LastEntry) -> String {
        let this = &self.peers.this;
        let address = by.entry.as_ref().map_or("an unknown address", |entry| &entry.address);
        let is_same = by.entry.as_ref().is_ok_and(|entry| entry.directory == this.directory);
        let (which, advice) = if is_same {
            (
                "a data directory that cannot be told from this one's: one is a copy of the other's disk, block by block",
                "stop that node, copy the files of its data directory into a new one (cp -a), and start it with that one and a --node of its own",
            )
        } else {
            ("another data directory", "give each node a --node of its own")
        };
        format!("another node with the name {} is running at {address}, with {which}; {advice}", this.name)
    }

    /// The last entry under this node's name.
    async fn last_entry(&self) -> Result<Option<LastEntry>, NotClaimed> {
        let unknown = |error: &dyn std::fmt::Display| NotClaimed::Unknown(self.managing.explain(error));
        let bucket = self.names.nodes_bucket();
        let stream = self.managing.context.get_stream_no_info(bucket.stream()).await;
        let stream = stream.map_err(|error| unknown(&error))?;
        match stream.get_last_raw_message_by_subject(&bucket.node_subject(&self.peers.this.name)).await {
            Ok(message) => {
                let entry = entries::read(&message.payload);
                Ok(Some(LastEntry { sequence: message.sequence, entry }))
            }
            Err(error) if matches!(error.kind(), LastRawMessageErrorKind::NoMessageFound) => Ok(None),
            Err(error) => Err(unknown(&error)),
        }
    }

    /// Stores this node's entry behind the last one of its own.
    pub(super) async fn store_entry(&self, entry: &NodeEntry, claim: Claim) -> Result<Claim, NotClaimed> {
        let subject = self.names.nodes_bucket().node_subject(&self.peers.this.name);
        let message = PublishMessage::build()
            .expected_last_subject_sequence(claim.after)
            .payload(entries::encode(entry).into());
        let unknown = |error: &dyn std::fmt::Display| NotClaimed::Unknown(self.managing.explain(error));
        let sent = self.managing.context.send_publish(subject, message).await;
        match sent.map_err(|error| unknown(&error))?.await {
            Ok(stored) => {
                self.peers.note_claimed();
                Ok(Claim { after: stored.sequence })
            }
            // Another entry is the last one: this one may have expired, or an answer may have been lost. The
            // caller looks again.
            Err(error) => Err(unknown(&error)),
        }
    }
}
