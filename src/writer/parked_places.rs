//! Where jobs are parked, for readers: a read that asks for what was applied up to a sequence has to wait for
//! the jobs of its board that are parked at it or before.
//!
//! Knows, for each board: the sequence of the first job of the lines that are filed under it. A job may also
//! be parked in a line of another board: behind a job of its member, or because it names several boards. So
//! for each board that parked jobs name, a sequence that none of them comes before is known, too, the same of
//! jobs that are for every board, and the oldest job of all lines: nothing before that is parked. A read may
//! so wait for a job that is not of its board, but only while its board is named by parked jobs. Must not
//! know: how jobs are parked (`parking`).

use std::collections::BTreeMap;
use std::time::Instant;

use tokio::sync::watch;

use crate::types::{BoardName, Sequence};

/// Where jobs of a board are parked; `None`: there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BoardPlaces {
    /// The first job of the lines that are filed under the board.
    pub filed: Option<Sequence>,
    /// No parked job that names the board comes before.
    pub named: Option<Sequence>,
}

/// A board of which a batch has parked or unparked jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedChange {
    pub board: BoardName,
    /// The lowest sequences during the batch, or before it.
    pub lowest: BoardPlaces,
    pub now: BoardPlaces,
}

/// What a batch has changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParkedChanges {
    pub boards: Vec<ParkedChange>,
    /// No parked job comes before that counts for every board.
    pub everywhere: Option<Sequence>,
    /// The oldest job of all lines.
    pub oldest: Option<Sequence>,
}

/// Where jobs are parked.
#[derive(Default)]
struct Places {
    by_board: BTreeMap<BoardName, BoardPlaces>,
    everywhere: Option<Sequence>,
    oldest: Option<Sequence>,
    /// Jobs count as parked that a batch has unparked which is being shown.
    is_in_batch: bool,
    /// How many of these batches were shown to their end.
    batches_ended: u64,
}

pub struct ParkedPlaces(watch::Sender<Places>);

impl Default for ParkedPlaces {
    fn default() -> Self {
        Self(watch::channel(Places::default()).0)
    }
}

impl ParkedPlaces {
    /// Replaces all that is known.
    pub fn replace(&self, places: ParkedChanges) {
        let by_board = places.boards.into_iter().map(|change| (change.board, change.now)).collect();
        let ParkedChanges { everywhere, oldest, .. } = places;
        self.0.send_modify(|places| {
            let batches_ended = places.batches_ended + 1;
            *places = Places { by_board, everywhere, oldest, is_in_batch: false, batches_ended };
        });
    }

    /// Before readers see a batch's sequences: jobs that it parks are known, and none is forgotten yet.
    pub fn begin(&self, changes: &ParkedChanges) {
        self.change(changes, |places| {
            places.is_in_batch = true;
            places.everywhere = lower(places.everywhere, changes.everywhere);
            places.oldest = lower(places.oldest, changes.oldest);
            for ParkedChange { board, lowest, .. } in &changes.boards {
                let known = places.by_board.entry(board.clone()).or_default();
                known.filed = lower(known.filed, lowest.filed);
                known.named = lower(known.named, lowest.named);
                places.oldest = lower(places.oldest, lowest.filed);
            }
        });
    }

    /// Once readers see the batch: jobs that it has unparked are forgotten.
    pub fn end(&self, changes: &ParkedChanges) {
        self.change(changes, |places| {
            (places.everywhere, places.oldest) = (changes.everywhere, changes.oldest);
            (places.is_in_batch, places.batches_ended) = (false, places.batches_ended + 1);
            for ParkedChange { board, now, .. } in &changes.boards {
                if *now == BoardPlaces::default() {
                    places.by_board.remove(board);
                } else {
                    places.by_board.insert(board.clone(), *now);
                }
            }
        });
    }

    fn change(&self, changes: &ParkedChanges, change: impl FnOnce(&mut Places)) {
        let is_same = {
            let known = self.0.borrow();
            !known.is_in_batch && (known.everywhere, known.oldest) == (changes.everywhere, changes.oldest)
        };
        if !(changes.boards.is_empty() && is_same) {
            self.0.send_modify(change);
        }
    }

    /// Whether a job from this sequence or before waits that the board's readers have to wait for.
    pub fn holds(&self, board: &BoardName, through: Sequence) -> bool {
        self.0.borrow().holds(board, through)
    }

    /// Whether any job from this sequence or before waits.
    pub fn holds_any(&self, through: Sequence) -> bool {
        self.0.borrow().holds_any(through)
    }

    /// Waits until the batch is shown whose sequences readers see, so that jobs which it has unparked are
    /// forgotten. Returns whether that is so.
    pub async fn wait_until_batch_ends(&self, until: Instant) -> bool {
        let mut places = self.0.subscribe();
        let batches_ended = places.borrow().batches_ended;
        let ended = places.wait_for(|places| !places.is_in_batch || places.batches_ended > batches_ended);
        matches!(tokio::time::timeout_at(until.into(), ended).await, Ok(Ok(_)))
    }

    /// Waits until no job from this sequence or before waits. Returns whether that is so.
    pub async fn wait_until_none(&self, through: Sequence, until: Instant) -> bool {
        let mut places = self.0.subscribe();
        let freed = places.wait_for(|places| !places.holds_any(through));
        matches!(tokio::time::timeout_at(until.into(), freed).await, Ok(Ok(_)))
    }

    /// Waits until no job from this sequence or before waits for the board. Returns whether that is so.
    pub async fn wait_until_free(&self, board: &BoardName, through: Sequence, until: Instant) -> bool {
        let mut places = self.0.subscribe();
        let freed = places.wait_for(|places| !places.holds(board, through));
        matches!(tokio::time::timeout_at(until.into(), freed).await, Ok(Ok(_)))
    }
}

