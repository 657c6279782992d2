//! A shard of this node as it replies to questions: from memory, under one hold of its lock, with the
//! metadata of the entries, and their members' profiles, from its disk.
//!
//! Knows: when a reply has to wait, and that both must be of the reply's sequence (`metadata` has the
//! rules). Must not know: who asks, or how questions travel.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit, watch};

use crate::applied_sequence::AppliedSequenceReader;
use crate::query::combine::on_shard::combine_in_slices;
use crate::query::question::{
    self, CombineQuestion, EntryMetadata, EntryProfile, InvalidQuestion, Question, Reply, ShardEntry,
    ShardReply,
};
use crate::query::rejects_of_shard::read_rejects;
use crate::query::remote_shards::AskTerms;
use crate::query::summary::{MadeSummaries, TooBusy};
use crate::state_lock::{Purpose, StateLock};
use crate::storage::{StorageError, StoreSlot};
use crate::types::{Sequence, ShardId};
use crate::writer::Health;

/// Records that are read at once. They are mostly cached in memory, and handing over to another thread costs
/// more.
pub const INLINE_DISK_READS: usize = 4;
/// Replies that read more from the disk at the same time. More would only share the cores.
const DISK_READS_AT_ONCE: usize = 8;
/// Replies that combine boards at the same time. Each takes some megabytes of memory.
const COMBINED_AT_ONCE: usize = 4;
/// How often a reply is made again because metadata changed while it was read. Metadata that still changed
/// the last time is left out, instead of being that of another moment.
const ATTEMPTS: u32 = 16;
/// How long a reply waits for what the disk already has to become visible. Mostly it is a fraction of a
/// millisecond.
const DISK_AHEAD_WAIT: Duration = Duration::from_millis(20);
/// How long a reply waits for the sequence that was asked for, if the question does not say.
const WAIT_DEFAULT: Duration = Duration::from_secs(1);

/// A shard of this node; clone it freely.
#[derive(Clone)]
pub struct AnsweringShard {
    pub id: ShardId,
    pub state: Arc<StateLock>,
    pub applied: AppliedSequenceReader,
    pub health: Arc<Health>,
    pub store: Arc<StoreSlot>,
    pub summaries: Arc<MadeSummaries>,
}

