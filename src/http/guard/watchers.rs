//! The limit on watchers of boards, in all and of one client.
//!
//! A watcher keeps its connection, so watchers may be fewer than connections: others must get through.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use metrics::{counter, gauge};
use parking_lot::Mutex;

use crate::connections::client_of;
use crate::http::render::problem::Problem;
use crate::metrics::{LIVE_DROPPED_TOTAL, LIVE_EVENTS_TOTAL, LIVE_WATCHERS, figure};
use crate::types::count;

/// How many may watch at a time; 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatcherLimits {
    pub total: usize,
    /// Of one client: one IPv4 address, or one IPv6 network of 64 bits.
    pub per_client: usize,
}

impl Default for WatcherLimits {
    fn default() -> Self {
        // Half of the connections.
        Self { total: 2_048, per_client: 512 }
    }
}

/// Counts watchers.
#[derive(Debug)]
pub struct Watchers {
    limits: WatcherLimits,
    watching: Mutex<Watching>,
}

#[derive(Debug, Default)]
struct Watching {
    total: usize,
    by_client: HashMap<IpAddr, usize>,
}

/// The right to watch. Dropping it gives it back.
#[derive(Debug)]
pub struct WatcherPermit {
    watchers: Arc<Watchers>,
    client: Option<IpAddr>,
}

impl Watchers {
    pub fn new(limits: WatcherLimits) -> Arc<Self> {
        // They exist from the start, so that their rates can be asked for.
        gauge!(LIVE_WATCHERS).set(0.0);
        for kind in ["state", "changes", "end"] {
            counter!(LIVE_EVENTS_TOTAL, "kind" => kind).increment(0);
        }
        for reason in ["limit", "token", "gone"] {
            counter!(LIVE_DROPPED_TOTAL, "reason" => reason).increment(0);
        }
        Arc::new(Self { limits, watching: Mutex::default() })
    }

    /// A permit for one more watcher.
    ///
    /// # Errors
    /// When there are too many, in all or of the client.
    pub fn permit(self: &Arc<Self>, address: Option<IpAddr>) -> Result<WatcherPermit, Problem> {
        let client = address.map(client_of);
        let mut watching = self.watching.lock();
        let of_client = client.and_then(|client| watching.by_client.get(&client).copied()).unwrap_or(0);
        let is_below = |count: usize, limit: usize| limit == 0 || count < limit;
        if !is_below(watching.total, self.limits.total) || !is_below(of_client, self.limits.per_client) {
            return Err(Problem::too_many_watchers());
        }
        watching.total += 1;
        if let Some(client) = client {
            watching.by_client.insert(client, of_client + 1);
        }
        gauge!(LIVE_WATCHERS).set(figure(count(watching.total)));
        drop(watching);
        Ok(WatcherPermit { watchers: Arc::clone(self), client })
    }
}

impl Drop for WatcherPermit {
    fn drop(&mut self) {
        let mut watching = self.watchers.watching.lock();
        watching.total -= 1;
        gauge!(LIVE_WATCHERS).set(figure(count(watching.total)));
        let Some(client) = self.client else { return };
        match watching.by_client.get_mut(&client) {
            Some(1) | None => {
                watching.by_client.remove(&client);
            }
            Some(others) => *others -= 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_leaves_room_for_others_and_who_leaves_makes_room() {
        let watchers = Watchers::new(WatcherLimits { total: 3, per_client: 2 });
        let permit = |text: &str| watchers.permit(Some(text.parse().expect("an address")));
        let first = permit("192.0.2.1").expect("the first");
        let _second = permit("::ffff:192.0.2.1").expect("the second");
        assert!(permit("192.0.2.1").is_err(), "the same client");
        let _other = permit("192.0.2.2").expect("another client");
        assert!(permit("192.0.2.3").is_err(), "too many in all");
        drop(first);
        assert!(permit("192.0.2.1").is_ok());
        let unlimited = Watchers::new(WatcherLimits { total: 0, per_client: 0 });
        let many: Vec<_> = (0..5_000).map(|_| unlimited.permit(None)).collect();
        assert!(many.iter().all(Result::is_ok));
    }
}
