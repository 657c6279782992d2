//! The manifest of a snapshot: a JSON file that says which shards and files belong to it.
//!
//! It is written last, so a directory without one is no snapshot. It has a checksum of itself, and the size
//! and the checksum of each file.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::regular_file::{open_in, read_small_in};
use crate::storage::{DataLayout, ServiceId, replace_file, shard_directory};
use crate::types::{MAX_SHARDS, ShardId, quoted};

/// The manifest's name in the directory of a snapshot.
pub use crate::storage::SNAPSHOT as MANIFEST;
/// The new file, which is renamed once it is written and synced.
const NEW: &str = "SNAPSHOT.json.new";
/// Raised with every change that an older ranktree could not read.
const FORMAT: u32 = 1;
/// How much of a file is read at a time.
const BUFFER_BYTES: usize = 1 << 20;
/// More than the manifest of any snapshot has: about a hundred bytes for each file.
const MANIFEST_MAX_BYTES: u64 = 256 << 20;

/// What a snapshot consists of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    format: u32,
    /// Tells this snapshot from others.
    pub snapshot: String,
    /// When the node began to copy.
    pub taken_at: String,
    /// The service of all shards; absent if it was not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The node's version.
    pub version: String,
    /// How many shards the members are spread over.
    pub shard_count: u16,
    /// Every shard that the node has, by number.
    pub shards: Vec<ManifestShard>,
    /// Of all of the above.
    #[serde(default)]
    checksum: String,
}

/// The copy of one shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestShard {
    pub shard: u16,
    /// The applied sequence that the copy holds.
    pub applied_sequence: u64,
    /// Identity of the queue that the sequence belongs to: empty without NATS.
    pub stream: String,
    pub files: Vec<ManifestFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestFile {
    pub name: String,
    pub bytes: u64,
    /// Eight hexadecimal digits.
    pub crc32c: String,
}

/// Why a directory is no snapshot that can be used.
#[derive(Debug, Error)]
pub enum ManifestError {
    #[error("{} holds no snapshot: it has no file {MANIFEST}, which is written last; give the directory that ranktree snapshot has completed", .0.display())]
    Missing(PathBuf),
    #[error("the snapshot in {} has format {found}, and this ranktree reads format {FORMAT}; use the version of ranktree that took it (its {MANIFEST} says which), or a later one", path.display())]
    OtherFormat { path: PathBuf, found: u64 },
    #[error("the snapshot in {} is damaged: {what}; take another one, or use another copy", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: std::io::Error },
}

impl Manifest {
    pub fn new(
        snapshot: String,
        taken_at: String,
        service: Option<ServiceId>,
        version: String,
        shard_count: u16,
        shards: Vec<ManifestShard>,
    ) -> Self {
        let manifest = Self {
            format: FORMAT,
            snapshot,
            taken_at,
            service: service.map(|service| service.to_string()),
            version,
            shard_count,
            shards,
            checksum: String::new(),
        };
        Self { checksum: manifest.own_checksum(), ..manifest }
    }

    /// The same of these shards alone.
    pub(super) fn of_shards(&self, shards: Vec<ManifestShard>) -> Self {
        Self { shards, ..self.clone() }
    }

    fn own_checksum(&self) -> String {
        let bare = Self { checksum: String::new(), ..self.clone() };
        let json = serde_json::to_vec(&bare).expect("names and numbers can be JSON");
        format!("{:08x}", crc32c::crc32c(&json))
    }

    /// Which shards it has, of how many.
    pub fn layout(&self) -> DataLayout {
        let own = self.shards.iter().map(|shard| ShardId(shard.shard)).collect();
        DataLayout { shards: self.shard_count, own }
    }

    /// All files together.
    pub fn bytes(&self) -> u64 {
        self.files().map(|(_, file)| file.bytes).sum()
    }

    pub fn files(&self) -> impl Iterator<Item = (ShardId, &ManifestFile)> {
        self.shards.iter().flat_map(|shard| shard.files.iter().map(|file| (ShardId(shard.shard), file)))
    }

    /// Writes the manifest, synced.
    pub fn write(&self, directory: &Path) -> Result<(), ManifestError> {
        let path = directory.join(MANIFEST);
        let put = || {
            let mut json = serde_json::to_vec_pretty(self)?;
            json.push(b'\n');
            replace_file(&path, &directory.join(NEW), &json).map(drop)
        };
        put().map_err(|error| ManifestError::Io { path: path.clone(), error })
    }

