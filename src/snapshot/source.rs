//! Reads a snapshot, by the rights of the thread that opened it: a restore that root runs reads with the
//! rights of the snapshot's owner what others may not read, and writes with those of the data directory's.
//!
//! Knows: one thread that reads, and what it sends. Must not know: what is done with the pieces (`restore`).

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use thiserror::Error;

use crate::snapshot::manifest::{Manifest, ManifestError, ManifestFile};
use crate::types::ShardId;

/// Pieces that are read before they are taken, of a MiB each.
const PIECES_AHEAD: usize = 4;

/// A snapshot whose manifest was read. What is wrong with it is told once it is needed.
pub struct SnapshotSource {
    pub(super) manifest: Result<Manifest, ManifestError>,
    /// Whether all files are there, in the sizes that the manifest states.
    pub(super) sizes: Result<(), ManifestError>,
    pub(super) pieces: Pieces,
}

/// The pieces of all files of a snapshot.
pub struct Pieces {
    /// Has the thread begin. If this is dropped, it ends.
    begin: SyncSender<Manifest>,
    pieces: Receiver<Result<Piece, ManifestError>>,
}

/// A piece of a file. The pieces of a file follow each other, and each file has at least one.
pub struct Piece {
    pub shard: ShardId,
    pub file: ManifestFile,
    pub bytes: Vec<u8>,
}

/// Why a snapshot is not read.
#[derive(Debug, Error)]
pub enum SourceError {
    #[error("{} is the same directory as {}, or has it inside; a restore would use the snapshot up. Copy the snapshot elsewhere, or give another directory with --data-dir", outer.display(), inner.display())]
    Overlap { outer: PathBuf, inner: PathBuf },
    #[error("no thread can be started to read the snapshot: {0}")]
    NoThread(std::io::Error),
}

impl SnapshotSource {
    /// Reads the manifest, and starts the thread that will read the files.
    ///
    /// # Errors
    /// When there can be no such thread.
    pub fn open(from: &Path) -> Result<Self, SourceError> {
        let manifest = Manifest::read(from);
        let sizes = manifest.as_ref().map_or(Ok(()), |manifest| manifest.check_sizes(from));
        let (begin, begun) = sync_channel(1);
        let (sender, pieces) = sync_channel(PIECES_AHEAD);
        let from = from.to_owned();
        let read = move || {
            if let Ok(manifest) = begun.recv() {
                send_files(&manifest, &from, &sender);
            }
        };
        let thread = std::thread::Builder::new().name("snapshot".to_owned());
        thread.spawn(read).map_err(SourceError::NoThread)?;
        Ok(Self { manifest, sizes, pieces: Pieces { begin, pieces } })
    }
}

impl Pieces {
    /// All pieces in the order of the manifest. After the last piece of a file that does not have its
    /// checksum comes an error.
    pub fn read(self, manifest: &Manifest) -> impl Iterator<Item = Result<Piece, ManifestError>> {
        // It waits for nothing else.
        let _ = self.begin.send(manifest.clone());
        self.pieces.into_iter()
    }
}

fn send_files(manifest: &Manifest, from: &Path, sender: &SyncSender<Result<Piece, ManifestError>>) {
    let read = manifest.read_files(from, |shard, file, bytes| {
        let piece = Piece { shard, file: file.clone(), bytes: bytes.to_vec() };
        sender.send(Ok(piece)).map_err(|_| Ended::NotTaken)
    });
    if let Err(Ended::Failed(error)) = read {
        // If the restore has failed meanwhile, this is not taken either.
        let _ = sender.send(Err(error));
    }
}

/// Why reading ends early.
enum Ended {
    Failed(ManifestError),
    /// The restore has failed.
    NotTaken,
}

impl From<ManifestError> for Ended {
    fn from(error: ManifestError) -> Self {
        Self::Failed(error)
    }
}

/// Refuses to put a snapshot where it is itself.
///
/// # Errors
/// When one of the directories is inside the other.
pub fn refuse_overlap(from: &Path, data_dir: &Path) -> Result<(), SourceError> {
    let Some((outer, inner)) = overlap(from, data_dir) else { return Ok(()) };
    Err(SourceError::Overlap { outer, inner })
}

/// The outer and the inner directory, if one of them is the other, or is inside it.
fn overlap(one: &Path, other: &Path) -> Option<(PathBuf, PathBuf)> {
    // A directory that does not exist yet is inside whichever it will be made in.
    let real = |path: &Path| {
        let path = std::path::absolute(path).ok()?;
        let mut existing = path.ancestors();
        existing.find_map(|ancestor| {
            let rest = path.strip_prefix(ancestor).ok()?;
            Some(ancestor.canonicalize().ok()?.join(rest))
        })
    };
    let (one, other) = (real(one)?, real(other)?);
    if other.starts_with(&one) {
        Some((one, other))
    } else if one.starts_with(&other) {
        Some((other, one))
    } else {
        None
    }
}
