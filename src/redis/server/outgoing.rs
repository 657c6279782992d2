//! Replies on their way to the client. What they take in memory is counted until they are sent: clients that
//! do not read theirs cannot have more and more of them made.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;

use crate::operations::{InProgress, Operations};
use crate::redis::boards::count_unsent;
use crate::redis::frames::Replies;
use crate::redis::server::client_stream::ClientStream;
use crate::redis::server::figures::Figures;
use crate::redis::server::incoming::Incoming;

/// Replies are sent when they come to so many bytes, though more requests have come.
const LONG_BYTES: usize = 64 << 10;
/// A long reply gets a second more for each of these.
const BYTES_PER_SECOND: usize = 16 << 10;

/// Replies, and where they go.
pub struct Outgoing<'c> {
    pub stream: &'c mut dyn ClientStream,
    pub replies: Replies,
    /// What they take until they are sent.
    pub unsent: InProgress,
    /// How long the client may take to read them.
    within: Duration,
    /// The client takes no more.
    has_ended: bool,
}

impl<'c> Outgoing<'c> {
    pub fn new(stream: &'c mut dyn ClientStream, operations: &Operations, within: Duration) -> Self {
        let unsent = InProgress::new(&operations.admission);
        Self { stream, replies: Replies::default(), unsent, within, has_ended: false }
    }

    /// Whether they should be sent before more are made.
    pub fn is_long(&self) -> bool {
        self.replies.len() > LONG_BYTES
    }

    /// Sends what is to be sent.
    ///
    /// # Arguments
    /// `ahead`: takes requests that come meanwhile. A client that reads nothing before it has sent all would
    /// wait for ever otherwise.
    ///
    /// # Errors
    /// When the client does not take it.
    pub async fn send(&mut self, mut ahead: Option<&mut Incoming>) -> Result<(), ()> {
        let bytes = self.replies.len();
        if self.has_ended {
            self.replies.clear();
            return Err(());
        }
        if bytes == 0 {
            return Ok(());
        }
        let longer = u64::try_from(bytes / BYTES_PER_SECOND).unwrap_or(u64::MAX);
        let within = self.within.saturating_add(Duration::from_secs(longer));
        let Self { stream, replies, unsent, .. } = self;
        let sent = tokio::time::timeout(within, async {
            while !replies.first().is_empty() {
                write_all(&mut **stream, replies.first(), ahead.as_deref_mut()).await?;
                replies.forget_first();
                // Fewer bytes are never too many.
                let _ = count_unsent(unsent, replies);
            }
            stream.flush().await
        });
        let sent = sent.await;
        if sent.is_err() {
            Figures::note_end("slow_reader");
        }
        if let Ok(Ok(())) = sent {
            return Ok(());
        }
        self.has_ended = true;
        self.replies.clear();
        let _ = count_unsent(&self.unsent, &self.replies);
        Err(())
    }
}

/// Writes bytes, and reads requests that come meanwhile.
async fn write_all(
    stream: &mut dyn ClientStream,
    mut bytes: &[u8],
    mut ahead: Option<&mut Incoming>,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::future::poll_fn(|context| {
            let written = Pin::new(&mut *stream).poll_write(context, bytes);
            if written.is_pending()
                && let Some(ahead) = &mut ahead
            {
                ahead.poll_ahead(stream, context);
            }
            written
        });
        match written.await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => bytes = bytes.get(written..).unwrap_or_default(),
        }
    }
    Ok(())
}
