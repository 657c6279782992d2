//! The limit on connections, in all and from one client.
//!
//! Beyond the limit a few overflow connections are let in for a short time, to be told so. They are so few
//! that a flood of them costs nothing. Among them are the probes of an orchestrator.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// The most overflow connections. Further ones are closed.
const OVERFLOW_MAX: usize = 64;
/// The most overflow connections of one client.
const OVERFLOW_PER_CLIENT_MAX: usize = 8;

/// How many connections may be open at a time; 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    pub total: usize,
    /// Of one client: one IPv4 address, or one IPv6 network of 64 bits.
    pub per_client: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        // A connection takes up to 32 KiB while its request is read, but for long heads, which have a limit
        // of their own. One client cannot keep the others out.
        Self { total: 4_096, per_client: 1_024 }
    }
}

/// Counts open connections, and gives permits for new ones.
#[derive(Debug)]
pub struct ConnectionLimiter {
    limits: ConnectionLimits,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    /// Within the limit.
    total: usize,
    overflow: usize,
    by_client: HashMap<IpAddr, ClientConnections>,
}

/// The open connections of one client.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct ClientConnections {
    /// Within the limit.
    total: usize,
    overflow: usize,
}

/// The right of a connection to be open. Dropping it gives it back.
#[derive(Debug)]
pub struct ConnectionPermit {
    limiter: Arc<ConnectionLimiter>,
    client: IpAddr,
    /// The connection is beyond the limit.
    pub is_overflow: bool,
}

impl ConnectionLimiter {
    pub fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self { limits, open: Mutex::default() })
    }

    /// A permit for a connection from this address, unless there are too many overflow connections already.
    pub fn permit(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionPermit> {
        let client = client_of(address);
        let mut open = self.open.lock();
        let of_client = open.by_client.get(&client).copied().unwrap_or_default();
        let below = |count: usize, limit: usize| limit == 0 || count < limit;
        let is_within =
            below(open.total, self.limits.total) && below(of_client.total, self.limits.per_client);
        let is_overflow = !is_within;
        if is_overflow && (open.overflow >= OVERFLOW_MAX || of_client.overflow >= OVERFLOW_PER_CLIENT_MAX) {
            return None;
        }
        let counts = open.by_client.entry(client).or_default();
        if is_overflow {
            counts.overflow += 1;
            open.overflow += 1;
        } else {
            counts.total += 1;
            open.total += 1;
        }
        drop(open);
        Some(ConnectionPermit { limiter: Arc::clone(self), client, is_overflow })
    }

    /// Connections that are open.
    #[cfg(test)]
    fn count(&self) -> usize {
        let open = self.open.lock();
        open.total + open.overflow
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.limiter.open.lock();
        if self.is_overflow {
            open.overflow -= 1;
        } else {
            open.total -= 1;
        }
        let Some(counts) = open.by_client.get_mut(&self.client) else { return };
        if self.is_overflow {
            counts.overflow -= 1;
        } else {
            counts.total -= 1;
        }
        if *counts == ClientConnections::default() {
            open.by_client.remove(&self.client);
        }
    }
}

/// The client that an address belongs to: one IPv4 address, or one IPv6 network of 64 bits.
pub fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn one_client_leaves_room_for_others_and_closed_connections_make_room() {
        let limiter = ConnectionLimiter::new(ConnectionLimits { total: 12, per_client: 10 });
        let permit = |text| limiter.permit(address(text));
        let flood: Vec<_> = (0..50).map(|_| permit("192.0.2.1")).collect();
        let overflow = flood.iter().flatten().filter(|permit| permit.is_overflow).count();
        assert_eq!((flood.iter().flatten().count(), overflow), (18, 8));
        // The same client: its address as IPv6 has it.
        assert!(permit("::ffff:192.0.2.1").is_none());
        let others: Vec<_> =
            ["192.0.2.2", "192.0.2.3", "192.0.2.4"].map(permit).into_iter().flatten().collect();
        assert_eq!(others.iter().map(|permit| permit.is_overflow).collect::<Vec<_>>(), [false, false, true]);
        assert_eq!(limiter.count(), 21);
        drop(flood);
        assert!(permit("192.0.2.1").is_some_and(|permit| !permit.is_overflow));
        drop(others);
        assert_eq!(limiter.count(), 0);
        assert!(limiter.open.lock().by_client.is_empty());
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_client() {
        let limiter = ConnectionLimiter::new(ConnectionLimits { total: 0, per_client: 1 });
        let permit = |text| limiter.permit(address(text)).expect("overflow connections are let in");
        let first = permit("2001:db8:0:1::1");
        let same = permit("2001:db8:0:1:ffff::2");
        let other = permit("2001:db8:0:2::1");
        assert_eq!([first.is_overflow, same.is_overflow, other.is_overflow], [false, true, false]);
        let unlimited = ConnectionLimiter::new(ConnectionLimits { total: 0, per_client: 0 });
        let many: Vec<_> = (0..10_000).map(|_| unlimited.permit(address("192.0.2.1"))).collect();
        assert!(many.iter().all(|permit| permit.as_ref().is_some_and(|permit| !permit.is_overflow)));
    }
}
