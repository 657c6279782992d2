//! What each board is, decided once for all shards and nodes.
//!
//! The boards' stream has one subject per board, and keeps its last message: the definition in force, or that the board
//! was dropped. A message is stored only if it follows the one that its writer has read, so of two definitions at the
//! same moment the server takes one, and the other's writer finds it and agrees or is refused. A life of a board is
//! numbered by the sequence of its first message there.
//!
//! What is decided is brought to the shards through their own streams, where it takes its place among the jobs; from then
//! on it holds there. Whoever brings it may bring it twice, or late: a shard ignores what it knows to be over. So every
//! node may bring, to the shards that it has, whatever they lack, and what a crash cut short is completed by the next
//! look.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use futures_util::StreamExt as _;
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::watch;

use crate::board::Definition;
use crate::queue::jetstream::command::DefinitionJson;
use crate::queue::jetstream::connection::Connection;
use crate::queue::jetstream::names::Names;
use crate::queue::jetstream::publisher::StreamPublisher;
use crate::queue::jetstream::streams::JetStream;
use crate::queue::publisher::NotPublished;
use crate::state::{Incarnation, Shard};
use crate::types::{BoardName, Sequence, ShardId};
use crate::writer::{DefineRefused, Health, Known, MAX_BOARDS, Payload, Registry, WantedBoards};

/// How often all boards are compared with all shards.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// What was brought is given so long to arrive before it is brought again.
const BRING_AGAIN: Duration = Duration::from_secs(5);
/// How long a definition or drop may take to arrive everywhere.
const ARRIVE_WITHIN: Duration = Duration::from_secs(30);
const RETRY_PAUSE: Duration = Duration::from_millis(500);
const HEARTBEAT: Duration = Duration::from_millis(500);

/// What the boards' stream says of a board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    /// Absent in a life's first message, whose sequence it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    incarnation: Option<u64>,
    /// Absent once it is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    definition: Option<DefinitionJson>,
}

/// A record, read.
struct Decided {
    /// Its own sequence.
    sequence: u64,
    incarnation: Incarnation,
    definition: Option<Arc<Definition>>,
}

