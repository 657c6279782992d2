//! Follows the boards' stream: reads what other nodes decide.
//!
//! Every time that following begins again, the stream is read from the beginning, because it may be another
//! one: an operator may have deleted it, or restored an older copy. Nothing is decided until it is reconciled
//! with the shards. Messages that were lost with a connection do not come again, so a new connection reads
//! from the beginning, too. A stream that does not exist any more is created again.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::{ErrorCode, Message};

use crate::queue::nats::boards::boards_stream::{BoardsStream, ForeignShard};
use crate::queue::nats::boards::following::{Following, LastRecords, Unconfirmed};
use crate::queue::nats::boards::record::{RecordJson, is_foreign};
use crate::queue::nats::boards::store::NewRecord;
use crate::queue::nats::boards::tombstones::Tombstones;
use crate::queue::nats::last_messages::{Followed, LastMessages};
use crate::queue::nats::streams::boards_config::boards_config;
use crate::queue::nats::streams::jobs_config::of_service;

const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// How long the server must report that there is no such stream before it is created again. An operator may
/// be about to restore an old copy, and a server that has just started may not know the stream yet.
const RECREATE_AFTER: Duration = Duration::from_secs(10);

/// How long readers wait for the comparison of shards with their streams.
const COMPARE_TIMEOUT: Duration = Duration::from_secs(2);

