//! Loads a shard from its directory: the last checkpoint, then every delta after it.
//!
//! Knows: which damage is repaired (that of tree pages, from member pages), and which is refused (any other).
//! Must not know: queues. The caller compares the applied sequence with its queue.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::state::{
    Applied, Board, Definitions, Dictionary, Dropped, ENTRIES_PER_PAGE, Extra, MEMBERS_PER_PAGE, Members,
    Shard, ShardTime, TreeId, Unlisted, WindowTree,
};
use crate::storage::codec::{self, EntriesPage, Manifest, ManifestBoard, Undecodable};
use crate::storage::error::StorageError;
use crate::storage::keys;
use crate::storage::replay::{ExpectedCounts, replay};
use crate::storage::store::{Progress, Store};
use crate::storage::walk::TreeWalk;
use crate::tree::{Edit, Handle, PageError, PageLoader, Tree, Words};
use crate::types::{BoardName, Sequence, ShardId, count};

/// Entries put into a tree at once while it is rebuilt.
const REBUILD_BATCH: usize = 4_096;

/// The records that trees are loaded from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreesFrom {
    /// From tree pages. A tree whose pages are damaged or missing is rebuilt from member pages.
    Pages,
    /// From member pages only. Tree pages are not read.
    Members,
}

/// A shard as it was loaded from its directory.
pub struct Recovered {
    pub shard: Shard,
    /// The applied sequence of the checkpoint; 0 without one.
    pub checkpoint: Sequence,
    /// Deltas replayed after the checkpoint.
    pub deltas: u64,
    /// Changes in them.
    pub changes: u64,
    /// Boards whose trees were rebuilt from member pages, and why.
    pub rebuilt: Vec<(BoardName, String)>,
    /// Descriptions of rebuilt trees that miss some of their member pages.
    pub incomplete_trees: Vec<String>,
}

/// Loads a shard.
///
/// # Errors
/// When anything but a tree page is damaged: members, deltas or their order. Also when a tree page is
/// damaged, and the tree cannot be rebuilt because some of its member pages are missing.
pub fn recover(
    store: &Store,
    trees_from: TreesFrom,
    progress: Progress<'_>,
) -> Result<Recovered, StorageError> {
    let Loaded { mut recovered, mut totals, copied_through } = load_checkpoint(store, trees_from, progress)?;
    (recovered.deltas, recovered.changes) = replay(store, &mut recovered.shard, &mut totals, progress)?;
    let shard = &mut recovered.shard;
    if copied_through > shard.applied.sequence {
        return Err(store.damaged(format!(
            "its checkpoint contains effects of messages up to {copied_through}, but its log ends at {}",
            shard.applied.sequence
        )));
    }
    let time = store.meta()?.map_or_else(|| ShardTime::from(shard.applied.timestamp), |meta| meta.time());
    shard.note_time(time);
    // Handles without entries are freed only after the replay. A delta may name a member that has no entry in
    // the checkpoint. The replay must then find the member under its old handle. With another handle, pages
    // that contain the old one would not be marked dirty.
    for handle in 0..shard.members.handle_space() {
        shard.members.forget_unless_known(Handle(handle));
    }
    shard.note_all_expiring();
    recovered.incomplete_trees = incomplete_trees(shard, &totals);
    if let (TreesFrom::Pages, Some(what)) = (trees_from, recovered.incomplete_trees.first()) {
        return Err(store.damaged(what));
    }
    Ok(recovered)
}

/// Describes the rebuilt trees whose number of entries is wrong. A member page may have been copied at any
/// moment after the checkpoint began, so only the count after the replay shows whether a page is missing.
fn incomplete_trees(shard: &Shard, totals: &ExpectedCounts) -> Vec<String> {
    let mut incomplete = Vec::new();
    for (id, total) in totals {
        // If the tree does not exist, its board was dropped after the checkpoint.
        if let Some(tree) = shard.tree(*id).filter(|tree| tree.total() != *total) {
            let (board, found) = (&tree.board, tree.total());
            incomplete.push(format!(
                "board {board} has {total} entries, but its member pages hold {found}: some pages are missing"
            ));
        }
    }
    incomplete
}

/// What was loaded from a checkpoint.
struct Loaded {
    recovered: Recovered,
    /// For each rebuilt tree, its number of entries when the checkpoint began.
    totals: ExpectedCounts,
    /// The last message whose effects any record of the checkpoint may contain.
    copied_through: Sequence,
}

