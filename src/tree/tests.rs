//! The tree against its model: random edits, queries, captures and loads, with ties in all of them.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::capture::PreImagePieces;
use super::counted_tree::Form;
use super::model::{Ids, Model, handle_of};
use super::*;

/// Members that tests use: enough for four levels of the smallest nodes.
const HANDLES: u32 = 150;

/// Few values, so that ties always occur, both ends of the range, and some that differ in one byte, three or
/// all.
const VALUES: [u64; 6] = [0, 1, 70_000, 1 << 63, u64::MAX - 1, u64::MAX];

#[derive(Debug, Clone)]
enum Op {
    Insert(u32, Vec<u64>),
    Remove(u32),
    /// Handle, new words, and whether the handle is given to another member.
    Apply(BTreeMap<u32, (Option<Vec<u64>>, bool)>),
    /// One edit, and how the entry stood before and stands after.
    ApplyStanding(u32, Option<Vec<u64>>),
    BeginCapture,
    /// How many pages, and whether storing fails if they are the last.
    CaptureNext(usize, bool),
    AbandonCapture,
    MarkAllDirty,
    Reload,
}

type Page = (Vec<Vec<u64>>, Vec<u32>);

/// A tree, its model, and a page store that a checkpoint writes to.
struct Bench<const LEAF: usize, const INNER: usize> {
    tree: Tree<LEAF, INNER>,
    model: Model,
    ids: Ids,
    next_id: u64,
    stored: BTreeMap<u32, Page>,
    /// What a running capture has written so far, and what it must come to.
    capture: Option<(BTreeMap<u32, Page>, Model)>,
}

fn page_of(entries: &Columns<'_>) -> Page {
    (
        (0..entries.width()).map(|column| entries.column(column).collect()).collect(),
        entries.handles().collect(),
    )
}

fn load<const LEAF: usize, const INNER: usize>(
    columns: usize,
    pages: &BTreeMap<u32, Page>,
    order: &Ids,
) -> Result<Tree<LEAF, INNER>, PageError> {
    let mut loader = PageLoader::<LEAF, INNER>::new(columns);
    for (&page, (words, handles)) in pages {
        loader.add_page(page, handles.len(), |mut slots| {
            for (column, words) in words.iter().enumerate() {
                slots.column_mut(column).copy_from_slice(words);
            }
            slots.handles_mut().copy_from_slice(handles);
            Ok::<_, PageError>(())
        })?;
    }
    loader.finish(order)
}

/// Single changes.
trait OneByOne {
    fn insert(&mut self, words: &[u64], handle: Handle, order: &impl MemberOrder);
    fn remove(&mut self, handle: Handle, order: &impl MemberOrder) -> Option<Words>;
}

impl<const LEAF: usize, const INNER: usize> OneByOne for Tree<LEAF, INNER> {
    fn insert(&mut self, words: &[u64], handle: Handle, order: &impl MemberOrder) {
        assert!(!self.contains(handle), "a handle has one entry in a tree");
        self.apply(&[Edit { handle, new: Some(Words::from_slice(words)) }], order);
    }

    fn remove(&mut self, handle: Handle, order: &impl MemberOrder) -> Option<Words> {
        let words = self.get(handle);
        self.apply(&[Edit { handle, new: None }], order);
        words
    }
}

fn entries_of<const LEAF: usize, const INNER: usize>(tree: &Tree<LEAF, INNER>) -> Vec<(Vec<u64>, u32)> {
    tree.cursor_at(0).map(|(handle, words)| (words.as_slice().to_vec(), handle.0)).collect()
}

fn entries_of_model(model: &Model) -> Vec<(Vec<u64>, u32)> {
    model.0.iter().map(|(words, _, handle)| (words.clone(), *handle)).collect()
}

impl<const LEAF: usize, const INNER: usize> Bench<LEAF, INNER> {
    fn new(columns: usize) -> Self {
        let id = |handle: u32| u64::from(handle.wrapping_mul(2_654_435_761)) << 20;
        Self {
            tree: Tree::new(columns),
            model: Model::default(),
            ids: Ids((0..HANDLES).map(id).collect()),
            next_id: 1,
            stored: BTreeMap::new(),
            capture: None,
        }
    }

    /// Another member gets the handle; nobody can compare the old one any more.
    fn give_away(&mut self, handle: u32) {
        self.next_id =
            self.next_id.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.ids.set(handle, self.next_id);
    }

    fn insert_into_model(&mut self, words: &[u64], handle: u32) {
        self.model.insert(words, self.ids.of(handle), handle);
    }

