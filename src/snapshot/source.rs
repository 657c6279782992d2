//! Reads a snapshot, by the rights of the thread that opened it: a restore that root runs reads with the
//! rights of the snapshot's owner what others may not read, and writes with those of the data directory's.
//!
//! Knows: one thread that reads, and what it sends. Must not know: what is done with the pieces (`restore`).

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use thiserror::Error;

use crate::snapshot::manifest::{Manifest, ManifestError, ManifestFile};
use crate::types::{ShardId, ShardSet};

/// Pieces that are read before they are taken, of a MiB each.
const PIECES_AHEAD: usize = 4;

/// A snapshot whose manifest was read. What is wrong with it is told once it is needed.
pub struct SnapshotSource {
    pub(super) manifest: Result<Manifest, ManifestError>,
    /// Whether all files are there, in the sizes that the manifest states.
    pub(super) sizes: Result<(), ManifestError>,
    pub(super) pieces: Pieces,
}

/// The pieces of all files of a snapshot, or of some shards of several.
pub struct Pieces(Vec<(Option<Manifest>, FromOne)>);

/// The pieces of files of one snapshot.
struct FromOne {
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
    #[error(transparent)]
    Snapshot(#[from] ManifestError),
    #[error("the snapshots in {} and {} do not belong together: they are of different {what}, {} and {}; give those of one service", one.0.display(), other.0.display(), one.1, other.1)]
    DoNotBelongTogether { what: String, one: (PathBuf, String), other: (PathBuf, String) },
    #[error(
        "there is no shard {shard}: the snapshots are of {shards} shards, counted from 0; give others with --shards"
    )]
    NoSuchShard { shard: ShardId, shards: u16 },
    #[error("none of the snapshots has shard {}; give one that has it with a further --from, or leave it out of --shards", numbers(.0))]
    Missing(Vec<ShardId>),
    #[error("give the snapshots with --from")]
    None,
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
        Ok(Self { manifest, sizes, pieces: Pieces(vec![(None, FromOne { begin, pieces })]) })
    }

    /// Of each shard the newest copy that some of the snapshots has.
    ///
    /// # Arguments
    /// - `sources`: the snapshots, each with its path
    /// - `wanted`: the shards; `None`: all that there are
    ///
    /// # Errors
    /// When one of them is none, they do not belong together, or none has a shard.
    pub fn newest_of(
        sources: Vec<(PathBuf, Self)>,
        wanted: Option<&ShardSet>,
    ) -> Result<(Self, Vec<Chosen>), SourceError> {
        let (mut manifests, mut readers) = (Vec::new(), Vec::new());
        for (path, Self { manifest, sizes, pieces }) in sources {
            let manifest = manifest?;
            sizes?;
            manifests.push((path, manifest));
            readers.push(pieces);
        }
        let (merged, chosen) = choose(&manifests, wanted)?;
        let mut pieces = Vec::new();
        for ((path, manifest), reader) in manifests.iter().zip(readers) {
            let of_this =
                |shard: u16| chosen.iter().any(|chosen| chosen.shard.0 == shard && chosen.from == *path);
            let shards: Vec<_> =
                manifest.shards.iter().filter(|shard| of_this(shard.shard)).cloned().collect();
            if !shards.is_empty() {
                let some = manifest.of_shards(shards);
                pieces.extend(reader.0.into_iter().map(|(_, reader)| (Some(some.clone()), reader)));
            }
        }
        Ok((Self { manifest: Ok(merged), sizes: Ok(()), pieces: Pieces(pieces) }, chosen))
    }
}

/// Which copy of a shard is restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub shard: ShardId,
    /// The snapshot that has it.
    pub from: PathBuf,
    pub applied: u64,
    /// The older ones that others have.
    pub older: Vec<(PathBuf, u64)>,
}

fn choose(
    manifests: &[(PathBuf, Manifest)],
    wanted: Option<&ShardSet>,
) -> Result<(Manifest, Vec<Chosen>), SourceError> {
    let Some(((first_path, first), others)) = manifests.split_first() else { return Err(SourceError::None) };
    for (path, manifest) in others {
        let differ = |what: &str, one: String, other: String| SourceError::DoNotBelongTogether {
            what: what.to_owned(),
            one: (first_path.clone(), one),
            other: (path.clone(), other),
        };
        if manifest.shard_count != first.shard_count {
            let counts = [first, manifest].map(|manifest| manifest.shard_count.to_string());
            let [one, other] = counts;
            return Err(differ("numbers of shards", one, other));
        }
        if manifest.service != first.service {
            let services = [first, manifest]
                .map(|manifest| manifest.service.clone().unwrap_or_else(|| "none".to_owned()));
            let [one, other] = services;
            return Err(differ("services", one, other));
        }
    }
    let all = ShardSet::first(first.shard_count);
    if let Some(beyond) = wanted.and_then(|wanted| wanted.iter().find(|shard| !all.contains(*shard))) {
        return Err(SourceError::NoSuchShard { shard: beyond, shards: first.shard_count });
    }
    let (mut shards, mut chosen, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for shard in wanted.unwrap_or(&all).iter() {
        let of = |(path, manifest): &(PathBuf, Manifest)| {
            let found = manifest.shards.iter().find(|found| found.shard == shard.0)?;
            Some((path.clone(), found.clone()))
        };
        let mut copies: Vec<_> = manifests.iter().filter_map(of).collect();
        // Of equal ones any.
        copies.sort_by_key(|(_, copy)| std::cmp::Reverse(copy.applied_sequence));
        let mut copies = copies.into_iter();
        match copies.next() {
            Some((from, newest)) => {
                let older = copies.map(|(path, copy)| (path, copy.applied_sequence)).collect();
                chosen.push(Chosen { shard, from, applied: newest.applied_sequence, older });
                shards.push(newest);
            }
            None => missing.push(shard),
        }
    }
    if wanted.is_some() && !missing.is_empty() {
        return Err(SourceError::Missing(missing));
    }
    // A restore that was interrupted is completed by the same one.
    let names: Vec<&str> = manifests.iter().map(|(_, manifest)| manifest.snapshot.as_str()).collect();
    let snapshot = match (names.as_slice(), wanted) {
        ([one], None) => (*one).to_owned(),
        (several, _) => format!("{} of {}", several.join("+"), listed(&chosen)),
    };
    let latest = manifests.iter().map(|(_, manifest)| manifest).max_by(|a, b| a.taken_at.cmp(&b.taken_at));
    let latest = latest.unwrap_or(first);
    let mut merged = latest.of_shards(shards);
    merged.snapshot = snapshot;
    Ok((merged, chosen))
}

fn listed(chosen: &[Chosen]) -> String {
    chosen.iter().map(|chosen| chosen.shard.to_string()).collect::<Vec<_>>().join(",")
}

fn numbers(shards: &[ShardId]) -> String {
    shards.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Pieces {
    /// All pieces in the order of the manifest. After the last piece of a file that does not have its
    /// checksum comes an error.
    pub fn read(self, manifest: &Manifest) -> impl Iterator<Item = Result<Piece, ManifestError>> + use<> {
        let manifest = manifest.clone();
        self.0.into_iter().flat_map(move |(own, FromOne { begin, pieces })| {
            // It waits for nothing else.
            let _ = begin.send(own.unwrap_or_else(|| manifest.clone()));
            pieces.into_iter()
        })
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
