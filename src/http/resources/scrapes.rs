//! The text of all metrics. Rendering takes milliseconds, and up to a megabyte with many shards, so those who
//! ask at the same time share one rendering.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Bytes;

/// Renders all metrics as Prometheus text.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// Renderings, one at a time. One whose client goes away is made to its end beside the next.
pub struct Scrapes {
    render: RenderMetrics,
    /// How many renderings have begun.
    begun: AtomicU64,
    /// The latest one, with its number. Held while the next one is made.
    latest: tokio::sync::Mutex<(u64, Bytes)>,
}

impl Scrapes {
    pub fn new(render: RenderMetrics) -> Self {
        Self { render, begun: AtomicU64::new(0), latest: tokio::sync::Mutex::default() }
    }

    /// The text of a rendering that has begun after this call. `None`: rendering panicked.
    pub async fn text(&self) -> Option<Bytes> {
        let begun = self.begun.load(Ordering::SeqCst);
        let mut latest = self.latest.lock().await;
        // One that had begun before this call may lack what its client has done before it asked.
        if latest.0 <= begun {
            let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
            let render = Arc::clone(&self.render);
            // It folds all samples since the last scrape, and asks the operating system.
            let text = tokio::task::spawn_blocking(move || render()).await.ok()?;
            *latest = (number, Bytes::from(text));
        }
        Some(latest.1.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::time::Duration;

    use super::*;

    #[test]
    fn those_who_ask_while_one_is_rendered_share_the_next() {
        let (rendered, may_end) = (Arc::new(AtomicU64::new(0)), Arc::new(Barrier::new(2)));
        let (count, ends) = (Arc::clone(&rendered), Arc::clone(&may_end));
        let scrapes = Arc::new(Scrapes::new(Arc::new(move || {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            ends.wait();
            number.to_string()
        })));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let ask = || {
                let scrapes = Arc::clone(&scrapes);
                tokio::spawn(async move { scrapes.text().await.expect("it does not panic") })
            };
            let first = ask();
            while rendered.load(Ordering::SeqCst) == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            // On this thread, each of these has asked once the next one is spawned and this one yields.
            let others = [(); 5].map(|()| ask());
            tokio::task::yield_now().await;
            may_end.wait();
            assert_eq!(first.await.expect("no panic"), "1");
            let ends = Arc::clone(&may_end);
            tokio::task::spawn_blocking(move || ends.wait()).await.expect("no panic");
            for other in others {
                assert_eq!(other.await.expect("no panic"), "2", "the first had begun before they asked");
            }
        });
        assert_eq!(rendered.load(Ordering::SeqCst), 2);
    }
}
