//! From a directory to a shard in memory: the last checkpoint, then every delta after it.
//!
//! Knows: which parts may be damaged and still be repaired (tree pages, from members), and which may not. Must not know:
//! queues; the caller compares what came back with them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::state::{Applied, Board, Change, Extra, Members, MembersLoader, Shard, Step, TreeId, WindowTree};
use crate::storage::codec::{self, Delta, EntriesPage, Manifest, ManifestBoard, Undecodable};
use crate::storage::keys;
use crate::storage::store::{StorageError, Store};
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
    let mut recovered = load_checkpoint(store, trees_from, progress)?;
    (recovered.deltas, recovered.changes) = replay(store, &mut recovered.shard, progress)?;
    let applied = recovered.shard.applied.sequence;
    let meta = store.meta()?.map_or(0, |meta| meta.applied_sequence);
    if meta > applied.0 {
        return Err(
            store.damaged(format!("its meta record says {meta} is applied, but its deltas end at {applied}"))
        );
    }
    Ok(recovered)
}

/// Applies the deltas after the shard's applied sequence: how many there were, and how many changes in them.
///
/// # Errors
/// When one is damaged or missing.
pub fn replay(store: &Store, shard: &mut Shard, progress: Progress<'_>) -> Result<(u64, u64), StorageError> {
    let start = shard.applied.sequence;
    let end = store.meta()?.map_or(0, |meta| meta.applied_sequence);
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
        apply_delta(shard, &delta);
        deltas += 1;
        changes += count(delta.changes.len());
        progress("replaying deltas", delta.applied.sequence.0 - start.0, end.saturating_sub(start.0));
        Ok(())
    })?;
    Ok((deltas, changes))
}

fn apply_delta(shard: &mut Shard, delta: &Delta) {
    let mut step = Step { events: delta.events.clone(), applied: delta.applied, ..Step::default() };
    let mut added: HashMap<&[u8], Handle> = HashMap::new();
    for change in &delta.changes {
        let known =
            shard.members.get(&change.member).or_else(|| added.get(change.member.as_slice()).copied());
        let handle = match (known, change.after) {
            (Some(handle), _) => handle,
            // It left, and was not here: what it left is gone already.
            (None, None) => continue,
            (None, Some(_)) => {
                let handle = shard.members.upcoming(step.added.len());
                step.added.push(change.member.clone().into());
                added.insert(&change.member, handle);
                handle
            }
        };
        step.changes.push(Change { tree: change.tree, handle, after: change.after });
    }
    shard.apply(&step);
}

fn load_checkpoint(
    store: &Store,
    trees_from: TreesFrom,
    progress: Progress<'_>,
) -> Result<Recovered, StorageError> {
    let Some(bytes) = store.get_checkpoint(&keys::manifest())? else {
        let shard = Shard::new(store.shard());
        return Ok(Recovered { shard, checkpoint: Sequence(0), deltas: 0, changes: 0, rebuilt: Vec::new() });
    };
    let manifest = codec::decode_manifest(&bytes).map_err(|error| store.damaged(error))?;
    // Members and pages are read side by side; only to check the pages' order are the members needed.
    let (members, pages) = std::thread::scope(|scope| {
        let pages = scope.spawn(|| match trees_from {
            TreesFrom::Pages => {
                manifest.boards.iter().map(|board| read_pages(store, board, progress)).collect()
            }
            TreesFrom::Members => manifest
                .boards
                .iter()
                .map(|_| Err("its members were asked for".to_owned()))
                .collect::<Vec<_>>(),
        });
        let members = load_members(store, progress);
        (members, pages.join().expect("reading pages does not panic"))
    });
    let mut members = members?;
    let mut boards = BTreeMap::new();
    let mut trees = BTreeMap::new();
    let mut rebuilt = Vec::new();
    for (board, pages) in manifest.boards.iter().zip(pages) {
        let tree = pages.and_then(|loader| finish_pages(loader, board, &members));
        let tree = match tree {
            Ok(tree) => tree,
            Err(reason) => {
                rebuilt.push((board.name.clone(), reason));
                rebuild_tree(store, board, &members, progress)?
            }
        };
        let mut tree = WindowTree::over(Arc::clone(&board.definition), tree);
        load_extras(store, board.all, &mut tree, &members)?;
        refer_to_known(&tree, &mut members);
        let definition = Arc::clone(&board.definition);
        boards
            .insert(board.name.clone(), Board { definition, incarnation: board.incarnation, all: board.all });
        trees.insert(board.all, tree);
    }
    for handle in 0..members.handle_space() {
        members.forget_unless_referred(Handle(handle));
    }
    let shard = restore(store.shard(), &manifest, members, boards, trees);
    Ok(Recovered { shard, checkpoint: manifest.applied.sequence, deltas: 0, changes: 0, rebuilt })
}

