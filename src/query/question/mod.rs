//! The questions that a read asks one shard, and the shard's replies.
//!
//! Knows: that everything in a reply is from one applied sequence of the shard, and what a run of entries
//! must bring along so that nothing has to be asked again. Must not know: where a shard is, or how questions
//! travel.
//!
//! The questions are coarse. Most answers take one round trip with each shard; a member's take one with its
//! home shard and then one with the others; a position is searched in a handful.

mod answer;
mod columns;
mod combine;
mod consistency;
mod life;
mod limits;
mod widths;

use std::cmp::Ordering;
use std::sync::Arc;

use crate::job::{JobPlace, RejectCode};
use crate::query::instance::InstanceAsked;
use crate::query::summary::{KnownSummary, SummaryReply};
use crate::state::Ban;
use crate::storage::codec::RejectRecord;
use crate::tree::{Words, compare_ids};
use crate::types::{BoardName, MemberId, Number, Sequence, Timestamp};

pub use answer::{
    answer, ask_for_profiles, bans_of, boards_of_member, counts_of, found_member, last_job_of, movement_of,
    splitters_of,
};
pub use columns::words_on_boards;
pub use combine::{
    COMBINED_BOARDS_MAX, COMBINED_BYTES_MAX, COMBINED_LISTED_MAX, CombineQuestion, CombineReply, Combined,
    CombinedCounts, CombinedKey, NotCombined, Ranking,
};
pub use consistency::is_consistent;
pub use life::{BoardLife, LifeOnShard, life_of};
pub(super) use limits::ENTRIES_MAX;
pub use limits::{InvalidQuestion, check};
pub use widths::{check_widths, check_widths_of_combined};

/// Where an entry stands in the total order that all shards share: words, then the bytes of the id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortKey<'a> {
    pub words: Words,
    pub member: &'a [u8],
}

impl SortKey<'_> {
    /// How an entry with the same words and this id stands to this one.
    pub fn compare_id(&self, id: &[u8]) -> Ordering {
        compare_ids(self.words.as_slice(), id, self.member)
    }
}

impl PartialOrd for SortKey<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SortKey<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.words.cmp(&other.words).then_with(|| other.compare_id(self.member))
    }
}

/// A place in the total order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark<'a> {
    /// A score, or its first keys.
    Score(Words),
    /// An entry, which need not be on the shard that counts.
    Entry(SortKey<'a>),
}

impl Mark<'_> {
    /// The words of the score; `None` for the mark of an entry.
    pub fn score_words(&self) -> Option<&[u64]> {
        match self {
            Self::Score(score) => Some(score.as_slice()),
            Self::Entry(_) => None,
        }
    }
}

/// Entries before a mark, and those with the ones that share a score. For the mark of an entry both are the
/// entries before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    pub before: u64,
    pub through: u64,
}

/// Where a run of entries begins on a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStart<'a> {
    /// Before the best entry.
    Top,
    /// After the worst entry.
    Bottom,
    Before(Mark<'a>),
    Through(Mark<'a>),
    /// After so many of the shard's entries.
    Index(u64),
    /// Before this member's entry, on its home shard.
    Member(&'a str),
}

/// Neighbouring entries, up and down from a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunQuestion<'a> {
    pub start: RunStart<'a>,
    /// First words of the worst score that belongs to the run.
    pub worst: Option<u64>,
    /// Entries above the start, at most.
    pub above: u32,
    /// Entries from the start on, at most.
    pub below: u32,
    /// Whether the entries' metadata is wanted.
    pub metadata: bool,
}

/// Entries that divide what lies between two keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SplittersQuestion<'a> {
    /// Entries after this one; all if there is none.
    pub low: Option<SortKey<'a>>,
    /// Entries before this one.
    pub high: Option<SortKey<'a>>,
    /// So many evenly spaced entries.
    pub even: u16,
    /// Some entries about this share of what lies between, in millionths.
    pub near: Option<u32>,
    /// The first and the last entry.
    pub ends: bool,
}

