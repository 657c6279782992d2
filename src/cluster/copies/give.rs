//! Gives copies of this node's shards to other owners that ask for them.
//!
//! Knows: which copies are out, to whom, and that this node's floor holds the stream while they are. Must not
//! know: how files are copied. The writer of the shard is not held up.
//!
//! The floor is held from before the copy is made, at what no crash takes back here, which is no more than
//! the copy will hold. It is let go only once this node has itself read the other's floor, or the other has
//! said nothing for long. Third nodes read both floors from one stream, the other's before this one's next.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::Message;
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::sync::Semaphore;

use crate::cluster::copies::given::GivenCopies;
use crate::cluster::copies::protocol::{self, Answer, CHUNK_HEADER_BYTES, OfferedCopy, Question};
use crate::metrics::{self as names, figure};
use crate::queue::nats::{Connection, JetStream, NatsShard};
use crate::snapshot::{SnapshotError, Snapshots};
use crate::storage::codec::FORMAT_VERSION;
use crate::types::{ShardId, count};
use crate::writer::ShardState;

/// Questions that are answered at a time, each with a chunk in memory at most.
const ANSWERED_AT_ONCE: usize = 8;
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Floors are stored every two seconds.
const FLOOR_TIMEOUT: Duration = Duration::from_secs(10);
const FLOOR_LOOK_INTERVAL: Duration = Duration::from_millis(20);
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Gives copies.
pub struct Giver {
    nats: Arc<JetStream>,
    connection: Connection,
    shards: Vec<NatsShard>,
    snapshots: Snapshots,
    given: GivenCopies,
    permits: Arc<Semaphore>,
}

impl Giver {
    pub fn new(
        nats: Arc<JetStream>,
        connection: Connection,
        shards: Vec<NatsShard>,
        data_dir: &Path,
    ) -> Arc<Self> {
        let snapshots = Snapshots::for_nodes(data_dir);
        snapshots.clear();
        let permits = Arc::new(Semaphore::new(ANSWERED_AT_ONCE));
        Arc::new(Self { nats, connection, shards, snapshots, given: GivenCopies::default(), permits })
    }

