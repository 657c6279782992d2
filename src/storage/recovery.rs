//! From a directory to a shard in memory: the last checkpoint, then every delta after it.
//!
//! Knows: which parts may be damaged and still be repaired (tree pages, from members), and which may not. Must not know:
//! queues; the caller compares what came back with them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use crate::state::{
    Applied, Board, Change, Definitions, Dictionary, ENTRIES_PER_PAGE, Extra, MEMBERS_PER_PAGE, Members, Shard, Step,
    TreeId, Unlisted, WindowTree,
};
use crate::storage::codec::{self, Delta, EntriesPage, Manifest, ManifestBoard, Undecodable};
use crate::storage::error::StorageError;
use crate::storage::keys;
use crate::storage::store::Store;
use crate::tree::{Edit, Handle, PageError, PageLoader, Tree, Words};
use crate::types::{BoardName, Sequence, ShardId, count};

/// Entries put into a tree at once while it is rebuilt.
const REBUILD_BATCH: usize = 4_096;

/// Where trees come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreesFrom {
    /// Their pages; a tree whose pages are damaged or missing, from members.
    Pages,
    /// Members alone, whatever the pages say.
    Members,
}

/// A shard as its directory has it.
pub struct Recovered {
    pub shard: Shard,
    /// What the checkpoint held; 0 without one.
    pub checkpoint: Sequence,
    /// Deltas replayed after it.
    pub deltas: u64,
    /// Changes in them.
    pub changes: u64,
    /// Boards whose trees had to be made from members, and why.
    pub rebuilt: Vec<(BoardName, String)>,
}

/// Called as work proceeds, with what is being done, and how far: (done, total), 0 for a total not known.
pub type Progress<'a> = &'a (dyn Fn(&str, u64, u64) + Sync);

/// Loads a shard.
///
/// # Errors
/// When anything but a tree page is damaged: members, deltas or their order.
pub fn recover(
    store: &Store,
    trees_from: TreesFrom,
    progress: Progress<'_>,
) -> Result<Recovered, StorageError> {
    let (mut recovered, seen) = load_checkpoint(store, trees_from, progress)?;
    (recovered.deltas, recovered.changes) = replay(store, &mut recovered.shard, progress)?;
    let shard = &mut recovered.shard;
    if seen > shard.applied.sequence {
        return Err(store.damaged(format!(
            "its checkpoint was taken beside messages up to {seen}, but its log ends at {}",
            shard.applied.sequence
        )));
    }
    // Only now: a member that the checkpoint no longer places may be named by a delta, and must be found under its own
    // handle then, or the pages that knew it by that handle would not be due.
    for handle in 0..shard.members.handle_space() {
        shard.members.forget_unless_referred(Handle(handle));
    }
    Ok(recovered)
}

/// Applies the deltas after the shard's applied sequence: how many there were, and how many changes in them.
///
/// # Errors
/// When one is damaged or missing, or the log does not end where its meta record says.
pub fn replay(store: &Store, shard: &mut Shard, progress: Progress<'_>) -> Result<(u64, u64), StorageError> {
    let start = shard.applied.sequence;
    let end = store.meta()?.map_or(0, |meta| meta.applied_sequence);
    if end < start.0 {
        return Err(
            store.damaged(format!("its log ends at {end}, before {start}, which was on disk already"))
        );
    }
    let (mut deltas, mut changes) = (0, 0);
    store.scan_log(&[keys::DELTA], &keys::delta(start.next()), |_, value| {
        let delta = codec::decode_delta(value)?;
        let expected = shard.applied.sequence.next();
        if delta.first > expected {
            return Err(Undecodable {
                kind: "delta",
                reason: format!("messages {expected} to {} are missing before it", delta.first.0 - 1),
            });
        }
        apply_delta(shard, &delta)?;
        deltas += 1;
        changes += count(delta.changes.len());
        progress("replaying deltas", delta.applied.sequence.0 - start.0, end.saturating_sub(start.0));
        Ok(())
    })?;
    let applied = shard.applied.sequence;
    if applied.0 != end {
        return Err(
            store.damaged(format!("its meta record says {end} is applied, but its deltas end at {applied}"))
        );
    }
    Ok((deltas, changes))
}