/// What one shard is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question<'a> {
    /// Counts at marks, for several boards.
    Counts(Vec<(BoardLife, Vec<Mark<'a>>)>),
    /// Runs of entries.
    Runs(BoardLife, Vec<RunQuestion<'a>>),
    /// Entries that divide what lies between two keys, for several pairs of keys.
    Splitters(BoardLife, Vec<SplittersQuestion<'a>>),
    /// Members of this shard, and counts at the keys of others.
    Lookup {
        board: BoardLife,
        members: Vec<&'a str>,
        keys: Vec<SortKey<'a>>,
        /// Whether the members' metadata is wanted.
        metadata: bool,
    },
    /// A member of this shard on the boards named.
    MemberOnBoards {
        member: &'a str,
        boards: Vec<BoardLife>,
        /// Whether a hidden entry is wanted, too, as it would stand if it were listed.
        hidden: bool,
    },
    /// The boards of a member of this shard, after a place.
    BoardsOfMember {
        member: &'a str,
        after: Option<u32>,
        limit: u32,
        /// Only boards whose names begin with one of these; `None`: all.
        prefixes: Option<Vec<&'a str>>,
        /// Which instance of each board; boards that have none such are left out.
        instance: InstanceAsked,
        /// As for [`Question::MemberOnBoards`].
        hidden: bool,
    },
    /// Jobs that the shard has rejected, newest first. They are on its disk.
    Rejects(RejectsQuestion<'a>),
    /// How `all` of a board was when an instance of another window began.
    Movement {
        /// The instance, with its board's life.
        since: BoardLife,
        /// Members of this shard, whose entries of then are wanted.
        members: Vec<&'a str>,
        /// Entries of then; those before them are counted.
        keys: Vec<SortKey<'a>>,
    },
    /// A summary of a board's tree, for approximate ranks.
    Summary {
        board: BoardLife,
        /// What the asking node has.
        known: Option<KnownSummary>,
    },
    /// When boards or instances changed last.
    Changed(Vec<BoardLife>),
    /// When a board that ends after a quiet time had its last job.
    LastJob(BoardLife),
    /// Who is hidden.
    Hidden(HiddenQuestion<'a>),
    /// Several boards together.
    Combine(Arc<CombineQuestion>),
    /// Another question, and beside it of other boards: counts at marks, and the words of the members of all
    /// entries that are replied to be shown.
    WithColumns { question: Box<Question<'a>>, boards: Vec<(BoardLife, Vec<Mark<'a>>)> },
}

/// Which of a shard's bans are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenQuestion<'a> {
    /// Only those that hold on this board; `None`: all.
    pub board: Option<BoardName>,
    /// Only those of boards whose names begin with one of these, and none of all boards; `None`: all.
    pub prefixes: Option<Vec<&'a str>>,
    /// Only those of this member; `None`: everybody's.
    pub member: Option<MemberId>,
    /// Only those after this place: the name of a board, or nothing for all boards, and a member.
    pub after: Option<(&'a str, MemberId)>,
    pub limit: u32,
}

/// Bans of a shard, in the order of lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HiddenReply {
    pub bans: Vec<Ban>,
    /// Whether there are more.
    pub more: bool,
}

/// Which of a shard's rejects are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectsQuestion<'a> {
    /// Only those before this place.
    pub before: Option<JobPlace>,
    /// `None`: for any reason.
    pub reason: Option<RejectCode>,
    /// Only jobs that are this member's, or may be; `None`: everybody's.
    pub member: Option<&'a str>,
    /// Only jobs that name no other boards than those whose names begin with one of these; `None`: all.
    pub prefixes: Option<Vec<&'a str>>,
    /// Rejects that are wanted, at most.
    pub rejects: u32,
    /// Rejects that are read for it, whether or not they are wanted.
    pub read: u32,
    /// Bytes of jobs and details. The last reject may exceed this limit.
    pub bytes: u32,
}

/// Rejects of a shard.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RejectsReply {
    /// Newest first.
    pub rejects: Vec<RejectRecord>,
    /// The place before which there are more, if these are not all.
    pub next: Option<JobPlace>,
}

impl Question<'_> {
    /// Whether entries are replied with all that belongs to them, to be shown.
    pub fn shows_entries(&self) -> bool {
        match self {
            Self::Runs(_, runs) => runs.iter().any(|run| run.metadata),
            Self::Lookup { metadata, .. } => *metadata,
            Self::MemberOnBoards { .. } | Self::BoardsOfMember { .. } => true,
            Self::WithColumns { question, .. } => question.shows_entries(),
            Self::Counts(_)
            | Self::Splitters(..)
            | Self::Rejects(_)
            | Self::Movement { .. }
            | Self::Summary { .. }
            | Self::Hidden(_)
            | Self::Combine(_)
            | Self::Changed(_)
            | Self::LastJob(_) => false,
        }
    }

    /// The boards that it names, or of which it names instances.
    pub fn boards(&self) -> impl Iterator<Item = BoardName> {
        let (question, columns): (_, &[(BoardLife, Vec<Mark<'_>>)]) = match self {
            Self::WithColumns { question, boards } => (&**question, boards),
            _ => (self, &[]),
        };
        let (mut one, mut several): (_, &[BoardLife]) = (None, &[]);
        let mut counted: &[(BoardLife, Vec<Mark<'_>>)] = &[];
        let mut combined: &[(BoardLife, Number)] = &[];
        match question {
            Self::Counts(boards) => counted = boards,
            Self::Runs(board, _)
            | Self::Splitters(board, _)
            | Self::Lookup { board, .. }
            | Self::Movement { since: board, .. }
            | Self::LastJob(board)
            | Self::Summary { board, .. } => one = Some(board),
            Self::MemberOnBoards { boards, .. } | Self::Changed(boards) => several = boards,
            Self::Combine(asked) => combined = &asked.boards,
            Self::BoardsOfMember { .. } | Self::Rejects(_) | Self::Hidden(_) | Self::WithColumns { .. } => {}
        }
        let counted = counted.iter().chain(columns).map(|(board, _)| board);
        let combined = combined.iter().map(|(board, _)| board);
        let lives = one.into_iter().chain(several).chain(counted).chain(combined);
        lives.map(|life| life.board.board())
    }

    /// Whether it is about any board: those of a member that it does not name.
    pub fn is_of_every_board(&self) -> bool {
        matches!(self, Self::BoardsOfMember { .. })
    }
}

/// An entry that a shard replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardEntry {
    pub words: Words,
    pub member: Box<[u8]>,
    pub updated_at: Timestamp,
    pub version: Option<u64>,
    pub metadata: EntryMetadata,
    pub profile: EntryProfile,
}

/// The profile of an entry's member, as a shard replies it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum EntryProfile {
    #[default]
    NotAsked,
    /// Still to be read from the shard's disk. It never leaves the node.
    OnDisk,
    None,
    /// A compact JSON object. The entries of one member share it.
    Json(Arc<str>),
    /// The shard's disk cannot be read at the moment.
    Unreadable,
}

/// The metadata of an entry that a shard replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryMetadata {
    None,
    /// There is metadata, and the question did not ask for it.
    NotAsked,
    /// Still to be read from this tree of the shard. It never leaves the node.
    OnDisk(crate::state::TreeId),
    /// A compact JSON object.
    Json(Box<str>),
    /// The shard's disk cannot be read at the moment.
    Unreadable,
}

/// One board's counts on a shard.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BoardCounts {
    pub life: LifeOnShard,
    /// Listed entries.
    pub total: u64,
    pub hidden: u64,
    /// One for each mark.
    pub marks: Vec<Counted>,
}

