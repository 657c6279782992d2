//! How a handler asks a board: the wait for `after=`, the answer, and the metadata of its entries, and their
//! members' profiles.
//!
//! Answers of reads get both in this way only. Answers of writes also get what their jobs brought,
//! from `http::writes::sent_metadata`. Entries are found while the shards are held, and their metadata is
//! read from disk afterwards. Little of it is read at once. For more, the board is asked again on a thread
//! that may block, so that entries and metadata are of the same moment. What jobs did cannot be asked again:
//! its metadata is recalled as far as it is still there.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::access::ProfileAccess;
use crate::http::api::Api;
use crate::http::render::fields;
use crate::http::render::json::{self, Object};
use crate::http::render::problem::Problem;
use crate::http::request::accuracy::Accuracy;
use crate::http::request::call::Call;
use crate::http::request::params::Params;
use crate::job::{MAX_METADATA_BYTES, MAX_PROFILE_BYTES};
use crate::query::{
    Answer, BoardRead, ConsistentAnswer, EntryChange, InstanceAsked, MovementAsked, OfBoard, ReadOptions,
    ReadReply, ShardHandle, ShardsRead, VisitEntries, WindowChoice, WithMovement, ask_for_profiles,
    fill_metadata, fill_unchanged_metadata, missing_metadata, read, with_metadata,
};
use crate::state_lock::Purpose;
use crate::types::{AsOf, BoardName, MemberId, Sequence, ShardId};

