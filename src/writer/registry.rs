//! The node's registry of boards: one definition per board for all shards and clients.
//!
//! Shards create boards for jobs, each in its own write batch, and clients define boards too. Both ask the
//! registry first, under one lock, so a board cannot begin with two definitions. The decision reaches the
//! shards through their queues. At start, the registry is the union of the shards' boards, and `service`
//! completes on the other shards what a crash cut short.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::board::{Definition, ReadOnly};
use crate::state::{Definitions, Incarnation, RecordNumber, Shard};
use crate::types::{BoardName, Timestamp};
use crate::writer::board_change::{BoardChange, DefineRefused, MAX_BOARDS};
use crate::writer::registered::{RegisteredBoard, RegisteredBoards};

/// The answer to a job that names a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoardLookup {
    Exists(RegisteredBoard),
    /// It does not exist or is being dropped, and the job may create it, or its next incarnation.
    Creatable,
    /// It does not exist or is being dropped, and jobs create no boards.
    Unknown,
}

/// What a definition did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Defined {
    /// New. The shards do not have it yet.
    Created(RegisteredBoard),
    /// Its changeable settings were changed.
    Changed(RegisteredBoard),
    /// It exists unchanged. Some shards may lack it if a crash interrupted its creation.
    Same(RegisteredBoard),
}

/// In tests: something that another shard or a client does concurrently.
#[cfg(test)]
pub type Event = Box<dyn FnOnce(&Registry) + Send>;

pub struct Registry {
    state: Mutex<RegistryState>,
    auto_create: bool,
    /// Whether `next_incarnation` has any board. Usually it has none, and then jobs need not take the lock.
    has_next_incarnation: AtomicBool,
    /// How many boards are read-only, the service included.
    read_only: Arc<AtomicUsize>,
    /// What happens concurrently right after the planner's first look-up, the second, and so on.
    #[cfg(test)]
    pub after_lookup: Mutex<std::collections::VecDeque<Event>>,
}

#[derive(Default)]
struct RegistryState {
    boards: RegisteredBoards,
    definitions: Definitions,
    last_incarnation: u64,
    /// Boards whose latest incarnation may not have reached every shard.
    next_incarnation: BTreeSet<BoardName>,
}

impl Registry {
    /// # Arguments
    /// `auto_create`: whether a job for an unknown board creates it with the defaults.
    pub fn new(auto_create: bool) -> Self {
        let state = RegistryState::default();
        Self {
            read_only: state.boards.read_only(),
            state: Mutex::new(state),
            auto_create,
            has_next_incarnation: AtomicBool::new(false),
            #[cfg(test)]
            after_lookup: Mutex::default(),
        }
    }

    /// Registers the boards of a shard, at start.
    pub fn register_boards_of(&self, shard: &Shard) {
        let mut state = self.state.lock();
        state.last_incarnation = state.last_incarnation.max(shard.dropped().latest().0);
        for (name, board) in shard.boards() {
            state.last_incarnation = state.last_incarnation.max(board.incarnation.0);
            let incarnation = board.incarnation;
            let known = RegisteredBoard { incarnation, definition: Arc::clone(&board.definition) };
            let other = state.boards.get(name.as_str()).map(|other| other.known.incarnation);
            if other.is_some_and(|other| other != incarnation) {
                // A crash came before the new incarnation had reached every shard.
                state.next_incarnation.insert(name.clone());
            }
            if other.is_none_or(|other| other < incarnation) {
                state.boards.insert(name, known);
            }
        }
        self.note_next_incarnation(&state);
    }

    /// Begins the next incarnation of a board, with its present definition. `None`: there is no such board.
    pub fn begin_next_incarnation(&self, name: &BoardName) -> Option<RegisteredBoard> {
        let mut state = self.state.lock();
        state.boards.get(name.as_str()).filter(|registered| !registered.being_dropped)?;
        state.last_incarnation += 1;
        let incarnation = Incarnation(state.last_incarnation);
        let definition = Arc::clone(&state.boards.get(name.as_str())?.known.definition);
        let known = RegisteredBoard { incarnation, definition };
        state.boards.insert(name, known.clone());
        state.next_incarnation.insert(name.clone());
        self.note_next_incarnation(&state);
        Some(known)
    }