fn apply_delta(shard: &mut Shard, delta: &Delta) -> Result<(), Undecodable> {
    let mut step = Step { events: delta.events.clone(), applied: delta.applied, ..Step::default() };
    let mut added: HashMap<&[u8], Handle> = HashMap::new();
    for change in &delta.changes {
        let known =
            shard.members.get(&change.member).or_else(|| added.get(change.member.as_slice()).copied());
        let handle = match (known, change.after) {
            (Some(handle), _) => handle,
            // It left, and was not here: what it left is gone already.
            (None, None) => continue,
            (None, Some(_)) if step.added.len() >= shard.members.room() => {
                let reason = "it brings more members than a shard can hold".to_owned();
                return Err(Undecodable { kind: "delta", reason });
            }
            (None, Some(_)) => {
                let handle = shard.members.upcoming(step.added.len());
                step.added.push(change.member.clone().into());
                added.insert(&change.member, handle);
                handle
            }
        };
        step.changes.push(Change { tree: change.tree, handle, after: change.after });
    }
    let fits = |change: &Change| {
        let words = change.after.and_then(|entry| entry.words());
        // A tree that is not there was dropped, or is only about to be defined by this very delta.
        let columns = shard.tree(change.tree).map(|tree| tree.tree.columns());
        words.zip(columns).is_none_or(|(words, columns)| words.as_slice().len() == columns)
    };
    if let Some(change) = step.changes.iter().find(|change| !fits(change)) {
        let reason = format!("an entry of tree {} has another number of words than its board", change.tree.0);
        return Err(Undecodable { kind: "delta", reason });
    }
    shard.apply(&step);
    Ok(())
}

fn load_checkpoint(
    store: &Store,
    trees_from: TreesFrom,
    progress: Progress<'_>,
) -> Result<(Recovered, Sequence), StorageError> {
    let Some(bytes) = store.get_checkpoint(&keys::manifest())? else {
        let shard = Shard::new(store.shard());
        let recovered =
            Recovered { shard, checkpoint: Sequence(0), deltas: 0, changes: 0, rebuilt: Vec::new() };
        return Ok((recovered, Sequence(0)));
    };
    let mut manifest = codec::decode_manifest(&bytes).map_err(|error| store.damaged(error))?;
    let mut definitions = Definitions::default();
    for board in &mut manifest.boards {
        board.definition = definitions.share(&board.definition);
    }
    let manifest = manifest;
    // The dictionary and the trees are read side by side. Its ids put the trees in order while they are indexed.
    let dictionary = OnceLock::new();
    let (index, loaded) = std::thread::scope(|scope| {
        let loaded = scope.spawn(|| load_trees(store, &manifest, trees_from, &dictionary, progress));
        let index = match load_dictionary(store, progress) {
            Ok(read) => Ok(dictionary.get_or_init(|| Some(read)).as_ref().map(Dictionary::index)),
            Err(error) => {
                // Whoever waits for it must not wait for ever.
                dictionary.get_or_init(|| None);
                Err(error)
            }
        };
        (index, loaded.join().expect("loading trees does not panic"))
    });
    let index = index?.expect("read without an error");
    let dictionary = dictionary.into_inner().flatten().expect("read without an error");
    let mut members = dictionary.into_members(index);
    let mut boards = BTreeMap::new();
    let mut trees = BTreeMap::new();
    let mut rebuilt = Vec::new();
    for (board, LoadedTree { tree, reason }) in manifest.boards.iter().zip(loaded?) {
        rebuilt.extend(reason.map(|reason| (board.name.clone(), reason)));
        refer_to_known(&tree, &mut members);
        let definition = Arc::clone(&board.definition);
        boards
            .insert(board.name.clone(), Board { definition, incarnation: board.incarnation, all: board.all });
        trees.insert(board.all, tree);
    }
    let shard = restore(store.shard(), &manifest, members, boards, trees);
    let recovered =
        Recovered { shard, checkpoint: manifest.applied.sequence, deltas: 0, changes: 0, rebuilt };
    Ok((recovered, manifest.seen))
}

struct LoadedTree {
    tree: WindowTree,
    /// Why it was made from members, if it was.
    reason: Option<String>,
}

/// The manifest's trees, in its order; none if there is no dictionary to order them by.
fn load_trees(
    store: &Store,
    manifest: &Manifest,
    trees_from: TreesFrom,
    dictionary: &OnceLock<Option<Dictionary>>,
    progress: Progress<'_>,
) -> Result<Vec<LoadedTree>, StorageError> {
    let mut trees = Vec::with_capacity(manifest.boards.len());
    for board in &manifest.boards {
        let pages = match trees_from {
            TreesFrom::Pages => read_pages(store, board, progress),
            TreesFrom::Members => Err("its members were asked for".to_owned()),
        };
        let Some(dictionary) = dictionary.wait() else { return Ok(Vec::new()) };
        let (tree, reason) = match pages.and_then(|loader| finish_pages(loader, board, dictionary)) {
            Ok(tree) => (tree, None),
            Err(reason) => (rebuild_tree(store, board, dictionary, progress)?, Some(reason)),
        };
        let mut tree = WindowTree::over(Arc::clone(&board.definition), tree);
        load_extras(store, board.all, &mut tree, dictionary)?;
        trees.push(LoadedTree { tree, reason });
    }
    Ok(trees)
}

