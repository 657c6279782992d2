//! Gets one copy of a shard from another owner: asks for it, holds its own floor, fetches the files in chunks
//! and has them checked.
//!
//! Knows: the order of these steps, on which it rests that no purge takes what comes after the copy: the
//! giver's floor holds the stream from before it copies until it lets go, and every chunk that comes shows
//! that it has not let go yet. So a chunk that is asked for after this node's own floor was stored shows that
//! there was no moment without a floor. Must not know: which owner is best, or what follows a failure.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use async_nats::Request;
use async_nats::client::RequestErrorKind;
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::sync::oneshot;

use crate::cluster::copies::pieces::{Piece, pieces};
use crate::cluster::copies::protocol::{self, Answer, ChunkError, OfferedCopy, Question};
use crate::cluster::copies::receive::{Files, fault_of};
use crate::metrics as names;
use crate::queue::nats::{Connection, JetStream, NatsShard, NeededCopy};
use crate::snapshot::{ExpectedCopy, StagedCopies};
use crate::storage::codec::FORMAT_VERSION;
use crate::types::{NodeName, count};
use crate::writer::CopyProgress;

/// The size of a chunk, unless the server takes only smaller messages.
const CHUNK_BYTES: usize = 512 << 10;
/// Chunks that are asked for ahead.
const IN_FLIGHT: usize = 4;
/// The giver has RocksDB write its memtables to files before it answers.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(60);
const CHUNK_TIMEOUT: Duration = Duration::from_secs(20);
/// A chunk that was not answered for so long is given up, and the copy with it. A connection that was lost is
/// back by then, and the giver holds a copy for longer.
const CHUNK_RETRIED_FOR: Duration = Duration::from_secs(45);
const CHUNK_RETRY_PAUSE: Duration = Duration::from_millis(500);
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);
/// This node stores its floors every two seconds.
const FLOOR_TIMEOUT: Duration = Duration::from_secs(30);
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// A copy that is staged and was found to be whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StagedCopy {
    /// The applied sequence that it holds.
    pub applied: u64,
    pub bytes: u64,
}

/// Why there is no copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotFetched {
    /// The other node did not answer, or cannot give one. Another one may.
    Failed(String),
    /// What came is damaged.
    Damaged(String),
    /// This node could not take it, from whomever it comes.
    NotHere(String),
}

/// What a copy is fetched with.
pub struct Fetch<'a> {
    pub nats: &'a JetStream,
    pub connection: &'a Connection,
    pub staged: &'a Arc<StagedCopies>,
    pub shard: &'a NatsShard,
    pub giver: &'a NodeName,
}