    fn run(&mut self, op: &Op) {
        match op {
            Op::Insert(handle, words) => {
                if !self.tree.contains(Handle(*handle)) {
                    self.tree.insert(words, Handle(*handle), &self.ids);
                    self.insert_into_model(words, *handle);
                }
            }
            Op::Remove(handle) => {
                let removed =
                    self.tree.remove(Handle(*handle), &self.ids).map(|words| words.as_slice().to_vec());
                assert_eq!(removed, self.model.remove(*handle));
                self.give_away(*handle);
            }
            Op::Apply(changes) => {
                let mut edits = Vec::new();
                for (&handle, (new, given_away)) in changes {
                    self.model.remove(handle);
                    if *given_away || new.is_none() {
                        self.give_away(handle);
                    }
                    if let Some(new) = new {
                        self.insert_into_model(new, handle);
                    }
                    edits.push(Edit { handle: Handle(handle), new: new.as_deref().map(Words::from_slice) });
                }
                // It changes nothing, whatever it is given.
                self.tree.warm(&edits, &self.ids, &mut PreImagePieces::default());
                self.tree.apply(&edits, &self.ids);
            }
            Op::ApplyStanding(handle, new) => {
                let edit = Edit { handle: Handle(*handle), new: new.as_deref().map(Words::from_slice) };
                for score_words in 1..=self.tree.columns() {
                    let before = self.tree.standing(Handle(*handle), score_words);
                    let stood = self.tree.apply_standing(&edit, score_words, &self.ids);
                    assert_eq!(stood, (before, self.tree.standing(Handle(*handle), score_words)));
                }
                self.model.remove(*handle);
                if let Some(new) = new {
                    self.insert_into_model(new, *handle);
                }
            }
            Op::BeginCapture => {
                self.tree.begin_capture();
                self.capture = Some((self.stored.clone(), self.model.clone()));
            }
            Op::CaptureNext(pages, fails) => self.capture_next(*pages, *fails),
            Op::AbandonCapture => {
                while self.tree.abandon_capture(2) {}
                self.capture = None;
            }
            Op::MarkAllDirty => self.tree.mark_all_dirty(),
            Op::Reload => {
                self.run(&Op::BeginCapture);
                self.run(&Op::CaptureNext(usize::MAX, false));
                self.tree =
                    load(self.tree.columns(), &self.stored, &self.ids).expect("the store holds a tree");
                assert_eq!(self.tree.dirty_pages(), 0);
            }
        }
    }

    fn capture_next(&mut self, pages: usize, fails: bool) {
        let Some((mut pages_now, expected)) = self.capture.take() else { return };
        let mut handed_out = 0;
        let more = self.tree.capture_next(pages, &mut |captured| {
            handed_out += 1;
            if let Some(entries) = captured.entries {
                assert_eq!(page_of(&captured.copy().entries()), page_of(&entries));
                pages_now.insert(captured.page, page_of(&entries));
            } else {
                assert!(captured.copy().entries().is_empty());
                pages_now.remove(&captured.page);
            }
        });
        assert!(handed_out <= pages);
        if more {
            self.capture = Some((pages_now, expected));
        } else if fails {
            while self.tree.abandon_capture(1) {}
        } else {
            // Ids may have been given away since the capture began; the order of then is the model's of then.
            let mut ids = Ids(self.ids.0.clone());
            for (_, id, handle) in &expected.0 {
                ids.set(*handle, *id);
            }
            let loaded =
                load::<LEAF, INNER>(self.tree.columns(), &pages_now, &ids).expect("a tree was stored");
            loaded.check(&ids).expect("a loaded tree is sound");
            assert_eq!(entries_of(&loaded), entries_of_model(&expected));
            self.stored = pages_now;
        }
    }

