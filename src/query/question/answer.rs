//! A shard's reply to a question, from its state in memory.
//!
//! Knows: one shard at one applied sequence. Must not know: the other shards, or the disk: metadata is marked
//! as being there.

use std::sync::Arc;

use crate::board::Definition;
use crate::query::combine::on_shard::combine;
use crate::query::instance::{InstanceAsked, WindowChoice};
use crate::query::question::columns::words_on_boards;
use crate::query::question::{
    BoardCounts, BoardLife, BoardsOfMember, Counted, EntryMetadata, EntryProfile, FoundMember,
    HiddenQuestion, HiddenReply, LifeOnShard, Mark, MovementReply, Question, RejectsReply, Reply,
    RunQuestion, RunReply, ShardEntry, SortKey, Splitter, SplittersQuestion, SplittersReply, life_of,
};
use crate::query::shard_board::ShardBoard;
use crate::query::shard_run::ShardRun;
use crate::query::summary::{SummaryReply, SummarySizes, summarize};
use crate::state::{Ban, BanScope, BansAsked, EntryState, MemberBans, Shard, TreeId, WindowTree, name_of};
use crate::tree::{Handle, Standing, Tree, Words};
use crate::types::{BoardName, MemberId, Sequence, Timestamp};
use crate::window::{Instance, MovementPart};

/// Boards that are looked at for one reply: many of them may be dropped ones.
const LOOKED_AT_MAX: usize = if cfg!(test) { 5 } else { 2_000 };

/// Answers a question. Its limits were checked ([`super::check`]).
pub fn answer(shard: &Shard, question: &Question<'_>) -> Reply {
    match question {
        Question::Counts(boards) => {
            Reply::Counts(boards.iter().map(|(board, marks)| counts_on(shard, board, marks)).collect())
        }
        Question::Runs(board, runs) => {
            let (life, shard_board) = (life_of(shard, board), ShardBoard::of_life(shard, board));
            let reply =
                |run: &RunQuestion<'_>| run_reply(&shard_board, run).map(|reply| RunReply { life, ..reply });
            Reply::Runs(runs.iter().map(reply).collect())
        }
        Question::Splitters(board, splitters) => {
            let (life, shard_board) = (life_of(shard, board), ShardBoard::of_life(shard, board));
            let reply = |question| SplittersReply { life, ..splitters_of(&shard_board, question) };
            Reply::Splitters(splitters.iter().map(reply).collect())
        }
        Question::Lookup { board, members, keys, metadata } => {
            let shard_board = ShardBoard::of_life(shard, board);
            let keys = shard_board.counts_at_keys(keys);
            let mut members = entries_of_members(&shard_board, members);
            if !metadata {
                members.iter_mut().flatten().for_each(leave_metadata_out);
            }
            Reply::Lookup { life: life_of(shard, board), total: shard_board.total(), members, keys }
        }
        Question::MemberOnBoards { member, boards, hidden } => Reply::MemberOnBoards(
            boards
                .iter()
                .map(|board| found_member(&ShardBoard::of_life(shard, board), member.as_bytes(), *hidden))
                .collect(),
        ),
        Question::BoardsOfMember { member, after, limit, prefixes, instance, hidden } => {
            let prefixes = prefixes.as_deref();
            let (after, limit) = (*after, *limit);
            Reply::BoardsOfMember(boards_of_member(shard, member, after, limit, prefixes, *instance, *hidden))
        }
        Question::Hidden(asked) => Reply::Hidden(bans_of(shard, asked)),
        Question::Combine(asked) => Reply::Combine(combine(shard, asked)),
        // None of them is in memory: `AnsweringShard` reads them from the disk.
        Question::Rejects(_) => Reply::Rejects(RejectsReply::default()),
        Question::Movement { since, members, keys } => {
            Reply::Movement(movement_of(shard, since, members, keys))
        }
        // `AnsweringShard` makes them once for all who ask.
        Question::Summary { board, .. } => Reply::Summary(match life_of(shard, board) {
            LifeOnShard::Over => SummaryReply::Over,
            LifeOnShard::NotYet | LifeOnShard::Here => {
                SummaryReply::Made(Arc::new(summarize(shard, board, &SummarySizes::SERVICE)))
            }
        }),
        Question::WithColumns { question, boards } => {
            let mut reply = answer(shard, question);
            let mut members: Vec<Box<[u8]>> = Vec::new();
            if question.shows_entries() {
                reply.each_entry(&mut |entry| members.push(entry.member.clone()));
            }
            let lives: Vec<&BoardLife> = boards.iter().map(|(life, _)| life).collect();
            let words = words_on_boards(shard, &lives, &members);
            let counts = boards.iter().map(|(board, marks)| counts_on(shard, board, marks)).collect();
            Reply::WithColumns { reply: Box::new(reply), counts, words }
        }
        Question::LastJob(life) => {
            let (life, last) = last_job_of(shard, life);
            Reply::LastJob(life, last)
        }
        Question::Changed(boards) => {
            let changed = |life| {
                let tree = ShardBoard::of_life(shard, life).window;
                tree.map_or(Sequence::default(), |(_, tree)| shard.changed(tree))
            };
            Reply::Changed(boards.iter().map(changed).collect())
        }
    }
}

