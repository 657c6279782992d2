//! A copy of another node's data takes the place of what a writer has, between two batches.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::state::Applied;
use crate::state_lock::Purpose;
use crate::storage::codec::Divergence;
use crate::storage::{StorageError, copy_shard};
use crate::types::{NodeName, Sequence};
use crate::writer::tests::build::job;
use crate::writer::tests::harness::open;
use crate::writer::tests::replayed::Stream;
use crate::writer::tests::source::{Running, jobs};
use crate::writer::{BatchLimits, CopyToInstall, Fetched, JobSource, Payload};

/// The messages of both nodes' stream: each sets another member's score.
fn stream() -> Vec<Payload> {
    (1..=7_i64).map(|score| jobs(vec![job(&format!("m{score}"), &[("b", &[score])])])).collect()
}

/// A stream that gives a copy after its second message, and notes which messages it is asked for.
struct Interrupted {
    stream: Stream,
    fetched: Arc<Mutex<Vec<u64>>>,
    copy: Option<CopyToInstall>,
}

impl JobSource for Interrupted {
    fn resume(&mut self, applied: Applied, stream: &str) -> Result<(), String> {
        self.stream.resume(applied, stream)
    }

    fn fetch(&mut self, limits: BatchLimits, wait: Duration) -> Fetched {
        let fetched = self.stream.fetch(limits, wait);
        if let Fetched::Batch(messages) = &fetched {
            self.fetched.lock().extend(messages.iter().map(|message| message.sequence.0));
        }
        fetched
    }

    fn copy_to_install(&mut self) -> Option<CopyToInstall> {
        if self.fetched.lock().len() == 2 { self.copy.take() } else { None }
    }

    fn limits(&self) -> BatchLimits {
        self.stream.limits()
    }

    fn needs_sync(&self) -> bool {
        false
    }
}

/// A directory with a copy of a node's shard that has applied the first messages.
fn copy_after(messages: usize) -> tempfile::TempDir {
    let giver = Running::new(true);
    let mut first = stream();
    first.truncate(messages);
    giver.writer(Stream::new(first).0).run();
    giver.load();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = giver.store.get().expect("it is open");
    // It differed from another one, and has a copy of that one's data since.
    let [by, node] = ["other", "giver"].map(|name| NodeName::new(name).expect("a good name"));
    let (stream, sequence) = ("S@1".to_owned(), Sequence(1));
    let found = Divergence { stream, sequence, by, own: 1, node, theirs: 2 };
    store.note_divergence(Some(&found)).expect("the disk takes it");
    copy_shard(&store, &folder.path().join("copy")).expect("it is copied");
    folder
}

fn replace(directory: &Path, by: &Path) {
    for entry in std::fs::read_dir(directory).expect("it is there") {
        std::fs::remove_file(entry.expect("readable").path()).expect("it has no folders");
    }
    for entry in std::fs::read_dir(by).expect("it is there") {
        let entry = entry.expect("readable");
        std::fs::copy(entry.path(), directory.join(entry.file_name())).expect("it can be copied");
    }
}

/// Runs a writer that gets a copy after two messages; which messages it was brought, and whether the copy was
/// taken.
fn run(running: &Running, copied: usize, failures: usize) -> (Vec<u64>, bool) {
    let (copy, attempts) = (copy_after(copied), AtomicUsize::new(0));
    let (done, mut is_done) = oneshot::channel();
    let (shard, directory) = (Arc::clone(&running.shard), running.folder.path().to_owned());
    let put_in_place = move || {
        assert_eq!(shard.read(Purpose::Read).applied.sequence, Sequence(2), "readers see what was there");
        if attempts.fetch_add(1, Ordering::SeqCst) < failures {
            return Err(StorageError::Closed);
        }
        // Nothing holds the directory.
        drop(open(&directory)?);
        let _ = std::fs::remove_dir(directory.join("staging"));
        replace(&directory, &copy.path().join("copy"));
        Ok(())
    };
    let applied = Sequence(u64::try_from(copied).expect("small"));
    let from = NodeName::new("giver").expect("a good name");
    let copy = CopyToInstall { from, applied, put_in_place: Box::new(put_in_place), done };
    let (stream, _answers) = Stream::new(stream());
    let fetched: Arc<Mutex<Vec<u64>>> = Arc::default();
    running.writer(Interrupted { stream, fetched: Arc::clone(&fetched), copy: Some(copy) }).run();
    running.load();
    let (fetched, is_taken) = (fetched.lock().clone(), is_done.try_recv().is_ok());
    let from = running.store.get().and_then(|store| store.copied_from()).expect("it is open");
    assert_eq!(from.is_some(), is_taken);
    let found = running.store.get().and_then(|store| store.divergence()).expect("it is open");
    assert_eq!(found, None, "that was the giver's");
    assert_eq!(running.health.get(|health| health.copied_from.clone()), from);
    (fetched, is_taken)
}

fn all() -> Vec<(String, i64)> {
    (1..=7).rev().map(|score| (format!("m{score}"), score)).collect()
}

#[test]
fn the_writer_goes_on_after_the_copy_however_often_it_could_not_be_put_in_place() {
    for failures in [0, 2] {
        let running = Running::new(true);
        assert_eq!(run(&running, 5, failures), (vec![1, 2, 6, 7], true));
        assert_eq!(running.board("b"), all());
        assert_eq!(running.applied.get(), Sequence(7));
        assert!(running.health.get(|health| health.checkpoint_sequence) >= 5);
    }
}

#[test]
fn a_copy_that_is_older_than_what_is_applied_is_not_taken() {
    let running = Running::new(true);
    assert_eq!(run(&running, 1, 0), ((1..=7).collect(), false));
    assert_eq!(running.board("b"), all());
}
