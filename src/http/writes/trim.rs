//! The entries after a trim point, removed on every shard: on those of this node by itself, on others by
//! their owners.

use futures_util::future::{BoxFuture, FutureExt as _, join_all};

use crate::cluster::{TrimOrder, TrimTerms, Trimmed, TrimmingShard};
use crate::http::api::Api;
use crate::http::render::problem::Problem;
use crate::http::writes::boards::Removed;
use crate::queue::NotPublished;
use crate::types::{AsOf, Sequence, ShardId};

/// Removes the entries after a trim point, for as long as the client waits. The same request removes what is
/// left then.
///
/// # Arguments
/// `as_of`: where the trim point was found.
///
/// # Errors
/// When a shard does not take a message, or does not answer in time.
pub async fn trim_board(api: &Api, order: &TrimOrder, as_of: &AsOf) -> Result<Removed, Problem> {
    let mut trims: Vec<BoxFuture<'_, Result<Trimmed, Problem>>> = Vec::with_capacity(as_of.0.len());
    for (shard, found) in &as_of.0 {
        trims.push(trim_shard(api, *shard, order, *found).boxed());
    }
    let (mut entries, mut token) = (0, Vec::with_capacity(as_of.0.len()));
    for ((shard, found), trimmed) in as_of.0.iter().zip(join_all(trims).await) {
        let trimmed = trimmed?;
        entries += trimmed.removed;
        token.push((*shard, trimmed.sequence.max(*found)));
    }
    Ok(Removed { entries, token: AsOf(token) })
}

/// Trims a shard in as many steps as it takes.
///
/// # Arguments
/// `found`: the sequence of the shard at which the trim point was found.
async fn trim_shard(
    api: &Api,
    shard: ShardId,
    order: &TrimOrder,
    found: Sequence,
) -> Result<Trimmed, Problem> {
    let own = api.node.owned(shard).map(|own| TrimmingShard::new(own, api.publishers.of(shard).clone()));
    let mut all = Trimmed { sequence: found, ..Trimmed::default() };
    while !all.is_finished {
        let step = match (&own, &api.other_owners) {
            (Some(own), _) => own.trim(order, TrimTerms::WHOLE).await?,
            (None, Some(others)) => {
                let trimmed = others.trim(shard, order, all.sequence).await;
                trimmed.map_err(|why| of_other_node(shard, why))?
            }
            (None, None) => return Err(Problem::missing_shards(&[shard])),
        };
        let sequence = all.sequence.max(step.sequence);
        all = Trimmed { removed: all.removed + step.removed, sequence, is_finished: step.is_finished };
    }
    Ok(all)
}

fn of_other_node(shard: ShardId, why: NotPublished) -> Problem {
    match why {
        NotPublished::Unavailable(why) => Problem::shard_unavailable(why).with_shards(&[shard]),
        why => why.into(),
    }
}
