//! Rows gathered into requests: as many as fit, by count, by the boards that they change and by bytes.

use std::sync::mpsc::SyncSender;

use crate::cli::import::read::{MAX_BODY_BYTES, Row};
use crate::job::MAX_BOARDS_PER_REQUEST;

/// Rows in the order of their lines, for one request.
#[derive(Debug, Default)]
pub struct Batch {
    pub rows: Vec<Row>,
    /// Length of the body: the jobs, their commas and the brackets.
    bytes: usize,
    boards: usize,
}

impl Batch {
    pub fn of(rows: impl IntoIterator<Item = Row>) -> Self {
        let mut batch = Self::default();
        rows.into_iter().for_each(|row| batch.push(row));
        batch
    }

    fn fits(&self, row: &Row, rows_max: usize) -> bool {
        self.rows.len() < rows_max
            && self.boards + row.boards.len().max(1) <= MAX_BOARDS_PER_REQUEST
            && self.bytes + row.job.len() + 2 <= MAX_BODY_BYTES
    }

    fn push(&mut self, row: Row) {
        self.bytes += row.job.len() + 1;
        self.boards += row.boards.len().max(1);
        self.rows.push(row);
    }

    /// The request's body.
    pub fn body(&self) -> String {
        let mut body = String::with_capacity(self.bytes + 2);
        for row in &self.rows {
            body.push(if body.is_empty() { '[' } else { ',' });
            body.push_str(&row.job);
        }
        body.push(']');
        body
    }

    /// Whether sending it twice has the same effect as sending it once.
    pub fn is_repeatable(&self) -> bool {
        !self.rows.iter().any(|row| row.adds)
    }

    /// The first and the last line in it.
    pub fn lines(&self) -> (u64, u64) {
        let line = |row: Option<&Row>| row.map_or(0, |row| row.line);
        (line(self.rows.first()), line(self.rows.last()))
    }
}

/// The connection behind a lane has ended; its own error says why.
#[derive(Debug)]
pub struct Stopped;

/// The rows of some members, queued for one connection.
pub struct Lane {
    queue: SyncSender<Batch>,
    batch: Batch,
    rows_max: usize,
}

impl Lane {
    pub fn new(queue: SyncSender<Batch>, rows_max: usize) -> Self {
        Self { queue, batch: Batch::default(), rows_max }
    }

    /// Waits while the connection is busy and enough is queued.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn push(&mut self, row: Row) -> Result<(), Stopped> {
        if !self.batch.fits(&row, self.rows_max) {
            self.flush()?;
        }
        self.batch.push(row);
        Ok(())
    }

    /// Sends what is left.
    ///
    /// # Errors
    /// When the connection has ended.
    pub fn finish(mut self) -> Result<(), Stopped> {
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Stopped> {
        let batch = std::mem::take(&mut self.batch);
        if batch.rows.is_empty() { Ok(()) } else { self.queue.send(batch).map_err(|_| Stopped) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;
    use crate::cli::import::read::limits::MAX_JOB_BYTES;

    fn row(line: u64, job: String) -> Row {
        Row::new(line, job, "m", Some("set"), false, Vec::new())
    }

    fn batches(jobs: &[String], rows_max: usize) -> Vec<Batch> {
        let (queue, batches) = sync_channel(jobs.len() + 1);
        let mut lane = Lane::new(queue, rows_max);
        for (line, job) in (1..).zip(jobs) {
            lane.push(row(line, job.clone())).expect("the other end is open");
        }
        lane.finish().expect("the other end is open");
        batches.into_iter().collect()
    }

    #[test]
    fn a_batch_ends_at_its_count() {
        let all = batches(&vec!["{}".to_owned(); 5], 2);
        let bodies: Vec<_> = all.iter().map(Batch::body).collect();
        assert_eq!(bodies, ["[{},{}]", "[{},{}]", "[{}]"]);
        assert_eq!(all.iter().map(Batch::lines).collect::<Vec<_>>(), [(1, 2), (3, 4), (5, 5)]);
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
        let boards: Vec<String> = (0..64).map(|number| format!("b{number}")).collect();
        let (queue, batches) = sync_channel(10);
        let mut lane = Lane::new(queue, 1_000);
        for line in 1..=100 {
            let row = Row::new(line, "{}".to_owned(), "m", Some("set"), false, boards.clone());
            lane.push(row).expect("the other end is open");
        }
        lane.finish().expect("the other end is open");
        let rows: Vec<usize> = batches.into_iter().map(|batch| batch.rows.len()).collect();
        assert_eq!(rows, [62, 38]);
    }

    #[test]
    fn one_row_that_adds_makes_a_batch_unrepeatable() {
        let increment = |version| Row::new(2, "{}".to_owned(), "m", Some("incr"), version, Vec::new());
        let batch = Batch::of([row(1, "{}".to_owned()), increment(true)]);
        assert!(batch.is_repeatable(), "a version makes an increment repeatable");
        assert!(!Batch::of([row(1, "{}".to_owned()), increment(false)]).is_repeatable());
    }
}
