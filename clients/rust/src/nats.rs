//! Publishes jobs to NATS, without asking a node. Needs the feature `nats`.
//!
//! A message is an array of jobs of one shard. A publisher has one message of each shard on its way at a time:
//! jobs that come meanwhile make the next array, and a message that is sent again cannot overtake another. Each
//! message has a `Nats-Msg-Id`, which it keeps when it is sent again, so that the server stores it once.

mod batch;
mod errors;
mod lane;
mod link;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

pub use async_nats;
use async_nats::{ConnectOptions, ToServerAddrs};
use futures_util::future::join_all;
use tokio::sync::{Semaphore, mpsc, oneshot};

use self::batch::{Waiting, check_id, cut, encode, shard_of_job};
pub use self::errors::{PublishError, PublishManyError};
use self::link::Link;
pub use self::write::Write;
use crate::error::Error;
use crate::tokens::{Token, latest, shard_of};
use crate::types::Job;

/// The server forgets an id after two minutes, unless the operator set another time on the stream.
const GIVE_UP_MAX: Duration = Duration::from_secs(110);

/// Publishes jobs to the streams that nodes read.
///
/// A clone is cheap and publishes through the same connection; many tasks may use one publisher at a time. Call
/// [`close`](Self::close) before the program ends, so that nothing that waits is lost.
#[derive(Clone)]
pub struct Publisher {
    link: Arc<Link>,
    /// A permit for each message's worth of jobs that waits to be stored.
    room: Arc<Semaphore>,
    max_waiting: u32,
    /// Of each shard.
    lanes: Arc<[mpsc::UnboundedSender<Waiting>]>,
    is_own: bool,
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (prefix, shards) = (&self.link.prefix, self.link.shards);
        f.debug_struct("Publisher").field("prefix", prefix).field("shards", &shards).finish_non_exhaustive()
    }
}

/// The settings of a publisher.
#[derive(Clone, Debug)]
#[must_use = "a publisher is made by `connect`"]
pub struct PublisherBuilder {
    shards: Option<u32>,
    prefix: String,
    ack_timeout: Duration,
    give_up_after: Duration,
    max_waiting: u32,
}

impl PublisherBuilder {
    /// How many shards there are. Without it the publisher asks the first jobs stream, for which its user needs
    /// the permission to publish to `$JS.API.STREAM.INFO.*`.
    pub fn shards(mut self, shards: u32) -> Self {
        self.shards = Some(shards);
        self
    }

    /// The nodes' `--prefix`, `ranktree` unless it is another.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// After how long a message that was not acknowledged is sent again: 5 seconds unless it is another time.
    pub fn ack_timeout(mut self, ack_timeout: Duration) -> Self {
        self.ack_timeout = ack_timeout;
        self
    }

    /// After how long the publisher stops sending a message: a minute unless it is another time, at most 110
    /// seconds.
    pub fn give_up_after(mut self, give_up_after: Duration) -> Self {
        self.give_up_after = give_up_after;
        self
    }

    /// How many jobs and arrays wait to be stored, 10,000 unless it is another number. Further calls wait for
    /// room.
    pub fn max_waiting(mut self, max_waiting: u32) -> Self {
        self.max_waiting = max_waiting;
        self
    }

    /// Connects to NATS.
    ///
    /// # Errors
    ///
    /// [`Error::ConnectionFailed`], [`Error::UnknownShards`], or [`Error::Argument`].
    pub async fn connect(self, servers: impl ToServerAddrs) -> Result<Publisher, Error> {
        self.connect_with(servers, ConnectOptions::new()).await
    }

    /// Connects to NATS with options, such as a user and a password, or TLS.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn connect_with(
        self,
        servers: impl ToServerAddrs,
        options: ConnectOptions,
    ) -> Result<Publisher, Error> {
        let connection = options.connect(servers).await.map_err(|error| Error::ConnectionFailed {
            detail: format!("NATS: {error}"),
            may_be_applied: false,
        })?;
        let mut publisher = self.on(connection).await?;
        publisher.is_own = true;
        Ok(publisher)
    }

    /// Uses a connection of your own, which is not closed with the publisher.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownShards`], or [`Error::Argument`].
    pub async fn on(self, connection: async_nats::Client) -> Result<Publisher, Error> {
        if self.give_up_after > GIVE_UP_MAX {
            let most = GIVE_UP_MAX.as_secs();
            let told = format!("give_up_after is at most {most} s, because the server forgets ids");
            return Err(Error::Argument(format!("{told}; got {:?}", self.give_up_after)));
        }
        let room = usize::try_from(self.max_waiting).unwrap_or(usize::MAX);
        if room == 0 || room > Semaphore::MAX_PERMITS {
            return Err(Error::Argument(format!("max_waiting is at least 1; got {room}")));
        }
        let shards = match self.shards {
            Some(shards) => shards,
            None => link::find_shards(&connection, &self.prefix).await?,
        };
        shard_of("", shards).map_err(|error| Error::Argument(error.to_string()))?;
        let link = Arc::new(Link {
            connection,
            prefix: self.prefix,
            shards,
            ack_timeout: self.ack_timeout,
            give_up_after: self.give_up_after,
        });
        let lane = |shard| {
            let (sender, incoming) = mpsc::unbounded_channel();
            tokio::spawn(lane::run(link.clone(), shard, incoming));
            sender
        };
        let lanes = (0..shards).map(lane).collect();
        let room = Arc::new(Semaphore::new(room));
        Ok(Publisher { link, room, max_waiting: self.max_waiting, lanes, is_own: false })
    }
}