/// A run of entries of one shard. See [`crate::query::shard_run::ShardRun`] for what is worked out from it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunReply {
    pub life: LifeOnShard,
    pub total: u64,
    /// Entries before the start.
    pub start: u64,
    /// Entries from the start to the end of the run's bound.
    pub remaining: u64,
    /// Counts at the score of the start, if it has one.
    pub at_start: Counted,
    /// Entries better than the first entry of the run in order.
    pub better_than_first: u64,
    /// Nearest to the start first.
    pub above: Vec<ShardEntry>,
    pub below: Vec<ShardEntry>,
}

/// Entries that divide a shard's entries between two keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SplittersReply {
    pub life: LifeOnShard,
    pub total: u64,
    /// Entries through the lower key.
    pub low: u64,
    /// Entries before the upper key.
    pub high: u64,
    /// In order.
    pub splitters: Vec<Splitter>,
}

/// An entry that divides a shard's entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splitter {
    /// Entries of the shard before it.
    pub index: u64,
    pub words: Words,
    pub member: Box<[u8]>,
}

impl Splitter {
    pub fn key(&self) -> SortKey<'_> {
        SortKey { words: self.words, member: &self.member }
    }
}

impl ShardEntry {
    pub fn key(&self) -> SortKey<'_> {
        SortKey { words: self.words, member: &self.member }
    }
}