impl Places {
    fn holds_any(&self, through: Sequence) -> bool {
        self.oldest.is_some_and(|oldest| oldest <= through)
    }

    fn holds(&self, board: &BoardName, through: Sequence) -> bool {
        let BoardPlaces { filed, named } = self.by_board.get(board).copied().unwrap_or_default();
        let is_before = |sequence: Option<Sequence>| sequence.is_some_and(|sequence| sequence <= through);
        is_before(filed) || ((is_before(named) || is_before(self.everywhere)) && is_before(self.oldest))
    }
}

/// The lower one; `None` is above all.
fn lower(one: Option<Sequence>, other: Option<Sequence>) -> Option<Sequence> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn name(text: &str) -> BoardName {
        BoardName::new(text).expect("a good name")
    }

    fn at(filed: Option<u64>, named: Option<u64>) -> BoardPlaces {
        BoardPlaces { filed: filed.map(Sequence), named: named.map(Sequence) }
    }

    fn change(board: &str, lowest: BoardPlaces, now: BoardPlaces) -> ParkedChange {
        ParkedChange { board: name(board), lowest, now }
    }

    fn changes(boards: impl Into<Vec<ParkedChange>>, oldest: Option<u64>) -> ParkedChanges {
        ParkedChanges { boards: boards.into(), everywhere: None, oldest: oldest.map(Sequence) }
    }

    /// The first sequence whose readers of the board wait; 0 for none.
    fn held(places: &ParkedPlaces, board: &str) -> u64 {
        (1..20).find(|sequence| places.holds(&name(board), Sequence(*sequence))).unwrap_or_default()
    }

    #[test]
    fn a_job_is_parked_from_before_its_sequence_is_seen_until_what_freed_it_is_seen() {
        let places = ParkedPlaces::default();
        assert_eq!(held(&places, "a"), 0);
        // One is parked and freed in the same batch, another one only parked.
        let filed = |sequence| at(sequence, sequence);
        let first = changes(
            [change("a", filed(Some(7)), filed(None)), change("b", filed(Some(8)), filed(Some(8)))],
            Some(8),
        );
        places.begin(&first);
        assert_eq!((held(&places, "a"), held(&places, "b"), held(&places, "c")), (7, 8, 0));
        places.end(&first);
        assert_eq!((held(&places, "a"), held(&places, "b")), (0, 8));
        let second = changes([change("b", filed(Some(8)), at(Some(12), Some(8)))], Some(12));
        places.begin(&second);
        assert_eq!(held(&places, "b"), 8, "the one that is freed counts until readers see it");
        places.end(&second);
        assert_eq!(held(&places, "b"), 12);
        places.replace(changes([], None));
        assert_eq!(held(&places, "b"), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_batch_has_unparked_is_forgotten_once_the_batch_has_ended() {
        let places = ParkedPlaces::default();
        let ends = |within: u64| {
            places
                .wait_until_batch_ends((tokio::time::Instant::now() + Duration::from_secs(within)).into_std())
        };
        assert!(ends(1).await, "there is no batch");
        let everywhere = ParkedChanges { everywhere: Some(Sequence(7)), ..changes([], Some(7)) };
        for batch in [changes([change("a", at(Some(7), Some(7)), at(None, None))], None), everywhere] {
            places.begin(&batch);
            assert!(!ends(1).await, "a batch that takes long is not taken for ended");
            let (ended, ()) = tokio::join!(ends(1), async {
                tokio::task::yield_now().await;
                places.end(&batch);
                // The next one begins before anybody looks.
                places.begin(&batch);
            });
            assert!(ended && held(&places, "a") > 0, "the batch that was seen has ended");
            places.end(&batch);
            assert!(ends(1).await);
        }
        places.begin(&changes([change("a", at(Some(9), Some(9)), at(Some(9), Some(9)))], Some(9)));
        places.replace(changes([], None));
        assert!(ends(1).await, "the batch has failed, and all is known anew");
    }

    /// Readers of a board wait for a job of it in another board's line, and no longer than that line's first
    /// job is one that they have to wait for.
    #[test]
    fn a_job_in_a_line_of_another_board_is_waited_for() {
        let places = ParkedPlaces::default();
        let first = changes([change("a", at(Some(3), Some(3)), at(Some(3), Some(3)))], Some(3));
        places.begin(&first);
        places.end(&first);
        assert_eq!(held(&places, "known"), 0);
        let second = changes([change("known", at(None, Some(5)), at(None, Some(5)))], Some(3));
        places.begin(&second);
        places.end(&second);
        assert_eq!((held(&places, "a"), held(&places, "known")), (3, 5));
        assert_eq!((places.holds_any(Sequence(2)), places.holds_any(Sequence(3))), (false, true));
        // What is parked now came later.
        let third = changes([change("a", at(Some(3), Some(3)), at(Some(9), Some(3)))], Some(9));
        places.begin(&third);
        assert_eq!(held(&places, "known"), 5);
        places.end(&third);
        assert_eq!(held(&places, "known"), 9);
        let fourth = changes([change("known", at(None, Some(5)), at(None, None))], Some(9));
        places.begin(&fourth);
        places.end(&fourth);
        assert_eq!(held(&places, "known"), 0);
        // One for every board, whose line no board is known of.
        let fifth = ParkedChanges { everywhere: Some(Sequence(11)), ..changes([], Some(9)) };
        places.begin(&fifth);
        places.end(&fifth);
        assert_eq!((held(&places, "known"), held(&places, "other")), (11, 11));
        let sixth = changes([], None);
        places.begin(&sixth);
        assert_eq!(held(&places, "other"), 11);
        places.end(&sixth);
        assert_eq!(held(&places, "other"), 0);
    }
}