    fn compare(&self) {
        let (tree, model) = (&self.tree, &self.model);
        tree.check(&self.ids).expect("sound after every step");
        assert!(tree.is_filled(), "edits leave no leaf nearly empty");
        assert_eq!(tree.len(), model.0.len() as u64);
        assert_eq!(tree.is_empty(), model.0.is_empty());
        assert_eq!(entries_of(tree), entries_of_model(model));
        for handle in (0..HANDLES).map(handle_of) {
            let index = model.index_of(handle);
            assert_eq!(tree.index_of(Handle(handle)), index.map(|at| at as u64));
            assert_eq!(tree.contains(Handle(handle)), index.is_some());
            let words = tree.get(Handle(handle)).map(|words| words.as_slice().to_vec());
            assert_eq!(words, index.map(|at| model.0[at].0.clone()));
            for score_words in 1..=tree.columns() {
                let expected = index.map(|at| {
                    let score = &model.0[at].0[..score_words];
                    let counts = [at, model.count_below(score), model.count_through(score)];
                    (model.0[at].0.clone(), counts.map(|count| count as u64))
                });
                let found = tree.standing(Handle(handle), score_words);
                let found = found.map(|at| (at.words.as_slice().to_vec(), [at.index, at.better, at.through]));
                assert_eq!(found, expected, "{handle} by {score_words}");
                let ahead = tree.ahead(Handle(handle), score_words);
                let ahead = ahead.map(|at| (at.words.as_slice().to_vec(), [at.index, at.better]));
                let expected = expected.map(|(words, [index, better, _])| (words, [index, better]));
                assert_eq!(ahead, expected, "{handle} by {score_words}");
            }
        }
        for (index, (words, _, handle)) in model.0.iter().enumerate() {
            let expected = Some((Handle(*handle), Words::from_slice(words)));
            assert_eq!(tree.select(index as u64), expected);
            assert_eq!(tree.cursor_at(index as u64).next(), expected);
            assert_eq!(tree.cursor_at(index as u64 + 1).prev(), expected);
        }
        assert_eq!(tree.select(tree.len()), None);
        let mut cursor = tree.cursor_at(u64::MAX);
        assert_eq!(cursor.next(), None);
        let mut backward = Vec::new();
        while let Some((handle, _)) = cursor.prev() {
            backward.push(handle.0);
        }
        assert_eq!(cursor.prev(), None);
        assert!(backward.iter().rev().eq(model.0.iter().map(|entry| &entry.2)), "backward as forward");
        for depth in [0, 1, 2, 3, 7, 40, 1_000] {
            self.compare_outline(depth);
        }
        self.compare_counts(&mut vec![]);
        self.compare_many_counts();
    }

    /// The entries of an outline are at the indexes that it says, and no run between them is too long.
    fn compare_outline(&self, depth: u64) {
        let (tree, model) = (&self.tree, &self.model);
        let (mut last, mut count) = (0, 0);
        tree.outline(depth, &mut |index, handle, words| {
            let (expected, _, expected_handle) = &model.0[index as usize];
            assert_eq!((words.as_slice(), handle.0), (&expected[..], *expected_handle), "at {index}");
            assert!(last < index && index - last <= depth.max(1), "{last} to {index} by {depth}");
            (last, count) = (index, count + 1);
        });
        if count > 0 {
            assert!(tree.len() - last <= depth.max(1), "after {last} of {}", tree.len());
            assert!(count <= 2 * tree.len().div_ceil(depth.max(1)) + 1, "{count} entries by {depth}");
        }
    }

    /// Many counts at once are what they are one by one.
    fn compare_many_counts(&self) {
        let columns = self.tree.columns();
        let words = filled(columns);
        let prefixes: Vec<&[u64]> =
            words.iter().enumerate().map(|(nth, words)| &words[..=nth % columns]).collect();
        let mut found = Vec::new();
        self.tree.count_ranges(&prefixes, |counts| found.push(counts));
        let one_by_one: Vec<_> = prefixes.iter().map(|prefix| self.tree.count_range(prefix)).collect();
        assert_eq!(found, one_by_one);

        let ids = [0, self.ids.0[7], u64::MAX];
        let places: Vec<(&[u64], u64)> =
            words.iter().flat_map(|words| ids.map(|id| (words.as_slice(), id))).collect();
        for score_words in [1, columns - 1] {
            let sought: Vec<Sought<'_>> =
                places.iter().map(|(words, _)| Sought { words, score_words }).collect();
            let mut compare = |nth: usize, handle: Handle| {
                let (words, id) = &places[nth];
                compare_ids(words, &self.ids.of(handle.0), id)
            };
            let mut found = Vec::new();
            self.tree.count_entries(&sought, &mut compare, |counts| found.push(counts));
            let one = |(words, id): &(&[u64], u64)| {
                let mut compare = |handle: Handle| compare_ids(words, &self.ids.of(handle.0), id);
                (self.tree.count_below(&words[..score_words]), self.tree.count_before(words, &mut compare))
            };
            assert_eq!(found, places.iter().map(one).collect::<Vec<_>>());
        }
    }

    /// Every prefix over the values, each longer one after the one it extends.
    fn compare_counts(&self, prefix: &mut Vec<u64>) {
        if !prefix.is_empty() {
            assert_eq!(self.tree.count_below(prefix), self.model.count_below(prefix) as u64, "{prefix:?}");
            assert_eq!(
                self.tree.count_range(prefix),
                (self.model.count_below(prefix) as u64, self.model.count_through(prefix) as u64),
                "range {prefix:?}"
            );
            assert_eq!(
                self.tree.count_through(prefix),
                self.model.count_through(prefix) as u64,
                "{prefix:?}"
            );
        }
        if prefix.len() == self.tree.columns() {
            for id in [0, 1 << 48, self.ids.0[7], self.ids.0[8], u64::MAX] {
                let counted = self
                    .tree
                    .count_before(prefix, &mut |handle| compare_ids(prefix, &self.ids.of(handle.0), &id));
                assert_eq!(counted, self.model.count_before(prefix, id) as u64, "{prefix:?} {id}");
            }
            return;
        }
        let values = if prefix.len() < 2 { &VALUES[..] } else { &VALUES[..2] };
        for &value in values {
            prefix.push(value);
            self.compare_counts(prefix);
            prefix.pop();
        }
    }
}

