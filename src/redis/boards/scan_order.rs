//! All boards in the order in which `SCAN` goes through them: by the hash of their names, so that one that is
//! there all the time is told once, whatever comes and goes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::redis::boards::asked::Asking;
use crate::redis::boards::pace::Pace;
use crate::redis::refused::Refused;
use crate::types::{BoardName, fnv1a_32};

/// How old an order may be in the midst of a scan: what was made since the scan's begin need not be told.
const OLD_IN_SCAN: Duration = Duration::from_secs(1);
/// How old one may be though nothing seems to have changed.
const OLD: Duration = Duration::from_secs(10);
/// Names that are taken from the registry at once, under its lock.
const NAMES_AT_ONCE: usize = 1_000;

/// Names by their places, of which the first is 1: 0 is the begin of a scan.
pub type Names = Arc<[(u64, BoardName)]>;

/// The order, kept for the next call of a scan.
#[derive(Default)]
pub struct ScanOrder(Mutex<Option<Kept>>);

struct Kept {
    /// What the registry's last number was, and how many boards it had.
    state: (u64, usize),
    at: Instant,
    names: Names,
}

impl ScanOrder {
    /// The order. It has all boards that were there when the scan began, and maybe some that are not there
    /// any more.
    ///
    /// # Errors
    /// When the client has left.
    pub async fn names(&self, asking: &Asking<'_>, is_begin: bool) -> Result<Names, Refused> {
        let registry = &asking.operations.registry;
        let state = (registry.last_incarnation().0, registry.count_named(None));
        if let Some(kept) = &*self.0.lock() {
            let old = if kept.state == state { OLD } else { OLD_IN_SCAN };
            if (kept.state == state || !is_begin) && kept.at.elapsed() < old {
                return Ok(Arc::clone(&kept.names));
            }
        }
        let (at, mut names) = (Instant::now(), Vec::new());
        each_name(asking, |name| names.push((place(&name), name))).await?;
        names.sort_unstable();
        let names: Names = names.into();
        *self.0.lock() = Some(Kept { state, at, names: Arc::clone(&names) });
        Ok(names)
    }
}

/// Where a name stands.
fn place(name: &BoardName) -> u64 {
    u64::from(fnv1a_32(name.as_str().as_bytes())) + 1
}

/// Has the name of every board visited, in their order.
///
/// # Errors
/// When the client has left.
pub async fn each_name(asking: &Asking<'_>, mut visit: impl FnMut(BoardName) + Send) -> Result<(), Refused> {
    let (mut after, mut pace) = (None, Pace::begin());
    loop {
        let page = asking.operations.registry.page_after(after.as_ref(), NAMES_AT_ONCE, |_| true);
        let (is_last, work) = (page.len() < NAMES_AT_ONCE, page.len());
        after = page.last().map(|(name, _)| name.clone());
        for (name, _) in page {
            visit(name);
        }
        if is_last {
            return Ok(());
        }
        pace.note(asking, work).await?;
    }
}
