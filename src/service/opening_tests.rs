//! What a start refuses of a data directory, and that it leaves it as it was.

use super::*;
use crate::board::{Definition, Key, Order};
use crate::state::{Applied, BoardEvent, Incarnation};
use crate::storage::Commit;
use crate::storage::codec::DeltaEncoder;
use crate::types::{BoardName, Sequence, ShardSet};
use crate::writer::{CheckpointGate, CheckpointPolicy, Checkpointer};

/// As a start with these settings does it.
fn open_with(config: &ServeConfig) -> Result<Vec<OpenedShard>, ServiceError> {
    let shards = config.shards.unwrap_or(1);
    let own = config.own.clone().unwrap_or_else(|| ShardSet::first(shards));
    let resources = StorageResources::new(8 << 20, shards);
    open_shards(config, &DataLayout { shards, own }, None, &resources, &LoadProgress::default())
}

#[test]
fn a_start_with_another_number_of_shards_leaves_the_directory_as_it_was() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data_dir = folder.path().to_str().expect("it is UTF-8");
    let config = |shards: u16| {
        ServeConfig::of(&["--data-dir", data_dir, "--shards", &shards.to_string()]).expect("good settings")
    };
    assert_eq!(open_with(&config(3)).expect("a new directory").len(), 3);
    for shards in [1, 2, 4, 9] {
        let refused = open_with(&config(shards)).map(|_| ()).expect_err("another layout").to_string();
        assert!(refused.contains("start with --shards 3"), "{refused}");
        let entries = std::fs::read_dir(folder.path()).expect("the folder is there");
        assert_eq!(entries.count(), 4, "with {shards} shards");
    }
    assert_eq!(open_with(&config(3)).expect("as it was").len(), 3);
    // Without the data directory's marker, the shards' own files say how many there are.
    let marker = folder.path().join("RANKTREE");
    std::fs::remove_file(&marker).expect("it is there");
    for shards in [1, 2, 4, 9] {
        let refused = open_with(&config(shards)).map(|_| ()).expect_err("another layout").to_string();
        assert!(refused.contains("start with --shards 3"), "{refused}");
    }
    assert_eq!(open_with(&config(3)).expect("as it was").len(), 3);
    assert!(marker.exists());
}

#[test]
fn an_only_shard_that_was_emptied_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data_dir = folder.path().to_str().expect("it is UTF-8");
    let config = ServeConfig::of(&["--data-dir", data_dir, "--shards", "1"]).expect("good settings");
    let open = || open_with(&config);
    open().expect("a new directory");
    let shard = folder.path().join("shard-000");
    for is_there in [true, false] {
        std::fs::remove_dir_all(&shard).expect("it is there");
        if is_there {
            std::fs::create_dir(&shard).expect("it can be made");
        }
        for _ in 0..2 {
            let refused = open().map(|_| ()).expect_err("it lost its data").to_string();
            assert!(refused.contains("shard-000 is missing or empty"), "{refused}");
            assert!(refused.contains("ranktree restore --from SNAPSHOT"), "{refused}");
        }
        let entries = std::fs::read_dir(folder.path()).expect("readable").count();
        assert_eq!(entries, 1 + usize::from(is_there));
    }
    std::fs::remove_file(folder.path().join("RANKTREE")).expect("it is there");
    open().expect("it begins anew when it is told to");
}

