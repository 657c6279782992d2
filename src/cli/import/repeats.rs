//! Counts the rows whose member an earlier row names, too: which of them holds is for whoever imports to say.

use std::collections::HashSet;
use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;
use indicatif::HumanCount;

use crate::cli::import::read::Row;
use crate::cli::import::tally::Tally;

/// Entries that are remembered, in 64 MiB at most. Rows of later ones are taken for the first of theirs.
const ENTRIES_MAX: usize = 4 << 20;

/// What is known of the rows so far. Two members in some 10^12 are taken for one.
pub struct Repeats {
    /// The first row of a member is the one that holds.
    if_absent: bool,
    seen: HashSet<u64, FixedState>,
    repeated: u64,
}

impl Repeats {
    pub fn new(if_absent: bool) -> Self {
        Self { if_absent, seen: HashSet::default(), repeated: 0 }
    }

    pub fn note(&mut self, row: &Row) {
        // Whatever says what the row does was asked for.
        if !row.is_undecided && !self.if_absent {
            return;
        }
        let hasher = FixedState::default();
        let entries = row.boards.iter().map(|board| hasher.hash_one((board, row.member_hash)));
        let mut is_repeated = false;
        for entry in entries {
            if self.seen.len() < ENTRIES_MAX {
                is_repeated |= !self.seen.insert(entry);
            } else {
                is_repeated |= self.seen.contains(&entry);
            }
        }
        self.repeated += u64::from(is_repeated);
    }

    pub fn tell(&self, tally: &Tally) {
        if self.repeated == 0 {
            return;
        }
        if self.if_absent {
            tally.note(&format!(
                "{} rows are of a member that an earlier row names: with --if-absent the first one holds, and the others \
                 find its entry there",
                HumanCount(self.repeated)
            ));
            return;
        }
        tally.note(&format!(
            "{} rows are of a member that an earlier row names: --op best keeps the best score of each, and --op \
             incr adds them up; without either the board's policy holds, which on a new board is the last row",
            HumanCount(self.repeated)
        ));
    }
}
