//! Places for connections: how many there may be, in all and from one client.
//!
//! When they are taken, or one client has its share, a few more are let in to be told so, for a short time and so few
//! that a flood of them costs nothing: among them are the probes of whoever watches the service.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// Connections beyond the limit that are answered, and not just closed.
const SPARE: usize = 64;
/// Of these, so many from one client.
const SPARE_PER_CLIENT: usize = 8;

/// Connections that may be open at a time; 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    pub total: usize,
    /// From one IPv4 address, or one IPv6 network of 64 bits, which is what one client has.
    pub per_client: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        // A connection takes up to 128 KiB while its request is read; one client cannot keep out the others.
        Self { total: 4_096, per_client: 1_024 }
    }
}

/// Counts connections.
#[derive(Debug)]
pub struct Places {
    limits: ConnectionLimits,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    total: usize,
    spare: usize,
    /// Places and spare places of a client.
    by_client: HashMap<IpAddr, (usize, usize)>,
}

/// A connection's place, given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    client: IpAddr,
    /// It is one to be told in that there are too many.
    pub is_spare: bool,
}

impl Places {
    pub fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self { limits, taken: Mutex::default() })
    }

    /// A place for a connection from this address, if there is any.
    pub fn take(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let client = client_of(address);
        let mut taken = self.taken.lock();
        let (of_client, spare_of_client) = taken.by_client.get(&client).copied().unwrap_or_default();
        let below = |count: usize, limit: usize| limit == 0 || count < limit;
        let is_spare = !(below(taken.total, self.limits.total) && below(of_client, self.limits.per_client));
        if is_spare && (taken.spare >= SPARE || spare_of_client >= SPARE_PER_CLIENT) {
            return None;
        }
        let counts = taken.by_client.entry(client).or_default();
        if is_spare {
            counts.1 += 1;
            taken.spare += 1;
        } else {
            counts.0 += 1;
            taken.total += 1;
        }
        drop(taken);
        Some(Place { places: Arc::clone(self), client, is_spare })
    }

    /// Connections that are open.
    #[cfg(test)]
    fn count(&self) -> usize {
        let taken = self.taken.lock();
        taken.total + taken.spare
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        if self.is_spare {
            taken.spare -= 1;
        } else {
            taken.total -= 1;
        }
        let Some(counts) = taken.by_client.get_mut(&self.client) else { return };
        let count = if self.is_spare { &mut counts.1 } else { &mut counts.0 };
        *count -= 1;
        if *counts == (0, 0) {
            taken.by_client.remove(&self.client);
        }
    }
}

/// Whom an address belongs to.
fn client_of(address: IpAddr) -> IpAddr {
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
    fn one_client_leaves_places_for_others_and_all_get_theirs_back() {
        let places = Places::new(ConnectionLimits { total: 12, per_client: 10 });
        let take = |text| places.take(address(text));
        let flood: Vec<_> = (0..50).map(|_| take("192.0.2.1")).collect();
        let spare = flood.iter().flatten().filter(|place| place.is_spare).count();
        assert_eq!((flood.iter().flatten().count(), spare), (18, 8));
        // The same client, whichever way its address is written.
        assert!(take("::ffff:192.0.2.1").is_none());
        let others: Vec<_> =
            ["192.0.2.2", "192.0.2.3", "192.0.2.4"].map(take).into_iter().flatten().collect();
        assert_eq!(others.iter().map(|place| place.is_spare).collect::<Vec<_>>(), [false, false, true]);
        assert_eq!(places.count(), 21);
        drop(flood);
        assert!(take("192.0.2.1").is_some_and(|place| !place.is_spare));
        drop(others);
        assert_eq!(places.count(), 0);
        assert!(places.taken.lock().by_client.is_empty());
    }

    #[test]
    fn an_ipv6_client_is_its_network() {
        let places = Places::new(ConnectionLimits { total: 0, per_client: 1 });
        let take = |text| places.take(address(text)).expect("there is a spare place");
        let first = take("2001:db8:0:1::1");
        let same = take("2001:db8:0:1:ffff::2");
        let other = take("2001:db8:0:2::1");
        assert_eq!([first.is_spare, same.is_spare, other.is_spare], [false, true, false]);
        let unlimited = Places::new(ConnectionLimits { total: 0, per_client: 0 });
        let many: Vec<_> = (0..10_000).map(|_| unlimited.take(address("192.0.2.1"))).collect();
        assert!(many.iter().all(|place| place.as_ref().is_some_and(|place| !place.is_spare)));
    }
}
