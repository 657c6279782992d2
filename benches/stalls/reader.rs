//! A reader that locks the shard again and again, as requests do, and notes how long it waits.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use ranktree::query::Node;

use crate::support::thread_figures::ThreadFigures;

/// Between two reads: any wait of a millisecond is met by one of them, and the reader takes little of a core.
const PAUSE: Duration = Duration::from_micros(50);

/// The longest waits, in nanoseconds.
struct Waits {
    /// From asking for the lock to having it.
    longest: AtomicU64,
    /// Of that, without the time in which another thread had the core that it wanted.
    longest_for_lock: AtomicU64,
    /// How long reads take, waits included.
    reads: Mutex<Histogram<u64>>,
}

pub struct Reader {
    waits: Arc<Waits>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What a reader met since the last look.
pub struct Met {
    pub longest: Duration,
    pub longest_for_lock: Duration,
    /// How long reads took, waits included, in nanoseconds.
    pub reads: Histogram<u64>,
}

impl Waits {
    fn new() -> Self {
        let (longest, longest_for_lock) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { longest, longest_for_lock, reads: Mutex::new(histogram()) }
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 10_000_000_000, 3).expect("bounds and digits are in range")
}

impl Reader {
    /// Reads from a board of that name, or, as long as there is none, looks whether there is.
    pub fn start(node: Arc<Node>, board: &'static str) -> Self {
        let (waits, stop) = (Arc::new(Waits::new()), Arc::new(AtomicBool::new(false)));
        let (its_waits, its_stop) = (Arc::clone(&waits), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let core = ThreadFigures::of_this_thread();
            let mut score = 0_u64;
            while !its_stop.load(Ordering::Relaxed) {
                std::thread::sleep(PAUSE);
                score = score.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let without_core = core.core_waits();
                let asked = Instant::now();
                let view = node.view(|_| false).expect("no board is asked");
                let waited = asked.elapsed();
                let trees = view.shards.iter().filter_map(|shard| shard.board_tree(board));
                black_box(trees.map(|tree| tree.tree.count_below(&[score])).sum::<u64>());
                drop(view);
                let for_lock = waited.saturating_sub(core.core_waits().saturating_sub(without_core));
                its_waits.longest.fetch_max(nanos(waited), Ordering::Relaxed);
                its_waits.longest_for_lock.fetch_max(nanos(for_lock), Ordering::Relaxed);
                its_waits
                    .reads
                    .lock()
                    .expect("nobody panics with it")
                    .saturating_record(nanos(asked.elapsed()));
            }
        });
        Self { waits, stop, thread: Some(thread) }
    }

    pub fn take(&self) -> Met {
        let take = |value: &AtomicU64| value.swap(0, Ordering::Relaxed);
        Met {
            longest: Duration::from_nanos(take(&self.waits.longest)),
            longest_for_lock: Duration::from_nanos(take(&self.waits.longest_for_lock)),
            reads: std::mem::replace(
                &mut self.waits.reads.lock().expect("nobody panics with it"),
                histogram(),
            ),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