fn load_checkpoint(
    store: &Store,
    trees_from: TreesFrom,
    progress: Progress<'_>,
) -> Result<Loaded, StorageError> {
    let Some(bytes) = store.get_checkpoint(&keys::manifest())? else {
        let shard = Shard::new(store.shard());
        let recovered = Recovered {
            shard,
            checkpoint: Sequence(0),
            deltas: 0,
            changes: 0,
            rebuilt: Vec::new(),
            incomplete_trees: Vec::new(),
        };
        return Ok(Loaded { recovered, totals: ExpectedCounts::new(), copied_through: Sequence(0) });
    };
    let mut manifest = codec::decode_manifest(&bytes).map_err(|error| store.damaged(error))?;
    let mut definitions = Definitions::default();
    for board in &mut manifest.boards {
        board.definition = definitions.share(&board.definition);
    }
    let manifest = manifest;
    // The dictionary and the trees are read in parallel. The trees are put in order by the dictionary's ids
    // while the ids are indexed.
    let dictionary = OnceLock::new();
    let (index, loaded) = std::thread::scope(|scope| {
        let loaded = scope.spawn(|| load_trees(store, &manifest, trees_from, &dictionary, progress));
        let index = match load_dictionary(store, progress) {
            Ok(read) => Ok(dictionary.get_or_init(|| Some(read)).as_ref().map(Dictionary::index)),
            Err(error) => {
                // The thread that loads the trees waits for the dictionary, and must not wait forever.
                dictionary.get_or_init(|| None);
                Err(error)
            }
        };
        (index, loaded.join().expect("loading trees does not panic"))
    });
    let index = index?.expect("an error of the dictionary was returned above");
    let dictionary =
        dictionary.into_inner().flatten().expect("an error of the dictionary was returned above");
    let mut members = dictionary.into_members(index);
    let mut boards = BTreeMap::new();
    let mut trees = BTreeMap::new();
    let (mut rebuilt, mut totals) = (Vec::new(), ExpectedCounts::new());
    let mut loaded = loaded?;
    for board in &manifest.boards {
        let Some(LoadedTree { tree, reason }) = loaded.remove(&board.all) else {
            return Err(
                store.damaged(format!("two boards in its manifest have the same tree {}", board.all.0))
            );
        };
        if let Some(reason) = reason {
            rebuilt.push((board.name.clone(), reason));
            totals.insert(board.all, board.entries);
        }
        refer_to_known(board.all, &tree, &mut members);
        let definition = Arc::clone(&board.definition);
        boards
            .insert(board.name.clone(), Board { definition, incarnation: board.incarnation, all: board.all });
        trees.insert(board.all, tree);
    }
    let shard = restore(store.shard(), &manifest, members, boards, trees);
    let recovered = Recovered {
        shard,
        checkpoint: manifest.applied.sequence,
        deltas: 0,
        changes: 0,
        rebuilt,
        incomplete_trees: Vec::new(),
    };
    Ok(Loaded { recovered, totals, copied_through: manifest.copied_through })
}

struct LoadedTree {
    tree: WindowTree,
    /// Why the tree was rebuilt from member pages, if it was.
    reason: Option<String>,
}

/// Loads the manifest's trees. Returns none if the dictionary could not be read, because trees are ordered by
/// it.
fn load_trees(
    store: &Store,
    manifest: &Manifest,
    trees_from: TreesFrom,
    dictionary: &OnceLock<Option<Dictionary>>,
    progress: Progress<'_>,
) -> Result<BTreeMap<TreeId, LoadedTree>, StorageError> {
    let mut trees = BTreeMap::new();
    // Boards are visited in the order of their records on disk, so that one scan reads them all.
    let mut boards: Vec<&ManifestBoard> = manifest.boards.iter().collect();
    boards.sort_by_key(|board| board.all);
    let [mut pages_walk, mut extras_walk] =
        [keys::TREE_PAGE, keys::EXTRAS_PAGE].map(|kind| TreeWalk::new(store, kind));
    for board in boards {
        let pages = match trees_from {
            TreesFrom::Pages => read_pages(&mut pages_walk, board, progress),
            TreesFrom::Members => {
                Err("its pages were not read, because the tree was to be rebuilt from members".to_owned())
            }
        };
        let Some(dictionary) = dictionary.wait() else { return Ok(BTreeMap::new()) };
        let (tree, reason) = match pages.and_then(|loader| finish_pages(loader, board, dictionary)) {
            Ok(tree) => (tree, None),
            Err(reason) => (rebuild_tree(store, board, dictionary, progress)?, Some(reason)),
        };
        let mut tree = WindowTree::from_tree(board.name.clone(), Arc::clone(&board.definition), tree);
        load_extras(&mut extras_walk, board.all, &mut tree, dictionary)?;
        trees.insert(board.all, LoadedTree { tree, reason });
    }
    Ok(trees)
}

