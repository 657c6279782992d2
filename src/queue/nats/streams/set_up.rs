//! Sets up the streams that a node needs: creates those that are missing, and refuses those that are
//! configured otherwise.
//!
//! Knows: the order of the set-up, and that NATS may not be reachable yet. Must not know: what is read from
//! the streams.

use std::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, Info};

use crate::queue::nats::jetstream::{JetStream, SetupError};
use crate::queue::nats::streams::boards_config::{boards_config, boards_mismatches};
use crate::queue::nats::streams::jobs_config::{jobs_config, jobs_mismatches};
use crate::queue::nats::streams::prepared::Prepared;
use crate::queue::nats::streams::rejects_config::{rejects_config, rejects_mismatches};
use crate::types::{Sequence, ShardId};

/// Between attempts while NATS cannot be reached.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Limits of a stream of jobs, in bytes, for operators who set none. The first one that the server has room
/// for is taken; the server counts what streams may hold, not what they do hold. 16 GiB hold two minutes of
/// 140 MB/s, more than one shard applies; less than 64 MiB is full too soon to be worth a start.
const SIZES_TRIED: [i64; 9] =
    [16 << 30, 8 << 30, 4 << 30, 2 << 30, 1 << 30, 512 << 20, 256 << 20, 128 << 20, 64 << 20];

