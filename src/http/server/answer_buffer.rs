//! An answer as it is sent, in memory that a thread uses for one answer after the other.
//!
//! A head says how long its body is. So the body is written first, behind room for the head, and the head is
//! put right before it: both go to the socket in one piece, and nothing is copied but the head.

use std::cell::RefCell;

use crate::http::server::answer_head;

/// As many bytes as a request of the plain form may have.
pub const READ_BYTES: usize = 8 << 10;
/// More bytes than the heads have that are written here.
const HEAD_ROOM: usize = 512;
/// What is kept for the next answer.
const KEPT_BYTES_MAX: usize = 64 << 10;

thread_local! {
    static OF_THREAD: RefCell<Buffers> = RefCell::new(Buffers::new());
}

/// What a thread reads a request into, and writes its answer into. A request is answered before the next one
/// is read, or copied.
pub struct Buffers {
    pub read: Box<[u8]>,
    pub answer: AnswerBuffer,
}

/// An answer that is being written.
pub struct AnswerBuffer {
    /// Room for the head, and the body.
    bytes: Vec<u8>,
    /// Where the head begins.
    begin: usize,
}

impl Buffers {
    fn new() -> Self {
        Self { read: vec![0; READ_BYTES].into(), answer: AnswerBuffer { bytes: Vec::new(), begin: 0 } }
    }

    /// Works with the buffers of this thread.
    pub fn of_thread<T>(work: impl FnOnce(&mut Self) -> T) -> T {
        OF_THREAD.with_borrow_mut(work)
    }
}

impl AnswerBuffer {
    /// Begins an answer: where its body is appended to.
    pub fn body(&mut self) -> &mut Vec<u8> {
        if self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes = Vec::new();
        }
        self.bytes.resize(HEAD_ROOM, 0);
        &mut self.bytes
    }

    /// Puts the head of a JSON object before the body: 200, and no headers of its own.
    pub fn put_head_of_json(&mut self, closes: bool) {
        let body_bytes = self.bytes.len() - HEAD_ROOM;
        self.begin = answer_head::with_head_of_json(body_bytes, closes, |head| {
            let begin = HEAD_ROOM.saturating_sub(head.len());
            if let Some(room) = self.bytes.get_mut(begin..HEAD_ROOM) {
                room.copy_from_slice(head);
            }
            begin
        });
    }

    /// The whole answer.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(self.begin..).unwrap_or_default()
    }
}