fn refer_to_known(tree: &WindowTree, members: &mut Members) {
    for_each_listed(&tree.tree, members.handle_space(), |handle| members.refer(handle));
    let unlisted = tree.extras().map(|(handle, _)| handle).filter(|handle| !tree.tree.contains(*handle));
    unlisted.for_each(|handle| members.refer(handle));
}

fn restore(
    id: ShardId,
    manifest: &Manifest,
    members: Members,
    boards: BTreeMap<BoardName, Board>,
    trees: BTreeMap<TreeId, WindowTree>,
) -> Shard {
    let applied: Applied = manifest.applied;
    let dropped = manifest.dropped.iter().cloned().collect();
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

/// A tree's pages, read but not yet in order. The reason, if they cannot be a tree.
fn read_pages(store: &Store, board: &ManifestBoard, progress: Progress<'_>) -> Result<PageLoader, String> {
    let columns = board.definition.columns();
    let mut loader = PageLoader::new(columns);
    let mut entries = 0;
    let scanned = store.scan_checkpoint(&keys::of_tree(keys::TREE_PAGE, board.all), |key, value| {
        let page = codec::decode_entries(value)?;
        let fail = |reason: String| Undecodable { kind: "tree page", reason };
        let number = keys::last_u32(key).ok_or_else(|| fail("its key is too short".to_owned()))?;
        if page.columns.len() != columns {
            return Err(fail(format!("page {number} has {} columns", page.columns.len())));
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
    scanned.map_err(|error| error.to_string())?;
    Ok(loader)
}

fn finish_pages(loader: PageLoader, board: &ManifestBoard, dictionary: &Dictionary) -> Result<Tree, String> {
    let tree = loader.finish(dictionary).map_err(|error| error.to_string())?;
    if tree.len() != board.entries {
        return Err(format!("its pages hold {} entries, not {}", tree.len(), board.entries));
    }
    let mut known = 0;
    for_each_listed(&tree, dictionary.handle_space(), |handle| known += u64::from(dictionary.has_id(handle)));
    if known < tree.len() {
        return Err(format!("its pages name {} handles that are nobody's", tree.len() - known));
    }
    Ok(tree)
}

/// Calls `each` for the members listed in a tree, in the order that is kinder to memory: by handle, where most of the
/// shard's members are listed, since everything else that is kept by handle lies in that order.
fn for_each_listed(tree: &Tree, handle_space: u32, mut each: impl FnMut(Handle)) {
    if tree.len() * 4 >= u64::from(handle_space) {
        (0..handle_space).map(Handle).filter(|handle| tree.contains(*handle)).for_each(each);
    } else {
        tree.cursor_at(0).for_each(|(handle, _)| each(handle));
    }
}

/// A tree made from member pages.
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
            let reason = format!("it names handle {handle}, which is nobody's");
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

/// Whether a page's handles are those that its number promises, each once, ascending. A damaged one must not make us
/// reserve memory for four billion members.
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
            let reason = format!("handle {number} does not belong there");
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
    store: &Store,
    id: TreeId,
    tree: &mut WindowTree,
    dictionary: &Dictionary,
) -> Result<(), StorageError> {
    store.scan_checkpoint(&keys::of_tree(keys::EXTRA, id), |key, value| {
        let extra: Extra = codec::decode_extra(value)?;
        let fail = |reason: String| Err(Undecodable { kind: "extra", reason });
        let handle = Handle(keys::last_u32(key).unwrap_or(u32::MAX));
        if !dictionary.has_id(handle) {
            return fail(format!("it is handle {}'s, which is nobody's", handle.0));
        }
        if let Some(Unlisted::Hidden(words)) = &extra.unlisted
            && words.as_slice().len() != tree.tree.columns()
        {
            return fail("it has another number of words than its board".to_owned());
        }
        tree.load_extra(handle, extra);
        Ok(())
    })
}

/// The pages of these boards no longer match their trees: removes them, and makes all due at the next checkpoint.
///
/// # Errors
/// When the disk refuses.
pub fn mark_rebuilt(store: &Store, shard: &mut Shard, rebuilt: &[BoardName]) -> Result<(), StorageError> {
    for name in rebuilt {
        let Some(id) = shard.board(name.as_str()).map(|board| board.all) else { continue };
        crate::storage::checkpoint::forget_tree_pages(store, id)?;
        if let Some(tree) = shard.tree_mut(id) {
            tree.tree.mark_all_dirty();
        }
    }
    Ok(())
}
