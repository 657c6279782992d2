//! A shard in memory: its members, its boards and their trees, as of one applied sequence.
//!
//! Knows: how a committed step changes it. Must not know: how the step was planned, or where it is stored.
//! Only its writer changes members, boards and entries, under a lock that `writer::apply` holds for one step
//! at a time. So readers see whole steps only. Checkpoints, and the tasks that forget completed drops, take
//! the write lock as well, but change nothing that an answer shows.
//!
//! - `due`: what time brings: instances that are dropped, and entries that expire
//! - `checkpointed`: what checkpoints take of it
//! - `slices`: what becomes of the instances of a board that changes or ends, a slice at a time
//! - `retired`: dropped boards, whose members are released bit by bit

mod checkpointed;
mod due;
mod retired;
mod slices;

pub use due::EarlyInstances;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::board::ReadOnly;
use crate::state::bans::Bans;
use crate::state::boards::{Board, BoardMap};
use crate::state::dropped::{Dropped, Incarnation};
use crate::state::entry::{Entry, TreeId};
use crate::state::expiry::{Expiring, Expiry};
use crate::state::joining::Joining;
use crate::state::member_versions::MemberVersions;
use crate::state::members::Members;
use crate::state::retired::Retired;
use crate::state::shard_time::ShardTime;
use crate::state::step::{Applied, BoardEvent, Step, StepPart};
use crate::state::unfinished::Unfinished;
use crate::state::window_tree::{Change, ShardRanking, WindowTree};
use crate::tree::{Handle, PreImagePieces};
use crate::types::{BoardName, INSTANCE_MARK, Sequence, ShardId, Timestamp};
use crate::window::Instance;

pub struct Shard {
    pub id: ShardId,
    pub applied: Applied,
    /// The effective time of the last message: the latest time that is believed.
    pub time: Timestamp,
    /// The time of a leap that is not believed yet; see [`ShardTime::leap`].
    leap: Option<Timestamp>,
    pub members: Members,
    /// What changes are marked with at least; see [`Shard::begin_changes`].
    change_mark: Sequence,
    /// What the shard was restored at. Which of its trees changed last before is not known.
    restored: Sequence,
    boards: BoardMap,
    /// When instances are dropped. A drop does not happen by itself: the next message brings it.
    drops_due: BTreeSet<(Timestamp, BoardName)>,
    /// When entries expire.
    expiry: Expiry,
    /// Boards that are ahead of `applied`; see [`Shard::is_ahead`].
    ahead: BTreeSet<BoardName>,
    /// Boxed for the sake of the map's nodes: see [`BoardMap`].
    trees: BTreeMap<TreeId, Box<WindowTree>>,
    /// Dropped boards, so that a drop that a crash interrupted can be completed, and a late definition is
    /// recognised.
    dropped: Arc<Dropped>,
    /// Not part of checkpoints: each is a record of the log, and read at a start.
    bans: Bans,
    versions: MemberVersions,
    next_tree: u32,
    /// Memory held by trees, updated with every change.
    tree_bytes: usize,
    /// `Some` while boards have yet to join the checkpoint that has begun.
    joining: Option<Joining>,
    /// Trees of dropped boards, whose members are still to be released. A map and boxed, because a rollover
    /// drops tens of thousands at once: a queue of them would copy megabytes when it grows.
    retired: BTreeMap<TreeId, Box<Retired>>,
    /// Those whose members were all released, and whose memory is to be freed.
    released: Vec<Retired>,
    /// When entries expired of trees that are gone, or that expire otherwise now: memory to be freed.
    expired: Vec<BTreeSet<Expiring>>,
    /// Instances that are still to be changed, after their boards were.
    unfinished: VecDeque<Unfinished>,
    /// Trees dropped since the last checkpoint began, which may still be on disk.
    dropped_trees: Vec<TreeId>,
    /// Trees from this number on came after the last checkpoint began: none of them is on disk.
    first_tree_not_on_disk: u32,
}

