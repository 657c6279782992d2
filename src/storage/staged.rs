//! Sorted files on their way into RocksDB, where they take effect together.
//!
//! Knows: the staging folder, and which of several records and range deletions of a key is in force. Must not
//! know: what a checkpoint consists of.

use std::path::PathBuf;
use std::time::Duration;

use rocksdb::{IngestExternalFileOptions, SstFileWriter};

use crate::state::TreeId;
use crate::storage::copies::{Copied, CopiedEntries};
use crate::storage::error::StorageError;
use crate::storage::store::Store;
use crate::storage::{codec, keys};
use crate::types::count;

/// The size and duration of a checkpoint.
#[derive(Debug, Clone, Copy, Default)]
pub struct CheckpointFigures {
    pub pages: u64,
    pub bytes: u64,
    pub took: Duration,
}

/// Files with the records of one checkpoint. A record in a later file replaces one in an earlier file.
pub(super) struct Staged<'a> {
    store: &'a Store,
    options: &'a rocksdb::Options,
    folder: PathBuf,
    /// Where one file ends and the next begins.
    file_bytes: u64,
    writer: Option<SstFileWriter<'a>>,
    writer_bytes: u64,
    files: Vec<PathBuf>,
    figures: CheckpointFigures,
}

impl<'a> Staged<'a> {
    pub(super) fn new(
        store: &'a Store,
        options: &'a rocksdb::Options,
        file_bytes: u64,
    ) -> Result<Self, StorageError> {
        store.check_directory()?;
        let folder = store.staging();
        // A failed attempt may have left files behind. A missing folder counts as empty.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(|error| StorageError::Io { path: folder.clone(), error })?;
        let (writer, files, figures) = (None, Vec::new(), CheckpointFigures::default());
        Ok(Self { store, options, folder, file_bytes, writer, writer_bytes: 0, files, figures })
    }

    /// Stages a copied slice.
    pub(super) fn take(&mut self, copied: Copied) -> Result<(), StorageError> {
        match copied {
            Copied::Record(key, value) => self.put_or_delete(&key, value.as_deref()),
            Copied::Members(tree, page, entries) => {
                self.put_or_delete(&keys::member_page(tree, page), encoded(&entries).as_deref())
            }
            Copied::Leaves(tree, pages) => pages.iter().try_for_each(|(page, entries)| {
                self.put_or_delete(&keys::tree_page(tree, *page), encoded(entries).as_deref())
            }),
        }
    }

    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StorageError> {
        self.put_or_delete(key, Some(value))
    }

    /// Records come in ascending order of their keys.
    pub(super) fn put_or_delete(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StorageError> {
        let bytes = count(key.len() + value.map_or(0, <[u8]>::len));
        self.figures.pages += 1;
        self.figures.bytes += bytes;
        self.writer_bytes += bytes;
        let writer = self.writer()?;
        match value {
            Some(value) => writer.put(key, value)?,
            None => writer.delete(key)?,
        }
        if self.writer_bytes >= self.file_bytes { self.finish_file() } else { Ok(()) }
    }

    /// Removes all of a tree's records of a kind: those on disk, and those in files before this one. Records
    /// of the same file stay, so a caller that has staged any of that kind and tree calls
    /// [`Staged::finish_file`] first.
    pub(super) fn delete_tree(&mut self, kind: u8, tree: TreeId) -> Result<(), StorageError> {
        let prefix = keys::of_tree(kind, tree);
        Ok(self.writer()?.delete_range(prefix.to_vec(), keys::after(&prefix))?)
    }

    fn writer(&mut self) -> Result<&mut SstFileWriter<'a>, StorageError> {
        if self.writer.is_none() {
            let path = self.folder.join(format!("{:06}.sst", self.files.len()));
            let writer = SstFileWriter::create(self.options);
            writer.open(&path)?;
            self.files.push(path);
            self.writer = Some(writer);
        }
        Ok(self.writer.as_mut().expect("the file was opened just above"))
    }

    pub(super) fn finish_file(&mut self) -> Result<(), StorageError> {
        self.writer_bytes = 0;
        match self.writer.take() {
            Some(mut writer) => Ok(writer.finish()?),
            None => Ok(()),
        }
    }

    pub(super) fn ingest(mut self) -> Result<CheckpointFigures, StorageError> {
        self.finish_file()?;
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        let files = std::mem::take(&mut self.files);
        self.store.db().ingest_external_file_cf_opts(self.store.checkpoint(), &options, files)?;
        // Only the empty folder is left. If it cannot be removed here, the next checkpoint or start removes
        // it.
        let _ = std::fs::remove_dir_all(&self.folder);
        Ok(self.figures)
    }
}

/// `None` if there are no entries, because an empty page has no record.
fn encoded((handles, columns): &CopiedEntries) -> Option<Vec<u8>> {
    let columns: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
    (!handles.is_empty()).then(|| codec::encode_entries(handles, &columns))
}