/// Why a definition or drop did not come about.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BoardRefused {
    #[error(transparent)]
    Refused(#[from] DefineRefused),
    #[error("there is no board of this name")]
    Unknown,
    #[error("the boards' stream cannot be used: {0}")]
    Unavailable(String),
    #[error("it is decided, and has not arrived at every shard yet; it will")]
    Late,
    #[error(transparent)]
    NotPublished(#[from] NotPublished),
}

/// A shard that boards are brought to.
pub struct BoardsOfShard {
    pub id: ShardId,
    pub state: Arc<RwLock<Shard>>,
    pub health: Arc<Health>,
    pub applied: watch::Receiver<Sequence>,
    pub publisher: StreamPublisher,
}

/// A definition, or for `None` a drop, and when it was published.
type Brought = (Option<Known>, Instant);

/// The boards of a node whose definitions are decided in a stream.
pub struct Boards {
    managing: Connection,
    names: Names,
    registry: Arc<Registry>,
    wanted: Arc<WantedBoards>,
    shards: Vec<BoardsOfShard>,
    dropped: Mutex<BTreeMap<BoardName, Incarnation>>,
    /// What was brought last to a shard, and when.
    brought: Mutex<HashMap<(ShardId, BoardName), Brought>>,
    /// Whether everything in the stream was read once.
    loaded: watch::Sender<bool>,
}

impl JetStream {
    #[must_use]
    pub fn boards(
        &self,
        registry: Arc<Registry>,
        wanted: Arc<WantedBoards>,
        shards: Vec<BoardsOfShard>,
    ) -> Arc<Boards> {
        Arc::new(Boards {
            managing: self.managing.clone(),
            names: self.names.clone(),
            registry,
            wanted,
            shards,
            dropped: Mutex::default(),
            brought: Mutex::default(),
            loaded: watch::channel(false).0,
        })
    }
}

impl Boards {
    /// Decides a definition, and waits until all of this node's shards have it. Whether it is new, and where it was
    /// published.
    ///
    /// # Errors
    /// When the board is something else, or the decision could not be made or has not arrived.
    pub async fn define(
        &self,
        name: &BoardName,
        definition: &Definition,
    ) -> Result<(bool, Vec<(ShardId, Sequence)>), BoardRefused> {
        let (created, known) = self.decide(name, definition).await?;
        let token = self.bring(name, Some(&known), true).await?;
        self.wait_until(|shard| has(shard, name, &known)).await?;
        Ok((created, token))
    }

    /// Drops a board, and waits until none of this node's shards has it.
    ///
    /// # Errors
    /// When there is none, or the decision could not be made or has not arrived.
    pub async fn drop_board(&self, name: &BoardName) -> Result<Vec<(ShardId, Sequence)>, BoardRefused> {
        let incarnation = loop {
            let last = self.last(name).await?.ok_or(BoardRefused::Unknown)?;
            if last.definition.is_none() {
                return Err(BoardRefused::Unknown);
            }
            let record = Record { incarnation: Some(last.incarnation.0), definition: None };
            if self.store(name, &record, last.sequence).await?.is_some() {
                break last.incarnation;
            }
        };
        self.note_dropped(name, incarnation);
        let token = self.bring(name, None, true).await?;
        self.wait_until(|shard| {
            shard.board(name.as_str()).is_none_or(|board| board.incarnation > incarnation)
        })
        .await?;
        Ok(token)
    }

    /// The first definition wins; a later one must agree with it.
    async fn decide(&self, name: &BoardName, definition: &Definition) -> Result<(bool, Known), BoardRefused> {
        loop {
            let last = self.last(name).await?;
            let (after, record) = match &last {
                Some(Decided { sequence, incarnation, definition: Some(known) }) => {
                    if !known.agrees_with(definition) {
                        return Err(DefineRefused::Conflict.into());
                    }
                    if **known == *definition {
                        return Ok((false, self.note(name, *incarnation, Arc::clone(known))));
                    }
                    (
                        *sequence,
                        Record { incarnation: Some(incarnation.0), definition: Some(definition.into()) },
                    )
                }
                Some(Decided { sequence, definition: None, .. }) => {
                    (*sequence, Record { incarnation: None, definition: Some(definition.into()) })
                }
                None => (0, Record { incarnation: None, definition: Some(definition.into()) }),
            };
            if record.incarnation.is_none() && self.registry.all().len() >= MAX_BOARDS {
                return Err(DefineRefused::TooMany.into());
            }
            if let Some(sequence) = self.store(name, &record, after).await? {
                let incarnation = Incarnation(record.incarnation.unwrap_or(sequence));
                let known = self.note(name, incarnation, Arc::new(definition.clone()));
                return Ok((record.incarnation.is_none(), known));
            }
            // Another one was first: what it decided holds.
        }
    }

    /// Stores a record if it follows the one at `after`; `None` if another one does.
    async fn store(
        &self,
        name: &BoardName,
        record: &Record,
        after: u64,
    ) -> Result<Option<u64>, BoardRefused> {
        let body = serde_json::to_vec(record).expect("it has no maps with odd keys");
        let message = PublishMessage::build().expected_last_subject_sequence(after).payload(body.into());
        let sent = self.managing.context.send_publish(self.names.board_subject(name), message).await;
        match sent.map_err(|error| self.unavailable(&error))?.await {
            Ok(stored) => Ok(Some(stored.sequence)),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(None),
            Err(error) => Err(self.unavailable(&error)),
        }
    }

    fn unavailable(&self, error: &dyn std::fmt::Display) -> BoardRefused {
        BoardRefused::Unavailable(self.managing.explain(error))
    }

    async fn last(&self, name: &BoardName) -> Result<Option<Decided>, BoardRefused> {
        let unavailable = |error: &dyn std::fmt::Display| self.unavailable(error);
        let stream = self.managing.context.get_stream_no_info(self.names.boards_stream()).await;
        let stream = stream.map_err(|error| unavailable(&error))?;
        match stream.get_last_raw_message_by_subject(&self.names.board_subject(name)).await {
            Ok(message) if is_foreign(&message.payload) => Ok(Some(self.known(name, message.sequence))),
            Ok(message) => read(message.sequence, &message.payload)
                .map(Some)
                .ok_or_else(|| unavailable(&format!("what it says of {name} cannot be read"))),
            Err(error) if matches!(error.kind(), LastRawMessageErrorKind::NoMessageFound) => Ok(None),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// What a board is as far as this node knows, in place of a message that says nothing of it.
    fn known(&self, name: &BoardName, sequence: u64) -> Decided {
        if let Some(Known { incarnation, definition }) = self.registry.get(name.as_str()) {
            return Decided { sequence, incarnation, definition: Some(definition) };
        }
        let dropped = self.dropped.lock().get(name).copied();
        Decided { sequence, incarnation: dropped.unwrap_or(Incarnation(sequence)), definition: None }
    }

    /// Says again what a board is where a foreign message has taken its place.
    async fn put_right(&self, subject: &str, sequence: u64) -> Result<(), String> {
        tracing::warn!(
            subject,
            sequence,
            "a message of the boards' stream is not from a node; who may publish there?"
        );
        let Some(name) = self.names.board_of(subject) else { return Ok(()) };
        let Decided { incarnation, definition, .. } = self.known(&name, sequence);
        if definition.is_none() && !self.dropped.lock().contains_key(&name) {
            return Ok(());
        }
        let definition = definition.map(|definition| (&*definition).into());
        let record = Record { incarnation: Some(incarnation.0), definition };
        self.store(&name, &record, sequence).await.map_err(|error| error.to_string())?;
        Ok(())
    }

    fn note(&self, name: &BoardName, incarnation: Incarnation, definition: Arc<Definition>) -> Known {
        let known = Known { incarnation, definition };
        self.registry.adopt(name, &known);
        known
    }

    fn note_dropped(&self, name: &BoardName, incarnation: Incarnation) {
        self.registry.forget(name, incarnation);
        self.dropped.lock().insert(name.clone(), incarnation);
    }

    /// Brings a definition, or for `None` a drop, to the shards that lack it.
    async fn bring(
        &self,
        name: &BoardName,
        known: Option<&Known>,
        at_once: bool,
    ) -> Result<Vec<(ShardId, Sequence)>, NotPublished> {
        let dropped = self.dropped.lock().get(name).copied();
        let mut token = Vec::new();
        for shard in &self.shards {
            let lacks = {
                let state = shard.state.read();
                match (known, dropped) {
                    (Some(known), _) => !has(&state, name, known),
                    (None, Some(dropped)) => {
                        state.board(name.as_str()).is_some_and(|board| board.incarnation <= dropped)
                    }
                    (None, None) => false,
                }
            };
            let key = (shard.id, name.clone());
            if !lacks || (!at_once && self.is_on_its_way(&key, known)) {
                continue;
            }
            let payload = match (known, dropped) {
                (Some(known), _) => Payload::Define {
                    board: name.clone(),
                    incarnation: known.incarnation,
                    definition: Arc::clone(&known.definition),
                },
                (None, Some(incarnation)) => Payload::Drop { board: name.clone(), incarnation },
                (None, None) => continue,
            };
            token.push((shard.id, shard.publisher.store_command(&payload).await?));
            self.brought.lock().insert(key, (known.cloned(), Instant::now()));
        }
        Ok(token)
    }

    fn is_on_its_way(&self, key: &(ShardId, BoardName), known: Option<&Known>) -> bool {
        let brought = self.brought.lock();
        brought.get(key).is_some_and(|(what, when)| what.as_ref() == known && when.elapsed() < BRING_AGAIN)
    }

    async fn wait_until(&self, is_there: impl Fn(&Shard) -> bool) -> Result<(), BoardRefused> {
        let deadline = tokio::time::Instant::now() + ARRIVE_WITHIN;
        for shard in &self.shards {
            let mut applied = shard.applied.clone();
            loop {
                applied.borrow_and_update();
                if is_there(&shard.state.read()) {
                    break;
                }
                match tokio::time::timeout_at(deadline, applied.changed()).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) | Err(_) => return Err(BoardRefused::Late),
                }
            }
        }
        Ok(())
    }

    /// Follows the boards' stream for as long as the service runs.
    pub async fn follow(&self) {
        loop {
            if let Err(error) = self.follow_once().await {
                let error = self.managing.explain(&error);
                tracing::warn!(error, "the boards' stream cannot be followed; trying on");
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    async fn follow_once(&self) -> Result<(), String> {
        let consumer = pull::Config {
            description: Some("ranktree: what each board is".to_owned()),
            deliver_policy: DeliverPolicy::LastPerSubject,
            filter_subject: self.names.all_boards(),
            ack_policy: AckPolicy::None,
            inactive_threshold: Duration::from_secs(60),
            memory_storage: true,
            num_replicas: 1,
            ..pull::Config::default()
        };
        let consumer =
            self.managing.context.create_consumer_on_stream(consumer, self.names.boards_stream()).await;
        let mut consumer = consumer.map_err(|error| error.to_string())?;
        let pending = consumer.info().await.map_err(|error| error.to_string())?.num_pending;
        if pending == 0 {
            self.note_loaded().await?;
        }
        let messages = consumer.stream().heartbeat(HEARTBEAT).messages().await;
        let mut messages = messages.map_err(|error| error.to_string())?;
        while let Some(message) = messages.next().await {
            let message = message.map_err(|error| error.to_string())?;
            let info = message.info().map_err(|error| error.to_string())?;
            let (sequence, pending) = (info.stream_sequence, info.pending);
            let name = self.names.board_of(&message.subject);
            if is_foreign(&message.payload) {
                self.put_right(&message.subject, sequence).await?;
                if pending == 0 {
                    self.note_loaded().await?;
                }
                continue;
            }
            match name.zip(read(sequence, &message.payload)) {
                Some((name, decided)) => self.learn(&name, decided).await,
                None => {
                    tracing::warn!(subject = %message.subject, "a message of the boards' stream cannot be read");
                }
            }
            if pending == 0 {
                self.note_loaded().await?;
            }
        }
        Ok(())
    }

    async fn learn(&self, name: &BoardName, decided: Decided) {
        let known = decided.definition.map(|definition| self.note(name, decided.incarnation, definition));
        if known.is_none() {
            self.note_dropped(name, decided.incarnation);
        }
        if *self.loaded.borrow()
            && self.shards.iter().all(|shard| shard.health.is_live())
            && let Err(error) = self.bring(name, known.as_ref(), false).await
        {
            tracing::warn!(board = %name, %error, "a board could not be brought to its shards; trying on");
        }
    }

    /// Everything was read. Boards that the shards have and the stream does not know were decided in a stream that is
    /// lost: it is told of them again.
    async fn note_loaded(&self) -> Result<(), String> {
        if self.loaded.send_replace(true) {
            return Ok(());
        }
        for (name, known) in self.registry.all() {
            let unheard = self.last(&name).await.map_err(|error| error.to_string())?.is_none();
            if unheard {
                tracing::warn!(board = %name, "the boards' stream did not know this board any more");
                let incarnation = Some(known.incarnation.0);
                let record = Record { incarnation, definition: Some((&*known.definition).into()) };
                self.store(&name, &record, 0).await.map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    /// Brings to the shards what they lack, for as long as the service runs: what others decided, what jobs want, and
    /// what a crash cut short.
    pub async fn tend(&self) {
        let mut loaded = self.loaded.subscribe();
        // It goes away with `self`, which is here.
        let _ = loaded.wait_for(|loaded| *loaded).await;
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => self.bring_all().await,
                () = self.wanted.changed.notified() => {}
            }
            for name in self.wanted.take() {
                if let Err(error) = self.create_wanted(&name).await {
                    tracing::warn!(board = %name, %error, "a board that jobs wait for cannot be created yet");
                }
            }
        }
    }

    async fn create_wanted(&self, name: &BoardName) -> Result<(), BoardRefused> {
        let known = match self.decide(name, &Definition::default()).await {
            Ok((_, known)) => known,
            // Somebody defined it otherwise, which is just as well.
            Err(BoardRefused::Refused(DefineRefused::Conflict)) => {
                let last = self.last(name).await?;
                let Some(Decided { incarnation, definition: Some(definition), .. }) = last else {
                    return Ok(());
                };
                self.note(name, incarnation, definition)
            }
            Err(other) => return Err(other),
        };
        self.bring(name, Some(&known), false).await?;
        Ok(())
    }

    async fn bring_all(&self) {
        // A shard that is behind its stream may find there what it lacks.
        if !self.shards.iter().all(|shard| shard.health.is_live()) {
            return;
        }
        self.brought.lock().retain(|_, (_, when)| when.elapsed() < BRING_AGAIN);
        let dropped: Vec<BoardName> = self.dropped.lock().keys().cloned().collect();
        let known = self.registry.all().into_iter().map(|(name, known)| (name, Some(known)));
        for (name, known) in dropped.into_iter().map(|name| (name, None)).chain(known) {
            if let Err(error) = self.bring(&name, known.as_ref(), false).await {
                tracing::warn!(board = %name, %error, "a board could not be brought to its shards; trying on");
                return;
            }
        }
    }
}

fn has(shard: &Shard, name: &BoardName, known: &Known) -> bool {
    shard.board(name.as_str()).is_some_and(|board| {
        board.incarnation > known.incarnation
            || (board.incarnation == known.incarnation && board.definition == known.definition)
    })
}

/// Whether no node wrote this: every record says a life or a definition. A server answers a publisher wherever that one
/// asks to be answered, without asking whether he might publish there: an acknowledgement is what a stranger can bring
/// here, and must not pass for a drop.
fn is_foreign(body: &[u8]) -> bool {
    let json = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
    json.get("incarnation").or(json.get("definition")).is_none()
}

fn read(sequence: u64, body: &[u8]) -> Option<Decided> {
    let record: Record = serde_json::from_slice(body).ok()?;
    let incarnation = Incarnation(record.incarnation.unwrap_or(sequence));
    let definition = match record.definition {
        Some(definition) => Some(Arc::new(definition.read()?)),
        None => None,
    };
    Some(Decided { sequence, incarnation, definition })
}
