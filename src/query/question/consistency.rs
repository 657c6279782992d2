//! Whether a reply can be one to its question. A faulty or older node must not make a wrong answer that looks
//! right.
//!
//! Knows: what follows from a question and a reply alone: how many entries there have to be, in which order,
//! and which counts cannot be greater than others. Must not know: which node replied.

use crate::job::JobPlace;
use crate::query::question::combine::combined_fits;
use crate::query::question::{
    BoardCounts, BoardLife, Counted, FoundMember, Mark, Question, RejectsQuestion, RejectsReply, Reply,
    RunQuestion, RunReply, RunStart, ShardEntry, SortKey, SplittersQuestion, SplittersReply,
};
use crate::query::summary::SummaryReply;
use crate::state::{Ban, name_of};
use crate::storage::codec::RejectRecord;
use crate::types::count;

/// Whether the reply fits the question and itself.
pub fn is_consistent(question: &Question<'_>, reply: &Reply) -> bool {
    match (question, reply) {
        (Question::Counts(boards), Reply::Counts(counts)) => counts_fit(boards, counts),
        (Question::WithColumns { question, boards }, Reply::WithColumns { reply, counts, words }) => {
            let entries = if question.shows_entries() { entries_in(reply) } else { 0 };
            words.len() == entries * boards.len()
                && counts_fit(boards, counts)
                && is_consistent(question, reply)
        }
        (Question::Runs(_, runs), Reply::Runs(replies)) => {
            let fits = |(run, reply): (&RunQuestion<'_>, &Option<RunReply>)| match reply {
                Some(reply) => run_fits(run, reply),
                None => matches!(run.start, RunStart::Member(_)),
            };
            // All are of one moment, so the shard has the same entries for each.
            let mut totals = replies.iter().flatten().map(|reply| reply.total);
            let first = totals.next();
            runs.len() == replies.len()
                && totals.all(|total| Some(total) == first)
                && runs.iter().zip(replies).all(fits)
        }
        (Question::Splitters(_, questions), Reply::Splitters(replies)) => {
            let fits = |(question, reply): (&SplittersQuestion<'_>, _)| splitters_fit(question, reply);
            questions.len() == replies.len() && questions.iter().zip(replies).all(fits)
        }
        (
            Question::Lookup { members, keys, .. },
            Reply::Lookup { total, members: found, keys: counts, .. },
        ) => {
            let is_it = |(asked, found): (&&str, &Option<ShardEntry>)| {
                found.as_ref().is_none_or(|found| *found.member == *asked.as_bytes())
            };
            members.len() == found.len()
                && members.iter().zip(found).all(is_it)
                && keys.len() == counts.len()
                && counts.iter().all(|at| at.better <= at.before && at.before <= *total)
        }
        (Question::MemberOnBoards { member, boards, .. }, Reply::MemberOnBoards(found)) => {
            boards.len() == found.len() && found.iter().flatten().all(|found| member_fits(member, found))
        }
        (Question::BoardsOfMember { member, limit, .. }, Reply::BoardsOfMember(found)) => {
            count(found.boards.len()) <= u64::from(*limit)
                && found.boards.iter().all(|(_, found)| member_fits(member, found))
                && found.itself.as_ref().is_none_or(|entry| *entry.member == *member.as_bytes())
        }
        (Question::Rejects(question), Reply::Rejects(reply)) => rejects_fit(question, reply),
        (Question::Movement { members, keys, .. }, Reply::Movement(reply)) => {
            members.len() == reply.then.len() && keys.len() == reply.before.len()
        }
        (Question::Summary { known, .. }, Reply::Summary(reply)) => match reply {
            SummaryReply::Made(summary) => summary.is_consistent(),
            SummaryReply::Unchanged => known.is_some(),
            SummaryReply::Over => true,
        },
        (Question::Hidden(asked), Reply::Hidden(reply)) => {
            let limit = usize::try_from(asked.limit).unwrap_or(usize::MAX);
            let place = |ban: &Ban| (name_of(&ban.scope).to_owned(), ban.member.clone());
            let after = asked.after.as_ref().map(|(name, member)| ((*name).to_owned(), member.clone()));
            reply.bans.len() <= limit
                && (!reply.more || reply.bans.len() == limit)
                && reply.bans.is_sorted_by(|a, b| place(a) < place(b))
                && reply.bans.first().is_none_or(|first| Some(place(first)) > after)
        }
        (Question::LastJob(_), Reply::LastJob(..)) => true,
        (Question::Combine(asked), Reply::Combine(reply)) => combined_fits(asked, reply),
        (Question::Changed(boards), Reply::Changed(changed)) => boards.len() == changed.len(),
        _ => false,
    }
}

fn counts_fit(boards: &[(BoardLife, Vec<Mark<'_>>)], counts: &[BoardCounts]) -> bool {
    let fits = |((_, marks), counts): (&(_, Vec<_>), &BoardCounts)| {
        marks.len() == counts.marks.len() && counts.marks.iter().all(|at| is_within(at, counts.total))
    };
    boards.len() == counts.len() && boards.iter().zip(counts).all(fits)
}

/// The entries of a reply to a question that may have columns.
fn entries_in(reply: &Reply) -> usize {
    match reply {
        Reply::Runs(runs) => runs.iter().flatten().map(|run| run.above.len() + run.below.len()).sum(),
        Reply::Lookup { members, .. } => members.iter().flatten().count(),
        _ => 0,
    }
}

/// Whoever reads all pages must come to an end: each reply goes on from where the one before ended.
fn rejects_fit(question: &RejectsQuestion<'_>, reply: &RejectsReply) -> bool {
    let RejectsReply { rejects, next } = reply;
    let is_wanted = |reject: &RejectRecord| question.reason.is_none_or(|reason| reason == reject.code);
    let place = |reject: &RejectRecord| (reject.sequence, reject.index);
    let is_before = |place: JobPlace| question.before.is_none_or(|before| place < before);
    let is_after_these = |next: JobPlace| match rejects.last() {
        Some(last) => next <= place(last),
        None => is_before(next),
    };
    count(rejects.len()) <= u64::from(question.rejects)
        && rejects.iter().all(is_wanted)
        && rejects.first().is_none_or(|first| is_before(place(first)))
        && rejects.is_sorted_by(|a, b| place(a) > place(b))
        && next.is_none_or(is_after_these)
}

fn is_within(at: &Counted, total: u64) -> bool {
    at.before <= at.through && at.through <= total
}

fn member_fits(asked: &str, found: &FoundMember) -> bool {
    let FoundMember { entry, at_score, index, total, is_hidden: _ } = found;
    *entry.member == *asked.as_bytes()
        && is_within(at_score, *total)
        && at_score.before <= *index
        && *index < at_score.through
}

/// A run is exactly as long as was asked for, unless the shard begins or ends before: what is worked out from
/// a run depends on that.
fn run_fits(question: &RunQuestion<'_>, reply: &RunReply) -> bool {
    let RunReply { life: _, total, start, remaining, at_start, better_than_first, above, below } = reply;
    let Some(behind) = total.checked_sub(*start) else { return false };
    let first = match question.start {
        RunStart::Member(member) => below.first().is_some_and(|entry| *entry.member == *member.as_bytes()),
        _ => true,
    };
    first
        && *remaining <= behind
        && count(above.len()) == u64::from(question.above).min(*start)
        && count(below.len()) == u64::from(question.below).min(behind)
        && is_within(at_start, *total)
        && *better_than_first <= *start
        && is_ascending(above.iter().rev().chain(below).map(ShardEntry::key))
}

fn splitters_fit(question: &SplittersQuestion<'_>, reply: &SplittersReply) -> bool {
    let SplittersReply { life: _, total, low, high, splitters } = reply;
    // The evenly spaced ones, five near the place, and the two ends.
    let most = usize::from(question.even) + 7;
    let is_between = |index: u64| (*low..*high).contains(&index);
    low <= high
        && high <= total
        && splitters.len() <= most
        && splitters.iter().all(|splitter| is_between(splitter.index))
        && splitters.is_sorted_by(|a, b| a.index < b.index)
        && is_ascending(splitters.iter().map(super::Splitter::key))
}

fn is_ascending<'a>(keys: impl Iterator<Item = SortKey<'a>>) -> bool {
    keys.is_sorted_by(|a, b| a < b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::RejectCode;
    use crate::query::question::{BoardLife, EntryMetadata, EntryProfile, Mark};
    use crate::state::Incarnation;
    use crate::tree::Words;
    use crate::types::{BoardName, Sequence, Timestamp};

    fn life() -> BoardLife {
        BoardLife { board: BoardName::new("b").expect("a good name"), incarnation: Incarnation(1) }
    }

    fn entry(word: u64) -> ShardEntry {
        ShardEntry {
            words: Words::from_slice(&[word, 0]),
            member: format!("m{word}").into_bytes().into(),
            updated_at: Timestamp::default(),
            version: None,
            metadata: EntryMetadata::None,
            profile: EntryProfile::NotAsked,
        }
    }

    #[test]
    fn a_run_that_is_shorter_or_longer_than_asked_or_out_of_order_is_no_reply() {
        let run = RunQuestion { start: RunStart::Top, worst: None, above: 2, below: 3, metadata: false };
        let question = Question::Runs(life(), vec![run]);
        let good = RunReply {
            total: 9,
            start: 1,
            remaining: 8,
            better_than_first: 0,
            above: vec![entry(1)],
            below: vec![entry(2), entry(3), entry(4)],
            ..RunReply::default()
        };
        let fits = |reply: &RunReply| is_consistent(&question, &Reply::Runs(vec![Some(reply.clone())]));
        assert!(fits(&good));
        let spoil: [fn(&mut RunReply); 8] = [
            |reply| reply.start = 10,
            |reply| reply.remaining = 9,
            |reply| drop(reply.below.pop()),
            |reply| reply.below.push(entry(5)),
            |reply| reply.below.swap(0, 1),
            |reply| reply.above.clear(),
            |reply| reply.better_than_first = 2,
            |reply| reply.at_start = Counted { before: 2, through: 1 },
        ];
        for (nth, spoil) in spoil.iter().enumerate() {
            let mut reply = good.clone();
            spoil(&mut reply);
            assert!(!fits(&reply), "{nth}");
        }
        assert!(!is_consistent(&question, &Reply::Runs(vec![None])), "only a member may be missing");
        assert!(!is_consistent(&question, &Reply::Runs(Vec::new())), "one for each question");
        assert!(!is_consistent(&question, &Reply::Counts(Vec::new())));
    }

    #[test]
    fn a_reply_has_words_of_all_its_entries_on_all_boards() {
        let run = |metadata| RunQuestion { start: RunStart::Top, worst: None, above: 0, below: 2, metadata };
        let mark = Mark::Score(Words::from_slice(&[1]));
        let question = |metadata| Question::WithColumns {
            question: Box::new(Question::Runs(life(), vec![run(metadata)])),
            boards: vec![(life(), vec![mark]), (life(), Vec::new())],
        };
        let at = |marks: usize| BoardCounts {
            total: 2,
            marks: vec![Counted::default(); marks],
            ..BoardCounts::default()
        };
        let run = RunReply { total: 2, remaining: 2, below: vec![entry(2), entry(3)], ..RunReply::default() };
        let fits = |metadata, words: usize, counts: Vec<BoardCounts>| {
            let reply = Box::new(Reply::Runs(vec![Some(run.clone())]));
            is_consistent(
                &question(metadata),
                &Reply::WithColumns { reply, counts, words: vec![None; words] },
            )
        };
        let counts = || vec![at(1), at(0)];
        assert!(fits(true, 4, counts()) && fits(false, 0, counts()));
        assert!(!fits(true, 3, counts()) && !fits(true, 5, counts()) && !fits(false, 4, counts()));
        assert!(!fits(true, 4, vec![at(1)]) && !fits(true, 4, vec![at(1), at(1)]));
        assert!(!is_consistent(&question(true), &Reply::Runs(vec![Some(run.clone())])));
    }

    #[test]
    fn rejects_that_do_not_go_on_from_the_page_before_are_no_reply() {
        let reject = |sequence: u64, index: u32| RejectRecord {
            sequence: Sequence(sequence),
            index,
            code: RejectCode::BadScore,
            detail: String::new(),
            job: Vec::new(),
            time: Timestamp::default(),
            board: None,
        };
        let place = |sequence: u64, index: u32| (Sequence(sequence), index);
        let question = |before, reason| {
            let (member, prefixes, rejects, read, bytes) = (None, None, 2, 9, 1_000);
            Question::Rejects(RejectsQuestion { before, reason, member, prefixes, rejects, read, bytes })
        };
        let asked = question(Some(place(9, 1)), Some(RejectCode::BadScore));
        let fits = |question: &Question<'_>, rejects: Vec<RejectRecord>, next| {
            is_consistent(question, &Reply::Rejects(RejectsReply { rejects, next }))
        };
        let two = || vec![reject(9, 0), reject(7, 3)];
        assert!(fits(&asked, two(), Some(place(7, 3))) && fits(&asked, two(), None));
        assert!(fits(&asked, Vec::new(), Some(place(5, 0))), "filters have left out what was read");
        assert!(fits(&question(None, None), two(), Some(place(7, 3))));
        assert!(!fits(&asked, two(), Some(place(7, 4))), "it would come again");
        assert!(!fits(&asked, Vec::new(), Some(place(9, 1))), "it would never end");
        assert!(!fits(&asked, vec![reject(9, 1)], None), "it was on the page before");
        assert!(!fits(&asked, vec![reject(7, 3), reject(9, 0)], None), "the newest comes first");
        assert!(!fits(&asked, vec![reject(9, 0), reject(8, 0), reject(7, 3)], None), "two were asked for");
        let other = question(None, Some(RejectCode::Overflow));
        assert!(!fits(&other, two(), None), "another reason was asked for");
    }

    #[test]
    fn counts_that_cannot_be_are_no_reply() {
        let question = Question::Counts(vec![(life(), vec![Mark::Score(Words::from_slice(&[1]))])]);
        let reply = |before, through| {
            let marks = vec![Counted { before, through }];
            Reply::Counts(vec![BoardCounts { total: 5, marks, ..BoardCounts::default() }])
        };
        assert!(is_consistent(&question, &reply(2, 5)));
        assert!(!is_consistent(&question, &reply(3, 2)) && !is_consistent(&question, &reply(2, 6)));
        assert!(!is_consistent(&question, &Reply::Counts(Vec::new())));
    }
}
