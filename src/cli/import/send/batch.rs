//! Rows gathered into requests: as many as fit, by count, by the boards that they change and by bytes.

use std::sync::mpsc::SyncSender;

use crate::cli::import::read::{MAX_BODY_BYTES, Place, Row};
use crate::cli::import::send::pending::{Pending, Ticket};
use crate::job::MAX_BOARDS_PER_REQUEST;

/// A row on its way, without its job.
#[derive(Debug, Clone, Copy)]
pub struct SentRow {
    pub place: Place,
    /// Applying it twice differs from applying it once.
    pub adds: bool,
    pub is_repeat: bool,
    /// Where its job ends in the body.
    end: usize,
}

/// Rows in the order of their lines, for one request.
#[derive(Debug, Default)]
pub struct Batch {
    pub rows: Vec<SentRow>,
    /// The request's body: an array of the jobs. Empty without any.
    body: String,
    /// Under which it is pending.
    pub ticket: Option<Ticket>,
}

impl Batch {
    /// Of so few rows that they are one request.
    #[cfg(test)]
    pub fn of(rows: &[Row]) -> Self {
        let mut batch = Self::default();
        for Row { place, job, adds, is_repeat, .. } in rows {
            batch.push(job, SentRow { place: *place, adds: *adds, is_repeat: *is_repeat, end: 0 });
        }
        batch
    }

    fn with_capacity(rows: usize, bytes: usize) -> Self {
        Self { rows: Vec::with_capacity(rows), body: String::with_capacity(bytes), ticket: None }
    }

    fn push(&mut self, job: &str, row: SentRow) {
        if self.body.pop().is_some() {
            self.body.push(',');
        } else {
            self.body.push('[');
        }
        self.body.push_str(job);
        self.rows.push(SentRow { end: self.body.len(), ..row });
        self.body.push(']');
    }

    /// Leaves only some of the rows in it, by their indexes.
    pub fn retain(&mut self, is_kept: impl Fn(usize) -> bool) {
        let before = std::mem::take(self);
        self.ticket = before.ticket;
        let mut begin = 1;
        for (index, row) in before.rows.into_iter().enumerate() {
            if is_kept(index) {
                self.push(before.body.get(begin..row.end).unwrap_or_default(), row);
            }
            begin = row.end + 1;
        }
    }

    /// The request's body.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// Whether sending it twice has the same effect as sending it once.
    pub fn is_repeatable(&self) -> bool {
        !self.rows.iter().any(|row| row.adds)
    }

    /// Where its first and its last row are.
    pub fn places(&self) -> (Place, Place) {
        let place = |row: Option<&SentRow>| row.map_or_else(Place::default, |row| row.place);
        (place(self.rows.first()), place(self.rows.last()))
    }
}

/// The connection behind a lane has ended; its own error says why.
#[derive(Debug)]
pub struct Stopped;

/// The rows of some members, queued for one connection.
pub struct Lane<'a> {
    pending: &'a Pending,
    queue: SyncSender<Batch>,
    batch: Batch,
    /// How many boards the rows of the batch change.
    boards: usize,
    rows_max: usize,
}

impl<'a> Lane<'a> {
    pub fn new(queue: SyncSender<Batch>, rows_max: usize, pending: &'a Pending) -> Self {
        Self { pending, queue, batch: Batch::default(), boards: 0, rows_max }
    }