/// Every way to fill so many columns.
fn filled(columns: usize) -> Vec<Vec<u64>> {
    (0..columns).fold(vec![vec![]], |all, column| {
        let values = if column < 2 { &VALUES[..] } else { &VALUES[..2] };
        let longer = |words: &Vec<u64>| values.iter().map(|value| [&words[..], &[*value]].concat()).collect();
        all.iter().flat_map::<Vec<_>, _>(longer).collect()
    })
}

fn handles() -> impl Strategy<Value = u32> {
    (0..HANDLES).prop_map(handle_of)
}

fn words(columns: usize) -> impl Strategy<Value = Vec<u64>> {
    let value = prop_oneof![3 => prop::sample::select(&VALUES[..2]), 2 => prop::sample::select(&VALUES[..])];
    prop::collection::vec(value, columns)
}

fn changes(columns: usize, most: usize) -> impl Strategy<Value = BTreeMap<u32, (Option<Vec<u64>>, bool)>> {
    let change = (prop::option::weighted(0.8, words(columns)), prop::bool::weighted(0.2));
    prop::collection::btree_map(handles(), change, 0..most)
}

fn ops(columns: usize) -> impl Strategy<Value = Vec<Op>> {
    let leaving = prop::collection::btree_map(handles(), Just((None, false)), 20..100);
    let op = prop_oneof![
        6 => (handles(), words(columns)).prop_map(|(handle, words)| Op::Insert(handle, words)),
        4 => handles().prop_map(Op::Remove),
        6 => changes(columns, 60).prop_map(Op::Apply),
        1 => leaving.prop_map(Op::Apply),
        8 => (handles(), prop::option::weighted(0.8, words(columns)))
            .prop_map(|(handle, words)| Op::ApplyStanding(handle, words)),
        2 => Just(Op::BeginCapture),
        5 => (0_usize..20, prop::bool::weighted(0.2))
            .prop_map(|(pages, fails)| Op::CaptureNext(pages, fails)),
        1 => Just(Op::AbandonCapture),
        1 => Just(Op::MarkAllDirty),
        1 => Just(Op::Reload),
    ];
    let first = changes(columns, HANDLES as usize).prop_map(Op::Apply);
    (first, prop::collection::vec(op, 1..40)).prop_map(|(first, mut rest)| {
        rest.insert(0, first);
        rest
    })
}

fn run_all<const LEAF: usize, const INNER: usize>(columns: usize, ops: &[Op]) {
    let mut bench = Bench::<LEAF, INNER>::new(columns);
    for op in ops {
        bench.run(op);
        bench.compare();
    }
    bench.run(&Op::BeginCapture);
    bench.run(&Op::CaptureNext(usize::MAX, false));
}

