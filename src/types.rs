//! The nouns everything else is said in: boards, members, scores, times, shards, sequences.
//!
//! Knows: what is well-formed. Must not know: JSON, disks, queues. Conversions that can fail live here, so
//! that a value of one of these types is always valid. None of them derives serde: disk, wire and JSON each
//! have counterparts of their own.

mod malformed;
mod member_id;
mod number;
mod other_histories;
mod score;
mod shard_set;
mod timestamp;

use std::borrow::Borrow;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

pub use malformed::{Malformed, quoted, shown};
pub use member_id::{MemberId, shard_of};
pub use number::{Double, NoInteger, Number, keeps_digits};
pub use other_histories::{OTHER_HISTORIES_MAX, OtherHistories, OtherHistory};
pub use score::{Floats, Score};
pub use shard_set::ShardSet;
pub use timestamp::Timestamp;

/// The most keys a score may have.
pub const MAX_KEYS: usize = 8;
/// The longest member id, in bytes of UTF-8.
pub const MAX_MEMBER_BYTES: usize = 256;
/// The longest board name, in bytes (it is ASCII).
pub const MAX_BOARD_BYTES: usize = 128;
/// The longest name of an instance of a window, in bytes (it is ASCII).
pub const MAX_INSTANCE_BYTES: usize = 16;
/// What stands between a board's name and an instance's where shards keep it. No board's name has it.
pub const INSTANCE_MARK: char = '#';
/// The name under which the boards' stream and shards keep what is decided of the service itself. No client
/// can say it: no board's name begins with a dot.
const SERVICE: &str = ".service";
/// What the names end with under which shards keep what movement needs; see
/// [`MovementPart`](crate::window::MovementPart).
pub const MOVEMENT_ENDS: [&str; 2] = [".then", ".now"];
/// The longest name of a node, in bytes (it is ASCII).
pub const MAX_NODE_BYTES: usize = 64;
/// The most shards one service may have.
pub const MAX_SHARDS: u16 = 64;

/// A leaderboard's name: 1 to [`MAX_BOARD_BYTES`] bytes of printable ASCII without space, `%`, `?`, `#` and
/// the backslash, not beginning with a dot; case-sensitive. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BoardName(Arc<str>);

impl BoardName {
    /// # Errors
    /// [`Malformed::Board`] when the text is not of that form.
    pub fn new(text: &str) -> Result<Self, Malformed> {
        let fits = |byte: u8| byte.is_ascii_graphic() && !b"%?#\\".contains(&byte);
        let is_name = (1..=MAX_BOARD_BYTES).contains(&text.len()) && !text.starts_with('.');
        if is_name && text.bytes().all(fits) { Ok(Self(text.into())) } else { Err(Malformed::Board) }
    }

    /// The name under which shards keep an instance of this board: `arena#2026-W47`. No client can say it,
    /// because a board's own name has no `#`.
    ///
    /// # Arguments
    /// `instance`: its name, of letters, digits and `-`; for what movement needs, with one of
    /// [`MOVEMENT_ENDS`].
    pub fn with_instance(&self, instance: &str) -> Self {
        Self(format!("{}{INSTANCE_MARK}{instance}", self.0).into())
    }

    /// What stands in a board's place where something is decided of the service itself: it travels, and is
    /// kept, as boards are.
    pub fn service() -> Self {
        Self(SERVICE.into())
    }

    pub fn is_service(&self) -> bool {
        &*self.0 == SERVICE
    }

    /// A name of a board, or of the service, as it is decided on.
    ///
    /// # Errors
    /// [`Malformed::Board`] when the text is neither.
    pub fn of_decision(text: &str) -> Result<Self, Malformed> {
        if text == SERVICE { Ok(Self::service()) } else { Self::new(text) }
    }

    /// A name of a board, of the service, or of an instance of a board, as shards keep it.
    ///
    /// # Errors
    /// [`Malformed::Board`] when the text is neither.
    pub fn of_shard(text: &str) -> Result<Self, Malformed> {
        match text.split_once(INSTANCE_MARK) {
            None => Self::of_decision(text),
            Some((board, instance)) => {
                let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
                let kept = MOVEMENT_ENDS.iter().find_map(|end| instance.strip_suffix(end));
                let of = kept.unwrap_or(instance);
                if of.is_empty() || of.len() > MAX_INSTANCE_BYTES || !of.bytes().all(fits) {
                    return Err(Malformed::Board);
                }
                Ok(Self::new(board)?.with_instance(instance))
            }
        }
    }

