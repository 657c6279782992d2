//! Lists whose entries show their members on other boards: the parameters `with` and `with_rank`.

use crate::http::render::problem::Problem;
use crate::http::request::call::Call;
use crate::http::request::params::{Params, board_name, list_of};
use crate::query::{ColumnsAsked, ReadOptions};
use crate::types::BoardName;

/// The most boards that entries show their members of.
pub const COLUMNS_MAX: usize = 8;
/// The most entries on other boards in an answer.
pub const COLUMN_ENTRIES_MAX: usize = 8_000;
/// The same of those that have to be counted: for their rank, or because their board has a capacity.
pub const COLUMN_COUNTS_MAX: usize = 1_000;

impl Call {
    /// Which boards the entries of a list are wanted of, too. Waits for what may have created them.
    ///
    /// # Arguments
    /// `entries`: the most entries that the answer has.
    ///
    /// # Errors
    /// When the token does not give access to a board, or there are too many of them, or of the entries. When
    /// the answer may be larger than there is room for, or the request is not admitted again.
    pub async fn columns(
        &self,
        params: &Params<'_>,
        entries: usize,
    ) -> Result<Option<ColumnsAsked>, Problem> {
        let ranks = params.flag("with_rank")?;
        if params.given("with").is_none() {
            return if ranks {
                Err(Problem::bad_parameter("with_rank=true says what with= shows; name boards in with"))
            } else {
                Ok(None)
            };
        }
        let mut boards: Vec<BoardName> = Vec::new();
        for name in list_of(self.query(), "with")? {
            let board = board_name(&name)?;
            if !boards.contains(&board) {
                boards.push(board);
            }
        }
        if boards.is_empty() {
            return Ok(None);
        }
        if boards.len() > COLUMNS_MAX {
            return Err(Problem::over_limit(format!(
                "with names at most {COLUMNS_MAX} boards; got {}",
                boards.len()
            )));
        }
        self.check_boards_allowed(&boards)?;
        self.wait_for_boards(&boards).await?;
        let has_capacity = |board: &&BoardName| {
            let known = self.api.operations.registry.get(board.as_str());
            known.is_some_and(|known| known.definition.capacity.is_some())
        };
        let counted = if ranks { boards.len() } else { boards.iter().filter(has_capacity).count() };
        let shown = entries.saturating_mul(boards.len());
        if shown > COLUMN_ENTRIES_MAX {
            return Err(Problem::over_limit(format!(
                "entries times boards of with must be at most {COLUMN_ENTRIES_MAX}; got {entries} times {}; ask \
                 for fewer entries at a time, or name fewer boards",
                boards.len()
            )));
        }
        if entries.saturating_mul(counted) > COLUMN_COUNTS_MAX {
            let why = if ranks { "with_rank=true" } else { "boards of with that have a capacity" };
            return Err(Problem::over_limit(format!(
                "entries times boards that are counted, here for {why}, must be at most {COLUMN_COUNTS_MAX}; got \
                 {entries} times {counted}; ask for fewer entries at a time, or name fewer such boards"
            )));
        }
        self.api.operations.count_columns(&self.reading, entries, boards.len())?;
        Ok(Some(ColumnsAsked { boards, ranks, choice: self.window(), entries, counted }))
    }

    /// Waits for what may have created boards that the request names beside its path, if it waits at all.
    ///
    /// # Errors
    /// When the wait is too long, or the request is not admitted again.
    pub async fn wait_for_boards(&self, boards: &[BoardName]) -> Result<(), Problem> {
        if !self.reading.waits() {
            return Ok(());
        }
        for board in boards {
            // What the request waits for is known by now.
            let begun = self.api.operations.begin_reads(&self.reading, Some(board), ReadOptions::default());
            Box::pin(begun).await?;
            Box::pin(self.api.operations.wait_for_board(&self.reading, board, None)).await?;
        }
        Ok(())
    }

    /// Refuses boards that the request names beside its path and that its token does not give access to.
    ///
    /// # Errors
    /// When there is such a board.
    pub fn check_boards_allowed(&self, boards: &[BoardName]) -> Result<(), Problem> {
        let Some(grant) = self.confined_to() else { return Ok(()) };
        let Some(forbidden) = boards.iter().find(|board| !grant.allows_board(board.as_str())) else {
            return Ok(());
        };
        let problem =
            Problem::forbidden_board(format!("the token does not give access to the board {forbidden}"));
        self.note_refusal(&problem);
        Err(problem)
    }
}