    /// Notes that this incarnation of a board has reached every shard.
    pub fn finish_next_incarnation(&self, name: &BoardName, incarnation: Incarnation) {
        let mut state = self.state.lock();
        if state
            .boards
            .get(name.as_str())
            .is_none_or(|registered| registered.known.incarnation == incarnation)
        {
            state.next_incarnation.remove(name);
            self.note_next_incarnation(&state);
        }
    }

    /// Whether any board's latest incarnation may not have reached every shard.
    pub fn has_next_incarnation(&self) -> bool {
        // A client sees a new incarnation under the lock, before it writes, so this load is late enough.
        self.has_next_incarnation.load(Ordering::Acquire)
    }

    /// The incarnation after the one that a shard holds, if there is one.
    pub fn next_incarnation(&self, name: &str, held: Incarnation) -> Option<RegisteredBoard> {
        let state = self.state.lock();
        let registered = state.boards.get(name).filter(|_| state.next_incarnation.contains(name))?;
        let is_newer = registered.known.incarnation > held && !registered.being_dropped;
        is_newer.then(|| registered.known.clone())
    }

    fn note_next_incarnation(&self, state: &RegistryState) {
        self.has_next_incarnation.store(!state.next_incarnation.is_empty(), Ordering::Release);
    }

    /// Forgets a board that was dropped by another node, or whose drop was interrupted by a crash.
    pub fn forget(&self, name: &BoardName, dropped: Incarnation) {
        let mut state = self.state.lock();
        if state.boards.get(name.as_str()).is_some_and(|registered| registered.known.incarnation <= dropped) {
            state.boards.remove(name.as_str());
            state.next_incarnation.remove(name);
            self.note_next_incarnation(&state);
        }
    }

    /// Applies a definition that was decided in the boards' stream.
    pub fn apply_remote(&self, name: &BoardName, known: &RegisteredBoard) {
        let mut state = self.state.lock();
        state.last_incarnation = state.last_incarnation.max(known.incarnation.0);
        let newer =
            state.boards.get(name.as_str()).is_none_or(|other| other.known.incarnation <= known.incarnation);
        if newer {
            let known = RegisteredBoard { definition: state.definitions.share(&known.definition), ..*known };
            state.boards.insert(name, known);
        }
    }

    /// Notes a record's number: the next incarnation gets a greater one.
    pub fn observe_number(&self, number: RecordNumber) {
        let mut state = self.state.lock();
        state.last_incarnation = state.last_incarnation.max(number.0);
    }

    /// Whether the board's drop has begun and not finished.
    pub fn is_being_dropped(&self, name: &str) -> bool {
        self.state.lock().boards.get(name).is_some_and(|registered| registered.being_dropped)
    }

    /// The highest known number of an incarnation or a record.
    pub fn last_incarnation(&self) -> Incarnation {
        Incarnation(self.state.lock().last_incarnation)
    }

    /// Decides what a board is. A board whose drop has not finished begins its next incarnation.
    ///
    /// # Arguments
    /// `now`: regular seasons that have begun by then stay as they are.
    ///
    /// # Errors
    /// When the board cannot become what is asked, or the node is at its board limit.
    pub fn change(
        &self,
        name: &BoardName,
        change: &BoardChange,
        now: Timestamp,
    ) -> Result<Defined, DefineRefused> {
        let mut state = self.state.lock();
        if let Some(known) = state.live(name) {
            let definition = change.applied_to(Some(&known.definition), now)?;
            if *known.definition == definition {
                return Ok(Defined::Same(known.clone()));
            }
            let changed = RegisteredBoard { definition: Arc::new(definition), ..*known };
            state.boards.insert(name, changed.clone());
            return Ok(Defined::Changed(changed));
        }
        let created = state.create(name, change.applied_to(None, now)?).map(Defined::Created);
        self.note_next_incarnation(&state);
        created
    }

    /// Decides a definition at a time before all seasons.
    #[cfg(test)]
    pub fn define(&self, name: &BoardName, definition: Definition) -> Result<Defined, DefineRefused> {
        let mut state = self.state.lock();
        if state.live(name).is_none() {
            let created = state.create(name, definition).map(Defined::Created);
            self.note_next_incarnation(&state);
            return created;
        }
        drop(state);
        self.change(name, &BoardChange::Define(definition.into()), Timestamp::default())
    }

    /// Why this board, or the service ([`BoardName::service`]), is read-only. Costs a load if nothing is.
    pub fn read_only(&self, name: &BoardName) -> Option<Arc<ReadOnly>> {
        if self.read_only.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.state.lock().boards.get(name.as_str())?.known.definition.read_only.clone()
    }

