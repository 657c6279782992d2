//! The permission that `--accept-gap` gives: to accept one gap or one unknown command, once.
//!
//! Knows: after which applied sequence it was used. It is used up only when a later sequence is applied.
//! Until then a failed commit makes the same messages come again, and they must be accepted again. Must not
//! know: what is accepted.

use parking_lot::Mutex;

use crate::types::Sequence;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It was not given, or it is spent.
    Spent,
    Open,
    /// For what comes after this sequence.
    Used(Sequence),
}

/// An operator's permission to accept one gap, for one shard and one run.
pub struct GapPermission(Mutex<State>);

impl GapPermission {
    pub fn new(is_given: bool) -> Self {
        Self(Mutex::new(if is_given { State::Open } else { State::Spent }))
    }

    /// Whether what comes after `tip` is accepted. It is used then.
    pub fn take(&self, tip: Sequence) -> bool {
        let mut state = self.0.lock();
        let is_open = *state == State::Open;
        if is_open {
            *state = State::Used(tip);
        }
        is_open
    }

    /// Withdraws the permission because there was no gap. Returns whether it was still unused.
    pub fn withdraw(&self) -> bool {
        let mut state = self.0.lock();
        let is_open = *state == State::Open;
        if is_open {
            *state = State::Spent;
        }
        is_open
    }

    /// Takes the permission back for good, whether it was used or not. Returns whether it was there.
    pub fn revoke(&self) -> bool {
        let before = std::mem::replace(&mut *self.0.lock(), State::Spent);
        before != State::Spent
    }

    /// Called when the queue is resumed after the applied sequence. If the permission was used for messages
    /// that are not applied, they come again, and it must be usable again.
    pub fn resume(&self, applied: Sequence) {
        let mut state = self.0.lock();
        if let State::Used(tip) = *state {
            *state = if applied > tip { State::Spent } else { State::Open };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_accepted_and_not_applied_is_accepted_again() {
        let permission = GapPermission::new(true);
        assert!(permission.take(Sequence(7)));
        assert!(!permission.take(Sequence(8)), "only once");
        // The commit of messages 7 and 8 failed, then that of 8.
        for applied in [6, 7] {
            permission.resume(Sequence(applied));
            assert!(permission.take(Sequence(7)));
        }
        permission.resume(Sequence(8));
        assert!(!permission.take(Sequence(8)), "it is applied");
    }

    #[test]
    fn nothing_is_accepted_that_was_not_allowed_or_comes_later() {
        assert!(!GapPermission::new(false).take(Sequence(0)));
        let permission = GapPermission::new(true);
        assert!(permission.withdraw());
        permission.resume(Sequence(0));
        assert!(!permission.take(Sequence(0)) && !permission.withdraw());
        for is_used in [false, true] {
            let permission = GapPermission::new(true);
            assert_eq!(is_used && permission.take(Sequence(7)), is_used);
            assert!(permission.revoke() && !permission.revoke());
            permission.resume(Sequence(7));
            assert!(!permission.take(Sequence(7)));
        }
    }
}
