//! Sets up the streams that a node needs: creates those that are missing, and refuses those that are
//! configured otherwise.
//!
//! Knows: the order of the set-up, and that NATS may not be reachable yet. Must not know: what is read from
//! the streams.

use std::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, Info, LastRawMessageErrorKind};
use futures_util::StreamExt as _;

use crate::queue::nats::consume::shard_stream::Prepared;
use crate::queue::nats::jetstream::{JetStream, SetupError};
use crate::queue::nats::peers::entries::{self, FloorEntry, UnreadableEntry};
use crate::queue::nats::streams::boards_config::{boards_config, boards_mismatches, shards_of_service};
use crate::queue::nats::streams::buckets_config::{buckets_mismatches, floors_config, nodes_config};
use crate::queue::nats::streams::jobs_config::{
    LAYOUT, LAYOUT_KEY, STEP_TO_OWN_SERVICE, jobs_config, jobs_mismatches, of_another_service, of_service,
    service_of, shards_of,
};
use crate::queue::nats::streams::new_service::tell_of_new_service;
use crate::queue::nats::streams::no_room::is_no_room;
use crate::queue::nats::streams::rejects_config::{rejects_config, rejects_mismatches};
use crate::storage::ServiceId;
use crate::types::{Sequence, ShardId};

/// Between attempts while NATS cannot be reached.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// A start waits for this alone: a connection mostly takes milliseconds.
const ASK_PAUSE: Duration = Duration::from_millis(10);
/// Limits of a stream of jobs, in bytes, for operators who set none. The first one is taken that the server
/// has room for twice, so that others find room there too, such as a node with another prefix. Failing that,
/// the last one is taken if there is room for it once. The server counts what streams may hold, not what they
/// do hold. 16 GiB hold two minutes of 140 MB/s, more than one shard applies; less than 64 MiB is full too
/// soon to be worth a start.
const SIZES_TRIED: [i64; 9] =
    [16 << 30, 8 << 30, 4 << 30, 2 << 30, 1 << 30, 512 << 20, 256 << 20, 128 << 20, SIZE_MIN];
const SIZE_MIN: i64 = 64 << 20;

/// Data that are to be bound to a new stream would have what an older one holds applied a second time.
fn check_new(found: &Info) -> Result<(), PrepareError> {
    let (stream, messages) = (&found.config.name, found.state.messages);
    if messages == 0 {
        return Ok(());
    }
    Err(PrepareError::Refused(format!(
        "the data were restored to be bound to new streams, and the stream {stream} is there already, with {messages} \
         messages, which would be applied a second time. If it is the service's own, restore again without \
         --bind-new-streams, and the node goes on with it; if it is to be given up, stop all nodes and delete it \
         (nats stream rm {stream})"
    )))
}

/// A shard that this node owns, as it is at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartedShard {
    pub shard: ShardId,
    pub applied: Sequence,
    /// Its data are to be bound to the stream that there is, or that is made for them.
    pub binds: bool,
}

