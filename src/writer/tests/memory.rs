//! What boards and members cost in memory, counted by the allocator: as many bytes on every machine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::allocated::{self, Allocated};
use crate::board::{Definition, Ties};
use crate::state::{
    BoardEvent, Change, DirtyEntries, Entry, EntryState, Incarnation, Shard, Step, TreeId, WindowTree,
};
use crate::storage::Checkpoint;
use crate::types::{BoardName, MemberId, Score, ShardId, Timestamp, count, shard_of};
use crate::writer::{RegisteredBoard, Registry};

const BOARDS: u32 = 100_000;
const MEMBERS_PER_BOARD: u32 = 10;

/// What a node holds of boards and members.
struct Node {
    registry: Registry,
    shards: Vec<Shard>,
}

impl Node {
    fn new(shards: u16) -> Self {
        Self {
            registry: Registry::new(true),
            shards: (0..shards).map(|id| Shard::new(ShardId(id))).collect(),
        }
    }

    /// A board with so many members who are on no other one, created as a job for each of them would.
    fn create(&mut self, board: u32, members: u32) {
        let name = BoardName::new(&format!("match-{board:010}")).expect("a board's name");
        let known = self.registry.create_default(&name).expect("there is room");
        let shards = u16::try_from(self.shards.len()).expect("few shards");
        for shard in &mut self.shards {
            let ids = (0..members).map(|member| format!("{:012}", board * members + member));
            let ids = ids.map(|id| MemberId::new(id).expect("a member's id"));
            let ids: Vec<MemberId> = ids.filter(|id| shard_of(id, shards) == shard.id).collect();
            shard.apply(&creation(shard, &name, &known, &ids));
        }
    }

    /// As after a checkpoint that completed: nothing is due.
    fn checkpoint(&mut self) {
        for shard in &mut self.shards {
            drop(shard.members.begin_checkpoint());
            shard.begin_joining();
            loop {
                let (joined, more) = shard.join_some(1_000);
                for joined in joined {
                    shard.with_tree(joined.tree, |tree| while tree.tree.capture_next(64, &mut |_| {}) {});
                }
                if !more {
                    break;
                }
            }
            shard.members.complete_checkpoint();
        }
    }
}

/// The step in which a board comes with its first members. Every shard reads the definition from a message of
/// its own.
fn creation(shard: &Shard, board: &BoardName, known: &RegisteredBoard, ids: &[MemberId]) -> Step {
    let definition = Arc::new(Definition::clone(&known.definition));
    let step = arrivals(shard, shard.next_tree(), &definition, ids, None);
    let incarnation = known.incarnation;
    Step {
        events: vec![BoardEvent::Define { board: board.clone(), incarnation, number: None, definition }],
        ..step
    }
}

/// The step in which new members get entries.
fn arrivals(
    shard: &Shard,
    tree: TreeId,
    definition: &Definition,
    ids: &[MemberId],
    version: Option<u64>,
) -> Step {
    let change = |(nth, id): (usize, &MemberId)| {
        let number = i64::try_from(nth).expect("few");
        let at = Timestamp::from_micros(1_700_000_000_000_000 + number).expect("a time");
        let score = Score::new(&[number * 7 % 5]).expect("a score");
        let words = definition.entry_words(&score, at, id.as_bytes());
        let state = EntryState::Listed(words);
        let after = Entry { state, updated_at: at, version, has_metadata: false };
        Change { tree, handle: shard.members.nth_next_handle(nth), after: Some(after) }
    };
    Step {
        added: ids.iter().map(|id| id.as_bytes().into()).collect(),
        changes: ids.iter().enumerate().map(change).collect(),
        ..Step::default()
    }
}

fn bytes_per(allocated: Allocated, things: u32) -> i64 {
    allocated.held / i64::from(things)
}

#[test]
fn an_empty_board_costs_a_shard_at_most_208_bytes() {
    let mut node = Node::new(1);
    node.create(BOARDS, 1);
    let boards = 10_000;
    let ((), all) = allocated::count(|| (0..boards).for_each(|board| node.create(board, 0)));
    node.registry = Registry::new(true);
    let ((), registry) = allocated::count(|| {
        for board in 0..boards {
            let name = BoardName::new(&format!("match-{board:010}")).expect("a board's name");
            drop(node.registry.create_default(&name).expect("there is room"));
        }
    });
    // The name, 32 bytes with its counts, is counted for both: after a start every shard has names of its
    // own.
    let shard = bytes_per(all, boards) - bytes_per(registry, boards) + 32;
    println!("an empty board: {shard} bytes a shard, {} in the registry", bytes_per(registry, boards));
    assert!(shard <= 208, "{shard} bytes");
    assert_eq!(node.shards.iter().map(Shard::board_count).sum::<usize>(), 10_001);
}

