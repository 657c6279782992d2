//! A page of the rejects of shards on several nodes, newest first: each shard replies its newest ones, and
//! they are merged.
//!
//! Knows: the order of rejects, which is that of `storage::page_of_rejects`, and where each shard's next one
//! is found. Must not know: how a reject is shown.

use std::cmp::Reverse;
use std::collections::VecDeque;

use crate::job::JobPlace;
use crate::query::question::{Question, RejectsQuestion, RejectsReply, Reply};
use crate::query::reject_cursor::RejectFilters;
use crate::query::remote_shards::{ReadError, RemoteShards, ShardUnavailable, unexpected};
use crate::storage::codec::RejectRecord;
use crate::storage::{RejectsBefore, RejectsLimits};
use crate::types::{MemberId, Sequence, ShardId, Timestamp};

/// Before this place are all of a shard's rejects.
const FIRST_PAGE: JobPlace = (Sequence(u64::MAX), u32::MAX);
/// Before this place is none of them.
const END: JobPlace = (Sequence(0), 0);

/// Asks shards for a page of their rejects.
///
/// # Arguments
/// `before`: where the page before ended; `None` for the first one. `limits`: of the page; its bytes are also
/// those of each shard's reply. `visit`: is called with each reject in order, and returns the bytes that it
/// takes.
///
/// Returns where the next page begins; `None` if this is the last one. A page can be short or empty although
/// another one follows.
///
/// # Errors
/// When some shard does not reply that is not left out, or none of them does.
pub async fn page_of_remote_rejects(
    remote: &RemoteShards<'_>,
    filters: &RejectFilters,
    prefixes: Option<&[String]>,
    before: Option<&RejectsBefore>,
    limits: RejectsLimits,
    visit: impl FnMut(ShardId, &RejectRecord) -> usize + Send,
) -> Result<Option<RejectsBefore>, ReadError> {
    let places: Vec<(ShardId, Option<JobPlace>)> = match before {
        Some(RejectsBefore(places)) => places.iter().map(|(shard, place)| (*shard, Some(*place))).collect(),
        None => filters.shards(remote.shard_count()).map(|shard| (shard, None)).collect(),
    };
    let number = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
    let question = |(shard, before): &(ShardId, Option<JobPlace>)| {
        let question = RejectsQuestion {
            before: *before,
            reason: filters.reason,
            member: filters.member.as_ref().map(MemberId::as_str),
            prefixes: prefixes.map(|prefixes| prefixes.iter().map(String::as_str).collect()),
            rejects: number(limits.rejects),
            read: number(limits.read),
            bytes: number(limits.bytes),
        };
        (*shard, Question::Rejects(question))
    };
    let questions: Vec<(ShardId, Question<'_>)> = places.iter().map(question).collect();
    let replies = remote.ask(questions.iter().map(|(shard, question)| (*shard, question))).await?;
    if replies.is_empty() {
        // A page without any of its shards would say nothing.
        let missing = |(shard, _): &(ShardId, _)| ShardUnavailable {
            shard: *shard,
            reason: "no node replies for it".to_owned(),
        };
        return Err(ReadError::Unavailable(places.iter().map(missing).collect()));
    }
    let mut shards = Vec::with_capacity(replies.len());
    for (shard, reply) in replies {
        let Reply::Rejects(RejectsReply { rejects, next }) = reply else { return Err(unexpected(shard)) };
        shards.push(RejectsOfShard { shard, rejects: rejects.into(), next });
    }
    if !merge(&mut shards, limits, visit) {
        return Ok(None);
    }
    let next = |(shard, before): (ShardId, Option<JobPlace>)| {
        let replied = shards.iter().find(|replied| replied.shard == shard);
        // A shard that is missing is on the next page, if it is back by then.
        let place = replied.map_or_else(|| before.unwrap_or(FIRST_PAGE), RejectsOfShard::next_before);
        (shard, place)
    };
    Ok(Some(RejectsBefore(places.into_iter().map(next).collect())))
}

/// What is left of a shard's reply.
struct RejectsOfShard {
    shard: ShardId,
    rejects: VecDeque<RejectRecord>,
    /// The place before which the shard has more than it has replied.
    next: Option<JobPlace>,
}

impl RejectsOfShard {
    /// The greatest comes first.
    fn order(&self) -> (Option<Timestamp>, Reverse<ShardId>) {
        (self.rejects.front().map(|reject| reject.time), Reverse(self.shard))
    }

    fn next_before(&self) -> JobPlace {
        match self.rejects.front() {
            Some(reject) => (reject.sequence, reject.index.saturating_add(1)),
            None => self.next.unwrap_or(END),
        }
    }
}

/// Visits rejects of all shards in order, as far as the limits go and it is known which one is next. Returns
/// whether there are more.
fn merge(
    shards: &mut [RejectsOfShard],
    limits: RejectsLimits,
    mut visit: impl FnMut(ShardId, &RejectRecord) -> usize,
) -> bool {
    let (mut taken, mut bytes) = (0, 0_usize);
    loop {
        // What it has next is not known, and may be newer than what others have.
        if shards.iter().any(|shard| shard.rejects.is_empty() && shard.next.is_some()) {
            return true;
        }
        let newest = shards.iter_mut().filter(|shard| !shard.rejects.is_empty());
        let Some(newest) = newest.max_by_key(|shard| shard.order()) else { return false };
        if taken == limits.rejects || bytes >= limits.bytes {
            return true;
        }
        if let Some(reject) = newest.rejects.pop_front() {
            taken += 1;
            bytes = bytes.saturating_add(visit(newest.shard, &reject));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::RejectCode;

    fn reject(sequence: u64, micros: i64) -> RejectRecord {
        RejectRecord {
            sequence: Sequence(sequence),
            index: 0,
            code: RejectCode::BadScore,
            detail: String::new(),
            job: Vec::new(),
            time: Timestamp::from_micros(micros).expect("in range"),
            board: None,
        }
    }

    fn of_shard(shard: u16, rejects: &[(u64, i64)], next: Option<u64>) -> RejectsOfShard {
        RejectsOfShard {
            shard: ShardId(shard),
            rejects: rejects.iter().map(|(sequence, micros)| reject(*sequence, *micros)).collect(),
            next: next.map(|sequence| (Sequence(sequence), 1)),
        }
    }

    /// The shards of the rejects that are visited, whether there are more, and where each goes on.
    fn merged(mut shards: Vec<RejectsOfShard>, rejects: usize) -> (Vec<u16>, bool, Vec<u64>) {
        let mut visited = Vec::new();
        let limits = RejectsLimits { rejects, read: 9, bytes: 1_000 };
        let more = merge(&mut shards, limits, |shard, _| {
            visited.push(shard.0);
            1
        });
        (visited, more, shards.iter().map(|shard| shard.next_before().0.0).collect())
    }

    #[test]
    fn the_newest_of_all_shards_come_first_and_of_the_same_time_the_lower_shard() {
        let shards = || vec![of_shard(0, &[(9, 50), (8, 30)], None), of_shard(1, &[(7, 50), (2, 40)], None)];
        assert_eq!(merged(shards(), 9), (vec![0, 1, 1, 0], false, vec![0, 0]));
        assert_eq!(merged(shards(), 4), (vec![0, 1, 1, 0], false, vec![0, 0]));
        assert_eq!(merged(shards(), 3), (vec![0, 1, 1], true, vec![8, 0]));
        assert_eq!(merged(shards(), 1), (vec![0], true, vec![8, 7]));
    }

    #[test]
    fn a_page_ends_where_it_is_not_known_what_a_shard_has_next() {
        let shards = vec![of_shard(0, &[(9, 50)], Some(5)), of_shard(1, &[(7, 45), (2, 40)], None)];
        assert_eq!(merged(shards, 9), (vec![0], true, vec![5, 7]));
        // Filters have left out all that one of them has read.
        let shards = vec![of_shard(0, &[], Some(5)), of_shard(1, &[(7, 45)], None)];
        assert_eq!(merged(shards, 9), (vec![], true, vec![5, 7]));
    }
}