    /// Whether a job for an unknown board creates it.
    pub fn creates_boards(&self) -> bool {
        self.auto_create
    }

    /// Whether a job may create this board by naming it, or its next incarnation while it is being dropped.
    /// The answer may be outdated when the job is planned, so the planner calls [`Registry::lookup`] instead.
    pub fn may_create(&self, name: &str) -> bool {
        self.auto_create && self.get(name).is_none()
    }

    /// Looks up the board that a job names. Whether it exists and whether it may be created is answered under
    /// one lock, as another shard may create it in between.
    pub fn lookup(&self, name: &str) -> BoardLookup {
        let lookup = match self.state.lock().boards.get(name) {
            Some(registered) if !registered.being_dropped => BoardLookup::Exists(registered.known.clone()),
            _ if self.auto_create => BoardLookup::Creatable,
            _ => BoardLookup::Unknown,
        };
        self.run_test_hook();
        lookup
    }

    /// Creates those of the boards that do not exist, with the default definition, and returns all of them. A
    /// board whose drop has not finished begins its next incarnation. `None`: one of them exists with another
    /// definition, and nothing was created.
    ///
    /// # Errors
    /// When there would be too many boards. Nothing was created then.
    pub fn create_defaults(
        &self,
        names: &[&BoardName],
    ) -> Result<Option<Vec<RegisteredBoard>>, DefineRefused> {
        let created = {
            let mut state = self.state.lock();
            let created = state.create_defaults(names);
            self.note_next_incarnation(&state);
            created
        };
        self.run_test_hook();
        created
    }

    /// Creates a board with the default definition unless it exists, and returns it.
    ///
    /// # Errors
    /// When there are too many boards.
    pub fn create_default(&self, name: &BoardName) -> Result<RegisteredBoard, DefineRefused> {
        let mut state = self.state.lock();
        let known = match state.live(name) {
            Some(known) => known.clone(),
            None => state.create(name, Definition::default())?,
        };
        self.note_next_incarnation(&state);
        Ok(known)
    }

    #[cfg(test)]
    fn run_test_hook(&self) {
        let next = self.after_lookup.lock().pop_front();
        if let Some(happens) = next {
            happens(self);
        }
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "tests have something happen here")]
    fn run_test_hook(&self) {}

    pub fn get(&self, name: &str) -> Option<RegisteredBoard> {
        let state = self.state.lock();
        let registered = state.boards.get(name)?;
        (!registered.being_dropped).then(|| registered.known.clone())
    }

    /// Every board, by name, and the service if anything was decided of it.
    pub fn all(&self) -> Vec<(BoardName, RegisteredBoard)> {
        let state = self.state.lock();
        let live = state.boards.from(Bound::Unbounded).filter(|(_, registered)| !registered.being_dropped);
        live.map(|(name, registered)| (name.clone(), registered.known.clone())).collect()
    }

    /// The first boards after a name, or from the beginning, that satisfy `kept`; at most `limit`.
    pub fn page_after(
        &self,
        name: Option<&BoardName>,
        limit: usize,
        kept: impl Fn(&BoardName) -> bool,
    ) -> Vec<(BoardName, RegisteredBoard)> {
        let from = name.map_or(Bound::Unbounded, |name| Bound::Excluded(name.as_str()));
        self.page(from, limit, kept)
    }

    /// The same, with the service among them if anything was decided of it.
    pub fn decided_after(&self, name: Option<&BoardName>, limit: usize) -> Vec<(BoardName, RegisteredBoard)> {
        let from = name.map_or(Bound::Unbounded, |name| Bound::Excluded(name.as_str()));
        self.state.lock().page(from, limit, |_| true)
    }

    /// The first boards from a bound of names on that satisfy `kept`; at most `limit`.
    pub fn page(
        &self,
        from: Bound<&str>,
        limit: usize,
        kept: impl Fn(&BoardName) -> bool,
    ) -> Vec<(BoardName, RegisteredBoard)> {
        self.state.lock().page(from, limit, |name| !name.is_service() && kept(name))
    }

    /// The boards that were made, or cleared, first after an incarnation, in that order: at least `limit` of
    /// them, if there are so many, and all of the last one's incarnation.
    pub fn made_after(&self, incarnation: Incarnation, limit: usize) -> Vec<(Incarnation, BoardName)> {
        self.state.lock().boards.made_after(incarnation, limit)
    }

    /// How many boards have a name with one of these prefixes; for `None`, how many boards there are.
    pub fn count_named(&self, prefixes: Option<&[String]>) -> usize {
        self.state.lock().boards.count_named(prefixes)
    }

    /// Which of these boards do not exist, and the result of [`Registry::count_named`], both under one lock.
    pub fn missing<'a>(
        &self,
        names: &'a [BoardName],
        prefixes: Option<&[String]>,
    ) -> (Vec<&'a BoardName>, usize) {
        let state = self.state.lock();
        let missing = names.iter().filter(|name| state.boards.get(name.as_str()).is_none());
        (missing.collect(), state.boards.count_named(prefixes))
    }

    /// Begins a drop: from now on the board is unknown to readers, and to jobs on shards that have dropped
    /// it. `None`: there is no such board.
    pub fn begin_drop(&self, name: &str) -> Option<Incarnation> {
        self.state.lock().boards.begin_drop(name)
    }

    /// Finishes a drop that every shard has applied: the name is free again, unless the next incarnation has
    /// begun meanwhile.
    pub fn finish_drop(&self, name: &str, incarnation: Incarnation) {
        let mut state = self.state.lock();
        if state.boards.get(name).is_some_and(|registered| registered.known.incarnation == incarnation) {
            state.boards.remove(name);
        }
        // No shard holds an earlier incarnation any more.
        state.next_incarnation.remove(name);
        self.note_next_incarnation(&state);
    }
}