#[test]
fn shards_that_are_owned_come_and_go_and_one_that_is_lost_is_known_to_be() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data_dir = folder.path().to_str().expect("it is UTF-8");
    let open_of = |own: &str, shards: &str| {
        let data = ["--data-dir", data_dir, "--nats", "nats://127.0.0.1:1"];
        let config = ServeConfig::of(&[&data[..], &["--shards", shards, "--own", own]].concat());
        let config = config.expect("good settings");
        let opened = open_with(&config).map_err(|error| error.to_string())?;
        Ok::<_, String>(opened.iter().map(|shard| shard.id.0).collect::<Vec<_>>())
    };
    let open = |own: &str| open_of(own, "4");
    let known = || crate::storage::known_layout(folder.path()).expect("readable").expect("it is marked");
    let directory = |shard: u16| shard_directory(folder.path(), ShardId(shard));
    assert_eq!(open("none"), Ok(vec![]));
    assert_eq!(known().own.to_string(), "none");
    assert_eq!(open("0,2"), Ok(vec![0, 2]));
    assert_eq!(open("0-2"), Ok(vec![0, 1, 2]), "a shard that is new begins empty");
    std::fs::rename(directory(1), folder.path().join("aside")).expect("it can be moved");
    let data = ["--data-dir", data_dir, "--nats", "nats://127.0.0.1:1", "--shards", "4", "--own", "0-2"];
    let opened = open_with(&ServeConfig::of(&data).expect("good settings"));
    let opened = opened.expect("another node may have a copy of the one that is lost");
    assert_eq!(opened.iter().map(|shard| shard.is_lost).collect::<Vec<_>>(), [false, true, false]);
    drop(opened);
    assert_eq!(open("2"), Ok(vec![2]), "it is not owned any more");
    assert!(directory(0).exists(), "the directory stays");
    assert_eq!((known().shards, known().own.to_string()), (4, "2".to_owned()));
    assert_eq!(open("0-2"), Ok(vec![0, 1, 2]), "one is taken up again, and one begins empty");
    let refused = open_of("0-2", "3").expect_err("there are four");
    assert!(refused.contains("start with --shards 4"), "{refused}");
    // Without NATS nothing would fill the shard that the node did not own.
    let config = ServeConfig::of(&["--data-dir", data_dir, "--shards", "4"]).expect("good settings");
    let refused = open_with(&config).map(|_| ()).expect_err("it is alone").to_string();
    assert!(refused.contains("shard-003 is missing or empty"), "{refused}");
}

#[test]
fn a_shard_that_lost_its_marker_is_refused_where_the_data_directory_has_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data_dir = folder.path().to_str().expect("it is UTF-8");
    let config = ServeConfig::of(&["--data-dir", data_dir, "--shards", "2"]).expect("good settings");
    let open = || open_with(&config);
    open().expect("a new directory");
    let marker = folder.path().join("shard-001/RANKTREE");
    std::fs::remove_file(&marker).expect("it is there");
    for _ in 0..2 {
        let refused = open().map(|_| ()).expect_err("nobody knows what is gone").to_string();
        assert!(refused.contains("its file RANKTREE is missing"), "{refused}");
        assert!(!marker.exists());
    }
    // The way out for a copy that is known to be complete.
    std::fs::remove_file(folder.path().join("RANKTREE")).expect("it is there");
    assert_eq!(open().expect("it is taken as it is").len(), 2);
    assert!(marker.exists() && folder.path().join("RANKTREE").exists());
}

/// Messages that changed nothing, of jobs that were rejected or that wait, hold the stream back until a
/// checkpoint as others do. After a restart too, one that the queue wants must begin.
#[test]
fn a_wanted_checkpoint_begins_after_a_replay_of_messages_that_changed_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data_dir = folder.path().to_str().expect("it is UTF-8");
    let config = ServeConfig::of(&["--data-dir", data_dir, "--shards", "1"]).expect("good settings");
    let open = || open_with(&config).expect("it opens").remove(0);
    let can_begin = |opened: &OpenedShard| {
        let (policy, gate) = (CheckpointPolicy::default(), CheckpointGate::default());
        Checkpointer::new(policy, gate, opened.replayed).can_begin()
    };
    let opened = open();
    assert!(!can_begin(&opened), "there is nothing to put into one");
    let applied = Applied { sequence: Sequence(1), ..Applied::default() };
    let delta = DeltaEncoder::new(Sequence(1), applied, &[], 0).finish();
    let commit = Commit { applied, delta, ..Commit::default() };
    opened.store.get().expect("it is open").commit(&commit, true).expect("the disk takes it");
    drop(opened);
    assert!(can_begin(&open()));
}

