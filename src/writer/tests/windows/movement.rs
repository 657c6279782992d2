//! Movement: where each member of `all` was when the current slices began, by vectors sorted at that moment.

use std::collections::{BTreeMap, BTreeSet};

use super::{ModelBoard, Run, slice};
use crate::state_lock::Purpose;
use crate::tree::Words;
use crate::window::{MovementPart, Window};

/// The name of the current slice, and the members listed when it began, best first.
pub(super) type Began = BTreeMap<Window, (String, Vec<String>)>;

impl ModelBoard {
    /// Members of `all` that are listed, best first.
    fn listed(&self) -> Vec<String> {
        let all = self.instances.get("all");
        let listed = all.into_iter().flat_map(|all| &all.entries).filter(|(_, entry)| !entry.hidden);
        let mut listed: Vec<_> = listed.map(|(id, entry)| (-entry.score, entry.reached, id)).collect();
        listed.sort_unstable();
        listed.into_iter().map(|(_, _, id)| id.clone()).collect()
    }

    /// The time of a message: before it changes anything, slices begin.
    pub(super) fn begin_slices(&mut self, now: i64) {
        if !self.definition.movement {
            return;
        }
        for window in self.definition.windows.clone().into_iter().filter(|window| *window != Window::All) {
            let Some((name, ..)) = slice(&self.definition, window, now) else { continue };
            if self.began.get(&window).is_none_or(|(known, _)| *known != name) {
                let listed = self.listed();
                self.began.insert(window, (name, listed));
            }
        }
    }
}

impl Run {
    pub(super) fn check_movement(&self, context: &str) {
        for (name, model) in self.model.iter().filter(|(_, board)| board.definition.movement) {
            for (window, (current, listed)) in &model.began {
                self.check_positions((name, current), listed, &format!("{context}: {name} {window:?}"));
                // Of an instance that is still to begin, nothing has changed since it began.
                let (_, _, end) =
                    slice(&model.definition, *window, self.time.as_micros()).expect("it is one");
                let next = slice(&model.definition, *window, end).expect("one follows the other").0;
                self.check_positions((name, &next), &model.listed(), &format!("{context}: {name}, next"));
            }
        }
        let shard = self.shard.read(Purpose::Read);
        for (name, _) in shard.boards_and_instances() {
            let Some((_, instance)) = MovementPart::of_name_on_shards(name) else { continue };
            let began = &self.model[name.split().0].began[&instance.window];
            assert_eq!(instance.to_string(), began.0, "{context}: nothing is kept of earlier instances");
        }
    }

    /// Whether what is kept since an instance began leads to these members, in this order.
    fn check_positions(&self, (name, instance): (&str, &str), listed: &[String], context: &str) {
        let shard = self.shard.read(Purpose::Read);
        let incarnation = shard.board(name).expect("it is there").incarnation;
        let of = |on_shard: &str| -> BTreeSet<(Words, String)> {
            let found = shard.board(on_shard).filter(|board| board.incarnation == incarnation);
            let tree = found.map(|board| shard.tree(board.all).expect("it has a tree"));
            let entries = tree.into_iter().flat_map(|tree| tree.tree.cursor_at(0));
            let id = |handle| String::from_utf8(shard.members.id(handle).to_vec()).expect("UTF-8");
            entries.map(|(handle, words)| (words, id(handle))).collect()
        };
        let (all, then) = (of(name), of(&format!("{name}#{instance}.then")));
        let now = of(&format!("{name}#{instance}.now"));
        assert!(now.is_subset(&all), "{context}: {now:?} of {all:?}");
        let began: BTreeSet<_> = all.difference(&now).chain(&then).collect();
        let found: Vec<String> = began.into_iter().map(|(_, id)| id.clone()).collect();
        assert_eq!(found, listed, "{context}, {instance}");
    }
}