impl Shard {
    pub fn new(id: ShardId) -> Self {
        Self {
            id,
            applied: Applied::default(),
            time: Timestamp::default(),
            leap: None,
            members: Members::new(),
            change_mark: Sequence(0),
            restored: Sequence(0),
            boards: BoardMap::default(),
            drops_due: BTreeSet::new(),
            expiry: Expiry::default(),
            ahead: BTreeSet::new(),
            trees: BTreeMap::new(),
            dropped: Arc::default(),
            bans: Bans::default(),
            versions: MemberVersions::default(),
            next_tree: 0,
            tree_bytes: 0,
            joining: None,
            retired: BTreeMap::new(),
            released: Vec::new(),
            expired: Vec::new(),
            unfinished: VecDeque::new(),
            dropped_trees: Vec::new(),
            first_tree_not_on_disk: 0,
        }
    }

    /// A shard as a checkpoint left it.
    pub fn restore(
        id: ShardId,
        applied: Applied,
        members: Members,
        boards: BTreeMap<BoardName, Board>,
        trees: BTreeMap<TreeId, WindowTree>,
        dropped: Dropped,
        next_tree: u32,
    ) -> Self {
        let mut shard = Self {
            applied,
            members,
            change_mark: applied.sequence,
            restored: applied.sequence,
            boards: BoardMap::of(boards),
            trees: trees.into_iter().map(|(id, tree)| (id, Box::new(tree))).collect(),
            dropped: Arc::new(dropped),
            next_tree,
            first_tree_not_on_disk: next_tree,
            ..Self::new(id)
        };
        shard.count_tree_bytes();
        let instances = shard.boards.iter().filter(|(name, _)| name.is_instance());
        shard.drops_due = instances.filter_map(|(name, _)| shard.drop_due(name)).collect();
        shard
    }

    pub fn board(&self, name: &str) -> Option<&Board> {
        let known = self.boards.get(name)?;
        // Mostly nothing is unfinished.
        if self.has_unfinished() && self.waits_to_be_dropped(name, known) { None } else { Some(known) }
    }

    /// Boards, without the instances of their windows.
    pub fn boards(&self) -> impl Iterator<Item = (&BoardName, &Board)> {
        self.boards_after(None)
    }

    pub fn boards_and_instances(&self) -> impl Iterator<Item = (&BoardName, &Board)> {
        self.boards.iter()
    }

    /// The instances of a board that jobs have entered, apart from `all`, by name.
    pub fn instances_of(&self, board: &BoardName) -> impl Iterator<Item = (&BoardName, &Board)> {
        self.boards.instances_of(board)
    }

    pub fn board_count(&self) -> usize {
        self.boards.board_count()
    }

    /// Why the service is read-only.
    pub fn read_only(&self) -> Option<&Arc<ReadOnly>> {
        self.boards.get(BoardName::service().as_str())?.definition.read_only.as_ref()
    }

    /// How many boards are read-only, the service included.
    pub fn read_only_count(&self) -> usize {
        self.boards.read_only_count()
    }

    /// How many instances there are, apart from `all`.
    pub fn instance_count(&self) -> usize {
        self.boards.instance_count()
    }

    /// Boards whose names come after this one, or all, without the instances of their windows.
    pub fn boards_after(&self, name: Option<&BoardName>) -> impl Iterator<Item = (&BoardName, &Board)> {
        self.boards.boards_after(name)
    }

    /// Who is hidden.
    pub fn bans(&self) -> &Bans {
        &self.bans
    }

    /// The versions that hold for members on every board.
    pub fn member_versions(&self) -> &MemberVersions {
        &self.versions
    }

    /// Takes over what the disk has of both.
    pub fn set_member_records(&mut self, bans: Bans, versions: MemberVersions) {
        (self.bans, self.versions) = (bans, versions);
    }

    pub fn dropped(&self) -> &Dropped {
        &self.dropped
    }

    /// The remembered drops as of now. Copy on write: a later drop copies them if this is still held.
    pub fn dropped_as_of_now(&self) -> Arc<Dropped> {
        Arc::clone(&self.dropped)
    }

