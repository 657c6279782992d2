//! What is asked of other boards beside each question of a read, and what a shard has told of them.
//!
//! Knows: that a shard's last reply brings both, at one of its sequences: the entries, with their members'
//! words on the other boards, and the counts at the words that were known before. Must not know: which
//! entries an answer shows.

use std::collections::HashMap;

use crate::query::question::{BoardCounts, BoardLife, Mark, Question, Reply, SortKey};
use crate::tree::Words;

/// The marks that are counted beside a question, board by board.
#[derive(Debug, Clone, Default)]
pub struct ColumnMarks {
    pub boards: Vec<BoardMarks>,
}

/// Entries of one board, at which it is counted.
#[derive(Debug, Clone)]
pub struct BoardMarks {
    pub life: BoardLife,
    /// Words of a score.
    pub keys: usize,
    /// Whether those with a better score are counted.
    pub ranks: bool,
    /// Whether those before an entry are counted, of which a capacity depends.
    pub places: bool,
    pub entries: Vec<(Box<str>, Words)>,
}

/// What one shard has told.
#[derive(Debug, Clone, Default)]
pub struct ColumnsTold {
    /// One for each board.
    pub counts: Vec<BoardCounts>,
    /// The words of members on each board, of those whose entries were replied.
    pub words: HashMap<Box<[u8]>, Box<[Option<Words>]>>,
}

impl BoardMarks {
    /// Marks of one entry.
    fn each(&self) -> usize {
        usize::from(self.ranks) + usize::from(self.places)
    }

    pub fn marks(&self) -> Vec<Mark<'_>> {
        let mut marks = Vec::with_capacity(self.entries.len() * self.each());
        for (member, words) in &self.entries {
            if self.ranks {
                let score = words.as_slice();
                marks.push(Mark::Score(Words::from_slice(score.get(..self.keys).unwrap_or(score))));
            }
            if self.places {
                marks.push(Mark::Entry(SortKey { words: *words, member: member.as_bytes() }));
            }
        }
        marks
    }

    /// How many entries are better than the nth of these, and how many are before it, over all shards: 0
    /// where that is not counted.
    pub fn counted<'t>(&self, nth: usize, counts: impl Iterator<Item = &'t BoardCounts>) -> (u64, u64) {
        let (first, last) = (nth * self.each(), (nth + 1) * self.each());
        let (mut better, mut before) = (0_u64, 0_u64);
        for of_shard in counts {
            let marks = of_shard.marks.get(first..last).unwrap_or_default();
            if let (true, Some(score)) = (self.ranks, marks.first()) {
                better = better.saturating_add(score.before);
            }
            if let (true, Some(entry)) = (self.places, marks.last()) {
                before = before.saturating_add(entry.before);
            }
        }
        (better, before)
    }
}

impl ColumnMarks {
    /// The question with what is asked beside it.
    pub fn beside<'q>(&'q self, question: &Question<'q>) -> Question<'q> {
        let boards = self.boards.iter().map(|board| (board.life.clone(), board.marks()));
        Question::WithColumns { question: Box::new(question.clone()), boards: boards.collect() }
    }
}

impl ColumnsTold {
    /// # Arguments
    /// `words`: those of the first member on each of so many boards, of the next one, and so on.
    pub fn of(members: Vec<Box<[u8]>>, words: &[Option<Words>], boards: usize) -> Self {
        let row = |nth: usize| words.get(nth * boards..(nth + 1) * boards).unwrap_or_default().into();
        let rows = (0..members.len()).map(row);
        Self { counts: Vec::new(), words: members.into_iter().zip(rows).collect() }
    }

    /// Takes what was asked beside a question out of its reply.
    ///
    /// # Arguments
    /// `shown`: whether the question's entries are to be shown.
    pub fn take(reply: Reply, shown: bool) -> (Reply, Option<Self>) {
        let Reply::WithColumns { reply, counts, words } = reply else { return (reply, None) };
        let (mut reply, mut members) = (*reply, Vec::new());
        if shown {
            reply.each_entry(&mut |entry| members.push(entry.member.clone()));
        }
        let told = Self::of(members, &words, counts.len());
        (reply, Some(Self { counts, ..told }))
    }
}