impl JetStream {
    /// Creates or checks the streams, and tries again for as long as NATS cannot be reached.
    ///
    /// # Arguments
    /// `incarnation`: the latest incarnation of any board that this node knows.
    ///
    /// # Errors
    /// When a stream is configured otherwise than it must be; the text says how.
    pub async fn prepare(&self, starts: &[(ShardId, Sequence)], incarnation: u64) -> Result<(), SetupError> {
        loop {
            if !self.managing.is_up() {
                // The connection logs the reason now and then.
                self.prepared.send_replace(Prepared::Waiting(self.managing.why_down()));
                tokio::time::sleep(RETRY_PAUSE).await;
                continue;
            }
            match self.try_prepare(starts, incarnation).await {
                Ok(()) => {
                    self.prepared.send_replace(Prepared::Ready);
                    return Ok(());
                }
                Err(PrepareError::Refused(reason) | PrepareError::NoRoom(reason)) => {
                    self.prepared.send_replace(Prepared::Refused(reason.clone()));
                    return Err(SetupError::Refused(reason));
                }
                Err(PrepareError::Unreachable(reason)) => {
                    let reason = self.managing.explain(&reason);
                    if self.managing.is_news(&reason) {
                        tracing::warn!(reason, "the streams cannot be set up yet; trying on");
                    }
                    self.prepared.send_replace(Prepared::Waiting(reason));
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
        }
    }

    async fn try_prepare(
        &self,
        starts: &[(ShardId, Sequence)],
        incarnation: u64,
    ) -> Result<(), PrepareError> {
        let (names, replicas) = (&self.names, self.settings.replicas);
        let (mut missing, mut limits) = (Vec::new(), Vec::new());
        for (shard, applied) in starts {
            match self.find(&names.jobs_stream(*shard)).await? {
                Some(found) => {
                    self.check_jobs_stream(&found.config, *shard)?;
                    limits.push(found.config.max_bytes);
                }
                // A shard that has applied messages had a stream. A new, empty stream would hide that the old
                // one is lost.
                None if applied.0 > 0 && !self.settings.accept_gap.contains(&shard.0) => {}
                None => {
                    let first_sequence = (applied.0 > 0).then_some(applied.0 + 1);
                    missing.push(Config {
                        first_sequence,
                        ..jobs_config(names, *shard, self.shards, SIZES_TRIED[0], replicas)
                    });
                }
            }
        }
        // Before the streams of jobs, which may take all the room.
        let boards = boards_config(names, replicas, incarnation);
        self.find_or_create(boards, "boards", |found| boards_mismatches(found, names)).await?;
        let rejects = rejects_config(names, replicas);
        self.find_or_create(rejects, "rejects", |found| rejects_mismatches(found, names)).await?;
        limits.extend(self.create_jobs_streams(missing).await?);
        if let (Some(least), Some(most)) = (limits.iter().min(), limits.iter().max()) {
            tracing::info!(
                streams = limits.len(),
                least_mib = least >> 20,
                most_mib = most >> 20,
                "what the streams of jobs may hold, each, before publishers are refused"
            );
        }
        Ok(())
    }

    fn check_jobs_stream(&self, found: &Config, shard: ShardId) -> Result<(), PrepareError> {
        let wrong = jobs_mismatches(found, &self.names, shard, self.shards);
        if wrong.is_empty() {
            return Ok(());
        }
        Err(PrepareError::Refused(format!(
            "the stream {} exists and cannot be used for shard {shard} of {}: {}; use another --prefix, or put it right",
            found.name,
            self.shards,
            wrong.join("; ")
        )))
    }

    /// Creates streams of one size: the operator's, or the largest that the server has room for. Returns
    /// their limits.
    async fn create_jobs_streams(&self, missing: Vec<Config>) -> Result<Vec<i64>, PrepareError> {
        let sizes = self.settings.stream_bytes.map_or(SIZES_TRIED.to_vec(), |bytes| vec![bytes]);
        let mut created: Vec<Config> = Vec::new();
        let mut no_room = PrepareError::Refused("no size is left to be tried".to_owned());
        'sizes: for bytes in sizes {
            // Streams that were created before the room ran out give some back.
            for config in &mut created {
                config.max_bytes = bytes;
                if let Err(error) = self.managing.context.update_stream(&*config).await {
                    let stream = &config.name;
                    tracing::warn!(stream, %error, "the stream keeps more room than the others are given");
                }
            }
            for config in missing.iter().skip(created.len()) {
                match self.create(Config { max_bytes: bytes, ..config.clone() }).await {
                    Ok(info) => created.push(info.config),
                    Err(PrepareError::NoRoom(reason)) => {
                        no_room = PrepareError::Refused(reason);
                        continue 'sizes;
                    }
                    Err(error) => return Err(error),
                }
            }
            return Ok(created.iter().map(|config| config.max_bytes).collect());
        }
        Err(no_room)
    }

    async fn find_or_create(
        &self,
        wanted: Config,
        what: &str,
        mismatches: impl Fn(&Config) -> Vec<String>,
    ) -> Result<(), PrepareError> {
        let Some(found) = self.find(&wanted.name).await? else {
            self.create(wanted).await?;
            return Ok(());
        };
        let wrong = mismatches(&found.config);
        if wrong.is_empty() {
            return Ok(());
        }
        Err(PrepareError::Refused(format!(
            "the stream {} exists and cannot be used for {what}: {}; use another --prefix, or put it right",
            wanted.name,
            wrong.join("; ")
        )))
    }

    async fn find(&self, name: &str) -> Result<Option<Info>, PrepareError> {
        match self.managing.context.get_stream(name).await {
            Ok(stream) => Ok(Some(stream.cached_info().clone())),
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                    Ok(None)
                }
                _ => {
                    Err(PrepareError::Unreachable(format!("the stream {name} cannot be asked for: {error}")))
                }
            },
        }
    }

    async fn create(&self, config: Config) -> Result<Info, PrepareError> {
        let name = config.name.clone();
        match self.managing.context.create_stream(config).await {
            Ok(stream) => {
                tracing::info!(stream = name, "stream created");
                Ok(stream.cached_info().clone())
            }
            Err(error) => match error.kind() {
                // Another node was first. The next attempt checks its stream.
                CreateStreamErrorKind::JetStream(error)
                    if error.error_code() == ErrorCode::STREAM_NAME_EXIST =>
                {
                    Err(PrepareError::Unreachable(format!(
                        "the stream {name} was created by another node just now"
                    )))
                }
                CreateStreamErrorKind::JetStream(error) if is_no_room(&error) => {
                    Err(PrepareError::NoRoom(format!("the stream {name} cannot be created: {error}")))
                }
                // A cluster may lack a server or its leader for a moment, so the next attempt may succeed.
                CreateStreamErrorKind::JetStream(error)
                    if error.error_code() == ErrorCode::CLUSTER_NO_PEERS || error.code() == 503 =>
                {
                    Err(PrepareError::Unreachable(format!("the stream {name} cannot be created: {error}")))
                }
                CreateStreamErrorKind::JetStream(error) => {
                    Err(PrepareError::Refused(format!("the stream {name} cannot be created: {error}")))
                }
                _ => Err(PrepareError::Unreachable(format!("the stream {name} cannot be created: {error}"))),
            },
        }
    }
}

/// Why an attempt to set the streams up failed.
enum PrepareError {
    /// A stream is configured otherwise than it must be.
    Refused(String),
    /// The server has no room for a stream of this size. A smaller one may fit.
    NoRoom(String),
    /// The next attempt may succeed.
    Unreachable(String),
}

/// Whether the server or the account has too little room for a stream, or limits streams to less.
fn is_no_room(error: &async_nats::jetstream::Error) -> bool {
    match error.error_code() {
        ErrorCode::INSUFFICIENT_RESOURCES
        | ErrorCode::STORAGE_RESOURCES_EXCEEDED
        | ErrorCode::ACCOUNT_RESOURCES_EXCEEDED
        | ErrorCode::STREAM_MAX_STREAM_BYTES_EXCEEDED => true,
        // A cluster gives this reason among others for finding no suitable server.
        ErrorCode::CLUSTER_NO_PEERS => error.to_string().contains("insufficient storage"),
        _ => false,
    }
}