/// When a board had its last job on a shard, if it ends after a quiet time.
pub fn last_job_of(shard: &Shard, life: &BoardLife) -> (LifeOnShard, Option<Timestamp>) {
    let of_life = life_of(shard, life);
    let last = shard.last_jobs().get(life.board.as_str()).filter(|_| of_life == LifeOnShard::Here);
    (of_life, last)
}

/// Marks the entries of a reply whose profiles are wanted: those of which everything is.
pub fn ask_for_profiles(question: &Question<'_>, reply: &mut Reply) {
    match (question, &mut *reply) {
        (Question::Runs(_, asked), Reply::Runs(runs)) => {
            let wanted = asked.iter().zip(runs).filter(|(asked, _)| asked.metadata);
            for run in wanted.filter_map(|(_, run)| run.as_mut()) {
                run.above.iter_mut().chain(&mut run.below).for_each(ask_for_profile);
            }
        }
        (Question::Lookup { metadata: false, .. }, _) => {}
        (Question::WithColumns { question, .. }, Reply::WithColumns { reply, .. }) => {
            ask_for_profiles(question, reply);
        }
        _ => reply.each_entry(&mut ask_for_profile),
    }
}

fn ask_for_profile(entry: &mut ShardEntry) {
    entry.profile = EntryProfile::OnDisk;
}

fn leave_metadata_out(entry: &mut ShardEntry) {
    if entry.metadata != EntryMetadata::None {
        entry.metadata = EntryMetadata::NotAsked;
    }
}

fn counts_on(shard: &Shard, board: &BoardLife, marks: &[Mark<'_>]) -> BoardCounts {
    BoardCounts { life: life_of(shard, board), ..counts_of(&ShardBoard::of_life(shard, board), marks) }
}

/// A board's counts on a shard.
pub fn counts_of(shard_board: &ShardBoard<'_>, marks: &[Mark<'_>]) -> BoardCounts {
    let hidden = shard_board.window.map_or(0, |(_, window)| crate::types::count(window.hidden_count()));
    BoardCounts {
        life: LifeOnShard::default(),
        total: shard_board.total(),
        hidden,
        marks: shard_board.counted_at_all(marks),
    }
}

