//! Requests on their way from the client, and the memory of those that have come in part or wait, as all
//! requests share it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::ReadBuf;

use crate::operations::{Admission, BodyBytes};
use crate::redis::frames::RequestReader;
use crate::redis::server::client_stream::ClientStream;

/// The most bytes of requests that are read while the client does not read its replies: client libraries send
/// all of a pipeline before they read.
const AHEAD_BYTES_MAX: usize = 8 << 20;
/// What is read ahead at once.
const PIECE_BYTES: usize = 4 << 10;

/// Requests that are not answered yet.
pub struct Incoming {
    pub reader: RequestReader,
    held: Held,
    /// The client sends no more.
    has_ended: bool,
}

impl Incoming {
    pub fn new(admission: &Arc<Admission>) -> Self {
        Self { reader: RequestReader::default(), held: Held::new(admission), has_ended: false }
    }

    /// Whether there is room for what has come.
    pub fn hold(&mut self) -> bool {
        self.held.hold(self.reader.memory())
    }

    /// Reads what has come, as long as there is room for it. The task is woken when there is more.
    pub fn poll_ahead(&mut self, stream: &mut dyn ClientStream, context: &mut Context<'_>) {
        let mut piece = [0; PIECE_BYTES];
        while !self.has_ended && self.reader.pending() < AHEAD_BYTES_MAX && self.hold() {
            let mut piece = ReadBuf::new(&mut piece);
            match Pin::new(&mut *stream).poll_read(context, &mut piece) {
                Poll::Ready(Ok(())) if !piece.filled().is_empty() => {
                    self.reader.room().extend_from_slice(piece.filled());
                }
                Poll::Ready(_) => self.has_ended = true,
                Poll::Pending => return,
            }
        }
    }
}

/// The memory of requests, as all requests share it.
struct Held {
    admission: Arc<Admission>,
    taken: BodyBytes,
    bytes: usize,
}

impl Held {
    fn new(admission: &Arc<Admission>) -> Self {
        Self { admission: Arc::clone(admission), taken: BodyBytes::none(admission), bytes: 0 }
    }

    /// Whether there is room for so many bytes in place of those before.
    fn hold(&mut self, bytes: usize) -> bool {
        if bytes < self.bytes {
            (self.taken, self.bytes) = (BodyBytes::none(&self.admission), 0);
        }
        let more = bytes - self.bytes;
        self.bytes = bytes;
        more == 0 || self.taken.take(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::RequestLimits;

    #[test]
    fn a_long_request_that_is_done_leaves_its_memory_to_others() {
        let limits = RequestLimits { body_bytes_in_flight: 1 << 20, ..RequestLimits::default() };
        let admission = Admission::new(limits);
        let [mut one, mut other] = [(); 2].map(|()| Held::new(&admission));
        assert!(one.hold(500_000) && one.hold(800_000));
        assert!(!other.hold(400_000));
        assert!(one.hold(10) && other.hold(800_000), "one has the begin of its next request");
        assert!(other.hold(0) && one.hold(900_000));
    }
}