    /// The board's own name, and the instance's if it is the name of one.
    pub fn split(&self) -> (&str, Option<&str>) {
        match self.0.split_once(INSTANCE_MARK) {
            Some((board, instance)) => (board, Some(instance)),
            None => (&self.0, None),
        }
    }

    /// Whether it is the name of an instance other than `all`, or of what movement needs since one began.
    pub fn is_instance(&self) -> bool {
        self.0.contains(INSTANCE_MARK)
    }

    /// The board's own name.
    pub fn board(&self) -> Self {
        match self.0.split_once(INSTANCE_MARK) {
            Some((board, _)) => Self(board.into()),
            None => self.clone(),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for BoardName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BoardName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A node's name: `[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}`. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeName(Arc<str>);

impl NodeName {
    /// # Errors
    /// [`Malformed::Node`] when the text is not of that form.
    pub fn new(text: &str) -> Result<Self, Malformed> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
        let is_name =
            text.len() <= MAX_NODE_BYTES && text.starts_with(|first: char| first.is_ascii_alphanumeric());
        if is_name && text.bytes().all(fits) { Ok(Self(text.into())) } else { Err(Malformed::Node) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A shard's number, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShardId(pub u16);

impl ShardId {
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A job message's place in its shard's queue, counted from 1. 0 is before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Sequence(pub u64);

impl Sequence {
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Applied sequences of some shards, `0:1842,1:1777`: what an answer was exact at, or what a reader waits
/// for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AsOf(pub Vec<(ShardId, Sequence)>);

impl AsOf {
    /// # Errors
    /// [`Malformed::Token`] when the text is not of that form.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        // As they are printed, and no other way: a token is one text.
        let is_printed = |text: &str| text == "0" || !text.starts_with('0');
        let part = |part: &str| {
            let (shard, sequence) = part.split_once(':').filter(|(a, b)| is_printed(a) && is_printed(b))?;
            Some((ShardId(decimal(shard)?), Sequence(decimal(sequence)?)))
        };
        text.split(',').map(part).collect::<Option<Vec<_>>>().map(Self).ok_or(Malformed::Token)
    }

    /// Notes later sequences of some shards.
    pub fn note(&mut self, later: Self) {
        for (shard, sequence) in later.0 {
            match self.0.binary_search_by_key(&shard, |(known, _)| *known) {
                Ok(at) => {
                    if let Some((_, known)) = self.0.get_mut(at) {
                        *known = sequence.max(*known);
                    }
                }
                Err(at) => self.0.insert(at, (shard, sequence)),
            }
        }
    }

    /// Appends what [`fmt::Display`] writes, without a formatter in between.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        let Ok(()) = self.write_to(|text| {
            out.extend_from_slice(text.as_bytes());
            Ok::<(), Infallible>(())
        });
    }

    fn write_to<E>(&self, mut write: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        let mut digits = itoa::Buffer::new();
        for (index, (ShardId(shard), Sequence(sequence))) in self.0.iter().enumerate() {
            if index > 0 {
                write(",")?;
            }
            write(digits.format(*shard))?;
            write(":")?;
            write(digits.format(*sequence))?;
        }
        Ok(())
    }
}

impl fmt::Display for AsOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_to(|text| f.write_str(text))
    }
}

/// The number that decimal digits, and nothing beside them, say: no sign, which Rust's own parsers take, and
/// no space.
pub fn decimal<N: FromStr>(text: &str) -> Option<N> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits { text.parse().ok() } else { None }
}