impl JetStream {
    /// Creates or checks the streams, and tries again for as long as NATS cannot be reached.
    ///
    /// # Arguments
    /// - `starts`: the shards that this node owns, with what each has applied.
    /// - `incarnation`: the latest incarnation of any board that this node knows.
    /// - `own_service`: that of this node's data, if it is known
    ///
    /// # Errors
    /// When a stream is configured otherwise than it must be; the text says how.
    pub async fn prepare(
        &self,
        starts: &[StartedShard],
        incarnation: u64,
        own_service: Option<ServiceId>,
    ) -> Result<(), SetupError> {
        loop {
            if !self.managing.is_up() {
                // The connection logs the reason now and then.
                self.prepared.send_replace(Prepared::Waiting(self.managing.why_down()));
                tokio::time::sleep(RETRY_PAUSE).await;
                continue;
            }
            match self.try_prepare(starts, incarnation, own_service).await {
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
                    if self.managing.should_log(&reason) {
                        tracing::warn!(reason, "the streams cannot be created or checked yet; trying again");
                    }
                    self.prepared.send_replace(Prepared::Waiting(reason));
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
        }
    }

    /// Asks the boards' stream, if it is there, which service it is of, and returns of how many shards that
    /// is; tries again for as long as NATS cannot be reached. Makes nothing.
    pub async fn ask_service(&self) -> Option<u16> {
        loop {
            if !self.managing.is_up() {
                tokio::time::sleep(ASK_PAUSE).await;
                continue;
            }
            if let Ok(found) = self.find(&self.names.boards_stream()).await {
                let config = found.map(|found| found.config)?;
                self.note_service(service_of(&config));
                return shards_of_service(&config);
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// The set-up may be repeated, and finds the same.
    fn note_service(&self, service: Option<ServiceId>) {
        if let Some(service) = service {
            let _ = self.service.set(service);
        }
    }

    /// Refuses, before anything is made, streams of another service than this node's data are of. Returns
    /// whether there is a boards' stream.
    async fn check_service(
        &self,
        starts: &[StartedShard],
        own_service: Option<ServiceId>,
    ) -> Result<bool, PrepareError> {
        let found = self.find(&self.names.boards_stream()).await?;
        let theirs = found.as_ref().and_then(|found| service_of(&found.config));
        match own_service.zip(theirs) {
            // Data that hold nothing become those of the streams.
            Some((own, theirs)) if own != theirs && starts.iter().any(|start| start.applied.0 > 0) => {
                let streams = format!("the streams under the prefix {}", self.settings.prefix);
                let what = of_another_service(own, &streams, theirs);
                Err(PrepareError::Refused(format!("{what}. {STEP_TO_OWN_SERVICE}")))
            }
            Some(_) | None => Ok(found.is_some()),
        }
    }

    async fn try_prepare(
        &self,
        starts: &[StartedShard],
        incarnation: u64,
        own_service: Option<ServiceId>,
    ) -> Result<(), PrepareError> {
        let has_boards = self.check_service(starts, own_service).await?;
        let (names, replicas) = (&self.names, self.settings.replicas);
        let (mut missing, mut limits) = (Vec::new(), Vec::new());
        // Whose streams are missing, and nothing on this node says whether they were lost.
        let mut unknown = Vec::new();
        for shard in (0..self.facts.shards).map(ShardId) {
            let start = starts.iter().find(|start| start.shard == shard);
            let applied = start.map(|start| start.applied);
            let accepts_gap =
                self.settings.accept_gap.contains(&shard.0) || start.is_some_and(|start| start.binds);
            match (self.find(&names.jobs_stream(shard)).await?, applied) {
                (Some(found), _) => {
                    self.check_jobs_stream(&found.config, shard)?;
                    if start.is_some_and(|start| start.binds) {
                        check_new(&found)?;
                    }
                    limits.push(found.config.max_bytes);
                }
                (None, Some(applied)) if accepts_gap => {
                    let first_sequence = (applied.0 > 0).then_some(applied.0 + 1);
                    missing.push(Config { first_sequence, ..self.jobs_config(shard) });
                }
                // A shard that has applied messages had a stream. A new, empty stream would hide that the old
                // one is lost.
                (None, Some(applied)) if applied.0 > 0 => {}
                (None, _) => unknown.push(shard),
            }
        }
        for (config, what) in
            [(nodes_config(names, replicas), "nodes"), (floors_config(names, replicas), "floors")]
        {
            let mismatches = |found: &Config| buckets_mismatches(found, &config);
            self.find_or_create(config.clone(), what, mismatches).await?;
        }
        for shard in unknown {
            // As above: its other owners know whether a stream is lost. Where there is none that has ever
            // said what it holds, the service is new.
            if !self.had_owners(shard).await? {
                missing.push(self.jobs_config(shard));
            }
        }
        // Before the streams of jobs, which may take all the room.
        let (boards, facts) = (boards_config(names, self.facts, replicas, incarnation), self.facts);
        // What this node has is of this service. A node that has nothing begins one, unless another was
        // first.
        let boards = of_service(boards, Some(own_service.unwrap_or_else(ServiceId::random)));
        let found =
            self.find_or_create(boards, "boards", |found| boards_mismatches(found, names, facts)).await?;
        let service = service_of(&found);
        self.note_service(service);
        if !has_boards && limits.is_empty() && starts.iter().all(|start| start.applied.0 == 0) {
            // Beside the start: which other streams there are may not be for this node to know.
            tokio::spawn(tell_of_new_service(self.managing.clone(), self.settings.prefix.clone()));
        }
        let missing = missing.into_iter().map(|config| of_service(config, service)).collect();
        let rejects = rejects_config(names, replicas);
        self.find_or_create(rejects, "rejects", |found| rejects_mismatches(found, names)).await?;
        limits.extend(self.create_jobs_streams(missing).await?);
        if let (Some(least), Some(most)) = (limits.iter().min(), limits.iter().max()) {
            tracing::info!(
                streams = limits.len(),
                least_mib = least >> 20,
                most_mib = most >> 20,
                "the smallest and the largest limit of the streams of jobs, at which publishers are refused"
            );
        }
        Ok(())
    }

    fn jobs_config(&self, shard: ShardId) -> Config {
        jobs_config(&self.names, shard, self.facts.shards, SIZES_TRIED[0], self.settings.replicas)
    }

    /// Whether any other data directory has said what its checkpoint of a shard holds. What this one has said
    /// is known better here: it is empty.
    async fn had_owners(&self, shard: ShardId) -> Result<bool, PrepareError> {
        let unknown = |error: &dyn std::fmt::Display| {
            PrepareError::Unreachable(format!("the floors of shard {shard} cannot be looked for: {error}"))
        };
        let bucket = self.names.floors_bucket();
        let stream = self.managing.context.get_stream_no_info(bucket.stream()).await;
        let stream = stream.map_err(|error| unknown(&error))?;
        let floors = stream.info_with_subjects(bucket.floors_of_shard(shard)).await;
        let mut floors = floors.map_err(|error| unknown(&error))?;
        while let Some(floor) = floors.next().await {
            let (subject, _) = floor.map_err(|error| unknown(&error))?;
            // What no node has written there is no floor.
            if bucket.owner_of(&subject).is_none() {
                continue;
            }
            let message = match stream.get_last_raw_message_by_subject(&subject).await {
                Ok(message) => message,
                Err(error) if matches!(error.kind(), LastRawMessageErrorKind::NoMessageFound) => continue,
                Err(error) => return Err(unknown(&error)),
            };
            let is_deleted = message.headers.get(entries::OPERATION).is_some();
            let is_of_other = match entries::read::<FloorEntry>(&message.payload) {
                Ok(floor) => floor.directory != self.peers.this.directory,
                Err(UnreadableEntry::Newer { .. }) => true,
                Err(UnreadableEntry::Foreign) => false,
            };
            if !is_deleted && is_of_other {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn check_jobs_stream(&self, found: &Config, shard: ShardId) -> Result<(), PrepareError> {
        let wrong = jobs_mismatches(found, &self.names, shard, self.facts.shards);
        if wrong.is_empty() {
            return Ok(());
        }
        let other = shards_of(found).filter(|shards| *shards != self.facts.shards);
        let step = other.map_or_else(|| step_for(found), |shards| format!("start with --shards {shards}"));
        Err(PrepareError::Refused(format!(
            "the stream {} exists, but cannot be used for shard {shard} of {}: {}; {step}",
            found.name,
            self.facts.shards,
            wrong.join("; ")
        )))
    }

    /// Creates streams of one size: the operator's, or the largest that leaves as much room to others.
    /// Returns their limits.
    async fn create_jobs_streams(&self, missing: Vec<Config>) -> Result<Vec<i64>, PrepareError> {
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        // Each size that is tried, and how much of it is kept.
        let sizes: Vec<(i64, i64)> = match self.settings.stream_bytes {
            Some(bytes) => vec![(bytes, bytes)],
            None => SIZES_TRIED.iter().map(|kept| (kept * 2, *kept)).chain([(SIZE_MIN, SIZE_MIN)]).collect(),
        };
        let mut created: Vec<Config> = Vec::new();
        let mut no_room = String::new();
        'sizes: for (tried, kept) in sizes {
            // Streams that were created before the room ran out give some back.
            self.resize(&mut created, tried).await;
            for config in missing.iter().skip(created.len()) {
                match self.create(Config { max_bytes: tried, ..config.clone() }).await {
                    Ok(info) => created.push(info.config),
                    Err(PrepareError::NoRoom(reason)) => {
                        no_room = reason;
                        continue 'sizes;
                    }
                    Err(error) => return Err(error),
                }
            }
            self.resize(&mut created, kept).await;
            return Ok(created.iter().map(|config| config.max_bytes).collect());
        }
        Err(PrepareError::Refused(self.advise_size(&no_room).await))
    }

    /// Gives streams that were created just now another limit.
    async fn resize(&self, created: &mut [Config], bytes: i64) {
        for config in created.iter_mut().filter(|config| config.max_bytes != bytes) {
            let resized = Config { max_bytes: bytes, ..config.clone() };
            match self.managing.context.update_stream(&resized).await {
                Ok(_) => *config = resized,
                Err(error) => {
                    let stream = &config.name;
                    tracing::warn!(stream, %error, "the limit of a stream that was just created could not be lowered; it keeps the greater one");
                }
            }
        }
    }

    /// What to do if the streams of jobs find no room.
    async fn advise_size(&self, reason: &str) -> String {
        let advice = self.advise_room().await;
        let smaller = match self.settings.stream_bytes {
            Some(_) => "start without --nats-stream-mib, which takes what there is room for".to_owned(),
            None => format!(
                "start with --nats-stream-mib below {}, with which streams are full soon",
                SIZE_MIN >> 20
            ),
        };
        format!("{reason}: {advice}, or {smaller}")
    }

    async fn find_or_create(
        &self,
        wanted: Config,
        what: &str,
        mismatches: impl Fn(&Config) -> Vec<String>,
    ) -> Result<Config, PrepareError> {
        let Some(found) = self.find(&wanted.name).await? else {
            return match self.create(wanted).await {
                Ok(info) => Ok(info.config),
                Err(PrepareError::NoRoom(reason)) => {
                    Err(PrepareError::Refused(format!("{reason}: {}", self.advise_room().await)))
                }
                Err(other) => Err(other),
            };
        };
        let wrong = mismatches(&found.config);
        if wrong.is_empty() {
            return Ok(found.config);
        }
        Err(PrepareError::Refused(format!(
            "the stream {} exists, but cannot be used for {what}: {}; {}",
            wanted.name,
            wrong.join("; "),
            step_for(&found.config)
        )))
    }

    async fn find(&self, name: &str) -> Result<Option<Info>, PrepareError> {
        match self.managing.context.get_stream(name).await {
            Ok(stream) => Ok(Some(stream.cached_info().clone())),
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                    Ok(None)
                }
                _ => Err(PrepareError::Unreachable(format!(
                    "it cannot be found out whether the stream {name} exists: {error}"
                ))),
            },
        }
    }

    async fn create(&self, config: Config) -> Result<Info, PrepareError> {
        let name = config.name.clone();
        match self.managing.context.create_stream(config).await {
            Ok(stream) => {
                tracing::info!(stream = name, "created a stream");
                Ok(stream.cached_info().clone())
            }
            Err(error) => match error.kind() {
                // Another node was first. The next attempt checks its stream.
                CreateStreamErrorKind::JetStream(error)
                    if error.error_code() == ErrorCode::STREAM_NAME_EXIST =>
                {
                    Err(PrepareError::Unreachable(format!(
                        "another node has just created the stream {name}; checking it"
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

/// What to do about a stream that cannot be used.
fn step_for(found: &Config) -> String {
    // Only these streams say whose they are.
    let says = found.name.contains("_JOBS_") || found.name.ends_with("_BOARDS");
    let is_ours = !says || found.metadata.get(LAYOUT_KEY).is_some_and(|layout| layout == LAYOUT);
    let step =
        if is_ours { "change the stream so that it is as nodes make it" } else { "use another --prefix" };
    step.to_owned()
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
