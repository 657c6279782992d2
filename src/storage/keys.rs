//! Keys, laid out by hand, big-endian, so that byte order is the order we scan in.
//!
//! Knows: which byte stands for which kind. A kind's byte, once assigned, never changes meaning; the golden
//! tests below hold that. Must not know: values.
//!
//! ```text
//! column family `log`, written by commits
//!   01                              meta
//!   02 last_sequence:u64            delta
//!   03 sequence:u64 index:u32       reject
//!   04 tree:u32 member:bytes        metadata
//!   06 line:u32 sequence:u64 index:u32   parked job
//!   07                              place of the last reject that was published: sequence:u64 index:u32
//!   08                              the running hash of the log
//!   09 sequence:u64                 a hash of the log that is kept
//!   0a                              that another replica's hash differs
//!   0b member:bytes                 profile
//!   0c bucket:u8                    the last removal of a profile of so many members
//!   0d member:bytes 00 board:bytes  ban; of all boards: no bytes
//!   0e member:bytes                 version of a member that holds on every board
//!   0f                              whose data these are a copy of
//!   20 member:bytes                 whose rejects before a job are still to be erased
//!   21 member:bytes                 the same, in the stream of rejects
//!   22 board:bytes                  when a board that ends after a quiet time had its last job
//!   23 id:bytes                     the id of a job that was applied
//!   24 before:u64                   that sequences below it are of another history
//! column family `checkpoint`, written by checkpoints
//!   10 page:u32                     dictionary page: handle → member id
//!   11 tree:u32 page:u32            member page: handle → words
//!   13 tree:u32 page:u32            tree page: a leaf of the counted tree
//!   14 tree:u32 page:u32            extras page: handle → what the tree cannot hold
//!   1f                              manifest
//! ```

use crate::state::TreeId;
use crate::types::Sequence;

pub const META: u8 = 0x01;
pub const DELTA: u8 = 0x02;
pub const REJECT: u8 = 0x03;
pub const METADATA: u8 = 0x04;
pub const PARKED_IN_LINE: u8 = 0x06;
pub const REJECTS_PUBLISHED: u8 = 0x07;
pub const LOG_HASH: u8 = 0x08;
pub const HASH_POINT: u8 = 0x09;
pub const DIVERGENCE: u8 = 0x0a;
pub const PROFILE: u8 = 0x0b;
pub const PROFILE_REMOVED: u8 = 0x0c;
pub const BAN: u8 = 0x0d;
pub const MEMBER_VERSION: u8 = 0x0e;
pub const COPIED_FROM: u8 = 0x0f;
pub const DICTIONARY_PAGE: u8 = 0x10;
pub const MEMBER_PAGE: u8 = 0x11;
pub const TREE_PAGE: u8 = 0x13;
pub const EXTRAS_PAGE: u8 = 0x14;
pub const MANIFEST: u8 = 0x1f;
pub const ERASURE: u8 = 0x20;
pub const ERASURE_IN_STREAM: u8 = 0x21;
pub const LAST_JOB: u8 = 0x22;
pub const JOB_ID: u8 = 0x23;
pub const OTHER_HISTORY: u8 = 0x24;

pub fn meta() -> [u8; 1] {
    [META]
}

pub fn manifest() -> [u8; 1] {
    [MANIFEST]
}

pub fn delta(last: Sequence) -> [u8; 9] {
    join([DELTA], last.0.to_be_bytes())
}

pub fn reject(sequence: Sequence, index: u32) -> [u8; 13] {
    join(join::<1, 8, 9>([REJECT], sequence.0.to_be_bytes()), index.to_be_bytes())
}

pub fn metadata(tree: TreeId, member: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(5 + member.len());
    key.extend(of_tree(METADATA, tree));
    key.extend(member);
    key
}

/// The tree and the member of a metadata record's key.
pub fn tree_and_member(key: &[u8]) -> Option<(TreeId, &[u8])> {
    let (tree, member) = key.get(1..)?.split_first_chunk()?;
    Some((TreeId(u32::from_be_bytes(*tree)), member))
}

pub fn dictionary_page(page: u32) -> [u8; 5] {
    join([DICTIONARY_PAGE], page.to_be_bytes())
}

pub fn member_page(tree: TreeId, page: u32) -> [u8; 9] {
    join(of_tree(MEMBER_PAGE, tree), page.to_be_bytes())
}

pub fn extras_page(tree: TreeId, page: u32) -> [u8; 9] {
    join(of_tree(EXTRAS_PAGE, tree), page.to_be_bytes())
}

pub fn tree_page(tree: TreeId, page: u32) -> [u8; 9] {
    join(of_tree(TREE_PAGE, tree), page.to_be_bytes())
}

