//! The cursor of a page of rejects, as opaque text.
//!
//! It holds a place for each shard that the page is of, so that the next page neither skips nor repeats
//! anything, and costs as much as the first one. What was rejected after the first page is not in those that
//! follow it.

use std::fmt::Write as _;

use crate::job::RejectCode;
use crate::storage::RejectsBefore;
use crate::types::{MemberId, Sequence, ShardId, fnv1a_32};
use crate::wire::members_named;

/// The first digits of every cursor: another form would have others.
const FORM: &str = "1";
/// Of a shard: what separates it from the one before, and 16 and 8 digits at most, with a dot between.
const DIGITS_MAX: usize = 26;
const HEAD_MAX: usize = 16;

/// Which rejects are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RejectFilters {
    /// `None`: of every shard.
    pub shard: Option<ShardId>,
    /// `None`: for any reason.
    pub reason: Option<RejectCode>,
    /// `None`: of every member.
    pub member: Option<MemberId>,
}

/// Whether a rejected job is one of a member's, or may be: those that an erasure of the member reaches.
pub fn is_reject_of(member: &str, job: &[u8]) -> bool {
    members_named(job).contains(member)
}

impl RejectFilters {
    /// The shards asked for, of so many.
    pub fn shards(&self, count: u16) -> impl Iterator<Item = ShardId> + use<> {
        let only = self.shard;
        (0..count).map(ShardId).filter(move |shard| only.is_none_or(|only| only == *shard))
    }

    /// A hash of the filters, by which a cursor of other filters is refused.
    fn mark(&self) -> u32 {
        let shard = self.shard.map(|shard| shard.to_string()).unwrap_or_default();
        let reason = self.reason.map(RejectCode::name).unwrap_or_default();
        let member = self.member.as_ref().map(MemberId::as_str).unwrap_or_default();
        fnv1a_32(format!("{shard}/{reason}/{member}").as_bytes())
    }

    /// The text for the next page: letters, digits, dots and dashes, which need no escaping in a URL.
    pub fn cursor(&self, before: &RejectsBefore) -> String {
        let mut text = format!("{FORM}-{:x}", self.mark());
        for (_, (sequence, index)) in &before.0 {
            // Writing to a string cannot fail.
            let _ = write!(text, "-{:x}.{index:x}", sequence.0);
        }
        text
    }

    /// Reads what [`RejectFilters::cursor`] wrote for the same filters and shards; `None` for anything else.
    ///
    /// # Arguments
    /// `shards`: those that the page is of.
    pub fn read_cursor(&self, text: &str, shards: &[ShardId]) -> Option<RejectsBefore> {
        if text.len() > HEAD_MAX + shards.len() * DIGITS_MAX {
            return None;
        }
        let mut shard_boards = text.split('-');
        if shard_boards.next()? != FORM || hex(shard_boards.next()?)? != u64::from(self.mark()) {
            return None;
        }
        let mut before = Vec::new();
        for shard in shards {
            let (sequence, index) = shard_boards.next()?.split_once('.')?;
            before.push((*shard, (Sequence(hex(sequence)?), u32::try_from(hex(index)?).ok()?)));
        }
        shard_boards.next().is_none().then_some(RejectsBefore(before))
    }
}

fn hex(digits: &str) -> Option<u64> {
    let are_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    are_digits.then(|| u64::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn before(places: &[(u16, u64, u32)]) -> RejectsBefore {
        let place =
            |(shard, sequence, index): &(u16, u64, u32)| (ShardId(*shard), (Sequence(*sequence), *index));
        RejectsBefore(places.iter().map(place).collect())
    }

    /// Reads a cursor where there are so many shards.
    fn read(filters: &RejectFilters, text: &str, count: u16) -> Option<RejectsBefore> {
        let shards: Vec<ShardId> = filters.shards(count).collect();
        filters.read_cursor(text, &shards)
    }

    #[test]
    fn a_cursor_reads_back_for_the_same_filters_only() {
        let all = RejectFilters::default();
        let one = RejectFilters { shard: Some(ShardId(1)), ..all.clone() };
        let reason = RejectFilters { reason: Some(RejectCode::BadScore), ..all.clone() };
        let both = RejectFilters { reason: reason.reason, ..one.clone() };
        let member = RejectFilters { member: MemberId::new("p42").ok(), ..all.clone() };
        let two = before(&[(0, 0, 0), (1, u64::MAX, u32::MAX)]);
        let second = before(&[(1, 7, 2)]);
        let filters = [all, one, reason, both, member];
        for (at, places) in [(0, &two), (1, &second), (2, &two), (3, &second), (4, &two)] {
            let text = filters[at].cursor(places);
            assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte)), "{text}");
            for (other, filters) in filters.iter().enumerate() {
                let expected = (other == at).then(|| places.clone());
                assert_eq!(read(filters, &text, 2), expected, "{text} of {at} by {other}");
            }
            assert_eq!(read(&filters[at], &text, 1), None, "another number of shards");
            assert_eq!(read(&filters[at], &text, 0), None);
        }
    }

    #[test]
    fn anything_else_is_no_cursor() {
        let all = RejectFilters::default();
        let good = all.cursor(&before(&[(0, 5, 3)]));
        assert!(read(&all, &good, 1).is_some());
        let long = "0".repeat(1_000);
        for text in
            ["", "1", "-", "1-", "日本", &long, &format!("{good}-"), &format!("{good}-0.0"), &good[1..]]
        {
            assert_eq!(read(&all, text, 1), None, "{text}");
        }
        for (from, to) in [(".", "+."), (".", ".+"), (".3", ".100000000"), ("-5", "-10000000000000000")] {
            assert_eq!(read(&all, &good.replace(from, to), 1), None, "{from} for {to}");
        }
    }
}