fn refer_to_known(id: TreeId, tree: &WindowTree, members: &mut Members) {
    for_each_listed(&tree.tree, members.handle_space(), |handle| members.add_tree(handle, id));
    tree.unlisted().for_each(|handle| members.add_tree(handle, id));
}

fn restore(
    id: ShardId,
    manifest: &Manifest,
    members: Members,
    boards: BTreeMap<BoardName, Board>,
    trees: BTreeMap<TreeId, WindowTree>,
) -> Shard {
    let applied: Applied = manifest.applied;
    let dropped = Dropped::new(manifest.dropped.iter().cloned(), manifest.forgotten, manifest.latest);
    Shard::restore(id, applied, members, boards, trees, dropped, manifest.next_tree)
}

fn load_dictionary(store: &Store, progress: Progress<'_>) -> Result<Dictionary, StorageError> {
    let mut dictionary = Dictionary::default();
    let mut count = 0;
    store.scan_checkpoint(&[keys::DICTIONARY_PAGE], |key, value| {
        let mut order = PageOrder::new("dictionary page", key, MEMBERS_PER_PAGE);
        let mut misplaced = Ok(());
        codec::decode_dictionary(value, |handle, id| {
            misplaced = std::mem::replace(&mut misplaced, Ok(())).and_then(|()| order.next(handle));
            if misplaced.is_ok() {
                dictionary.add(handle, id);
            }
            count += 1;
        })?;
        misplaced?;
        progress("reading members", count, 0);
        Ok(())
    })?;
    Ok(dictionary)
}

/// Reads a tree's pages without putting them in order. An error is the reason why they are not a tree.
fn read_pages(
    walk: &mut TreeWalk<'_>,
    board: &ManifestBoard,
    progress: Progress<'_>,
) -> Result<PageLoader, String> {
    let columns = board.definition.columns();
    let mut loader = PageLoader::new(columns);
    let mut entries = 0;
    let read = walk.records_of(board.all, |key, value| {
        let page = codec::decode_entries(value)?;
        let fail = |reason: String| Undecodable { kind: "tree page", reason };
        let number = keys::last_u32(key).ok_or_else(|| fail("its key is too short".to_owned()))?;
        if page.columns.len() != columns {
            return Err(fail(format!(
                "page {number} has {} columns, which is not the board's number of words",
                page.columns.len()
            )));
        }
        let added = loader.add_page::<PageError>(number, page.handles.len(), |mut slots| {
            slots.handles_mut().copy_from_slice(&page.handles);
            for (at, column) in page.columns.iter().enumerate() {
                slots.column_mut(at).copy_from_slice(column);
            }
            Ok(())
        });
        added.map_err(|error| fail(error.to_string()))?;
        entries += count(page.handles.len());
        progress("reading tree pages", entries, board.entries);
        Ok(())
    });
    match read {
        // All of this tree's entries were read. The record that could not be read belongs to a later tree.
        Err(_) if entries == board.entries && walk.is_cut_off() => Ok(loader),
        read => read.map(|()| loader).map_err(|error| error.to_string()),
    }
}

fn finish_pages(loader: PageLoader, board: &ManifestBoard, dictionary: &Dictionary) -> Result<Tree, String> {
    let tree = loader.finish(dictionary).map_err(|error| error.to_string())?;
    if tree.len() != board.entries {
        return Err(format!("its pages hold {} entries, not {}", tree.len(), board.entries));
    }
    let mut known = 0;
    for_each_listed(&tree, dictionary.handle_space(), |handle| known += u64::from(dictionary.has_id(handle)));
    if known < tree.len() {
        return Err(format!("its pages name {} handles that no member has", tree.len() - known));
    }
    Ok(tree)
}

/// Calls `each` for the members listed in a tree. If the tree lists many of the shard's members, they are
/// visited by handle: everything that is kept by handle is then read from memory in order.
fn for_each_listed(tree: &Tree, handle_space: u32, mut each: impl FnMut(Handle)) {
    if tree.len() * 4 >= u64::from(handle_space) {
        (0..handle_space).map(Handle).filter(|handle| tree.contains(*handle)).for_each(each);
    } else {
        tree.cursor_at(0).for_each(|(handle, _)| each(handle));
    }
}

