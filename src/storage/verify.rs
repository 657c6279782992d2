//! Checks a directory's data for consistency, and rebuilds trees.
//!
//! Knows: that loading a shard from tree pages and from member pages must give the same result. Must not
//! know: how either works.

use std::collections::BTreeMap;

use crate::state::{Shard, TreeId, WindowTree};
use crate::state_lock::StateLock;
use crate::storage::checkpoint::Checkpoint;
use crate::storage::error::StorageError;
use crate::storage::recovery::{Recovered, TreesFrom, mark_rebuilt, recover};
use crate::storage::staged::CheckpointFigures;
use crate::storage::store::{Progress, Store};
use crate::storage::{codec, keys};
use crate::tree::Handle;
use crate::types::{BoardName, MemberId, count, shard_of};
use crate::window::MovementPart;

/// Counts of what was compared.
#[derive(Debug, Clone, Copy, Default)]
pub struct VerifyCounts {
    pub members: u64,
    pub boards: u64,
    /// Instances of the boards' windows, apart from `all`.
    pub instances: u64,
    /// Trees of what boards keep for movement.
    pub movement: u64,
    /// Of boards and instances.
    pub entries: u64,
    pub applied: u64,
    pub deltas: u64,
}

/// Recomputes every tree from members and deltas, and compares it with the tree that its pages give: order,
/// scores, ties, counts, versions and times. Also checks that every member has one handle, that every handle
/// is in exactly one state, and that the metadata of every entry that has some exist. Returns descriptions of
/// what is wrong; none if no errors were found.
///
/// # Errors
/// When so much is damaged that a start would be refused too.
pub fn verify(store: &Store, progress: Progress<'_>) -> Result<(VerifyCounts, Vec<String>), StorageError> {
    let mut findings = Vec::new();
    // Reads the records that a start does not read, too: metadata, profiles and rejects. RocksDB checks their
    // checksums.
    store.read_all(progress)?;
    let mut by_pages = recover(store, TreesFrom::Pages, progress)?;
    for (board, reason) in &by_pages.rebuilt {
        let board = described(board);
        findings.push(format!("{board}: its tree pages are damaged: {reason}"));
    }
    // Members that only dropped boards have are being released. The two ways of loading may have released
    // different ones so far, so release all of them before comparing.
    while by_pages.shard.release_retired(usize::MAX) {}
    let left = &by_pages.shard;
    let mut verified = VerifyCounts {
        members: count(left.members.len()),
        applied: left.applied.sequence.0,
        deltas: by_pages.deltas,
        ..VerifyCounts::default()
    };
    let mut by_members = match recover(store, TreesFrom::Members, progress) {
        Ok(recovered) => recovered,
        Err(error @ StorageError::Damaged { .. }) => {
            findings.push(format!("the trees cannot be rebuilt from members: {error}"));
            return Ok((verified, findings));
        }
        Err(error) => return Err(error),
    };
    findings.extend(
        by_members
            .incomplete_trees
            .iter()
            .map(|what| format!("the trees cannot be rebuilt from members: {what}")),
    );
    while by_members.shard.release_retired(usize::MAX) {}
    let right = &by_members.shard;
    if left.members.len() != right.members.len() {
        let (left, right) = (left.members.len(), right.members.len());
        findings.push(format!("the tree pages give {left} members, but the member pages give {right}"));
    }
    for (what, shard) in [("tree pages", left), ("member pages", right)] {
        if let Err(violation) = shard.check_handles() {
            findings.push(format!("the members that the {what} give: {violation}"));
        }
    }
    let mut metadata = Metadata::read(store, left, progress)?;
    let mut compared = 0;
    for (name, board) in left.boards_and_instances() {
        let (Some(tree), Some(other)) = (left.tree(board.all), right.board_tree(name.as_str())) else {
            findings.push(format!("{} has no tree", described(name)));
            continue;
        };
        compared += tree.total();
        if MovementPart::of_name_on_shards(name).is_some() {
            verified.movement += 1;
        } else {
            *(if name.is_instance() { &mut verified.instances } else { &mut verified.boards }) += 1;
            verified.entries += tree.total();
        }
        compare(name, (left, tree), (right, other), &mut findings);
        verify_errors(name, tree, &mut findings);
        metadata.compare(name, board.all, tree, &mut findings);
        progress("comparing", compared, 0);
    }
    findings.extend(verify_profiles(store, progress)?);
    if metadata.of_no_board > 0 {
        findings.push(format!("{} records of metadata belong to no board", metadata.of_no_board));
    }
    Ok((verified, findings))
}

