//! Everything on the NATS server that a node needs: made if it is missing, refused if it is something else.
//!
//! Knows: in which order things are set up, and that NATS may not be there yet. Connections for publishing, consuming
//! (one per shard, on the thread that fetches) and managing are separate: a queue of one does not hold up the others.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, Info};
use thiserror::Error;
use tokio::sync::watch;

use crate::queue::nats::connect::access::Access;
use crate::queue::nats::connect::connection::Connection;
use crate::queue::nats::consume::source::{OnGap, Shared, StreamSource};
use crate::queue::nats::names::Names;
use crate::queue::nats::publish::pending_replies::Waiters;
use crate::queue::nats::publish::publisher::{Ends, StreamPublisher};
use crate::queue::nats::streams::boards_config::{
    boards_config, boards_disagreements, rejects_config, rejects_disagreements,
};
use crate::queue::nats::streams::jobs_config::{disagreements, jobs_config};
use crate::types::{Sequence, ShardId};
use crate::writer::Health;

/// Between attempts while NATS cannot be reached.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Limits of a stream of jobs, in bytes, of which the first is taken that the server has room for, if the operator names
/// none. The server counts what streams may hold, not what they do. 16 GiB hold two minutes of 140 MB/s, more than
/// one shard applies; less than 64 MiB is filled too quickly to be worth a start.
const SIZES_TRIED: [i64; 9] =
    [16 << 30, 8 << 30, 4 << 30, 2 << 30, 1 << 30, 512 << 20, 256 << 20, 128 << 20, 64 << 20];

/// What an operator decides about NATS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub access: Access,
    pub prefix: String,
    /// The limit of a stream of jobs that is created; `None` for as much as the server has room for, within reason.
    pub stream_bytes: Option<i64>,
    /// Replicas of streams that are created.
    pub replicas: usize,
    /// Shards whose stream may, once, not continue what was applied.
    pub accept_gap: Vec<u16>,
    /// How long a stream must have been at odds with what was applied before its shard halts.
    pub halt_after: Duration,
    /// Messages kept in the stream although they are safe here; `None` keeps all.
    pub purge_keeps: Option<u64>,
}

/// Why streams cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SetupError {
    #[error("{0}")]
    Connection(String),
    #[error("{0}")]
    Refused(String),
    #[error("a thread for fetching cannot be started: {0}")]
    Thread(String),
}

/// Whether the streams are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prepared {
    Waiting(String),
    Ready,
    Refused(String),
}

/// A shard as it is when the service starts.
pub struct ShardStart {
    pub shard: ShardId,
    pub applied: Sequence,
    pub health: Arc<Health>,
}

/// A node's NATS.
pub struct JetStream {
    pub(in crate::queue::nats) settings: Settings,
    pub(in crate::queue::nats) names: Names,
    shards: u16,
    pub(in crate::queue::nats) managing: Connection,
    publishing: Connection,
    prepared: watch::Sender<Prepared>,
    /// Tells this process's messages from all others.
    process: String,
}

impl JetStream {
    /// Begins to connect; does not wait for it.
    ///
    /// # Errors
    /// When there are no connections to be had at all.
    pub async fn open(settings: Settings, shards: u16) -> Result<Self, SetupError> {
        let names = Names::new(&settings.prefix);
        let open = |purpose| {
            let (access, inbox) = (settings.access.clone(), names.inbox());
            async move { Connection::open(&access, &inbox, purpose).await.map_err(SetupError::Connection) }
        };
        let (managing, publishing) = (open("manage").await?, open("publish").await?);
        let (prepared, _) = watch::channel(Prepared::Waiting("connecting to NATS".to_owned()));
        let process = managing.client.new_inbox().rsplit('.').next().unwrap_or_default().to_owned();
        Ok(Self { settings, names, shards, managing, publishing, prepared, process })
    }

