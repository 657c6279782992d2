//! A read that sees what its connection has written before, and what its reply takes.

use std::time::{Duration, Instant};

use crate::access::Grant;
use crate::operations::{Failure, InProgress, Operations, Reading};
use crate::query::{Answer, BoardRead, NoBoard, OfBoard, ReadOptions, ShardsRead, TotalOnly};
use crate::redis::boards::key::BoardKey;
use crate::redis::frames::Replies;
use crate::redis::refused::Refused;
use crate::types::{AsOf, BoardName};

/// How long a read waits for writes of its connection that are stored and not applied yet.
const APPLIED_WITHIN: Duration = Duration::from_secs(5);

/// How long a node waits until it hears of a board that a connection has made.
const BOARD_HEARD_OF: Duration = Duration::from_millis(250);

/// Replies that take less are not counted: every connection may have so many, in bytes.
const REPLIES_UNCOUNTED: usize = 16 << 10;

/// Whom something is done for.
pub trait Peer: Sync {
    /// Whether it has closed its end of the connection.
    fn is_gone(&self) -> bool;
}

/// Who asks.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    pub operations: &'a Operations,
    /// What the token allows; `None` where no tokens are needed.
    pub grant: Option<&'a Grant>,
    /// What the connection has written.
    pub written: &'a AsOf,
    /// Boards that it has made and that this node has not heard of yet.
    pub unheard: &'a [BoardName],
    pub peer: &'a dyn Peer,
    /// What its replies take until they are sent.
    pub unsent: &'a InProgress,
}

impl Asking<'_> {
    /// Counts what the connection's replies take.
    ///
    /// # Errors
    /// When the replies of all requests take too much memory together.
    pub fn count(&self, replies: &Replies) -> Result<(), Refused> {
        count_unsent(self.unsent, replies).map_err(|why| self.too_long(replies.memory()).unwrap_or(why))
    }

    /// Why a reply of so many bytes is never given, if it is not.
    pub fn too_long(&self, bytes: usize) -> Option<Refused> {
        let most = self.operations.admission.answer_bytes_max();
        (bytes > most).then(|| {
            Refused::new(format!(
                "ERR the reply would have more than the {most} bytes that one may take: ask for it in parts"
            ))
        })
    }

    /// Whether the token gives access to a board.
    pub fn allows(&self, board: &BoardName) -> bool {
        self.grant.is_none_or(|grant| grant.allows_board(board.as_str()))
    }

    /// The board of a key.
    ///
    /// # Errors
    /// When it is no board's name, or the token does not give access to it.
    pub fn board(&self, key: &[u8]) -> Result<BoardKey, Refused> {
        let key = BoardKey::of(self.operations, key)?;
        if self.allows(&key.board) { Ok(key) } else { Err(Refused::no_key()) }
    }

    /// Admits a read, and waits for what the connection has written.
    ///
    /// # Errors
    /// When it is not admitted, or that is not applied in time.
    pub async fn begin(&self, board: Option<&BoardName>) -> Result<Reading, Refused> {
        let reading = Reading::new(&self.operations.admission);
        reading.in_progress.admit()?;
        if !self.written.0.is_empty() {
            let (after, deadline) = (self.written.clone(), Some(Instant::now() + APPLIED_WITHIN));
            let options = ReadOptions { after, deadline, ..ReadOptions::default() };
            self.operations.begin_reads(&reading, board, options).await?;
            if let Some(board) = board {
                self.hear_of(&reading, board).await?;
            }
        }
        Ok(reading)
    }

    /// The same for several boards.
    ///
    /// # Errors
    /// As [`Asking::begin`].
    pub async fn begin_on(&self, keys: &[BoardKey]) -> Result<Reading, Refused> {
        let mut boards = keys.iter().map(|key| &key.board);
        let reading = self.begin(boards.next()).await?;
        if reading.waits() {
            for board in boards {
                self.operations.begin_reads(&reading, Some(board), ReadOptions::default()).await?;
                self.hear_of(&reading, board).await?;
            }
        }
        Ok(reading)
    }

    /// Waits a moment for a board that the connection has made, if this node has not heard of it yet.
    async fn hear_of(&self, reading: &Reading, board: &BoardName) -> Result<(), Refused> {
        if self.unheard.contains(board) {
            let until = Instant::now() + BOARD_HEARD_OF;
            self.operations.wait_for_board(reading, board, Some(until)).await?;
        }
        Ok(())
    }

    /// Reads a board. `None`: there is none of this name.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn read<R: BoardRead>(
        &self,
        reading: &Reading,
        key: &BoardKey,
        read: R,
    ) -> Result<Option<Answer<R::Answer>>, Refused> {
        let instance = key.instance(self.operations);
        let asked = OfBoard { board: key.board.clone(), instance, read };
        match self.operations.read(reading, &asked).await? {
            Ok(answer) => Ok(Some(answer)),
            Err(why) => match self.operations.no_board(why) {
                Failure::NoBoard(NoBoard::Unknown) => Ok(None),
                why => Err(why.into()),
            },
        }
    }

    /// Whether a board has entries, so that it is a key.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn has_entries(&self, key: &BoardKey) -> Result<bool, Refused> {
        let reading = self.begin(Some(&key.board)).await?;
        let found = self.read(&reading, key, TotalOnly).await?;
        Ok(found.is_some_and(|answer| answer.total > 0))
    }

    /// As [`Operations::read`].
    ///
    /// # Errors
    /// When some shard does not reply.
    pub async fn read_shards<R: ShardsRead>(
        &self,
        reading: &Reading,
        read: &R,
    ) -> Result<R::Answer, Refused> {
        Ok(self.operations.read(reading, read).await?)
    }
}

/// Counts what replies take until they are sent.
///
/// # Errors
/// When the replies of all requests take too much memory together. They are counted all the same.
pub fn count_unsent(unsent: &InProgress, replies: &Replies) -> Result<(), Refused> {
    let bytes = replies.memory();
    Ok(unsent.count_answer(if bytes > REPLIES_UNCOUNTED { bytes } else { 0 })?)
}
