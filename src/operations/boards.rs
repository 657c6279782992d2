//! Definitions, clears and drops of boards: decided once, and brought to every shard.
//!
//! A change runs in a task of its own: a client that leaves must not leave a board changed on some shards
//! only. The task tells its outcome to a function of the caller, which the client may not wait for.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use crate::access::Grant;
use crate::board::{Definition, DefinitionPatch};
use crate::job::Job;
use crate::operations::board_repair::{define, has_life, lacks};
use crate::operations::failure::Failure;
use crate::operations::shared::Operations;
use crate::operations::trim::Removed;
use crate::query::{
    Answer, CountAll, InstanceAsked, NoBoard, OfBoard, ReadError, ReadOptions, ReadReply, TotalOnly,
    WindowChoice, read,
};
use crate::queue::nats::{BoardLimit, BoardRefused, Decided};
use crate::state::Incarnation;
use crate::state_lock::{Purpose, StateLock};
use crate::types::{AsOf, BoardName, ShardId};
use crate::window::Instance;
use crate::writer::{BoardChange, Defined, Payload, RegisteredBoard, SeasonChange};

/// A board right after it was defined.
pub struct DefinedBoard {
    pub board: Decided,
    /// Entries of the default window on the shards that told, in which `missing` have no part.
    pub total: Option<(Instance, u64)>,
    pub as_of: AsOf,
    pub missing: Vec<ShardId>,
}

/// A board's seasons after a change of them.
pub struct ChangedSeasons {
    pub definition: Arc<Definition>,
    pub token: AsOf,
    /// Whether they were others before.
    pub changed: bool,
}

/// A turn to change boards, while no other client of this node changes any.
pub struct BoardChanges {
    pub(super) operations: Arc<Operations>,
    _turn: OwnedMutexGuard<()>,
}

impl Operations {
    /// Has boards changed, in order with all other changes.
    ///
    /// # Arguments
    /// `noted`: is told the outcome, whether or not the client still waits.
    ///
    /// # Errors
    /// Those of the change.
    pub async fn change_boards<T: Send + 'static, F: Future<Output = Result<T, Failure>> + Send>(
        self: &Arc<Self>,
        change: impl FnOnce(BoardChanges) -> F + Send + 'static,
        noted: impl FnOnce(&Result<T, Failure>) + Send + 'static,
    ) -> Result<T, Failure> {
        let operations = Arc::clone(self);
        let made = tokio::spawn(async move {
            let turn = Arc::clone(&operations.board_changes).lock_owned().await;
            let made = change(BoardChanges { operations, _turn: turn }).await;
            noted(&made);
            made
        });
        made.await.map_err(|_| Failure::Internal)?
    }

    /// Creates the boards that jobs name and that do not exist, in order with all other definitions: of two
    /// requests at the same moment, on one node or two, only one gets the last board. Writers and the boards'
    /// stream create boards for jobs without it, and they do not know tokens.
    ///
    /// # Arguments
    /// `grant`: the token of the jobs, which has a limit to its boards.
    ///
    /// # Errors
    /// When the token may not make so many, or a board cannot be created now. The caller publishes none of
    /// the jobs then.
    pub(super) async fn create_for(
        self: &Arc<Self>,
        grant: &Arc<Grant>,
        jobs: &[Job],
    ) -> Result<(), Failure> {
        let named = jobs.iter().flat_map(Job::awaited_boards);
        let lacking: BTreeSet<&BoardName> =
            named.filter(|board| self.registry.may_create(board.as_str())).collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let (named, grant): (Vec<_>, _) = (lacking.into_iter().cloned().collect(), Arc::clone(grant));
        let create = move |boards: BoardChanges| async move {
            // Some may have been created while this waited for its turn.
            for board in boards.check_limit(&grant, &named)? {
                // Another node may have created it, and not with the defaults: the jobs can be published
                // then, too.
                boards.change(board, &BoardChange::Create, Some(&grant)).await?;
            }
            Ok(())
        };
        self.change_boards(create, |_| ()).await
    }
}