impl BoardsStream {
    /// Follows the boards' stream for as long as the service runs.
    pub async fn follow(&self) {
        let mut gone_since = None;
        loop {
            let followed = match self.find_stream(&mut gone_since).await {
                Ok(()) => self.follow_once().await,
                Err(error) => Err(error),
            };
            self.following.send_modify(Following::end);
            self.compared.send_replace(false);
            self.reconciled.send_replace(false);
            if let Err(error) = followed {
                let error = self.managing.explain(&error);
                if self.managing.should_log(&error) {
                    tracing::warn!(error, "the boards' stream cannot be read; trying again");
                }
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Looks for the stream, and makes it again if it has been gone for long. It is reconciled with the
    /// shards then.
    async fn find_stream(&self, gone_since: &mut Option<Instant>) -> Result<(), String> {
        let found = self.managing.context.get_stream(self.names.boards_stream()).await;
        let Err(error) = found else {
            *gone_since = None;
            *self.tombstones.lock() = Tombstones::default();
            return Ok(());
        };
        match error.kind() {
            GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {}
            _ => return Err(error.to_string()),
        }
        if gone_since.get_or_insert_with(Instant::now).elapsed() < RECREATE_AFTER {
            return Err(error.to_string());
        }
        if let Some(ForeignShard { shard, why }) = self.foreign_shards().await?.first() {
            return Err(format!(
                "the boards' stream does not exist any more, and is not created by a node whose data are not of \
                 the streams (shard {shard}: {why})"
            ));
        }
        let latest = self.next_number().0.saturating_sub(1);
        let config = boards_config(&self.names, self.facts, self.replicas, latest);
        let config = of_service(config, self.service.get().copied());
        let stream = config.name.clone();
        match self.managing.context.create_stream(config).await {
            Ok(_) => {
                *gone_since = None;
                *self.tombstones.lock() = Tombstones::default();
                tracing::warn!(stream, "the boards' stream did not exist any more, and was created again");
                Ok(())
            }
            Err(error) => Err(format!(
                "the stream {stream} does not exist any more, and cannot be created again: {error}"
            )),
        }
    }

    async fn follow_once(&self) -> Result<(), String> {
        self.reached.send_replace(0);
        self.forget_confirmations();
        self.read_through.store(0, Ordering::Relaxed);
        self.pending.lock().begin_again();
        self.overwritten.lock().clear();
        let (stream, subjects) = (self.names.boards_stream(), self.names.all_boards());
        let followed =
            LastMessages::begin(&self.managing, &stream, subjects, "ranktree: what each board is").await;
        let mut followed = followed.map_err(|error| error.to_string())?;
        let mut in_stream = LastRecords::default();
        loop {
            match followed.next().await? {
                Followed::Message(message) => self.read_message(&message, Some(&mut in_stream)).await?,
                Followed::AllRead => break,
                Followed::Ended => return Ok(()),
            }
        }
        // Before a later record can be hidden by a board of a shard that does not count. Without an answer,
        // it is done once there is one.
        if let Ok(Ok(foreign)) = tokio::time::timeout(COMPARE_TIMEOUT, self.foreign_shards()).await {
            self.set_aside(&in_stream, |shard| !foreign.iter().any(|foreign| foreign.shard == shard.id));
        }
        self.was_read.send_replace(true);
        let in_stream = Arc::new(in_stream);
        self.following.send_replace(if self.others.is_empty() {
            Following::Confirmed
        } else {
            Following::Unconfirmed(Unconfirmed::new(Arc::clone(&in_stream)))
        });
        let mut reconciling = pin!(async {
            self.reconcile(&in_stream).await?;
            self.compared.send_replace(true);
            // An inquiry that was read before.
            self.inquired.notify_one();
            self.wait_for_confirmations().await
        });
        let mut is_reconciled = false;
        loop {
            tokio::select! {
                done = &mut reconciling, if !is_reconciled => {
                    done?;
                    is_reconciled = true;
                    self.reconciled.send_replace(true);
                    self.following.send_replace(Following::Confirmed);
                    self.restore_overwritten().await?;
                    // Boards that jobs have wanted meanwhile.
                    self.wanted.changed.notify_one();
                }
                next = followed.next() => {
                    let Followed::Message(message) = next? else { return Ok(()) };
                    self.read_message(&message, None).await?;
                }
            }
        }
    }

    /// Notes a message.
    ///
    /// # Arguments
    /// `first`: the records so far, while the stream is read from the beginning.
    async fn read_message(&self, message: &Message, first: Option<&mut LastRecords>) -> Result<(), String> {
        let info = message.info().map_err(|error| error.to_string())?;
        let (sequence, pending) = (info.stream_sequence, info.pending);
        let name = self.names.board_of(&message.subject);
        if let Some(kind) = self.names.boards_message_of(&message.subject) {
            self.note_message(kind, sequence, &message.payload);
        } else if is_foreign(&message.payload) {
            tracing::warn!(
                subject = %message.subject,
                sequence,
                "a message of the boards' stream was not published by a node; storing the board's last record again once the shards were compared with the stream. Check who has the permission to publish there"
            );
            if let Some(name) = name {
                self.overwritten.lock().insert(name, sequence);
            }
            if *self.reconciled.borrow() {
                self.restore_overwritten().await?;
            }
        } else if let Some((name, recorded)) = name.zip(RecordJson::read(sequence, &message.payload)) {
            // Drops from before this node followed have arrived where they had to, unless a shard holds the
            // board.
            self.note(&name, &recorded, first.is_none());
            if first.is_none() {
                self.following.send_if_modified(|following| {
                    following.note(&name, &recorded);
                    false
                });
            }
            self.tombstones.lock().note(&name, &recorded);
            if let Some(in_stream) = first {
                in_stream.unreadable.remove(&name);
                in_stream.records.insert(name, recorded);
            }
        } else {
            tracing::warn!(
                subject = %message.subject,
                "a message of the boards' stream cannot be read, and is left there; a newer version of ranktree may have written it"
            );
            if let Some((in_stream, name)) = first.zip(self.names.board_of(&message.subject)) {
                in_stream.records.remove(&name);
                in_stream.unreadable.insert(name);
            }
        }
        self.reached.send_modify(|reached| *reached = sequence.max(*reached));
        // Earlier messages that are gone were followed by others of the same board, which were read.
        if pending == 0 {
            self.read_through.fetch_max(sequence, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Stores the records of boards again whose place a foreign message has taken.
    async fn restore_overwritten(&self) -> Result<(), String> {
        let overwritten = std::mem::take(&mut *self.overwritten.lock());
        for (name, after) in overwritten {
            let Some(decision) = self.held(&name) else { continue };
            let record = RecordJson::of(&decision, self.next_number());
            self.store(NewRecord { name, record, after }).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}