    /// Waits while the connection is busy and enough is queued.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn push(&mut self, row: &Row) -> Result<(), Stopped> {
        let boards = row.boards.len().max(1);
        let bytes = self.batch.body.len().max(1) + row.job.len() + 1;
        let fits = self.batch.rows.len() < self.rows_max
            && self.boards + boards <= MAX_BOARDS_PER_REQUEST
            && bytes <= MAX_BODY_BYTES;
        if !fits {
            self.flush()?;
        }
        self.boards += boards;
        let Row { place, adds, is_repeat, .. } = *row;
        if self.batch.rows.is_empty() {
            self.batch.ticket = Some(self.pending.begin(place));
        }
        self.batch.push(&row.job, SentRow { place, adds, is_repeat, end: 0 });
        Ok(())
    }

    /// Sends what is left.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn finish(&mut self) -> Result<(), Stopped> {
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Stopped> {
        self.boards = 0;
        // The next batch is most likely as long.
        let next = Batch::with_capacity(self.batch.rows.len(), self.batch.body.len());
        let batch = std::mem::replace(&mut self.batch, next);
        if batch.rows.is_empty() { Ok(()) } else { self.queue.send(batch).map_err(|_| Stopped) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;
    use crate::cli::import::read::limits::MAX_JOB_BYTES;
    use crate::cli::import::read::row::Boards;

    fn row(line: u64, job: String) -> Row {
        Row::new(line, job, "m", Some("set"), false, Boards::new())
    }

    fn lines(batch: &Batch) -> (u64, u64) {
        let (first, last) = batch.places();
        (first.line, last.line)
    }

    fn batches(jobs: &[String], rows_max: usize) -> Vec<Batch> {
        let (queue, batches) = sync_channel(jobs.len() + 1);
        let pending = Pending::default();
        let mut lane = Lane::new(queue, rows_max, &pending);
        for (line, job) in (1..).zip(jobs) {
            lane.push(&row(line, job.clone())).expect("the other end is open");
        }
        lane.finish().expect("the other end is open");
        drop(lane);
        batches.into_iter().collect()
    }

    #[test]
    fn a_batch_ends_at_its_count() {
        let all = batches(&vec!["{}".to_owned(); 5], 2);
        let bodies: Vec<_> = all.iter().map(Batch::body).collect();
        assert_eq!(bodies, ["[{},{}]", "[{},{}]", "[{}]"]);
        assert_eq!(all.iter().map(lines).collect::<Vec<_>>(), [(1, 2), (3, 4), (5, 5)]);
        assert!(batches(&[], 2).is_empty(), "no rows, no request");
    }

    #[test]
    fn a_body_never_exceeds_the_limit_and_wastes_no_byte_of_it() {
        let half = "x".repeat(MAX_BODY_BYTES / 2 - 1);
        let fits = [half.clone(), "x".repeat(MAX_BODY_BYTES - half.len() - 3)];
        let [one] = batches(&fits, 1000).try_into().expect("both jobs fit one body");
        assert_eq!(one.body().len(), MAX_BODY_BYTES);
        let exceeds = [half.clone(), "x".repeat(MAX_BODY_BYTES - half.len() - 2)];
        assert_eq!(batches(&exceeds, 1000).len(), 2);
        let largest = ["x".repeat(MAX_JOB_BYTES), "{}".to_owned()];
        assert_eq!(batches(&largest, 1000).iter().map(|b| b.body().len()).max(), Some(MAX_BODY_BYTES));
    }

    #[test]
    fn a_batch_changes_no_more_boards_than_a_request_may() {
        let boards: Boards = (0..64).map(|number| format!("b{number}").into()).collect();
        let (queue, batches) = sync_channel(10);
        let pending = Pending::default();
        let mut lane = Lane::new(queue, 1_000, &pending);
        for line in 1..=100 {
            let row = Row::new(line, "{}".to_owned(), "m", Some("set"), false, boards.clone());
            lane.push(&row).expect("the other end is open");
        }
        lane.finish().expect("the other end is open");
        drop(lane);
        let rows: Vec<usize> = batches.into_iter().map(|batch| batch.rows.len()).collect();
        assert_eq!(rows, [62, 38]);
    }

    #[test]
    fn one_row_that_adds_makes_a_batch_unrepeatable() {
        let increment = |version| Row::new(2, "{}".to_owned(), "m", Some("incr"), version, Boards::new());
        let batch = Batch::of(&[row(1, "{}".to_owned()), increment(true)]);
        assert!(batch.is_repeatable(), "a version makes an increment repeatable");
        assert!(!Batch::of(&[row(1, "{}".to_owned()), increment(false)]).is_repeatable());
    }

    #[test]
    fn rows_that_are_left_keep_their_jobs_and_lines() {
        let jobs = ["0", "11", "", "333"].map(str::to_owned);
        let rows: Vec<Row> = (10..).zip(jobs).map(|(line, job)| row(line, job)).collect();
        for (kept, body, ends) in [
            (&[0, 1, 2, 3][..], "[0,11,,333]", (10, 13)),
            (&[1, 3], "[11,333]", (11, 13)),
            (&[0], "[0]", (10, 10)),
            (&[], "", (0, 0)),
        ] {
            let mut batch = Batch::of(&rows);
            batch.retain(|index| kept.contains(&index));
            assert_eq!((batch.body(), lines(&batch), batch.rows.len()), (body, ends, kept.len()));
            batch.retain(|_| true);
            assert_eq!(batch.body(), body, "once more");
        }
    }
}
