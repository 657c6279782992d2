//! Directories that someone or something damaged: repaired where members can tell, refused in words where
//! not, and never a wrong rank.

use std::path::Path;
use std::sync::Arc;

use crate::job::Op;
use crate::state::TreeId;
use crate::state_lock::Purpose;
use crate::storage::codec::{
    FORMAT_VERSION, Meta, ProfileRecord, decode_dictionary, encode_dictionary, encode_meta, encode_profile,
};
use crate::storage::{
    StorageError, StorageResources, Store, TreesFrom, mark_rebuilt, rebuild, recover, verify,
};
use crate::types::ShardId;
use crate::writer::tests::build::{bare, job};
use crate::writer::tests::harness::{Harness, Say, open};

const NOTHING: &[u8] = b"";
const GARBAGE: &[u8] = b"\xff\x00garbage\xfd\xff\xff\xff\xff\xff\xff\xff\x7f";

/// A few hundred entries on two boards, so that trees have several pages; checkpointed, and some deltas after
/// it.
fn harness() -> Harness {
    let mut harness = Harness::new(true);
    let many = (0..200).map(|number| job(&format!("m{number}"), &[("auto", &[number % 7])]));
    harness.batch(&[Say::Jobs(many.collect()), Say::Jobs(vec![job("m0", &[("more", &[1])])])]);
    harness.batch(&[Say::Jobs(vec![job("m1", &[("auto", &[3])]).version(9).meta(r#"{"a":1}"#)])]);
    harness.batch(&[Say::Jobs(vec![bare(Op::Hide, "m2", &["auto"])])]);
    harness.checkpoint(&mut |_, _| Ok(())).expect("the disk takes it");
    harness.batch(&[Say::Jobs(vec![job("m3", &[("auto", &[100])]), job("n", &[("auto", &[3])])])]);
    harness.batch(&[Say::Jobs(vec![bare(Op::Hide, "m4", &["auto"])])]);
    harness.check_all();
    harness
}

fn tree_of(harness: &Harness, board: &str) -> TreeId {
    harness.shard.read(Purpose::Read).board(board).expect("it is there").all
}

fn prefix(kind: u8, tree: TreeId) -> Vec<u8> {
    [&[kind][..], &tree.0.to_be_bytes()].concat()
}

/// The records of a kind, one of them damaged in each way.
fn damages(harness: &Harness, prefix: &[u8]) -> Vec<(Vec<u8>, Option<&'static [u8]>)> {
    let keys = harness.store().keys_from(prefix).expect("readable");
    assert!(!keys.is_empty(), "there is something to damage");
    let places = [keys.first(), keys.get(keys.len() / 2), keys.last()];
    let places = places.into_iter().flatten().cloned();
    places.flat_map(|key| [Some(GARBAGE), Some(NOTHING), None].map(|value| (key.clone(), value))).collect()
}

fn refusal(harness: &Harness, from: TreesFrom) -> String {
    let refused = recover(&harness.store(), from, &|_, _, _| {}).err().expect("it is refused");
    assert!(matches!(refused, StorageError::Damaged { .. }), "{refused:?}");
    refused.to_string()
}

#[test]
fn a_damaged_or_missing_tree_page_is_found_by_verify_made_up_for_at_start_and_healed_by_a_checkpoint() {
    let tree_page = 0x13;
    let at = prefix(tree_page, tree_of(&harness(), "auto"));
    for (key, value) in damages(&harness(), &at) {
        let mut harness = harness();
        harness.store().damage(&key, value).expect("the disk takes it");
        let (_, findings) = verify(&harness.store(), &|_, _, _| {}).expect("members can be read");
        assert!(
            findings.iter().any(|finding| finding.contains("board auto: its tree pages")),
            "{findings:?}"
        );
        let store = harness.store();
        let recovered = recover(&store, TreesFrom::Pages, &|_, _, _| {}).expect("members make up for it");
        let rebuilt: Vec<&str> = recovered.rebuilt.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(rebuilt, ["auto"]);
        drop(store);
        drop(recovered);
        harness.restart();
        harness.check_memory();
        // A crash before the next checkpoint finds the same again.
        harness.restart();
        harness.check_memory();
        harness.batch(&[Say::Jobs(vec![job("m7", &[("auto", &[-5])])])]);
        harness.checkpoint(&mut |_, _| Ok(())).expect("the disk takes it");
        harness.check_all();
        harness.restart();
        harness.check_all();
    }
}

#[test]
fn a_damaged_member_page_is_found_by_verify_and_does_not_stop_a_start() {
    let member_page = 0x11;
    let at = prefix(member_page, tree_of(&harness(), "auto"));
    for (key, value) in damages(&harness(), &at) {
        let mut harness = harness();
        harness.store().damage(&key, value).expect("the disk takes it");
        let (_, findings) = verify(&harness.store(), &|_, _, _| {}).expect("pages can be read");
        assert!(!findings.is_empty(), "{key:?} {value:?}");
        harness.restart();
        harness.check_memory();
    }
}

fn findings(harness: &Harness) -> Vec<String> {
    verify(&harness.store(), &|_, _, _| {}).expect("everything can be read").1
}

/// Nothing but the id of a member says that two handles are one member's.
#[test]
fn a_member_with_two_handles_is_found_by_verify() {
    let harness = harness();
    let key = [&[0x10][..], &2_u32.to_be_bytes()].concat();
    let record = harness.store().record(&key).expect("readable").expect("there");
    let mut members = Vec::new();
    decode_dictionary(&record, |handle, id| members.push((handle, id.to_vec()))).expect("well-formed");
    members[1].1 = members[0].1.clone();
    let (first, second, id) = (members[0].0.0, members[1].0.0, String::from_utf8_lossy(&members[0].1));
    let twice = encode_dictionary(members.iter().map(|(handle, id)| (*handle, id.as_slice())));
    harness.store().damage(&key, Some(&twice)).expect("the disk takes it");
    let either = [(first, second), (second, first)];
    let either = either.map(|(one, other)| format!("{id} (handle {one}) has handle {other} too"));
    for by in ["tree", "member"] {
        let by = format!("the members that the {by} pages give: ");
        let mut found =
            findings(&harness).into_iter().filter_map(|found| Some(found.strip_prefix(&by)?.to_owned()));
        assert!(found.any(|found| either.contains(&found)), "{by}{:?}", findings(&harness));
    }
}

#[test]
fn profiles_of_nobody_and_those_that_are_none_are_found_by_verify() {
    let record = |version, json: Option<&str>| {
        encode_profile(&ProfileRecord { sequence: 1, version, json: json.map(str::to_owned) })
    };
    let good = record(None, Some("{}"));
    for (key, value, expected) in [
        (vec![0x0b], &good, "1 profiles belong to no member of this shard"),
        (vec![0x0b, 0xff], &good, "1 profiles belong to no member of this shard"),
        (vec![0x0b, b'\n'], &good, "1 profiles belong to no member of this shard"),
        (b"\x0bm".to_vec(), &record(None, None), "1 profiles are no JSON objects"),
        (b"\x0bm".to_vec(), &record(Some(1), Some("[]")), "1 profiles are no JSON objects"),
    ] {
        let harness = harness();
        harness.store().damage(&key, Some(value)).expect("the disk takes it");
        assert_eq!(findings(&harness), [expected]);
    }
    let harness = harness();
    for (member, record) in [("m1", &good), ("on no board", &good), ("gone", &record(Some(7), None))] {
        let key = [&[0x0b], member.as_bytes()].concat();
        harness.store().damage(&key, Some(record)).expect("the disk takes it");
    }
    assert!(findings(&harness).is_empty(), "{:?}", findings(&harness));
    harness.store().damage(b"\x0bm1", Some(GARBAGE)).expect("the disk takes it");
    let error = verify(&harness.store(), &|_, _, _| {}).expect_err("it cannot be read").to_string();
    assert!(error.contains("profile"), "{error}");
}

/// The entry says that it has metadata, and a record beside it holds them: neither without the other.
#[test]
fn metadata_that_are_gone_or_nobodys_are_found_by_verify() {
    let (auto, more) = (tree_of(&harness(), "auto"), tree_of(&harness(), "more"));
    let key = |tree, member: &str| [&prefix(0x04, tree)[..], member.as_bytes()].concat();
    let record = harness().store().record(&key(auto, "m1")).expect("readable").expect("m1 has metadata");
    let record = Some(record.as_slice());
    for (key, value, expected) in [
        (key(auto, "m1"), None, "board auto: the metadata of 1 entries are missing"),
        // Listed, hidden, on no board, not there, and of a board that was never there.
        (key(auto, "m5"), record, "board auto: 1 records of metadata belong to entries without metadata"),
        (key(auto, "m2"), record, "board auto: 1 records of metadata belong to entries without metadata"),
        (key(more, "m1"), record, "board more: 1 records of metadata belong to entries without metadata"),
        (key(more, "nobody"), record, "board more: 1 records of metadata belong to entries without metadata"),
        (key(TreeId(99), "m1"), record, "1 records of metadata belong to no board"),
        (vec![0x04, 0, 0], record, "1 records of metadata belong to no board"),
    ] {
        let harness = harness();
        harness.store().damage(&key, value).expect("the disk takes it");
        assert_eq!(findings(&harness), [expected]);
    }
    let harness = harness();
    harness.store().damage(&key(auto, "m1"), Some(GARBAGE)).expect("the disk takes it");
    assert!(
        verify(&harness.store(), &|_, _, _| {})
            .expect_err("it cannot be read")
            .to_string()
            .contains("metadata")
    );
}

/// With the tree page gone too there is no second source: nobody may guess.
#[test]
fn a_tree_page_and_a_member_page_damaged_together_are_refused() {
    let harness = harness();
    let tree = tree_of(&harness, "auto");
    for kind in [0x11, 0x13] {
        let key = harness.store().keys_from(&prefix(kind, tree)).expect("readable").remove(0);
        harness.store().damage(&key, Some(GARBAGE)).expect("the disk takes it");
    }
    assert!(refusal(&harness, TreesFrom::Pages).contains("page"));
    assert!(verify(&harness.store(), &|_, _, _| {}).is_err());
}

#[test]
fn damage_to_what_has_no_second_source_is_refused_in_words() {
    let auto = tree_of(&harness(), "auto");
    // Dictionary pages, extras, deltas, the manifest: garbage in any of them.
    for (at, word) in [
        (vec![0x10], "dictionary page"),
        (prefix(0x14, auto), "extras page"),
        (vec![0x02], "delta"),
        (vec![0x1f], "manifest"),
    ] {
        for value in [GARBAGE, NOTHING] {
            for key in harness().store().keys_from(&at).expect("readable").into_iter().take(3) {
                let harness = harness();
                harness.store().damage(&key, Some(value)).expect("the disk takes it");
                let words = refusal(&harness, TreesFrom::Pages);
                assert!(words.contains(word), "{words}");
                assert!(verify(&harness.store(), &|_, _, _| {}).is_err());
            }
        }
    }
}

#[test]
fn a_missing_dictionary_page_delta_or_manifest_is_refused() {
    for at in [0x10, 0x02, 0x1f] {
        for key in harness().store().keys_from(&[at]).expect("readable") {
            let harness = harness();
            harness.store().damage(&key, None).expect("the disk takes it");
            refusal(&harness, TreesFrom::Members);
            refusal(&harness, TreesFrom::Pages);
        }
    }
}

/// A delta that reads well and says what cannot be: an entry with more words than its board has.
#[test]
fn an_entry_of_another_shape_than_its_board_is_refused() {
    use crate::state::{Entry, EntryState};
    use crate::storage::codec::{decode_delta, encode_delta};
    use crate::tree::Words;
    let harness = harness();
    let store = harness.store();
    let key = store.keys_from(&[0x02]).expect("readable").remove(0);
    let mut delta =
        decode_delta(&store.record(&key).expect("readable").expect("there")).expect("well-formed");
    for change in &mut delta.changes {
        let state = EntryState::Listed(Words::from_slice(&[1, 2, 3]));
        change.after = change.after.map(|entry| Entry { state, ..entry });
    }
    store.damage(&key, Some(&encode_delta(&delta))).expect("the disk takes it");
    assert!(refusal(&harness, TreesFrom::Pages).contains("number of words"));
}

#[test]
fn rebuild_makes_the_trees_again_whatever_their_pages_are() {
    let mut harness = harness();
    let tree = tree_of(&harness, "auto");
    for key in harness.store().keys_from(&prefix(0x13, tree)).expect("readable").iter().step_by(2) {
        harness.store().damage(key, Some(GARBAGE)).expect("the disk takes it");
    }
    let store = harness.store.take().and_then(Arc::into_inner).expect("nobody else has it");
    rebuild(store, &|_, _, _| {}).expect("members can be read");
    harness.restart();
    harness.check_all();
}

/// Entries came and went since the checkpoint, so that its own count of them is not what there is.
#[test]
fn a_tree_whose_pages_are_damaged_and_whose_member_pages_are_not_all_there_is_refused() {
    let (tree_page, member_page) = (0x13, 0x11);
    let at = prefix(member_page, tree_of(&harness(), "auto"));
    for page in harness().store().keys_from(&at).expect("readable") {
        let mut harness = harness();
        let more = ["o", "p"].map(|id| job(id, &[("auto", &[3])]));
        harness.batch(&[Say::Jobs(more.into())]);
        let pages = prefix(tree_page, tree_of(&harness, "auto"));
        let pages = harness.store().keys_from(&pages).expect("readable");
        harness.store().damage(&page, None).expect("the disk takes it");
        // Nothing is lost yet.
        harness.restart();
        harness.check_memory();
        harness.store().damage(&pages[0], Some(GARBAGE)).expect("the disk takes it");
        let words = refusal(&harness, TreesFrom::Pages);
        assert!(words.contains("board auto has 201 entries, but its member pages hold"), "{words}");
        assert!(verify(&harness.store(), &|_, _, _| {}).is_err());
        let store = harness.store.take().and_then(Arc::into_inner).expect("nobody else has it");
        let words = rebuild(store, &|_, _, _| {}).expect_err("it would lose entries").to_string();
        assert!(words.contains("some pages are missing"), "{words}");
    }
}

#[test]
fn marking_a_board_rebuilt_that_is_gone_does_nothing() {
    let harness = harness();
    let gone = crate::writer::tests::build::board("gone");
    mark_rebuilt(&harness.store(), &mut harness.shard.write(Purpose::Apply), &[gone]).expect("nothing to do");
    harness.store().sync().expect("the disk takes it");
}

fn open_as(path: &Path, shard: u16, shards: u16) -> Result<Store, StorageError> {
    Store::open(path, ShardId(shard), shards, &StorageResources::new(8 << 20, 16))
}

fn refused(opened: Result<Store, StorageError>) -> StorageError {
    opened.err().expect("it is refused")
}

#[test]
fn another_format_is_refused_and_left_as_it_is() {
    for format_version in [1, FORMAT_VERSION - 1, FORMAT_VERSION + 1] {
        let mut harness = harness();
        let meta = harness.store().meta().expect("readable").expect("there");
        // What another version writes after its number, this one cannot know.
        let bytes = [encode_meta(&Meta { format_version, ..meta }), b"and more".to_vec()].concat();
        harness.store().damage(&[0x01], Some(&bytes)).expect("the disk takes it");
        harness.store = None;
        for _ in 0..2 {
            let refused = refused(open(harness.folder.path()));
            let StorageError::OtherFormat { found, known, .. } = &refused else { panic!("{refused:?}") };
            assert_eq!((*found, *known), (format_version, FORMAT_VERSION));
            assert!(refused.to_string().contains("another version of ranktree"), "{refused}");
        }
    }
}

#[test]
fn another_layout_is_refused_and_left_as_it_is() {
    let mut harness = harness();
    harness.store = None;
    for (shard, shards) in [(0, 2), (1, 2), (0, 64)] {
        let refused = refused(open_as(harness.folder.path(), shard, shards));
        let StorageError::OtherLayout { found_shards, .. } = &refused else { panic!("{refused:?}") };
        assert_eq!(*found_shards, 1);
        assert!(refused.to_string().contains("--shards 1"), "{refused}");
    }
    harness.restart();
    harness.check_all();
}

/// The folder's name must not be what tells: an unrelated failure below a folder named `lock` is no lock.
#[test]
fn a_directory_in_use_is_refused_as_such_and_nothing_else_is() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("lock hold by current process");
    let first = open(&path).expect("a new directory opens");
    let second = refused(open(&path));
    assert!(matches!(&second, StorageError::InUse(_)), "{second:?}");
    assert!(second.to_string().contains("in use by another process"), "{second}");
    drop(first);
    drop(open(&path).expect("it is free again"));
    // A folder where RocksDB's pointer to its manifest should be cannot be read, and is nobody's lock.
    std::fs::remove_file(path.join("CURRENT")).expect("it was there");
    std::fs::create_dir(path.join("CURRENT")).expect("the disk takes it");
    let other = refused(open(&path));
    assert!(!matches!(&other, StorageError::InUse(_)), "{other:?}");
}

#[test]
fn a_directory_that_lost_its_meta_record_is_refused_and_not_begun_anew() {
    let mut harness = harness();
    harness.store().damage(&[0x01], None).expect("the disk takes it");
    harness.store = None;
    for _ in 0..2 {
        let refused = refused(open(harness.folder.path()));
        assert!(matches!(&refused, StorageError::Damaged { .. }), "{refused:?}");
        assert!(refused.to_string().contains("meta record"), "{refused}");
    }
}

/// What a power failure may do to the log that RocksDB wrote last: it ends earlier, anywhere. The shard then
/// opens at an earlier message with everything right, or not at all.
#[test]
fn a_log_cut_short_opens_at_an_earlier_message_or_is_refused() {
    let mut harness = harness();
    let models: Vec<_> = (0..30)
        .map(|number| {
            let points = i64::from(number);
            harness.batch(&[
                Say::Jobs(vec![job(&format!("m{number}"), &[("auto", &[points]), ("more", &[-points])])]),
                Say::Ask(vec![job("n", &[("auto", &[points])]).meta(&format!(r#"{{"round":{number}}}"#))]),
            ]);
            (harness.last, harness.model.clone())
        })
        .collect();
    let folder = harness.folder.path().to_owned();
    let copy = tempfile::tempdir().expect("a temporary folder");
    // A copy of the files of a running store is what a crash leaves.
    copy_folder(&folder, copy.path());
    let (log, length) = newest_log(copy.path());
    let (mut opened, mut refusals) = (0, 0);
    for cut in (1..length.min(4_000)).step_by(97) {
        let broken = tempfile::tempdir().expect("a temporary folder");
        copy_folder(copy.path(), broken.path());
        let file = std::fs::File::options().write(true).open(broken.path().join(&log)).expect("it is there");
        file.set_len(length - cut).expect("the disk takes it");
        let recovered = open(broken.path()).and_then(|store| {
            let recovered = recover(&store, TreesFrom::Pages, &|_, _, _| {})?;
            Ok((store, recovered))
        });
        match recovered {
            Ok((store, mut recovered)) => {
                let applied = recovered.shard.applied.sequence.0;
                let (last, model) =
                    models.iter().find(|(last, _)| *last == applied).expect("a batch ended there");
                crate::writer::tests::harness::check(&mut recovered.shard, &store, model, *last);
                let (_, findings) = verify(&store, &|_, _, _| {}).expect("everything can be read");
                assert!(findings.is_empty(), "{findings:?}");
                opened += 1;
            }
            Err(error) => {
                assert!(matches!(&error, StorageError::Damaged { .. }), "{error:?}");
                refusals += 1;
            }
        }
    }
    assert!(opened > 5, "{opened} opened, {refusals} were refused");
}

/// A checkpoint deletes the deltas before it in a range, and no iterator reads them any more; a compaction
/// does.
#[test]
fn verify_finds_damage_among_records_that_were_deleted_in_a_range() {
    let mut harness = Harness::new(true);
    let many = (0..2_000).map(|number| job(&format!("m{number}"), &[("auto", &[number % 7])]));
    harness.batch(&[Say::Jobs(many.collect())]);
    harness.store().flush_log_for_test().expect("the disk takes it");
    let deltas = sst_files(harness.folder.path());
    harness.checkpoint(&mut |_, _| Ok(())).expect("the disk takes it");
    harness.store().flush_log_for_test().expect("the disk takes it");

    for file in deltas {
        let copy = tempfile::tempdir().expect("a temporary folder");
        copy_folder(harness.folder.path(), copy.path());
        let (_, findings) =
            verify(&open(copy.path()).expect("it opens"), &|_, _, _| {}).expect("nothing is damaged yet");
        assert!(findings.is_empty(), "{findings:?}");
        let path = copy.path().join(&file);
        let mut bytes = std::fs::read(&path).expect("RocksDB keeps it");
        let middle = bytes.len() / 3;
        bytes[middle] ^= 0xff;
        std::fs::write(&path, bytes).expect("the disk takes it");
        let found = open(copy.path()).and_then(|store| verify(&store, &|_, _, _| {}));
        let error = found.expect_err("a block is damaged");
        assert!(matches!(&error, StorageError::Damaged { .. }), "{error:?}");
    }
}

fn sst_files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("readable").flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let found: Vec<String> =
        names.filter(|name| Path::new(name).extension().is_some_and(|end| end == "sst")).collect();
    assert!(!found.is_empty());
    found
}

/// A log that was closed and synced is in RocksDB's manifest: without it the directory is refused.
#[test]
fn a_log_that_is_gone_is_refused_or_shows_an_earlier_state_never_a_wrong_one() {
    let harness = harness();
    let copy = tempfile::tempdir().expect("a temporary folder");
    copy_folder(harness.folder.path(), copy.path());
    let (log, _) = newest_log(copy.path());
    std::fs::remove_file(copy.path().join(log)).expect("it was there");
    // Everything up to the checkpoint needs the log: the commits were never flushed.
    let refused =
        open(copy.path()).and_then(|store| recover(&store, TreesFrom::Pages, &|_, _, _| {}).map(|_| ()));
    let error = refused.expect_err("the log held what the checkpoint was taken beside");
    assert!(matches!(&error, StorageError::Damaged { .. }), "{error:?}");
    drop(Arc::clone(&harness.shard));
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("readable") {
        let entry = entry.expect("readable");
        if entry.file_type().expect("readable").is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("the disk takes it");
        }
    }
}

/// RocksDB's log that it writes to, and its length.
fn newest_log(folder: &Path) -> (String, u64) {
    let entries = std::fs::read_dir(folder).expect("readable").flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let is_log =
        |name: &String| name.strip_suffix(".log").is_some_and(|number| number.parse::<u64>().is_ok());
    let newest = names.filter(is_log).max().expect("there is a log");
    let length = std::fs::metadata(folder.join(&newest)).expect("readable").len();
    (newest, length)
}
