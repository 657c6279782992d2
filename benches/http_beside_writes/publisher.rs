//! Publishes messages of jobs, on a schedule or as fast as they become visible.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;

use crate::support::nats::{Messages, connect, runtime, subject};
use crate::support::service::{Service, applied};

/// Messages on their way while saturation is looked for.
pub const WINDOW: u64 = 1_000;
/// Messages sent before the publisher waits for what is stored.
const UNSTORED_MAX: usize = 2_000;
/// A publisher that is early waits so long. What is due by then goes out together.
const PUBLISH_EVERY: Duration = Duration::from_millis(1);

/// How fast.
#[derive(Clone, Copy)]
pub enum Pace {
    Idle,
    /// With [`WINDOW`] messages on their way.
    Saturating,
    /// Jobs a second.
    Scheduled(f64),
}

/// Publishes until it is told to stop, then waits until all of it is stored.
pub fn publish(url: &str, service: &Service, messages: &mut Messages, pace: Pace, stop: &AtomicBool) {
    if matches!(pace, Pace::Idle) {
        return;
    }
    let mut http = service.http();
    let mut visible = || applied(&mut http).iter().sum::<u64>();
    let first = visible();
    runtime().block_on(async {
        let context = async_nats::jetstream::context::ContextBuilder::new()
            .max_ack_inflight(2 * UNSTORED_MAX)
            .build(connect(url).await);
        let (started, mut published, mut unstored) = (Instant::now(), 0, VecDeque::new());
        while !stop.load(Ordering::Relaxed) {
            let due = match pace {
                Pace::Idle => 0,
                Pace::Saturating => visible() - first + WINDOW,
                Pace::Scheduled(jobs) => (started.elapsed().as_secs_f64() * jobs / crate::JOBS as f64) as u64,
            };
            while published < due && unstored.len() < UNSTORED_MAX {
                let (shard, body) = messages.next();
                let stored = context.publish(subject(shard), body.into()).await.expect("it is connected");
                unstored.push_back(Box::pin(stored.into_future()));
                published += 1;
            }
            tokio::time::sleep(PUBLISH_EVERY).await;
            while let Some(stored) = unstored.front_mut().and_then(FutureExt::now_or_never) {
                stored.expect("it is stored");
                unstored.pop_front();
            }
        }
        for stored in unstored {
            stored.await.expect("it is stored");
        }
    });
    // What is left over would be part of the next phase.
    let mut last = visible();
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let now = visible();
        if now == last {
            return;
        }
        last = now;
    }
}
