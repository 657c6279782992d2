//! Files that hold tables and are none that an import reads: databases, documents, other programs' data.

/// What other files have at some place of theirs, what they are, and what writes of them what an import
/// reads.
const FOREIGN: [(usize, &[u8], &str, &str); 12] = [
    (257, b"ustar", "a tar archive", "tar -xOf FILE NAME_OF_ONE_IN_IT | ranktree import -"),
    (
        0,
        b"SQLite format 3\0",
        "a database of SQLite",
        "sqlite3 -csv -header FILE 'SELECT member, score FROM TABLE' | ranktree import -",
    ),
    (0, b"\xff\xfe\0\0", "text in UTF-32", "iconv -f UTF-32 -t UTF-8 FILE | ranktree import -"),
    (0, b"\0\0\xfe\xff", "text in UTF-32", "iconv -f UTF-32 -t UTF-8 FILE | ranktree import -"),
    (0, b"PAR1\x15", "a Parquet file", "duckdb -csv -c \"SELECT * FROM 'FILE'\" | ranktree import -"),
    (0, b"ARROW1", "a Feather file", "write it as CSV, as by pandas.read_feather(FILE).to_csv(OTHER)"),
    (0, b"\xd0\xcf\x11\xe0", "a document of Office, such as an older spreadsheet (.xls)", "save it as CSV"),
    (
        0,
        b"X\n\0\0",
        "an object of R",
        "write it as CSV, as by write.csv(readRDS(FILE), OTHER, row.names = FALSE)",
    ),
    (
        0,
        b"RDX3\n",
        "data of R",
        "write a table of it as CSV, as by write.csv(TABLE, OTHER, row.names = FALSE)",
    ),
    (
        0,
        b"PGDMP",
        "a dump of PostgreSQL",
        "psql -c \"\\copy TABLE TO 'scores.csv' CSV HEADER\" writes what is read",
    ),
    (0, b"%PDF", "a PDF document", "its tables must be saved as CSV"),
    (
        0,
        b"\x80\x04\x95",
        "a pickle of Python",
        "write it as CSV, as by pandas.read_pickle(FILE).to_csv(OTHER)",
    ),
];
const YAML: (&str, &str) = ("YAML", "write its rows as JSON, as yq -o json FILE | ranktree import - does");
/// How texts begin that are no table, what they are, and what writes of them what an import reads.
const NO_TABLES: [(&str, &str, &str); 7] = [
    ("<!doctype", "a page of HTML", "its table must be saved as CSV"),
    ("<html", "a page of HTML", "its table must be saved as CSV"),
    ("<table", "a table of HTML", "save it as CSV"),
    ("<?xml", "XML", "write its rows as CSV or JSON"),
    ("-- ", "commands of SQL, such as a dump", "have the database write CSV, with a header"),
    ("create table", "commands of SQL", "have the database write CSV, with a header"),
    ("insert into", "commands of SQL", "have the database write CSV, with a header"),
];
/// As much of a file as says that it is one of these.
pub const MAGIC_BYTES: usize = 512;

/// What a file is that an import does not read, by its first bytes, and what writes of it what is read.
pub fn foreign(head: &[u8]) -> Option<(&'static str, &'static str)> {
    let is_it = |(at, magic): (usize, &[u8])| head.get(at..).is_some_and(|rest| rest.starts_with(magic));
    FOREIGN.iter().find(|(at, magic, _, _)| is_it((*at, magic))).map(|(_, _, what, how)| (*what, *how))
}

/// The same of a spreadsheet, which is a zip file of documents.
pub fn spreadsheet(head: &[u8]) -> Option<(&'static str, &'static str)> {
    let has = |name: &[u8]| memchr::memmem::find(head, name).is_some();
    let is_one = head.starts_with(b"PK\x03\x04")
        && [&b"[Content_Types].xml"[..], b"xl/", b"docProps/", b"opendocument"].iter().any(|name| has(name));
    is_one.then_some(("a spreadsheet (.xlsx or .ods)", "save the sheet as CSV"))
}

/// The same of a text.
pub fn no_table(head: &[u8]) -> Option<(&'static str, &'static str)> {
    let text = head.trim_ascii_start();
    let begins = |start: &str| {
        text.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start.as_bytes()))
    };
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    if first == b"---" || first.starts_with(b"- ") && memchr::memmem::find(first, b": ").is_some() {
        return Some(YAML);
    }
    // An object in which something is, as `ann:` before `  score: 5`.
    let mut lines = text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).skip(1);
    let is_within = |line: &[u8]| {
        let has_field = line.trim_ascii_end().ends_with(b":") || memchr::memmem::find(line, b": ").is_some();
        (line.starts_with(b" ") || line.starts_with(b"- ")) && has_field
    };
    if first.ends_with(b":") && !first.contains(&b',') && lines.next().is_some_and(is_within) {
        return Some(YAML);
    }
    // Others write remarks with dashes, too.
    let is_sql = || {
        let lower = text.to_ascii_lowercase();
        ["create table", "insert into", "copy "]
            .iter()
            .any(|word| memchr::memmem::find(&lower, word.as_bytes()).is_some())
    };
    NO_TABLES
        .iter()
        .find(|(start, _, _)| begins(start) && (*start != "-- " || is_sql()))
        .map(|(_, what, how)| (*what, *how))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_programs_are_known_by_how_they_begin() {
        let tar = [&[b'x'; 257][..], b"ustar\0"].concat();
        for (head, expect) in [
            (tar.as_slice(), Some("a tar archive")),
            (b"SQLite format 3\0...", Some("a database of SQLite")),
            (b"PAR1\x15...", Some("a Parquet file")),
            (b"\xff\xfe\0\0m\0\0\0", Some("text in UTF-32")),
            (b"\xff\xfem\0e\0", None),
            (b"member,score\n", None),
            (b"", None),
        ] {
            assert_eq!(foreign(head).map(|(what, _)| what), expect, "{head:?}");
        }
        for (head, expect) in [
            ("\n<!DOCTYPE html>", Some("a page of HTML")),
            ("-- PostgreSQL database dump\nCOPY public.scores", Some("commands of SQL, such as a dump")),
            ("-- Results --\nmember,score", None),
            ("INSERT INTO s VALUES (1)", Some("commands of SQL")),
            ("- name: ann\n  score: 5\n", Some("YAML")),
            ("---\nname: ann\n", Some("YAML")),
            ("ann:\n  score: 5\nbob:\n  score: 7\n", Some("YAML")),
            ("scores:\n- name: ann\n", Some("YAML")),
            ("scores:\n  ann:\n    pts: 5\n", Some("YAML")),
            ("Results:\nmember,score\nann,5\n", None),
            ("ann: 5\nbob: 7\n", None),
            ("- 5,ann\n", None),
            ("member,score\n", None),
        ] {
            assert_eq!(no_table(head.as_bytes()).map(|(what, _)| what), expect, "{head:?}");
        }
    }
}
