//! Asks shards which of the watched boards have changed: one question to each shard for many boards.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use crate::query::live::feed::Feed;
use crate::query::question::{BoardLife, Question, Reply, is_consistent};
use crate::query::remote_shards::{AskTerms, ShardClient};
use crate::types::{Sequence, ShardId};

/// Boards of one question. Each takes a look-up under the shard's lock, about 200 ns.
const BOARDS_AT_ONCE: usize = 128;
/// How long a shard is waited for.
const WAIT: Duration = Duration::from_secs(1);

/// Returns those of the feeds that have to be computed.
///
/// # Arguments
/// `pause`: says when a feed that has not changed is looked at again.
pub(super) async fn changed(
    shards: &dyn ShardClient,
    feeds: Vec<(Arc<Feed>, BoardLife)>,
    pause: impl Fn(&Feed) -> Duration,
) -> Vec<Arc<Feed>> {
    let mut changed = Vec::new();
    for chunk in feeds.chunks(BOARDS_AT_ONCE) {
        let begun = Instant::now();
        let question = Question::Changed(chunk.iter().map(|(_, life)| life.clone()).collect());
        let ids = (0..shards.shard_count()).map(ShardId);
        let terms = AskTerms { until: Some(begun + WAIT), ..AskTerms::default() };
        let question = &question;
        let asked = ids.map(|shard| async move {
            let reply = shards.ask(shard, question, terms).await.ok();
            let reply = reply.filter(|reply| is_consistent(question, &reply.reply));
            (
                shard,
                reply.and_then(|reply| match reply.reply {
                    Reply::Changed(changed) => Some((reply.sequence, changed)),
                    _ => None,
                }),
            )
        });
        let replies = join_all(asked).await;
        for (index, (feed, _)) in chunk.iter().enumerate() {
            let of_shard = |(shard, reply): &(ShardId, Option<(Sequence, Vec<Sequence>)>)| {
                let told = reply.as_ref().and_then(|(at, changed)| Some((*at, *changed.get(index)?)));
                (*shard, told)
            };
            let told: Vec<_> = replies.iter().map(of_shard).collect();
            if feed.has_changed(begun, &told, pause(feed)) {
                changed.push(Arc::clone(feed));
            }
        }
        tokio::task::yield_now().await;
    }
    changed
}
