//! Rows that were checked, in a temporary file until they are sent. What is sent is what was checked,
//! whatever becomes of the files meanwhile; a pipe or a Redis is read once; and no row is parsed twice.
//!
//! A record is a byte for its kind and flags, and then its fields; numbers have eight bytes, texts their
//! length before them. Nothing but the same process reads it.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, Write};
use std::sync::Arc;

use crate::cli::board_line::BoardLine;
use crate::cli::import::ImportError;
use crate::cli::import::read::row::{Boards, Parsed, Place, RejectedLine, Row};

/// What is written and read at once.
const BUFFER_BYTES: usize = 256 * 1024;

const KIND: u8 = 0b11;
const ROW: u8 = 0;
const REJECTED: u8 = 1;
const BLANK: u8 = 2;
const BOARD: u8 = 3;

const IS_SHARED: u8 = 1 << 2;
const TAKES_TIME: u8 = 1 << 3;
const ADDS: u8 = 1 << 4;
const IS_UNDECIDED: u8 = 1 << 5;
const IS_REPEAT: u8 = 1 << 6;
const SAME_BOARDS: u8 = 1 << 7;

/// Rows on their way into the file.
pub struct Keeper {
    file: BufWriter<File>,
    /// Of the last row.
    boards: Boards,
    /// Few, and each is read once.
    board_lines: Vec<BoardLine>,
    count: u64,
}

impl Keeper {
    /// # Errors
    /// When there is no place for temporary files.
    pub fn new() -> Result<Self, ImportError> {
        let file = tempfile::tempfile().map_err(ImportError::Keep)?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(Self { file, boards: Boards::new(), board_lines: Vec::new(), count: 0 })
    }

    /// # Errors
    /// When the disk is full.
    pub fn push(&mut self, parsed: &Parsed) -> Result<(), ImportError> {
        self.write(parsed).map_err(ImportError::Keep)
    }

    fn write(&mut self, parsed: &Parsed) -> io::Result<()> {
        match parsed {
            Parsed::Row(row) => {
                let same_boards = self.boards == row.boards;
                let flags = [
                    (TAKES_TIME, row.takes_time),
                    (ADDS, row.adds),
                    (IS_UNDECIDED, row.is_undecided),
                    (IS_REPEAT, row.is_repeat),
                    (SAME_BOARDS, same_boards),
                ];
                let flags =
                    flags.into_iter().filter(|(_, is_set)| *is_set).fold(ROW, |all, (flag, _)| all | flag);
                self.place(flags, row.place)?;
                self.number(row.member_hash)?;
                if !same_boards {
                    self.number(size(row.boards.len()))?;
                    for board in &row.boards {
                        self.text(board)?;
                    }
                    self.boards.clone_from(&row.boards);
                }
                self.count += u64::from(!row.is_repeat);
                self.text(&row.job)
            }
            Parsed::Rejected(line) => {
                self.count += 1;
                self.place(REJECTED, line.place)?;
                self.text(&line.code)?;
                self.text(&line.detail)
            }
            Parsed::Blank(text) => {
                self.file.write_all(&[BLANK])?;
                self.text(text)
            }
            Parsed::Board(line) => {
                self.board_lines.push(line.clone());
                self.file.write_all(&[BOARD])
            }
        }
    }

    fn place(&mut self, flags: u8, place: Place) -> io::Result<()> {
        self.file.write_all(&[flags | if place.is_shared { IS_SHARED } else { 0 }])?;
        self.number(size(place.file))?;
        self.number(place.line)
    }

    fn number(&mut self, number: u64) -> io::Result<()> {
        self.file.write_all(&number.to_le_bytes())
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        self.number(size(text.len()))?;
        self.file.write_all(text.as_bytes())
    }

    /// The rows, to be read from the first one on.
    ///
    /// # Errors
    /// When the disk is full.
    pub fn finish(self) -> Result<KeptRows, ImportError> {
        let Self { file, board_lines, count, .. } = self;
        let file = file.into_inner().map_err(|error| ImportError::Keep(error.into_error()))?;
        let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
        file.rewind().map_err(ImportError::Keep)?;
        Ok(KeptRows { file, boards: Boards::new(), board_lines: board_lines.into_iter(), count })
    }
}