impl BoardChanges {
    /// Defines a board, unless it is one too many for the token.
    ///
    /// # Arguments
    /// - `may_drop`: whether the client consents to what a change drops.
    /// - `grant`: the token, if there is a limit to its boards.
    ///
    /// # Errors
    /// When the board cannot become what is asked, would lose what readers see, or a shard does not take it.
    pub async fn define(
        self,
        name: BoardName,
        patch: DefinitionPatch,
        may_drop: bool,
        grant: Option<Arc<Grant>>,
    ) -> Result<DefinedBoard, Failure> {
        let operations = &*self.operations;
        let change = BoardChange::Define(patch);
        self.check_change(&name, &change).await?;
        if let Some(grant) = &grant {
            self.check_limit(grant, std::slice::from_ref(&name))?;
        }
        if !may_drop && let Some(known) = self.definition_of(&name).await? {
            let changed = change.applied_to(Some(&known), operations.now()).map_err(BoardRefused::from)?;
            operations.check_keeps_all(&name, (&known, &changed)).await?;
        }
        let board = self.change(&name, &change, grant.as_deref()).await?;
        // The lock keeps this node from beginning a drop: one that waits for its turn must not make this
        // answer "unknown board".
        let instance = InstanceAsked { choice: WindowChoice::Default, now: operations.now() };
        let asked = OfBoard { board: name, instance, read: TotalOnly };
        // The board is defined, whether or not all shards can tell how many entries it has.
        let options = ReadOptions { partial: true, ..ReadOptions::default() };
        let unread = |missing| (None, missing, board.token.clone());
        let (answer, missing, as_of) =
            match read(&operations.node, &operations.registry, &asked, &options).await {
                Ok(ReadReply { answer: Ok(answer), missing, .. }) => {
                    let Answer { as_of, definition, instance, total, .. } = answer;
                    (Some((definition, Some((instance, total)))), missing, as_of)
                }
                Err(ReadError::Unavailable(shards)) => {
                    unread(shards.into_iter().map(|shard| shard.shard).collect())
                }
                // No season has begun. Or another node has dropped the board since: the answer is of the
                // moment before.
                Ok(ReadReply { answer: Err(_), .. })
                | Err(
                    ReadError::KeptChanging(_) | ReadError::NotYetApplied(_) | ReadError::OtherHistory(_),
                ) => unread(Vec::new()),
            };
        let Decided { created, definition, token } = board;
        let (definition, total) = answer.unwrap_or_else(|| {
            let current = instance.of(&definition).ok();
            (definition, current.map(|current| (current, 0)))
        });
        // A board that is new has no entries anywhere.
        let missing = if created { Vec::new() } else { missing };
        Ok(DefinedBoard { board: Decided { created, definition, token }, total, as_of, missing })
    }