fn columns_and_ops() -> impl Strategy<Value = (usize, Vec<Op>)> {
    (2_usize..=4).prop_flat_map(|columns| (Just(columns), ops(columns)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_smallest_nodes_agree_with_the_model((columns, ops) in columns_and_ops()) {
        run_all::<4, 4>(columns, &ops);
    }

    #[test]
    fn odd_nodes_agree_with_the_model((columns, ops) in columns_and_ops()) {
        run_all::<7, 5>(columns, &ops);
    }

    #[test]
    fn real_nodes_agree_with_the_model((columns, ops) in columns_and_ops()) {
        run_all::<64, 64>(columns, &ops);
    }
}

/// Words all equal: only the members' ids decide, in separators too.
#[test]
fn one_great_tie_is_ordered_by_member() {
    let mut bench = Bench::<4, 4>::new(2);
    for round in 0..4 {
        for handle in 0..HANDLES {
            if (handle + round) % 3 == 0 {
                bench.run(&Op::Remove(handle));
            } else {
                bench.run(&Op::Insert(handle, vec![5, 5]));
            }
        }
        bench.compare();
    }
}

/// A leaf that was found for an entry may have split before the entry comes, and all have one first word.
#[test]
fn a_batch_into_one_run_finds_the_right_leaves_amid_splits() {
    for equal in [1, 3] {
        let mut bench = Bench::<4, 4>::new(2);
        let words = |handle: u32| vec![5, u64::from(handle * 37 % HANDLES / equal)];
        for handle in 0..20 {
            bench.run(&Op::Insert(handle, words(handle)));
        }
        let arriving = (20..HANDLES).map(|handle| (handle, (Some(words(handle)), false)));
        bench.run(&Op::Apply(arriving.collect()));
        bench.compare();
        assert!(bench.tree.levels() > 2);
        let moving = (0..HANDLES).step_by(2).map(|handle| (handle, (Some(words(handle + 1)), false)));
        bench.run(&Op::Apply(moving.collect()));
        bench.compare();
    }
}

/// Sorted and reverse sorted arrivals, then all leave again from either end.
#[test]
fn runs_of_arrivals_and_departures_keep_the_tree_sound() {
    for descending in [false, true] {
        let mut bench = Bench::<4, 4>::new(2);
        let key = |handle: u32| u64::from(if descending { HANDLES - handle } else { handle });
        for handle in 0..HANDLES {
            bench.run(&Op::Insert(handle, vec![key(handle), 0]));
            bench.tree.check(&bench.ids).expect("sound while growing");
        }
        bench.compare();
        for handle in
            (0..HANDLES).map(|handle| if handle % 2 == 0 { handle / 2 } else { HANDLES - 1 - handle / 2 })
        {
            bench.run(&Op::Remove(handle));
            bench.tree.check(&bench.ids).expect("sound while shrinking");
        }
        bench.compare();
        assert_eq!(bench.tree.leaf_count(), 1);
    }
}

/// As equal scores come: each new one is the last of its score.
#[test]
fn runs_that_grow_at_their_end_leave_full_leaves_behind() {
    const SCORES: u32 = 3;
    const ENTRIES: u32 = SCORES * 64 * 10;
    // Words are distinct, so that no ids are asked for.
    let (mut tree, ids) = (Tree::<64, 64>::new(2), Ids(Vec::new()));
    for nth in 0..ENTRIES {
        tree.insert(&[u64::from(nth % SCORES), u64::from(nth)], Handle(nth), &ids);
    }
    tree.check(&ids).expect("a sound tree");
    let full = ENTRIES / 64;
    // All runs began in one leaf, and their last leaves are not full yet.
    let (leaves, most) = (tree.leaf_count(), (full + 2 * SCORES) as usize);
    assert!(leaves <= most, "{leaves} leaves for {full} full ones");
}

/// The last to reach a score is often the first to leave it.
#[test]
fn the_last_of_a_run_comes_and_goes_without_moving_others() {
    // As many as a bulk load puts into a leaf have score 5, and as many have score 9.
    let words = |nth: u32| [if nth < 56 { 5 } else { 9 }, u64::from(nth)];
    let sorted = (0..112).map(|nth| (Words::from_slice(&words(nth)), Handle(nth)));
    let (mut tree, ids) = (Tree::<64, 64>::from_sorted(2, sorted), Ids(Vec::new()));
    for last in 112..120 {
        tree.insert(&[5, u64::from(last)], Handle(last), &ids);
    }
    assert_eq!(tree.leaf_count(), 2, "the first leaf is full");
    tree.begin_capture();
    while tree.capture_next(usize::MAX, &mut |_| {}) {}
    for _ in 0..3 {
        tree.insert(&[5, 200], Handle(200), &ids);
        tree.check(&ids).expect("a sound tree");
        assert_eq!(tree.leaf_count(), 3, "it has a leaf of its own");
        tree.remove(Handle(200), &ids);
        tree.check(&ids).expect("a sound tree");
        assert_eq!((tree.leaf_count(), tree.dirty_pages()), (2, 1), "no other leaf has changed");
    }
}

/// A leaf that holds the end of one run and the beginning of the next parts for good.
#[test]
fn a_run_that_grows_parts_from_the_next_one_and_does_not_meet_it_again() {
    // Bulk-loaded leaves of 56: 40 with score 5 and 16 with score 9, and 56 with score 9.
    let words = |nth: u32| [if nth < 40 { 5 } else { 9 }, u64::from(nth)];
    let sorted = (0..112).map(|nth| (Words::from_slice(&words(nth)), Handle(nth)));
    let (mut tree, ids) = (Tree::<64, 64>::from_sorted(2, sorted), Ids(Vec::new()));
    let mut changed = |change: &mut dyn FnMut(&mut Tree<64, 64>)| {
        tree.begin_capture();
        while tree.capture_next(usize::MAX, &mut |_| {}) {}
        change(&mut tree);
        tree.check(&ids).expect("a sound tree");
        (tree.leaf_count(), tree.dirty_pages())
    };
    let mut newest = 112;
    let mut grow = |by: u32| {
        changed(&mut |tree| {
            for _ in 0..by {
                tree.insert(&[5, u64::from(newest)], Handle(newest), &ids);
                newest += 1;
            }
        })
    };
    assert_eq!(grow(8), (2, 1), "the first leaf is full");
    assert_eq!(
        grow(1),
        (3, 3),
        "the 16 with score 9 share with the 56 behind them, with which they do not fit"
    );
    assert_eq!(grow(15), (3, 1));
    assert_eq!(grow(1), (4, 1), "full again, and the run goes on in a leaf of its own");
    assert_eq!(grow(9), (4, 1));
    // That one has ten, and remains.
    let mut remove = |handle: u32| changed(&mut |tree| _ = tree.remove(Handle(handle), &ids));
    assert_eq!(remove(newest - 1), (4, 1));
    assert_eq!(remove(newest - 5), (4, 1));
    // Of those with score 9 the first 36 are in one leaf, and as many in the next. They do not meet the end
    // of the other run again.
    for left in (21..36).rev() {
        assert_eq!(remove(40 + left), (4, 1), "{left}");
    }
    // The end of the run becomes one with the leaf before it once they fit, and not with the smaller one
    // behind.
    for earliest in 0..20 {
        assert_eq!(remove(earliest), (4, 1));
    }
    assert_eq!(remove(newest - 2), (3, 2), "7 and 44 with score 5 are merged");
    assert_eq!(remove(40 + 20), (2, 2), "20 and 36 with score 9 are merged");
}

/// Also where there is only one leaf.
#[test]
fn runs_part_in_the_first_leaf() {
    let (mut tree, ids) = (Tree::<64, 64>::new(2), Ids(Vec::new()));
    for nth in 0..64 {
        tree.insert(&[if nth < 40 { 5 } else { 9 }, u64::from(nth)], Handle(nth), &ids);
    }
    for nth in 64..64 + 24 {
        tree.insert(&[5, u64::from(nth)], Handle(nth), &ids);
        tree.check(&ids).expect("a sound tree");
        assert_eq!(tree.leaf_count(), 2);
    }
}

/// How often leaves split, shared and merged.
fn structure(tree: &Tree<64, 64>) -> u64 {
    match &tree.form {
        Form::Large(large) => large.structure,
        Form::Small(_) => 0,
    }
}

/// Hardly anything comes to the middle of a run, so that its leaves need no room.
#[test]
fn leaves_in_the_middle_of_a_run_wait_for_a_sibling_that_is_as_short() {
    let sorted = (0..4 * 56).map(|nth| (Words::from_slice(&[5, u64::from(nth)]), Handle(nth)));
    let (mut tree, ids) = (Tree::<64, 64>::from_sorted(2, sorted), Ids(Vec::new()));
    let before = structure(&tree);
    let mut middle = 56..;
    for _ in 0..28 {
        tree.remove(Handle(middle.next().expect("endless")), &ids);
    }
    assert_eq!(structure(&tree), before, "28 are left");
    tree.remove(Handle(middle.next().expect("endless")), &ids);
    assert!(structure(&tree) > before, "27 are left, and the leaf takes some");
    tree.check(&ids).expect("a sound tree");
}

/// What the run's first leaf loses its last one gains, and never do the two fit into one leaf.
#[test]
fn two_leaves_of_a_run_do_not_share_with_every_edit() {
    const CYCLES: u64 = 1_000;
    // 56 before the run, 58 in it, 56 behind it.
    let score = |nth: u32| [1, 5, 9][usize::from(nth >= 56) + usize::from(nth >= 56 + 58)];
    let sorted = (0..170).map(|nth| (Words::from_slice(&[score(nth), u64::from(nth)]), Handle(nth)));
    let (mut tree, ids) = (Tree::<64, 64>::from_sorted(2, sorted), Ids(Vec::new()));
    let before = structure(&tree);
    for cycle in 0..CYCLES {
        let (handle, words) = tree.select(56 + cycle * 7 % 20).expect("the run");
        assert_eq!(words.as_slice()[0], 5);
        tree.remove(handle, &ids);
        tree.insert(&[5, 1_000 + cycle], handle, &ids);
    }
    tree.check(&ids).expect("a sound tree");
    let changes = structure(&tree) - before;
    assert!(changes < CYCLES / 4, "{changes} changes of structure in {CYCLES} cycles");
}

/// Bulk-loaded leaves that end with the first entry of the next run; then each run grows, and nearly all of
/// it leaves.
#[test]
fn what_is_left_of_runs_is_not_scattered_over_many_leaves() {
    const RUNS: u32 = 200;
    let run_of = |nth: u32| (nth + 1) / 56;
    let sorted =
        (0..RUNS * 56).map(|nth| (Words::from_slice(&[u64::from(run_of(nth)), u64::from(nth)]), Handle(nth)));
    let (mut tree, ids) = (Tree::<64, 64>::from_sorted(2, sorted), Ids(Vec::new()));
    let mut newest = RUNS * 56;
    for _ in 0..10 {
        for run in 0..RUNS {
            tree.insert(&[u64::from(run), u64::from(newest)], Handle(newest), &ids);
            newest += 1;
        }
    }
    tree.check(&ids).expect("a sound tree");
    for nth in 0..56 {
        for run in 0..RUNS {
            tree.remove(Handle(run * 56 + nth), &ids);
        }
        let (entries, leaves) = (tree.len(), tree.leaf_count());
        assert!(entries > 16 * leaves as u64, "{entries} entries in {leaves} leaves");
    }
    tree.check(&ids).expect("a sound tree");
}

/// Entries leave a run anywhere and come to its end, as in a board that is always updated.
#[test]
fn few_entries_of_runs_move_to_other_leaves() {
    const SCORES: u64 = 20;
    const MEMBERS: u32 = 20 * 64 * 20;
    let (mut tree, ids) = (Tree::<64, 64>::new(2), Ids(Vec::new()));
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut now = 0;
    let mut edit = |handle: u32, score: u64| {
        now += 1;
        Edit { handle: Handle(handle), new: Some(Words::from_slice(&[score, now])) }
    };
    for handle in 0..MEMBERS {
        tree.apply(&[edit(handle, random(SCORES))], &ids);
    }
    let mut before = 0;
    for round in 0..6 {
        if round == 3 {
            before = structure(&tree);
        }
        for _ in 0..MEMBERS / 100 {
            let handles: BTreeSet<u32> = (0..100).map(|_| random(u64::from(MEMBERS)) as u32).collect();
            let edits: Vec<Edit> = handles.into_iter().map(|handle| edit(handle, random(SCORES))).collect();
            tree.apply(&edits, &ids);
        }
    }
    tree.check(&ids).expect("a sound tree");
    assert!(tree.is_filled());
    // A leaf that shares or merges counts twice or so. Before leaves at the ends of runs were left to fill,
    // it was one in eight updates; now it is one in sixteen.
    let (changes, updates) = (structure(&tree) - before, u64::from(3 * MEMBERS));
    assert!(changes < updates / 12, "{changes} changes of structure in {updates} updates");
    assert!(tree.leaf_count() * 40 < MEMBERS as usize, "{} leaves", tree.leaf_count());
}

#[test]
fn bulk_loads_of_every_size_equal_single_insertions() {
    for len in 0..HANDLES {
        let mut bench = Bench::<4, 4>::new(2);
        for handle in 0..len {
            bench.insert_into_model(&[u64::from(handle % 7), 3], handle);
        }
        let entries = entries_of_model(&bench.model);
        let sorted = entries.iter().map(|(words, handle)| (Words::from_slice(words), Handle(*handle)));
        bench.tree = Tree::from_sorted(2, sorted);
        bench.compare();
        bench.run(&Op::Reload);
        bench.compare();
    }
}

/// A store after heavy deletions: few pages, far apart. Their ids stay, and the gaps are used again.
#[test]
fn pages_keep_their_ids_and_gaps_are_filled() {
    let page = |value: u64, handle: u32| (vec![vec![value; 1], vec![0; 1]], vec![handle]);
    let stored = BTreeMap::from([(5000, page(1, 1)), (3, page(2, 2)), (100_000, page(3, 3))]);
    let mut bench = Bench::<4, 4>::new(2);
    bench.tree = load(2, &stored, &bench.ids).expect("a tree");
    for (value, handle) in [(1, 1), (2, 2), (3, 3)] {
        bench.insert_into_model(&[value, 0], handle);
    }
    bench.stored = stored;
    bench.tree.mark_all_dirty();
    bench.run(&Op::BeginCapture);
    for handle in 4..30 {
        bench.run(&Op::Insert(handle, vec![u64::from(handle), 0]));
    }
    bench.run(&Op::CaptureNext(usize::MAX, false));
    assert_eq!(bench.stored.keys().copied().collect::<Vec<_>>(), [3, 5000, 100_000]);
    bench.tree.check(&bench.ids).expect("sound, though the loaded leaves are nearly empty");
    bench.run(&Op::BeginCapture);
    bench.run(&Op::CaptureNext(usize::MAX, false));
    assert!(bench.stored.keys().filter(|&&page| page < 20).count() > 4, "low ids first");
}

#[test]
fn pages_that_are_no_tree_are_refused() {
    let ids = Ids((0..100).collect());
    let page = |entries: &[(u64, u32)]| -> Page {
        let words = entries.iter().map(|entry| entry.0).collect();
        (vec![words, vec![0; entries.len()]], entries.iter().map(|entry| entry.1).collect())
    };
    let error = |pages: Vec<(u32, Page)>| load::<4, 4>(2, &pages.into_iter().collect(), &ids).err();
    assert_eq!(error(vec![(0, page(&[(1, 1), (1, 2)])), (1, page(&[(1, 3)]))]), None);
    assert_eq!(error(vec![(0, page(&[(2, 1), (1, 2)]))]), Some(PageError::Order { page: 0, at: 1 }));
    assert_eq!(error(vec![(0, page(&[(1, 2), (1, 1)]))]), Some(PageError::Order { page: 0, at: 1 }));
    assert_eq!(
        error(vec![(0, page(&[(1, 1), (3, 2)])), (1, page(&[(2, 3)]))]),
        Some(PageError::Overlap { left: 0, right: 1 })
    );
    let handle = Handle(1);
    assert_eq!(
        error(vec![(0, page(&[(1, 1)])), (1, page(&[(2, 1)]))]),
        Some(PageError::RepeatedHandle { page: 1, handle })
    );
    assert_eq!(error(vec![(0, page(&[]))]), Some(PageError::Length { page: 0, len: 0 }));
    let five: Vec<_> = (0..5).map(|n| (u64::from(n), n)).collect();
    assert_eq!(error(vec![(0, page(&five))]), Some(PageError::Length { page: 0, len: 5 }));
    assert_eq!(error(vec![(u32::MAX, page(&[(1, 1)]))]), Some(PageError::PageNumber { page: u32::MAX }));
    assert_eq!(error(vec![(0, page(&[(1, u32::MAX)]))]), Some(PageError::InvalidHandle { page: 0 }));
    let mut loader = PageLoader::<4, 4>::new(2);
    let add = |loader: &mut PageLoader<4, 4>| loader.add_page(7, 1, |_| Ok::<_, PageError>(()));
    assert_eq!((add(&mut loader), add(&mut loader)), (Ok(()), Err(PageError::RepeatedPage { page: 7 })));
}

#[test]
fn levels_are_those_of_inner_nodes() {
    let entries = |count: u32| (0..count).map(|n| (Words::from_slice(&[u64::from(n)]), Handle(n)));
    let levels = [0, 4, 5, 16, 17, 100].map(|count| Tree::<4, 4>::from_sorted(1, entries(count)).levels());
    assert_eq!(levels, [0, 0, 1, 1, 2, 3]);
}

/// In blocks, whose bytes are copied, and in a page of several columns that has none.
#[test]
fn what_is_noted_for_a_pre_image_is_what_it_takes() {
    for columns in [1, 3, 8] {
        let (mut tree, ids) = (Tree::<64, 64>::new(columns), Ids(Vec::new()));
        for nth in 0..3_000_u32 {
            let words: Vec<u64> = (0..columns).map(|column| u64::from(nth) << (8 * column)).collect();
            tree.insert(&words, Handle(nth), &ids);
        }
        let Form::Large(tree) = &mut tree.form else { panic!("three thousand entries are not a small tree") };
        let mut noted = PreImagePieces::default();
        tree.note_pre_image(3, &mut noted);
        assert_eq!(noted.bytes(), 0, "nothing captures");
        tree.begin_capture();
        // The list of groups is taken once, and not for each pre-image: by one of a later group.
        tree.touch(20);
        tree.note_pre_image(3, &mut noted);
        let without = tree.pre_image_bytes();
        tree.touch(3);
        assert_eq!(noted.bytes(), tree.pre_image_bytes() - without, "{columns} columns");
        let mut again = PreImagePieces::default();
        tree.note_pre_image(3, &mut again);
        assert_eq!(again.bytes(), 0, "it is set aside already");
    }
}

#[test]
fn warming_notes_leaves_that_will_be_set_aside_and_their_memory_is_taken_and_freed() {
    let entries = (0..1_000_u32).map(|nth| (Words::from_slice(&[u64::from(nth)]), Handle(nth)));
    let (mut tree, ids) = (Tree::<64, 64>::from_sorted(1, entries), Ids(Vec::new()));
    let noted = |tree: &Tree<64, 64>| {
        let mut pieces = PreImagePieces::default();
        let moves = Edit { handle: Handle(5), new: Some(Words::from_slice(&[900])) };
        tree.warm(&[moves], &ids, &mut pieces);
        pieces
    };
    tree.mark_all_dirty();
    assert_eq!(noted(&tree).bytes(), 0, "nothing captures");
    tree.begin_capture();
    let pieces = noted(&tree);
    assert!(pieces.bytes() > 0);
    let ((), allocated) = crate::allocated::count(|| pieces.take_and_free());
    // Of the old leaf and the new one: its block, the copy's struct and its group.
    assert!(allocated.allocations >= 6 && allocated.held <= 0, "{allocated:?}");
}
