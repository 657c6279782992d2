//! A question, and what its reply must be of.

use std::borrow::Cow;
use std::sync::Arc;

use bincode::{BorrowDecode, Encode};

use crate::cluster::questions::wire::combine::CombineWire;
use crate::cluster::questions::wire::counterparts::{KeyWire, LifeWire, MarkWire};
use crate::cluster::questions::wire::{
    QUESTION_BYTES_MAX, QUESTION_MEMORY_MAX, Undecodable, body, decode, encode, nested, undecodable,
};
use crate::job::{JobPlace, RejectCode};
use crate::query::question::{
    BoardLife, HiddenQuestion, Mark, Question, RejectsQuestion, RunQuestion, RunStart, SplittersQuestion,
};
use crate::query::summary::KnownSummary;
use crate::query::{EVERY, InstanceAsked, WindowChoice};
use crate::types::{BoardName, MemberId, Sequence, Timestamp};

/// A question as it travels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedQuestion<'a> {
    pub question: Question<'a>,
    /// The shard replies once it has applied this sequence.
    pub least: Sequence,
    /// How long the asking node will wait, in milliseconds from when it asked.
    pub wait_ms: u32,
    /// Whether a shard may reply that may be behind: the asking node knows of no better one.
    pub may_be_behind: bool,
    /// Whether entries of the reply come with the profiles of their members.
    pub profiles: bool,
}

pub fn encode_question(asked: &AskedQuestion<'_>) -> Result<Vec<u8>, Undecodable> {
    let wire = AskedWire {
        least: asked.least.0,
        wait_ms: asked.wait_ms,
        may_be_behind: asked.may_be_behind,
        profiles: asked.profiles,
        question: QuestionWire::of(&asked.question),
    };
    encode(&wire, QUESTION_BYTES_MAX)
}

/// # Errors
/// When the bytes are no question of a known format.
pub fn decode_question(bytes: &[u8]) -> Result<AskedQuestion<'_>, Undecodable> {
    let asked: AskedWire<'_> = decode::<_, QUESTION_MEMORY_MAX>(body(bytes, QUESTION_BYTES_MAX)?)?;
    Ok(AskedQuestion {
        question: asked.question.read()?,
        least: Sequence(asked.least),
        wait_ms: asked.wait_ms,
        may_be_behind: asked.may_be_behind,
        profiles: asked.profiles,
    })
}

#[derive(Encode, BorrowDecode)]
struct AskedWire<'a> {
    least: u64,
    wait_ms: u32,
    may_be_behind: bool,
    profiles: bool,
    question: QuestionWire<'a>,
}

