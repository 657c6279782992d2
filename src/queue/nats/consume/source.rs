//! The writer's end of a stream. Fetch and decode run ahead of it, on a thread of the shard's own, so that the batch
//! after next is decoded while one commits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OnceCell, mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::queue::nats::connect::access::Access;
use crate::queue::nats::connect::connection::Connection;
use crate::queue::nats::consume::fetcher::Fetcher;
use crate::queue::nats::consume::sessions::Sessions;
use crate::queue::nats::names::Names;
use crate::queue::nats::publish::pending_replies::Waiters;
use crate::queue::nats::retention::task::Growth;
use crate::queue::nats::streams::set_up::Prepared;
use crate::state::Applied;
use crate::types::ShardId;
use crate::writer::{BatchLimits, Fetched, Health, JobSource, Message, Renamed, ShardState};

/// A batch: enough to share what a commit costs, few enough that nobody waits long for its end.
pub const LIMITS: BatchLimits = BatchLimits { jobs: 1_000, bytes: 4 << 20 };
/// Chunks decoded ahead of the writer.
const CHUNKS_AHEAD: usize = 4;

/// What the fetcher hands on, in order.
pub enum Chunk {
    Messages(Vec<Message>),
    /// What comes after is from elsewhere.
    Renamed(Renamed),
}

/// What a shard does when its stream does not continue what was applied.
#[derive(Debug, Clone, Copy)]
pub struct OnGap {
    /// How long the stream's leader must have said so before the shard halts.
    pub halt_after: Duration,
    /// The operator accepts it, once.
    pub accept: bool,
}

/// What a shard's source, fetcher and publisher share.
pub struct Shared {
    pub shard: ShardId,
    pub names: Names,
    pub access: Access,
    pub health: Arc<Health>,
    pub waiters: Arc<Waiters>,
    pub prepared: watch::Receiver<Prepared>,
    pub on_gap: OnGap,
    /// The operator accepts, once, that the stream does not continue what was applied.
    pub accept_gap: AtomicBool,
    state: Mutex<ShardState>,
    stream: Mutex<String>,
    connection: OnceCell<Connection>,
    /// Tells the keeper how much came.
    pub growth: Growth,
    /// Tells the keeper whether the stream continues what was applied.
    pub sessions: Sessions,
    /// How much greater a message's sequence is here than in the stream, once the stream was met: see `Origin`.
    shift: Mutex<Option<u64>>,
}

impl Shared {
    pub fn new(
        shard: ShardId,
        names: Names,
        access: Access,
        health: Arc<Health>,
        waiters: Arc<Waiters>,
        prepared: watch::Receiver<Prepared>,
        on_gap: OnGap,
    ) -> Self {
        let state = Mutex::new(ShardState::CatchingUp("connecting to NATS".to_owned()));
        let (stream, connection) = (Mutex::default(), OnceCell::new());
        let accept_gap = AtomicBool::new(on_gap.accept);
        Self {
            shard,
            names,
            access,
            health,
            waiters,
            prepared,
            on_gap,
            accept_gap,
            state,
            stream,
            connection,
            growth: Growth::default(),
            sessions: Sessions::default(),
            shift: Mutex::default(),
        }
    }

    /// The shard has met its stream, and goes on with it by this numbering.
    pub fn set_shift(&self, shift: u64) {
        *self.shift.lock() = Some(shift);
    }

    pub fn shift(&self) -> Option<u64> {
        *self.shift.lock()
    }

    pub fn set_state(&self, state: ShardState) {
        *self.state.lock() = state;
    }

    pub fn set_stream(&self, identity: &str) {
        identity.clone_into(&mut self.stream.lock());
    }

    pub fn stream(&self) -> String {
        self.stream.lock().clone()
    }

    /// The connection that messages come by, opened on the runtime that asks first: the fetch thread's.
    ///
    /// # Errors
    /// When there is none to be had at all.
    pub async fn connection(&self) -> Result<&Connection, String> {
        let inbox = self.names.inbox();
        self.connection.get_or_try_init(|| Connection::open(&self.access, &inbox, "consume")).await
    }
}

/// A stream, read by its shard's writer.
pub struct StreamSource {
    shared: Arc<Shared>,
    /// Of the fetch thread.
    runtime: tokio::runtime::Handle,
    /// Ends the fetch thread when it goes away.
    _stop: oneshot::Sender<()>,
    fetcher: Option<AbortHandle>,
    chunks: mpsc::Receiver<Chunk>,
    ready: VecDeque<Message>,
    /// Comes after what is ready.
    renamed: Option<Renamed>,
    /// Where messages come from, as of the last one handed on.
    stream: String,
    closing: watch::Receiver<bool>,
}