impl RegistryState {
    /// The first of these that satisfy `kept`, without those that are being dropped.
    fn page(
        &self,
        from: Bound<&str>,
        limit: usize,
        kept: impl Fn(&BoardName) -> bool,
    ) -> Vec<(BoardName, RegisteredBoard)> {
        let live = self.boards.from(from);
        let live = live.filter(|(name, registered)| !registered.being_dropped && kept(name));
        live.take(limit).map(|(name, registered)| (name.clone(), registered.known.clone())).collect()
    }

    /// A registered board that is not being dropped.
    fn live(&self, name: &BoardName) -> Option<&RegisteredBoard> {
        let registered = self.boards.get(name.as_str()).filter(|registered| !registered.being_dropped)?;
        Some(&registered.known)
    }

    fn create_defaults(
        &mut self,
        names: &[&BoardName],
    ) -> Result<Option<Vec<RegisteredBoard>>, DefineRefused> {
        let default = Definition::default();
        let mut missing = 0;
        for name in names {
            match self.live(name) {
                Some(known) if *known.definition != default => return Ok(None),
                Some(_) => {}
                // The next incarnation replaces the one that is being dropped, so the count stays.
                None => missing += usize::from(self.boards.get(name.as_str()).is_none()),
            }
        }
        if self.boards.len() + missing > MAX_BOARDS {
            return Err(DefineRefused::TooMany);
        }
        let mut known = Vec::with_capacity(names.len());
        for name in names {
            known.push(match self.live(name) {
                Some(known) => known.clone(),
                None => self.create(name, default.clone())?,
            });
        }
        Ok(Some(known))
    }

    /// Creates a board that does not exist, or the next incarnation of one that is being dropped.
    fn create(&mut self, name: &BoardName, definition: Definition) -> Result<RegisteredBoard, DefineRefused> {
        if self.boards.get(name.as_str()).is_some() {
            // Some shards have not dropped the previous incarnation yet. Until they have, jobs must not apply
            // to it.
            self.next_incarnation.insert(name.clone());
        } else if self.boards.len() >= MAX_BOARDS && !name.is_service() {
            return Err(DefineRefused::TooMany);
        }
        self.last_incarnation += 1;
        let definition = self.definitions.share(&Arc::new(definition));
        let known = RegisteredBoard { incarnation: Incarnation(self.last_incarnation), definition };
        self.boards.insert(name, known.clone());
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_may_create_a_board_that_is_being_dropped() {
        let name = BoardName::new("arena").expect("a good name");
        for auto_create in [true, false] {
            let registry = Registry::new(auto_create);
            assert_eq!(registry.may_create("arena"), auto_create);
            registry.create_default(&name).expect("there is room");
            assert!(!registry.may_create("arena"), "it is there");
            registry.begin_drop("arena").expect("it is there");
            assert_eq!(registry.may_create("arena"), auto_create);
        }
    }
}
