//! What a look-up asks of shards, and what it finds.

use crate::query::merge::MergedEntry;
use crate::query::question::KeyCounts;
use crate::types::MemberId;

/// The members asked for whose home is a shard, and where in the request each is. Each once, however often it
/// is named.
#[derive(Default)]
pub(super) struct AskedOfShard<'m> {
    pub members: Vec<&'m MemberId>,
    pub indexes: Vec<usize>,
}

/// A member with an entry, and the counts of all shards.
///
/// Its home shard has counted itself at the key of this very entry, so of two members the one with the better
/// key has fewer entries before it, also if the shards are of different moments.
pub(super) struct Found<'r> {
    /// Where in the request it is.
    pub index: usize,
    pub entry: MergedEntry<'r>,
    pub counts: KeyCounts,
}

/// What the shards have of the members.
#[derive(Default)]
pub(super) struct FoundMembers<'r> {
    pub found: Vec<Found<'r>>,
    /// Indexes into the request.
    pub not_listed: Vec<usize>,
}