fn refer_to_known(tree: &WindowTree, members: &mut Members) {
    let mut listed = Vec::with_capacity(usize::try_from(tree.total()).unwrap_or(0));
    for_each_listed(&tree.tree, members, |handle| listed.push(handle));
    let unlisted = tree.extras().map(|(handle, _)| handle).filter(|handle| !tree.tree.contains(*handle));
    for handle in listed.into_iter().chain(unlisted) {
        members.refer(handle);
    }
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

fn load_members(store: &Store, progress: Progress<'_>) -> Result<Members, StorageError> {
    let mut loader = MembersLoader::default();
    let mut count = 0;
    store.scan_checkpoint(&[keys::DICTIONARY_PAGE], |_, value| {
        codec::decode_dictionary(value, |handle, id| {
            loader.add(handle, id);
            count += 1;
        })?;
        progress("reading members", count, 0);
        Ok(())
    })?;
    Ok(loader.finish())
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

fn finish_pages(loader: PageLoader, board: &ManifestBoard, members: &Members) -> Result<Tree, String> {
    let tree = loader.finish(members).map_err(|error| error.to_string())?;
    if tree.len() != board.entries {
        return Err(format!("its pages hold {} entries, not {}", tree.len(), board.entries));
    }
    let mut known = 0;
    for_each_listed(&tree, members, |handle| known += u64::from(members.has_id(handle)));
    if known < tree.len() {
        return Err(format!("its pages name {} handles that are nobody's", tree.len() - known));
    }
    Ok(tree)
}

/// Calls `each` for the members listed in a tree, in the order that is kinder to memory: by handle, where most of the
/// shard's members are listed, since everything else that is kept by handle lies in that order.
fn for_each_listed(tree: &Tree, members: &Members, mut each: impl FnMut(Handle)) {
    if tree.len() * 4 >= u64::from(members.handle_space()) {
        (0..members.handle_space()).map(Handle).filter(|handle| tree.contains(*handle)).for_each(each);
    } else {
        tree.cursor_at(0).for_each(|(handle, _)| each(handle));
    }
}

/// A tree made from member pages.
fn rebuild_tree(
    store: &Store,
    board: &ManifestBoard,
    members: &Members,
    progress: Progress<'_>,
) -> Result<Tree, StorageError> {
    let columns = board.definition.columns();
    let mut tree = Tree::new(columns);
    let mut edits = Vec::with_capacity(REBUILD_BATCH);
    let mut done = 0;
    let prefix = keys::of_tree(keys::MEMBER_PAGE, board.all);
    store.scan_checkpoint(&prefix, |_, value| {
        let page = codec::decode_entries(value)?;
        if page.columns.len() != columns {
            let reason = format!("it has {} columns, not {columns}", page.columns.len());
            return Err(Undecodable { kind: "member page", reason });
        }
        edits.extend(present(&page, members));
        done += count(page.handles.len());
        if edits.len() >= REBUILD_BATCH {
            tree.apply(&edits, members);
            edits.clear();
        }
        progress("rebuilding the tree from members", done, board.entries);
        Ok(())
    })?;
    tree.apply(&edits, members);
    tree.mark_all_dirty();
    Ok(tree)
}

/// The entries of a member page whose members the dictionary knows. It may lack those that came after the checkpoint
/// began, while the page already has them; their deltas are still to be replayed.
fn present<'a>(page: &'a EntriesPage, members: &'a Members) -> impl Iterator<Item = Edit> + 'a {
    page.handles.iter().enumerate().filter_map(|(at, handle)| {
        let handle = Handle(*handle);
        let mut words = Words::new();
        for column in &page.columns {
            words.push(*column.get(at)?);
        }
        members.has_id(handle).then_some(Edit { handle, new: Some(words) })
    })
}

fn load_extras(
    store: &Store,
    id: TreeId,
    tree: &mut WindowTree,
    members: &Members,
) -> Result<(), StorageError> {
    store.scan_checkpoint(&keys::of_tree(keys::EXTRA, id), |key, value| {
        let extra: Extra = codec::decode_extra(value)?;
        if let Some(handle) = keys::last_u32(key).map(Handle)
            && members.has_id(handle)
        {
            tree.load_extra(handle, extra);
        }
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