/// The prefix of all keys of a kind that belong to a tree.
pub fn of_tree(kind: u8, tree: TreeId) -> [u8; 5] {
    join([kind], tree.0.to_be_bytes())
}

/// The big-endian number at the end of a key: a page's, a handle's, or a tree's.
pub fn last_u32(key: &[u8]) -> Option<u32> {
    key.last_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

pub fn rejects_published() -> [u8; 1] {
    [REJECTS_PUBLISHED]
}

pub fn log_hash() -> [u8; 1] {
    [LOG_HASH]
}

pub fn hash_point(sequence: Sequence) -> [u8; 9] {
    join([HASH_POINT], sequence.0.to_be_bytes())
}

/// The sequence that a key ends with: a hash point's, or the first one after another history's.
pub fn last_sequence(key: &[u8]) -> Option<Sequence> {
    key.get(1..)?.try_into().ok().map(|bytes| Sequence(u64::from_be_bytes(bytes)))
}

pub fn divergence() -> [u8; 1] {
    [DIVERGENCE]
}

pub fn profile(member: &[u8]) -> Vec<u8> {
    [&[PROFILE], member].concat()
}

/// The member of a key that ends with it.
pub fn member_of(key: &[u8]) -> Option<&[u8]> {
    key.get(1..)
}

/// A member's ban, of a board or, with an empty name, of all boards. No id has a byte of zero.
pub fn ban(member: &[u8], board: &str) -> Vec<u8> {
    [&[BAN], member, &[0], board.as_bytes()].concat()
}

/// The member and the board of a ban's key.
pub fn member_and_board_of_ban(key: &[u8]) -> Option<(&str, &str)> {
    std::str::from_utf8(key.get(1..)?).ok()?.split_once('\0')
}

pub fn member_version(member: &[u8]) -> Vec<u8> {
    [&[MEMBER_VERSION], member].concat()
}

pub fn erasure(member: &[u8]) -> Vec<u8> {
    [&[ERASURE], member].concat()
}

pub fn erasure_in_stream(member: &[u8]) -> Vec<u8> {
    [&[ERASURE_IN_STREAM], member].concat()
}

pub fn job_id(id: &str) -> Vec<u8> {
    [&[JOB_ID], id.as_bytes()].concat()
}

pub fn id_of_job(key: &[u8]) -> Option<&str> {
    str::from_utf8(key.get(1..)?).ok()
}

pub fn last_job(board: &str) -> Vec<u8> {
    [&[LAST_JOB], board.as_bytes()].concat()
}

pub fn board_of_last_job(key: &[u8]) -> Option<&str> {
    str::from_utf8(key.get(1..)?).ok()
}

pub fn other_history(before: Sequence) -> [u8; 9] {
    join([OTHER_HISTORY], before.0.to_be_bytes())
}

/// Where the last removal of a profile is noted: one record for every 256th of the members.
pub fn profile_removed(member: &[u8]) -> [u8; 2] {
    // Not the hash that chooses a member's shard: of one shard's members, that has few values.
    let mixed = member.iter().fold(0x9d_u8, |mixed, byte| mixed.rotate_left(3).wrapping_mul(31) ^ *byte);
    [PROFILE_REMOVED, mixed]
}

pub fn copied_from() -> [u8; 1] {
    [COPIED_FROM]
}

/// The prefix of all keys of a line of parked jobs.
pub fn of_line(line: u32) -> [u8; 5] {
    join([PARKED_IN_LINE], line.to_be_bytes())
}

pub fn parked_in_line(line: u32, sequence: Sequence, index: u32) -> [u8; 17] {
    join(join::<5, 8, 13>(of_line(line), sequence.0.to_be_bytes()), index.to_be_bytes())
}

/// The line of a parked job's key.
pub fn line_of(key: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(key.get(1..5)?.try_into().ok()?))
}

/// The sequence and index that a reject's key ends with, or a parked job's.
pub fn place_in_stream(key: &[u8]) -> Option<(Sequence, u32)> {
    let place = key.get(1..)?.last_chunk::<12>()?;
    let (sequence, index) = place.split_first_chunk::<8>()?;
    Some((Sequence(u64::from_be_bytes(*sequence)), last_u32(index)?))
}

/// The first key after all that begin with `prefix`.
pub fn after(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    vec![u8::MAX; prefix.len() + 1]
}