/// What shards keep under a name, in the words that clients have for it.
fn described(name: &BoardName) -> String {
    let (board, instance) = name.split();
    match (MovementPart::of_name_on_shards(name), instance) {
        (Some((_, since)), _) => format!("the movement of board {board} since {since}"),
        (None, Some(instance)) => format!("board {board}, instance {instance}"),
        (None, None) => format!("board {board}"),
    }
}

fn compare(
    name: &BoardName,
    (left, left_tree): (&Shard, &WindowTree),
    (right, right_tree): (&Shard, &WindowTree),
    findings: &mut Vec<String>,
) {
    let name = described(name);
    for (what, shard, tree) in [("pages", left, left_tree), ("members", right, right_tree)] {
        if let Err(violation) = tree.tree.check(&shard.members) {
            findings.push(format!("{name}: the tree that its {what} give is broken: {violation}"));
        }
    }
    if left_tree.total() != right_tree.total() {
        let (left, right) = (left_tree.total(), right_tree.total());
        findings.push(format!("{name}: its tree pages give {left} entries, but its members give {right}"));
    }
    let pairs = left_tree.tree.cursor_at(0).zip(right_tree.tree.cursor_at(0));
    for (position, ((a, a_words), (b, b_words))) in (1_u64..).zip(pairs) {
        let (a_id, b_id) = (left.members.id(a), right.members.id(b));
        if a_id != b_id || a_words != b_words || left_tree.extra(a) != right_tree.extra(b) {
            let (a, b) = (String::from_utf8_lossy(a_id), String::from_utf8_lossy(b_id));
            findings.push(format!(
                "{name}: at position {position} the tree pages give {a} {a_words:?}, but the members give {b} {b_words:?}"
            ));
            return;
        }
    }
    let unlisted = |shard: &Shard, tree: &WindowTree| {
        let named = |handle: Handle| (shard.members.id(handle).to_vec(), tree.extra(handle));
        let mut all: Vec<_> = tree.unlisted().map(named).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    };
    if unlisted(left, left_tree) != unlisted(right, right_tree) {
        findings
            .push(format!("{name}: its tree pages and its members give different hidden or removed entries"));
    }
}

/// Of a board that counts in fixed memory: whether it holds no more than that, and only errors that can be.
fn verify_errors(name: &BoardName, tree: &WindowTree, findings: &mut Vec<String>) {
    let (name, definition) = (described(name), &tree.definition);
    if !definition.is_top_k() {
        return;
    }
    let entries = tree.total();
    if Some(entries) > definition.capacity {
        findings.push(format!("{name}: it has {entries} entries, which are more than its capacity"));
    }
    let is_wrong = |words: &[u64]| {
        let score = definition.score_of(words).keys().first().copied().unwrap_or_default();
        !definition.error_of(words).is_some_and(|error| (0..=score).contains(&error))
    };
    let wrong = tree.tree.cursor_at(0).filter(|(_, words)| is_wrong(words.as_slice())).count();
    if wrong > 0 {
        findings.push(format!("{name}: the errors of {wrong} entries are not between 0 and their scores"));
    }
}

/// Descriptions of what is wrong with profiles. They belong to no entry, so all that can be said of one is
/// whether it is a profile of a member of this shard.
fn verify_profiles(store: &Store, progress: Progress<'_>) -> Result<Vec<String>, StorageError> {
    let (mut records, mut of_no_member, mut broken) = (0_u64, 0_u64, 0_u64);
    store.each_profile(|member, record| {
        records += 1;
        if records % 1_000 == 0 {
            progress("reading profiles", records, 0);
        }
        let member = str::from_utf8(member).ok().and_then(|id| MemberId::new(id).ok());
        let is_here = member.is_some_and(|id| shard_of(&id, store.shards()) == store.shard());
        of_no_member += u64::from(!is_here);
        let is_object = |json: &String| json.starts_with('{') && json.ends_with('}');
        let is_kept = record.json.is_some() || record.version.is_some();
        broken += u64::from(!is_kept || !record.json.as_ref().is_none_or(is_object));
    })?;
    let mut findings = Vec::new();
    if of_no_member > 0 {
        findings.push(format!("{of_no_member} profiles belong to no member of this shard"));
    }
    if broken > 0 {
        findings.push(format!("{broken} profiles are no JSON objects"));
    }
    Ok(findings)
}