impl Fetch<'_> {
    /// Fetches and checks a copy, and leaves it staged.
    pub async fn run(&self, needed: &NeededCopy) -> Result<StagedCopy, NotFetched> {
        let offered = self.begin(needed).await?;
        let fetched = self.fetch_files(&offered).await;
        // The giver lets go after a while by itself.
        let released = Question::Release { copy: offered.copy.clone() };
        let _ = self.ask(&released, RELEASE_TIMEOUT).await;
        let bytes = fetched?;
        self.check(&offered).await?;
        if self.is_halted_at_giver() {
            let why = "the shard was halted there meanwhile, so what it gave may be wrong";
            return Err(NotFetched::Failed(why.to_owned()));
        }
        Ok(StagedCopy { applied: offered.sequence, bytes })
    }

    async fn begin(&self, needed: &NeededCopy) -> Result<OfferedCopy, NotFetched> {
        let this = &self.nats.peers.this;
        let question = Question::Begin {
            node: this.name.to_string(),
            directory: this.directory.clone(),
            shards: self.nats.shards(),
            stream: needed.stream.clone(),
            first: needed.first,
            storage: FORMAT_VERSION,
        };
        let offered = match self.ask(&question, BEGIN_TIMEOUT).await {
            Ok(Answer::Copy(offered)) => offered,
            Ok(Answer::Refused { why }) => return Err(NotFetched::Failed(format!("it refuses: {why}"))),
            Ok(Answer::Released) => {
                return Err(NotFetched::Failed("it answers what was not asked".to_owned()));
            }
            Err(error) => return Err(NotFetched::Failed(error)),
        };
        let applied = self.shard.applied.get().0;
        match fault_of_offer(&offered, needed, self.nats.shards(), applied) {
            Some(fault) => Err(NotFetched::Failed(fault)),
            None => Ok(offered),
        }
    }

    /// Stores this node's floor, and fetches all files. Returns how many bytes there are.
    async fn fetch_files(&self, offered: &OfferedCopy) -> Result<u64, NotFetched> {
        let total = offered.files.iter().map(|(_, bytes)| bytes).sum();
        tracing::info!(
            shard = %self.shard.id, node = %self.giver, sequence = offered.sequence, bytes = total,
            files = offered.files.len(),
            "fetching a copy of the shard from another node"
        );
        self.store_floor(offered).await?;
        let progress =
            Arc::new(CopyProgress { from: self.giver.to_string(), bytes: 0.into(), bytes_total: total });
        self.shard.health.set(|health| health.copying = Some(Arc::clone(&progress)));
        let directory =
            self.staged.begin(self.shard.id).map_err(|error| NotFetched::NotHere(error.to_string()))?;
        let file_names = offered.files.iter().map(|(name, _)| name.clone()).collect();
        let mut files = Files::create(directory, file_names);
        let received = metrics::counter!(names::COPY_BYTES_TOTAL, "direction" => "fetched");
        let chunk_bytes = count(CHUNK_BYTES.min(self.connection.client.max_payload() / 2));
        let mut chunks = futures_util::stream::iter(pieces(&offered.files, chunk_bytes))
            .map(|piece| async move { (piece.file, self.chunk(&offered.copy, piece).await) })
            .buffered(IN_FLIGHT);
        let mut logged = Instant::now();
        while let Some((file, chunk)) = chunks.next().await {
            let chunk = chunk?;
            let (bytes, file) = (count(chunk.len()), usize::try_from(file).unwrap_or(usize::MAX));
            files.write(file, chunk).await.map_err(NotFetched::NotHere)?;
            received.increment(bytes);
            let done = progress.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
            if logged.elapsed() >= LOG_INTERVAL {
                tracing::info!(shard = %self.shard.id, node = %self.giver, bytes = done, total, "still fetching a copy of the shard");
                logged = Instant::now();
            }
        }
        files.finish().await.map_err(NotFetched::NotHere)?;
        Ok(total)
    }

    /// Waits until the others can read that this node needs what comes after the copy.
    async fn store_floor(&self, offered: &OfferedCopy) -> Result<(), NotFetched> {
        let copies = &self.shard.stream.copies;
        let floor = (offered.stream.clone(), offered.sequence);
        let mut stored = copies.stored();
        copies.hold_fetched(Some(floor.clone()));
        let is_stored = stored.wait_for(|stored| stored.as_ref() == Some(&floor));
        match tokio::time::timeout(FLOOR_TIMEOUT, is_stored).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(NotFetched::NotHere(format!(
                "this node could not store what it needs of the stream within {} s, so the others might purge it; the log says why",
                FLOOR_TIMEOUT.as_secs()
            ))),
        }
    }

    async fn chunk(&self, copy: &str, piece: Piece) -> Result<Bytes, NotFetched> {
        let Piece { file, offset, length } = piece;
        let question = Question::Read { copy: copy.to_owned(), file, offset, length };
        let since = Instant::now();
        loop {
            let error = match self.request(&question, CHUNK_TIMEOUT).await {
                Ok(bytes) => match protocol::read_chunk(&bytes, file, offset, length) {
                    Ok(bytes) => return Ok(bytes),
                    Err(ChunkError::Refused(why)) => return Err(NotFetched::Failed(why)),
                    Err(ChunkError::Damaged(what)) => what,
                },
                Err(error) => error,
            };
            if since.elapsed() >= CHUNK_RETRIED_FOR || !self.is_giver_alive() {
                return Err(NotFetched::Failed(error));
            }
            tokio::time::sleep(CHUNK_RETRY_PAUSE).await;
        }
    }

    /// Whether the giver was heard of lately, or that cannot be told: this node may be cut off itself.
    fn is_giver_alive(&self) -> bool {
        let nodes = self.nats.peers.all();
        !self.connection.is_up() || nodes.iter().any(|node| node.name == *self.giver && node.is_alive)
    }

    /// Whether the giver says that the shard is halted: as one of replicas that differ, for example.
    fn is_halted_at_giver(&self) -> bool {
        let nodes = self.nats.peers.all();
        let shards = nodes.iter().filter(|node| node.name == *self.giver).flat_map(|node| &node.shards);
        let is_halted = |state: &String| state.as_str() == "halted";
        shards
            .filter(|owned| owned.shard == self.shard.id)
            .any(|owned| owned.state.as_ref().is_some_and(is_halted))
    }

    async fn ask(&self, question: &Question, within: Duration) -> Result<Answer, String> {
        protocol::read(&self.request(question, within).await?)
    }

    async fn request(&self, question: &Question, within: Duration) -> Result<Bytes, String> {
        let subject = self.nats.copy_subject(self.giver, self.shard.id);
        let request = Request::new().payload(protocol::encode(question)).timeout(Some(within));
        match self.connection.client.send_request(subject, request).await {
            Ok(message) => Ok(message.payload),
            Err(error) if error.kind() == RequestErrorKind::NoResponders => Err(
                "it does not answer: it has ended, is of a version that gives no copies, or lacks the permission to subscribe to them".to_owned(),
            ),
            Err(error) => Err(self.connection.explain(&format!("it does not answer: {error}"))),
        }
    }

    /// Checks everything in the staged copy, on a thread of its own: a shutdown does not wait for it.
    async fn check(&self, offered: &OfferedCopy) -> Result<(), NotFetched> {
        tracing::info!(shard = %self.shard.id, node = %self.giver, "checking the copy that was fetched");
        let expected = ExpectedCopy {
            shards: offered.shards,
            applied: offered.sequence,
            stream: offered.stream.clone(),
        };
        let (staged, shard, began) = (Arc::clone(self.staged), self.shard.id, Instant::now());
        let (done, checked) = oneshot::channel();
        let check = move || {
            // The service may have ended.
            let _ = done.send(staged.check(shard, &expected, &|_, _, _| {}));
        };
        let thread = std::thread::Builder::new().name(format!("check-{shard}")).spawn(check);
        thread.map_err(|error| NotFetched::NotHere(error.to_string()))?;
        let mut checked = std::pin::pin!(checked);
        let findings = loop {
            match tokio::time::timeout(LOG_INTERVAL, &mut checked).await {
                Ok(Ok(findings)) => break findings,
                Ok(Err(_)) => return Err(NotFetched::Damaged("checking it panicked".to_owned())),
                Err(_) => {
                    tracing::info!(%shard, seconds = began.elapsed().as_secs(), "still checking the copy that was fetched");
                }
            }
        };
        match findings {
            Ok(findings) if findings.is_empty() => Ok(()),
            Ok(findings) => Err(NotFetched::Damaged(findings.join("; "))),
            Err(error) => Err(NotFetched::Damaged(error.to_string())),
        }
    }
}

