//! A hash of what the messages of a shard's log did, by which replicas that differ are found.
//!
//! The log is divided into *segments* of [`SEGMENT_MESSAGES`] sequences, and the hash begins anew with each.
//! So a shard knows the hash of every segment that it applied from the beginning, whatever was before it. At
//! every [`POINT_MESSAGES`]th sequence the hash is kept for a while, as a *hash point*, for others to
//! compare.
//!
//! Knows: how effects are mixed, and which points are kept. Must not know: what an effect means, or who
//! compares. Only what is equal on all replicas may be mixed in: no handles, no numbers of trees, no texts
//! that another version may word otherwise.
//!
//! The mixing is that of wyhash: a 128-bit product of two words, folded. It is no cryptographic hash. It
//! finds differences that nobody has made on purpose; two different logs have the same hash by a chance of
//! 2^-64.

use std::collections::VecDeque;
use std::fmt;

use crate::board::{Beyond, DEFAULT_GRACE_MICROS, Definition, KeyType, Order, Policy, Ties};
use crate::state::entry::{Entry, EntryState};
use crate::state::step::Applied;
use crate::tree::Words;
use crate::types::{Sequence, count};
use crate::window::Seasons;

/// The version of the function: raised when the same log would give another hash. Hashes of different
/// versions are not compared.
pub const HASH_VERSION: u32 = 3;
/// The sequences of a segment. All replicas must agree on it.
pub const SEGMENT_MESSAGES: u64 = if cfg!(test) { 32 } else { 65_536 };
/// Every so many sequences there is a hash point; a segment ends at one.
pub const POINT_MESSAGES: u64 = if cfg!(test) { 4 } else { 1_024 };
/// How many points within segments are kept: those of one segment.
pub const POINTS_KEPT: usize = 64;
/// How many ends of segments are kept: a million messages.
pub const SEGMENTS_KEPT: usize = 16;

const _: () = assert!(SEGMENT_MESSAGES.is_multiple_of(POINT_MESSAGES));

const SEED: u64 = 0x2d35_8dcc_aa6c_78a5;
const SECRET: u64 = 0x8bb8_4b93_962e_acc9;
const LENGTH_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// What announces a part of a definition that plain boards do not have. No other word is likely to be one.
const WINDOWS: u64 = u64::from_be_bytes(*b"windows\0");
const REGULAR_SEASONS: u64 = u64::from_be_bytes(*b"regular\0");
const MANUAL_SEASONS: u64 = u64::from_be_bytes(*b"manual\0\0");
const GRACE: u64 = u64::from_be_bytes(*b"grace\0\0\0");
const ENTRY_TTL: u64 = u64::from_be_bytes(*b"entryttl");
const CAPACITY: u64 = u64::from_be_bytes(*b"capacity");
const MOVEMENT: u64 = u64::from_be_bytes(*b"movement");
const TOP_K: u64 = u64::from_be_bytes(*b"top_k   ");
const FINAL_UNTIL: u64 = u64::from_be_bytes(*b"final\0\0\0");
const READ_ONLY: u64 = u64::from_be_bytes(*b"readonly");

/// The hash of the current segment at one sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HashPoint {
    pub sequence: Sequence,
    pub hash: u64,
}

/// `sequence:hash`, the hash as 16 hexadecimal digits.
impl fmt::Display for HashPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:016x}", self.sequence, self.hash)
    }
}

/// The running hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogHash {
    /// The last message that is in it.
    sequence: Sequence,
    hash: u64,
    /// Whether the segment was hashed from its beginning.
    is_known: bool,
}

impl LogHash {
    /// A hash as it was stored.
    pub fn at(point: HashPoint) -> Self {
        Self { sequence: point.sequence, hash: point.hash, is_known: true }
    }

    /// Of a shard that has applied messages whose hash is not known. It is known from the next segment on.
    pub fn unknown_at(sequence: Sequence) -> Self {
        Self { sequence, hash: 0, is_known: false }
    }

    /// The hash at the last message; `None` if it is not known, or nothing was applied.
    pub fn point(&self) -> Option<HashPoint> {
        self.is_known.then_some(HashPoint { sequence: self.sequence, hash: self.hash })
    }