/// Entries whose metadata is read at once. It is mostly cached in memory, and handing over to another thread
/// costs more.
pub const INLINE_DISK_READS: usize = 4;
/// How long a node waits until it hears of boards that a read of a member names, and that it does not know.
const BOARD_HEARD_OF: Duration = Duration::from_secs(1);
/// How often it is looked whether a board is known that a token may be about.
const BOARD_LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// What most entries take without their metadata: in an answer, and while that is made.
const ENTRY_BYTES_EXPECTED: usize = 512;

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
            let (after, deadline) = match after {
                Some((token, timeout)) => {
                    let deadline = Instant::now() + timeout;
                    Box::pin(self.wait_until(&token, deadline)).await?;
                    (token, Some(deadline))
                }
                None => (AsOf::default(), None),
            };
            // A handler reads its parameters once.
            let _ = self.read_options.set(ReadOptions { partial, profiles, after, deadline });
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

    /// Waits until the writes that a token names are applied on this node's shards, and notes what later
    /// reads have to wait for.
    ///
    /// # Errors
    /// When the wait is too long, or the token names a shard that there is not.
    pub async fn wait_for_after(&self, token: &AsOf, until: Instant) -> Result<(), Problem> {
        self.wait_until(token, until).await?;
        let options = ReadOptions { after: token.clone(), deadline: Some(until), ..ReadOptions::default() };
        // A handler reads its parameters once.
        let _ = self.read_options.set(options);
        Ok(())
    }

    /// Waits for the shards that this node owns. The reads wait for the others.
    async fn wait_until(&self, token: &AsOf, deadline: Instant) -> Result<(), Problem> {
        let deadline = tokio::time::Instant::from_std(deadline);
        let shard = |id: &ShardId| self.api.node.owned(*id);
        if token.0.iter().any(|(id, _)| id.0 >= self.api.node.shard_count()) {
            return Err(Problem::unknown_shard());
        }
        // A job that waits for its board was applied as far as its shard is concerned, and cannot be read
        // yet.
        let board = BoardName::new(self.board()).ok();
        let lacks = |(id, sequence): &&(ShardId, Sequence)| {
            let is_parked = |shard: &ShardHandle| {
                board.as_ref().is_some_and(|board| shard.health.parked_places.holds(board, *sequence))
            };
            shard(id).is_some_and(|shard| shard.applied.get() < *sequence || is_parked(shard))
        };
        if !token.0.iter().any(|part| lacks(&part)) {
            return Ok(());
        }
        // A waiting request gives its permit back, so that it does not keep other requests out. The
        // connection limit per client still bounds waiting requests.
        self.in_progress.release_permit();
        for (id, sequence) in token.0.iter().filter(lacks) {
            let Some(shard) = shard(id) else { continue };
            let waiting = shard.applied.reach(*sequence);
            let is_applied = matches!(tokio::time::timeout_at(deadline, waiting).await, Ok(Ok(())));
            let places = &shard.health.parked_places;
            let is_free = match &board {
                Some(board) if is_applied => {
                    places.wait_until_free(board, *sequence, deadline.into_std()).await
                }
                _ => is_applied,
            };
            if !is_free {
                return Err(Problem::not_yet_applied());
            }
        }
        self.in_progress.admit()
    }

    /// How the request's reads treat shards that do not reply.
    pub fn read_options(&self) -> &ReadOptions {
        const DEFAULTS: &ReadOptions =
            &ReadOptions { partial: false, profiles: false, after: AsOf(Vec::new()), deadline: None };
        self.read_options.get().unwrap_or(DEFAULTS)
    }

    /// Waits until this node knows a board, if the read asks for what a shard has applied and that may have
    /// created it. Whether the board is known afterwards, the read finds out.
    ///
    /// # Arguments
    /// `until`: it waits no longer than that, and no longer than the read may take.
    async fn wait_for_board(&self, board: &BoardName, until: Option<Instant>) -> Result<(), Problem> {
        let Some(ReadOptions { after, deadline: Some(deadline), .. }) = self.read_options.get() else {
            return Ok(());
        };
        let deadline = until.map_or(*deadline, |until| until.min(*deadline));
        if after.0.is_empty() {
            return Ok(());
        }
        let is_known = || self.api.registry.get(board.as_str()).is_some();
        // An owner may have the board on its shard before it reads the decision. Other nodes do not see
        // whether jobs are parked for it on the shards of the token.
        let may_come = |(id, _): &(ShardId, Sequence)| {
            self.api
                .node
                .owned(*id)
                .is_none_or(|shard| shard.state.read(Purpose::Read).board(board.as_str()).is_some())
        };
        let may_come = || !is_known() && after.0.iter().any(may_come) && Instant::now() < deadline;
        if !may_come() {
            return Ok(());
        }
        self.in_progress.release_permit();
        while may_come() {
            tokio::time::sleep(BOARD_LOOK_INTERVAL).await;
        }
        self.in_progress.admit()
    }

    /// Waits until no job of a member is parked that comes before what the read asks for, and until this node
    /// knows the boards. Where another node owns the member's shard, that one waits for parked jobs.
    ///
    /// # Arguments
    /// `boards`: those that are read; `None`: all of the member.
    ///
    /// # Errors
    /// When the wait is too long, or the request is not admitted again.
    pub async fn wait_for_boards_of_member(
        &self,
        member: &MemberId,
        boards: Option<&[BoardName]>,
    ) -> Result<(), Problem> {
        let Some(ReadOptions { after, deadline: Some(deadline), .. }) = self.read_options.get() else {
            return Ok(());
        };
        let home = self.api.node.home_of(member);
        let sequence = after.0.iter().find(|(shard, _)| *shard == home).map(|(_, sequence)| *sequence);
        if let (Some(sequence), Some(shard)) = (sequence, self.api.node.owned(home)) {
            let places = &shard.health.parked_places;
            let holds = match boards {
                Some(boards) => boards.iter().any(|board| places.holds(board, sequence)),
                None => places.holds_any(sequence),
            };
            if holds {
                self.in_progress.release_permit();
                let mut is_free = true;
                for board in boards.into_iter().flatten() {
                    is_free = is_free && places.wait_until_free(board, sequence, *deadline).await;
                }
                if boards.is_none() {
                    is_free = places.wait_until_none(sequence, *deadline).await;
                }
                if !is_free {
                    return Err(Problem::not_yet_applied());
                }
                self.in_progress.admit()?;
            }
        }
        // Boards that do not exist are left out, after a moment in which a new one would be heard of.
        let until = Instant::now() + BOARD_HEARD_OF;
        for board in boards.into_iter().flatten() {
            self.wait_for_board(board, Some(until)).await?;
        }
        Ok(())
    }

    /// Reads, with the options of the request, and notes what it has seen of the shards.
    ///
    /// # Errors
    /// When some shard does not reply, or what was asked for kept changing.
    pub async fn ask_shards<R: ShardsRead>(&self, asked: &R) -> Result<R::Answer, Problem> {
        let reply = read(&self.api.node, &self.api.registry, asked, self.read_options()).await?;
        Ok(self.note_seen(reply))
    }

    /// Notes what a read has seen of the shards.
    pub(super) fn note_seen<A>(&self, reply: ReadReply<A>) -> A {
        if reply.is_stale || !reply.missing.is_empty() {
            self.seen.lock().is_stale |= reply.is_stale;
            self.note_missing(&reply.missing);
        }
        reply.answer
    }

    /// Notes that shards have no part in the answer.
    pub fn note_missing(&self, shards: &[ShardId]) {
        let missing = &mut self.seen.lock().missing;
        missing.extend_from_slice(shards);
        missing.sort_unstable();
        missing.dedup();
    }

    /// Refuses an answer that one shard alone could have given, if that shard has no part in it: what it
    /// holds is unknown, and not absent.
    ///
    /// # Errors
    /// When the member's home shard did not reply.
    pub fn check_home_replied(&self, member: &MemberId) -> Result<(), Problem> {
        let home = self.api.node.home_of(member);
        if self.seen.lock().missing.contains(&home) { Err(Problem::missing_shards(&[home])) } else { Ok(()) }
    }

    /// Whether the member's home shard has a part in the answer.
    pub fn home_replied(&self, member: &MemberId) -> bool {
        self.check_home_replied(member).is_ok()
    }

    /// Writes what the answer was exact at, and what it lacks.
    pub fn write_answer_end(&self, object: &mut Object<'_>, as_of: &AsOf) {
        fields::as_of(object, as_of);
        self.write_freshness(object);
    }

    /// Writes that the answer may be behind, or lacks shards, if that is so.
    pub fn write_freshness(&self, object: &mut Object<'_>) {
        let seen = self.seen.lock();
        // An answer from memory is as old as the shards are now; of remote ones, the replies said it.
        if seen.is_stale || (self.api.node.remote.is_none() && self.api.node.is_stale()) {
            object.bool("stale", true);
        }
        drop(seen);
        self.write_missing(object);
    }

    /// Writes which shards have no part in the answer, if there are any.
    pub fn write_missing(&self, object: &mut Object<'_>) {
        let seen = self.seen.lock();
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
        let answer = self.ask_shards(&self.of_board(board, self.window(), asked)).await?;
        self.record_read(started);
        answer.map_err(|why| self.api.no_board(why))
    }

    /// Asks the board of the path for entries, with their metadata.
    ///
    /// # Errors
    /// When there is no such board, or some shard does not reply. When the answer may be larger than there is
    /// room for.
    pub async fn ask_entries<R>(&self, asked: R) -> Result<Answer<R::Answer>, Problem>
    where
        R: BoardRead<Answer: VisitEntries> + 'static,
    {
        self.ask_entries_of(self.window(), asked).await
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
                let (board, now) = (self.board_name()?, self.api.now());
                Some(MovementAsked { board, window, now, entries })
            }
            None => None,
        };
        Ok(WithMovement { read, movement })
    }

    /// As [`Call::ask_entries`], of an instance that is not the one of the parameter `window`.
    pub async fn ask_entries_of<R>(
        &self,
        window: WindowChoice,
        asked: R,
    ) -> Result<Answer<R::Answer>, Problem>
    where
        R: BoardRead<Answer: VisitEntries> + 'static,
    {
        let board = self.wait_for_board_of_path().await?;
        let answer = self.ask_with_metadata(self.of_board(board, window, asked)).await?;
        answer.map_err(|why| self.api.no_board(why))
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
        if self.read_options.get().is_some() {
            Box::pin(self.wait_for_board(&board, None)).await?;
        }
        Ok(board)
    }

    /// Asks for entries, with their metadata, and with profiles if the request wants them. It is asked again
    /// if much of that is to be read.
    ///
    /// # Errors
    /// When some shard does not reply, or the answer may be larger than there is room for.
    pub async fn ask_with_metadata<R>(&self, asked: R) -> Result<R::Answer, Problem>
    where
        R: ShardsRead<Answer: ConsistentAnswer> + 'static,
    {
        let started = Instant::now();
        let mut answer = self.ask_shards(&asked).await?;
        let profiles = self.read_options().profiles;
        if profiles && self.api.node.remote.is_none() {
            ask_for_profiles(&self.api.node, &mut answer);
        }
        let missing = missing_metadata(&mut answer);
        let is_filled =
            missing == 0 || (missing <= INLINE_DISK_READS && fill_metadata(&self.api.node, &mut answer));
        if !is_filled {
            // The most that the answer can come to, before any of its metadata is read.
            let each =
                ENTRY_BYTES_EXPECTED + MAX_METADATA_BYTES + if profiles { MAX_PROFILE_BYTES } else { 0 };
            self.in_progress.count_answer(missing_metadata(&mut answer) * each)?;
            drop(answer);
            // The disk blocks: off the threads that serve other connections.
            let api = Arc::clone(&self.api);
            let again = move || with_metadata(&api.node, &api.registry, &asked, profiles);
            answer = Box::pin(self.api.offload.read_disk(self.permit(), again)).await??;
        }
        self.record_read(started);
        Ok(answer)
    }

    /// Records the time of a read that began at `started`.
    pub fn record_read(&self, started: Instant) {
        self.metrics.read_seconds.record(started.elapsed());
        self.metrics.read_shards.record(f64::from(self.api.node.shard_count()));
    }
}

/// Visits the changes that jobs made.
pub trait VisitChanges {
    fn each_change(&mut self, visit: &mut dyn FnMut(&mut EntryChange));
}

/// Reads the metadata of entries that jobs have left, as far as it is still on disk.
///
/// # Errors
/// When the reading panicked.
pub async fn fill_metadata_of_changes<R: VisitChanges + Send + 'static>(
    api: &Arc<Api>,
    mut results: R,
) -> Result<R, Problem> {
    let mut missing = 0;
    results.each_change(&mut |change| missing += missing_metadata(change));
    if missing == 0 {
        return Ok(results);
    }
    let node = Arc::clone(&api.node);
    let recall = move || {
        results.each_change(&mut |change| fill_unchanged_metadata(&node, change));
        results
    };
    if missing <= INLINE_DISK_READS {
        return Ok(recall());
    }
    api.offload.read_disk(None, recall).await
}
