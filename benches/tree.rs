//! What the tree costs, by itself: no storage, no queue. `cargo bench --bench tree [-- entries...]`.
//!
//! Prints `name entries value unit` lines, and `RATIO tree_rank_vs_sorted_array_… value`: the time of a rank
//! here over that of two binary searches in one sorted array of the same scores.

#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    reason = "a bench divides counts into microseconds, over numbers it chose itself"
)]

use std::cmp::Ordering;
use std::hint::black_box;
use std::time::Instant;

use ranktree::tree::{Edit, Handle, MemberOrder, PageError, PageLoader, Tree, Words};

/// The service's, which asks the system for memory in pages of 2 MiB.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct ByHandle;

impl MemberOrder for ByHandle {
    fn compare(&self, _: &[u64], a: Handle, b: Handle) -> Ordering {
        a.cmp(&b)
    }
}

/// `SplitMix64`: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

fn words(score: u64, tie: u64) -> Words {
    Words::from_slice(&[score, tie])
}

/// Microseconds per call.
fn time_us(calls: u64, mut call: impl FnMut(u64)) -> f64 {
    let start = Instant::now();
    for n in 0..calls {
        call(n);
    }
    start.elapsed().as_secs_f64() * 1e6 / calls as f64
}

/// Scores: any 64-bit number, or one of a few thousand, or a million members tied at one score.
#[derive(Clone, Copy, PartialEq)]
enum Spread {
    Distinct,
    Tied,
}

fn score(spread: Spread, random: &mut Random) -> u64 {
    match spread {
        Spread::Distinct => random.next(),
        Spread::Tied => random.below(1000),
    }
}

fn run<const LEAF: usize, const INNER: usize>(entries: u64, spread: Spread, updates: u64) {
    let tag = format!("{LEAF}/{INNER}{}", if spread == Spread::Tied { "/tied" } else { "" });
    let line = |name: &str, value: f64, unit: &str| println!("{name} {entries} {value:.3} {unit} [{tag}]");
    let mut random = Random(7);
    let mut sorted: Vec<(Words, Handle)> = (0..entries as u32)
        .map(|handle| (words(score(spread, &mut random), random.next()), Handle(handle)))
        .collect();
    sorted.sort_unstable();
    let start = Instant::now();
    let mut tree = Tree::<LEAF, INNER>::from_sorted(2, sorted.iter().copied());
    line("tree_from_sorted", start.elapsed().as_secs_f64(), "s");
    drop(sorted);

    let batch = 1000;
    let mut edits = Vec::with_capacity(batch);
    let mut tie = 0;
    let mut total = 0.0;
    let mut batches = Vec::new();
    for _ in 0..updates / batch as u64 {
        edits.clear();
        let mut handles: Vec<u32> = (0..batch).map(|_| random.below(entries) as u32).collect();
        handles.sort_unstable();
        handles.dedup();
        // Jobs come in no order of handles.
        for at in (1..handles.len()).rev() {
            handles.swap(at, random.below(at as u64 + 1) as usize);
        }
        for handle in handles {
            tie += 1;
            let new = Some(words(score(spread, &mut random), tie));
            edits.push(Edit { handle: Handle(handle), new });
        }
        let start = Instant::now();
        tree.apply(&edits, &ByHandle);
        let elapsed = start.elapsed().as_secs_f64();
        total += elapsed;
        batches.push(elapsed * 1e6);
    }
    line("tree_apply", total * 1e6 / updates as f64, "us");
    batches.sort_by(f64::total_cmp);
    // The mean suffers from whatever else the machine does; the median batch much less.
    line("tree_apply_median", batches[batches.len() / 2] / batch as f64, "us");
    line("tree_apply_p10", batches[batches.len() / 10] / batch as f64, "us");
    line("tree_apply_longest_batch", batches[batches.len() - 1], "us");
    line("tree_fill", entries as f64 / (tree.leaf_count() * LEAF) as f64, "of 1");
    line("tree_bytes", tree.bytes() as f64 / entries as f64, "B/entry");
    if std::env::args().any(|argument| argument == "apply") {
        return;
    }

    let calls = 500_000;
    let rank = time_us(calls, |_| {
        black_box(tree.count_range(&[score(spread, &mut random)]));
    });
    line("tree_rank", rank * 1e3, "ns");
    let index = time_us(calls, |_| {
        black_box(tree.index_of(Handle(random.below(entries) as u32)));
    });
    line("tree_position", index * 1e3, "ns");
    let standing = time_us(calls, |_| {
        black_box(tree.standing(Handle(random.below(entries) as u32), 1));
    });
    line("tree_standing", standing * 1e3, "ns");
    let get = time_us(calls, |_| {
        black_box(tree.get(Handle(random.below(entries) as u32)));
    });
    line("tree_get", get, "us");
    let page = time_us(calls / 10, |_| {
        for entry in tree.cursor_at(random.below(entries)).take(100) {
            black_box(entry);
        }
    });
    line("tree_page", page * 1e3, "ns");
    // The baseline is what cannot be updated: all entries in one sorted array.
    let array: Vec<u64> = tree.cursor_at(0).map(|(_, words)| words.as_slice()[0]).collect();
    let searched = time_us(calls, |_| {
        let key = score(spread, &mut random);
        black_box((array.partition_point(|word| *word < key), array.partition_point(|word| *word <= key)));
    });
    line("sorted_array_rank", searched * 1e3, "ns");
    println!("RATIO tree_rank_vs_sorted_array_{entries}_{tag} {:.2}", rank / searched);
    capture_and_load(tree, &line);
}