    /// Begins the next message. Its effects follow.
    pub fn begin_message(&mut self, message: Applied) {
        if segment_of(message.sequence) != segment_of(self.sequence) {
            (self.hash, self.is_known) = (SEED, true);
        }
        self.sequence = message.sequence;
        self.words(message.sequence.0, message.timestamp.as_micros().cast_unsigned());
        self.words(message.hash, 0);
    }

    /// The hash after a message, if its sequence is one at which hashes are kept.
    pub fn point_to_keep(&self) -> Option<HashPoint> {
        self.point().filter(|point| point.sequence.0.is_multiple_of(POINT_MESSAGES))
    }

    /// Mixes two words in.
    #[inline]
    pub fn words(&mut self, a: u64, b: u64) {
        let product = u128::from(a ^ SECRET) * u128::from(b ^ self.hash);
        let folded = low_half(product) ^ low_half(product >> 64);
        // A product of zero must lose neither what was mixed in before, nor `b`.
        self.hash = (folded ^ b).wrapping_add(self.hash.rotate_left(23));
    }

    /// Mixes bytes in, with their length.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<16>();
        for chunk in chunks {
            let words = u128::from_le_bytes(*chunk);
            self.words(low_half(words), low_half(words >> 64));
        }
        let (first, last) = ends(rest);
        self.words(first, last);
        // Of strings of different lengths the ends may be the same words.
        let length = count(bytes.len()) + 1;
        self.hash = self.hash.wrapping_add(length.wrapping_mul(LENGTH_FACTOR));
    }

    /// Mixes an entry in, or that there is none.
    #[inline]
    pub fn entry(&mut self, entry: Option<&Entry>) {
        let Some(entry) = entry else {
            self.words(0, 0);
            return;
        };
        let words;
        let (kind, words) = match &entry.state {
            EntryState::Listed(words) => (1, words),
            EntryState::Hidden(words) => (2, words),
            EntryState::Removed => {
                words = Words::new();
                (3, &words)
            }
        };
        let words = words.as_slice();
        let flags = kind
            | (u64::from(entry.has_metadata) << 2)
            | (u64::from(entry.version.is_some()) << 3)
            | (count(words.len()) << 8);
        self.words(flags, entry.updated_at.as_micros().cast_unsigned());
        let (pairs, rest) = words.as_chunks::<2>();
        for [a, b] in pairs {
            self.words(*a, *b);
        }
        for word in rest {
            self.words(*word, 0);
        }
        if let Some(version) = entry.version {
            self.words(version, 0);
        }
    }

    /// Mixes a board's definition in.
    pub fn definition(&mut self, definition: &Definition) {
        let Definition { keys, policy, ties, utc_offset_minutes, keep, .. } = definition;
        // Later fields are mixed in only where they are set, so that plain boards hash as they always did.
        let Definition { windows, seasons, grace_micros, entry_ttl_micros, capacity, .. } = definition;
        let policy = match policy {
            Policy::Set => 0,
            Policy::Best => 1,
            Policy::Incr => 2,
        };
        let ties = match ties {
            Ties::First => 0,
            Ties::Last => 1,
            Ties::Member => 2,
            Ties::MemberDesc => 3,
        };
        self.words(policy | (ties << 8) | (count(keys.len()) << 16), u64::from(*keep));
        self.words(i64::from(*utc_offset_minutes).cast_unsigned(), 0);
        for key in keys {
            let order = match key.order {
                Order::Ascending => 0,
                Order::Descending => 1,
            };
            let clamps = |beyond: Beyond| u64::from(beyond == Beyond::Clamp);
            self.bytes(key.name.as_bytes());
            let float = u64::from(key.key_type == KeyType::Float) << 2;
            self.words(order, clamps(key.below_min) | (clamps(key.above_max) << 1) | float);
            self.words(key.min.cast_unsigned(), key.max.cast_unsigned());
        }
        if !definition.has_only_all() {
            self.words(WINDOWS, count(windows.len()));
            for window in windows {
                self.words(u64::from(window.number()), 0);
            }
        }
        match seasons {
            None => {}
            Some(Seasons::Regular(all)) => {
                self.words(REGULAR_SEASONS, count(all.len()));
                for series in all {
                    self.words(u64::from(series.first), series.begin.as_micros().cast_unsigned());
                    self.words(series.every.cast_unsigned(), 0);
                }
            }
            Some(Seasons::Manual(begins)) => {
                self.words(MANUAL_SEASONS, count(begins.len()));
                for begin in begins {
                    self.words(begin.as_micros().cast_unsigned(), 0);
                }
            }
        }
        if *grace_micros != DEFAULT_GRACE_MICROS {
            self.words(GRACE, grace_micros.cast_unsigned());
        }
        if let Some(ttl) = entry_ttl_micros {
            self.words(ENTRY_TTL, ttl.cast_unsigned());
        }
        if let Some(until) = definition.final_until {
            self.words(FINAL_UNTIL, until.as_micros().cast_unsigned());
        }
        if let Some(capacity) = capacity {
            self.words(CAPACITY, *capacity);
        }
        if definition.movement {
            self.words(MOVEMENT, 0);
        }
        if definition.is_top_k() {
            self.words(TOP_K, 0);
        }
        if let Some(read_only) = &definition.read_only {
            self.words(READ_ONLY, read_only.since.as_micros().cast_unsigned());
            self.bytes(read_only.reason.as_bytes());
        }
    }
}