fn run_reply(shard_board: &ShardBoard<'_>, question: &RunQuestion<'_>) -> Option<RunReply> {
    let run = ShardRun::in_memory(*shard_board, question)?;
    let definition = shard_board.window.map(|(_, window)| &*window.definition);
    let take = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
    let mut below = Vec::new();
    let mut above = Vec::new();
    let mut better_than_first = run.start();
    if let Some(definition) = definition {
        let entry = |(handle, _): (Handle, _)| entry_of(shard_board, handle);
        let mut cursor = shard_board.window.map(|(_, window)| window.tree.cursor_at(run.start()));
        if let Some(cursor) = &mut cursor {
            below = cursor.by_ref().take(take(question.below)).filter_map(entry).collect();
        }
        let mut cursor = shard_board.window.map(|(_, window)| window.tree.cursor_at(run.start()));
        if let Some(cursor) = &mut cursor {
            above =
                std::iter::from_fn(|| cursor.prev()).take(take(question.above)).filter_map(entry).collect();
        }
        if let Some(first) = above.last().or(below.first()) {
            better_than_first = run.better(score_words(definition, &first.words));
        }
    }
    if !question.metadata {
        above.iter_mut().chain(&mut below).for_each(leave_metadata_out);
    }
    Some(RunReply {
        life: LifeOnShard::default(),
        total: shard_board.total(),
        start: run.start(),
        remaining: run.remaining(),
        at_start: run.at_start(),
        better_than_first,
        above,
        below,
    })
}

fn score_words<'w>(definition: &Definition, words: &'w crate::tree::Words) -> &'w [u64] {
    let words = words.as_slice();
    words.get(..definition.keys.len()).unwrap_or(words)
}

/// An entry as a reply has it.
fn entry_of(shard_board: &ShardBoard<'_>, handle: Handle) -> Option<ShardEntry> {
    let (tree, window) = shard_board.window?;
    let words = window.tree.get(handle)?;
    Some(shard_entry(tree, window, handle, words, shard_board.shard.members.id(handle)))
}

fn shard_entry(
    tree: TreeId,
    window: &WindowTree,
    handle: Handle,
    words: crate::tree::Words,
    member: &[u8],
) -> ShardEntry {
    let extra = window.extra(handle);
    let on_disk = extra.as_ref().is_some_and(|extra| extra.has_metadata);
    let reached_at = window.definition.reached_at(words.as_slice());
    ShardEntry {
        words,
        member: member.into(),
        version: extra.as_ref().and_then(|extra| extra.version),
        updated_at: extra.map_or_else(|| reached_at.unwrap_or_default(), |extra| extra.updated_at),
        metadata: if on_disk { EntryMetadata::OnDisk(tree) } else { EntryMetadata::None },
        profile: EntryProfile::NotAsked,
    }
}

/// Members of this shard, without counts.
fn entries_of_members(shard_board: &ShardBoard<'_>, members: &[&str]) -> Vec<Option<ShardEntry>> {
    let mut entries = Vec::with_capacity(members.len());
    shard_board.each_handle(members, Tree::prefetch_entry, |handle| {
        entries.push(handle.and_then(|handle| entry_of(shard_board, handle)));
    });
    entries
}

/// How `all` of a board was when an instance of another window began. What has changed since is kept; all
/// else is as it was.
pub fn movement_of(
    shard: &Shard,
    since: &BoardLife,
    members: &[&str],
    keys: &[SortKey<'_>],
) -> MovementReply {
    let (board, incarnation) = (since.board.board(), since.incarnation);
    let life = life_of(shard, &BoardLife { board: board.clone(), incarnation });
    let of = |name: &BoardName| ShardBoard::of(shard, name.as_str(), incarnation);
    let kept = |part: MovementPart| {
        let instance = Instance::of_name_on_shards(&since.board)?;
        Some(of(&part.name_on_shards(instance, &board)))
    };
    let (all, then, now) = (of(&board), kept(MovementPart::Then), kept(MovementPart::Now));
    let words = |part: &ShardBoard<'_>, handle| part.window.and_then(|(_, window)| window.tree.get(handle));
    let words_then = |member: &&str| {
        let handle = shard.members.get(member.as_bytes())?;
        let changed = then.and_then(|then| words(&then, handle));
        let has_come = || now.is_some_and(|now| words(&now, handle).is_some());
        changed.or_else(|| if has_come() { None } else { words(&all, handle) })
    };
    let before = |key: &SortKey<'_>| {
        let of_part = |part: Option<ShardBoard<'_>>| part.map_or(0, |part| part.before(key));
        // Those that have not changed since, and those that have, as they were.
        all.before(key).saturating_sub(of_part(now)) + of_part(then)
    };
    MovementReply {
        life,
        sequence: shard.applied.sequence,
        time: shard.time,
        then: members.iter().map(words_then).collect(),
        before: keys.iter().map(before).collect(),
    }
}

