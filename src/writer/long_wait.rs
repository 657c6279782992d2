//! Notices that parked jobs wait long for the definition of a board. Normally that takes a moment; a board
//! that cannot be defined keeps its jobs waiting for ever, and nothing else names it. Nor does it help a job
//! that boards are defined one by one, while it waits behind others of its member for thousands of them.
//!
//! Knows: up to where the shard was a minute ago. A job that came before then, and waits now, waits long,
//! whatever it has waited for. Must not know: why it waits.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::job::JobPlace;
use crate::types::{BoardName, Sequence};

/// A job that has waited for longer is reported.
const LONG: Duration = Duration::from_secs(60);
/// The time between two looks at where the shard is.
const MARK_INTERVAL: Duration = Duration::from_secs(5);
/// The least time between two lines of the log.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// What is known of how long jobs wait for boards.
#[derive(Default)]
pub struct LongWait {
    /// Where the shard was and when, at intervals, the latest last. The first may be long ago.
    marks: VecDeque<(Instant, Sequence)>,
    logged_at: Option<Instant>,
}

impl LongWait {
    /// Notes where the shard is. Returns whether jobs wait long, and the board if that is to be logged.
    ///
    /// # Arguments
    /// `oldest`: of the jobs that wait for a board, the first one.
    pub fn note<'a>(
        &mut self,
        oldest: Option<(JobPlace, &'a BoardName)>,
        applied: Sequence,
        now: Instant,
    ) -> (bool, Option<&'a BoardName>) {
        if self.marks.back().is_none_or(|(at, _)| now.duration_since(*at) >= MARK_INTERVAL) {
            self.marks.push_back((now, applied));
        }
        let is_long_ago = |at: &Instant| now.duration_since(*at) >= LONG;
        while self.marks.get(1).is_some_and(|(at, _)| is_long_ago(at)) {
            self.marks.pop_front();
        }
        let Some(((sequence, _), board)) = oldest else { return (false, None) };
        if !self.marks.front().is_some_and(|(at, applied)| is_long_ago(at) && sequence <= *applied) {
            return (false, None);
        }
        let is_due = self.logged_at.is_none_or(|at| now.duration_since(at) >= LOG_INTERVAL);
        if is_due {
            self.logged_at = Some(now);
        }
        (true, is_due.then_some(board))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_that_the_oldest_job_waits_for_long_is_reported_at_intervals() {
        let [a, b] = ["a", "b"].map(|name| BoardName::new(name).expect("a good name"));
        let (mut wait, start) = (LongWait::default(), Instant::now());
        // Ten messages come each second.
        let mut note = |seconds: u64, oldest: Option<(u64, &BoardName)>| {
            let oldest = oldest.map(|(sequence, board)| ((Sequence(sequence), 0), board));
            let (is_long, logged) =
                wait.note(oldest, Sequence(10 * seconds), start + Duration::from_secs(seconds));
            (is_long, logged.map(ToString::to_string))
        };
        for second in 1..61 {
            assert_eq!(note(second, Some((5, &a))), (false, None), "{second}");
        }
        assert_eq!(note(61, Some((5, &a))), (true, Some("a".to_owned())));
        for second in 62..121 {
            assert_eq!(note(second, Some((5, &a))), (true, None), "{second}");
        }
        assert_eq!(note(121, Some((5, &a))), (true, Some("a".to_owned())));
        // That one was defined: the next one has waited since it came.
        for second in 122..151 {
            assert_eq!(note(second, Some((900, &b))), (false, None), "{second}");
        }
        assert_eq!(note(152, None), (false, None));
        assert_eq!(note(156, Some((900, &b))), (true, None));
        assert_eq!(note(181, Some((900, &b))), (true, Some("b".to_owned())));
    }

    #[test]
    fn a_job_waits_long_though_one_board_after_another_is_defined_before_it() {
        let (mut wait, start) = (LongWait::default(), Instant::now());
        let mut long = Vec::new();
        for second in 0..180_u64 {
            let board = BoardName::new(&format!("b{second}")).expect("a good name");
            // All came at once, in one line, and each second another one of them is the first that waits.
            let oldest = Some(((Sequence(7), u32::try_from(second).expect("small")), &board));
            let (is_long, logged) = wait.note(oldest, Sequence(7), start + Duration::from_secs(second));
            long.extend(is_long.then_some((second, logged.is_some())));
        }
        assert_eq!(long.first(), Some(&(60, true)));
        assert_eq!((long.len(), long.iter().filter(|(_, logged)| *logged).count()), (120, 2));
    }
}
