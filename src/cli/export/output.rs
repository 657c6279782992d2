//! The output of an export: a file, which appears when it is complete; or standard output, a pipe or a
//! device.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::cli::Failure;
use crate::cli::board_line::{BoardLine, IN_CSV};
use crate::cli::export::Format;
use crate::cli::export::row::Row;

const BUFFER_BYTES: usize = 256 * 1024;
/// An export's columns. An import reads board, member, score, at and meta of them.
const COLUMNS: [&str; 8] = ["board", "member", "score", "rank", "position", "at", "updated_at", "meta"];

pub struct Output {
    sink: Sink,
    /// The finished file, and the one that is written until then.
    place: Option<(PathBuf, PathBuf)>,
    /// Members whose profiles are written already.
    written: HashSet<Box<str>>,
}

enum Sink {
    Nothing,
    Lines(Box<dyn Write>),
    /// A CSV before its first line.
    Head(Box<dyn Write>),
    Cells(Box<csv::Writer<Box<dyn Write>>>),
}

impl Output {
    /// For a dry run.
    pub fn nothing() -> Self {
        Self { sink: Sink::Nothing, place: None, written: HashSet::new() }
    }

    /// # Errors
    /// When the file cannot be created.
    pub fn create(path: Option<&Path>, format: Format) -> Result<Self, Failure> {
        let (writer, place): (Box<dyn Write>, _) = match path {
            None => (Box::new(io::stdout()), None),
            Some(path) if is_no_file(path) => {
                let opened = File::options().append(true).open(path);
                let opened =
                    opened.map_err(|error| format!("cannot write to {}: {error}", path.display()))?;
                (Box::new(opened), None)
            }
            Some(path) => {
                // The target of a link is replaced, and not the link.
                let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
                let mut partial = path.as_os_str().to_owned();
                partial.push(".partial");
                let partial = PathBuf::from(partial);
                let file = File::create(&partial)
                    .map_err(|error| format!("cannot create {}: {error}", partial.display()))?;
                (Box::new(file), Some((path, partial)))
            }
        };
        let writer: Box<dyn Write> = Box::new(BufWriter::with_capacity(BUFFER_BYTES, writer));
        let sink = match format {
            Format::Ndjson => Sink::Lines(writer),
            Format::Csv => Sink::Head(writer),
        };
        Ok(Self { sink, place, written: HashSet::new() })
    }

    /// Begins a board, with what it is if that is given. A CSV has one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(&mut self, board: Option<&BoardLine>) -> io::Result<()> {
        match std::mem::replace(&mut self.sink, Sink::Nothing) {
            Sink::Lines(mut writer) => {
                if let Some(board) = board {
                    writeln!(writer, "{}", board.json())?;
                }
                self.sink = Sink::Lines(writer);
            }
            Sink::Head(mut writer) => {
                if let Some(board) = board {
                    writeln!(writer, "{IN_CSV}{}", board.json())?;
                }
                let mut cells = csv::Writer::from_writer(writer);
                cells.write_record(COLUMNS)?;
                self.sink = Sink::Cells(Box::new(cells));
            }
            other => self.sink = other,
        }
        Ok(())
    }

    /// # Errors
    /// When it cannot be written, or the row is not whole.
    pub fn write(&mut self, board: &str, row: &Row) -> io::Result<()> {
        if row.lacks_meta() {
            let why = format!(
                "the service could not read the metadata of member {} from its disk; ranktree verify lists what is damaged",
                row.member
            );
            return Err(io::Error::other(why));
        }
        match &mut self.sink {
            Sink::Nothing | Sink::Head(_) => Ok(()),
            Sink::Lines(writer) => {
                let (member, score) = (json!(row.member), row.score.get());
                if let Some(profile) = &row.profile
                    && self.written.insert(row.member.as_str().into())
                {
                    let profile = profile.get();
                    writeln!(writer, r#"{{"member":{member},"op":"profile","profile":{profile}}}"#)?;
                }
                write!(writer, r#"{{"board":"{board}","member":{member},"op":"set","score":{score},"#)?;
                write!(writer, r#""at":"{}","#, row.at())?;
                if row.has_meta() {
                    write!(writer, r#""meta":{},"#, row.meta.get())?;
                }
                let Row { rank, position, updated_at, .. } = row;
                writeln!(writer, r#""rank":{rank},"position":{position},"updated_at":"{updated_at}"}}"#)
            }
            Sink::Cells(cells) => {
                let meta = if row.has_meta() { row.meta.get() } else { "" };
                let (rank, position) = (row.rank.to_string(), row.position.to_string());
                let (score, at) = (row.score_keys(), row.at());
                cells
                    .write_record([board, &row.member, &score, &rank, &position, at, &row.updated_at, meta])
                    .map_err(io::Error::from)
            }
        }
    }

    /// Makes it complete, and gives it its name.
    ///
    /// # Errors
    /// When it cannot be.
    pub fn finish(mut self) -> Result<(), Failure> {
        match &mut self.sink {
            Sink::Nothing => {}
            Sink::Lines(writer) | Sink::Head(writer) => writer.flush()?,
            Sink::Cells(cells) => cells.flush()?,
        }
        if let Some((path, partial)) = self.place.take() {
            // Synced before it is renamed: after a crash the name must not belong to half of the bytes.
            File::open(&partial)?.sync_all()?;
            std::fs::rename(&partial, &path).map_err(|error| {
                format!("cannot rename {} to {}: {error}", partial.display(), path.display())
            })?;
        }
        Ok(())
    }
}

/// Whether a file must not replace what has this name: a device, a pipe, a directory.
fn is_no_file(path: &Path) -> bool {
    // A descriptor that is open already may be a file with more in it than this export.
    ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder))
        || std::fs::metadata(path).is_ok_and(|found| !found.is_file())
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some((_, partial)) = self.place.take() {
            let _ = std::fs::remove_file(partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An export that lacks what the board has would be taken for a copy of it.
    #[test]
    fn an_entry_whose_metadata_cannot_be_read_ends_the_export() {
        let row = |meta: &str| -> Row {
            let row = r#"{"member":"m","score":1,"rank":1,"position":1,"updated_at":"t","meta":META}"#;
            serde_json::from_str(&row.replace("META", meta)).expect("a row")
        };
        let mut output = Output::nothing();
        for meta in ["{}", r#"{"a":1}"#] {
            output.write("b", &row(meta)).expect("it is whole");
        }
        let why = output.write("b", &row("null")).expect_err("it is not whole").to_string();
        assert!(why.contains("metadata of member m") && why.contains("ranktree verify"), "{why}");
    }

    /// Standard output may be a file, with more in it.
    #[test]
    fn what_is_open_already_is_no_file_to_replace() {
        assert!(is_no_file(Path::new("/dev/stdout")) && is_no_file(Path::new("/proc/self/fd/1")));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("file");
        assert!(!is_no_file(&file) && is_no_file(folder.path()));
        std::fs::write(&file, "").expect("it can be written");
        assert!(!is_no_file(&file));
    }
}
