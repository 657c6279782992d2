//! Members by number, and which of them score what.

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, Zipf};
use ranktree::job::{Job, Op, Targets};
use ranktree::types::{BoardName, MemberId, Score};

/// Who is updated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Uniform,
    Zipf,
}

/// What they score.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scores {
    /// 2^40 values: hardly any two are equal.
    Distinct,
    /// 1,000 values: at 10 million members, 10,000 share each.
    Tied,
}

pub struct Workload {
    random: SmallRng,
    members: u64,
    zipf: Option<Zipf<f64>>,
    scores: Scores,
    board: BoardName,
}

impl Workload {
    pub fn new(members: u64, access: Access, scores: Scores) -> Self {
        let zipf = (access == Access::Zipf).then(|| Zipf::new(members as f64, 0.99).expect("a distribution"));
        let board = BoardName::new("arena").expect("well-formed");
        Self { random: SmallRng::seed_from_u64(42), members, zipf, scores, board }
    }

    pub fn member(&mut self) -> u64 {
        match self.zipf {
            // Spread over the ids, or the popular members would be neighbours in every index.
            Some(zipf) => {
                (zipf.sample(&mut self.random) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % self.members
            }
            None => self.random.random_range(0..self.members),
        }
    }

    pub fn score(&mut self) -> i64 {
        match self.scores {
            Scores::Distinct => self.random.random_range(0..1 << 40),
            Scores::Tied => self.random.random_range(0..1_000),
        }
    }

    pub fn job(&mut self) -> Job {
        let member = self.member();
        self.job_of(member)
    }

    pub fn job_of(&mut self, member: u64) -> Job {
        let score = Score::new(&[self.score()]).expect("one key");
        Job {
            member: MemberId::new(id(member)).expect("well-formed"),
            targets: Targets::Boards(smallvec::smallvec![(self.board.clone(), Some(score))]),
            op: Some(Op::Set),
            version: None,
            at: None,
            meta: None,
            id: None,
        }
    }
}

/// Twelve bytes, as in the design's comparison with Redis.
pub fn id(member: u64) -> String {
    format!("m{member:011}")
}