/// A member found on its home shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundMember {
    pub entry: ShardEntry,
    /// Counts at its score.
    pub at_score: Counted,
    /// Entries before it.
    pub index: u64,
    pub total: u64,
    /// Whether it is hidden. The counts are those that there would be if it were not.
    pub is_hidden: bool,
}

/// What a shard replies to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// One for each board asked.
    Counts(Vec<BoardCounts>),
    /// One for each run asked; `None`: the member that it should begin at is not listed.
    Runs(Vec<Option<RunReply>>),
    /// One for each pair of keys asked.
    Splitters(Vec<SplittersReply>),
    Lookup {
        life: LifeOnShard,
        total: u64,
        /// One for each member asked; `None` if it is not listed.
        members: Vec<Option<ShardEntry>>,
        /// For each key asked: the entries better than its score, and those before it.
        keys: Vec<KeyCounts>,
    },
    /// One for each board asked; `None` where the member is not listed.
    MemberOnBoards(Vec<Option<FoundMember>>),
    BoardsOfMember(BoardsOfMember),
    Rejects(RejectsReply),
    Movement(MovementReply),
    Summary(SummaryReply),
    /// One for each board asked: whoever has read it at this sequence or later has read what it is at the
    /// reply's sequence. 0 if the shard does not have it.
    Changed(Vec<Sequence>),
    /// `None`: the shard does not have it, or it does not end after a quiet time there.
    LastJob(LifeOnShard, Option<Timestamp>),
    Hidden(HiddenReply),
    Combine(CombineReply),
    WithColumns {
        reply: Box<Reply>,
        /// One for each board asked.
        counts: Vec<BoardCounts>,
        /// For each entry that is shown, its member's words on each board; `None` where it is not listed.
        words: Vec<Option<Words>>,
    },
}

/// How `all` of a board was on a shard when an instance of another window began. As long as that instance is
/// current on the shard, later changes leave it as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MovementReply {
    pub life: LifeOnShard,
    /// The shard's applied sequence.
    pub sequence: Sequence,
    /// The shard's time: that of its last message.
    pub time: Timestamp,
    /// The words of each member's entry of then; `None` if it was not listed.
    pub then: Vec<Option<Words>>,
    /// For each key, the entries of then that were before it.
    pub before: Vec<u64>,
}