/// Commits a message that gives a board this definition, in its first life.
fn define(opened: &OpenedShard, sequence: u64, definition: &Definition) {
    let board = BoardName::new("arena").expect("a good name");
    let event = BoardEvent::Define {
        board,
        incarnation: Incarnation(1),
        number: None,
        definition: Arc::new(definition.clone()),
    };
    let applied = Applied { sequence: Sequence(sequence), ..Applied::default() };
    let delta = DeltaEncoder::new(Sequence(sequence), applied, &[event], 0).finish();
    let commit = Commit { applied, delta, ..Commit::default() };
    opened.store.get().expect("it is open").commit(&commit, true).expect("the disk takes it");
}

/// Every file below a folder, with its bytes.
fn files_of(folder: &Path) -> BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            files.extend(files_of(&path));
        } else {
            let bytes = std::fs::read(&path).expect("readable");
            files.insert(path, bytes);
        }
    }
    files
}

/// Definitions of one life of a board that make two boards of it, and one that is only changed.
fn definitions() -> (Definition, Definition, Definition) {
    let first = Definition::default();
    let key = first.keys.first().expect("a key").clone();
    let other = Definition { keys: vec![Key { order: Order::Ascending, ..key }], ..first.clone() };
    let changed = Definition { keep: first.keep + 1, ..first.clone() };
    (first, other, changed)
}

#[test]
fn shards_that_disagree_about_a_life_of_a_board_are_refused_and_left_as_they_are() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data_dir = folder.path().to_str().expect("it is UTF-8");
    let config = ServeConfig::of(&["--data-dir", data_dir, "--shards", "3"]).expect("good settings");
    let (first, other, changed) = definitions();
    let opened = open_with(&config).expect("a new directory");
    for (shard, definition) in opened.iter().zip([&first, &changed, &first]) {
        define(shard, 1, definition);
    }
    drop(opened);
    let opened = open_with(&config).expect("they agree, though one has not heard of a change");
    let shard = opened.last().expect("there are three");
    let applied = Applied { sequence: Sequence(2), ..Applied::default() };
    let board = BoardName::new("arena").expect("a good name");
    let drop_board = BoardEvent::Drop { board, incarnation: Incarnation(1), number: None };
    let delta = DeltaEncoder::new(Sequence(2), applied, &[drop_board], 0).finish();
    let commit = Commit { applied, delta, ..Commit::default() };
    shard.store.get().expect("it is open").commit(&commit, true).expect("the disk takes it");
    drop(opened);
    let opened = open_with(&config).expect("a board that is over on one shard");
    define(opened.last().expect("there are three"), 3, &other);
    drop(opened);
    let before = files_of(folder.path());
    for _ in 0..2 {
        let refused = open_with(&config).map(|_| ()).expect_err("two boards under one name").to_string();
        assert!(refused.contains("the shards 0 and 2 have two definitions"), "{refused}");
        assert!(refused.contains("the board arena"), "{refused}");
    }
    assert_eq!(files_of(folder.path()).keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
}

#[test]
fn a_log_that_makes_another_board_of_a_life_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data_dir = folder.path().to_str().expect("it is UTF-8");
    let config = ServeConfig::of(&["--data-dir", data_dir, "--shards", "1"]).expect("good settings");
    let (first, other, changed) = definitions();
    for (sequence, definition) in (1..).zip([&first, &changed, &first, &other]) {
        let opened = open_with(&config).expect("up to here it is one board");
        define(&opened[0], sequence, definition);
    }
    let before = files_of(folder.path());
    for _ in 0..2 {
        let refused = open_with(&config).map(|_| ()).expect_err("another board").to_string();
        assert!(refused.contains("it defines the board arena anew, with other fields"), "{refused}");
    }
    assert_eq!(files_of(folder.path()), before);
}
