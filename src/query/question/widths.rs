//! Whether the words of a question are as many as the board has. A tree takes that for granted, and another
//! node may be wrong.

use crate::query::question::{
    BoardLife, CombineQuestion, InvalidQuestion, Mark, Question, RunQuestion, RunStart, SortKey,
    SplittersQuestion,
};
use crate::query::shard_board::ShardBoard;
use crate::state::Shard;

/// The widths of one board, if the shard has it.
struct Widths {
    keys: usize,
    columns: usize,
}

/// Checks the words of a question against the boards that the shard has.
///
/// # Errors
/// When some score or entry has another number of words.
pub fn check_widths(shard: &Shard, question: &Question<'_>) -> Result<(), InvalidQuestion> {
    let widths = |life: &BoardLife| {
        ShardBoard::of_life(shard, life).window.map(|(_, window)| Widths {
            keys: window.definition.keys.len(),
            columns: window.definition.columns(),
        })
    };
    let check_marks = |boards: &[(BoardLife, Vec<Mark<'_>>)]| {
        boards.iter().try_for_each(|(life, marks)| {
            widths(life).map_or(Ok(()), |widths| marks.iter().try_for_each(|mark| widths.check_mark(mark)))
        })
    };
    match question {
        Question::Counts(boards) => check_marks(boards),
        Question::WithColumns { question, boards } => {
            check_marks(boards)?;
            check_widths(shard, question)
        }
        Question::Runs(life, runs) => {
            widths(life).map_or(Ok(()), |widths| runs.iter().try_for_each(|run| widths.check_run(run)))
        }
        Question::Splitters(life, searches) => widths(life)
            .map_or(Ok(()), |widths| searches.iter().try_for_each(|search| widths.check_search(search))),
        Question::Lookup { board, keys, .. } => {
            widths(board).map_or(Ok(()), |widths| keys.iter().try_for_each(|key| widths.check_key(key)))
        }
        Question::Movement { since, keys, .. } => {
            let board = BoardLife { board: since.board.board(), ..*since };
            widths(&board).map_or(Ok(()), |widths| keys.iter().try_for_each(|key| widths.check_key(key)))
        }
        Question::Combine(asked) => check_widths_of_combined(shard, asked),
        Question::MemberOnBoards { .. }
        | Question::BoardsOfMember { .. }
        | Question::Rejects(_)
        | Question::Summary { .. }
        | Question::Hidden(_)
        | Question::LastJob(_)
        | Question::Changed(_) => Ok(()),
    }
}

/// As [`check_widths`], of boards that are combined: they have one key.
///
/// # Errors
/// When some board has more.
pub fn check_widths_of_combined(shard: &Shard, asked: &CombineQuestion) -> Result<(), InvalidQuestion> {
    asked.boards.iter().try_for_each(|(life, _)| match ShardBoard::of_life(shard, life).window {
        Some((_, window)) => within("words of a score that is combined", window.definition.keys.len(), 1),
        None => Ok(()),
    })
}

impl Widths {
    fn check_run(&self, run: &RunQuestion<'_>) -> Result<(), InvalidQuestion> {
        match &run.start {
            RunStart::Before(mark) | RunStart::Through(mark) => self.check_mark(mark),
            RunStart::Top | RunStart::Bottom | RunStart::Index(_) | RunStart::Member(_) => Ok(()),
        }
    }

    fn check_search(&self, search: &SplittersQuestion<'_>) -> Result<(), InvalidQuestion> {
        search.low.iter().chain(&search.high).try_for_each(|key| self.check_key(key))
    }

    fn check_mark(&self, mark: &Mark<'_>) -> Result<(), InvalidQuestion> {
        match mark {
            Mark::Score(words) => within("words of a score", words.as_slice().len(), self.keys),
            Mark::Entry(key) => self.check_key(key),
        }
    }

    /// An entry has all words: fewer would be a place between entries, which is harmless.
    fn check_key(&self, key: &SortKey<'_>) -> Result<(), InvalidQuestion> {
        within("words of an entry", key.words.as_slice().len(), self.columns)
    }
}

fn within(what: &'static str, asked: usize, limit: usize) -> Result<(), InvalidQuestion> {
    let (asked, limit) = (crate::types::count(asked), crate::types::count(limit));
    if asked <= limit { Ok(()) } else { Err(InvalidQuestion { what, asked, limit }) }
}