    /// Reads the manifest of a snapshot.
    ///
    /// # Errors
    /// When there is none, it is of another format, or it is damaged.
    pub fn read(directory: &Path) -> Result<Self, ManifestError> {
        let path = directory.join(MANIFEST);
        let bytes = match read_small_in(directory, MANIFEST, MANIFEST_MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(ManifestError::Missing(directory.to_owned()));
            }
            Err(error) => return Err(ManifestError::Io { path, error }),
        };
        let damaged = |what: String| Err(ManifestError::Damaged { path: directory.to_owned(), what });
        let Ok(json) = serde_json::from_slice::<serde_json::Value>(&bytes) else {
            return damaged(format!("its {MANIFEST} is not JSON"));
        };
        // Other formats may have other fields.
        match json.get("format").and_then(serde_json::Value::as_u64) {
            Some(found) if found == u64::from(FORMAT) => {}
            Some(found) => return Err(ManifestError::OtherFormat { path: directory.to_owned(), found }),
            None => return damaged(format!("its {MANIFEST} does not say which format it has")),
        }
        let manifest: Self = match serde_json::from_value(json) {
            Ok(manifest) => manifest,
            // Names of fields that are none of ours come with the error.
            Err(error) => {
                return damaged(format!("its {MANIFEST} cannot be read: {}", quoted(&error.to_string())));
            }
        };
        if manifest.checksum != manifest.own_checksum() {
            return damaged(format!("its {MANIFEST} does not have the checksum that it states"));
        }
        match manifest.contradiction() {
            Some(what) => damaged(what),
            None => Ok(manifest),
        }
    }

    /// What cannot be in the manifest of a whole snapshot.
    fn contradiction(&self) -> Option<String> {
        let of_shards = self.shards.iter().map(|shard| &shard.stream);
        let texts = [&self.snapshot, &self.taken_at, &self.version].into_iter().chain(&self.service);
        // They are shown to an operator, whose terminal would obey what is not printable.
        if let Some(text) = texts.chain(of_shards).find(|text| !text.escape_debug().eq(text.chars())) {
            return Some(format!("its {MANIFEST} has {}, and ranktree writes no such text", quoted(text)));
        }
        let numbers: Vec<u16> = self.shards.iter().map(|shard| shard.shard).collect();
        let are_some = numbers.is_sorted_by(|one, next| one < next)
            && numbers.last().is_some_and(|last| *last < self.shard_count);
        if !are_some || self.shard_count > MAX_SHARDS {
            return Some(format!(
                "its {MANIFEST} lists the shards {numbers:?}, but there are {} shards, numbered from 0",
                self.shard_count
            ));
        }
        for shard in &self.shards {
            let names: BTreeSet<&str> = shard.files.iter().map(|file| file.name.as_str()).collect();
            if names.len() != shard.files.len() || !names.contains("CURRENT") || !names.iter().all(is_plain) {
                return Some(format!(
                    "the files that its {MANIFEST} lists for shard {} are not those of a shard",
                    shard.shard
                ));
            }
        }
        None
    }

    /// Refuses a snapshot that lacks a file, or has one of another size. Reads no file.
    pub fn check_sizes(&self, directory: &Path) -> Result<(), ManifestError> {
        for (shard, file) in self.files() {
            let path = shard_directory(directory, shard).join(&file.name);
            let damaged = |what: String| ManifestError::Damaged { path: directory.to_owned(), what };
            let found = match std::fs::symlink_metadata(&path) {
                Ok(found) if !found.is_file() => {
                    return Err(damaged(format!("{} is not a regular file", path.display())));
                }
                Ok(found) => found,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Err(damaged(format!("the file {} is missing", path.display())));
                }
                Err(error) => return Err(ManifestError::Io { path, error }),
            };
            if found.len() != file.bytes {
                let (found, bytes) = (found.len(), file.bytes);
                let what = format!("the file {} has {found} bytes in place of {bytes}", path.display());
                return Err(damaged(what));
            }
        }
        Ok(())
    }

    /// Reads every file of a snapshot, and compares sizes and checksums.
    ///
    /// # Arguments
    /// `each`: called for each piece that was read, with the file that it is of.
    ///
    /// # Errors
    /// When a file is missing or damaged, and those of `each`.
    pub fn read_files<E: From<ManifestError>>(
        &self,
        directory: &Path,
        mut each: impl FnMut(ShardId, &ManifestFile, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.check_sizes(directory)?;
        let mut buffer = vec![0; BUFFER_BYTES];
        for (shard, file) in self.files() {
            let folder = shard_directory(directory, shard);
            let path = folder.join(&file.name);
            let failed = |error| ManifestError::Io { path: path.clone(), error };
            let mut from = open_in(&folder, &file.name).map_err(failed)?;
            let mut checksum = 0;
            // Empty files have no pieces.
            each(shard, file, &[])?;
            loop {
                let read = from.read(&mut buffer).map_err(failed)?;
                let Some(piece) = buffer.get(..read).filter(|piece| !piece.is_empty()) else { break };
                checksum = append_checksum(checksum, piece);
                each(shard, file, piece)?;
            }
            if format!("{checksum:08x}") != file.crc32c {
                let what = format!("the content of {} does not have its checksum", path.display());
                return Err(ManifestError::Damaged { path: directory.to_owned(), what }.into());
            }
        }
        Ok(())
    }
}