fn segment_of(sequence: Sequence) -> Option<u64> {
    Some(sequence.0.checked_sub(1)? / SEGMENT_MESSAGES)
}

/// Fewer than 16 bytes as two words, which overlap. Of one length, no two strings have the same words.
#[inline]
fn ends(bytes: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last)))
    } else if let [first, .., last] = bytes {
        let middle = bytes.get(1).map_or(0, |middle| u64::from(*middle));
        (u64::from(*first) | (middle << 8), u64::from(*last))
    } else {
        (bytes.first().map_or(0, |only| u64::from(*only)), 0)
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, clippy::as_conversions, reason = "the lower half is asked for")]
fn low_half(words: u128) -> u64 {
    words as u64
}

/// The running hash, and the latest points.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogHashes {
    pub running: LogHash,
    /// The ends of segments.
    segments: VecDeque<HashPoint>,
    /// Points within segments.
    points: VecDeque<HashPoint>,
}

impl LogHashes {
    /// # Arguments
    /// `points`: those that were kept, in their order.
    pub fn new(running: LogHash, points: impl IntoIterator<Item = HashPoint>) -> Self {
        let mut hashes = Self { running, ..Self::default() };
        for point in points {
            let _ = hashes.keep(point);
        }
        hashes
    }

    /// Goes on to a later message.
    ///
    /// # Arguments
    /// `points`: those up to that message, in their order.
    pub fn advance(&mut self, running: LogHash, points: &[HashPoint]) -> Vec<Sequence> {
        self.running = running;
        points.iter().filter_map(|point| self.keep(*point)).collect()
    }

    /// Keeps a point, and returns which one is not kept any more.
    fn keep(&mut self, point: HashPoint) -> Option<Sequence> {
        let (kept, most) = if point.sequence.0.is_multiple_of(SEGMENT_MESSAGES) {
            (&mut self.segments, SEGMENTS_KEPT)
        } else {
            (&mut self.points, POINTS_KEPT)
        };
        kept.push_back(point);
        if kept.len() > most { kept.pop_front().map(|point| point.sequence) } else { None }
    }

    /// The hash at a sequence, if it is known.
    pub fn hash_at(&self, sequence: Sequence) -> Option<u64> {
        let kept = self.segments.iter().chain(&self.points).copied();
        kept.chain(self.running.point()).find(|point| point.sequence == sequence).map(|point| point.hash)
    }

    /// The latest points, for others to compare: so many ends of segments, so many within, and the running
    /// one.
    pub fn latest(&self, segments: usize, points: usize) -> impl Iterator<Item = HashPoint> + '_ {
        let last = |kept: &VecDeque<HashPoint>, most: usize| kept.len().saturating_sub(most);
        let ends = self.segments.iter().skip(last(&self.segments, segments)).copied();
        let within = self.points.iter().skip(last(&self.points, points)).copied();
        ends.chain(within).chain(self.running.point())
    }
}