/// A member of this shard, with its counts on it.
pub fn found_member(shard_board: &ShardBoard<'_>, member: &[u8], hidden: bool) -> Option<FoundMember> {
    let handle = shard_board.shard.members.get(member)?;
    found_at(shard_board, handle).or_else(|| hidden_at(shard_board, handle).filter(|_| hidden))
}

/// A hidden entry, as it would stand if it were listed.
fn hidden_at(shard_board: &ShardBoard<'_>, handle: Handle) -> Option<FoundMember> {
    let (tree, window) = shard_board.window?;
    let EntryState::Hidden(words) = window.entry(handle)?.state else { return None };
    let member = shard_board.shard.members.id(handle);
    let at_score = shard_board.at_score(score_words(&window.definition, &words));
    Some(FoundMember {
        entry: shard_entry(tree, window, handle, words, member),
        at_score: Counted { before: at_score.before, through: at_score.through + 1 },
        index: shard_board.before(&SortKey { words, member }),
        total: window.total() + 1,
        is_hidden: true,
    })
}

/// The bans of a shard that are asked for.
pub fn bans_of(shard: &Shard, asked: &HiddenQuestion<'_>) -> HiddenReply {
    let limit = usize::try_from(asked.limit).unwrap_or(usize::MAX);
    if let Some(member) = &asked.member {
        return bans_of_member(shard, member, asked, limit);
    }
    let wanted = match (&asked.board, &asked.prefixes) {
        (Some(board), None) => BansAsked::On(board),
        // Who may see some boards only is not told of all boards.
        (Some(board), Some(_)) => BansAsked::Only(board),
        (None, Some(prefixes)) => BansAsked::WithPrefixes(prefixes),
        (None, None) => BansAsked::All,
    };
    let after = asked.after.as_ref().map(|(name, member)| (*name, member));
    let (bans, more) = shard.bans().list(wanted, after, limit);
    HiddenReply { bans, more }
}

/// The same of one member, who has few.
fn bans_of_member(shard: &Shard, member: &MemberId, asked: &HiddenQuestion<'_>, limit: usize) -> HiddenReply {
    let is_wanted = |scope: &BanScope| match (scope, &asked.board) {
        // Who may see some boards only is not told of all boards.
        (None, _) => asked.prefixes.is_none(),
        (Some(scope), Some(board)) => scope == board,
        (Some(scope), None) => {
            let begins = |prefix: &&str| scope.as_str().starts_with(*prefix);
            asked.prefixes.as_ref().is_none_or(|prefixes| prefixes.iter().any(begins))
        }
    };
    let after = asked.after.as_ref().map(|(name, member)| (*name, member));
    let of_member = shard.bans().of_member(member).into_iter().flat_map(MemberBans::iter);
    let mut bans: Vec<Ban> = of_member
        .filter(|(scope, _)| is_wanted(scope) && Some((name_of(scope), member)) > after)
        .map(|(scope, record)| Ban { scope: scope.clone(), member: member.clone(), since: record.since })
        .collect();
    bans.sort_by(|a, b| name_of(&a.scope).cmp(name_of(&b.scope)));
    let more = bans.len() > limit;
    bans.truncate(limit);
    HiddenReply { bans, more }
}

fn found_at(shard_board: &ShardBoard<'_>, handle: Handle) -> Option<FoundMember> {
    let (tree, window) = shard_board.window?;
    let Standing { words, index, better, through } =
        window.tree.standing(handle, window.definition.keys.len())?;
    let member = shard_board.shard.members.id(handle);
    Some(FoundMember {
        entry: shard_entry(tree, window, handle, words, member),
        at_score: Counted { before: better, through },
        index,
        total: window.total(),
        is_hidden: false,
    })
}

