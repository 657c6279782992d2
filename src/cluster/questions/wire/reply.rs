//! A reply, and the sequence that it is of.

use std::borrow::Cow;

use bincode::{BorrowDecode, Decode, Encode};

use crate::cluster::questions::wire::combine::CombinedWire;
use crate::cluster::questions::wire::counterparts::{LifeOnShardWire, LifeWire, WordsWire};
use crate::cluster::questions::wire::profiles::{self, ProfileWire};
use crate::cluster::questions::wire::question::read_code;
use crate::cluster::questions::wire::summary::SummaryWire;
use crate::cluster::questions::wire::{
    REPLY_BYTES_MAX, REPLY_MEMORY_MAX, Undecodable, body, decode, encode, nested, undecodable,
};
use crate::query::question::{
    BoardCounts, BoardsOfMember, Counted, EntryMetadata, EntryProfile, FoundMember, HiddenReply, KeyCounts,
    MovementReply, RejectsReply, Reply, RunReply, ShardEntry, ShardReply, Splitter, SplittersReply,
};
use crate::state::{Ban, name_of};
use crate::storage::codec::RejectRecord;
use crate::types::{BoardName, MemberId, Sequence, Timestamp};

/// Takes the profiles out of the reply.
pub fn encode_reply(reply: &mut ShardReply) -> Result<Vec<u8>, Undecodable> {
    let taken = profiles::take(&mut reply.reply);
    let wire = ShardReplyWire {
        sequence: reply.sequence.0,
        is_live: reply.is_live,
        reply: ReplyWire::of(&reply.reply),
        profiles: profiles::of(&taken),
    };
    encode(&wire, REPLY_BYTES_MAX)
}

/// # Errors
/// When the bytes are no reply of a known format.
pub fn decode_reply(bytes: &[u8]) -> Result<ShardReply, Undecodable> {
    let wire: ShardReplyWire<'_> = decode::<_, REPLY_MEMORY_MAX>(body(bytes, REPLY_BYTES_MAX)?)?;
    let ShardReplyWire { sequence, is_live, reply, profiles } = wire;
    let mut reply = reply.read()?;
    profiles::put(profiles, &mut reply)?;
    Ok(ShardReply { sequence: Sequence(sequence), is_live, reply })
}

#[derive(Encode, BorrowDecode)]
struct ShardReplyWire<'a> {
    sequence: u64,
    is_live: bool,
    reply: ReplyWire<'a>,
    /// Those of the entries, in their order; empty if none was asked for.
    profiles: Vec<ProfileWire<'a>>,
}

