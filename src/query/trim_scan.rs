//! Finds the members whose entries are on one side of a trim point of a board, for a trim to name.
//!
//! Knows: how to find the trim point over all shards, and how to walk a shard's entries from the end of
//! that side up to it, a slice under each hold of the lock. Must not know: what becomes of them. Scores may
//! change between two slices; an entry that does not change is visited exactly once.

use std::cmp::Ordering;

use crate::board::ScoreRefused;
use crate::query::board_view::BoardView;
use crate::query::find_place::find_place;
use crate::query::merge::MergedEntry;
use crate::query::read::BoardRead;
use crate::query::remote_shards::ReadError;
use crate::state::{Incarnation, Shard, TrimPoint, TrimSide, WindowTree};
use crate::tree::{Handle, Words, compare_ids};
use crate::types::{BoardName, MemberId, Score};

/// Listed entries examined under one hold of a lock.
const LISTED_AT_ONCE: usize = if cfg!(test) { 3 } else { 256 };
/// Handles or hidden entries examined under one hold of a lock.
const HANDLES_AT_ONCE: u32 = if cfg!(test) { 4 } else { 512 };

/// The trim point at the entry of a position (1-based); `None` if the board has fewer.
///
/// # Errors
/// When some shard does not reply, or the board kept changing too quickly.
pub async fn trim_point_of_position(
    board: &BoardView<'_>,
    position: u64,
) -> Result<Option<TrimPoint>, ReadError> {
    let Some(index) = position.checked_sub(1) else { return Ok(None) };
    let place = find_place(board, |total| Some(index).filter(|index| *index < total), 1, false).await?;
    let Some(place) = place else { return Ok(None) };
    let point = |found: &MergedEntry<'_>| TrimPoint {
        side: TrimSide::Worse,
        words: found.key.words,
        member: Some(found.key.member.into()),
    };
    Ok(place.entries(1).first().map(point))
}

/// The trim point of a score, or of the first keys of one. Entries with exactly this score are not removed.
pub fn trim_point_of_score(board: &BoardView<'_>, score: &Score, side: TrimSide) -> TrimPoint {
    TrimPoint { side, words: board.definition.score_words(score), member: None }
}

/// A walk over a shard's entries on one side of a trim point: first the listed ones, from the end, and then
/// the hidden ones.
pub struct TrimScan {
    board: BoardName,
    incarnation: Incarnation,
    point: TrimPoint,
    at: ScanPosition,
}

enum ScanPosition {
    /// Beyond the entry of these words and this id, seen from the end, or at the end.
    Listed(Option<(Words, Box<[u8]>)>),
    /// At this handle.
    Hidden(u32),
    End,
}

impl TrimScan {
    pub fn new(board: BoardName, incarnation: Incarnation, point: TrimPoint) -> Self {
        Self { board, incarnation, point, at: ScanPosition::Listed(None) }
    }

    pub fn is_finished(&self) -> bool {
        matches!(self.at, ScanPosition::End)
    }

    /// The members of the next slice. It may be empty if the trim removes none of the next hidden
    /// entries. At the end of the walk it is always empty.
    pub fn next_slice(&mut self, shard: &Shard) -> Vec<MemberId> {
        let board = shard.board(self.board.as_str()).filter(|board| board.incarnation == self.incarnation);
        let Some(window) = board.and_then(|board| shard.tree(board.all)) else {
            self.at = ScanPosition::End;
            return Vec::new();
        };
        let (next, handles) = match &self.at {
            ScanPosition::Listed(last) => self.listed(shard, window, last.as_ref()),
            ScanPosition::Hidden(from) => self.hidden(shard, window, *from),
            ScanPosition::End => return Vec::new(),
        };
        self.at = next;
        let id = |handle| std::str::from_utf8(shard.members.id(handle)).ok();
        handles.into_iter().filter_map(|handle| MemberId::new(id(handle)?).ok()).collect()
    }

    fn listed(
        &self,
        shard: &Shard,
        window: &WindowTree,
        last: Option<&(Words, Box<[u8]>)>,
    ) -> (ScanPosition, Vec<Handle>) {
        let members = &shard.members;
        let from_top = self.point.side == TrimSide::Better;
        let before = match last {
            None => {
                if from_top {
                    0
                } else {
                    window.total()
                }
            }
            Some((words, id)) => {
                // Walking down, the next entry is the first one behind those up to the last one.
                let mut compare = |handle: Handle| -> Ordering {
                    let order = compare_ids(words.as_slice(), members.id(handle), id);
                    if from_top && order == Ordering::Equal { Ordering::Less } else { order }
                };
                window.tree.count_before(words.as_slice(), &mut compare)
            }
        };
        let mut cursor = window.tree.cursor_at(before);
        let is_removed = |(handle, words): &(Handle, Words)| self.point.removes(words, members.id(*handle));
        let (mut handles, mut last) = (Vec::with_capacity(LISTED_AT_ONCE), None);
        while handles.len() < LISTED_AT_ONCE {
            let next = if from_top { cursor.next() } else { cursor.prev() };
            let Some((handle, words)) = next.filter(is_removed) else {
                return (ScanPosition::Hidden(0), handles);
            };
            handles.push(handle);
            last = Some((words, handle));
        }
        let last = last.map(|(words, handle)| (words, members.id(handle).into()));
        (ScanPosition::Listed(last), handles)
    }

    fn hidden(&self, shard: &Shard, window: &WindowTree, from: u32) -> (ScanPosition, Vec<Handle>) {
        let space = shard.members.handle_space();
        let few = usize::try_from(HANDLES_AT_ONCE).unwrap_or(usize::MAX);
        // Hidden entries are walked by handle: nothing else about them is stable while others come and go.
        let end = if window.hidden_count() <= few { space } else { from.saturating_add(HANDLES_AT_ONCE) };
        let is_removed =
            |(handle, words): &(Handle, Words)| self.point.removes(words, shard.members.id(*handle));
        let found = window.hidden_in(from..end.max(from)).into_iter().filter(is_removed);
        let next = if end >= space { ScanPosition::End } else { ScanPosition::Hidden(end) };
        (next, found.map(|(handle, _)| handle).collect())
    }
}

/// Where a trim begins to remove.
#[derive(Debug, Clone)]
pub enum TrimFrom {
    /// After the entry at this position.
    Position(u64),
    /// On one side of a score, or of the first keys of one.
    Score(Score, TrimSide),
}

/// Finds the trim point, and the life of the board that has it; `None` if it removes no
/// entry. An error says why the score is none of the board, nor the first keys of one.
pub struct FindTrimPoint(pub TrimFrom);

impl BoardRead for FindTrimPoint {
    type Answer = (Incarnation, Result<Option<TrimPoint>, ScoreRefused>);

    async fn read<'r>(&'r self, board: &'r BoardView<'r>) -> Result<Self::Answer, ReadError> {
        let keys = board.definition.keys.len();
        let point = match &self.0 {
            TrimFrom::Position(position) => Ok(trim_point_of_position(board, *position).await?),
            TrimFrom::Score(score, _) if score.keys().len() > keys => Err(ScoreRefused::KeyCount),
            TrimFrom::Score(score, side) => match board.definition.typed_first_keys(score) {
                Ok(score) => Ok(Some(trim_point_of_score(board, &score, *side))),
                Err(why) => Err(why.into()),
            },
        };
        Ok((board.incarnation, point))
    }
}
