//! What becomes of the instances of a board that is defined otherwise, or ends: a slice under each hold of
//! the lock, as a board may have thousands of them.
//!
//! Knows: that the board itself is changed at once, and what readers may see of its instances meanwhile. Must
//! not know: who goes on with it. The writer does, before it applies the next step or plans the next message.

use std::sync::Arc;

use crate::board::Definition;
use crate::state::boards::Board;
use crate::state::dropped::Incarnation;
use crate::state::shard::Shard;
use crate::state::unfinished::{Unfinished, What};
use crate::types::BoardName;

/// Instances that are changed under one hold of the lock: some microseconds each.
const INSTANCES_AT_ONCE: usize = if cfg!(test) { 3 } else { 32 };

impl Shard {
    /// Whether instances of a board are still to be changed. Nothing else may be applied, or planned, before.
    pub fn has_unfinished(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// Changes some of those instances.
    pub fn finish_some(&mut self) {
        let Some(mut first) = self.unfinished.pop_front() else { return };
        let after = first.through.as_ref().unwrap_or(&first.board);
        let of_board = self.boards.after(Some(after));
        let of_board =
            of_board.take_while(|(name, _)| name.is_instance() && name.split().0 == first.board.as_str());
        let names: Vec<BoardName> = of_board.take(INSTANCES_AT_ONCE).map(|(name, _)| name.clone()).collect();
        for name in &names {
            match &first.what {
                What::Redefine(life, definition) => self.redefine_instance(name, *life, definition),
                What::Drop(life) => {
                    let known = self.boards.get(name.as_str());
                    if known.is_some_and(|instance| instance.incarnation <= *life) {
                        self.drop_board(name);
                    }
                }
            }
        }
        if names.len() == INSTANCES_AT_ONCE {
            first.through = names.into_iter().next_back();
            self.unfinished.push_front(first);
        }
    }

    /// Gives the instances of a board its definition: some of them now, and the rest by
    /// [`Shard::finish_some`].
    pub(super) fn begin_redefining(
        &mut self,
        board: &BoardName,
        life: Incarnation,
        definition: &Arc<Definition>,
    ) {
        let what = What::Redefine(life, Arc::clone(definition));
        self.unfinished.push_back(Unfinished { board: board.clone(), what, through: None });
        self.finish_some();
    }

    /// Drops the instances of a board's life that has ended, in the same way.
    pub(super) fn begin_dropping(&mut self, board: &BoardName, life: Incarnation) {
        self.unfinished.push_back(Unfinished { board: board.clone(), what: What::Drop(life), through: None });
        self.finish_some();
    }

    /// Whether a board or an instance is one that waits to be dropped. Readers must not see it.
    pub(super) fn waits_to_be_dropped(&self, name: &str, known: &Board) -> bool {
        self.unfinished.iter().any(|unfinished| match unfinished.what {
            What::Drop(life) => {
                let of_board = name.strip_prefix(unfinished.board.as_str());
                let is_instance = of_board.is_some_and(|rest| rest.starts_with(crate::types::INSTANCE_MARK));
                is_instance && known.incarnation <= life
            }
            What::Redefine(..) => false,
        })
    }

    fn redefine_instance(&mut self, name: &BoardName, life: Incarnation, definition: &Arc<Definition>) {
        let Some(instance) = self.boards.get(name.as_str()).cloned() else { return };
        // A replay applies the events of a batch before it comes here: the board may have begun anew since.
        if instance.incarnation != life {
            return;
        }
        if let Some(due) = self.drop_due(name) {
            self.drops_due.remove(&due);
        }
        self.join_before_change(instance.all);
        if let Some(tree) = self.trees.get_mut(&instance.all) {
            tree.definition = Arc::clone(definition);
        }
        let (all, expires_alike) = (instance.all, instance.definition.expires_like(definition));
        self.boards.insert(name.clone(), Board { definition: Arc::clone(definition), ..instance });
        self.drops_due.extend(self.drop_due(name));
        if !expires_alike {
            self.await_expiry(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{BoardEvent, Step};
    use crate::types::ShardId;
    use crate::window::Window;

    const DAYS: usize = 10;

    fn name(day: usize) -> BoardName {
        BoardName::new("b").expect("a good name").with_instance(&format!("2026-11-{:02}", day + 1))
    }

    fn days(keep: u32) -> Arc<Definition> {
        Arc::new(Definition { windows: vec![Window::All, Window::Day], keep, ..Definition::default() })
    }

    fn define(board: BoardName, life: u64, definition: &Arc<Definition>) -> Step {
        let definition = Arc::clone(definition);
        let event = BoardEvent::Define { board, incarnation: Incarnation(life), number: None, definition };
        Step { events: vec![event], ..Step::default() }
    }

    fn with_days() -> Shard {
        let mut shard = Shard::new(ShardId(0));
        shard.apply(&define(BoardName::new("b").expect("a good name"), 1, &days(2)));
        for day in 0..DAYS {
            shard.apply(&define(name(day), 1, &days(2)));
        }
        shard
    }

    fn seen(shard: &Shard) -> usize {
        (0..DAYS).filter(|day| shard.board(name(*day).as_str()).is_some()).count()
    }

    /// Applies a step as the writer does; after how many slices all is done.
    fn slices(shard: &mut Shard, step: &Step, mut between: impl FnMut(&Shard)) -> usize {
        shard.apply_part(step, step.whole());
        let mut slices = 1;
        while shard.has_unfinished() {
            between(shard);
            shard.finish_some();
            slices += 1;
        }
        shard.end_step(step);
        slices
    }

    #[test]
    fn a_definition_reaches_the_instances_of_its_board_in_slices() {
        let mut shard = with_days();
        let board = BoardName::new("b").expect("a good name");
        let drops = |shard: &Shard| shard.drops_due_after(None).cloned().collect::<Vec<_>>();
        let before = drops(&shard);
        let step = define(board.clone(), 1, &days(5));
        assert_eq!(slices(&mut shard, &step, |shard| assert_eq!(seen(shard), DAYS)), 4);
        assert!(shard.instances_of(&board).all(|(_, instance)| instance.definition.keep == 5));
        let expected: Vec<_> = (0..DAYS).map(|day| (days(5).drops_name_at(&name(day)), name(day))).collect();
        let found: Vec<_> = drops(&shard).into_iter().map(|(at, name)| (Some(at), name)).collect();
        assert_eq!(found, expected);
        assert_ne!(drops(&shard), before);
        // A replay does all of it at once.
        let mut replayed = with_days();
        replayed.apply(&step);
        assert_eq!(drops(&replayed), drops(&shard));
    }

    /// A replay applies the events of a whole batch, which may define a board otherwise, end it and begin it
    /// anew, before it goes on with the instances.
    #[test]
    fn a_definition_does_not_reach_the_instances_of_the_next_life() {
        let board = BoardName::new("b").expect("a good name");
        let next = Arc::new(Definition { grace_micros: 7_000_000, ..(*days(3)).clone() });
        let drop = BoardEvent::Drop { board: board.clone(), incarnation: Incarnation(1), number: None };
        for drops in [vec![drop], Vec::new()] {
            let mut events = define(board.clone(), 1, &days(5)).events;
            events.extend(drops);
            events.extend(define(board.clone(), 2, &next).events);
            events.extend((3..6).flat_map(|day| define(name(day), 2, &next).events));
            let (mut live, mut replayed) = (with_days(), with_days());
            for event in events.clone() {
                live.apply(&Step { events: vec![event], ..Step::default() });
            }
            replayed.apply(&Step { events, ..Step::default() });
            for shard in [&live, &replayed] {
                assert_eq!(seen(shard), 3);
                assert!(shard.boards_and_instances().all(|(_, known)| known.definition == next));
                let due: Vec<_> = shard.drops_due_after(None).cloned().collect();
                let expected = (3..6).map(|day| next.drops_name_at(&name(day)).map(|at| (at, name(day))));
                assert_eq!(due.into_iter().map(Some).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_board_that_ends_is_gone_immediately_and_its_instances_are_let_go_of_in_slices() {
        let board = BoardName::new("b").expect("a good name");
        let incarnation = Incarnation(1);
        let drop = BoardEvent::Drop { board: board.clone(), incarnation, number: None };
        let drop = Step { events: vec![drop], ..Step::default() };
        // A clear is a definition of the next life.
        for (step, left) in [(drop, 0), (define(board.clone(), 2, &days(2)), 1)] {
            let mut shard = with_days();
            let slices = slices(&mut shard, &step, |shard| assert_eq!(seen(shard), 0, "nobody sees a part"));
            assert_eq!(slices, 4);
            assert_eq!(shard.boards_and_instances().count(), left);
            assert_eq!((shard.drops_due_after(None).count(), shard.trees().count()), (0, left));
            assert!(shard.tree_bytes_are_right());
        }
        // One of the next life that comes with it stays.
        let mut shard = with_days();
        let mut step = define(board, 2, &days(2));
        step.events.extend(define(name(3), 2, &days(2)).events);
        slices(&mut shard, &step, |shard| assert_eq!(seen(shard), 1));
        assert_eq!(seen(&shard), 1);
        assert_eq!(shard.drops_due_after(None).count(), 1);
    }
}
