//! What is sent: messages of jobs, and reads among them, the same sequence for the same seed.
//!
//! Jobs are written as bytes and not built as values: a generator that is slower than what it loads measures
//! itself.

use std::ops::Range;

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use crate::job::{MAX_JOBS_PER_MESSAGE, Op};
use crate::loadgen::random::{Random, Zipf};
use crate::types::{BoardName, ShardId, fnv1a_32};

/// The most members a workload may have: their ids have eleven digits, and their numbers are spread by a
/// prime that is larger than this.
pub const MEMBERS_MAX: u32 = 1_000_000_000;
/// Spreads the popular members of a Zipf distribution over all ids. Prime, so that no two ranks meet.
const SPREAD: u64 = 2_654_435_761;
/// About what a job takes, so that a message's buffer seldom grows.
const JOB_BYTES: usize = 72;
/// A letter and eleven digits: as many bytes as the ids that figures are given for.
const MEMBER_BYTES: usize = 12;

/// Which members jobs and reads are about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    Uniform,
    /// The k-th most popular member comes in proportion to 1 / k^s.
    Zipf(f64),
}

/// Operations, each with its share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpMix(Vec<(Op, u32)>);

impl OpMix {
    /// # Errors
    /// In words, when an operation takes no score, or nothing has a share.
    pub fn new(shares: Vec<(Op, u32)>) -> Result<Self, String> {
        if let Some((op, _)) = shares.iter().find(|(op, _)| !op.takes_score()) {
            return Err(format!(
                "{} takes no score, and the load consists of scores; use set, best and incr",
                op.name()
            ));
        }
        if shares.iter().all(|(_, share)| *share == 0) {
            return Err("no operation has a share above 0".to_owned());
        }
        Ok(Self(shares))
    }

    fn pick(&self, random: &mut Random) -> Op {
        if let [(op, _)] = self.0.as_slice() {
            return *op;
        }
        let mut left = random.below(self.0.iter().map(|(_, share)| u64::from(*share)).sum());
        for (op, share) in &self.0 {
            match left.checked_sub(u64::from(*share)) {
                Some(rest) => left = rest,
                None => return *op,
            }
        }
        Op::Set
    }
}

/// A workload's description.
#[derive(Debug, Clone)]
pub struct Spec {
    /// 1 to [`MEMBERS_MAX`].
    pub members: u32,
    /// The jobs' and the reads' boards, each as likely as the others; at least one.
    pub boards: Vec<BoardName>,
    pub distribution: Distribution,
    pub ops: OpMix,
    /// Scores are uniform in it.
    pub scores: Range<i64>,
    /// 1 to 1,000.
    pub jobs_per_message: usize,
    /// Messages are of one shard's members each; `None`: of any.
    pub shards: Option<u16>,
    /// How many operations of all are reads, 0 up to below 1.
    pub read_ratio: f64,
    /// What every read asks besides, as parameters of a URL: `window=day`. Empty: nothing.
    pub read_parameters: String,
    /// Ends the workload; `None`: it is endless.
    pub jobs: Option<u64>,
    pub seed: u64,
}

/// Jobs, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Whose members' jobs these are; shard 0 if shards do not matter.
    pub shard: ShardId,
    pub jobs: u32,
    /// One job, or an array of them.
    pub body: Bytes,
    /// The board of the first job, by its place in [`Spec::boards`], and its member.
    pub first: (usize, u32),
}

/// A read, as an HTTP path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    pub path: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    Write(Message),
    Read(Read),
}

/// The sequence of operations.
pub struct Workload {
    spec: Spec,
    zipf: Option<Zipf>,
    random: Random,
    /// Of its own, so that reads do not change which jobs there are.
    random_of_reads: Random,
    /// What each job begins with, by board: `{"board":"load0","member":"`.
    heads: Vec<Vec<u8>>,
    /// Jobs that wait for their message to be full, by shard.
    open: Vec<Open>,
    jobs_left: Option<u64>,
}

#[derive(Default)]
struct Open {
    body: Vec<u8>,
    jobs: u32,
    first: (usize, u32),
}

