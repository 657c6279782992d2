//! How a handler asks a board: its parameters, and the answer's end. `operations::reads` does the rest.

use std::time::Instant;

use crate::access::ProfileAccess;
use crate::http::render::fields;
use crate::http::render::json::{self, Object};
use crate::http::render::problem::Problem;
use crate::http::request::accuracy::Accuracy;
use crate::http::request::call::Call;
use crate::http::request::params::Params;
use crate::query::{
    Answer, BoardRead, ColumnsAsked, ConsistentAnswer, InstanceAsked, MovementAsked, OfBoard, ReadOptions,
    ShardsRead, VisitEntries, WindowChoice, WithColumns, WithMovement,
};
use crate::types::{AsOf, BoardName};

impl Call {
    /// The parameters of a read. Waits until the writes that `after` names are applied.
    ///
    /// # Errors
    /// When a parameter is not as it should be, or the wait is too long.
    pub async fn read_params(&self, known: &[&str]) -> Result<Params<'_>, Problem> {
        let params = Params::parse_read(self.query(), known)?;
        params.accuracy()?.check_exact()?;
        self.read_params_of(params).await
    }

    /// As [`Call::read_params`], for a read that may be approximate.
    pub async fn read_params_with_accuracy(&self, known: &[&str]) -> Result<(Params<'_>, Accuracy), Problem> {
        let params = Params::parse_read(self.query(), known)?;
        let accuracy = params.accuracy()?;
        Ok((self.read_params_of(params).await?, accuracy))
    }

    async fn read_params_of<'c>(&'c self, params: Params<'c>) -> Result<Params<'c>, Problem> {
        let (after, partial, profiles) = (params.after()?, params.flag("partial")?, params.flag("profile")?);
        self.read_window(&params)?;
        if profiles && !self.allows_profiles(ProfileAccess::Read) {
            let problem = Problem::forbidden_profile(
                "the token does not let you read profiles; leave profile=true out, or ask the operator for a \
                 token whose `profiles` is \"read\"",
            );
            self.note_refusal(&problem);
            return Err(problem);
        }
        if after.is_some() || partial || profiles {
            let deadline = after.as_ref().map(|(_, timeout)| Instant::now() + *timeout);
            let after = after.map(|(token, _)| token).unwrap_or_default();
            Box::pin(self.begin_reads(ReadOptions { partial, profiles, after, deadline })).await?;
        }
        Ok(params)
    }

    /// Reads which instance of a board the request asks for.
    ///
    /// # Errors
    /// When it is neither a window's name nor an instance's.
    pub fn read_window(&self, params: &Params<'_>) -> Result<(), Problem> {
        // A handler reads its parameters once.
        let _ = self.window.set(params.window()?);
        Ok(())
    }

    /// Waits until the writes that a token names are applied, or until the deadline.
    ///
    /// # Errors
    /// When the wait is too long, or the token names a shard that there is not.
    pub async fn begin_reads(&self, options: ReadOptions) -> Result<(), Problem> {
        let board = BoardName::new(self.board()).ok();
        Ok(self.api.operations.begin_reads(&self.reading, board.as_ref(), options).await?)
    }

    /// Writes what the answer was exact at, and what it lacks.
    pub fn write_answer_end(&self, object: &mut Object<'_>, as_of: &AsOf) {
        fields::as_of(object, as_of);
        self.write_freshness(object);
    }

    /// Writes that the answer may be behind, or lacks shards, if that is so.
    pub fn write_freshness(&self, object: &mut Object<'_>) {
        if self.api.operations.is_stale(&self.reading.seen()) {
            object.bool("stale", true);
        }
        self.write_missing(object);
    }

    /// Writes which shards have no part in the answer, if there are any.
    pub fn write_missing(&self, object: &mut Object<'_>) {
        let seen = self.reading.seen();
        if !seen.missing.is_empty() {
            object.array("missing", &seen.missing, |out, shard| json::unsigned(out, u64::from(shard.0)));
        }
    }

    /// Asks the board of the path for what needs no disk: counts.
    ///
    /// # Errors
    /// When there is no such board, or some shard does not reply.
    pub async fn ask<R: BoardRead>(&self, asked: R) -> Result<Answer<R::Answer>, Problem> {
        let started = Instant::now();
        let board = self.wait_for_board_of_path().await?;
        let answer =
            self.api.operations.read(&self.reading, &self.of_board(board, self.window(), asked)).await?;
        self.record_read(started);
        Ok(self.api.operations.found(answer)?)
    }

    /// The read of a board's entries, with the movement that the parameters ask for.
    ///
    /// # Arguments
    /// `entries`: the most entries that the answer has.
    ///
    /// # Errors
    /// When the parameter is not as it should be.
    pub fn with_movement<R>(
        &self,
        params: &Params<'_>,
        read: R,
        entries: usize,
    ) -> Result<WithMovement<R>, Problem> {
        let movement = match params.movement()? {
            Some(window) => {
                let (board, now) = (self.board_name()?, self.api.operations.now());
                Some(MovementAsked { board, window, now, entries })
            }
            None => None,
        };
        Ok(WithMovement { read, movement })
    }

    /// Asks the board of the path for entries, with their metadata.
    ///
    /// # Arguments
    /// `window`: of which instance, mostly that of the parameter.
    ///
    /// # Errors
    /// When there is no such board, or some shard does not reply. When the answer may be larger than there is
    /// room for.
    pub async fn ask_entries<R>(&self, window: WindowChoice, asked: R) -> Result<Answer<R::Answer>, Problem>
    where
        R: BoardRead<Answer: VisitEntries> + 'static,
    {
        self.ask_table(window, asked, None).await
    }

    /// As [`Call::ask_entries`], with the entries of their members on other boards.
    ///
    /// # Errors
    /// As there, and when one of the other boards is unknown.
    pub async fn ask_table<R>(
        &self,
        window: WindowChoice,
        asked: R,
        columns: Option<ColumnsAsked>,
    ) -> Result<Answer<R::Answer>, Problem>
    where
        R: BoardRead<Answer: VisitEntries> + 'static,
    {
        let board = self.wait_for_board_of_path().await?;
        let read = self.of_board(board, window, asked);
        let answer = self.ask_with_metadata(WithColumns { read, columns }).await?;
        Ok(self.api.operations.found(answer)?)
    }

    /// A read of the board of the path.
    pub(super) fn of_board<R>(&self, board: BoardName, choice: WindowChoice, asked: R) -> OfBoard<R> {
        let instance = InstanceAsked { choice, ..self.instance_asked() };
        OfBoard { board, instance, read: asked }
    }

    /// Waits until the board of the path is known, if the read asks for what may have created it.
    ///
    /// # Errors
    /// When the request has to wait and is not admitted again.
    pub async fn wait_for_board_of_path(&self) -> Result<BoardName, Problem> {
        let board = self.board_name()?;
        if self.reading.waits() {
            Box::pin(self.api.operations.wait_for_board(&self.reading, &board, None)).await?;
        }
        Ok(board)
    }

    /// Asks for entries, with their metadata, and with profiles if the request wants them.
    ///
    /// # Errors
    /// When some shard does not reply, or the answer may be larger than there is room for.
    pub async fn ask_with_metadata<R>(&self, asked: R) -> Result<R::Answer, Problem>
    where
        R: ShardsRead<Answer: ConsistentAnswer> + 'static,
    {
        let started = Instant::now();
        let answer = self.api.operations.read_entries(&self.reading, asked).await?;
        self.record_read(started);
        Ok(answer)
    }

    /// Records the time of a read that began at `started`.
    pub fn record_read(&self, started: Instant) {
        self.metrics.read_seconds.record(started.elapsed());
        self.metrics.read_shards.record(f64::from(self.api.operations.node.shard_count()));
    }
}
