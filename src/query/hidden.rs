//! Who is hidden, on a board or on all of them: a page of the bans of all shards.
//!
//! Knows: the order, which is that of each shard's bans. Must not know: the entries that are hidden.

use std::fmt::Write as _;

use crate::query::question::HiddenQuestion;
use crate::query::read::ShardsRead;
use crate::query::read_shards::ReadShards;
use crate::query::remote_shards::ReadError;
use crate::state::{Ban, name_of};
use crate::types::{AsOf, BoardName, MAX_BOARD_BYTES, MAX_MEMBER_BYTES, MemberId};
use crate::writer::Registry;

/// Where a page ended: the name of a board, or nothing for all boards, and a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenCursor {
    name: String,
    member: MemberId,
}

impl HiddenCursor {
    /// URL-safe text: hexadecimal, because it has nothing to escape.
    pub fn encode(&self) -> String {
        let bytes = [self.name.as_bytes(), &[0], self.member.as_bytes()].concat();
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// Reads what [`HiddenCursor::encode`] wrote; `None` for anything else.
    pub fn decode(text: &str) -> Option<Self> {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if !rest.is_empty() || pairs.len() > MAX_BOARD_BYTES + 1 + MAX_MEMBER_BYTES {
            return None;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).filter(|_| !byte.is_ascii_uppercase());
        let byte = |[high, low]: &[u8; 2]| u8::try_from(16 * digit(*high)? + digit(*low)?).ok();
        let bytes: Vec<u8> = pairs.iter().map(byte).collect::<Option<_>>()?;
        let (name, member) = std::str::from_utf8(&bytes).ok()?.split_once('\0')?;
        let is_name = name.is_empty() || BoardName::new(name).is_ok();
        let member = MemberId::new(member).ok().filter(|_| is_name)?;
        Some(Self { name: name.to_owned(), member })
    }
}

/// A page of bans.
#[derive(Debug, Clone)]
pub struct HiddenPage {
    pub as_of: AsOf,
    /// Those of all boards first, then by board; each by member.
    pub bans: Vec<Ban>,
    /// Where the next page goes on; `None` at the end.
    pub next: Option<HiddenCursor>,
}

/// Reads a page of bans.
pub struct HiddenMembers {
    /// Only those that hold on this board; `None`: all.
    pub board: Option<BoardName>,
    /// Only those of boards whose names begin with one of these; `None`: all.
    pub prefixes: Option<Vec<String>>,
    /// Only those of this member; `None`: everybody's.
    pub member: Option<MemberId>,
    pub after: Option<HiddenCursor>,
    pub limit: usize,
}

impl ShardsRead for HiddenMembers {
    type Answer = HiddenPage;

    /// Bans are no entries.
    fn is_about(&self, _: &BoardName) -> bool {
        false
    }

    async fn read<'r>(&'r self, shards: ReadShards<'r>, _: &'r Registry) -> Result<Self::Answer, ReadError> {
        let prefixes = self.prefixes.as_ref().map(|all| all.iter().map(String::as_str).collect());
        let after = self.after.as_ref().map(|cursor| (cursor.name.as_str(), cursor.member.clone()));
        let limit = u32::try_from(self.limit).unwrap_or(u32::MAX);
        let (board, member) = (self.board.clone(), self.member.clone());
        let replies = shards.hidden(HiddenQuestion { board, prefixes, member, after, limit }).await?;
        let mut more = replies.iter().any(|reply| reply.more);
        let mut bans: Vec<Ban> = replies.into_iter().flat_map(|reply| reply.bans).collect();
        bans.sort_by(|a, b| (name_of(&a.scope), &a.member).cmp(&(name_of(&b.scope), &b.member)));
        more |= bans.len() > self.limit;
        bans.truncate(self.limit);
        let last = bans.last().filter(|_| more);
        let next =
            last.map(|ban| HiddenCursor { name: name_of(&ban.scope).to_owned(), member: ban.member.clone() });
        Ok(HiddenPage { as_of: shards.as_of(), bans, next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_nothing_else_is_one() {
        for (name, member) in [("", "p42"), ("arena", "日本 /"), ("b", &"m".repeat(MAX_MEMBER_BYTES))] {
            let member = MemberId::new(member).expect("a good id");
            let cursor = HiddenCursor { name: name.to_owned(), member };
            assert_eq!(HiddenCursor::decode(&cursor.encode()), Some(cursor));
        }
        let long = "61".repeat(1_000);
        for text in ["0", "00", "6100", "0061zz", "00 6", "006G", "日本", "20006f", "ff0061", "0061A1", &long]
        {
            assert_eq!(HiddenCursor::decode(text), None, "{text}");
        }
    }
}
