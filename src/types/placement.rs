//! Which shard holds a member.

use crate::types::{MemberId, ShardId, fnv1a_32};

/// The shard that holds a member, among `shards` (at least 1).
pub fn shard_of(member: &MemberId, shards: u16) -> ShardId {
    if shards <= 1 {
        return ShardId(0);
    }
    let remainder = fnv1a_32(member.as_bytes()) % u32::from(shards);
    ShardId(u16::try_from(remainder).expect("a remainder is smaller than its divisor"))
}
