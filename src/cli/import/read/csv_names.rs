//! What the names of the first rows of a CSV tell of the programs that wrote it.

use csv::ByteRecord;

use crate::cli::import::read::encoding::ungarbled;
use crate::cli::spreadsheet::unguarded;
use crate::types::quoted;

/// What is told of the names, behind what is told of the columns.
///
/// # Arguments
/// - `ahead`: the first rows, each with its first and its last line.
/// - `member`: the column of the names.
pub fn names_note(ahead: &[(u64, u64, ByteRecord)], member: usize) -> String {
    guarded_note(ahead, member) + &garbled_note(ahead, member)
}

/// That names seem to be written for spreadsheets, if one of the first ones does.
fn guarded_note(ahead: &[(u64, u64, ByteRecord)], member: usize) -> String {
    let guarded = ahead.iter().find_map(|(line, _, record)| {
        let name = std::str::from_utf8(record.get(member)?).ok()?;
        (unguarded(name) != name).then_some((line, name))
    });
    let note = |(line, name): (&u64, &str)| {
        format!(
            ". Line {line} has {}: if an export wrote the apostrophe for spreadsheets, --spreadsheet-safe takes it away",
            quoted(name)
        )
    };
    guarded.map(note).unwrap_or_default()
}

/// That names seem to have been read in a wrong encoding before, if one of the first ones does.
fn garbled_note(ahead: &[(u64, u64, ByteRecord)], member: usize) -> String {
    let garbled = ahead.iter().find_map(|(line, _, record)| {
        let name = std::str::from_utf8(record.get(member)?).ok()?;
        Some((line, name, ungarbled(name)?))
    });
    let note = |(line, name, meant): (&u64, &str, String)| {
        format!(
            ". Line {line} has {}, which seems to be {} that was read as windows-1252 before: iconv -f UTF-8 -t WINDOWS-1252 \
             FILE | ranktree import - undoes that",
            quoted(name),
            quoted(&meant)
        )
    };
    garbled.map(note).unwrap_or_default()
}