/// Why a shard of this node does not reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAnswered {
    #[error(transparent)]
    Invalid(#[from] InvalidQuestion),
    #[error("the shard has applied {applied}, and the question asks for {least}")]
    NotYetApplied { applied: Sequence, least: Sequence },
    #[error("the sequence {0} is of another history of the shard, which was set back since")]
    OtherHistory(Sequence),
    #[error("this node is still being filled with the shard's data")]
    Unfilled,
    #[error("the node is shutting down")]
    Ending,
    #[error(transparent)]
    TooBusy(#[from] TooBusy),
    /// What it asks for is on the disk, and cannot be read there now.
    #[error("{0}")]
    Unreadable(String),
}

impl AnsweringShard {
    pub fn of(shard: &ShardHandle) -> Self {
        Self {
            id: shard.id,
            state: Arc::clone(&shard.state),
            applied: shard.applied.clone(),
            health: Arc::clone(&shard.health),
            store: Arc::clone(&shard.store),
            summaries: Arc::clone(&shard.summaries),
        }
    }

    /// Replies once the shard has applied what is asked for at least.
    ///
    /// # Errors
    /// When the question asks for too much, or the shard has not applied that in time.
    pub async fn answer(&self, question: &Question<'_>, terms: AskTerms) -> Result<ShardReply, NotAnswered> {
        question::check(question)?;
        if !self.health.is_filled() {
            return Err(NotAnswered::Unfilled);
        }
        self.wait_for(Some(question), terms).await?;
        if let Question::Rejects(wanted) = question {
            wanted.before.map_or(Ok(()), |(place, _)| self.check_history(place))?;
            let _turn = disk_turn().await?;
            // Before the rejects, so that none of those up to this sequence can be missing.
            let (sequence, is_live) = (self.applied.get(), self.health.is_live());
            let rejects = read_rejects(self.id, Arc::clone(&self.store), wanted).await;
            let reply = Reply::Rejects(rejects.map_err(NotAnswered::Unreadable)?);
            return Ok(ShardReply { sequence, is_live, reply });
        }
        if let Question::Summary { board, known } = question {
            let is_live = self.health.is_live();
            let (sequence, summary) = self.summaries.reply(&self.state, board, *known)?;
            return Ok(ShardReply { sequence, is_live, reply: Reply::Summary(summary) });
        }
        if let Question::Combine(asked) = question {
            return self.combine(asked).await;
        }
        let mut reply = self.answer_from_memory(question, terms).await?;
        for attempt in 0..ATTEMPTS {
            let Some(ahead) = self.fill_metadata(&mut reply).await? else { break };
            if attempt + 1 == ATTEMPTS {
                break;
            }
            // It may have stopped; then the next attempt finds the same.
            let _ = tokio::time::timeout(DISK_AHEAD_WAIT, self.applied.reach(ahead)).await;
            reply = self.answer_from_memory(question, terms).await?;
        }
        reply.reply.each_entry(&mut |entry| {
            if matches!(entry.metadata, EntryMetadata::OnDisk(_)) {
                entry.metadata = EntryMetadata::Unreadable;
            }
            if entry.profile == EntryProfile::OnDisk {
                entry.profile = EntryProfile::Unreadable;
            }
        });
        Ok(reply)
    }

    /// Combines boards apart from the threads of others: that takes a tenth of a second at most.
    async fn combine(&self, asked: &Arc<CombineQuestion>) -> Result<ShardReply, NotAnswered> {
        static COMBINED: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(COMBINED_AT_ONCE));
        let _turn = COMBINED.acquire().await.map_err(|_| NotAnswered::Ending)?;
        loop {
            let is_live = self.health.is_live();
            let (state, asked) = (Arc::clone(&self.state), Arc::clone(asked));
            let combined = tokio::task::spawn_blocking(move || combine_in_slices(&state, &asked));
            match combined.await.map_err(|_| NotAnswered::Ending)?? {
                Ok((sequence, reply)) => {
                    return Ok(ShardReply { sequence, is_live, reply: Reply::Combine(reply) });
                }
                Err(shown) => self.applied.pass(shown).await.map_err(|_| NotAnswered::Ending)?,
            }
        }
    }

    async fn answer_from_memory(
        &self,
        question: &Question<'_>,
        terms: AskTerms,
    ) -> Result<ShardReply, NotAnswered> {
        loop {
            match self.answer_at_message(question, terms)? {
                Ok(reply) => return Ok(reply),
                Err(shown) => self.applied.pass(shown).await.map_err(|_| NotAnswered::Ending)?,
            }
        }
    }

    /// Replies from memory, unless a board of the question is ahead of this sequence
    /// ([`Shard::is_ahead`](crate::state::Shard::is_ahead)).
    fn answer_at_message(
        &self,
        question: &Question<'_>,
        terms: AskTerms,
    ) -> Result<Result<ShardReply, Sequence>, NotAnswered> {
        // Before the state, so that a shard that stops in between is not called live.
        let is_live = self.health.is_live();
        let state = self.state.read(Purpose::Read);
        let sequence = state.applied.sequence;
        if state.is_ahead(|board| question.is_of_every_board() || question.boards().any(|of| of == *board)) {
            return Ok(Err(sequence));
        }
        question::check_widths(&state, question)?;
        let mut reply = question::answer(&state, question);
        drop(state);
        if terms.profiles {
            question::ask_for_profiles(question, &mut reply);
        }
        Ok(Ok(ShardReply { sequence, is_live, reply }))
    }

    /// Whether the shard has applied this sequence, and no job from it or before is parked for a board of the
    /// question, or for any if the question is about all.
    pub fn has_applied(&self, question: Option<&Question<'_>>, sequence: Sequence) -> bool {
        let places = &self.health.parked_places;
        let is_parked = |question: &Question<'_>| {
            question.boards().any(|board| places.holds(&board, sequence))
                || (question.is_of_every_board() && places.holds_any(sequence))
        };
        // Most questions ask for nothing.
        sequence.0 == 0
            || (self.applied.get() >= sequence
                && !self.applied.is_of_another_history(sequence)
                && !question.is_some_and(is_parked))
    }

    /// Refuses a sequence of another history.
    fn check_history(&self, sequence: Sequence) -> Result<(), NotAnswered> {
        let is_other = self.applied.is_of_another_history(sequence);
        if is_other { Err(NotAnswered::OtherHistory(sequence)) } else { Ok(()) }
    }

    /// Waits until the shard has applied what is asked for at least, and unparked what of it was parked for a
    /// board of the question.
    ///
    /// # Errors
    /// When that takes too long, or cannot be because it is of another history.
    pub async fn wait_for(
        &self,
        question: Option<&Question<'_>>,
        terms: AskTerms,
    ) -> Result<(), NotAnswered> {
        if self.has_applied(question, terms.least) {
            return Ok(());
        }
        self.check_history(terms.least)?;
        let until = terms.until.unwrap_or_else(|| Instant::now() + WAIT_DEFAULT);
        let late = || NotAnswered::NotYetApplied { applied: self.applied.get(), least: terms.least };
        let waiting = self.applied.reach(terms.least);
        match tokio::time::timeout_at(until.into(), waiting).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(NotAnswered::Ending),
            Err(_) => return Err(late()),
        }
        let places = &self.health.parked_places;
        for board in question.iter().flat_map(|question| question.boards()) {
            if !places.wait_until_free(&board, terms.least, until).await {
                return Err(late());
            }
        }
        if question.is_some_and(Question::is_of_every_board)
            && !places.wait_until_none(terms.least, until).await
        {
            return Err(late());
        }
        Ok(())
    }

    /// Fills in the metadata and the profiles that belong to the reply's sequence. If the disk is ahead of
    /// it: by how much at least.
    async fn fill_metadata(&self, reply: &mut ShardReply) -> Result<Option<Sequence>, NotAnswered> {
        let mut missing = 0;
        reply.reply.each_entry(&mut |entry| {
            missing += usize::from(is_on_disk(entry));
        });
        if missing <= INLINE_DISK_READS {
            return Ok(fill(self.id, &self.store, reply));
        }
        let _turn = disk_turn().await?;
        let empty = Reply::Counts(Vec::new());
        let mut taken = ShardReply { reply: std::mem::replace(&mut reply.reply, empty), ..*reply };
        let (id, store) = (self.id, Arc::clone(&self.store));
        let filled = tokio::task::spawn_blocking(move || (fill(id, &store, &mut taken), taken));
        let (ahead, filled) = filled.await.map_err(|_| NotAnswered::Ending)?;
        *reply = filled;
        Ok(ahead)
    }
}

