//! Compares a shard, in memory and on disk, with the model.

use std::collections::BTreeMap;

use crate::state::{Ban, BansAsked, Entry, EntryState, Shard, TreeId, WindowTree};
use crate::storage::Store;
use crate::storage::codec::ProfileRecord;
use crate::tree::Handle;
use crate::types::BoardName;
use crate::writer::tests::model::{Model, ModelBoard, ModelEntry, ModelProfile, Shown};

/// Whether a shard and its disk are what the model says.
pub fn check(shard: &mut Shard, store: &Store, model: &Model, last: u64) {
    check_shard(shard, model, last);
    let (bans, versions) = store.member_records().expect("readable");
    assert_eq!((&bans, &versions), (shard.bans(), shard.member_versions()));
    assert_eq!(&store.job_ids().expect("readable"), shard.job_ids());
    assert_eq!(&store.last_jobs().expect("readable"), shard.last_jobs());
    assert_eq!(profiles(store), model.profiles);
    for (name, expected) in &model.boards {
        let board = shard.board(name.as_str()).expect("it was just seen");
        for (id, entry) in &expected.entries {
            let record = store.metadata(board.all, id.as_bytes()).expect("readable");
            assert_eq!(record.map(|record| record.json), entry.meta, "metadata of {id} on {name}");
        }
    }
}

/// The profiles on disk, by member.
pub fn profiles(store: &Store) -> BTreeMap<String, ModelProfile> {
    let mut profiles = BTreeMap::new();
    let each = |member: &[u8], record: ProfileRecord| {
        let member = String::from_utf8(member.to_vec()).expect("ids are UTF-8");
        profiles.insert(member, (record.version, record.json));
    };
    store.each_profile(each).expect("readable");
    profiles
}

/// Whether a shard in memory is what the model says.
pub fn check_shard(shard: &mut Shard, model: &Model, last: u64) {
    while shard.release_retired(3) {}
    shard.check_handles().expect("every handle is accounted for");
    assert_eq!(shard.applied.sequence.0, last);
    let bans = shard.bans().list(BansAsked::All, None, usize::MAX).0;
    let version = |ban: &Ban| {
        shard
            .bans()
            .of_member(&ban.member)
            .and_then(|bans| bans.get(&ban.scope))
            .expect("it is listed")
            .version
    };
    let bans = bans.into_iter().map(|ban| ((ban.scope.clone(), ban.member.to_string()), version(&ban)));
    assert_eq!(bans.collect::<BTreeMap<_, _>>(), model.bans);
    let versions = shard.member_versions().iter();
    let versions = versions.map(|(id, known)| (id.to_string(), known.version));
    let expected = model.versions.iter().map(|(id, (version, _))| (id.clone(), *version));
    assert_eq!(versions.collect::<BTreeMap<_, _>>(), expected.collect());
    let names: Vec<&BoardName> = shard.boards().map(|(name, _)| name).collect();
    assert_eq!(names, model.boards.keys().collect::<Vec<_>>());
    for (name, expected) in &model.boards {
        let board = shard.board(name.as_str()).expect("it was just seen");
        assert_eq!(board.definition, expected.definition, "{name}");
        let tree = shard.tree(board.all).expect("a board has a tree");
        tree.tree.check(&shard.members).unwrap_or_else(|violation| panic!("board {name}: {violation}"));
        let listed: Vec<String> = (tree.tree.cursor_at(0))
            .map(|(handle, _)| String::from_utf8(shard.members.id(handle).to_vec()).expect("ids are UTF-8"))
            .collect();
        assert_eq!(
            listed,
            expected.listed().iter().map(|(id, _)| (*id).to_owned()).collect::<Vec<_>>(),
            "{name}"
        );
        let known = tree.handles().count();
        assert_eq!(known, expected.entries.len(), "board {name} knows others than the model");
        for (id, entry) in &expected.entries {
            let handle = shard.members.get(id.as_bytes()).unwrap_or_else(|| panic!("{id} is unknown"));
            let found = tree.entry(handle).unwrap_or_else(|| panic!("{id} is not on {name}"));
            check_entry(expected, tree, &found, entry, &format!("{id} on {name}"));
        }
    }
    assert!(shard.tree_bytes_are_right(), "memory is counted along with every change");
    let mut known_by: BTreeMap<Handle, Vec<TreeId>> = BTreeMap::new();
    for (id, tree) in shard.trees() {
        tree.handles().for_each(|handle| known_by.entry(handle).or_default().push(id));
    }
    for handle in (0..shard.members.handle_space()).map(Handle) {
        let told: Vec<TreeId> =
            shard.members.trees_after(handle, None).filter(|id| shard.tree(*id).is_some()).collect();
        assert_eq!(told, known_by.remove(&handle).unwrap_or_default(), "{handle:?} is known by other trees");
    }
    assert!(known_by.is_empty(), "trees know nobody's handles: {known_by:?}");
    assert_eq!(
        shard.members.len(),
        model.members().len(),
        "members of no board are remembered, or some are not"
    );
}

fn check_entry(board: &ModelBoard, tree: &WindowTree, found: &Entry, expected: &ModelEntry, who: &str) {
    let shown = match found.state {
        EntryState::Listed(_) => Shown::Listed,
        EntryState::Hidden(_) => Shown::Hidden,
        EntryState::Removed => Shown::Removed,
    };
    assert_eq!(shown, expected.shown, "{who}");
    assert_eq!(found.version, expected.version, "{who}");
    assert_eq!(found.updated_at.as_micros(), expected.updated, "{who}");
    assert_eq!(found.has_metadata, expected.meta.is_some(), "{who}");
    if let Some(words) = found.words() {
        assert_eq!(tree.definition.score_of(words.as_slice()).keys(), expected.score, "{who}");
        if let Some(reached) = board.definition.reached_at(words.as_slice()) {
            assert_eq!(reached.as_micros(), expected.reached, "{who}");
        }
    }
}
