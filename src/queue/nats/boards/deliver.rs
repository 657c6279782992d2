//! From decisions to shards: whatever a shard lacks is published into its own stream.
//!
//! Knows: what is on its way, so that it is not brought twice without need, and that jobs want boards.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::queue::error::NotPublished;
use crate::queue::nats::boards::pending::OnItsWay;
use crate::queue::nats::boards::record::Recorded;
use crate::queue::nats::boards::{BoardRefused, Boards, BoardsOfShard};
use crate::state_lock::Purpose;
use crate::types::{BoardName, Sequence, ShardId};

/// How often what is on its way is compared with the shards.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long a definition or drop may take to arrive everywhere.
const ARRIVE_WITHIN: Duration = Duration::from_secs(30);
/// How long a write waits for the drop of a board that it names.
const DROP_WITHIN: Duration = Duration::from_secs(10);
/// Boards on their way that are looked at under one hold of the lock.
const LOOKED_AT_ONCE: usize = 128;
/// Boards that jobs want and that are decided and brought together.
const WANTED_AT_ONCE: usize = 1_000;

/// Of which shard and board, and whether it was brought to the shard a moment ago.
type DropsDue = BTreeMap<(ShardId, BoardName), (Recorded, bool)>;

impl Boards {
    /// Brings one decision to every shard where it is not in force.
    pub(super) async fn bring_at_once(
        &self,
        name: &BoardName,
        recorded: &Recorded,
    ) -> Result<BTreeMap<ShardId, Sequence>, NotPublished> {
        let one = [(name.clone(), recorded.clone())];
        self.bring(&one, |_, _| true).await
    }

    /// Publishes decisions to the shards where they are not in force, all on their way at once.
    async fn bring(
        &self,
        decisions: &[(BoardName, Recorded)],
        is_due: impl Fn(&BoardName, &BoardsOfShard) -> bool,
    ) -> Result<BTreeMap<ShardId, Sequence>, NotPublished> {
        let mut sent = Vec::new();
        for shard in &self.shards {
            for (name, recorded) in decisions {
                let arrived = recorded.is_in_force(&shard.state.read(Purpose::Boards), name);
                if arrived || !is_due(name, shard) {
                    continue;
                }
                let sending = shard.publisher.send_command(&recorded.payload(name)).await?;
                self.pending.lock().note_brought(name, shard.id);
                sent.push((shard.id, sending));
            }
        }
        let mut brought = BTreeMap::new();
        for (shard, sending) in sent {
            brought.insert(shard, sending.stored().await?);
        }
        Ok(brought)
    }

    /// Waits until a decision is in force on every shard; for each a sequence as of which it is.
    pub(super) async fn arrival(
        &self,
        name: &BoardName,
        recorded: &Recorded,
        brought: &BTreeMap<ShardId, Sequence>,
    ) -> Result<Vec<(ShardId, Sequence)>, BoardRefused> {
        let deadline = tokio::time::Instant::now() + ARRIVE_WITHIN;
        let mut token = Vec::with_capacity(self.shards.len());
        for shard in &self.shards {
            let sequence = arrival_at(shard, name, recorded, deadline).await?;
            token.push((shard.id, brought.get(&shard.id).copied().unwrap_or(sequence)));
        }
        Ok(token)
    }

    /// The drop of a board that was decided, and that a shard has yet to apply.
    pub(super) fn drop_on_its_way(&self, name: &BoardName) -> Option<Recorded> {
        let pending = self.pending.lock();
        let on_its_way = pending.get(name).filter(|known| !known.recorded.is_alive())?;
        let lacks = |shard: &BoardsOfShard| !has_arrived(name, on_its_way, shard);
        self.shards.iter().any(lacks).then(|| on_its_way.recorded.clone())
    }