    /// Both ends of a shard's queue.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn shard(
        &self,
        start: &ShardStart,
    ) -> Result<(StreamPublisher, StreamSource, Arc<Shared>), SetupError> {
        let waiters = Arc::new(Waiters::new(format!("{}-{}", self.process, start.shard)));
        let (closing, closed) = watch::channel(false);
        let ends = Ends {
            connection: self.publishing.clone(),
            jobs_subject: self.names.jobs_subject(start.shard),
            control_subject: self.names.control_subject(start.shard),
            stream: self.names.jobs_stream(start.shard),
            waiters: Arc::clone(&waiters),
            groups: Arc::default(),
            health: Arc::clone(&start.health),
            closing,
        };
        let publisher = StreamPublisher { ends: Arc::new(ends) };
        let shared = Arc::new(Shared::new(
            start.shard,
            self.names.clone(),
            self.settings.access.clone(),
            Arc::clone(&start.health),
            waiters,
            self.prepared.subscribe(),
            OnGap {
                halt_after: self.settings.halt_after,
                accept: self.settings.accept_gap.contains(&start.shard.0),
            },
        ));
        let source = StreamSource::start(Arc::clone(&shared), closed)
            .map_err(|error| SetupError::Thread(error.to_string()))?;
        Ok((publisher, source, shared))
    }

    /// Makes sure that the streams are there and right, for as long as it takes to reach NATS.
    ///
    /// # Arguments
    /// `incarnation`: the last one of a board that this node knows of.
    ///
    /// # Errors
    /// When a stream is something else, in words.
    pub async fn prepare(&self, starts: &[(ShardId, Sequence)], incarnation: u64) -> Result<(), SetupError> {
        loop {
            if !self.managing.is_up() {
                // Its connection says in the log why, now and then.
                self.prepared.send_replace(Prepared::Waiting(self.managing.why_down()));
                tokio::time::sleep(RETRY_PAUSE).await;
                continue;
            }
            match self.try_prepare(starts, incarnation).await {
                Ok(()) => {
                    self.prepared.send_replace(Prepared::Ready);
                    return Ok(());
                }
                Err(Trouble::Refused(reason) | Trouble::NoRoom(reason)) => {
                    self.prepared.send_replace(Prepared::Refused(reason.clone()));
                    return Err(SetupError::Refused(reason));
                }
                Err(Trouble::Unreachable(reason)) => {
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

    async fn try_prepare(&self, starts: &[(ShardId, Sequence)], incarnation: u64) -> Result<(), Trouble> {
        let (names, replicas) = (&self.names, self.settings.replicas);
        let (mut missing, mut limits) = (Vec::new(), Vec::new());
        for (shard, applied) in starts {
            match self.find(&names.jobs_stream(*shard)).await? {
                Some(found) => {
                    self.check_jobs_stream(&found.config, *shard)?;
                    limits.push(found.config.max_bytes);
                }
                // A shard that has applied something had a stream. An empty one in its place would only hide that.
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
        // Before the streams of jobs, which may take what room there is.
        let boards = boards_config(names, replicas, incarnation);
        self.find_or_create(boards, "boards", |found| boards_disagreements(found, names)).await?;
        let rejects = rejects_config(names, replicas);
        self.find_or_create(rejects, "rejects", |found| rejects_disagreements(found, names)).await?;
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

    fn check_jobs_stream(&self, found: &Config, shard: ShardId) -> Result<(), Trouble> {
        let wrong = disagreements(found, &self.names, shard, self.shards);
        if wrong.is_empty() {
            return Ok(());
        }
        Err(Trouble::Refused(format!(
            "the stream {} exists and cannot be used for shard {shard} of {}: {}; use another --prefix, or put it right",
            found.name,
            self.shards,
            wrong.join("; ")
        )))
    }

    /// Creates streams of one size: the operator's, or the largest that there is room for. Their limits.
    async fn create_jobs_streams(&self, missing: Vec<Config>) -> Result<Vec<i64>, Trouble> {
        let sizes = self.settings.stream_bytes.map_or(SIZES_TRIED.to_vec(), |bytes| vec![bytes]);
        let mut created: Vec<Config> = Vec::new();
        let mut no_room = Trouble::Refused("no size is left to be tried".to_owned());
        'sizes: for bytes in sizes {
            // Those that were created before there was no more room make room for the others.
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
                    Err(Trouble::NoRoom(reason)) => {
                        no_room = Trouble::Refused(reason);
                        continue 'sizes;
                    }
                    Err(trouble) => return Err(trouble),
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
        disagreements: impl Fn(&Config) -> Vec<String>,
    ) -> Result<(), Trouble> {
        let Some(found) = self.find(&wanted.name).await? else {
            self.create(wanted).await?;
            return Ok(());
        };
        let wrong = disagreements(&found.config);
        if wrong.is_empty() {
            return Ok(());
        }
        Err(Trouble::Refused(format!(
            "the stream {} exists and cannot be used for {what}: {}; use another --prefix, or put it right",
            wanted.name,
            wrong.join("; ")
        )))
    }

    async fn find(&self, name: &str) -> Result<Option<Info>, Trouble> {
        match self.managing.context.get_stream(name).await {
            Ok(stream) => Ok(Some(stream.cached_info().clone())),
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                    Ok(None)
                }
                _ => Err(Trouble::Unreachable(format!("the stream {name} cannot be asked for: {error}"))),
            },
        }
    }

    async fn create(&self, config: Config) -> Result<Info, Trouble> {
        let name = config.name.clone();
        match self.managing.context.create_stream(config).await {
            Ok(stream) => {
                tracing::info!(stream = name, "stream created");
                Ok(stream.cached_info().clone())
            }
            Err(error) => match error.kind() {
                // Another node was first; what it made is looked at next time.
                CreateStreamErrorKind::JetStream(error)
                    if error.error_code() == ErrorCode::STREAM_NAME_EXIST =>
                {
                    Err(Trouble::Unreachable(format!(
                        "the stream {name} was created by another node just now"
                    )))
                }
                CreateStreamErrorKind::JetStream(error) if is_no_room(&error) => {
                    Err(Trouble::NoRoom(format!("the stream {name} cannot be created: {error}")))
                }
                // A cluster may lack a server for the moment, or its leader: that passes, without a restart of ours.
                CreateStreamErrorKind::JetStream(error)
                    if error.error_code() == ErrorCode::CLUSTER_NO_PEERS || error.code() == 503 =>
                {
                    Err(Trouble::Unreachable(format!("the stream {name} cannot be created: {error}")))
                }
                CreateStreamErrorKind::JetStream(error) => {
                    Err(Trouble::Refused(format!("the stream {name} cannot be created: {error}")))
                }
                _ => Err(Trouble::Unreachable(format!("the stream {name} cannot be created: {error}"))),
            },
        }
    }
}

enum Trouble {
    Refused(String),
    /// A smaller stream might do.
    NoRoom(String),
    Unreachable(String),
}

/// Whether a stream is larger than what the server or the account has room for, or than a stream may be.
fn is_no_room(error: &async_nats::jetstream::Error) -> bool {
    match error.error_code() {
        ErrorCode::INSUFFICIENT_RESOURCES
        | ErrorCode::STORAGE_RESOURCES_EXCEEDED
        | ErrorCode::ACCOUNT_RESOURCES_EXCEEDED
        | ErrorCode::STREAM_MAX_STREAM_BYTES_EXCEEDED => true,
        // A cluster says so among other reasons why no server will do.
        ErrorCode::CLUSTER_NO_PEERS => error.to_string().contains("insufficient storage"),
        _ => false,
    }
}