#[derive(Encode, BorrowDecode)]
enum ReplyWire<'a> {
    Counts(Vec<CountsWire>),
    Runs(Vec<Option<RunReplyWire<'a>>>),
    Splitters(Vec<SplittersReplyWire<'a>>),
    Lookup {
        life: LifeOnShardWire,
        total: u64,
        members: Vec<Option<EntryWire<'a>>>,
        keys: Vec<(u64, u64)>,
    },
    MemberOnBoards(Vec<Option<FoundWire<'a>>>),
    BoardsOfMember(Vec<(LifeWire<'a>, FoundWire<'a>)>, Option<u32>, Option<EntryWire<'a>>),
    Rejects(Vec<RejectWire<'a>>, Option<(u64, u32)>),
    Movement(MovementWire),
    Summary(SummaryWire<'a>),
    Changed(Vec<u64>),
    Hidden(Vec<BanWire<'a>>, bool),
    /// The reply as bytes, as in a question.
    WithColumns(Cow<'a, [u8]>, Vec<CountsWire>, Vec<Option<WordsWire>>),
    /// In microseconds.
    LastJob(LifeOnShardWire, Option<i64>),
    Combine(CombinedWire<'a>),
}

/// The name of a board, or nothing for all boards; a member, and since when.
type BanWire<'a> = (&'a str, &'a str, i64);

#[derive(Encode, Decode)]
struct CountsWire {
    life: LifeOnShardWire,
    total: u64,
    hidden: u64,
    marks: Vec<(u64, u64)>,
}

#[derive(Encode, BorrowDecode)]
struct RunReplyWire<'a> {
    life: LifeOnShardWire,
    total: u64,
    start: u64,
    remaining: u64,
    at_start: (u64, u64),
    better_than_first: u64,
    above: Vec<EntryWire<'a>>,
    below: Vec<EntryWire<'a>>,
}

#[derive(Encode, BorrowDecode)]
struct SplittersReplyWire<'a> {
    life: LifeOnShardWire,
    total: u64,
    low: u64,
    high: u64,
    splitters: Vec<(u64, WordsWire, &'a [u8])>,
}

#[derive(Encode, Decode)]
struct MovementWire {
    life: LifeOnShardWire,
    sequence: u64,
    time_micros: i64,
    then: Vec<Option<WordsWire>>,
    before: Vec<u64>,
}

#[derive(Encode, BorrowDecode)]
struct RejectWire<'a> {
    sequence: u64,
    index: u32,
    reason: &'a str,
    detail: &'a str,
    job: &'a [u8],
    time_micros: i64,
}

#[derive(Encode, BorrowDecode)]
struct EntryWire<'a> {
    words: WordsWire,
    member: &'a [u8],
    updated_at_micros: i64,
    version: Option<u64>,
    metadata: MetadataWire<'a>,
}

#[derive(Encode, BorrowDecode)]
enum MetadataWire<'a> {
    None,
    NotAsked,
    Json(&'a str),
    Unreadable,
}

#[derive(Encode, BorrowDecode)]
struct FoundWire<'a> {
    entry: EntryWire<'a>,
    at_score: (u64, u64),
    index: u64,
    total: u64,
    is_hidden: bool,
}

impl<'a> ReplyWire<'a> {
    fn of(reply: &'a Reply) -> Self {
        match reply {
            Reply::Counts(boards) => Self::Counts(boards.iter().map(CountsWire::of).collect()),
            Reply::Runs(runs) => {
                Self::Runs(runs.iter().map(|run| run.as_ref().map(RunReplyWire::of)).collect())
            }
            Reply::Splitters(replies) => {
                Self::Splitters(replies.iter().map(SplittersReplyWire::of).collect())
            }
            Reply::Lookup { life, total, members, keys } => Self::Lookup {
                life: LifeOnShardWire::of(*life),
                total: *total,
                members: members.iter().map(|entry| entry.as_ref().map(EntryWire::of)).collect(),
                keys: keys.iter().map(|counts| (counts.better, counts.before)).collect(),
            },
            Reply::MemberOnBoards(found) => {
                Self::MemberOnBoards(found.iter().map(|found| found.as_ref().map(FoundWire::of)).collect())
            }
            Reply::BoardsOfMember(found) => {
                let boards = found.boards.iter();
                let boards = boards.map(|(life, found)| (LifeWire::of(life), FoundWire::of(found)));
                Self::BoardsOfMember(boards.collect(), found.next, found.itself.as_ref().map(EntryWire::of))
            }
            Reply::Summary(summary) => Self::Summary(SummaryWire::of(summary)),
            Reply::Rejects(RejectsReply { rejects, next }) => Self::Rejects(
                rejects.iter().map(RejectWire::of).collect(),
                next.map(|(sequence, index)| (sequence.0, index)),
            ),
            Reply::Movement(reply) => Self::Movement(MovementWire::of(reply)),
            Reply::LastJob(life, last) => {
                Self::LastJob(LifeOnShardWire::of(*life), last.map(Timestamp::as_micros))
            }
            Reply::Changed(changed) => Self::Changed(changed.iter().map(|sequence| sequence.0).collect()),
            Reply::WithColumns { reply, counts, words } => Self::WithColumns(
                nested(&Self::of(reply)).into(),
                counts.iter().map(CountsWire::of).collect(),
                words.iter().map(|words| words.map(WordsWire)).collect(),
            ),
            Reply::Combine(reply) => Self::Combine(CombinedWire::of(reply)),
            Reply::Hidden(HiddenReply { bans, more }) => {
                let ban = |ban: &'a Ban| (name_of(&ban.scope), ban.member.as_str(), ban.since.as_micros());
                Self::Hidden(bans.iter().map(ban).collect(), *more)
            }
        }
    }

    fn read(self) -> Result<Reply, Undecodable> {
        Ok(match self {
            Self::Counts(boards) => Reply::Counts(boards.into_iter().map(CountsWire::read).collect()),
            Self::Runs(runs) => {
                let run = |run: Option<RunReplyWire<'_>>| run.map(RunReplyWire::read).transpose();
                Reply::Runs(runs.into_iter().map(run).collect::<Result<_, _>>()?)
            }
            Self::Splitters(replies) => {
                Reply::Splitters(replies.into_iter().map(SplittersReplyWire::read).collect())
            }
            Self::Lookup { life, total, members, keys } => {
                let entry = |entry: Option<EntryWire<'_>>| entry.map(EntryWire::read).transpose();
                let counts = |(better, before)| KeyCounts { better, before };
                Reply::Lookup {
                    life: life.read(),
                    total,
                    members: members.into_iter().map(entry).collect::<Result<_, _>>()?,
                    keys: keys.into_iter().map(counts).collect(),
                }
            }
            Self::MemberOnBoards(found) => {
                let found_member = |found: Option<FoundWire<'_>>| found.map(FoundWire::read).transpose();
                Reply::MemberOnBoards(found.into_iter().map(found_member).collect::<Result<_, _>>()?)
            }
            Self::BoardsOfMember(boards, next, itself) => {
                let board = |(life, found): (LifeWire<'_>, FoundWire<'_>)| Ok((life.read()?, found.read()?));
                let boards = boards.into_iter().map(board).collect::<Result<_, _>>()?;
                let itself = itself.map(EntryWire::read).transpose()?;
                Reply::BoardsOfMember(BoardsOfMember { boards, next, itself })
            }
            Self::Summary(summary) => Reply::Summary(summary.read()?),
            Self::Rejects(rejects, next) => Reply::Rejects(RejectsReply {
                rejects: rejects.into_iter().map(RejectWire::read).collect::<Result<_, _>>()?,
                next: next.map(|(sequence, index)| (Sequence(sequence), index)),
            }),
            Self::Movement(reply) => Reply::Movement(reply.read()?),
            Self::LastJob(life, micros) => {
                let last = micros.map(Timestamp::from_micros).transpose().map_err(undecodable)?;
                Reply::LastJob(life.read(), last)
            }
            Self::Changed(changed) => Reply::Changed(changed.into_iter().map(Sequence).collect()),
            Self::WithColumns(reply, counts, words) => {
                let Cow::Borrowed(bytes) = reply else { return Err(undecodable("it was not decoded")) };
                let reply = match decode::<ReplyWire<'_>, REPLY_MEMORY_MAX>(bytes)? {
                    Self::WithColumns(..) => return Err(undecodable("columns are replied within others")),
                    reply => Box::new(reply.read()?),
                };
                let counts = counts.into_iter().map(CountsWire::read).collect();
                let words = words.into_iter().map(|words| words.map(|words| words.0)).collect();
                Reply::WithColumns { reply, counts, words }
            }
            Self::Combine(reply) => Reply::Combine(reply.read()?),
            Self::Hidden(bans, more) => {
                let bans = bans.into_iter().map(read_ban).collect::<Result<_, _>>()?;
                Reply::Hidden(HiddenReply { bans, more })
            }
        })
    }
}

fn read_ban((name, member, micros): BanWire<'_>) -> Result<Ban, Undecodable> {
    let scope = if name.is_empty() { None } else { Some(BoardName::new(name).map_err(undecodable)?) };
    let member = MemberId::new(member).map_err(undecodable)?;
    Ok(Ban { scope, member, since: Timestamp::from_micros(micros).map_err(undecodable)? })
}

fn pair(counted: Counted) -> (u64, u64) {
    (counted.before, counted.through)
}

fn counted((before, through): (u64, u64)) -> Counted {
    Counted { before, through }
}

impl CountsWire {
    fn of(counts: &BoardCounts) -> Self {
        let BoardCounts { life, total, hidden, marks } = counts;
        let marks = marks.iter().copied().map(pair).collect();
        Self { life: LifeOnShardWire::of(*life), total: *total, hidden: *hidden, marks }
    }

    fn read(self) -> BoardCounts {
        let Self { life, total, hidden, marks } = self;
        BoardCounts { life: life.read(), total, hidden, marks: marks.into_iter().map(counted).collect() }
    }
}

impl<'a> RunReplyWire<'a> {
    fn of(run: &'a RunReply) -> Self {
        Self {
            life: LifeOnShardWire::of(run.life),
            total: run.total,
            start: run.start,
            remaining: run.remaining,
            at_start: pair(run.at_start),
            better_than_first: run.better_than_first,
            above: run.above.iter().map(EntryWire::of).collect(),
            below: run.below.iter().map(EntryWire::of).collect(),
        }
    }

    fn read(self) -> Result<RunReply, Undecodable> {
        let entries = |entries: Vec<EntryWire<'_>>| entries.into_iter().map(EntryWire::read).collect();
        let (above, below): (Result<_, _>, Result<_, _>) = (entries(self.above), entries(self.below));
        Ok(RunReply {
            life: self.life.read(),
            total: self.total,
            start: self.start,
            remaining: self.remaining,
            at_start: counted(self.at_start),
            better_than_first: self.better_than_first,
            above: above?,
            below: below?,
        })
    }
}

impl<'a> SplittersReplyWire<'a> {
    fn of(reply: &'a SplittersReply) -> Self {
        let splitter =
            |splitter: &'a Splitter| (splitter.index, WordsWire(splitter.words), &*splitter.member);
        Self {
            life: LifeOnShardWire::of(reply.life),
            total: reply.total,
            low: reply.low,
            high: reply.high,
            splitters: reply.splitters.iter().map(splitter).collect(),
        }
    }

    fn read(self) -> SplittersReply {
        let Self { life, total, low, high, splitters } = self;
        let splitter = |(index, words, member): (u64, WordsWire, &[u8])| Splitter {
            index,
            words: words.0,
            member: member.into(),
        };
        let splitters = splitters.into_iter().map(splitter).collect();
        SplittersReply { life: life.read(), total, low, high, splitters }
    }
}

impl MovementWire {
    fn of(reply: &MovementReply) -> Self {
        let MovementReply { life, sequence, time, then, before } = reply;
        Self {
            life: LifeOnShardWire::of(*life),
            sequence: sequence.0,
            time_micros: time.as_micros(),
            then: then.iter().map(|words| words.map(WordsWire)).collect(),
            before: before.clone(),
        }
    }

    fn read(self) -> Result<MovementReply, Undecodable> {
        let Self { life, sequence, time_micros, then, before } = self;
        Ok(MovementReply {
            life: life.read(),
            sequence: Sequence(sequence),
            time: Timestamp::from_micros(time_micros).map_err(undecodable)?,
            then: then.into_iter().map(|words| words.map(|words| words.0)).collect(),
            before,
        })
    }
}

impl<'a> RejectWire<'a> {
    fn of(reject: &'a RejectRecord) -> Self {
        let RejectRecord { sequence, index, code, detail, job, time, .. } = reject;
        let (sequence, index, reason) = (sequence.0, *index, code.name());
        Self { sequence, index, reason, detail, job, time_micros: time.as_micros() }
    }

    fn read(self) -> Result<RejectRecord, Undecodable> {
        let Self { sequence, index, reason, detail, job, time_micros } = self;
        let time = Timestamp::from_micros(time_micros).map_err(undecodable)?;
        let (sequence, code) = (Sequence(sequence), read_code(reason)?);
        let (detail, job) = (detail.to_owned(), job.to_vec());
        Ok(RejectRecord { sequence, index, code, detail, job, time, board: None })
    }
}

impl<'a> EntryWire<'a> {
    fn of(entry: &'a ShardEntry) -> Self {
        Self {
            words: WordsWire(entry.words),
            member: &entry.member,
            updated_at_micros: entry.updated_at.as_micros(),
            version: entry.version,
            metadata: match &entry.metadata {
                EntryMetadata::None => MetadataWire::None,
                EntryMetadata::NotAsked => MetadataWire::NotAsked,
                EntryMetadata::Json(json) => MetadataWire::Json(json),
                // Where it is on this disk says nothing to another node.
                EntryMetadata::OnDisk(_) | EntryMetadata::Unreadable => MetadataWire::Unreadable,
            },
        }
    }

    fn read(self) -> Result<ShardEntry, Undecodable> {
        Ok(ShardEntry {
            words: self.words.0,
            member: self.member.into(),
            updated_at: Timestamp::from_micros(self.updated_at_micros).map_err(undecodable)?,
            version: self.version,
            metadata: match self.metadata {
                MetadataWire::None => EntryMetadata::None,
                MetadataWire::NotAsked => EntryMetadata::NotAsked,
                MetadataWire::Json(json) => EntryMetadata::Json(json.into()),
                MetadataWire::Unreadable => EntryMetadata::Unreadable,
            },
            profile: EntryProfile::NotAsked,
        })
    }
}

impl<'a> FoundWire<'a> {
    fn of(found: &'a FoundMember) -> Self {
        let FoundMember { entry, at_score, index, total, is_hidden } = found;
        let (entry, at_score) = (EntryWire::of(entry), pair(*at_score));
        Self { entry, at_score, index: *index, total: *total, is_hidden: *is_hidden }
    }

    fn read(self) -> Result<FoundMember, Undecodable> {
        let Self { entry, at_score, index, total, is_hidden } = self;
        Ok(FoundMember { entry: entry.read()?, at_score: counted(at_score), index, total, is_hidden })
    }
}
