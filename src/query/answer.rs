//! What answers consist of: entries, pages, and how a score stands. The whole, with its `as_of`, is `Answer`
//! of `query::read`.

use std::sync::Arc;

use crate::board::Definition;
use crate::query::cursor::PageCursor;
use crate::query::merge::{EntrySource, MergedEntry};
use crate::query::question::{EntryMetadata, EntryProfile};
use crate::state::TreeId;
use crate::types::{BoardName, MemberId, Score, ShardId, Timestamp};

/// How a score stands among all entries of a board. `better + tied + worse = total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Strictly better entries.
    pub better: u64,
    /// Entries with this score; for an entry's own score, itself included.
    pub tied: u64,
    /// All entries.
    pub total: u64,
}

impl Standing {
    /// Competition rank: 1, 2, 2, 4.
    pub fn rank(&self) -> u64 {
        self.better + 1
    }

    /// The same among the entries that are shown, of counts of all entries.
    pub fn within_capacity(&self, definition: &Definition) -> Self {
        let [better, through, total] =
            [self.better, self.better + self.tied, self.total].map(|all| definition.within_capacity(all));
        Self { better, tied: through - better, total }
    }

    pub fn worse(&self) -> u64 {
        self.total - self.better - self.tied
    }

    /// The share of entries that are worse, in percent; 0 for an empty board.
    pub fn percentile(&self) -> f64 {
        percentile(self.worse(), self.total)
    }
}

/// `100 × worse / total`. Counts are below 2^53, where floats are exact.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    clippy::as_conversions,
    reason = "members are counted by 38 bits at most"
)]
pub fn percentile(worse: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { 100.0 * worse as f64 / total as f64 }
}

/// An entry as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub member: Box<str>,
    pub score: Score,
    /// The most by which the score is too high; `None` where scores are exact.
    pub error: Option<i64>,
    /// Entries with a strictly better score.
    pub better: u64,
    /// 1-based.
    pub position: u64,
    pub updated_at: Timestamp,
    /// When the score was reached, where that orders ties.
    pub reached_at: Option<Timestamp>,
    /// The greatest version of a job, as far as the read tells it.
    pub version: Option<u64>,
    pub metadata: ListedMetadata,
    pub profile: ListedProfile,
    pub movement: ListedMovement,
    /// Its member on other boards; empty unless they were asked for.
    pub columns: Box<[ListedColumn]>,
}

/// A member on another board than the one that is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedColumn {
    pub board: BoardName,
    /// `None`: it is not listed there.
    pub entry: Option<ColumnEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnEntry {
    pub score: Score,
    /// As [`Listed::error`].
    pub error: Option<i64>,
    /// Competition rank; `None`: not asked.
    pub rank: Option<u64>,
}

impl Listed {
    /// Competition rank: 1, 2, 2, 4.
    pub fn rank(&self) -> u64 {
        self.better + 1
    }

    pub(super) fn new(
        definition: &Definition,
        found: &MergedEntry<'_>,
        better: u64,
        position: u64,
    ) -> Option<Self> {
        let words = found.key.words.as_slice();
        let reached_at = definition.reached_at(words);
        let mut profile = ListedProfile::NotAsked;
        let (updated_at, version, metadata) = match found.source {
            EntrySource::InMemory(shard_board, handle) => {
                let (tree, window) = shard_board.window?;
                let extra = window.extra(handle);
                let on_disk = extra.as_ref().is_some_and(|extra| extra.has_metadata);
                let metadata =
                    if on_disk { ListedMetadata::OnDisk(found.shard, tree) } else { ListedMetadata::None };
                let version = extra.as_ref().and_then(|extra| extra.version);
                let updated_at = extra.map(|extra| extra.updated_at);
                (updated_at.or(reached_at).unwrap_or_default(), version, metadata)
            }
            EntrySource::Replied(entry) => {
                let metadata = match &entry.metadata {
                    EntryMetadata::None => ListedMetadata::None,
                    EntryMetadata::OnDisk(tree) => ListedMetadata::OnDisk(found.shard, *tree),
                    EntryMetadata::Json(json) => ListedMetadata::Json(json.clone()),
                    EntryMetadata::NotAsked | EntryMetadata::Unreadable => ListedMetadata::Unreadable,
                };
                profile = ListedProfile::replied(&entry.profile, found.shard);
                (entry.updated_at, entry.version, metadata)
            }
        };
        Some(Self {
            member: text_of(found.key.member),
            score: definition.score_of(words),
            error: definition.error_of(words),
            better,
            position,
            updated_at,
            reached_at,
            version,
            metadata,
            profile,
            movement: ListedMovement::NotAsked,
            columns: Box::default(),
        })
    }