#[derive(Encode, BorrowDecode)]
enum QuestionWire<'a> {
    Counts(Vec<MarksWire<'a>>),
    Runs(LifeWire<'a>, Vec<RunWire<'a>>),
    Splitters(LifeWire<'a>, Vec<SplittersWire<'a>>),
    Lookup {
        board: LifeWire<'a>,
        members: Vec<&'a str>,
        keys: Vec<KeyWire<'a>>,
        metadata: bool,
    },
    MemberOnBoards {
        member: &'a str,
        boards: Vec<LifeWire<'a>>,
        hidden: bool,
    },
    Rejects(RejectsWire<'a>),
    BoardsOfMember {
        member: &'a str,
        after: Option<u32>,
        limit: u32,
        prefixes: Option<Vec<&'a str>>,
        /// Empty for each board's default window.
        window: String,
        now_micros: i64,
        hidden: bool,
    },
    Movement {
        since: LifeWire<'a>,
        members: Vec<&'a str>,
        keys: Vec<KeyWire<'a>>,
    },
    Summary {
        board: LifeWire<'a>,
        /// A sequence and a hash.
        known: Option<(u64, u64)>,
    },
    Changed(Vec<LifeWire<'a>>),
    Hidden {
        board: Option<&'a str>,
        prefixes: Option<Vec<&'a str>>,
        member: Option<&'a str>,
        after: Option<(&'a str, &'a str)>,
        limit: u32,
    },
    /// A question within another one is bytes, so that no message makes a node decode ever deeper.
    WithColumns(Cow<'a, [u8]>, Vec<MarksWire<'a>>),
    LastJob(LifeWire<'a>),
    Combine(CombineWire<'a>),
}

/// A board, and the marks that are counted at.
type MarksWire<'a> = (LifeWire<'a>, Vec<MarkWire<'a>>);

fn marks_wire<'a>(boards: &'a [(BoardLife, Vec<Mark<'a>>)]) -> Vec<MarksWire<'a>> {
    let marks = |marks: &'a [Mark<'a>]| marks.iter().map(MarkWire::of).collect();
    boards.iter().map(|(life, of_board)| (LifeWire::of(life), marks(of_board))).collect()
}

fn read_marks<'a>(boards: Vec<MarksWire<'a>>) -> Result<Vec<(BoardLife, Vec<Mark<'a>>)>, Undecodable> {
    let board =
        |(life, marks): MarksWire<'a>| Ok((life.read()?, marks.into_iter().map(MarkWire::read).collect()));
    boards.into_iter().map(board).collect()
}

#[derive(Encode, BorrowDecode)]
struct RunWire<'a> {
    start: StartWire<'a>,
    worst: Option<u64>,
    above: u32,
    below: u32,
    metadata: bool,
}

#[derive(Encode, BorrowDecode)]
enum StartWire<'a> {
    Top,
    Bottom,
    Before(MarkWire<'a>),
    Through(MarkWire<'a>),
    Index(u64),
    Member(&'a str),
}

#[derive(Encode, BorrowDecode)]
struct RejectsWire<'a> {
    before: Option<(u64, u32)>,
    reason: Option<&'a str>,
    member: Option<&'a str>,
    prefixes: Option<Vec<&'a str>>,
    rejects: u32,
    read: u32,
    bytes: u32,
}

#[derive(Encode, BorrowDecode)]
struct SplittersWire<'a> {
    low: Option<KeyWire<'a>>,
    high: Option<KeyWire<'a>>,
    even: u16,
    near: Option<u32>,
    ends: bool,
}

impl<'a> QuestionWire<'a> {
    fn of(question: &'a Question<'a>) -> Self {
        match question {
            Question::Counts(boards) => Self::Counts(marks_wire(boards)),
            Question::WithColumns { question, boards } => {
                Self::WithColumns(nested(&Self::of(question)).into(), marks_wire(boards))
            }
            Question::Runs(life, runs) => {
                Self::Runs(LifeWire::of(life), runs.iter().map(RunWire::of).collect())
            }
            Question::Splitters(life, searches) => {
                Self::Splitters(LifeWire::of(life), searches.iter().map(SplittersWire::of).collect())
            }
            Question::Lookup { board, members, keys, metadata } => Self::Lookup {
                board: LifeWire::of(board),
                members: members.clone(),
                keys: keys.iter().map(KeyWire::of).collect(),
                metadata: *metadata,
            },
            Question::MemberOnBoards { member, boards, hidden } => Self::MemberOnBoards {
                member,
                boards: boards.iter().map(LifeWire::of).collect(),
                hidden: *hidden,
            },
            Question::BoardsOfMember { member, after, limit, prefixes, instance, hidden } => {
                Self::BoardsOfMember {
                    member,
                    after: *after,
                    limit: *limit,
                    prefixes: prefixes.clone(),
                    window: instance.choice.to_string(),
                    now_micros: instance.now.as_micros(),
                    hidden: *hidden,
                }
            }
            Question::Rejects(question) => Self::Rejects(RejectsWire::of(question)),
            Question::Movement { since, members, keys } => Self::Movement {
                since: LifeWire::of(since),
                members: members.clone(),
                keys: keys.iter().map(KeyWire::of).collect(),
            },
            Question::Summary { board, known } => {
                let known = known.map(|known| (known.sequence.0, known.hash));
                Self::Summary { board: LifeWire::of(board), known }
            }
            Question::LastJob(board) => Self::LastJob(LifeWire::of(board)),
            Question::Combine(asked) => Self::Combine(CombineWire::of(asked)),
            Question::Changed(boards) => Self::Changed(boards.iter().map(LifeWire::of).collect()),
            Question::Hidden(HiddenQuestion { board, prefixes, member, after, limit }) => Self::Hidden {
                board: board.as_ref().map(BoardName::as_str),
                prefixes: prefixes.clone(),
                member: member.as_ref().map(MemberId::as_str),
                after: after.as_ref().map(|(name, member)| (*name, member.as_str())),
                limit: *limit,
            },
        }
    }

    fn read(self) -> Result<Question<'a>, Undecodable> {
        Ok(match self {
            Self::Counts(boards) => Question::Counts(read_marks(boards)?),
            Self::WithColumns(question, boards) => {
                let Cow::Borrowed(bytes) = question else { return Err(undecodable("it was not decoded")) };
                let question = match decode::<QuestionWire<'_>, QUESTION_MEMORY_MAX>(bytes)? {
                    Self::WithColumns(..) => return Err(undecodable("columns are asked for within others")),
                    question => Box::new(question.read()?),
                };
                Question::WithColumns { question, boards: read_marks(boards)? }
            }
            Self::Runs(life, runs) => {
                Question::Runs(life.read()?, runs.into_iter().map(RunWire::read).collect())
            }
            Self::Splitters(life, searches) => {
                Question::Splitters(life.read()?, searches.into_iter().map(SplittersWire::read).collect())
            }
            Self::Lookup { board, members, keys, metadata } => Question::Lookup {
                board: board.read()?,
                members,
                keys: keys.into_iter().map(KeyWire::read).collect(),
                metadata,
            },
            Self::MemberOnBoards { member, boards, hidden } => Question::MemberOnBoards {
                member,
                boards: boards.iter().map(LifeWire::read).collect::<Result<_, _>>()?,
                hidden,
            },
            Self::BoardsOfMember { member, after, limit, prefixes, window, now_micros, hidden } => {
                let choice = match window.as_str() {
                    "" => WindowChoice::Default,
                    EVERY => WindowChoice::Every,
                    name => WindowChoice::of_name(name).ok_or_else(|| undecodable("it names no window"))?,
                };
                let now = Timestamp::from_micros(now_micros).map_err(undecodable)?;
                let instance = InstanceAsked { choice, now };
                Question::BoardsOfMember { member, after, limit, prefixes, instance, hidden }
            }
            Self::Rejects(question) => Question::Rejects(question.read()?),
            Self::Movement { since, members, keys } => Question::Movement {
                since: since.read()?,
                members,
                keys: keys.into_iter().map(KeyWire::read).collect(),
            },
            Self::Summary { board, known } => {
                let known = known.map(|(sequence, hash)| KnownSummary { sequence: Sequence(sequence), hash });
                Question::Summary { board: board.read()?, known }
            }
            Self::LastJob(board) => Question::LastJob(board.read()?),
            Self::Combine(asked) => Question::Combine(Arc::new(asked.read()?)),
            Self::Changed(boards) => {
                Question::Changed(boards.iter().map(LifeWire::read).collect::<Result<_, _>>()?)
            }
            Self::Hidden { board, prefixes, member, after, limit } => {
                let member = member.map(MemberId::new).transpose().map_err(undecodable)?;
                let board = board.map(BoardName::new).transpose().map_err(undecodable)?;
                let after =
                    after.map(|(name, member)| Ok((name, MemberId::new(member).map_err(undecodable)?)));
                let after = after.transpose()?;
                Question::Hidden(HiddenQuestion { board, prefixes, member, after, limit })
            }
        })
    }
}

impl<'a> RunWire<'a> {
    fn of(run: &RunQuestion<'a>) -> Self {
        let start = match &run.start {
            RunStart::Top => StartWire::Top,
            RunStart::Bottom => StartWire::Bottom,
            RunStart::Before(mark) => StartWire::Before(MarkWire::of(mark)),
            RunStart::Through(mark) => StartWire::Through(MarkWire::of(mark)),
            RunStart::Index(index) => StartWire::Index(*index),
            RunStart::Member(member) => StartWire::Member(member),
        };
        let RunQuestion { start: _, worst, above, below, metadata } = *run;
        Self { start, worst, above, below, metadata }
    }

    fn read(self) -> RunQuestion<'a> {
        let start = match self.start {
            StartWire::Top => RunStart::Top,
            StartWire::Bottom => RunStart::Bottom,
            StartWire::Before(mark) => RunStart::Before(mark.read()),
            StartWire::Through(mark) => RunStart::Through(mark.read()),
            StartWire::Index(index) => RunStart::Index(index),
            StartWire::Member(member) => RunStart::Member(member),
        };
        let Self { start: _, worst, above, below, metadata } = self;
        RunQuestion { start, worst, above, below, metadata }
    }
}