    /// Answers questions for as long as the service runs.
    pub async fn answer_all(self: Arc<Self>) {
        loop {
            match self.connection.client.subscribe(self.nats.own_copy_subjects()).await {
                Ok(mut questions) => {
                    while let Some(question) = questions.next().await {
                        let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else { return };
                        let this = Arc::clone(&self);
                        tokio::spawn(async move {
                            this.answer(question).await;
                            drop(permit);
                        });
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "this node cannot be asked for copies of its shards; trying again");
                }
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Lets go of copies that nobody asks for any more, and of floors, for as long as the service runs.
    pub async fn look_after(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let this = Arc::clone(&self);
            let looked = tokio::task::spawn_blocking(move || {
                this.snapshots.expire();
                this.update_floors();
            });
            // It logs what it cannot remove.
            let _ = looked.await;
        }
    }

    async fn answer(self: &Arc<Self>, question: Message) {
        let names = &self.nats.names;
        let Some(reply) = question.reply.filter(|reply| names.may_be_inbox(reply)) else { return };
        let this = Arc::clone(self);
        let shard = question.subject.rsplit('.').next().and_then(|token| token.parse().ok()).map(ShardId);
        let payload = question.payload;
        // Copying waits for RocksDB, and reading for the disk.
        let answered = tokio::task::spawn_blocking(move || this.answer_to(shard, &payload)).await;
        let answer = answered.unwrap_or_else(|error| refused(format!("answering failed: {error}")));
        if let Err(error) = self.connection.client.publish(reply, answer).await {
            tracing::warn!(%error, "a question about a copy could not be answered");
        }
    }

    fn answer_to(&self, shard: Option<ShardId>, question: &[u8]) -> Bytes {
        let shard = self.shards.iter().find(|owned| Some(owned.id) == shard);
        let Some(shard) = shard else { return refused("this node does not own the shard") };
        match protocol::read(question) {
            Ok(Question::Begin { node, directory, shards, stream, first, storage }) => {
                let asked = Asked { node, directory, shards, stream, first, storage };
                match self.begin(shard, &asked) {
                    Ok(offered) => self.offer(offered),
                    Err(why) => refused(why),
                }
            }
            Ok(Question::Read { copy, file, offset, length }) => {
                // What was copied so far may be the wrong one of two replicas. That may have come out while
                // the copy is fetched.
                match check_not_diverged(shard) {
                    Ok(()) => self.read(shard.id, &copy, file, offset, length),
                    Err(why) => {
                        self.release(&copy);
                        refused(why)
                    }
                }
            }
            Ok(Question::Release { copy }) => {
                self.release(&copy);
                protocol::encode(&Answer::Released)
            }
            Err(error) => refused(format!("the question cannot be read: {error}")),
        }
    }

    fn begin(&self, shard: &NatsShard, asked: &Asked) -> Result<OfferedCopy, String> {
        let stream = shard.stream.stream();
        if asked.shards != self.nats.shards() {
            return Err(format!("it has {} shards, and this node {}", asked.shards, self.nats.shards()));
        }
        if asked.storage != FORMAT_VERSION {
            return Err(format!(
                "it reads data of format {}, and this node writes format {FORMAT_VERSION}; upgrade the one of \
                 the earlier version",
                asked.storage
            ));
        }
        check_not_diverged(shard)?;
        if let ShardState::Halted(reason) = shard.health.state() {
            return Err(format!("the shard is halted here: {reason}"));
        }
        if let Some(damage) = shard.health.get(|health| health.damage.clone()) {
            return Err(format!("the shard's files are damaged here: {damage}"));
        }
        // Until its own floor is stored, nothing holds the stream for this node or for the other.
        let has_floor = shard.stream.copies.stored().borrow().is_some();
        if stream.is_empty() || !has_floor || shard.stream.copies.need().borrow().is_some() {
            return Err("the shard does not follow its stream here yet; ask later".to_owned());
        }
        if stream != asked.stream {
            return Err(format!("it follows the stream {}, and this node {stream}", asked.stream));
        }
        if shard.stream.sequence_offset() != Some(0) {
            return Err("the shard is being rebased here; ask later".to_owned());
        }
        for earlier in self.given.of(shard.id, &asked.directory) {
            self.release(&earlier);
        }
        // Held before the copy is made.
        let known = self.nats.peers.floor_of(shard.id, &asked.directory);
        self.given.begin(shard.id, &asked.directory, &stream, shard.health.safe_sequence(), known.as_ref());
        self.update_floors();
        let made = wait_for_floor(shard, &stream).and_then(|()| self.make(shard, asked));
        self.given.end_making(shard.id, &asked.directory, made.as_ref().ok());
        self.update_floors();
        match &made {
            Ok(offered) => {
                tracing::info!(shard = %shard.id, node = asked.node, sequence = offered.sequence, "another node fetches a copy of the shard");
            }
            Err(why) => {
                tracing::warn!(shard = %shard.id, node = asked.node, why, "another node asked for a copy of the shard and gets none");
            }
        }
        made
    }

    fn make(&self, shard: &NatsShard, asked: &Asked) -> Result<OfferedCopy, String> {
        let taken = match self.snapshots.take(&[(shard.id, Arc::clone(&shard.store))]) {
            Ok(taken) => taken,
            Err(SnapshotError::TooMany) => {
                return Err("this node gives as many copies already as it may; ask later".to_owned());
            }
            Err(error) => return Err(error.to_string()),
        };
        let fault = match taken.shards.first() {
            None => Some("there is no such shard".to_owned()),
            Some(copy) if copy.stream != asked.stream => {
                Some(format!("its copy would be of the stream {:?}", copy.stream))
            }
            Some(copy) if copy.applied.0.saturating_add(1) < asked.first => Some(format!(
                "it has applied messages up to {} only, and the stream begins at {}",
                copy.applied, asked.first
            )),
            Some(_) => None,
        };
        match (fault, taken.shards.first()) {
            (None, Some(copy)) => Ok(OfferedCopy {
                copy: taken.id.clone(),
                shards: asked.shards,
                stream: copy.stream.clone(),
                sequence: copy.applied.0,
                files: copy.files.clone(),
            }),
            (fault, _) => {
                // It was made just now.
                let _ = self.snapshots.release(&taken.id);
                Err(fault.unwrap_or_default())
            }
        }
    }

    fn offer(&self, offered: OfferedCopy) -> Bytes {
        let copy = offered.copy.clone();
        let answer = protocol::encode(&Answer::Copy(offered));
        let most = self.connection.client.max_payload();
        if answer.len() <= most {
            return answer;
        }
        self.release(&copy);
        refused(format!(
            "the list of the shard's files has {} bytes, and the NATS server takes {most}; raise its max_payload",
            answer.len()
        ))
    }

    fn read(&self, shard: ShardId, copy: &str, file: u32, offset: u64, length: u64) -> Bytes {
        let name = self.given.file(shard, copy, file);
        let Some(name) = name else {
            return refused(
                "this node does not hold that copy any more: it was not asked for, or the node was started again",
            );
        };
        let most = count(self.connection.client.max_payload().saturating_sub(CHUNK_HEADER_BYTES));
        match self.snapshots.read(copy, shard.0, &name, offset, length.min(most)) {
            Ok(data) => {
                metrics::counter!(names::COPY_BYTES_TOTAL, "direction" => "given")
                    .increment(count(data.len()));
                protocol::encode_chunk(file, offset, &data)
            }
            Err(error) => refused(error.to_string()),
        }
    }

    fn release(&self, copy: &str) {
        // It may be gone already.
        let _ = self.snapshots.release(copy);
        self.update_floors();
    }

    /// Holds each shard's floor at the lowest of its copies.
    fn update_floors(&self) {
        let hold = |shard, sequence| {
            if let Some(owned) = self.shards.iter().find(|owned| owned.id == shard) {
                owned.stream.copies.hold_given(sequence);
            }
        };
        let (ids, peers) = (self.shards.iter().map(|shard| shard.id), &self.nats.peers);
        let floor_of = |shard, directory: &str| peers.floor_of(shard, directory);
        let out = self.given.update(ids, |copy| self.snapshots.holds(copy), floor_of, hold);
        metrics::gauge!(names::COPIES_UNDER_WAY, "direction" => "given").set(figure(count(out)));
    }
}

/// Waits until the others can read the floor that is held. The one that was stored before may be below
/// what this node has purged since, and then it does not count.
fn wait_for_floor(shard: &NatsShard, stream: &str) -> Result<(), String> {
    let (copies, since) = (&shard.stream.copies, Instant::now());
    let stored = copies.stored();
    let is_stored = || {
        let given = copies.given();
        stored.borrow().as_ref().is_some_and(|(of, floor)| of == stream && Some(*floor) == given)
    };
    while !is_stored() {
        if since.elapsed() >= FLOOR_TIMEOUT {
            return Err("this node could not store what it needs of the stream; ask later".to_owned());
        }
        std::thread::sleep(FLOOR_LOOK_INTERVAL);
    }
    Ok(())
}

/// Replicas that differ are no source of copies: one of them is wrong. The writer halts a moment after the
/// difference was found, and after a start only once it runs.
fn check_not_diverged(shard: &NatsShard) -> Result<(), String> {
    match shard.health.divergence() {
        None => Ok(()),
        Some(diverged) => Err(format!(
            "the shard is halted here, because the node {} has another hash of the same messages, so that either may be wrong",
            diverged.found.node
        )),
    }
}

/// What another node asks for.
struct Asked {
    node: String,
    directory: String,
    shards: u16,
    stream: String,
    first: u64,
    storage: u32,
}

fn refused(why: impl Into<String>) -> Bytes {
    protocol::encode(&Answer::Refused { why: why.into() })
}