/// The metadata that the log holds, counted by tree.
#[derive(Default)]
struct Metadata {
    /// Records of entries that have metadata.
    found: BTreeMap<TreeId, u64>,
    /// Records of entries that have no metadata, or that do not exist.
    stray: BTreeMap<TreeId, u64>,
    /// Records of trees that do not exist.
    of_no_board: u64,
}

impl Metadata {
    fn read(store: &Store, shard: &Shard, progress: Progress<'_>) -> Result<Self, StorageError> {
        let (mut all, mut records) = (Self::default(), 0);
        store.scan_log(&[keys::METADATA], &[keys::METADATA], |key, value| {
            codec::decode_metadata(value)?;
            records += 1;
            if records % 1_000 == 0 {
                progress("reading metadata", records, 0);
            }
            let Some((id, member)) = keys::tree_and_member(key) else {
                all.of_no_board += 1;
                return Ok(());
            };
            let Some(tree) = shard.tree(id) else {
                all.of_no_board += 1;
                return Ok(());
            };
            let entry = shard.members.get(member).and_then(|handle| tree.entry(handle));
            let counts =
                if entry.is_some_and(|entry| entry.has_metadata) { &mut all.found } else { &mut all.stray };
            *counts.entry(id).or_default() += 1;
            Ok(())
        })?;
        Ok(all)
    }

    fn compare(&mut self, name: &BoardName, id: TreeId, tree: &WindowTree, findings: &mut Vec<String>) {
        let name = described(name);
        // Each record belongs to one entry, so there cannot be more records than entries with metadata.
        let found = self.found.remove(&id).unwrap_or_default();
        let lost = count(tree.with_metadata().count()).saturating_sub(found);
        if lost > 0 {
            findings.push(format!("{name}: the metadata of {lost} entries are missing"));
        }
        if let Some(stray) = self.stray.remove(&id) {
            findings.push(format!("{name}: {stray} records of metadata belong to entries without metadata"));
        }
    }
}

/// Checks that [`rebuild`] would find all that it reads. Changes nothing.
///
/// # Errors
/// When members or deltas cannot be read.
pub fn check_rebuildable(store: &Store, progress: Progress<'_>) -> Result<(), StorageError> {
    load_members(store, progress).map(drop)
}

fn load_members(store: &Store, progress: Progress<'_>) -> Result<Shard, StorageError> {
    let Recovered { shard, incomplete_trees, .. } = recover(store, TreesFrom::Members, progress)?;
    match incomplete_trees.first() {
        Some(what) => Err(store.damaged(what)),
        None => Ok(shard),
    }
}

/// Rebuilds every tree from members and deltas, and writes a new checkpoint.
///
/// # Errors
/// When members or deltas cannot be read, in which case nothing is changed, or when the disk refuses.
pub fn rebuild(store: Store, progress: Progress<'_>) -> Result<CheckpointFigures, StorageError> {
    let mut shard = load_members(&store, progress)?;
    let store = store.into_writable()?;
    let boards: Vec<BoardName> = shard.boards_and_instances().map(|(name, _)| name.clone()).collect();
    mark_rebuilt(&store, &mut shard, &boards)?;
    shard.mark_all_dirty();
    progress("writing the checkpoint", 0, 0);
    let checkpoint = Checkpoint::begin(&mut shard);
    let shard = StateLock::new(shard);
    checkpoint.write(&store, &shard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_name_boards_instances_and_movement_as_clients_do() {
        for (name, words) in [
            ("arena", "board arena"),
            ("arena#2026-W47", "board arena, instance 2026-W47"),
            ("arena#s3.then", "the movement of board arena since s3"),
            ("arena#s3.now", "the movement of board arena since s3"),
        ] {
            assert_eq!(described(&BoardName::of_shard(name).expect("a name on shards")), words);
        }
    }
}
