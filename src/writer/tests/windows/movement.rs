//! Movement: where each member of `all` was when the current slices began, by vectors sorted at that moment.

use std::collections::{BTreeMap, BTreeSet};

use super::{DAY, MINUTE, ModelBoard, Run, Said, micros, slice, windowed};
use crate::board::Definition;
use crate::job::Op;
use crate::state_lock::Purpose;
use crate::storage::TreesFrom;
use crate::tree::Words;
use crate::window::{MovementPart, Window};
use crate::writer::tests::build::{bare, job, leave_all};

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
                let (_, _, end) = slice(&model.definition, *window, self.planned.time.effective.as_micros())
                    .expect("it is one");
                let next = slice(&model.definition, *window, end).expect("one follows the other").0;
                self.check_positions((name, &next), &model.listed(), &format!("{context}: {name}, next"));
            }
        }
        let shard = self.planned.shard.read(Purpose::Read);
        for (name, _) in shard.boards_and_instances() {
            let Some((_, instance)) = MovementPart::of_name_on_shards(name) else { continue };
            let began = &self.model[name.split().0].began[&instance.window];
            assert_eq!(instance.to_string(), began.0, "{context}: nothing is kept of earlier instances");
        }
    }

    /// Whether what is kept since an instance began leads to these members, in this order.
    fn check_positions(&self, (name, instance): (&str, &str), listed: &[String], context: &str) {
        let shard = self.planned.shard.read(Purpose::Read);
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

/// The entries of what is kept, by name.
fn kept(run: &Run) -> Vec<(String, u64)> {
    let shard = run.planned.shard.read(Purpose::Read);
    let is_kept = |name| MovementPart::of_name_on_shards(name).is_some();
    let kept = shard.boards_and_instances().filter(|(name, _)| is_kept(name));
    let total = |tree| shard.tree(tree).expect("it has a tree").total();
    kept.map(|(name, board)| (name.to_string(), total(board.all))).collect()
}

#[test]
fn only_members_that_changed_are_kept_until_the_day_is_over() {
    let mut run = Run::new();
    let definition = Definition { movement: true, ..windowed(&[Window::Day, Window::All]) };
    let mut now = micros("2026-11-20T10:00:00Z");
    run.batch(vec![(now, Said::Define("every", definition))]);
    let score = |member: &str, score: i64| Said::Jobs(vec![job(member, &[("every", &[score])])]);
    run.batch((0..6).map(|member| (now, score(&format!("m{member}"), member % 3))).collect());
    run.check("the first day");
    let expect = |run: &Run, expected: &[(&str, u64)]| {
        run.check("as the model has it");
        let expected: Vec<_> = expected.iter().map(|(name, total)| ((*name).to_owned(), *total)).collect();
        assert_eq!(kept(run), expected);
    };
    // They all came that day.
    expect(&run, &[("every#2026-11-20.now", 6)]);
    // A shard that nobody writes to hears the time, believes it after a minute, and nothing is left.
    let pass_day = |run: &mut Run, now: &mut i64| {
        *now += DAY;
        run.batch(vec![(*now, Said::Tick)]);
        *now += MINUTE;
        run.batch(vec![(*now, Said::Tick)]);
    };
    pass_day(&mut run, &mut now);
    expect(&run, &[]);
    let [then, present] = ["every#2026-11-21.then", "every#2026-11-21.now"];
    // An equal score changes nothing, and keeps its place among those that are tied.
    run.batch(vec![(now, score("m1", 1))]);
    expect(&run, &[]);
    run.batch(vec![(now, Said::Jobs(vec![bare(Op::Remove, "m1", &["every"])]))]);
    expect(&run, &[(then, 1)]);
    run.batch(vec![(now, Said::Jobs(vec![bare(Op::Hide, "m2", &["every"])])), (now, score("m1", 2))]);
    expect(&run, &[(present, 1), (then, 2)]);
    // It is where it was, and counts as changed all the same.
    run.batch(vec![(now, Said::Jobs(vec![bare(Op::Show, "m2", &["every"])]))]);
    expect(&run, &[(present, 2), (then, 2)]);
    run.planned.restart(TreesFrom::Pages);
    run.batch(vec![(now, score("new", 5)), (now, Said::Jobs(vec![leave_all("new")]))]);
    expect(&run, &[(present, 2), (then, 2)]);
    run.planned.checkpoint();
    run.planned.restart(TreesFrom::Pages);
    run.batch(vec![(now, Said::Jobs(vec![leave_all("m3")]))]);
    expect(&run, &[(present, 2), (then, 3)]);
    pass_day(&mut run, &mut now);
    run.batch(vec![(now, score("m1", 0))]);
    expect(&run, &[("every#2026-11-22.now", 1), ("every#2026-11-22.then", 1)]);
    assert_eq!(run.planned.findings(), Vec::<String>::new());
}