impl<'a> RejectsWire<'a> {
    fn of(question: &RejectsQuestion<'a>) -> Self {
        let RejectsQuestion { before, reason, member, prefixes, rejects, read, bytes } = question;
        let before = before.map(|(sequence, index)| (sequence.0, index));
        let (reason, prefixes) = (reason.map(RejectCode::name), prefixes.clone());
        let (member, rejects, read, bytes) = (*member, *rejects, *read, *bytes);
        Self { before, reason, member, prefixes, rejects, read, bytes }
    }

    fn read(self) -> Result<RejectsQuestion<'a>, Undecodable> {
        let Self { before, reason, member, prefixes, rejects, read, bytes } = self;
        let before = before.map(|(sequence, index)| -> JobPlace { (Sequence(sequence), index) });
        let reason = reason.map(read_code).transpose()?;
        Ok(RejectsQuestion { before, reason, member, prefixes, rejects, read, bytes })
    }
}

/// The reason for a rejection, by its name.
pub fn read_code(name: &str) -> Result<RejectCode, Undecodable> {
    let known = RejectCode::ALL.into_iter().find(|code| code.name() == name);
    known.ok_or_else(|| undecodable(format_args!("it names the unknown reason {name:?}")))
}

impl<'a> SplittersWire<'a> {
    fn of(search: &SplittersQuestion<'a>) -> Self {
        let SplittersQuestion { low, high, even, near, ends } = search;
        let key = |key: &Option<_>| key.as_ref().map(KeyWire::of);
        Self { low: key(low), high: key(high), even: *even, near: *near, ends: *ends }
    }

    fn read(self) -> SplittersQuestion<'a> {
        let Self { low, high, even, near, ends } = self;
        let (low, high) = (low.map(KeyWire::read), high.map(KeyWire::read));
        SplittersQuestion { low, high, even, near, ends }
    }
}