impl Workload {
    pub fn new(spec: Spec) -> Self {
        let zipf = match spec.distribution {
            Distribution::Uniform => None,
            Distribution::Zipf(exponent) => Some(Zipf::new(spec.members, exponent)),
        };
        let heads = spec.boards.iter();
        let head =
            |board: &BoardName| format!(r#"{{"board":{},"member":""#, json!(board.as_str())).into_bytes();
        let heads = heads.map(head).collect();
        let open = (0..spec.shards.unwrap_or(1).max(1)).map(|_| Open::default()).collect();
        let random = Random::new(spec.seed);
        let random_of_reads = Random::new(!spec.seed);
        let jobs_left = spec.jobs;
        Self { spec, zipf, random, random_of_reads, heads, open, jobs_left }
    }

    /// Ends the jobs after those that were begun.
    fn next_message(&mut self) -> Option<Message> {
        while self.jobs_left != Some(0) {
            self.jobs_left = self.jobs_left.map(|left| left - 1);
            let member = member(&self.spec, self.zipf.as_ref(), &mut self.random);
            let id = member_id(member);
            let shard = self.spec.shards.map_or(0, |shards| fnv1a_32(&id) % u32::from(shards.max(1)));
            let shard = u16::try_from(shard).expect("it is below a count of 16 bits");
            let board = board(&self.spec, &mut self.random);
            let op = self.spec.ops.pick(&mut self.random);
            let width = self.spec.scores.end.saturating_sub(self.spec.scores.start);
            let above = self.random.below(u64::try_from(width).unwrap_or(0));
            let score = self.spec.scores.start.saturating_add_unsigned(above);
            let head = self.heads.get(board).expect("a board's place is below their count");
            let open = self.open.get_mut(usize::from(shard)).expect("there is one for each shard");
            open.push(self.spec.jobs_per_message, (board, member), |body| {
                body.extend_from_slice(head);
                body.extend_from_slice(&id);
                body.extend_from_slice(br#"","score":"#);
                body.extend_from_slice(itoa::Buffer::new().format(score).as_bytes());
                body.extend_from_slice(br#","op":""#);
                body.extend_from_slice(op.name().as_bytes());
                body.extend_from_slice(br#""}"#);
            });
            if usize::try_from(open.jobs).is_ok_and(|jobs| jobs >= self.spec.jobs_per_message) {
                return Some(open.take(shard, self.spec.jobs_per_message));
            }
        }
        // What never filled a message goes out at the end, so that all jobs are sent.
        let (shard, open) = self.open.iter_mut().enumerate().find(|(_, open)| open.jobs > 0)?;
        let shard = u16::try_from(shard).expect("it is below a count of 16 bits");
        Some(open.take(shard, self.spec.jobs_per_message))
    }

    /// One of the four reads that a game makes most: a member's entry, who is around it, the top, the rank of
    /// a score.
    fn next_read(&mut self) -> Read {
        let random = &mut self.random_of_reads;
        let board = board(&self.spec, random);
        let board =
            encoded(self.spec.boards.get(board).expect("a board's place is below their count").as_str());
        let kind = random.below(4);
        let read = |path: String| {
            let parameters = &self.spec.read_parameters;
            let mark = if path.contains('?') { '&' } else { '?' };
            Read { path: if parameters.is_empty() { path } else { format!("{path}{mark}{parameters}") } }
        };
        if kind == 0 {
            return read(format!("/v1/boards/{board}/top?limit=10"));
        }
        if kind == 1 {
            let width = self.spec.scores.end.saturating_sub(self.spec.scores.start);
            let above = random.below(u64::try_from(width).unwrap_or(0));
            let score = self.spec.scores.start.saturating_add_unsigned(above);
            return read(format!("/v1/boards/{board}/rank?score={score}"));
        }
        let id = member_id(member(&self.spec, self.zipf.as_ref(), random));
        let id = std::str::from_utf8(&id).expect("a letter and digits");
        let around = if kind == 2 { "/around?above=4&below=4" } else { "" };
        read(format!("/v1/boards/{board}/members/{id}{around}"))
    }
}

impl Iterator for Workload {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        if self.spec.read_ratio > 0.0 && self.random_of_reads.unit() < self.spec.read_ratio {
            // Reads end with the jobs.
            if self.jobs_left == Some(0) && self.open.iter().all(|open| open.jobs == 0) {
                return None;
            }
            return Some(Operation::Read(self.next_read()));
        }
        self.next_message().map(Operation::Write)
    }
}

impl Open {
    fn push(&mut self, jobs_per_message: usize, first: (usize, u32), write: impl FnOnce(&mut Vec<u8>)) {
        if self.jobs == 0 {
            self.body.reserve(2 + JOB_BYTES * jobs_per_message);
            self.first = first;
        }
        if jobs_per_message > 1 {
            self.body.push(if self.jobs == 0 { b'[' } else { b',' });
        }
        write(&mut self.body);
        self.jobs += 1;
    }

    fn take(&mut self, shard: u16, jobs_per_message: usize) -> Message {
        let Self { mut body, jobs, first } = std::mem::take(self);
        if jobs_per_message > 1 {
            body.push(b']');
        }
        Message { shard: ShardId(shard), jobs, body: Bytes::from(body), first }
    }
}

/// A board's name in a path.
pub fn encoded(board: &str) -> String {
    // Most names need no escapes, and are to be read in messages.
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b':');
    utf8_percent_encode(board, ESCAPED).to_string()
}

impl Spec {
    /// The path that a message of one job can be put to.
    pub fn path_of(&self, message: &Message) -> String {
        let (board, member) = message.first;
        let board = encoded(self.boards.get(board).expect("a board's place is below their count").as_str());
        let id = member_id(member);
        format!("/v1/boards/{board}/members/{}", std::str::from_utf8(&id).expect("a letter and digits"))
    }

    /// # Errors
    /// In words, when a number is out of its range.
    pub fn check(&self) -> Result<(), String> {
        let fine = [
            ((1..=MEMBERS_MAX).contains(&self.members), "the number of members must be 1 to 1,000,000,000"),
            (!self.boards.is_empty(), "there must be at least one board"),
            (
                (1..=MAX_JOBS_PER_MESSAGE).contains(&self.jobs_per_message),
                "a message must have 1 to 1,000 jobs",
            ),
            ((0.0..1.0).contains(&self.read_ratio), "the share of reads must be at least 0 and below 1"),
            (self.scores.start < self.scores.end, "the range of scores is empty"),
        ];
        match fine.into_iter().find(|(fine, _)| !fine) {
            Some((_, why)) => Err(why.to_owned()),
            None => Ok(()),
        }
    }
}

fn member(spec: &Spec, zipf: Option<&Zipf>, random: &mut Random) -> u32 {
    let members = u64::from(spec.members);
    let number = match zipf {
        Some(zipf) => u64::from(zipf.sample(random) - 1) * SPREAD % members,
        None => random.below(members),
    };
    u32::try_from(number).expect("it is below a count of 32 bits")
}

fn board(spec: &Spec, random: &mut Random) -> usize {
    match spec.boards.len() {
        1 => 0,
        boards => {
            let boards = u64::try_from(boards).expect("a count fits");
            usize::try_from(random.below(boards)).expect("it is below a usize")
        }
    }
}

/// `m00000000042`.
fn member_id(member: u32) -> [u8; MEMBER_BYTES] {
    let mut id = [b'0'; MEMBER_BYTES];
    let mut left = member;
    for digit in id.iter_mut().rev() {
        *digit = b'0' + u8::try_from(left % 10).expect("a digit");
        left /= 10;
    }
    if let Some(first) = id.first_mut() {
        *first = b'm';
    }
    id
}

#[cfg(test)]
impl Spec {
    /// Sets on one board, one job a message.
    pub fn of_sets(jobs: Option<u64>) -> Self {
        Self {
            members: 10,
            boards: vec![BoardName::new("arena").expect("a good name")],
            distribution: Distribution::Uniform,
            ops: OpMix::new(vec![(Op::Set, 1)]).expect("a share"),
            scores: 0..10,
            jobs_per_message: 1,
            shards: None,
            read_ratio: 0.0,
            read_parameters: String::new(),
            jobs,
            seed: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::job::Targets;
    use crate::types::shard_of;
    use crate::wire;

    fn spec() -> Spec {
        let boards = ["load0", "load1"].map(|name| BoardName::new(name).expect("a good name"));
        Spec {
            members: 1_000,
            boards: boards.to_vec(),
            distribution: Distribution::Uniform,
            ops: OpMix::new(vec![(Op::Set, 1), (Op::Best, 2), (Op::Incr, 1)]).expect("good shares"),
            scores: -5..1_000,
            jobs_per_message: 7,
            shards: Some(3),
            read_ratio: 0.0,
            read_parameters: String::new(),
            jobs: Some(1_000),
            seed: 5,
        }
    }

    fn messages(spec: Spec) -> Vec<Message> {
        let writes = Workload::new(spec).filter_map(|operation| match operation {
            Operation::Write(message) => Some(message),
            Operation::Read(_) => None,
        });
        writes.collect()
    }

    #[test]
    fn the_wires_own_decoder_reads_what_is_written() {
        for jobs_per_message in [1, 7, 1_000] {
            let mut ops = HashSet::new();
            let (mut jobs, mut scores) = (0, 0_i64..0);
            for message in messages(Spec { jobs_per_message, ..spec() }) {
                let decoded = wire::decode(&message.body).expect("well-formed");
                assert_eq!(decoded.len(), usize::try_from(message.jobs).expect("small"));
                assert_eq!(message.body.first() == Some(&b'['), jobs_per_message > 1);
                for job in decoded {
                    let job = job.expect("a good job");
                    assert_eq!(shard_of(&job.member, 3), message.shard);
                    assert_eq!(job.member.as_bytes().len(), MEMBER_BYTES);
                    let Targets::Boards(targets) = &job.targets else { panic!("{job:?}") };
                    assert!(["load0", "load1"].contains(&targets[0].0.as_str()));
                    let score = targets[0].1.as_ref().expect("a score").keys()[0];
                    assert!((-5..1_000).contains(&score));
                    scores = scores.start.min(score)..scores.end.max(score);
                    ops.insert(job.op.expect("an operation"));
                    jobs += 1;
                }
            }
            assert_eq!((jobs, ops.len()), (1_000, 3), "all are sent, also those that fill no message");
            assert!(scores.start < 50 && scores.end > 900, "{scores:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_operations() {
        let all = |spec: Spec| Workload::new(spec).collect::<Vec<_>>();
        let mixed = Spec { read_ratio: 0.5, ..spec() };
        assert_eq!(all(mixed.clone()), all(mixed.clone()));
        assert_ne!(all(mixed.clone()), all(Spec { seed: 6, ..mixed.clone() }));
        assert_eq!(messages(mixed), messages(spec()), "reads do not change which jobs there are");
    }

    #[test]
    fn members_are_all_reached_and_the_popular_ones_are_spread() {
        let members = |distribution: Distribution| {
            let spec = Spec { jobs_per_message: 1, jobs: Some(20_000), distribution, ..spec() };
            let mut counts = vec![0_u32; 1_000];
            for message in messages(spec) {
                counts[usize::try_from(message.first.1).expect("small")] += 1;
            }
            counts
        };
        let uniform = members(Distribution::Uniform);
        assert!(uniform.iter().all(|count| (1..60).contains(count)), "20 each, give or take");
        let zipf = members(Distribution::Zipf(0.99));
        let mut by_count: Vec<_> = (0..1_000).collect();
        by_count.sort_by_key(|member| std::cmp::Reverse(zipf[*member]));
        assert!(zipf[by_count[0]] > 20_000 / 12, "a tenth or so of all is about one member");
        assert!(by_count[0].abs_diff(by_count[1]) > 10, "the next is no neighbour");
    }

    #[test]
    fn reads_come_at_their_ratio_and_end_with_the_jobs() {
        let all = Workload::new(Spec { read_ratio: 0.75, jobs_per_message: 1, ..spec() });
        let (mut reads, mut writes) = (HashSet::new(), 0);
        let mut count = 0;
        for operation in all {
            match operation {
                Operation::Read(read) => {
                    count += 1;
                    reads.insert(read.path.split(['?', '/']).nth(5).unwrap_or_default().len());
                }
                Operation::Write(_) => writes += 1,
            }
        }
        assert_eq!(writes, 1_000);
        assert!((2_600..3_400).contains(&count), "{count} reads to 1,000 writes, not about 3,000");
        assert!(reads.len() > 1, "of several kinds");
    }

    #[test]
    fn every_read_has_the_parameters_that_are_asked_for() {
        let reads = |parameters: &str| {
            let read_parameters = parameters.to_owned();
            let spec = Spec { read_ratio: 0.5, read_parameters, jobs_per_message: 1, ..spec() };
            let paths = Workload::new(spec).filter_map(|operation| match operation {
                Operation::Read(read) => Some(read.path),
                Operation::Write(_) => None,
            });
            paths.collect::<Vec<_>>()
        };
        let (plain, daily) = (reads(""), reads("window=day"));
        assert!(plain.len() > 500 && plain.len() == daily.len());
        for (plain, daily) in plain.iter().zip(&daily) {
            let mark = if plain.contains('?') { '&' } else { '?' };
            assert_eq!(daily, &format!("{plain}{mark}window=day"));
        }
    }

    #[test]
    fn ids_are_a_letter_and_eleven_digits() {
        assert_eq!(&member_id(42), b"m00000000042");
        assert_eq!(&member_id(MEMBERS_MAX), b"m01000000000");
        let spec = Spec { jobs_per_message: 1, jobs: Some(1), ..spec() };
        let message = &messages(spec.clone())[0];
        let path = spec.path_of(message);
        let job = wire::decode(&message.body).expect("well-formed").remove(0).expect("a good job");
        assert!(path.ends_with(job.member.as_str()), "{path}");
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert!(spec().check().is_ok());
        for bad in [
            Spec { members: 0, ..spec() },
            Spec { members: MEMBERS_MAX + 1, ..spec() },
            Spec { boards: Vec::new(), ..spec() },
            Spec { jobs_per_message: 1_001, ..spec() },
            Spec { read_ratio: 1.0, ..spec() },
            Spec { scores: 5..5, ..spec() },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
        assert!(OpMix::new(vec![(Op::Hide, 1)]).is_err());
        assert!(OpMix::new(vec![(Op::Set, 0)]).is_err());
    }
}
