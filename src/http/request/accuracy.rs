//! How exact a read is to be, and how a handler asks a board approximately.

use std::time::Instant;

use crate::http::render::json::Object;
use crate::http::render::problem::Problem;
use crate::http::request::call::Call;
use crate::http::request::params::{Params, invalid_value};
use crate::query::summary::ApproximateShards;
use crate::query::{Answer, BoardRead, VisitEntries};

/// What the parameter `accuracy` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Accuracy {
    #[default]
    Exact,
    /// From summaries of the shards' trees, with the most by which it can be off.
    Approximate,
}

impl Params<'_> {
    /// # Errors
    /// When it is neither `exact` nor `approx`.
    pub fn accuracy(&self) -> Result<Accuracy, Problem> {
        match self.get("accuracy") {
            None | Some("exact") => Ok(Accuracy::Exact),
            Some("approx") => Ok(Accuracy::Approximate),
            Some(other) => Err(invalid_value("accuracy must be exact or approx", other)),
        }
    }
}

impl Accuracy {
    /// Refuses what a read cannot do that is always exact.
    ///
    /// # Errors
    /// When it is to be approximate.
    pub fn check_exact(self) -> Result<(), Problem> {
        match self {
            Self::Exact => Ok(()),
            Self::Approximate => Err(Problem::bad_parameter(
                "accuracy=approx is for the rank of a score, the ranks of many scores and a member's entry; \
                 this answer is always exact, so leave accuracy out",
            )),
        }
    }
}

/// By how much ranks and positions of an answer may be off.
pub enum RankErrors<'c> {
    /// Nobody asked.
    Exact,
    /// The answer is exact although it did not have to be.
    None,
    Of(ApproximateShards<'c>),
}

impl RankErrors<'_> {
    /// Writes the most by which the `nth` rank and position can be off, if that was asked for.
    pub fn write(&self, object: &mut Object<'_>, nth: usize) {
        match self {
            Self::Exact => {}
            Self::None => object.count("rank_error", 0),
            Self::Of(approximate) => object.count("rank_error", approximate.rank_error(nth)),
        }
    }
}

impl Call {
    /// Asks the board of the path for counts, as exactly as the request says.
    pub async fn ask_by_accuracy<R: BoardRead>(
        &self,
        accuracy: Accuracy,
        asked: R,
    ) -> Result<(Answer<R::Answer>, RankErrors<'_>), Problem> {
        match self.exact_errors(accuracy) {
            Some(errors) => Ok((self.ask(asked).await?, errors)),
            None => Box::pin(self.ask_approximately(asked)).await,
        }
    }

    /// What an exact answer says of its errors; `None` if the answer is to be approximate.
    fn exact_errors(&self, accuracy: Accuracy) -> Option<RankErrors<'_>> {
        if accuracy == Accuracy::Exact {
            return Some(RankErrors::Exact);
        }
        // Which entries a board with a capacity shows, summaries do not tell for sure.
        self.api.operations.registry.get(self.board())?.definition.capacity.map(|_| RankErrors::None)
    }

    /// Asks the board of the path for entries, with their metadata, and for ranks as exact as the request
    /// says.
    pub async fn ask_entries_by_accuracy<R>(
        &self,
        accuracy: Accuracy,
        asked: R,
    ) -> Result<(Answer<R::Answer>, RankErrors<'_>), Problem>
    where
        R: BoardRead<Answer: VisitEntries> + 'static,
    {
        match self.exact_errors(accuracy) {
            Some(errors) => Ok((self.ask_entries(self.window(), asked).await?, errors)),
            None => Box::pin(self.ask_approximately(asked)).await,
        }
    }

    async fn ask_approximately<R: BoardRead>(
        &self,
        asked: R,
    ) -> Result<(Answer<R::Answer>, RankErrors<'_>), Problem> {
        let started = Instant::now();
        let asked = self.of_board(self.wait_for_board_of_path().await?, self.window(), asked);
        let operations = &self.api.operations;
        let (answer, approximate) = operations.read_approximately(&self.reading, asked).await?;
        self.record_read(started);
        Ok((operations.found(answer)?, RankErrors::Of(approximate)))
    }
}
