//! What a fetcher's session tells the keeper: that the stream continues what was applied.
//!
//! Knows: which session is the latest, and whether it has found that out, or is doubted. Must not know: how a stream is
//! compared or purged. A session says so once at most: what it found before somebody doubted it counts for nothing
//! afterwards, and neither does anything that an earlier session has to say.

use parking_lot::Mutex;
use tokio::sync::Notify;

/// A session that has found that the stream continues what was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confirmed {
    pub session: u64,
    /// Where the stream ended when the session began.
    pub end: u64,
}

/// The sessions of a shard's fetcher, one after the other.
#[derive(Default)]
pub struct Sessions {
    latest: Mutex<Latest>,
    doubted: Notify,
}

#[derive(Default)]
struct Latest {
    number: u64,
    found: Found,
}

/// What the latest session has found.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Nothing yet; or it has ended.
    #[default]
    Nothing,
    /// The tip's message is in the stream as it was. The stream's end when the session began.
    Continues(u64),
    /// What it found need not be so any more.
    Doubted,
}

impl Sessions {
    /// Begins the next session, and gives its number.
    pub fn begin(&self) -> u64 {
        let mut latest = self.latest.lock();
        *latest = Latest { number: latest.number + 1, found: Found::Nothing };
        latest.number
    }

    /// Whether the stream continues what was applied is not known any more. What a session of before has to say comes too
    /// late.
    pub fn end(&self) {
        self.begin();
    }

    /// A session has found that it does. Counts once, and only for the latest one that nobody doubts.
    ///
    /// # Arguments
    /// `end`: where the stream ended when the session began.
    pub fn confirm(&self, session: u64, end: u64) {
        let mut latest = self.latest.lock();
        if latest.number == session && latest.found == Found::Nothing {
            latest.found = Found::Continues(end);
        }
    }

    /// The latest session, if it has found that the stream continues what was applied.
    pub fn confirmed(&self) -> Option<Confirmed> {
        let latest = self.latest.lock();
        match latest.found {
            Found::Continues(end) => Some(Confirmed { session: latest.number, end }),
            Found::Nothing | Found::Doubted => None,
        }
    }

    /// Has the tip compared once more, by a session that begins after this.
    pub fn doubt(&self) {
        self.latest.lock().found = Found::Doubted;
        self.doubted.notify_one();
    }

    /// Returns once a session is doubted.
    pub async fn doubted(&self, session: u64) {
        loop {
            if self.is_doubted(session) {
                return;
            }
            // A doubt from before this line is not missed: it leaves a permit.
            self.doubted.notified().await;
        }
    }

    fn is_doubted(&self, session: u64) -> bool {
        let latest = self.latest.lock();
        latest.number == session && latest.found == Found::Doubted
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn is_over(future: impl Future<Output = ()>) -> bool {
        pin!(future).poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    #[test]
    fn a_session_that_is_doubted_confirms_itself_no_more() {
        let sessions = Sessions::default();
        let first = sessions.begin();
        assert_eq!(sessions.confirmed(), None);
        sessions.confirm(first, 7);
        assert_eq!(sessions.confirmed(), Some(Confirmed { session: first, end: 7 }));
        assert!(!is_over(sessions.doubted(first)));
        sessions.doubt();
        sessions.confirm(first, 9);
        assert_eq!(sessions.confirmed(), None, "messages that it still brings change nothing");
        assert!(is_over(sessions.doubted(first)));
        let second = sessions.begin();
        sessions.confirm(second, 9);
        assert_eq!(sessions.confirmed(), Some(Confirmed { session: second, end: 9 }));
        assert!(!is_over(sessions.doubted(second)), "the doubt was about another one");
    }

    #[test]
    fn what_an_earlier_session_has_to_say_comes_too_late() {
        let sessions = Sessions::default();
        let first = sessions.begin();
        sessions.end();
        sessions.confirm(first, 7);
        assert_eq!(sessions.confirmed(), None);
        let second = sessions.begin();
        sessions.confirm(first, 7);
        assert_eq!(sessions.confirmed(), None);
        sessions.confirm(second, 8);
        assert_eq!(sessions.confirmed(), Some(Confirmed { session: second, end: 8 }));
    }

    #[test]
    fn a_session_that_is_doubted_before_it_has_found_anything_confirms_nothing() {
        let sessions = Sessions::default();
        let first = sessions.begin();
        sessions.doubt();
        sessions.confirm(first, 7);
        assert_eq!(sessions.confirmed(), None);
        assert!(is_over(sessions.doubted(first)));
    }
}
