//! What a system under test has to offer.

/// A job: this member has this score from now on.
pub struct Job {
    pub member: String,
    pub score: i64,
}

/// The member whose score says how many jobs are visible.
pub const MARKER: &str = "marker";
/// Jobs that a consumer takes at a time, where the bench has to write one.
pub const BATCH: usize = 1_000;

pub trait System {
    fn name(&self) -> String;

    /// Fills the board, and waits until all is there.
    fn load(&mut self, jobs: &mut dyn Iterator<Item = Job>);

    /// Somewhere to publish to. What is published is on its way at the next `flush`; it is stored soon after,
    /// and nobody waits for that here.
    fn publisher(&self) -> Box<dyn Publish>;

    fn reader(&self) -> Box<dyn Read>;

    /// Whether it can say how many members are better than a score.
    fn ranks(&self) -> bool {
        true
    }
}

pub trait Publish: Send {
    fn publish(&mut self, job: Job);
    fn flush(&mut self);
}

pub trait Read: Send {
    /// The marker's score, 0 if there is none.
    fn marker(&mut self) -> i64;
    /// How many members are better than a score, by whatever query tells it.
    fn better(&mut self, score: i64) -> u64;
}