impl Publisher {
    /// Connects to NATS, with the usual settings.
    ///
    /// # Errors
    ///
    /// As [`PublisherBuilder::connect`].
    pub async fn connect(servers: impl ToServerAddrs) -> Result<Self, Error> {
        Self::builder().connect(servers).await
    }

    /// A publisher with settings.
    pub fn builder() -> PublisherBuilder {
        PublisherBuilder {
            shards: None,
            prefix: "ranktree".to_owned(),
            ack_timeout: Duration::from_secs(5),
            give_up_after: Duration::from_secs(60),
            max_waiting: 10_000,
        }
    }

    /// How many shards there are.
    #[must_use]
    pub fn shards(&self) -> u32 {
        self.link.shards
    }

    /// Stores a job, and returns its token. Whether it is applied or rejected is not known then.
    ///
    /// Jobs of a member stay in the order in which they were given; those of the same moment share messages,
    /// unless they have a [`message_id`](Publish::message_id). A future that is dropped takes its job back, unless
    /// it is on its way.
    pub fn publish(&self, job: &Job) -> Publish {
        let job = shard_of_job(job, self.link.shards).and_then(|shard| Ok((shard, encode(job)?)));
        Publish { publisher: self.clone(), job, message_id: None }
    }

    /// Stores jobs of any members, in as few messages as possible, and returns one token for all.
    ///
    /// Jobs of a member stay in their order. [`Error::PublishMany`] if messages were not acknowledged.
    pub fn publish_many(&self, jobs: &[Job]) -> PublishMany {
        let by_shard = jobs.iter().try_fold(BTreeMap::new(), |mut found, job| {
            let shard = shard_of_job(job, self.link.shards)?;
            found.entry(shard).or_insert_with(Vec::new).push(encode(job)?);
            Ok(found)
        });
        PublishMany { publisher: self.clone(), by_shard, message_id: None }
    }

    /// Has a node write jobs of members of one shard, and returns what came of them. It is sent once.
    pub fn write(&self, jobs: &[Job]) -> Write {
        Write::new(self.link.clone(), jobs)
    }

    /// Waits for what is on its way, and closes the connection if `connect` made it. Nothing can be published
    /// afterwards, through no clone.
    pub async fn close(&self) {
        // Who has all the permits knows that nobody else has one.
        if let Ok(all) = self.room.acquire_many(self.max_waiting).await {
            self.room.close();
            drop(all);
            if self.is_own {
                // Only a connection that is closed already refuses.
                let _ = self.link.connection.drain().await;
            }
        }
    }

    /// Puts jobs into the lane of their shard once there is room.
    async fn put(
        &self,
        shard: u32,
        jobs: Vec<Vec<u8>>,
        message_id: Option<String>,
        is_kept: bool,
    ) -> Result<Stored, Error> {
        let closed = || Error::Argument("the publisher is closed".to_owned());
        let permit = self.room.clone().acquire_owned().await.map_err(|_| closed())?;
        let (stored, outcome) = oneshot::channel();
        let index = usize::try_from(shard).map_err(|_| closed())?;
        let lane = self.lanes.get(index).ok_or_else(closed)?;
        lane.send(Waiting::new(jobs, message_id, is_kept, stored, permit)).map_err(|_| closed())?;
        Ok(Stored { shard, outcome })
    }
}

/// A job that is about to be published: `.await` it.
#[must_use = "a job is published when this is awaited"]
pub struct Publish {
    publisher: Publisher,
    job: Result<(u32, Vec<u8>), Error>,
    message_id: Option<String>,
}