/// Boards that list a member, in the order in which boards came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BoardsOfMember {
    pub boards: Vec<(BoardLife, FoundMember)>,
    /// Where the member's other boards begin, if these are not all.
    pub next: Option<u32>,
    /// The member itself, as an entry of no board, for its profile: it may have one and be on no board.
    pub itself: Option<ShardEntry>,
}

/// Entries of a shard in relation to an entry of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyCounts {
    /// Entries with a strictly better score.
    pub better: u64,
    /// Entries before it in the total order.
    pub before: u64,
}

impl KeyCounts {
    /// Adds those of another shard.
    pub fn add(&mut self, other: Self) {
        self.better += other.better;
        self.before += other.before;
    }
}

/// A reply, and what it is exact at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardReply {
    pub sequence: Sequence,
    /// Whether the shard applies what is published at present.
    pub is_live: bool,
    pub reply: Reply,
}

impl Reply {
    /// Whether some board that was asked about is over on the shard.
    pub fn has_ended_board(&self) -> bool {
        let is_over = |life: LifeOnShard| life == LifeOnShard::Over;
        match self {
            Self::Counts(boards) => boards.iter().any(|board| is_over(board.life)),
            Self::Runs(runs) => runs.iter().flatten().any(|run| is_over(run.life)),
            Self::Splitters(splitters) => splitters.iter().any(|reply| is_over(reply.life)),
            Self::Lookup { life, .. } | Self::LastJob(life, _) => is_over(*life),
            Self::Movement(reply) => is_over(reply.life),
            Self::Combine(reply) => reply.boards.iter().any(|(life, _)| is_over(*life)),
            Self::WithColumns { reply, counts, .. } => {
                counts.iter().any(|board| is_over(board.life)) || reply.has_ended_board()
            }
            Self::MemberOnBoards(_)
            | Self::BoardsOfMember(_)
            | Self::Rejects(_)
            | Self::Summary(_)
            | Self::Hidden(_)
            | Self::Changed(_) => false,
        }
    }

    /// The entries of the board on the shard, if the question was about one board and the reply tells.
    pub fn total(&self) -> Option<u64> {
        match self {
            Self::Counts(boards) => match boards.as_slice() {
                [counts] => Some(counts.total),
                _ => None,
            },
            Self::Runs(runs) => runs.iter().flatten().map(|run| run.total).next(),
            Self::Splitters(splitters) => splitters.first().map(|reply| reply.total),
            Self::Lookup { total, .. } => Some(*total),
            Self::WithColumns { reply, .. } => reply.total(),
            Self::MemberOnBoards(_)
            | Self::BoardsOfMember(_)
            | Self::Rejects(_)
            | Self::Movement(_)
            | Self::Summary(_)
            | Self::Hidden(_)
            | Self::Combine(_)
            | Self::Changed(_)
            | Self::LastJob(..) => None,
        }
    }

    /// Visits each entry of the reply.
    pub fn each_entry(&mut self, visit: &mut dyn FnMut(&mut ShardEntry)) {
        match self {
            Self::Counts(_)
            | Self::Splitters(_)
            | Self::Rejects(_)
            | Self::Movement(_)
            | Self::Summary(_)
            | Self::Hidden(_)
            | Self::Combine(_)
            | Self::Changed(_)
            | Self::LastJob(..) => {}
            Self::Runs(runs) => {
                let runs = runs.iter_mut().flatten();
                runs.flat_map(|run| run.above.iter_mut().chain(&mut run.below)).for_each(visit);
            }
            Self::Lookup { members, .. } => members.iter_mut().flatten().for_each(visit),
            Self::MemberOnBoards(found) => {
                found.iter_mut().flatten().map(|found| &mut found.entry).for_each(visit);
            }
            Self::BoardsOfMember(found) => {
                let entries = found.boards.iter_mut().map(|(_, found)| &mut found.entry);
                entries.chain(&mut found.itself).for_each(visit);
            }
            Self::WithColumns { reply, .. } => reply.each_entry(visit),
        }
    }
}
