//! What a job did, told for the whole board. The writer knows its own shard only (`writer::outcome`); the
//! counts of the others are added here.

use std::sync::Arc;

use crate::query::answer::{Listed, ListedMetadata, ListedMovement, ListedProfile, MemberEntry, Standing};
use crate::query::answering_shard::ShardHandle;
use crate::query::entries::ConsistentAnswer;
use crate::query::question::{BoardLife, Mark, SortKey};
use crate::query::read::ShardsRead;
use crate::query::read_shards::{CountsOfBoards, ReadShards};
use crate::query::remote_shards::ReadError;
use crate::query::shard_board::ShardBoard;
use crate::state::{Shard, ShardRanking, TreeId};
use crate::state_lock::Purpose;
use crate::tree::Words;
use crate::types::{AsOf, BoardName, MemberId, Score, Sequence, ShardId};
use crate::writer::{BoardOutcome, FoundBoard, Registry};

/// What a job did on one board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryChange {
    pub board: Arc<FoundBoard>,
    pub changed: bool,
    /// Whether the entry has the job's metadata now.
    pub takes_metadata: bool,
    /// The entry now; `None` if it is not listed, or beyond the capacity.
    pub entry: Option<MemberEntry>,
    /// Where it stood just before, among the others as they are now; `None` as for the entry.
    pub previous: Option<Previous>,
    /// Shared by what jobs of a message did.
    pub as_of: Arc<AsOf>,
}

/// Where an entry stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Previous {
    pub score: Score,
    pub rank: u64,
    pub position: u64,
}

impl ConsistentAnswer for EntryChange {
    fn each_entry_as_of(&mut self, visit: &mut dyn FnMut(&mut Listed, &AsOf)) {
        if let Some(entry) = &mut self.entry {
            visit(&mut entry.listed, &self.as_of);
        }
    }
}

/// What the writer of a shard found of a job on one board.
#[derive(Clone, Copy)]
pub struct FoundOutcome<'a> {
    pub member: &'a MemberId,
    /// Where in the shard's queue it holds.
    pub sequence: Sequence,
    pub outcome: &'a BoardOutcome,
}

