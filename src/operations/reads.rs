//! Reads: the wait for earlier writes, the answer, and the metadata of its entries and their members'
//! profiles.
//!
//! Answers of reads get both in this way only. Answers of writes also get what their jobs brought, from
//! `results`. Entries are found while the shards are held, and their metadata is read from disk
//! afterwards. Little of it is read at once. For more, the board is asked again on a thread that may block,
//! so that entries and metadata are of the same moment. What jobs did cannot be asked again: its metadata is
//! recalled as far as it is still there.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::job::{MAX_METADATA_BYTES, MAX_PROFILE_BYTES};
use crate::operations::admission::{Admission, InProgress};
use crate::operations::failure::Failure;
use crate::operations::results::{JobResult, each_change};
use crate::operations::shared::Operations;
use crate::query::summary::ApproximateShards;
use crate::query::{
    Answer, BoardRead, ConsistentAnswer, INLINE_DISK_READS, NoBoard, OfBoard, ReadOptions, ReadReply,
    ShardHandle, ShardsRead, ask_for_profiles, fill_few, fill_unchanged_metadata, missing_metadata, read,
    read_remote, with_metadata,
};
use crate::state_lock::Purpose;
use crate::types::{AsOf, BoardName, MemberId, Sequence, ShardId};

/// How long a node waits until it hears of boards that a read of a member names, and that it does not know.
const BOARD_HEARD_OF: Duration = Duration::from_secs(1);
/// How often it is looked whether a board is known that a token may be about.
const BOARD_LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// What most entries take without their metadata: in an answer, and while that is made.
const ENTRY_BYTES_EXPECTED: usize = 512;
/// The same of a member on another board: the greatest name of a board is most of it.
const COLUMN_BYTES_EXPECTED: usize = 320;

/// A request that reads.
pub struct Reading {
    /// What it takes of what all requests share, until its answer is written.
    pub in_progress: Arc<InProgress>,
    /// What its reads wait for, and how they treat shards that do not reply; not set: the defaults.
    options: OnceLock<ReadOptions>,
    seen: Mutex<SeenShards>,
}

/// What a request's reads have seen of the shards.
#[derive(Debug, Default)]
pub struct SeenShards {
    /// Those that have no part in the answer.
    pub missing: Vec<ShardId>,
    is_stale: bool,
}

impl Reading {
    pub fn new(admission: &Arc<Admission>) -> Self {
        let in_progress = Arc::new(InProgress::new(admission));
        Self { in_progress, options: OnceLock::new(), seen: Mutex::default() }
    }

    /// How the request's reads treat shards that do not reply.
    pub fn options(&self) -> &ReadOptions {
        const DEFAULTS: &ReadOptions =
            &ReadOptions { partial: false, profiles: false, after: AsOf(Vec::new()), deadline: None };
        self.options.get().unwrap_or(DEFAULTS)
    }

    /// Whether its reads wait for anything. If not, it need not call what waits.
    pub fn waits(&self) -> bool {
        self.options.get().is_some()
    }

    pub fn seen(&self) -> MutexGuard<'_, SeenShards> {
        self.seen.lock()
    }

    /// Notes that shards have no part in the answer.
    pub fn note_missing(&self, shards: &[ShardId]) {
        let missing = &mut self.seen.lock().missing;
        missing.extend_from_slice(shards);
        missing.sort_unstable();
        missing.dedup();
    }

    /// Notes what a read has seen of the shards.
    fn note_seen<A>(&self, reply: ReadReply<A>) -> A {
        if reply.is_stale || !reply.missing.is_empty() {
            self.seen.lock().is_stale |= reply.is_stale;
            self.note_missing(&reply.missing);
        }
        reply.answer
    }
}

impl Operations {
    /// Waits until the writes that a token names are applied on this node's shards, and notes what the
    /// request's reads have to wait for on others.
    ///
    /// # Arguments
    /// - `board`: the one that is read, if it is one: jobs that wait for it are waited for, too.
    /// - `options`: with the token, and with a deadline if there is one.
    ///
    /// # Errors
    /// When the wait is too long, or the token names a shard that there is not, or is of another history.
    pub async fn begin_reads(
        &self,
        reading: &Reading,
        board: Option<&BoardName>,
        options: ReadOptions,
    ) -> Result<(), Failure> {
        // A request says once what it waits for.
        let ReadOptions { after, deadline, .. } = reading.options.get_or_init(|| options);
        // Reads wait for the shards of other nodes.
        match deadline {
            Some(deadline) => self.wait_for_own(reading, board, after, *deadline).await,
            None => Ok(()),
        }
    }