/// A length as a count. No length is beyond 64 bits.
pub fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// FNV-1a, 32 bits, the hash that NATS uses in `partition()`.
///
/// Source: Fowler, Noll and Vo, <http://www.isthe.com/chongo/tech/comp/fnv/>.
pub fn fnv1a_32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(2_166_136_261, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(16_777_619))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shard_hash_matches_the_published_vectors() {
        for (text, hash) in
            [("p42", 2_517_926_281), ("alice", 2_267_157_479), ("日本", 2_670_128_721), ("", 2_166_136_261)]
        {
            assert_eq!(fnv1a_32(text.as_bytes()), hash, "{text}");
        }
    }

    #[test]
    fn board_names_are_checked() {
        let signs = "-_!\"$&'()*+,./:;<=>@[]^`{|}~";
        for good in ["a", "Arena-1", "x.y:z_w", "lb:{eu}/1", signs, &"a".repeat(128)] {
            assert!(BoardName::new(good).is_ok(), "{good}");
        }
        for bad in ["", ".a", "a b", "a%b", "a?b", "a#b", "a\\b", "a\tb", "a\u{7f}", "é", &"a".repeat(129)] {
            assert_eq!(BoardName::new(bad), Err(Malformed::Board), "{bad}");
        }
        for bad in ["", ".a", "-a", "a/b", "a{b", &"a".repeat(65)] {
            assert_eq!(NodeName::new(bad), Err(Malformed::Node), "{bad}");
        }
    }

    #[test]
    fn names_on_shards_are_those_of_boards_of_instances_and_of_what_movement_needs() {
        for good in [
            ".service",
            "a",
            "a#2026-W47",
            "a.then#s1",
            "a#2026-11-20T09",
            "a#2026-11-20T09.then",
            "a#s7.now",
        ] {
            assert_eq!(BoardName::of_shard(good).map(|name| name.to_string()), Ok(good.to_owned()));
        }
        assert!(BoardName::new(SERVICE).is_err() && BoardName::service().is_service());
        for bad in [
            ".service#s1",
            "#s1",
            "a#",
            "a#.then",
            "a#s1.",
            "a#s1.later",
            "a#s1.then.now",
            "a#s1#s2",
            "a#s1.thenx",
        ] {
            assert_eq!(BoardName::of_shard(bad), Err(Malformed::Board), "{bad}");
        }
    }

    #[test]
    fn times_keep_the_microsecond_and_print_as_they_came() {
        for (text, printed) in [
            ("2026-11-20T09:59:58Z", "2026-11-20T09:59:58Z"),
            ("2026-11-20T18:59:58.5+09:00", "2026-11-20T09:59:58.5Z"),
            ("2026-11-20T09:59:58.1234567Z", "2026-11-20T09:59:58.123456Z"),
            // No count of seconds has leap seconds: one is the second before it.
            ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59Z"),
            ("2017-01-01T05:29:60+05:30", "2016-12-31T23:59:59Z"),
        ] {
            let time = Timestamp::parse(text).expect("a time");
            assert_eq!(time.to_string(), printed);
            let mut appended = b"at ".to_vec();
            time.append_to(&mut appended);
            assert_eq!(String::from_utf8_lossy(&appended), format!("at {printed}"));
        }
        for bad in [
            "",
            "yesterday",
            "2026-11-20",
            "1969-12-31T23:59:59Z",
            "2300-01-01T00:00:00Z",
            "2026-11-20T23:59:61Z",
            "2026-11-20T24:00:00Z",
        ] {
            assert_eq!(Timestamp::parse(bad), Err(Malformed::Time), "{bad}");
        }
    }

    #[test]
    fn tokens_read_back_as_they_print() {
        for good in ["0:1842,1:1777", "0:0", "10:1,2:3,10:4", "65535:18446744073709551615"] {
            let token = AsOf::parse(good).expect("a token");
            let mut appended = Vec::new();
            token.append_to(&mut appended);
            assert_eq!((token.to_string().as_str(), appended.as_slice()), (good, good.as_bytes()));
        }
        for bad in [
            "",
            ",",
            "0",
            "0:",
            ":1",
            "0:1,",
            ",0:1",
            "0:1,,1:1",
            "a:1",
            "-1:1",
            "+0:+1",
            "0:+1",
            "+0:1",
            "0:-0",
            " 0:1",
            "0:1 ",
            "0: 1",
            "0:1, 1:1",
            "0:1;1:1",
            "0:1:1",
            "00:1",
            "0:01",
            "0x0:1",
            "0:1.0",
            "0:1e3",
            "0:1_000",
            "0:٣",
            "65536:1",
            "0:18446744073709551616",
        ] {
            assert_eq!(AsOf::parse(bad), Err(Malformed::Token), "{bad:?}");
        }
    }

    #[test]
    fn decimal_digits_are_all_that_a_number_has() {
        assert_eq!((decimal("0"), decimal("007"), decimal("255")), (Some(0_u8), Some(7_u8), Some(255_u8)));
        for bad in ["", "+1", "-1", "-0", " 1", "1 ", "1.0", "256", "٣"] {
            assert_eq!(decimal::<u8>(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn what_was_refused_is_shown_cut_and_escaped() {
        assert_eq!(
            Malformed::Board.got("a b").rsplit_once("; got "),
            Some((&*Malformed::Board.to_string(), "\"a b\""))
        );
        assert_eq!(quoted("a\u{1b}[2J\n"), "\"a\\u{1b}[2J\\n\"");
        assert_eq!(quoted(&"é".repeat(60)), format!("\"{}\"... (120 bytes)", "é".repeat(40)));
        assert_eq!(shown("[1,\n\t2]"), "[1,  2]");
        assert_eq!(shown(&"9".repeat(50)), format!("{}... (50 bytes)", "9".repeat(40)));
    }
}
