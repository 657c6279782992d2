//! One member's entry.

use crate::query::answer::{MemberEntry, Standing};
use crate::query::board_view::BoardView;
use crate::query::merge::{MergedEntry, first};
use crate::query::question::{Mark, RunQuestion, RunStart};
use crate::query::read::BoardRead;
use crate::query::remote_shards::ReadError;
use crate::query::shard_run::ShardRun;
use crate::types::MemberId;

/// The member's entry; `None` if it is not listed: never here, removed, hidden or beyond the capacity. One
/// round trip with its home shard, and then one with the others.
pub async fn member(board: &BoardView<'_>, member: &MemberId) -> Result<Option<MemberEntry>, ReadError> {
    let Some(home) = board.run_of_member(member, 0, 0).await? else { return Ok(None) };
    let Some(found) = first(&home) else { return Ok(None) };
    let home = std::slice::from_ref(&home);
    let others = match board.shard_count() {
        1 => Vec::new(),
        _ => Box::pin(runs_of_others(board, home, &found, 0, 0)).await?,
    };
    Ok(entry(&board.definition, &found, home.iter().chain(&others)))
}

/// Runs of the other shards before the entry found.
pub(super) async fn runs_of_others<'v>(
    board: &BoardView<'v>,
    home: &[ShardRun<'v>],
    found: &MergedEntry<'_>,
    above: u32,
    below: u32,
) -> Result<Vec<ShardRun<'v>>, ReadError> {
    let start = RunStart::Before(Mark::Entry(found.key));
    let except = home.first().map(|home| home.shard);
    board.runs(&RunQuestion { start, worst: None, above, below, metadata: true }, except).await
}

/// The entry before which all runs start; `None` if it is beyond the capacity.
pub(super) fn entry<'r, 'v: 'r>(
    definition: &crate::board::Definition,
    found: &MergedEntry<'_>,
    runs: impl Iterator<Item = &'r ShardRun<'v>>,
) -> Option<MemberEntry> {
    let mut standing = Standing { better: 0, tied: 0, total: 0 };
    let mut ahead = 0;
    for run in runs {
        let at_score = run.at_start();
        standing.better += at_score.before;
        standing.tied += at_score.through - at_score.before;
        standing.total += run.total();
        ahead += run.start();
    }
    MemberEntry::within_capacity(definition, found, ahead, &standing)
}

/// Reads [`member`].
#[derive(Clone)]
pub struct MemberOf {
    pub member: MemberId,
}

impl BoardRead for MemberOf {
    type Answer = Option<MemberEntry>;

    fn shows_total(answer: &Self::Answer) -> bool {
        answer.is_some()
    }

    async fn read<'r>(&'r self, board: &'r BoardView<'r>) -> Result<Self::Answer, ReadError> {
        member(board, &self.member).await
    }
}