    async fn wait_for_own(
        &self,
        reading: &Reading,
        board: Option<&BoardName>,
        token: &AsOf,
        deadline: Instant,
    ) -> Result<(), Failure> {
        let deadline = tokio::time::Instant::from_std(deadline);
        let shard = |id: &ShardId| self.node.owned(*id);
        if token.0.iter().any(|(id, _)| id.0 >= self.node.shard_count()) {
            return Err(Failure::UnknownShard);
        }
        self.check_history(&token.0)?;
        // A job that waits for its board was applied as far as its shard is concerned, and cannot be read
        // yet.
        let lacks = |(id, sequence): &&(ShardId, Sequence)| {
            let is_parked = |shard: &ShardHandle| {
                board.is_some_and(|board| shard.health.parked_places.holds(board, *sequence))
            };
            shard(id).is_some_and(|shard| shard.applied.get() < *sequence || is_parked(shard))
        };
        if !token.0.iter().any(|part| lacks(&part)) {
            return Ok(());
        }
        // A waiting request gives its permit back, so that it does not keep other requests out. The
        // connection limit per client still bounds waiting requests.
        reading.in_progress.release_permit();
        for (id, sequence) in token.0.iter().filter(lacks) {
            let Some(shard) = shard(id) else { continue };
            let waiting = shard.applied.reach(*sequence);
            let is_applied = matches!(tokio::time::timeout_at(deadline, waiting).await, Ok(Ok(())));
            let places = &shard.health.parked_places;
            let is_free = match board {
                Some(board) if is_applied => {
                    places.wait_until_free(board, *sequence, deadline.into_std()).await
                }
                _ => is_applied,
            };
            if !is_free {
                return Err(Failure::NotYetApplied);
            }
        }
        reading.in_progress.admit()
    }

    /// Refuses sequences that shards of this node had before they were set back. Their other owners refuse
    /// those of other shards.
    ///
    /// # Errors
    /// When there is one.
    pub fn check_history(&self, sequences: &[(ShardId, Sequence)]) -> Result<(), Failure> {
        let is_other = |(id, sequence): &(ShardId, Sequence)| {
            self.node.owned(*id).is_some_and(|shard| shard.applied.is_of_another_history(*sequence))
        };
        if sequences.iter().any(is_other) { Err(Failure::OtherHistory) } else { Ok(()) }
    }

    /// In which history the shards are, by the first sequence of the last one that began; 0 is the first.
    /// With NATS a node does not know that of all shards.
    pub fn history(&self) -> u64 {
        let began = self.node.shards.iter().map(|shard| shard.applied.history_began().0);
        if self.has_streams() { 0 } else { began.max().unwrap_or_default() }
    }

    /// Waits until this node knows a board, if the request waits for what may have created it. Whether the
    /// board is known afterwards, the read finds out.
    ///
    /// # Arguments
    /// `until`: it waits no longer than that, and no longer than the read may take.
    ///
    /// # Errors
    /// When the request has to wait and is not admitted again.
    pub async fn wait_for_board(
        &self,
        reading: &Reading,
        board: &BoardName,
        until: Option<Instant>,
    ) -> Result<(), Failure> {
        let Some(ReadOptions { after, deadline: Some(deadline), .. }) = reading.options.get() else {
            return Ok(());
        };
        let deadline = until.map_or(*deadline, |until| until.min(*deadline));
        if after.0.is_empty() {
            return Ok(());
        }
        let is_known = || self.registry.get(board.as_str()).is_some();
        // An owner may have the board on its shard before it reads the decision. Other nodes do not see
        // whether jobs are parked for it on the shards of the token.
        let may_come = |(id, _): &(ShardId, Sequence)| {
            self.node
                .owned(*id)
                .is_none_or(|shard| shard.state.read(Purpose::Read).board(board.as_str()).is_some())
        };
        let may_come = || !is_known() && after.0.iter().any(may_come) && Instant::now() < deadline;
        if !may_come() {
            return Ok(());
        }
        reading.in_progress.release_permit();
        while may_come() {
            tokio::time::sleep(BOARD_LOOK_INTERVAL).await;
        }
        reading.in_progress.admit()
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
        reading: &Reading,
        member: &MemberId,
        boards: Option<&[BoardName]>,
    ) -> Result<(), Failure> {
        let Some(ReadOptions { after, deadline: Some(deadline), .. }) = reading.options.get() else {
            return Ok(());
        };
        let home = self.node.home_of(member);
        let sequence = after.0.iter().find(|(shard, _)| *shard == home).map(|(_, sequence)| *sequence);
        if let (Some(sequence), Some(shard)) = (sequence, self.node.owned(home)) {
            let places = &shard.health.parked_places;
            let holds = match boards {
                Some(boards) => boards.iter().any(|board| places.holds(board, sequence)),
                None => places.holds_any(sequence),
            };
            if holds {
                reading.in_progress.release_permit();
                let mut is_free = true;
                for board in boards.into_iter().flatten() {
                    is_free = is_free && places.wait_until_free(board, sequence, *deadline).await;
                }
                if boards.is_none() {
                    is_free = places.wait_until_none(sequence, *deadline).await;
                }
                if !is_free {
                    return Err(Failure::NotYetApplied);
                }
                reading.in_progress.admit()?;
            }
        }
        // Boards that do not exist are left out, after a moment in which a new one would be heard of.
        let until = Instant::now() + BOARD_HEARD_OF;
        for board in boards.into_iter().flatten() {
            self.wait_for_board(reading, board, Some(until)).await?;
        }
        Ok(())
    }

