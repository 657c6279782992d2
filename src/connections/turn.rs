//! How busy a thread of connections is.
//!
//! Such a thread works in turns: it waits for events, and does what they ask for. Requests of one turn have
//! come together, so that each keeps those behind it waiting. A turn may begin no request, as an event may be
//! the end of what another thread did: after such a turn only the next one's own requests tell.
//!
//! Knows: how many requests this turn has begun, and the one before. Must not know: what they ask for.

use std::cell::Cell;

struct Turn {
    requests: Cell<u32>,
    /// Those of the turn before; `None` on threads that do not say when a turn ends.
    before: Cell<Option<u32>>,
}

thread_local! {
    static TURN: Turn = const { Turn { requests: Cell::new(0), before: Cell::new(None) } };
}

/// This thread's turn is over: it is going to wait for events.
pub fn end() {
    TURN.with(|turn| turn.before.set(Some(turn.requests.replace(0))));
}

/// A request is begun.
pub fn begin_request() {
    TURN.with(|turn| turn.requests.set(turn.requests.get().saturating_add(1)));
}

/// Whether the current request, which is counted already, probably keeps others waiting. False on threads
/// that do not call [`end`].
pub fn has_others() -> bool {
    TURN.with(|turn| turn.before.get().is_some_and(|before| before.max(turn.requests.get()) > 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_a_turn_and_of_the_one_before_keep_others_waiting() {
        let asks = |requests| {
            (0..requests).for_each(|_| begin_request());
            has_others()
        };
        // On a thread whose turns nobody ends, nothing is known.
        assert!(!asks(9));
        end();
        end();
        assert!(!asks(1), "it is alone");
        end();
        assert!(!asks(1), "it came after the other was answered");
        assert!(asks(1), "it is the second of this turn");
        end();
        assert!(asks(1), "the turn before had two");
        end();
        assert!(!asks(1));
    }
}