/// Why what another node offers does not do.
fn fault_of_offer(offered: &OfferedCopy, needed: &NeededCopy, shards: u16, applied: u64) -> Option<String> {
    if offered.shards != shards {
        return Some(format!("it has {} shards, and this node {shards}", offered.shards));
    }
    if offered.stream != needed.stream {
        return Some(format!(
            "its copy is of the stream {}, and this node follows {}",
            offered.stream, needed.stream
        ));
    }
    if offered.sequence.saturating_add(1) < needed.first {
        return Some(format!(
            "its copy holds messages up to {}, and the stream begins at {}",
            offered.sequence, needed.first
        ));
    }
    if offered.sequence < applied {
        return Some(format!(
            "its copy holds messages up to {}, and this node has applied {applied}",
            offered.sequence
        ));
    }
    fault_of(&offered.files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_that_does_not_continue_with_the_stream_or_is_unreadable_is_refused_in_words() {
        let needed = NeededCopy { stream: "S@1".to_owned(), first: 51, reason: String::new() };
        let files = ["CURRENT", "RANKTREE"].map(|name| (name.to_owned(), 1)).to_vec();
        let good =
            OfferedCopy { copy: "c".to_owned(), shards: 3, stream: "S@1".to_owned(), sequence: 50, files };
        let fault = |offered: OfferedCopy| fault_of_offer(&offered, &needed, 3, 40);
        assert_eq!(fault(good.clone()), None);
        for (offered, expect) in [
            (OfferedCopy { shards: 2, ..good.clone() }, "it has 2 shards"),
            (OfferedCopy { stream: "S@2".to_owned(), ..good.clone() }, "of the stream S@2"),
            (OfferedCopy { sequence: 49, ..good.clone() }, "the stream begins at 51"),
            (OfferedCopy { files: Vec::new(), ..good.clone() }, "not those of a shard"),
        ] {
            let said = fault(offered).expect(expect);
            assert!(said.contains(expect), "{said}");
        }
        assert!(fault_of_offer(&good, &needed, 3, 51).expect("it is older").contains("has applied 51"));
    }
}