    /// Reads what needs no disk, and notes what was seen of the shards.
    ///
    /// # Errors
    /// When some shard does not reply, or what was asked for kept changing.
    pub async fn read<R: ShardsRead>(&self, reading: &Reading, asked: &R) -> Result<R::Answer, Failure> {
        Ok(reading.note_seen(read(&self.node, &self.registry, asked, reading.options()).await?))
    }

    /// As [`Operations::read`], with counts from summaries. They tell by how much they may be off.
    ///
    /// # Errors
    /// When some shard does not reply.
    pub async fn read_approximately<R: BoardRead>(
        &self,
        reading: &Reading,
        asked: OfBoard<R>,
    ) -> Result<(Result<Answer<R::Answer>, NoBoard>, ApproximateShards<'_>), Failure> {
        // Shards in memory are not held, so that the read does not see their times.
        let asked = OfBoard { instance: asked.instance.not_before(self.node.time()), ..asked };
        let approximate = ApproximateShards::new(&self.summaries);
        let reply = read_remote(&approximate, &self.registry, &asked, reading.options()).await?;
        Ok((reading.note_seen(reply), approximate))
    }

    /// Reads entries, with their metadata, and with profiles if the request wants them. It is read again if
    /// much of that is to be read.
    ///
    /// # Errors
    /// When some shard does not reply, or the answer may be larger than there is room for.
    pub async fn read_entries<R>(&self, reading: &Reading, asked: R) -> Result<R::Answer, Failure>
    where
        R: ShardsRead<Answer: ConsistentAnswer> + 'static,
    {
        let mut answer = self.read(reading, &asked).await?;
        let profiles = reading.options().profiles;
        if profiles && self.node.remote.is_none() {
            ask_for_profiles(&self.node, &mut answer);
        }
        if fill_few(&self.node, &mut answer) {
            return Ok(answer);
        }
        // The most that the answer can come to, before any of its metadata is read.
        let each = ENTRY_BYTES_EXPECTED + MAX_METADATA_BYTES + if profiles { MAX_PROFILE_BYTES } else { 0 };
        let mut columns = 0;
        answer.each_entry_as_of(&mut |listed, _| columns += listed.columns.len());
        let bytes = missing_metadata(&mut answer) * each + columns * COLUMN_BYTES_EXPECTED;
        reading.in_progress.count_answer(bytes)?;
        drop(answer);
        // The disk blocks: off the threads that serve other connections.
        let (node, registry) = (Arc::clone(&self.node), Arc::clone(&self.registry));
        let again = move || with_metadata(&node, &registry, &asked, profiles);
        Ok(Box::pin(self.offload.read_disk(reading.in_progress.permit(), again)).await??)
    }

    /// Counts what an answer with columns comes to at most, before it is made.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn count_columns(&self, reading: &Reading, entries: usize, boards: usize) -> Result<(), Failure> {
        let each = ENTRY_BYTES_EXPECTED + boards * COLUMN_BYTES_EXPECTED;
        reading.in_progress.count_answer(entries * each)
    }

    /// What was read, if there is such a board.
    ///
    /// # Errors
    /// When there is not.
    pub fn found<A>(&self, answer: Result<A, NoBoard>) -> Result<A, Failure> {
        answer.map_err(|why| self.no_board(why))
    }

    /// Whether the answer may be behind.
    ///
    /// # Arguments
    /// `seen`: by the request's reads.
    pub fn is_stale(&self, seen: &SeenShards) -> bool {
        // An answer from memory is as old as the shards are now; of remote ones, the replies said it.
        seen.is_stale || (self.node.remote.is_none() && self.node.is_stale())
    }

    /// Refuses an answer that one shard alone could have given, if that shard has no part in it: what it
    /// holds is unknown, and not absent.
    ///
    /// # Errors
    /// When the member's home shard did not reply.
    pub fn check_home_replied(&self, reading: &Reading, member: &MemberId) -> Result<(), Failure> {
        let home = self.node.home_of(member);
        if reading.seen().missing.contains(&home) { Err(Failure::NoOwner(vec![home])) } else { Ok(()) }
    }

    /// Reads the metadata of entries that jobs have left, as far as it is still on disk.
    ///
    /// # Errors
    /// When the reading panicked.
    pub(super) async fn fill_metadata_of_changes(
        &self,
        mut results: Vec<JobResult>,
    ) -> Result<Vec<JobResult>, Failure> {
        let missing: usize = each_change(&mut results).map(missing_metadata).sum();
        if missing == 0 {
            return Ok(results);
        }
        let node = Arc::clone(&self.node);
        let recall = move || {
            each_change(&mut results).for_each(|change| fill_unchanged_metadata(&node, change));
            results
        };
        if missing <= INLINE_DISK_READS {
            return Ok(recall());
        }
        self.offload.read_disk(None, recall).await
    }
}
