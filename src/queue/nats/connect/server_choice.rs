//! Chooses the server that a connection goes to next.
//!
//! Knows: the order in which servers were tried. The kernel of a frozen server still accepts connections, so
//! an attempt there takes the whole time limit. So the server that was left last is tried after all others.
//! Must not know: why it was left.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::Duration;

use async_nats::{ReconnectToServer, Server, ServerAddr};

/// The pause between attempts doubles from `PAUSE_FIRST` up to `PAUSE_MAX`.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Where a connection was tried, and how often.
#[derive(Default)]
pub struct ServerChoice {
    /// Servers in the order of their last attempts.
    tried: Vec<ServerAddr>,
    /// Attempts since there was a connection.
    attempts: usize,
}

impl ServerChoice {
    /// Notes that there is a connection.
    pub fn note_connected(&mut self) {
        self.attempts = 0;
    }

    /// The next server, and the pause before it; `None` if there are no servers.
    ///
    /// Servers that have not failed come first, then those whose last attempt is the longest ago. Servers
    /// that were never tried are in random order, so that nodes spread over them.
    pub fn next(&mut self, servers: &[Server]) -> Option<ReconnectToServer> {
        let random = RandomState::new();
        let rank = |server: &Server| {
            let place = self.tried.iter().position(|tried| *tried == server.addr);
            // The NATS client counts failed attempts, but no lost connections.
            let was_left = place.is_some_and(|place| place + 1 == self.tried.len());
            let order = place.map_or(0, |place| place + 1);
            (server.failed_attempts > 0 || was_left, order, random.hash_one(&server.addr))
        };
        let addr = servers.iter().min_by_key(|server| rank(server))?.addr.clone();
        self.tried.retain(|tried| *tried != addr);
        self.tried.push(addr.clone());
        self.attempts += 1;
        Some(ReconnectToServer { addr, delay: Some(pause(self.attempts)) })
    }
}

fn pause(attempt: usize) -> Duration {
    let doublings = u32::try_from(attempt.min(10)).unwrap_or(10);
    (PAUSE_FIRST * 2_u32.pow(doublings.saturating_sub(1))).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn server(name: &str, failed_attempts: usize) -> Server {
        Server {
            addr: name.parse().expect("a good address"),
            failed_attempts,
            did_connect: false,
            is_discovered: false,
            last_error: None,
        }
    }

    fn next(choice: &mut ServerChoice, servers: &[Server]) -> String {
        choice.next(servers).expect("there are servers").addr.host().to_owned()
    }

    #[test]
    fn the_server_that_was_left_is_tried_after_all_others() {
        let servers = [server("a", 0), server("b", 0), server("c", 0)];
        let mut choice = ServerChoice::default();
        let mut order = Vec::new();
        for _ in 0..7 {
            order.push(next(&mut choice, &servers));
            choice.note_connected();
        }
        // Each server is left for the one that was left the longest ago.
        assert_eq!(order.iter().take(3).collect::<BTreeSet<_>>().len(), 3, "{order:?}");
        assert!(order.windows(4).all(|four| four.first() == four.last()), "{order:?}");
    }

    #[test]
    fn servers_that_failed_are_tried_once_no_other_is_left() {
        let mut choice = ServerChoice::default();
        let servers = [server("a", 0), server("b", 3)];
        assert_eq!(next(&mut choice, &servers), "a");
        choice.note_connected();
        // The connection to a is lost, and b is still not there.
        assert_eq!([(); 3].map(|()| next(&mut choice, &servers)), ["b", "a", "b"]);
        assert_eq!(next(&mut choice, &[server("a", 1)]), "a", "the only one");
        assert!(choice.next(&[]).is_none());
    }

    #[test]
    fn pauses_grow_until_there_is_a_connection() {
        let mut choice = ServerChoice::default();
        let servers = [server("a", 1), server("b", 1)];
        let pause = |choice: &mut ServerChoice| choice.next(&servers).expect("there are two").delay;
        let pauses: Vec<_> = (0..4).map(|_| pause(&mut choice).expect("it says").as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800]);
        assert_eq!((0..20).map(|_| pause(&mut choice)).last(), Some(Some(PAUSE_MAX)));
        choice.note_connected();
        assert_eq!(pause(&mut choice), Some(PAUSE_FIRST));
    }
}