/// Whether a hash at `later` has in it what the one at `earlier` has.
pub fn is_in_same_segment(earlier: Sequence, later: Sequence) -> bool {
    earlier <= later && segment_of(earlier) == segment_of(later)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Kind;
    use crate::tree::Words;
    use crate::types::Timestamp;
    use crate::window::Window;

    fn message(sequence: u64) -> Applied {
        let timestamp = Timestamp::from_micros(1_000).expect("in range");
        Applied { sequence: Sequence(sequence), timestamp, hash: 7 }
    }

    fn hash_of(mix: impl FnOnce(&mut LogHash)) -> u64 {
        let mut hash = LogHash::default();
        hash.begin_message(message(1));
        mix(&mut hash);
        hash.point().expect("it is known from the first message on").hash
    }

    fn seasonal(seasons: Option<Seasons>) -> Definition {
        Definition { windows: vec![Window::All, Window::Season], seasons, ..Definition::default() }
    }

    fn entry() -> Entry {
        Entry {
            state: EntryState::Listed(Words::from_slice(&[5, 6])),
            updated_at: Timestamp::from_micros(9).expect("in range"),
            version: None,
            has_metadata: false,
        }
    }

    /// Nodes of different versions compare them, so they must never change without a new [`HASH_VERSION`].
    #[test]
    fn hashes_never_change() {
        let hashes = [
            hash_of(|_| {}),
            hash_of(|hash| hash.bytes(b"arena")),
            hash_of(|hash| hash.entry(Some(&entry()))),
            hash_of(|hash| hash.definition(&Definition::default())),
        ];
        assert_eq!(hashes, GOLDEN);
    }

    const GOLDEN: [u64; 4] = [
        13_790_087_652_104_208_091,
        8_354_188_222_911_927_288,
        7_005_406_127_520_299_750,
        16_562_403_746_881_743_189,
    ];

    #[test]
    fn whatever_differs_gives_another_hash() {
        let bytes = |bytes: &'static [u8]| hash_of(|hash| hash.bytes(bytes));
        let of = |entry: Entry| hash_of(|hash| hash.entry(Some(&entry)));
        let two = |a: &'static [u8], b: &'static [u8]| {
            hash_of(|hash| {
                hash.bytes(a);
                hash.bytes(b);
            })
        };
        let words = Words::from_slice(&[5, 6]);
        let mut hashes = vec![
            hash_of(|_| {}),
            hash_of(|hash| hash.entry(None)),
            of(entry()),
            of(Entry { state: EntryState::Hidden(words), ..entry() }),
            of(Entry { state: EntryState::Removed, ..entry() }),
            of(Entry { state: EntryState::Listed(Words::from_slice(&[5, 7])), ..entry() }),
            of(Entry { state: EntryState::Listed(Words::from_slice(&[6, 5])), ..entry() }),
            of(Entry { state: EntryState::Listed(Words::from_slice(&[5, 6, 0])), ..entry() }),
            of(Entry { version: Some(0), ..entry() }),
            of(Entry { version: Some(1), ..entry() }),
            of(Entry { has_metadata: true, ..entry() }),
            of(Entry { updated_at: Timestamp::default(), ..entry() }),
            bytes(b""),
            bytes(b"\0"),
            bytes(b"\0\0"),
            bytes(b"a"),
            bytes(b"aa"),
            bytes(b"aaa"),
            bytes(b"aba"),
            bytes(b"aaaa"),
            bytes(b"aaaaa"),
            bytes(b"aaaaaaaa"),
            bytes(b"aaaaaaaaa"),
            bytes(b"aaaaaaaab"),
            bytes(b"0123456789abcde"),
            bytes(b"0123456789abcdef"),
            bytes(b"0123456789abcdef\0"),
            two(b"a", b"bc"),
            two(b"ab", b"c"),
            hash_of(|hash| hash.words(SECRET, 3)),
            hash_of(|hash| hash.words(SECRET, 4)),
            hash_of(|hash| {
                hash.words(1, 1);
                hash.words(SECRET, 4);
            }),
            hash_of(|hash| hash.definition(&Definition::default())),
            hash_of(|hash| hash.definition(&Definition { keep: 1, ..Definition::default() })),
            hash_of(|hash| hash.definition(&Definition { ties: Ties::Member, ..Definition::default() })),
            hash_of(|hash| hash.definition(&Definition { grace_micros: 1, ..Definition::default() })),
            hash_of(|hash| {
                hash.definition(&Definition { entry_ttl_micros: Some(1), ..Definition::default() });
            }),
            hash_of(|hash| {
                let final_until = Timestamp::from_micros(1).ok();
                hash.definition(&Definition { final_until, ..Definition::default() });
            }),
            hash_of(|hash| hash.definition(&Definition { capacity: Some(1), ..Definition::default() })),
            hash_of(|hash| hash.definition(&Definition { capacity: Some(2), ..Definition::default() })),
            hash_of(|hash| hash.definition(&Definition { movement: true, ..Definition::default() })),
            hash_of(|hash| hash.definition(&Definition { kind: Kind::TopK, ..Definition::default() })),
            hash_of(|hash| hash.definition(&seasonal(None))),
            hash_of(|hash| hash.definition(&seasonal(Some(Seasons::Manual(Vec::new()))))),
            hash_of(|hash| hash.definition(&seasonal(Some(Seasons::Manual(vec![Timestamp::default()]))))),
            hash_of(|hash| hash.definition(&seasonal(Some(Seasons::regular(Timestamp::default(), 1))))),
            hash_of(|hash| hash.definition(&seasonal(Some(Seasons::regular(Timestamp::default(), 2))))),
        ];
        let all = hashes.len();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), all);
    }

    #[test]
    fn a_segment_is_hashed_from_its_beginning_whatever_was_before_it() {
        let mut new = LogHash::default();
        assert_eq!(new.point(), None);
        let mut old = LogHash::unknown_at(Sequence(2));
        for sequence in 1..=SEGMENT_MESSAGES {
            new.begin_message(message(sequence));
            assert!(new.point().is_some());
            if sequence > 2 {
                old.begin_message(message(sequence));
                assert_eq!(old.point(), None, "{sequence}");
            }
        }
        let end = new.point().expect("it is known");
        assert_eq!(new.point_to_keep(), Some(end));
        new.begin_message(message(SEGMENT_MESSAGES + 1));
        old.begin_message(message(SEGMENT_MESSAGES + 1));
        assert_eq!(new.point(), old.point());
        assert!(new.point().is_some() && new.point_to_keep().is_none());
        assert!(!is_in_same_segment(end.sequence, Sequence(SEGMENT_MESSAGES + 1)));
        assert!(is_in_same_segment(Sequence(1), end.sequence));
    }

    #[test]
    fn the_latest_points_are_kept() {
        let mut hashes = LogHashes::default();
        let mut dropped = Vec::new();
        let mut running = LogHash::default();
        let last = SEGMENT_MESSAGES * 20 + 1;
        for sequence in 1..=last {
            running.begin_message(message(sequence));
            dropped.extend(hashes.advance(running, running.point_to_keep().as_slice()));
        }
        let kept: Vec<u64> = (1..=last).filter(|at| hashes.hash_at(Sequence(*at)).is_some()).collect();
        assert_eq!(kept.len(), SEGMENTS_KEPT + POINTS_KEPT + 1);
        let points = last / POINT_MESSAGES;
        assert_eq!(count(dropped.len() + kept.len()), points + 1);
        assert!(dropped.iter().all(|at| hashes.hash_at(*at).is_none()));
        let latest: Vec<u64> = hashes.latest(2, 1).map(|point| point.sequence.0).collect();
        assert_eq!(latest, [SEGMENT_MESSAGES * 19, SEGMENT_MESSAGES * 20, last - 1 - POINT_MESSAGES, last]);
        let again = LogHashes::new(hashes.running, kept_points(&hashes));
        assert_eq!(again, hashes);
    }

    fn kept_points(hashes: &LogHashes) -> Vec<HashPoint> {
        let mut points: Vec<_> = hashes.segments.iter().chain(&hashes.points).copied().collect();
        points.sort();
        points
    }
}