fn is_on_disk(entry: &ShardEntry) -> bool {
    matches!(entry.metadata, EntryMetadata::OnDisk(_)) || entry.profile == EntryProfile::OnDisk
}

/// Waits for a turn to read much from the disk.
async fn disk_turn() -> Result<SemaphorePermit<'static>, NotAnswered> {
    static DISK_READS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(DISK_READS_AT_ONCE));
    DISK_READS.acquire().await.map_err(|_| NotAnswered::Ending)
}

fn fill(shard: ShardId, store: &StoreSlot, reply: &mut ShardReply) -> Option<Sequence> {
    let sequence = reply.sequence;
    let mut ahead: Option<Sequence> = None;
    let mut note_ahead = |newer: Sequence| ahead = Some(ahead.map_or(newer, |known| known.max(newer)));
    let store = store.get();
    // Of one moment, however long reading takes.
    let snapshot = store.as_ref().map(|store| store.snapshot());
    // Of a member on many boards, it is read once.
    let mut last: Option<(Box<[u8]>, EntryProfile)> = None;
    reply.reply.each_entry(&mut |entry| {
        let Ok(snapshot) = &snapshot else {
            if matches!(entry.metadata, EntryMetadata::OnDisk(_)) {
                entry.metadata = EntryMetadata::Unreadable;
            }
            if entry.profile == EntryProfile::OnDisk {
                entry.profile = EntryProfile::Unreadable;
            }
            return;
        };
        if let EntryMetadata::OnDisk(tree) = entry.metadata {
            match snapshot.metadata(tree, &entry.member) {
                Ok(Some(record)) if record.sequence <= sequence.0 => {
                    entry.metadata = EntryMetadata::Json(record.json.into());
                }
                Err(error) => {
                    log_unreadable(shard, &error);
                    entry.metadata = EntryMetadata::Unreadable;
                }
                Ok(Some(record)) => note_ahead(Sequence(record.sequence)),
                Ok(None) => note_ahead(sequence.next()),
            }
        }
        if entry.profile != EntryProfile::OnDisk {
            return;
        }
        if let Some((_, known)) = last.as_ref().filter(|(member, _)| *member == entry.member) {
            entry.profile = known.clone();
            return;
        }
        entry.profile = match snapshot.profile_at(&entry.member, sequence) {
            Ok(Ok(Some(json))) => EntryProfile::Json(json.into()),
            Ok(Ok(None)) => EntryProfile::None,
            Ok(Err(newer)) => return note_ahead(newer),
            Err(error) => {
                log_unreadable(shard, &error);
                EntryProfile::Unreadable
            }
        };
        last = Some((entry.member.clone(), entry.profile.clone()));
    });
    ahead
}

/// One shard as reads see it; clone it freely.
#[derive(Clone)]
pub struct ShardHandle {
    pub id: ShardId,
    /// The state at one applied sequence. Held for microseconds at a time, and never across an await or a
    /// disk read.
    pub state: Arc<StateLock>,
    /// The applied sequence, after readers can see it.
    pub applied: AppliedSequenceReader,
    /// Whether the writer has begun to work.
    pub started: watch::Receiver<bool>,
    pub health: Arc<Health>,
    /// Holds metadata and rejects.
    pub store: Arc<StoreSlot>,
    /// Those that were made for approximate ranks.
    pub summaries: Arc<MadeSummaries>,
}

/// The least time between two log lines about metadata that cannot be read.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Logs that the disk cannot be read, at most every ten seconds.
pub(super) fn log_unreadable(shard: ShardId, error: &StorageError) {
    static LAST_LINE: Mutex<Option<Instant>> = Mutex::new(None);
    let mut last = LAST_LINE.lock();
    if last.is_none_or(|at| at.elapsed() >= LINE_INTERVAL) {
        *last = Some(Instant::now());
        match error {
            StorageError::Closed => {
                tracing::warn!(%shard, "metadata and profiles are answered as null until the shard's storage is open again; /readyz says why it is closed");
            }
            _ => {
                tracing::error!(%shard, %error, "metadata or profiles cannot be read and are answered as null; ranktree verify tells what is damaged");
            }
        }
    }
}