/// The checksum of a file, continued by a piece of it. It begins with 0.
pub fn append_checksum(checksum: u32, piece: &[u8]) -> u32 {
    crc32c::crc32c_append(checksum, piece)
}

/// Whether a name stays within its directory, and does nothing to the terminal that it is shown on.
fn is_plain(name: &&str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::count;

    const SERVICE: &str = "0123456789abcdef0123456789abcdef";

    fn shard(shard: u16) -> ManifestShard {
        let files = [("000008.sst", "some pages"), ("CURRENT", "MANIFEST-000005\n")];
        let file = |(name, text): (&str, &str)| ManifestFile {
            name: name.to_owned(),
            bytes: count(text.len()),
            crc32c: format!("{:08x}", append_checksum(0, text.as_bytes())),
        };
        ManifestShard {
            shard,
            applied_sequence: 1842,
            stream: "RANKTREE_JOBS_0@1".to_owned(),
            files: files.into_iter().map(file).collect(),
        }
    }

    fn manifest(shards: Vec<ManifestShard>) -> Manifest {
        let count = u16::try_from(shards.len()).expect("a few");
        of_shards(count, shards)
    }

    fn of_shards(count: u16, shards: Vec<ManifestShard>) -> Manifest {
        let (taken_at, service) = ("2026-11-22T13:00:00Z".to_owned(), ServiceId::parse(SERVICE));
        Manifest::new("6a".to_owned(), taken_at, service, "0.1.0".to_owned(), count, shards)
    }

    /// A directory with the files of a manifest.
    fn put(manifest: &Manifest) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        manifest.write(folder.path()).expect("the disk takes it");
        for shard in &manifest.shards {
            let path = shard_directory(folder.path(), ShardId(shard.shard));
            std::fs::create_dir(&path).expect("it can be made");
            std::fs::write(path.join("000008.sst"), "some pages").expect("it can be written");
            std::fs::write(path.join("CURRENT"), "MANIFEST-000005\n").expect("it can be written");
        }
        folder
    }

    fn read_files(manifest: &Manifest, folder: &Path) -> Result<(), ManifestError> {
        manifest.read_files(folder, |_, _, _| Ok(()))
    }

    /// These bytes are on people's disks.
    #[test]
    fn golden_manifest() {
        let manifest = manifest(vec![shard(0)]);
        let folder = put(&manifest);
        let text = std::fs::read_to_string(folder.path().join(MANIFEST)).expect("it is there");
        let expect = r#"{
  "format": 1,
  "snapshot": "6a",
  "taken_at": "2026-11-22T13:00:00Z",
  "service": "0123456789abcdef0123456789abcdef",
  "version": "0.1.0",
  "shard_count": 1,
  "shards": [
    {
      "shard": 0,
      "applied_sequence": 1842,
      "stream": "RANKTREE_JOBS_0@1",
      "files": [
        {
          "name": "000008.sst",
          "bytes": 10,
          "crc32c": "8c6184ea"
        },
        {
          "name": "CURRENT",
          "bytes": 16,
          "crc32c": "9e7fdadc"
        }
      ]
    }
  ],
  "checksum": "CHECKSUM"
}
"#;
        assert_eq!(text.replace(&manifest.checksum, "CHECKSUM"), expect, "{}", manifest.checksum);
        assert_eq!(Manifest::read(folder.path()).expect("it is whole"), manifest);
        read_files(&manifest, folder.path()).expect("the files are whole");
    }

    #[test]
    fn a_changed_manifest_is_refused() {
        let whole = manifest(vec![shard(0), shard(1)]);
        let folder = put(&whole);
        let path = folder.path().join(MANIFEST);
        let text = std::fs::read_to_string(&path).expect("it is there");
        for (from, to, expect) in [
            ("\"format\": 1", "\"format\": 2", "has format 2, and this ranktree reads format 1"),
            ("\"format\": 1", "\"format\": 0", "has format 0"),
            ("\"format\": 1,", "", "does not say which format"),
            ("1842", "1843", "checksum that it states"),
            ("CURRENT", "CURRENS", "checksum that it states"),
            ("\"stream\"", "\"streem\"", "unknown field"),
            ("}", "", "is not JSON"),
        ] {
            std::fs::write(&path, text.replacen(from, to, 1)).expect("it can be written");
            let refused = Manifest::read(folder.path()).expect_err(to).to_string();
            assert!(refused.contains(expect), "{refused}");
        }
        std::fs::remove_file(&path).expect("it is there");
        let refused = Manifest::read(folder.path()).expect_err("it is gone").to_string();
        assert!(refused.contains("holds no snapshot"), "{refused}");
    }

    #[test]
    fn a_node_that_owns_some_shards_has_a_manifest_of_those() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let some = of_shards(4, vec![shard(0), shard(2)]);
        some.write(folder.path()).expect("the disk takes it");
        let read = Manifest::read(folder.path()).expect("it is whole");
        assert_eq!(read.layout().own.to_string(), "0,2");
        for wrong in [vec![shard(2), shard(0)], vec![shard(0), shard(4)]] {
            of_shards(4, wrong).write(folder.path()).expect("the disk takes it");
            let refused = Manifest::read(folder.path()).expect_err("no node has these").to_string();
            assert!(refused.contains("but there are 4 shards"), "{refused}");
        }
    }

    #[test]
    fn a_manifest_without_all_shards_is_refused() {
        let mut twice = shard(0);
        twice.files.push(ManifestFile { name: "../CURRENT".to_owned(), bytes: 1, crc32c: String::new() });
        for shards in
            [vec![], vec![shard(1)], vec![shard(0), shard(2)], vec![shard(0), shard(0)], vec![twice]]
        {
            let folder = tempfile::tempdir().expect("a temporary folder");
            manifest(shards).write(folder.path()).expect("the disk takes it");
            let refused = Manifest::read(folder.path()).expect_err("it is not whole").to_string();
            assert!(refused.contains("is damaged: "), "{refused}");
        }
    }

    /// Whoever has made a snapshot can give it any text, and the checksum that belongs to it.
    #[test]
    fn text_that_a_terminal_would_obey_is_refused_and_not_shown() {
        let changed = |change: &dyn Fn(&mut Manifest)| {
            let mut manifest = manifest(vec![shard(0)]);
            change(&mut manifest);
            Manifest { checksum: manifest.own_checksum(), ..manifest }
        };
        for bad in ["\u{1b}]0;x\u{7}", "a\rb", "\u{7f}", "\u{9b}2J", "\u{202e}x", "a\nb"] {
            let named = |manifest: &mut Manifest| bad.clone_into(&mut manifest.shards[0].files[0].name);
            let changes: [&dyn Fn(&mut Manifest); 5] = [
                &named,
                &|manifest| bad.clone_into(&mut manifest.snapshot),
                &|manifest| bad.clone_into(&mut manifest.taken_at),
                &|manifest| bad.clone_into(&mut manifest.version),
                &|manifest| bad.clone_into(&mut manifest.shards[0].stream),
            ];
            for change in changes {
                let folder = put(&manifest(vec![shard(0)]));
                changed(change).write(folder.path()).expect("the disk takes it");
                let said = Manifest::read(folder.path()).expect_err(bad).to_string();
                assert!(said.contains("is damaged: ") && !said.contains(bad), "{said:?}");
            }
        }
    }

    #[test]
    fn a_missing_or_damaged_file_is_named() {
        let manifest = manifest(vec![shard(0), shard(1)]);
        let folder = put(&manifest);
        let path = shard_directory(folder.path(), ShardId(1)).join("000008.sst");
        for (content, expect) in [
            (Some("some pagen"), "does not have its checksum"),
            (Some("some page"), "has 9 bytes in place of 10"),
            (None, "is missing"),
        ] {
            match content {
                Some(content) => std::fs::write(&path, content).expect("it can be written"),
                None => std::fs::remove_file(&path).expect("it is there"),
            }
            let refused = read_files(&manifest, folder.path()).expect_err("it is damaged").to_string();
            assert!(refused.contains(expect) && refused.contains("shard-001/000008.sst"), "{refused}");
        }
    }
}
