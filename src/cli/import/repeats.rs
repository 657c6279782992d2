//! Counts the rows whose member an earlier row names, too: which of them holds is for whoever imports to say.

use std::collections::HashMap;
use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;
use indicatif::HumanCount;

use crate::cli::import::read::{Place, Row};
use crate::cli::import::tally::Tally;
use crate::types::Timestamp;

/// Entries that are remembered, in 128 MiB at most. Rows of later ones are taken for the first of theirs.
const ENTRIES_MAX: usize = 4 << 20;

/// What is known of the rows so far. Two members in some 10^12 are taken for one.
pub struct Repeats {
    /// The first row of a member is the one that holds.
    if_absent: bool,
    /// The time of the last row of each, if it has one.
    seen: HashMap<u64, Option<Timestamp>, FixedState>,
    repeated: u64,
    /// Rows with an earlier time than the row of their member before them, and the first of these.
    backwards: u64,
    first_backwards: Option<Place>,
}

impl Repeats {
    pub fn new(if_absent: bool) -> Self {
        Self { if_absent, seen: HashMap::default(), repeated: 0, backwards: 0, first_backwards: None }
    }

    pub fn note(&mut self, row: &Row) {
        // Whatever says what the row does was asked for.
        if !row.is_undecided && !self.if_absent {
            return;
        }
        let hasher = FixedState::default();
        let entries = row.boards.iter().map(|board| hasher.hash_one((board, row.member_hash)));
        let (mut is_repeated, mut is_backwards) = (false, false);
        for entry in entries {
            if let Some(before) = self.seen.get_mut(&entry) {
                is_repeated = true;
                is_backwards |= before.zip(row.at).is_some_and(|(before, at)| at < before);
                *before = row.at;
            } else if self.seen.len() < ENTRIES_MAX {
                self.seen.insert(entry, row.at);
            }
        }
        self.repeated += u64::from(is_repeated);
        if is_backwards && !self.if_absent {
            self.backwards += 1;
            self.first_backwards.get_or_insert(row.place);
        }
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
        if let Some(first) = self.first_backwards {
            let place = if first.file == 0 {
                format!("line {}", first.line)
            } else {
                format!("line {} of file {}", first.line, first.file + 1)
            };
            tally.note(&format!(
                "the times of {} of the rows run backwards: they are before that of the row above of their member, as on \
                 {place}. Where the last row holds, that is an older score: sort the rows by their times first, the \
                 oldest at the top, or let --op best keep the best score of each",
                HumanCount(self.backwards)
            ));
        }
        tally.note(&format!(
            "{} rows are of a member that an earlier row names: --op best keeps the best score of each, and --op \
             incr adds them up; without either the board's policy holds, which on a new board is the last row",
            HumanCount(self.repeated)
        ));
    }
}