    /// Whether this incarnation of a board was dropped here, or replaced by a later one.
    ///
    /// # Arguments
    /// `name`: of the board. Its instances end with it.
    pub fn has_ended(&self, name: &str, life: Incarnation) -> bool {
        let name = name.split(INSTANCE_MARK).next().unwrap_or(name);
        match self.boards.get(name) {
            Some(board) => board.incarnation > life,
            None => self.dropped.has_ended(name, life),
        }
    }

    /// Forgets drops that are complete on every shard.
    pub fn forget_dropped<'a>(&mut self, lives: impl IntoIterator<Item = &'a (BoardName, Incarnation)>) {
        for (name, life) in lives {
            if self.dropped.get(name.as_str()) == Some(*life) {
                Arc::make_mut(&mut self.dropped).forget(name);
            }
        }
    }

    /// From now on boards are decided in a stream: see [`Dropped::number_all`].
    pub fn number_drops(&mut self) {
        Arc::make_mut(&mut self.dropped).number_all();
    }

    pub fn next_tree(&self) -> TreeId {
        TreeId(self.next_tree)
    }

    pub fn tree(&self, id: TreeId) -> Option<&WindowTree> {
        self.trees.get(&id).map(|tree| &**tree)
    }

    /// Runs `act` on a tree. It must not change entries.
    pub fn with_tree<T>(&mut self, id: TreeId, act: impl FnOnce(&mut WindowTree) -> T) -> Option<T> {
        let tree = self.trees.get_mut(&id)?;
        let before = tree.bytes();
        let done = act(tree);
        self.tree_bytes = self.tree_bytes + tree.bytes() - before;
        Some(done)
    }

    pub fn trees(&self) -> impl Iterator<Item = (TreeId, &WindowTree)> {
        self.trees.iter().map(|(id, tree)| (*id, &**tree))
    }

    /// The tree of a board's `all` window.
    pub fn board_tree(&self, name: &str) -> Option<&WindowTree> {
        self.tree(self.boards.get(name)?.all)
    }

    pub fn entry(&self, tree: TreeId, handle: Handle) -> Option<Entry> {
        self.trees.get(&tree)?.entry(handle)
    }

    /// Applies a committed step. Absolute: applying it twice in a row changes nothing more.
    pub fn apply(&mut self, step: &Step) {
        self.apply_part(step, step.whole());
        while self.has_unfinished() {
            self.finish_some();
        }
        self.end_step(step);
    }

    /// Applies a part of a step. [`Shard::end_step`] follows the last part, under the same hold of the lock.
    /// What is unfinished then is gone on with before anything else is done.
    pub fn apply_part(&mut self, step: &Step, part: StepPart) {
        for event in step.events_of(part) {
            self.apply_event(event);
        }
        let added: SmallVec<[Handle; 1]> =
            step.added_by(part).iter().map(|id| self.members.add(id)).collect();
        let mark = self.change_mark.max(step.applied.sequence);
        // A tree applies all changes that follow one another at once; see [`Step::group_by_tree`].
        for changes in step.changes_of(part).chunk_by(|a, b| a.tree == b.tree) {
            if let Some(first) = changes.first() {
                self.apply_to_tree(first.tree, changes, mark);
            }
        }
        for handle in added {
            // A member that arrived and left within the step is on no board.
            self.members.forget_unless_known(handle);
        }
    }

    /// Applies a part of a step as [`Shard::apply_part`] does, and finds how an entry ranked before and how
    /// it ranks after. `None`, and nothing is applied: the part changes something else, too.
    pub fn apply_ranked(
        &mut self,
        step: &Step,
        part: StepPart,
        (tree, handle): (TreeId, Handle),
    ) -> Option<(Option<ShardRanking>, Option<ShardRanking>)> {
        let change = match (step.events_of(part), step.changes_of(part)) {
            ([], []) if step.added_by(part).is_empty() => None,
            ([], [change]) if (change.tree, change.handle) == (tree, handle) => Some(change),
            _ => return None,
        };
        let Some(change) = change else {
            let ranking = self.tree(tree).and_then(|tree| tree.ranking(handle));
            return Some((ranking, ranking));
        };
        for id in step.added_by(part) {
            self.members.add(id);
        }
        let mark = self.change_mark.max(step.applied.sequence);
        let ranked = self.change_tree(tree, std::slice::from_ref(change), mark, |tree, members| {
            tree.apply_ranked(change, members)
        });
        if !step.added_by(part).is_empty() {
            self.members.forget_unless_known(handle);
        }
        Some(ranked.unwrap_or_default())
    }

    /// The state is now that at the end of this step.
    pub fn end_step(&mut self, step: &Step) {
        step.bans.iter().for_each(|change| self.bans.apply(change));
        step.versions.iter().for_each(|change| self.versions.apply(change));
        if step.is_ahead {
            let trees = step.changes.chunk_by(|a, b| a.tree == b.tree).filter_map(|changes| changes.first());
            let trees = trees.filter_map(|first| self.trees.get(&first.tree));
            self.ahead.extend(trees.map(|tree| tree.board.board()));
        } else if step.applied.sequence > self.applied.sequence {
            self.ahead.clear();
        }
        self.applied = step.applied;
        self.note_time(step.time);
    }

    /// Says that all that is applied until the lock is released is of this message. Where a message is
    /// applied in several holds of the lock, what comes later is marked as if it were of the next message:
    /// somebody may have read the first part, and takes the sequence for the whole.
    pub fn begin_changes(&mut self, applied: Applied) {
        let before = self.applied.sequence;
        self.change_mark = if applied.sequence > before { applied.sequence } else { before.next() };
    }

    /// Whether some of these boards has lost entries that expire at the next message, so that it is neither
    /// as it was at `applied` nor as it will be then. That message has more to remove than one hold of the
    /// lock may do, and its last step comes within a fraction of a second.
    ///
    /// # Arguments
    /// `is_asked`: by the name of a board.
    pub fn is_ahead(&self, is_asked: impl Fn(&BoardName) -> bool) -> bool {
        self.ahead.iter().any(is_asked)
    }

    /// A tree is as it was at this sequence, or the sequence is a little too high: whoever has read the tree
    /// at this sequence or later has read what it is now.
    pub fn changed(&self, tree: &WindowTree) -> Sequence {
        tree.changed.max(self.restored)
    }

    /// What the shard knows of the time.
    pub fn known_time(&self) -> ShardTime {
        ShardTime { effective: self.time, leap: self.leap }
    }

    /// Notes what is known of the time after a message. The effective time never decreases.
    pub fn note_time(&mut self, time: ShardTime) {
        if time.effective >= self.time {
            (self.time, self.leap) = (time.effective, time.leap);
        }
    }

    /// Prefetches what applying a step will touch, so that applying it takes less time; see
    /// [`Tree::warm`](crate::tree::Tree::warm).
    pub fn warm(&self, changes: &[Change], pieces: &mut PreImagePieces) {
        for changes in changes.chunk_by(|a, b| a.tree == b.tree) {
            if let Some(tree) = changes.first().and_then(|first| self.trees.get(&first.tree)) {
                tree.warm(changes, &self.members, pieces);
            }
        }
    }

    fn apply_to_tree(&mut self, id: TreeId, changes: &[Change], mark: Sequence) {
        self.change_tree(id, changes, mark, |tree, members| tree.apply(changes, members));
    }

    /// Has changes of a tree applied by `apply`, and does what goes with them.
    fn change_tree<T>(
        &mut self,
        id: TreeId,
        changes: &[Change],
        mark: Sequence,
        apply: impl FnOnce(&mut WindowTree, &mut Members) -> T,
    ) -> Option<T> {
        self.join_before_change(id);
        let tree = self.trees.get_mut(&id)?;
        if tree.definition.entry_ttl_micros.is_some()
            && let Some(instance) = Instance::of_name_on_shards(&tree.board)
        {
            let rule = (&*tree.definition, instance);
            for Change { handle, after, .. } in changes {
                let (member, before) = (self.members.id(*handle), tree.entry(*handle));
                let expiring = |entry: Option<&Entry>| Expiring::of(rule, member, *handle, entry);
                self.expiry.replace(id, expiring(before.as_ref()), expiring(after.as_ref()));
            }
        }
        let before = tree.bytes();
        let applied = apply(tree, &mut self.members);
        tree.changed = mark;
        self.tree_bytes = self.tree_bytes + tree.bytes() - before;
        Some(applied)
    }

    fn apply_event(&mut self, event: &BoardEvent) {
        match event {
            BoardEvent::Define { board, incarnation, number, definition } => {
                Arc::make_mut(&mut self.dropped).observe_numbers(*incarnation, *number);
                let definition = self.boards.share(definition);
                let incarnation = *incarnation;
                if let Some(known) = self.boards.get(board.as_str())
                    && known.incarnation == incarnation
                {
                    let (all, known_definition) = (known.all, Arc::clone(&known.definition));
                    self.join_before_change(all);
                    if let Some(tree) = self.trees.get_mut(&all) {
                        tree.definition = Arc::clone(&definition);
                    }
                    if let Some(due) = self.drop_due(board) {
                        self.drops_due.remove(&due);
                    }
                    let expires_alike = known_definition.expires_like(&definition);
                    self.boards.insert(
                        board.clone(),
                        Board { definition: Arc::clone(&definition), incarnation, all },
                    );
                    self.drops_due.extend(self.drop_due(board));
                    if !expires_alike {
                        self.await_expiry(all);
                    }
                    if !board.is_instance() {
                        self.begin_redefining(board, incarnation, &definition);
                    }
                    return;
                }
                self.drop_board(board);
                let all = TreeId(self.next_tree);
                self.next_tree += 1;
                let tree = WindowTree::new(board.clone(), Arc::clone(&definition));
                self.tree_bytes += size_of::<WindowTree>() + tree.bytes();
                self.trees.insert(all, Box::new(tree));
                self.boards.insert(board.clone(), Board { definition, incarnation, all });
                self.drops_due.extend(self.drop_due(board));
            }
            BoardEvent::Drop { board, incarnation, number } => {
                if self.boards.get(board.as_str()).is_some_and(|known| known.incarnation <= *incarnation) {
                    self.drop_board(board);
                }
                // No late definition can bring an instance back: no message defines one.
                if !board.is_instance() {
                    Arc::make_mut(&mut self.dropped).note(board.clone(), *incarnation, *number);
                }
            }
        }
    }

    /// Drops a board with its instances, or an instance.
    fn drop_board(&mut self, name: &BoardName) {
        if let Some(due) = self.drop_due(name) {
            self.drops_due.remove(&due);
        }
        let Some((all, life)) = self.boards.get(name.as_str()).map(|board| (board.all, board.incarnation))
        else {
            return;
        };
        self.join_before_change(all);
        let Some(board) = self.boards.remove(name.as_str()) else { return };
        // Boards that are defined and dropped between two checkpoints have no records to remove.
        if board.all.0 < self.first_tree_not_on_disk {
            self.dropped_trees.push(board.all);
        }
        if let Some(tree) = self.trees.remove(&board.all) {
            self.tree_bytes -= size_of::<WindowTree>() + tree.bytes();
            let forgotten = self.expiry.forget(board.all);
            self.note_expired(forgotten);
            self.retired.insert(board.all, Box::new(tree.retire()));
        }
        if !name.is_instance() {
            self.begin_dropping(name, life);
        }
    }

    /// Memory held by trees, and by boards that joined a checkpoint early, in bytes.
    pub fn tree_bytes(&self) -> usize {
        self.tree_bytes + self.expiry.bytes() + self.joining.as_ref().map_or(0, Joining::bytes)
    }

    /// Recounts the memory of all trees.
    fn count_tree_bytes(&mut self) {
        self.tree_bytes = self.trees.values().map(|tree| size_of::<WindowTree>() + tree.bytes()).sum();
    }

    /// Whether the running count equals a recount.
    #[cfg(test)]
    pub fn tree_bytes_are_right(&mut self) -> bool {
        let counted = self.tree_bytes;
        self.count_tree_bytes();
        counted == self.tree_bytes
    }
}