impl Publish {
    /// Gives the job a message of its own with this `Nats-Msg-Id`. That switches batching off: the next message of
    /// its shard waits until this one is acknowledged. You may publish it again under the same id then, also after
    /// your process was killed: within two minutes it counts once. For many jobs give
    /// [`publish_many`](Publisher::publish_many) one id, or the jobs a `version`.
    pub fn message_id(mut self, message_id: impl Into<String>) -> Self {
        self.message_id = Some(message_id.into());
        self
    }

    /// Waits for room only. The job is published whether or not what is returned is awaited.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`].
    pub async fn submit(self) -> Result<Stored, Error> {
        self.put(true).await
    }

    async fn put(self, is_kept: bool) -> Result<Stored, Error> {
        check_id(self.message_id.as_deref())?;
        let (shard, job) = self.job?;
        self.publisher.put(shard, vec![job], self.message_id, is_kept).await
    }
}

impl IntoFuture for Publish {
    type Output = Result<Token, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.put(false).await?.await })
    }
}

/// A job that waits to be stored, or was: `.await` gives its token.
#[derive(Debug)]
pub struct Stored {
    shard: u32,
    outcome: oneshot::Receiver<Result<u64, PublishError>>,
}

impl Future for Stored {
    type Output = Result<Token, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let shard = self.shard;
        Pin::new(&mut self.outcome).poll(context).map(|outcome| match outcome {
            Ok(Ok(sequence)) => Ok(Token::of(shard, sequence)),
            Ok(Err(error)) => Err(error.into()),
            // The runtime that the publisher was made in has stopped.
            Err(_) => Err(Error::Argument("the publisher is gone".to_owned())),
        })
    }
}

/// Jobs that are about to be published: `.await` them.
#[must_use = "jobs are published when this is awaited"]
pub struct PublishMany {
    publisher: Publisher,
    by_shard: Result<BTreeMap<u32, Vec<Vec<u8>>>, Error>,
    message_id: Option<String>,
}

impl PublishMany {
    /// The ids of the messages follow from this one, and the jobs share messages with each other and with no
    /// others. To publish again, give the same jobs in the same order.
    pub fn message_id(mut self, message_id: impl Into<String>) -> Self {
        self.message_id = Some(message_id.into());
        self
    }

    async fn send(self) -> Result<Token, Error> {
        check_id(self.message_id.as_deref())?;
        if self.publisher.room.is_closed() {
            return Err(Error::Argument("the publisher is closed".to_owned()));
        }
        let base = self.message_id.as_deref();
        let publisher = &self.publisher;
        let shards =
            self.by_shard?.into_iter().map(|(shard, jobs)| put_all(publisher, shard, cut(jobs), base));
        let (mut tokens, mut errors) = (Vec::new(), Vec::new());
        for (token, failed) in join_all(shards).await {
            tokens.extend(token);
            errors.extend(failed);
        }
        match (latest(&tokens)?, PublishManyError::of(errors)) {
            (token, Some(error)) => Err(Box::new(error.with(self.message_id, token)).into()),
            (Some(token), None) => Ok(token),
            (None, None) => Err(Error::Argument("there are no jobs to publish".to_owned())),
        }
    }
}

impl IntoFuture for PublishMany {
    type Output = Result<Token, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// Stores the messages of a shard. After one that failed the others are not sent, to stay in order.
async fn put_all(
    publisher: &Publisher,
    shard: u32,
    messages: Vec<Vec<Vec<u8>>>,
    base: Option<&str>,
) -> (Option<Token>, Vec<PublishError>) {
    let mut token = None;
    let mut errors: Vec<PublishError> = Vec::new();
    for (number, jobs) in messages.into_iter().enumerate() {
        let message_id = base.map(|base| format!("{base}.{shard}.{number}"));
        if let Some(first) = errors.first() {
            let first = first.message_id.as_deref().unwrap_or("a message before it");
            let detail = format!("not sent, because {first} was not acknowledged");
            errors.push(PublishError { detail, message_id, may_be_stored: false });
            continue;
        }
        let stored = match publisher.put(shard, jobs, message_id.clone(), false).await {
            Ok(stored) => stored.await,
            // The publisher was closed in between: some messages are stored, and the caller has to know which.
            Err(error) => {
                errors.push(PublishError { detail: error.to_string(), message_id, may_be_stored: false });
                continue;
            }
        };
        match stored {
            Ok(stored) => token = Some(stored),
            Err(Error::Publish(error)) => errors.push(error),
            Err(error) => {
                errors.push(PublishError { detail: error.to_string(), message_id, may_be_stored: true });
            }
        }
    }
    (token, errors)
}