fn join<const A: usize, const B: usize, const C: usize>(head: [u8; A], tail: [u8; B]) -> [u8; C] {
    const { assert!(A + B == C, "the parts fill the key") };
    let mut key = [0; C];
    for (to, from) in key.iter_mut().zip(head.into_iter().chain(tail)) {
        *to = from;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These bytes are on people's disks. A change here is a new kind, never an edit.
    #[test]
    fn golden_bytes_of_every_key() {
        assert_eq!(meta(), [0x01]);
        assert_eq!(delta(Sequence(0x0102)), [0x02, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(reject(Sequence(3), 4), [0x03, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4]);
        assert_eq!(metadata(TreeId(5), b"p42"), [0x04, 0, 0, 0, 5, b'p', b'4', b'2']);
        let line = 0x0403_0201;
        let place = [0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4];
        assert_eq!(parked_in_line(line, Sequence(3), 4), join::<5, 12, 17>([0x06, 4, 3, 2, 1], place));
        assert_eq!(of_line(line), [0x06, 4, 3, 2, 1]);
        assert_eq!(rejects_published(), [0x07]);
        assert_eq!(log_hash(), [0x08]);
        assert_eq!(hash_point(Sequence(3)), [0x09, 0, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!(divergence(), [0x0a]);
        assert_eq!(profile(b"p42"), [0x0b, b'p', b'4', b'2']);
        assert_eq!(profile_removed(b"p42"), [0x0c, 38]);
        assert_eq!(profile_removed("日本".as_bytes()), [0x0c, 22]);
        assert_eq!(ban(b"p42", "b"), [0x0d, b'p', b'4', b'2', 0, b'b']);
        assert_eq!(ban(b"p42", ""), [0x0d, b'p', b'4', b'2', 0]);
        assert_eq!(member_version(b"p42"), [0x0e, b'p', b'4', b'2']);
        assert_eq!(erasure(b"p42"), [0x20, b'p', b'4', b'2']);
        assert_eq!(erasure_in_stream(b"p42"), [0x21, b'p', b'4', b'2']);
        assert_eq!(last_job("b"), [0x22, b'b']);
        assert_eq!(job_id("i"), [0x23, b'i']);
        assert_eq!(other_history(Sequence(3)), [0x24, 0, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!(copied_from(), [0x0f]);
        assert_eq!(dictionary_page(6), [0x10, 0, 0, 0, 6]);
        assert_eq!(member_page(TreeId(7), 8), [0x11, 0, 0, 0, 7, 0, 0, 0, 8]);
        assert_eq!(tree_page(TreeId(11), 12), [0x13, 0, 0, 0, 11, 0, 0, 0, 12]);
        assert_eq!(extras_page(TreeId(13), 14), [0x14, 0, 0, 0, 13, 0, 0, 0, 14]);
        assert_eq!(manifest(), [0x1f]);
    }

    #[test]
    fn a_place_and_a_line_are_read_back_from_keys() {
        let place = (Sequence(0x0102_0304_0506_0708), 9);
        assert_eq!(place_in_stream(&reject(place.0, place.1)), Some(place));
        let key = parked_in_line(0x0403_0201, place.0, place.1);
        assert_eq!((line_of(&key), place_in_stream(&key)), (Some(0x0403_0201), Some(place)));
        assert_eq!(place_in_stream(&key[..12]), None);
        assert_eq!(last_sequence(&hash_point(place.0)), Some(place.0));
        assert_eq!(last_sequence(&hash_point(place.0)[..8]), None);
        let key = metadata(TreeId(0x0102_0304), b"p42");
        assert_eq!(tree_and_member(&key), Some((TreeId(0x0102_0304), &b"p42"[..])));
        assert_eq!(tree_and_member(&key[..4]), None);
        assert_eq!(member_of(&profile(b"p42")), Some(&b"p42"[..]));
        assert_eq!(member_and_board_of_ban(&ban(b"p42", "b")), Some(("p42", "b")));
        assert_eq!(member_and_board_of_ban(&ban(b"p42", "")), Some(("p42", "")));
        assert_eq!(member_and_board_of_ban(&ban(b"p42", "")[..4]), None);
        assert_eq!(board_of_last_job(&last_job("b")), Some("b"));
        assert_eq!(id_of_job(&job_id("i")), Some("i"));
    }

    #[test]
    fn byte_order_is_number_order() {
        assert!(delta(Sequence(255)) < delta(Sequence(256)));
        assert!(tree_page(TreeId(1), u32::MAX) < tree_page(TreeId(2), 0));
        assert!(reject(Sequence(1), 9) < reject(Sequence(2), 0));
        assert!(of_tree(METADATA, TreeId(1)).as_slice() < metadata(TreeId(1), b"a").as_slice());
        assert_eq!(after(&[1, 0xff]), [2]);
        assert_eq!(after(&[0xff]), [0xff, 0xff]);
    }
}