/// Evenly spaced splitters, and five around the expected position: at it, and one and four standard
/// deviations before and after it. The estimate assumes that members are spread over shards by hash.
pub fn splitters_of(shard_board: &ShardBoard<'_>, question: &SplittersQuestion<'_>) -> SplittersReply {
    let total = shard_board.total();
    let low = question.low.map_or(0, |key| shard_board.through(&key));
    let high = question.high.map_or(total, |key| shard_board.before(&key)).max(low);
    let span = high - low;
    let mut splitters = Vec::new();
    if let Some((_, window)) = shard_board.window
        && span > 0
    {
        let even = u64::from(question.even);
        let mut offsets: Vec<u64> = (1..=even).map(|step| scale(span, step, even + 1)).collect();
        if let Some(near) = question.near {
            let expected = scale(span, u64::from(near), 1_000_000);
            let deviation = span.isqrt() / 2 + 1;
            offsets.extend([4 * deviation, deviation, 0].map(|below| expected.saturating_sub(below)));
            offsets.extend([deviation, 4 * deviation].map(|above| expected + above));
        }
        if question.ends {
            offsets.extend([0, span - 1]);
        }
        offsets.sort_unstable();
        offsets.dedup();
        for offset in offsets.into_iter().filter(|offset| *offset < span) {
            let at = low + offset;
            if let Some((handle, words)) = window.tree.select(at) {
                splitters.push(Splitter {
                    index: at,
                    words,
                    member: shard_board.shard.members.id(handle).into(),
                });
            }
        }
    }
    SplittersReply { life: LifeOnShard::default(), total, low, high, splitters }
}

/// `value * numerator / denominator`, in 128 bits.
fn scale(value: u64, numerator: u64, denominator: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(numerator) / u128::from(denominator.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// The boards that list a member, or hide it if those are wanted too, in the order in which boards came,
/// each by one of its instances.
pub fn boards_of_member(
    shard: &Shard,
    member: &str,
    after: Option<u32>,
    limit: u32,
    prefixes: Option<&[&str]>,
    instance: InstanceAsked,
    hidden: bool,
) -> BoardsOfMember {
    let is_wanted = |tree: &&WindowTree| {
        let board = tree.board.split().0;
        prefixes.is_none_or(|prefixes| prefixes.iter().any(|prefix| board.starts_with(prefix)))
            && shard.board(board).is_some_and(|board| {
                let found = Instance::of_name_on_shards(&tree.board);
                found.is_some_and(|found| match instance.choice {
                    WindowChoice::Every => {
                        let choice = WindowChoice::Named(found);
                        InstanceAsked { choice, ..instance }.of(&board.definition).is_ok()
                    }
                    _ => instance.of(&board.definition) == Ok(found),
                })
            })
    };
    let (mut boards, mut next) = (Vec::new(), None);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if let Some(handle) = shard.members.get(member.as_bytes()) {
        let mut last = after;
        for (looked_at, tree) in shard.members.trees_after(handle, after.map(TreeId)).enumerate() {
            if boards.len() == limit || looked_at == LOOKED_AT_MAX {
                next = last;
                break;
            }
            last = Some(tree.0);
            // Trees of dropped boards count as well: until they have released the member, there may be any
            // number.
            let Some(window) = shard.tree(tree).filter(is_wanted) else { continue };
            let Some(board) = shard.board(window.board.as_str()).filter(|board| board.all == tree) else {
                continue;
            };
            let life = BoardLife { board: window.board.clone(), incarnation: board.incarnation };
            let shard_board = ShardBoard { shard, window: Some((tree, window)) };
            let found =
                found_at(&shard_board, handle).or_else(|| hidden_at(&shard_board, handle).filter(|_| hidden));
            boards.extend(found.map(|found| (life, found)));
        }
    }
    let itself = ShardEntry {
        words: Words::from_slice(&[0]),
        member: member.as_bytes().into(),
        updated_at: Timestamp::default(),
        version: None,
        metadata: EntryMetadata::None,
        profile: EntryProfile::NotAsked,
    };
    BoardsOfMember { boards, next, itself: Some(itself) }
}
