//! The 108,000 real jobs: the public GitHub ranking of 30 days, 36 boards.

use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use ranktree::types::Timestamp;
use serde_json::{Value, json};

pub struct RealJob {
    pub board: String,
    pub member: String,
    pub score: i64,
    /// The day it is of.
    pub at: Timestamp,
}

impl RealJob {
    pub fn to_json(&self) -> Value {
        let Self { board, member, score, at } = self;
        json!({ "board": board, "member": member, "score": score, "op": "set", "at": at.to_string() })
    }
}

/// All of them, the oldest first.
pub fn load() -> Vec<RealJob> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/github-stars.csv.gz");
    let file = File::open(path).expect("the data comes with the source");
    let mut rows = csv::Reader::from_reader(GzDecoder::new(file));
    let parse = |row: Result<[String; 5], csv::Error>| {
        let [date, board, member, score, _rank] = row.expect("every row has five columns");
        let at = Timestamp::parse(&format!("{date}T00:00:00Z")).expect("every date is one");
        let score = score.parse().expect("every score is an integer");
        RealJob { board, member, score, at }
    };
    let jobs: Vec<_> = rows.deserialize().map(parse).collect();
    assert_eq!(jobs.len(), 108_000);
    assert!(jobs.is_sorted_by_key(|job| job.at));
    jobs
}