    /// A member without an entry: what is kept of it beside its entries is read like that of an entry.
    ///
    /// # Arguments
    /// `profile`: as its home shard has replied it.
    pub(super) fn without_entry(member: &MemberId, profile: ListedProfile) -> Option<Self> {
        Some(Self {
            member: member.as_str().into(),
            score: Score::new(&[0]).ok()?,
            error: None,
            better: 0,
            position: 0,
            updated_at: Timestamp::default(),
            reached_at: None,
            version: None,
            metadata: ListedMetadata::None,
            profile,
            movement: ListedMovement::NotAsked,
            columns: Box::default(),
        })
    }
}

/// A member's id as text. It always is one; looking whether it is takes half as long as making it one.
fn text_of(member: &[u8]) -> Box<str> {
    str::from_utf8(member).map_or_else(|_| String::from_utf8_lossy(member).into(), Box::from)
}

/// An entry's metadata, which is read from disk after the shards' locks were released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListedMetadata {
    None,
    /// Still to be read, from this shard and tree.
    OnDisk(ShardId, TreeId),
    /// A compact JSON object.
    Json(Box<str>),
    /// The shard's disk cannot be read at the moment.
    Unreadable,
}

/// The profile of an entry's member, which is read from disk after the shards' locks were released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListedProfile {
    NotAsked,
    /// Still to be read, from this shard.
    OnDisk(ShardId),
    None,
    /// A compact JSON object. The entries of one member share it.
    Json(Arc<str>),
    /// The shard's disk cannot be read at the moment.
    Unreadable,
}

impl ListedProfile {
    /// # Arguments
    /// `shard`: the one that has replied it.
    pub(super) fn replied(profile: &EntryProfile, shard: ShardId) -> Self {
        match profile {
            EntryProfile::NotAsked => Self::NotAsked,
            EntryProfile::OnDisk => Self::OnDisk(shard),
            EntryProfile::None => Self::None,
            EntryProfile::Json(json) => Self::Json(Arc::clone(json)),
            EntryProfile::Unreadable => Self::Unreadable,
        }
    }
}

/// How far an entry has moved since an instance of another window began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListedMovement {
    NotAsked,
    NotListedThen,
    /// Positions; positive: it has climbed.
    By(i64),
}

/// One member's entry, with its standing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberEntry {
    pub listed: Listed,
    pub standing: Standing,
    /// Whether it is hidden. It stands then as it would if it were not.
    pub is_hidden: bool,
    /// Whether it is beyond the board's capacity. It stands then among all entries that are kept.
    pub is_beyond_capacity: bool,
}

impl MemberEntry {
    /// A member's entry, of counts of all entries; `None` if it is beyond the capacity.
    ///
    /// # Arguments
    /// `ahead`: how many entries are before it.
    pub(super) fn within_capacity(
        definition: &Definition,
        found: &MergedEntry<'_>,
        ahead: u64,
        standing: &Standing,
    ) -> Option<Self> {
        if definition.capacity_after(ahead) == 0 {
            return None;
        }
        let entry = Self::kept(definition, found, ahead, standing)?;
        Some(Self { standing: standing.within_capacity(definition), ..entry })
    }

    /// A member's entry among all entries that are kept, those beyond the capacity included.
    ///
    /// # Arguments
    /// `ahead`: how many entries are before it.
    pub(super) fn kept(
        definition: &Definition,
        found: &MergedEntry<'_>,
        ahead: u64,
        standing: &Standing,
    ) -> Option<Self> {
        let listed = Listed::new(definition, found, standing.better, ahead + 1)?;
        let is_beyond_capacity = definition.capacity_after(ahead) == 0;
        Some(Self { listed, standing: *standing, is_hidden: false, is_beyond_capacity })
    }
}

/// A run of entries, in the order asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub entries: Vec<Listed>,
    /// Where the next page goes on; `None` at the end.
    pub next: Option<PageCursor>,
}