impl StreamSource {
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(shared: Arc<Shared>, closing: watch::Receiver<bool>) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name(format!("fetch-{}", shared.shard));
        thread.spawn(move || {
            // Ends with an error when the other end goes away, which is the sign.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_timeout(Duration::from_millis(100));
        })?;
        // Nothing comes before the source is told where to begin.
        let (_, chunks) = mpsc::channel(1);
        Ok(Self {
            shared,
            runtime: handle,
            _stop: stop,
            fetcher: None,
            chunks,
            ready: VecDeque::new(),
            renamed: None,
            stream: String::new(),
            closing,
        })
    }

    /// Waits for the next chunk; `false` if none came in time.
    fn wait_for_chunk(&mut self, wait: Duration) -> bool {
        let mut end = self.closing.clone();
        let (chunks, closing) = (&mut self.chunks, &mut self.closing);
        // Inside the block: a timer wants the runtime that it is made on.
        let next = self.runtime.block_on(async {
            let next = async {
                tokio::select! {
                    chunk = chunks.recv() => {
                        if chunk.is_none() {
                            // Halted: there is nothing to wait for but the end.
                            let _ = end.wait_for(|closing| *closing).await;
                        }
                        chunk
                    }
                    _ = closing.wait_for(|closing| *closing) => None,
                }
            };
            timeout(wait, next).await
        });
        match next {
            Ok(Some(chunk)) => {
                self.take(chunk);
                true
            }
            Ok(None) | Err(_) => false,
        }
    }
}

impl StreamSource {
    fn take(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Messages(messages) => self.ready.extend(messages),
            Chunk::Renamed(renamed) => self.renamed = Some(renamed),
        }
    }
}

impl JobSource for StreamSource {
    fn resume(&mut self, applied: Applied, stream: &str) -> Result<(), String> {
        if let Some(fetcher) = self.fetcher.take() {
            fetcher.abort();
        }
        // The one that was aborted may still be in the middle of a message, and has nothing to say any more.
        self.shared.sessions.end();
        self.ready.clear();
        self.renamed = None;
        stream.clone_into(&mut self.stream);
        let (sender, chunks) = mpsc::channel(CHUNKS_AHEAD);
        self.chunks = chunks;
        let fetcher = Fetcher::new(Arc::clone(&self.shared), applied, stream, sender);
        self.fetcher = Some(self.runtime.spawn(fetcher.run()).abort_handle());
        Ok(())
    }

    fn fetch(&mut self, limits: BatchLimits, wait: Duration) -> Fetched {
        if *self.closing.borrow() {
            return Fetched::Ended;
        }
        if self.ready.is_empty() && self.renamed.is_none() && !self.wait_for_chunk(wait) {
            return if *self.closing.borrow() { Fetched::Ended } else { Fetched::Nothing };
        }
        if self.ready.is_empty()
            && let Some(renamed) = self.renamed.take()
        {
            self.stream.clone_from(&renamed.stream);
            return Fetched::Renamed(renamed);
        }
        let (mut jobs, mut bytes) = (0, 0);
        let mut batch = Vec::new();
        loop {
            let Some(message) = self.ready.front() else {
                if self.renamed.is_some() {
                    break;
                }
                match self.chunks.try_recv() {
                    Ok(chunk) => self.take(chunk),
                    Err(_) => break,
                }
                continue;
            };
            jobs += message.payload.cost();
            bytes += message.bytes;
            if !batch.is_empty() && (jobs > limits.jobs || bytes > limits.bytes) {
                break;
            }
            batch.extend(self.ready.pop_front());
        }
        if batch.is_empty() { Fetched::Nothing } else { Fetched::Batch(batch) }
    }

    fn has_ended(&self) -> bool {
        *self.closing.borrow()
    }

    fn state(&self) -> ShardState {
        self.shared.state.lock().clone()
    }

    fn stream(&self) -> String {
        self.stream.clone()
    }

    fn limits(&self) -> BatchLimits {
        LIMITS
    }

    /// The stream holds a copy: what a power failure takes back is applied again.
    fn needs_sync(&self) -> bool {
        false
    }
}