    /// Which of these boards do not exist yet. Jobs of other tokens create boards meanwhile, so the registry
    /// is asked once for the names and the count.
    ///
    /// # Errors
    /// When the token may not make so many.
    fn check_limit<'a>(&self, grant: &Grant, named: &'a [BoardName]) -> Result<Vec<&'a BoardName>, Failure> {
        let (lacking, existing) = self.operations.registry.missing(named, grant.board_prefixes.as_deref());
        match grant.max_boards.and_then(|most| usize::try_from(most).ok()) {
            Some(most) if !lacking.is_empty() && existing + lacking.len() > most => {
                Err(Failure::TooManyBoards { most, existing, more: lacking.len() })
            }
            _ => Ok(lacking),
        }
    }

    /// Decides what a board is, and brings that to every shard that lacks it.
    ///
    /// # Arguments
    /// `grant`: the client's token, if there is a limit to its boards. Without NATS the caller has counted
    /// them.
    ///
    /// # Errors
    /// When the board cannot become what is asked, or a shard does not take it.
    pub(super) async fn change(
        &self,
        name: &BoardName,
        change: &BoardChange,
        grant: Option<&Grant>,
    ) -> Result<Decided, Failure> {
        let operations = &*self.operations;
        operations.check_every_shard()?;
        let now = operations.node.now();
        if let Some(cluster) = &operations.cluster {
            let most = grant.and_then(|grant| grant.max_boards).and_then(|most| usize::try_from(most).ok());
            let prefixes = grant.and_then(|grant| grant.board_prefixes.clone());
            let limit = most.map(|most| BoardLimit { prefixes, most });
            return Ok(cluster.boards.change(name, change, now, limit.as_ref()).await?);
        }
        let (created, known) =
            match operations.registry.change(name, change, now).map_err(BoardRefused::from)? {
                Defined::Created(known) => (true, known),
                Defined::Changed(known) | Defined::Same(known) => (false, known),
            };
        let (mut lacking, mut token) = (Vec::new(), Vec::new());
        for shard in &operations.node.shards {
            let state = shard.state.read(Purpose::Boards);
            if lacks(&state, name, &known) {
                lacking.push(shard.id);
            } else {
                token.push((shard.id, state.applied.sequence));
            }
        }
        token.extend(operations.publish_to(&lacking, || define(name, &known)).await?.0);
        // Completes a clear that failed halfway.
        operations.registry.finish_next_incarnation(name, known.incarnation);
        token.sort_by_key(|(shard, _)| *shard);
        Ok(Decided { created, definition: known.definition, token: AsOf(token) })
    }

    /// Opens a season of a board, or moves or cancels a planned one.
    ///
    /// # Errors
    /// When there is no such board, or it has no seasons; when they cannot change so; when a shard does not
    /// take the change.
    pub async fn change_seasons(
        self,
        name: BoardName,
        change: SeasonChange,
    ) -> Result<ChangedSeasons, Failure> {
        let season = BoardChange::Season(change);
        self.check_change(&name, &season).await?;
        let before = self.definition_of(&name).await?;
        let Decided { definition, token, .. } = self.change(&name, &season, None).await?;
        let changed = before.is_none_or(|before| before.seasons != definition.seasons);
        Ok(ChangedSeasons { definition, token, changed })
    }

    /// A board's definition as it was last decided. `None`: there is no such board.
    ///
    /// # Errors
    /// When the boards' stream cannot be read.
    pub(super) async fn definition_of(&self, name: &BoardName) -> Result<Option<Arc<Definition>>, Failure> {
        match &self.operations.cluster {
            Some(cluster) => Ok(cluster.boards.definition(name).await?),
            None => Ok(self.operations.registry.get(name.as_str()).map(|known| known.definition)),
        }
    }

    /// Clears a board on every shard. If that fails halfway, readers find the board empty already, and the
    /// next definition, clear or start completes it.
    ///
    /// # Errors
    /// When there is no such board, or a shard does not take the clear.
    pub async fn clear(self, name: BoardName) -> Result<Removed, Failure> {
        let operations = &*self.operations;
        operations.check_every_shard()?;
        self.check_removable(&name).await?;
        let instance = InstanceAsked { choice: WindowChoice::Default, now: operations.now() };
        let asked = OfBoard { board: name.clone(), instance, read: CountAll };
        let entries = read(&operations.node, &operations.registry, &asked, &ReadOptions::default()).await?;
        let entries = match entries.answer {
            // No season has begun.
            Err(NoBoard::Window(_)) => 0,
            answer => operations.found(answer)?.body,
        };
        if let Some(cluster) = &operations.cluster {
            return Ok(Removed { entries, token: AsOf(cluster.boards.clear_board(&name).await?) });
        }
        let next =
            operations.registry.begin_next_incarnation(&name).ok_or(Failure::NoBoard(NoBoard::Unknown))?;
        let token = operations.publish_to(&self.own_shards(), || define(&name, &next)).await?;
        operations.registry.finish_next_incarnation(&name, next.incarnation);
        Ok(Removed { entries, token })
    }

    /// Drops a board on every shard. If that fails halfway, readers do not find the board any more, and the
    /// next drop completes it.
    ///
    /// # Errors
    /// When there is no such board, or a shard does not take the drop.
    pub async fn drop(self, name: BoardName) -> Result<AsOf, Failure> {
        self.check_removable(&name).await?;
        self.drop_life(name, None).await
    }

    /// The same, if the board is as it is expected to be, and whether it is read-only or not: what goes by
    /// time goes on.
    ///
    /// # Arguments
    /// `only`: what the board has to be; `None`: it does not matter.
    ///
    /// # Errors
    /// When there is no such board, or a shard does not take the drop.
    pub(super) async fn drop_life(
        &self,
        name: BoardName,
        only: Option<&RegisteredBoard>,
    ) -> Result<AsOf, Failure> {
        let operations = &*self.operations;
        operations.check_every_shard()?;
        if let Some(cluster) = &operations.cluster {
            return Ok(AsOf(cluster.boards.drop_board(&name, only).await?));
        }
        // Nobody else changes it meanwhile.
        if only.is_some_and(|only| operations.registry.get(name.as_str()).is_some_and(|known| known != *only))
        {
            return Err(Failure::NoBoard(NoBoard::Unknown));
        }
        let begun = operations.registry.begin_drop(name.as_str()).or_else(|| self.half_dropped(&name));
        let incarnation = begun.ok_or(Failure::NoBoard(NoBoard::Unknown))?;
        let payload = || Payload::Drop { board: name.clone(), incarnation, number: None };
        let token = operations.publish_to(&self.own_shards(), payload).await?;
        operations.registry.finish_drop(name.as_str(), incarnation);
        // The drop is over on every shard. Each batch that drops a board copies what its shard remembers of
        // drops: that must not grow with their number. `board_repair` forgets the drops that a crash leaves
        // behind.
        let complete = [(name, incarnation)];
        for shard in &operations.node.shards {
            shard.state.write(Purpose::Boards).forget_dropped(&complete);
        }
        Ok(token)
    }

    /// The life of a board that some shards have dropped and others have not, because of a crash or a failed
    /// disk.
    fn half_dropped(&self, name: &BoardName) -> Option<Incarnation> {
        let shards = self.operations.node.shards.iter().map(|shard| &shard.state);
        let dropped = |state: &StateLock| state.read(Purpose::Boards).dropped().get(name.as_str());
        let over = shards.clone().filter_map(|state| dropped(state)).max()?;
        shards.into_iter().any(|state| has_life(&state.read(Purpose::Boards), name, over)).then_some(over)
    }

    fn own_shards(&self) -> Vec<ShardId> {
        self.operations.node.shards.iter().map(|shard| shard.id).collect()
    }
}