/// Rows as they were kept, in order.
pub struct KeptRows {
    file: BufReader<File>,
    boards: Boards,
    board_lines: std::vec::IntoIter<BoardLine>,
    /// Of rows, with those that were rejected.
    pub count: u64,
}

impl KeptRows {
    fn read(&mut self) -> io::Result<Option<Parsed>> {
        let mut flags = [0];
        if self.file.read(&mut flags)? == 0 {
            return Ok(None);
        }
        let [flags] = flags;
        Ok(Some(match flags & KIND {
            ROW => Parsed::Row(self.row(flags)?),
            REJECTED => {
                let (place, code, detail) = (self.place(flags)?, self.text()?, self.text()?);
                Parsed::Rejected(RejectedLine { place, code, detail })
            }
            BLANK => Parsed::Blank(self.text()?),
            _ => Parsed::Board(self.board_lines.next().ok_or(io::ErrorKind::InvalidData)?),
        }))
    }

    fn row(&mut self, flags: u8) -> io::Result<Row> {
        let (place, member_hash) = (self.place(flags)?, self.number()?);
        if flags & SAME_BOARDS == 0 {
            let boards = self.number()?;
            self.boards.clear();
            for _ in 0..boards {
                let board = Arc::from(self.text()?);
                self.boards.push(board);
            }
        }
        Ok(Row {
            place,
            job: self.text()?,
            at: None,
            takes_time: flags & TAKES_TIME != 0,
            adds: flags & ADDS != 0,
            is_undecided: flags & IS_UNDECIDED != 0,
            boards: self.boards.clone(),
            member_hash,
            is_repeat: flags & IS_REPEAT != 0,
            // Rows for which it matters were judged by it.
            no_integer: None,
        })
    }

    fn place(&mut self, flags: u8) -> io::Result<Place> {
        Ok(Place { file: self.length()?, line: self.number()?, is_shared: flags & IS_SHARED != 0 })
    }

    fn number(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn length(&mut self) -> io::Result<usize> {
        usize::try_from(self.number()?).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn text(&mut self) -> io::Result<String> {
        let mut text = vec![0; self.length()?];
        self.file.read_exact(&mut text)?;
        String::from_utf8(text).map_err(|_| io::ErrorKind::InvalidData.into())
    }
}

impl Iterator for KeptRows {
    type Item = Result<Parsed, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().map_err(ImportError::Keep).transpose()
    }
}

fn size(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use crate::cli::import::ImportError;
    use crate::cli::import::read::row::{Boards, Parsed, Place, RejectedLine, Row};

    use super::Keeper;

    #[test]
    fn rows_come_back_as_they_were_and_in_their_order() -> Result<(), ImportError> {
        let boards = |names: &[&str]| names.iter().map(|name| (*name).into()).collect::<Boards>();
        let row = |line: u64, op, version, names: &[&str]| {
            Row::new(line, format!("{{\"member\":\"日本 {line}\"}}"), "m", op, version, boards(names))
        };
        let place = Place { file: 3, line: u64::MAX, is_shared: true };
        let repeat = row(4, None, true, &["a", "b"]).repeated(String::new());
        let rows = [
            Parsed::Board(
                crate::cli::board_line::BoardLine::parse(r#"{"board":"a","definition":{"keys":1}}"#)
                    .expect("it is one"),
            ),
            Parsed::Row(row(1, Some("incr"), false, &["a"])),
            Parsed::Row(row(2, None, false, &["a"]).without_time()),
            Parsed::Blank("DNF".to_owned()),
            Parsed::Row(row(3, None, true, &[])),
            Parsed::Row(row(4, None, true, &["a", "b"])),
            Parsed::Row(repeat),
            Parsed::Rejected(RejectedLine { place, code: "bad_score".to_owned(), detail: "x\ny".to_owned() }),
            Parsed::Row(Row { place, ..row(5, None, false, &["b"]) }),
        ];
        let mut keeper = Keeper::new()?;
        rows.iter().try_for_each(|parsed| keeper.push(parsed))?;
        let kept = keeper.finish()?;
        assert_eq!(kept.count, 6, "rows and what was no row, without what belongs to a row");
        assert_eq!(kept.collect::<Result<Vec<_>, _>>()?, rows);
        Ok(())
    }
}