/// Takes a tree's pages as a checkpoint does, and makes it anew from them as a start does.
fn capture_and_load<const LEAF: usize, const INNER: usize>(
    mut tree: Tree<LEAF, INNER>,
    line: &impl Fn(&str, f64, &str),
) {
    let entries = tree.len();
    tree.mark_all_dirty();
    tree.begin_capture();
    let mut pages = Vec::new();
    let start = Instant::now();
    while tree.capture_next(1000, &mut |captured| {
        let Some(entries) = captured.entries else { return };
        let columns: Vec<Vec<u64>> = (0..2).map(|column| entries.column(column).collect()).collect();
        pages.push((captured.page, columns, entries.handles().collect::<Vec<u32>>()));
    }) {}
    line("tree_capture", start.elapsed().as_secs_f64(), "s");
    drop(tree);
    let start = Instant::now();
    let mut loader = PageLoader::<LEAF, INNER>::new(2);
    for (page, columns, handles) in &pages {
        loader
            .add_page(*page, handles.len(), |mut slots| {
                slots.column_mut(0).copy_from_slice(&columns[0]);
                slots.column_mut(1).copy_from_slice(&columns[1]);
                slots.handles_mut().copy_from_slice(handles);
                Ok::<_, PageError>(())
            })
            .expect("pages of a tree");
    }
    let tree = loader.finish(&ByHandle).expect("pages of a tree");
    line("tree_load", start.elapsed().as_secs_f64(), "s");
    assert_eq!(tree.len(), entries);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if arguments.first().is_some_and(|argument| argument == "fanouts") {
        let (entries, updates) = (10_000_000, 3_000_000);
        run::<32, 32>(entries, Spread::Distinct, updates);
        run::<32, 64>(entries, Spread::Distinct, updates);
        run::<32, 128>(entries, Spread::Distinct, updates);
        run::<64, 32>(entries, Spread::Distinct, updates);
        run::<64, 64>(entries, Spread::Distinct, updates);
        run::<64, 128>(entries, Spread::Distinct, updates);
        run::<128, 64>(entries, Spread::Distinct, updates);
        return;
    }
    // Three times as many updates as entries, unless told: fill has settled by then.
    let updates = arguments.iter().find_map(|argument| argument.strip_prefix("updates=")?.parse().ok());
    let mut sizes: Vec<u64> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![1_000_000, 10_000_000];
    }
    for entries in sizes {
        for spread in [Spread::Distinct, Spread::Tied] {
            run::<64, 64>(entries, spread, updates.unwrap_or(3 * entries));
        }
    }
}