#[test]
fn a_hundred_thousand_boards_of_ten_are_within_250_mb_at_150_bytes_an_entry() {
    for (shards, entry_bytes_max) in [(1, 150), (4, 250)] {
        let mut node = Node::new(shards);
        let ((), dirty) =
            allocated::count(|| (0..BOARDS).for_each(|board| node.create(board, MEMBERS_PER_BOARD)));
        let ((), saved) = allocated::count(|| node.checkpoint());
        let entries: u64 = node.shards.iter().flat_map(Shard::trees).map(|(_, tree)| tree.total()).sum();
        assert_eq!(entries, u64::from(BOARDS * MEMBERS_PER_BOARD));
        let counted: usize = node.shards.iter().map(|shard| shard.tree_bytes() + shard.members.bytes()).sum();
        println!(
            "{shards} shards: {} bytes an entry before a checkpoint, {} fewer after it; {} as shards count",
            bytes_per(dirty, BOARDS * MEMBERS_PER_BOARD),
            -bytes_per(saved, BOARDS * MEMBERS_PER_BOARD),
            count(counted) / entries,
        );
        assert!(dirty.held <= 250_000_000, "{} bytes", dirty.held);
        let entry =
            bytes_per(Allocated { held: dirty.held + saved.held, ..saved }, BOARDS * MEMBERS_PER_BOARD);
        assert!(entry <= entry_bytes_max, "{entry} bytes an entry");
        assert_eq!(node.shards.iter().filter_map(|shard| shard.tree(TreeId(0))).count(), usize::from(shards));
    }
}

/// What is done under the lock when a checkpoint begins, fails or completes is as much for 20,000 boards as
/// for ten: nothing is allocated for any of them. Boards join it a slice at a time, and only those with
/// something due hold memory.
#[test]
fn beginning_and_ending_a_checkpoint_costs_the_same_for_any_number_of_boards() {
    let mut begun = Vec::new();
    for boards in [10, 20_000] {
        let mut node = Node::new(1);
        (0..boards).for_each(|board| node.create(board, 2));
        let mut shard = node.shards.pop().expect("it has one");
        let counted = shard.tree_bytes();
        let started = Instant::now();
        let (checkpoint, allocated) = allocated::count(|| Checkpoint::begin(&mut shard));
        let took = started.elapsed();
        begun.push((allocated.allocations, allocated.held));
        let (mut joined, mut slices, mut longest) = (Vec::new(), 0, Duration::ZERO);
        loop {
            let started = Instant::now();
            let (some, more) = shard.join_some(128);
            longest = longest.max(started.elapsed());
            slices += 1;
            assert!(some.len() <= 128);
            joined.extend(some);
            if !more {
                break;
            }
        }
        assert_eq!(joined.len(), usize::try_from(boards).expect("few"));
        assert!(slices <= boards / 128 + 2, "{slices}");
        // What they told moved over, to be counted by the checkpoint; of each, the two pointers to it went.
        let told: usize =
            joined.iter().filter_map(|joined| joined.due.as_deref()).map(DirtyEntries::bytes).sum();
        assert_eq!(shard.tree_bytes() + told + 2 * size_of::<usize>() * joined.len(), counted);
        println!("{boards} boards: begun in {took:?}, slices of up to {longest:?}");
        // Nor does anybody look at other boards than a member's own, or at any for what they hold in memory.
        let member = shard.members.get(b"000000000013").expect("it is there");
        let started = Instant::now();
        let of_member: Vec<TreeId> = shard.members.trees_after(member, None).collect();
        println!("a member's boards in {:?}", started.elapsed());
        assert_eq!(of_member, [TreeId(6)]);
        drop((checkpoint, joined));
        // Nothing changed since: nothing is due but what was never stored.
        let ((), allocated) = allocated::count(|| shard.members.complete_checkpoint());
        assert_eq!(allocated.allocations, 0);
    }
    assert_eq!(begun.first(), begun.last());
}

/// A table of all versions would have to be moved at once when it grows, under the lock.
#[test]
fn a_version_or_a_time_keeps_a_member_within_80_bytes_and_no_step_moves_all_of_them() {
    let entries = 100_000;
    for (ties, version) in [(Ties::First, Some(7)), (Ties::Member, None)] {
        let mut shard = Shard::new(ShardId(0));
        let definition = Arc::new(Definition { ties, ..Definition::default() });
        let known = RegisteredBoard { incarnation: Incarnation(1), definition: Arc::clone(&definition) };
        let board = BoardName::new("b").expect("a board's name");
        shard.apply(&creation(&shard, &board, &known, &[]));
        let mut held = 0;
        for first in (0..entries).step_by(64) {
            let ids = (first..entries.min(first + 64)).map(|number| format!("{number:012}"));
            let ids: Vec<MemberId> = ids.map(|id| MemberId::new(id).expect("a member's id")).collect();
            let step = arrivals(&shard, TreeId(0), &definition, &ids, version);
            let ((), allocated) = allocated::count(|| shard.apply(&step));
            held += allocated.held;
            // 1,024 leaves, which come zeroed from the system.
            assert!(allocated.largest <= 1 << 20, "{} bytes at once, {first} entries", allocated.largest);
        }
        let ((), saved) = allocated::count(|| drop(shard.with_tree(TreeId(0), WindowTree::begin_checkpoint)));
        let entry = (held + saved.held) / i64::from(entries);
        println!("{ties:?} {version:?}: {entry} bytes an entry");
        assert!(entry <= 80, "{ties:?} {version:?}: {entry} bytes an entry");
    }
}