    /// Drops that this node knows of and shards have yet to apply, of boards of these names, and beginnings of lives that end
    /// another one there. A job in front of its board's drop would be answered, and gone with the board; and this node says
    /// already that there is no such board, or that it is empty. So [`Boards::let_drops_arrive`] comes before the jobs.
    pub fn drops_before<'a>(&self, named: impl IntoIterator<Item = (ShardId, &'a BoardName)>) -> DropsDue {
        let mut due = DropsDue::new();
        let pending = self.pending.lock();
        if pending.is_empty() {
            return due;
        }
        for (id, name) in named {
            let shard = self.shards.iter().find(|shard| shard.id == id);
            if let Some((on_its_way, shard)) = pending.get(name).zip(shard)
                && ends_a_life_on(name, on_its_way, shard)
                && !has_arrived(name, on_its_way, shard)
            {
                let is_on_its_way = pending.was_brought_lately(name, id);
                due.insert((id, name.clone()), (on_its_way.recorded.clone(), is_on_its_way));
            }
        }
        due
    }

    /// Waits until shards have applied these drops.
    ///
    /// # Errors
    /// When a drop cannot be brought, or does not arrive in time.
    pub async fn let_drops_arrive(&self, due: DropsDue) -> Result<(), BoardRefused> {
        let deadline = tokio::time::Instant::now() + DROP_WITHIN;
        for ((id, name), (recorded, is_on_its_way)) in due {
            let Some(shard) = self.shards.iter().find(|shard| shard.id == id) else { continue };
            if !is_on_its_way {
                let sending = shard.publisher.send_command(&recorded.payload(&name)).await?;
                self.pending.lock().note_brought(&name, id);
                sending.stored().await?;
            }
            // A shard that lags may be far from applying it. It holds no other life that the job could be applied to before: that
            // the new one is in the stream in front of the job is enough.
            let is_far = !shard.health.is_live() && recorded.is_alive();
            if is_far && shard.state.read(Purpose::Boards).board(name.as_str()).is_none() {
                continue;
            }
            arrival_at(shard, &name, &recorded, deadline).await?;
        }
        Ok(())
    }

    /// Brings to the shards what they lack, for as long as the service runs: what others decided, what jobs want, and
    /// what a crash cut short.
    pub async fn tend(&self) {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let is_tick = tokio::select! {
                _ = ticks.tick() => true,
                () = self.wanted.changed.notified() => false,
            };
            // What is wanted before the stream was compared stays wanted.
            if !*self.compared.borrow() {
                let mut compared = self.compared.subscribe();
                // It goes away with `self`, which is here.
                let _ = compared.wait_for(|compared| *compared).await;
            }
            if is_tick {
                self.bring_pending().await;
            }
            self.create_wanted().await;
        }
    }

    async fn create_wanted(&self) {
        let mut wanted = self.wanted.take().into_iter().peekable();
        while wanted.peek().is_some() {
            let names = wanted.by_ref().take(WANTED_AT_ONCE).collect();
            let mut decided = Vec::new();
            for (name, outcome) in self.decide_defaults(names).await {
                match outcome {
                    Ok(recorded) => decided.push((name, recorded)),
                    Err(error) => {
                        tracing::warn!(board = %name, %error, "a board that jobs wait for cannot be created yet");
                    }
                }
            }
            let due = |name: &BoardName, shard: &BoardsOfShard| {
                !self.pending.lock().was_brought_lately(name, shard.id)
            };
            if let Err(error) = self.bring(&decided, due).await {
                tracing::warn!(%error, "boards could not be brought to their shards; trying on");
            }
        }
    }

    /// Looks at some of what is on its way, by name from behind a board on; forgets what has arrived everywhere, and adds
    /// to `found` what is due if shards can be asked for it. Up to which board it looked; `None` at the end.
    ///
    /// Writes ask whether a board of theirs is being dropped: they wait for a slice, and not for all that is on its way.
    fn look_at_pending(
        &self,
        after: Option<&BoardName>,
        all_live: bool,
        found: &mut Unarrived,
    ) -> Option<BoardName> {
        let heard = self.heard_through.load(Ordering::Relaxed);
        let mut pending = self.pending.lock();
        let names = pending.names_behind(after, LOOKED_AT_ONCE);
        for name in &names {
            let Some(on_its_way) = pending.get(name) else { continue };
            // Until the stream has said it too, what it said before may still come.
            let is_heard = on_its_way.recorded.sequence <= heard;
            if is_heard && self.shards.iter().all(|shard| has_arrived(name, on_its_way, shard)) {
                pending.remove(name);
                continue;
            }
            if !all_live {
                continue;
            }
            let due = |shard: &&BoardsOfShard| {
                !has_arrived(name, on_its_way, shard) && !pending.was_brought_lately(name, shard.id)
            };
            let known = (name.clone(), on_its_way.recorded.clone());
            if self.is_too_late(name, &on_its_way.recorded) {
                found.doubtful.push(known);
            } else if self.shards.iter().filter(due).any(|shard| pending.was_brought(name, shard.id)) {
                // It was lost on its way, or was ignored, or is over: the stream says what is so.
                found.doubtful.push(known);
            } else if self.shards.iter().any(|shard| due(&shard)) {
                found.lacking.push(known);
            }
        }
        names.last().cloned()
    }

    /// Brings what is still lacking, and forgets what has arrived everywhere.
    async fn bring_pending(&self) {
        // A shard that is behind its stream may find there what it lacks.
        let all_live = self.shards.iter().all(|shard| shard.health.is_live());
        let (mut found, mut after) = (Unarrived::default(), None);
        while let Some(last) = self.look_at_pending(after.as_ref(), all_live, &mut found) {
            after = Some(last);
            // The thread is not only for this.
            tokio::task::yield_now().await;
        }
        let Unarrived { mut lacking, doubtful } = found;
        lacking.extend(self.renew_all(doubtful).await);
        let due = |name: &BoardName, shard: &BoardsOfShard| {
            let pending = self.pending.lock();
            let on_its_way = pending.get(name);
            on_its_way.is_some_and(|on_its_way| !has_arrived(name, on_its_way, shard))
                && !pending.was_brought_lately(name, shard.id)
        };
        if let Err(error) = self.bring(&lacking, due).await {
            tracing::warn!(%error, "boards could not be brought to their shards; trying on");
        }
    }
}

