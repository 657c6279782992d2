//! The sessions of a fetcher, and what the latest one confirms to retention: that the stream continues what
//! was applied.
//!
//! Knows: which session is the latest, and whether it has confirmed that, or is doubted. Must not know: how a
//! stream is compared or purged. A session confirms once at most. A doubt takes the confirmation back, and
//! confirmations of earlier sessions do not count.

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
    /// The stream holds the tip's message as it was applied. The number is where the stream ended when the
    /// session began.
    Continues(u64),
    /// What it found may have changed since.
    Doubted,
}

impl Sessions {
    /// Begins the next session, and gives its number.
    pub fn begin(&self) -> u64 {
        let mut latest = self.latest.lock();
        *latest = Latest { number: latest.number + 1, found: Found::Nothing };
        latest.number
    }

    /// Ends the latest session: whether the stream continues what was applied is unknown again. Confirmations
    /// that this session still makes do not count.
    pub fn end(&self) {
        self.begin();
    }

    /// Confirms that the stream continues what was applied. Counts once, and only for the latest session
    /// while nobody doubts it.
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

    /// Doubts the latest session: the next one compares the tip again.
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
    fn a_doubted_session_cannot_confirm_again() {
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
    fn confirmations_of_earlier_sessions_do_not_count() {
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
    fn a_session_doubted_before_it_confirmed_confirms_nothing() {
        let sessions = Sessions::default();
        let first = sessions.begin();
        sessions.doubt();
        sessions.confirm(first, 7);
        assert_eq!(sessions.confirmed(), None);
        assert!(is_over(sessions.doubted(first)));
    }
}
