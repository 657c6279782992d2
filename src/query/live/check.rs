//! Asks shards which of the watched boards have changed: one question to each shard for many boards.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use crate::query::live::feed::Feed;
use crate::query::question::{BoardLife, Question, Reply, is_consistent};
use crate::query::remote_shards::{AskTerms, NoReply, ReadError, ShardClient};
use crate::types::{Sequence, ShardId};

/// Boards of one question. Each takes a look-up under the shard's lock, about 200 ns.
const BOARDS_AT_ONCE: usize = 128;
/// How long a shard is waited for.
const WAIT: Duration = Duration::from_secs(1);

/// What was found out.
pub(super) struct Told {
    /// Feeds that have to be computed.
    pub(super) changed: Vec<Arc<Feed>>,
    /// Whether some shard has not answered in time.
    pub(super) is_silent: bool,
}

/// Asks about all of the feeds at the same time, so that a shard that does not answer is waited for once.
///
/// # Arguments
/// `pause`: says when a feed that has not changed is looked at again.
pub(super) async fn changed(
    shards: &dyn ShardClient,
    feeds: Vec<(Arc<Feed>, BoardLife)>,
    pause: impl Fn(&Feed) -> Duration,
) -> Told {
    let (begun, mut told) = (Instant::now(), Told { changed: Vec::new(), is_silent: false });
    let asked = feeds.chunks(BOARDS_AT_ONCE).map(|chunk| ask(shards, chunk, begun));
    let replies = join_all(asked).await;
    for (chunk, replies) in feeds.chunks(BOARDS_AT_ONCE).zip(replies) {
        let silent = replies.iter().find_map(|(_, reply)| match reply {
            Answered::Silent(why) => Some(why),
            Answered::Told(..) | Answered::Otherwise => None,
        });
        told.is_silent |= silent.is_some();
        for (index, (feed, _)) in chunk.iter().enumerate() {
            let of_shard = |(shard, reply): &(ShardId, Answered)| match reply {
                Answered::Told(at, changed) => (*shard, changed.get(index).map(|changed| (*at, *changed))),
                Answered::Silent(_) | Answered::Otherwise => (*shard, None),
            };
            let shards: Vec<_> = replies.iter().map(of_shard).collect();
            if feed.has_changed(begun, &shards, silent, pause(feed)) {
                told.changed.push(Arc::clone(feed));
            }
        }
        tokio::task::yield_now().await;
    }
    told
}

/// What a shard has said.
enum Answered {
    /// Its sequence, and when each board changed last.
    Told(Sequence, Vec<Sequence>),
    /// Nothing, in all the time that it had.
    Silent(ReadError),
    /// Something else: it does not know the question, or has no owner at present.
    Otherwise,
}

async fn ask(
    shards: &dyn ShardClient,
    feeds: &[(Arc<Feed>, BoardLife)],
    begun: Instant,
) -> Vec<(ShardId, Answered)> {
    let question = Question::Changed(feeds.iter().map(|(_, life)| life.clone()).collect());
    let terms = AskTerms { until: Some(begun + WAIT), ..AskTerms::default() };
    let question = &question;
    let asked = (0..shards.shard_count()).map(ShardId).map(|shard| async move {
        let answered = match shards.ask(shard, question, terms).await {
            Ok(reply) if is_consistent(question, &reply.reply) => match reply.reply {
                Reply::Changed(changed) => Answered::Told(reply.sequence, changed),
                _ => Answered::Otherwise,
            },
            Err(NoReply::Unavailable(why)) if begun.elapsed() >= WAIT => {
                Answered::Silent(ReadError::Unavailable(vec![why]))
            }
            Ok(_) | Err(_) => Answered::Otherwise,
        };
        (shard, answered)
    });
    join_all(asked).await
}
