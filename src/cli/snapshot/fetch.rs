//! Fetches a snapshot from a running service, piece by piece.

use std::io::Write as _;

use serde::Deserialize;
use ureq::http::StatusCode;

use crate::cli::Failure;
use crate::cli::client::{Failed, Reader, Reply, describe_refusal, not_there};
use crate::cli::progress::Progress;
use crate::cli::snapshot::directory::PartialDirectory;
use crate::snapshot::{Manifest, ManifestFile, ManifestShard, append_checksum};
use crate::types::count;

/// How often a piece is asked for whose checksum is wrong.
const TRIES: u32 = 3;

/// A snapshot that the service holds, as far as it is needed here.
#[derive(Deserialize)]
pub struct Begun {
    snapshot: String,
    version: String,
    taken_at: String,
    /// Absent from services that always have every shard.
    shard_count: Option<u16>,
    shards: Vec<Copied>,
}

#[derive(Deserialize)]
struct Copied {
    shard: u16,
    applied_sequence: u64,
    stream: String,
    files: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    bytes: u64,
}

impl Begun {
    /// Has the service copy its files.
    ///
    /// # Errors
    /// When it refuses, or is not there.
    pub fn begin(service: &Reader) -> Result<Self, Failure> {
        let url = format!("{}/v1/snapshots", service.base());
        let failed = |reason: String| Err(format!("the snapshot cannot begin: {reason}").into());
        let Reply { status, body, .. } = match service.client().post(&url, "{}") {
            Ok(reply) => reply,
            Err(Failed::NotReached(reason) | Failed::Unknown(reason)) => {
                return failed(format!("{}: {}", service.base(), not_there(&reason)));
            }
            Err(Failed::TooLong(reason) | Failed::Permanent(reason)) => {
                return failed(format!("{}: {reason}", service.base()));
            }
        };
        if status != StatusCode::CREATED {
            return failed(format!("{} answers {}", service.base(), describe_refusal(status, &body)));
        }
        match serde_json::from_slice::<Self>(&body) {
            Ok(begun) if begun.is_plain() => Ok(begun),
            _ => failed(format!("{url}: the answer is not that of a ranktree service; check the address")),
        }
    }

    /// Whether all names stay within their directories.
    fn is_plain(&self) -> bool {
        let plain = |name: &str| {
            !name.starts_with('.')
                && !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
        };
        plain(&self.snapshot)
            && self.shards.iter().flat_map(|shard| &shard.files).all(|file| plain(&file.name))
    }

    /// Fetches all files, and syncs them.
    ///
    /// # Errors
    /// When the service stays away, or has removed the snapshot; when the disk refuses.
    pub fn fetch(
        &self,
        service: &Reader,
        to: &PartialDirectory,
        progress: &Progress,
    ) -> Result<Manifest, Failure> {
        let total = self.shards.iter().flat_map(|shard| &shard.files).map(|file| file.bytes).sum();
        let (mut shards, mut done) = (Vec::new(), 0);
        for shard in &self.shards {
            to.create_shard(shard.shard)?;
            let mut files = Vec::new();
            for file in &shard.files {
                let mut target = to.create_file(shard.shard, &file.name)?;
                let (mut offset, mut checksum) = (0, 0);
                while offset < file.bytes {
                    let piece = self.piece(service, shard.shard, file, offset)?;
                    checksum = append_checksum(checksum, &piece);
                    let written = target.write_all(&piece);
                    written.map_err(|error| format!("{} cannot be written: {error}", file.name))?;
                    offset += count(piece.len());
                    done += count(piece.len());
                    progress.note("fetching", done, total);
                }
                target.sync_all().map_err(|error| format!("{} cannot be synced: {error}", file.name))?;
                let (name, bytes, crc32c) = (file.name.clone(), file.bytes, format!("{checksum:08x}"));
                files.push(ManifestFile { name, bytes, crc32c });
            }
            let Copied { shard, applied_sequence, ref stream, .. } = *shard;
            shards.push(ManifestShard { shard, applied_sequence, stream: stream.clone(), files });
        }
        let (snapshot, taken_at) = (self.snapshot.clone(), self.taken_at.clone());
        let shard_count = self.shard_count.or(u16::try_from(shards.len()).ok()).unwrap_or_default();
        let first = self.shards.first().map(|shard| to.service_of(shard.shard)).transpose()?.flatten();
        Ok(Manifest::new(snapshot, taken_at, first, self.version.clone(), shard_count, shards))
    }

    fn piece(&self, service: &Reader, shard: u16, file: &Listed, offset: u64) -> Result<Vec<u8>, Failure> {
        let (base, snapshot, name) = (service.base(), &self.snapshot, &file.name);
        let url = format!("{base}/v1/snapshots/{snapshot}/shards/{shard}/files/{name}?offset={offset}");
        for _ in 0..TRIES {
            let Reply { body, crc32c, .. } = service.reply(&url)?;
            let is_whole = crc32c == Some(format!("{:08x}", append_checksum(0, &body)));
            if is_whole && !body.is_empty() && count(body.len()) <= file.bytes - offset {
                return Ok(body);
            }
        }
        Err(format!("{url}: the answer is damaged, {TRIES} times in a row; check what is between this machine and the service").into())
    }

    /// Lets the service remove its copy. If that fails, it does so by itself after a while.
    pub fn release(&self, service: &Reader) {
        let url = format!("{}/v1/snapshots/{}", service.base(), self.snapshot);
        let _ = service.client().delete(&url);
    }
}