/// Rebuilds a tree from member pages.
fn rebuild_tree(
    store: &Store,
    board: &ManifestBoard,
    dictionary: &Dictionary,
    progress: Progress<'_>,
) -> Result<Tree, StorageError> {
    let columns = board.definition.columns();
    let mut tree = Tree::new(columns);
    let mut edits = Vec::with_capacity(REBUILD_BATCH);
    let mut done = 0;
    let prefix = keys::of_tree(keys::MEMBER_PAGE, board.all);
    store.scan_checkpoint(&prefix, |key, value| {
        let page = codec::decode_entries(value)?;
        let mut order = PageOrder::new("member page", key, ENTRIES_PER_PAGE);
        page.handles.iter().try_for_each(|handle| order.next(Handle(*handle)))?;
        if let Some(handle) = page.handles.iter().find(|handle| !dictionary.has_id(Handle(**handle))) {
            let reason = format!("it names handle {handle}, which no member has");
            return Err(Undecodable { kind: "member page", reason });
        }
        if page.columns.len() != columns {
            let reason = format!("it has {} columns, not {columns}", page.columns.len());
            return Err(Undecodable { kind: "member page", reason });
        }
        edits.extend(edits_of(&page));
        done += count(page.handles.len());
        if edits.len() >= REBUILD_BATCH {
            tree.apply(&edits, dictionary);
            edits.clear();
        }
        progress("rebuilding the tree from members", done, board.entries);
        Ok(())
    })?;
    tree.apply(&edits, dictionary);
    tree.mark_all_dirty();
    Ok(tree)
}

/// Checks that a page's handles are in the range of its number, ascending, and each there once. Otherwise a
/// damaged handle could make the loading reserve memory for four billion members.
struct PageOrder {
    kind: &'static str,
    least: u64,
    past: u64,
}

impl PageOrder {
    fn new(kind: &'static str, key: &[u8], per_page: u32) -> Self {
        let least = u64::from(keys::last_u32(key).unwrap_or(u32::MAX)) * u64::from(per_page);
        Self { kind, least, past: least + u64::from(per_page) }
    }

    fn next(&mut self, handle: Handle) -> Result<(), Undecodable> {
        let number = u64::from(handle.0);
        if !(self.least..self.past).contains(&number) || handle.0 == u32::MAX {
            let reason =
                format!("it names handle {number}, which does not belong to this page or is out of order");
            return Err(Undecodable { kind: self.kind, reason });
        }
        self.least = number + 1;
        Ok(())
    }
}

/// The entries of a member page.
fn edits_of(page: &EntriesPage) -> impl Iterator<Item = Edit> {
    page.handles.iter().enumerate().filter_map(|(at, handle)| {
        let handle = Handle(*handle);
        let mut words = Words::new();
        for column in &page.columns {
            words.push(*column.get(at)?);
        }
        Some(Edit { handle, new: Some(words) })
    })
}

fn load_extras(
    walk: &mut TreeWalk<'_>,
    id: TreeId,
    tree: &mut WindowTree,
    dictionary: &Dictionary,
) -> Result<(), StorageError> {
    let mut extras = Vec::new();
    let tie_break_times = OnceCell::new();
    walk.records_of(id, |key, value| {
        let mut order = PageOrder::new("extras page", key, ENTRIES_PER_PAGE);
        extras.clear();
        codec::decode_extras(value, |handle, extra| {
            order.next(handle)?;
            check_extra(handle, &extra, tree, dictionary)?;
            extras.push((handle, extra));
            Ok(())
        })?;
        let tie_break_times = tie_break_times.get_or_init(|| tree.tie_break_times(dictionary.handle_space()));
        tree.load_extras(&extras, tie_break_times.as_ref());
        Ok(())
    })
}

fn check_extra(
    handle: Handle,
    extra: &Extra,
    tree: &WindowTree,
    dictionary: &Dictionary,
) -> Result<(), Undecodable> {
    let fail = |reason: String| Err(Undecodable { kind: "extras page", reason });
    match &extra.unlisted {
        _ if !dictionary.has_id(handle) => fail(format!("it names handle {}, which no member has", handle.0)),
        Some(Unlisted::Hidden(words)) if words.as_slice().len() != tree.tree.columns() => {
            fail("its number of words is not that of its board".to_owned())
        }
        _ => Ok(()),
    }
}

/// Deletes the tree pages of boards whose trees were rebuilt, because they do not match any more, and marks
/// the trees dirty, so that the next checkpoint writes all of their pages.
pub fn mark_rebuilt(store: &Store, shard: &mut Shard, rebuilt: &[BoardName]) -> Result<(), StorageError> {
    for name in rebuilt {
        let Some(id) = shard.board(name.as_str()).map(|board| board.all) else { continue };
        crate::storage::checkpoint::forget_tree_pages(store, id)?;
        shard.with_tree(id, |tree| tree.tree.mark_all_dirty());
    }
    Ok(())
}
