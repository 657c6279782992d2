//! Notices that parked jobs wait long for the definition of a board. Normally that takes a moment; a board
//! that cannot be defined keeps its jobs waiting for ever, and nothing else names it.
//!
//! Knows: the oldest job that waits, and since when it is the oldest. Must not know: why it waits.

use std::time::{Duration, Instant};

use crate::job::JobPlace;
use crate::types::BoardName;

/// A job that was the oldest one for longer is reported.
const LONG: Duration = Duration::from_secs(60);
/// The least time between two lines of the log.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// What is known of the oldest job that waits for a board.
#[derive(Default)]
pub struct LongWait {
    oldest: Option<Oldest>,
    logged_at: Option<Instant>,
}

struct Oldest {
    place: JobPlace,
    board: BoardName,
    since: Instant,
}

impl LongWait {
    /// Notes which job is the oldest now. Returns whether it waits long, and the board if that is to be
    /// logged.
    pub fn note(
        &mut self,
        oldest: Option<(JobPlace, &BoardName)>,
        now: Instant,
    ) -> (bool, Option<&BoardName>) {
        let Some((place, board)) = oldest else {
            self.oldest = None;
            return (false, None);
        };
        let known = self.oldest.take().filter(|known| known.place == place && known.board == *board);
        let known =
            self.oldest.insert(known.unwrap_or_else(|| Oldest { place, board: board.clone(), since: now }));
        if now.duration_since(known.since) < LONG {
            return (false, None);
        }
        let is_due = self.logged_at.is_none_or(|at| now.duration_since(at) >= LOG_INTERVAL);
        if is_due {
            self.logged_at = Some(now);
        }
        (true, is_due.then_some(&known.board))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Sequence;

    #[test]
    fn a_board_that_the_oldest_job_waits_for_long_is_reported_at_intervals() {
        let [a, b] = ["a", "b"].map(|name| BoardName::new(name).expect("a good name"));
        let (mut wait, start) = (LongWait::default(), Instant::now());
        let mut note = |seconds, oldest: Option<(u64, &BoardName)>| {
            let oldest = oldest.map(|(sequence, board)| ((Sequence(sequence), 0), board));
            let (is_long, logged) = wait.note(oldest, start + Duration::from_secs(seconds));
            (is_long, logged.map(ToString::to_string))
        };
        assert_eq!(note(0, Some((1, &a))), (false, None));
        assert_eq!(note(59, Some((1, &a))), (false, None));
        assert_eq!(note(60, Some((1, &a))), (true, Some("a".to_owned())));
        assert_eq!(note(61, Some((1, &a))), (true, None));
        assert_eq!(note(120, Some((1, &a))), (true, Some("a".to_owned())));
        // That one was defined: the next one begins to be watched.
        assert_eq!(note(130, Some((2, &b))), (false, None));
        assert_eq!(note(190, Some((2, &b))), (true, Some("b".to_owned())));
        // Its first job waits for another board now.
        assert_eq!(note(200, Some((2, &a))), (false, None));
        assert_eq!(note(300, None), (false, None));
        assert_eq!(note(400, Some((2, &a))), (false, None));
    }
}
