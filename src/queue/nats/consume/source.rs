//! The writer's end of a stream. Fetch and decode run ahead of the writer, on a thread of the shard's own, so
//! that the batch after next is decoded while one commits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use crate::queue::nats::consume::blocking::wait_until;
use crate::queue::nats::consume::fetcher::run::{BATCH_LIMITS, Chunk, Fetcher};
use crate::queue::nats::consume::shard_stream::ShardStream;
use crate::state::Applied;
use crate::writer::{BatchLimits, CopyToInstall, Fetched, JobSource, Message, OriginChanged, ShardState};

/// Chunks decoded ahead of the writer.
const CHUNKS_AHEAD: usize = 4;

/// The reading end of a shard's stream, for its writer.
pub struct StreamSource {
    shared: Arc<ShardStream>,
    /// The fetch thread's.
    runtime: tokio::runtime::Handle,
    /// Ends the fetch thread when it is dropped.
    _stop: oneshot::Sender<()>,
    fetcher: Option<AbortHandle>,
    chunks: mpsc::Receiver<Chunk>,
    ready: VecDeque<Message>,
    /// Comes after the ready messages.
    origin_changed: Option<OriginChanged>,
    /// Where the last message that was handed on came from.
    stream: String,
    closing: watch::Receiver<bool>,
}

impl StreamSource {
    /// Starts the fetch thread.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(shared: Arc<ShardStream>, closing: watch::Receiver<bool>) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name(format!("fetch-{}", shared.shard));
        thread.spawn(move || {
            // The source drops the sender when it goes away, which ends this wait.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_timeout(Duration::from_millis(100));
        })?;
        // The fetcher begins once `resume` says where.
        let (_, chunks) = mpsc::channel(1);
        Ok(Self {
            shared,
            runtime: handle,
            _stop: stop,
            fetcher: None,
            chunks,
            ready: VecDeque::new(),
            origin_changed: None,
            stream: String::new(),
            closing,
        })
    }

    /// Waits for the next chunk. `false`: none came in time.
    fn wait_for_chunk(&mut self, wait: Duration) -> bool {
        let mut end = self.closing.clone();
        let (chunks, closing) = (&mut self.chunks, &mut self.closing);
        let next = wait_until(Instant::now() + wait, async {
            tokio::select! {
                chunk = chunks.recv() => {
                    if chunk.is_none() {
                        // The fetcher has halted: only the end of the service is left to wait for.
                        let _ = end.wait_for(|closing| *closing).await;
                    }
                    chunk
                }
                _ = closing.wait_for(|closing| *closing) => None,
            }
        });
        let Some(chunk) = next.flatten() else { return false };
        self.accept(chunk);
        true
    }
}

impl StreamSource {
    fn accept(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Messages(messages) if self.ready.is_empty() => self.ready = messages.into(),
            Chunk::Messages(messages) => self.ready.extend(messages),
            Chunk::OriginChanged(changed) => self.origin_changed = Some(changed),
        }
    }
}

impl JobSource for StreamSource {
    fn resume(&mut self, applied: Applied, stream: &str) -> Result<(), String> {
        if let Some(fetcher) = self.fetcher.take() {
            fetcher.abort();
        }
        // The fetcher that was aborted may still be in the middle of a message. What it confirms counts no
        // more.
        self.shared.sessions.end();
        self.shared.accept_gap.resume(applied.sequence);
        // The next fetcher finds out anew.
        self.shared.copies.clear_need();
        self.ready.clear();
        self.origin_changed = None;
        stream.clone_into(&mut self.stream);
        let (sender, chunks) = mpsc::channel(CHUNKS_AHEAD);
        self.chunks = chunks;
        let fetcher = Fetcher::new(Arc::clone(&self.shared), applied, stream, sender);
        // It takes what is here in one go: a chunk is then as large as a batch may be, and costs the writer
        // one wake-up. The connection on the same thread has its turn whenever nothing more is here.
        let fetching = tokio::task::unconstrained(fetcher.run());
        self.fetcher = Some(self.runtime.spawn(fetching).abort_handle());
        Ok(())
    }

    fn fetch(&mut self, limits: BatchLimits, wait: Duration) -> Fetched {
        if *self.closing.borrow() {
            return Fetched::Ended;
        }
        if self.ready.is_empty() && self.origin_changed.is_none() && !self.wait_for_chunk(wait) {
            return if *self.closing.borrow() { Fetched::Ended } else { Fetched::Nothing };
        }
        if self.ready.is_empty()
            && let Some(changed) = self.origin_changed.take()
        {
            self.stream.clone_from(&changed.stream);
            return Fetched::OriginChanged(changed);
        }
        let (mut jobs, mut bytes) = cost(&self.ready);
        if !self.ready.is_empty() && jobs <= limits.jobs && bytes <= limits.bytes {
            // While the shard catches up, a chunk is a batch, and none of its messages is moved.
            let mut batch: Vec<Message> = std::mem::take(&mut self.ready).into();
            while jobs < limits.jobs
                && bytes < limits.bytes
                && self.origin_changed.is_none()
                && let Ok(chunk) = self.chunks.try_recv()
            {
                self.accept(chunk);
                let (more_jobs, more_bytes) = cost(&self.ready);
                (jobs, bytes) = (jobs + more_jobs, bytes + more_bytes);
                if jobs > limits.jobs || bytes > limits.bytes {
                    break;
                }
                batch.extend(self.ready.drain(..));
            }
            return Fetched::Batch(batch);
        }
        let mut batch = Vec::new();
        (jobs, bytes) = (0, 0);
        loop {
            let Some(message) = self.ready.front() else {
                if self.origin_changed.is_some() {
                    break;
                }
                match self.chunks.try_recv() {
                    Ok(chunk) => self.accept(chunk),
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
        self.shared.state()
    }

    fn copy_to_install(&mut self) -> Option<CopyToInstall> {
        self.shared.copies.take_to_install()
    }

    fn stream(&self) -> String {
        self.stream.clone()
    }

    fn limits(&self) -> BatchLimits {
        BATCH_LIMITS
    }

    /// The stream holds a copy: batches that a power failure takes back are applied again.
    fn needs_sync(&self) -> bool {
        false
    }
}

/// What messages count towards the limits of a batch.
fn cost(messages: &VecDeque<Message>) -> (usize, usize) {
    messages
        .iter()
        .fold((0, 0), |(jobs, bytes), message| (jobs + message.payload.cost(), bytes + message.bytes))
}