/// What is on its way and has not arrived.
#[derive(Default)]
struct Unarrived {
    lacking: Vec<(BoardName, Recorded)>,
    /// The stream is to be asked first.
    doubtful: Vec<(BoardName, Recorded)>,
}

/// Waits until a decision is in force on a shard; a sequence as of which it is.
async fn arrival_at(
    shard: &BoardsOfShard,
    name: &BoardName,
    recorded: &Recorded,
    deadline: tokio::time::Instant,
) -> Result<Sequence, BoardRefused> {
    let mut applied = shard.applied.clone();
    loop {
        applied.borrow_and_update();
        let arrived = {
            let state = shard.state.read(Purpose::Boards);
            recorded.is_in_force(&state, name).then_some(state.applied.sequence)
        };
        if let Some(as_of) = arrived {
            return Ok(as_of);
        }
        match tokio::time::timeout_at(deadline, applied.changed()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return Err(BoardRefused::Late),
        }
    }
}

/// Whether a decision drops the board, or ends the life of it that a shard holds or, if it lags behind its stream, may come to hold.
fn ends_a_life_on(name: &BoardName, on_its_way: &OnItsWay, shard: &BoardsOfShard) -> bool {
    let OnItsWay { recorded, .. } = on_its_way;
    let holds_another = || {
        let state = shard.state.read(Purpose::Boards);
        match state.board(name.as_str()) {
            Some(board) => board.incarnation < recorded.decision.incarnation,
            None => !shard.health.is_live(),
        }
    };
    !recorded.is_alive() || holds_another()
}

fn has_arrived(name: &BoardName, on_its_way: &OnItsWay, shard: &BoardsOfShard) -> bool {
    let OnItsWay { recorded, everywhere, .. } = on_its_way;
    let state = shard.state.read(Purpose::Boards);
    recorded.is_in_force(&state, name)
        || if recorded.is_alive() {
            state.is_over(name.as_str(), recorded.decision.incarnation)
        } else {
            !everywhere && shard.health.is_live() && !recorded.decision.ends_board_of(&state, name)
        }
}