/// Adds the other shards' counts to what the shard `home` found. One round trip with each of them for all
/// outcomes.
///
/// # Arguments
/// `tree_of`: the tree of a board on the home shard, where metadata is read from.
pub async fn add_other_shards(
    shards: ReadShards<'_>,
    home: ShardId,
    found: &[FoundOutcome<'_>],
    tree_of: impl Fn(&BoardLife) -> Option<TreeId>,
) -> Result<Vec<EntryChange>, ReadError> {
    let lives: Vec<BoardLife> = found.iter().map(FoundOutcome::life).collect();
    let boards = found.iter().zip(&lives).map(|(found, life)| {
        let marks = found.rankings().flat_map(|ranking| found.marks(ranking)).collect();
        (life.clone(), marks)
    });
    let boards = boards.collect();
    let counts = shards.counts(boards, Some(home)).await?;
    let others = shards.as_of();
    let changes = found.iter().zip(&lives).enumerate().map(|(nth, (found, life))| {
        let tree = tree_of(life);
        let sum = |ranking: &ShardRanking, place| Summed::over(ranking, &counts, nth, place);
        let metadata = |ranking: &ShardRanking| metadata(ranking, home, tree);
        change_of(found.member, found.outcome.clone(), Arc::new(found.as_of(home, &others)), sum, metadata)
    });
    Ok(changes.collect())
}

/// As [`add_other_shards`] where there are none, of an outcome whose rankings have no metadata. Nothing is
/// asked, and no lock is taken.
///
/// # Arguments
/// `as_of`: where in the only shard's queue the outcome holds.
pub fn of_only_shard(member: &MemberId, as_of: &Arc<AsOf>, outcome: BoardOutcome) -> EntryChange {
    let sum = |ranking: &ShardRanking, place| Summed::over(ranking, &[], 0, place);
    change_of(member, outcome, Arc::clone(as_of), sum, |_| ListedMetadata::None)
}

/// # Arguments
/// - `sum`: adds up a ranking's counts on all shards, of the outcome's first ranking, and its second.
/// - `metadata`: that of a ranking.
fn change_of(
    member: &MemberId,
    outcome: BoardOutcome,
    as_of: Arc<AsOf>,
    sum: impl Fn(&ShardRanking, usize) -> Summed,
    metadata: impl FnOnce(&ShardRanking) -> ListedMetadata,
) -> EntryChange {
    let BoardOutcome { board, changed, takes_metadata, before, after } = outcome;
    let definition = &board.definition;
    // `None` beyond the capacity.
    let shown = |summed: &Summed| definition.capacity_after(summed.ahead) > 0;
    let previous = before.as_ref().map(|before| (before, sum(before, 0)));
    let entry = after.as_ref().map(|after| (after, sum(after, usize::from(before.is_some()))));
    let entry = entry.filter(|(_, summed)| shown(summed)).map(|(after, summed)| MemberEntry {
        listed: Listed {
            member: member.as_str().into(),
            score: definition.score_of(after.words.as_slice()),
            error: definition.error_of(after.words.as_slice()),
            better: summed.standing.better,
            position: summed.ahead + 1,
            updated_at: after.updated_at,
            reached_at: definition.reached_at(after.words.as_slice()),
            // Who sent the job knows its version.
            version: None,
            metadata: metadata(after),
            profile: ListedProfile::NotAsked,
            movement: ListedMovement::NotAsked,
            columns: Box::default(),
        },
        standing: summed.standing.within_capacity(definition),
        is_hidden: false,
        is_beyond_capacity: false,
    });
    let previous = previous.filter(|(_, summed)| shown(summed)).map(|(before, summed)| Previous {
        score: definition.score_of(before.words.as_slice()),
        rank: summed.standing.rank(),
        position: summed.ahead + 1,
    });
    EntryChange { board, changed, takes_metadata, entry, previous, as_of }
}

impl<'a> FoundOutcome<'a> {
    /// The life that the job changed: counts of a later one would be those of other entries.
    fn life(&self) -> BoardLife {
        let FoundBoard { name, incarnation, .. } = &*self.outcome.board;
        BoardLife { board: name.clone(), incarnation: *incarnation }
    }

    /// # Arguments
    /// `others`: what the counts of the other shards are exact at.
    fn as_of(&self, home: ShardId, others: &AsOf) -> AsOf {
        let others = others.0.iter().copied().filter(|(shard, _)| *shard != home);
        let mut as_of: Vec<(ShardId, Sequence)> = others.chain([(home, self.sequence)]).collect();
        as_of.sort_by_key(|(shard, _)| *shard);
        AsOf(as_of)
    }

    /// Before and after.
    fn rankings(&self) -> impl Iterator<Item = &'a ShardRanking> + use<'a> {
        self.outcome.before.iter().chain(&self.outcome.after)
    }

    /// What the other shards count for a ranking: at its score, and at its key.
    fn marks(&self, ranking: &ShardRanking) -> [Mark<'a>; 2] {
        let words = ranking.words.as_slice();
        let score = words.get(..self.outcome.board.definition.keys.len()).unwrap_or(words);
        let key = SortKey { words: ranking.words, member: self.member.as_bytes() };
        [Mark::Score(Words::from_slice(score)), Mark::Entry(key)]
    }
}

fn metadata(ranking: &ShardRanking, home: ShardId, tree: Option<TreeId>) -> ListedMetadata {
    match tree {
        Some(tree) if ranking.has_metadata => ListedMetadata::OnDisk(home, tree),
        _ => ListedMetadata::None,
    }
}

struct Summed {
    standing: Standing,
    ahead: u64,
}

impl Summed {
    /// # Arguments
    /// `nth`: which of the boards counted is the ranking's. `place`: which of this board's rankings it is.
    fn over(ranking: &ShardRanking, counts: &[CountsOfBoards], nth: usize, place: usize) -> Self {
        let mut sum = Self {
            standing: Standing { better: ranking.better, tied: ranking.tied, total: ranking.total },
            ahead: ranking.ahead,
        };
        for (_, boards) in counts {
            let Some(board) = boards.get(nth) else { continue };
            let at = |mark: usize| board.marks.get(2 * place + mark).copied().unwrap_or_default();
            let (score, key) = (at(0), at(1));
            sum.standing.better += score.before;
            sum.standing.tied += score.through - score.before;
            sum.standing.total += board.total;
            sum.ahead += key.before;
        }
        sum
    }
}

/// Reads [`add_other_shards`].
pub struct AddOtherShards<'a> {
    pub home: &'a ShardHandle,
    pub found: &'a [FoundOutcome<'a>],
}

impl ShardsRead for AddOtherShards<'_> {
    type Answer = Vec<EntryChange>;

    const IS_OF_THE_PAST: bool = true;

    fn is_about(&self, board: &BoardName) -> bool {
        self.found.iter().any(|found| found.outcome.board.name.board() == *board)
    }

    async fn read<'r>(&'r self, shards: ReadShards<'r>, _: &'r Registry) -> Result<Self::Answer, ReadError> {
        let home = self.home.id;
        let tree_on =
            |shard: &Shard, life: &BoardLife| ShardBoard::of_life(shard, life).window.map(|(tree, _)| tree);
        let tree_of = |life: &BoardLife| match shards {
            ReadShards::InMemory(view) => tree_on(view.shards.get(home.index())?, life),
            ReadShards::Remote(_) => tree_on(&self.home.state.read(Purpose::Read), life),
        };
        add_other_shards(shards, home, self.found, tree_of).await
    }
}
