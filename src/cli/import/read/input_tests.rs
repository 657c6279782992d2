//! Files of every packing, encoding and form, and those that are nothing that an import reads.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("writing to a Vec does not fail");
    encoder.finish().expect("writing to a Vec does not fail")
}

fn open(bytes: &[u8]) -> Result<(Input, u64), ImportError> {
    let count = Arc::new(AtomicU64::new(0));
    let mut file = InputFile::pipe("scores".to_owned(), Box::new(Cursor::new(bytes.to_vec())));
    let mut input = file.open(None, None, &count)?;
    let mut text = Vec::new();
    let read = input.reader.read_to_end(&mut text);
    read.map_err(|source| ImportError::Read { line: 0, source })?;
    input.reader = Box::new(Cursor::new(text));
    Ok((input, count.load(Ordering::Relaxed)))
}

fn check(bytes: &[u8], format: Format, content: &str) {
    let (mut input, count) = open(bytes).expect("readable");
    let mut text = String::new();
    input.reader.read_to_string(&mut text).expect("readable");
    assert_eq!((input.format, text.as_str()), (format, content));
    assert_eq!(count, u64::try_from(bytes.len()).expect("small"), "every byte of the file is counted");
}

#[test]
fn format_packing_and_byte_order_mark_are_recognised() {
    check(b"m", Format::Csv, "m");
    check(b"member,score\n", Format::Csv, "member,score\n");
    check(b"\xef\xbb\xbfmember,score\n", Format::Csv, "member,score\n");
    check(b"\xff\xfem\0,\0\n\0", Format::Csv, "m,\n");
    check(b"{\"member\":1}", Format::Ndjson, "{\"member\":1}");
    check(b"\xef\xbb\xbf\n\n\n \t{}", Format::Ndjson, "\n\n\n \t{}");
    check(&gzip(b"member,score\n"), Format::Csv, "member,score\n");
    check(&gzip(b"\xef\xbb\xbf{}"), Format::Ndjson, "{}");
    check(b"*1\r\n$4\r\nPING\r\n", Format::Aof, "*1\r\n$4\r\nPING\r\n");
    check(b"*1,*2\n", Format::Csv, "*1,*2\n");
    check(b"\"ann\",\"5\",\"bob\",\"1.5\"\n", Format::RedisCsv, "\"ann\",\"5\",\"bob\",\"1.5\"\n");
    check(b"\"member\",\"score\"\n", Format::Csv, "\"member\",\"score\"\n");
    check(b"\"ann\",\"5\"\n\"bob\",\"6\"\n", Format::Csv, "\"ann\",\"5\"\n\"bob\",\"6\"\n");
    check(b"[{\"member\"", Format::Ndjson, "[{\"member\"");
    check(b"[]", Format::Ndjson, "[]");
    check(b"[member],score\n", Format::Csv, "[member],score\n");
    let long = "member,score\n".repeat(100_000);
    check(&[gzip(long.as_bytes()), gzip(b"end")].concat(), Format::Csv, &format!("{long}end"));
}

#[test]
fn what_is_no_text_is_refused_with_what_to_do() {
    for (bytes, expect) in [
        (&b"\x7fELF\x02\x01"[..], "the file is not text"),
        (b"", "standard input is empty"),
        (b"PK\x03\x04rest", "unzip -p FILE | ranktree import -"),
        (b"\x28\xb5\x2f\xfdrest", "zstd -dc FILE | ranktree import -"),
        (b"\xfd7zXZ\0rest", "xz -dc FILE | ranktree import -"),
        (b"BZh9rest", "bzip2 -dc FILE | ranktree import -"),
        (b"REDIS0011rest", "aof-use-rdb-preamble no"),
    ] {
        let told = open(bytes).err().expect("no text").to_string();
        assert!(told.contains(expect), "{bytes:?}: {told}");
    }
}

#[test]
fn a_gzip_file_that_was_cut_short_is_an_error_and_not_an_end() {
    let mut packed = gzip("member,score\n".repeat(1_000_000).as_bytes());
    packed.truncate(packed.len() / 2);
    assert!(open(&packed).is_err());
}

#[test]
fn lines_that_end_with_carriage_returns_alone_are_refused() {
    for text in ["member,score\rann,5\r", "ann,5\rbob,7", "{\"member\":\"ann\"}\r{\"member\":\"bob\"}\r"] {
        let error = open(text.as_bytes()).err().expect("one line of all");
        assert!(error.to_string().contains("tr '\\r' '\\n'"), "{error}");
    }
    check(b"member,score\r\nann,5\r\n", Format::Csv, "member,score\r\nann,5\r\n");
}

#[test]
fn what_cannot_be_opened_is_named() {
    let missing = Path::new("no such file.csv");
    let error = InputFile::find(missing).err().expect("it does not exist");
    assert_eq!(error.to_string(), "cannot open no such file.csv");
    let folder = tempfile::tempdir().expect("a temporary directory");
    assert!(InputFile::find(folder.path()).is_err(), "a directory is no file");
}

#[test]
fn what_was_written_behind_the_end_of_a_file_is_known() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("scores.csv");
    let count = Arc::new(AtomicU64::new(7));
    for (text, more, expect) in [
        ("member,score\nann,5\n", "", None),
        ("member,score\nann,5\n", "bob,7\n", Some((6, false))),
        ("member,score\nann,5", "6\n", Some((2, true))),
    ] {
        fs::write(&path, text).expect("it can be written");
        let mut file = InputFile::find(&path).expect("it is there");
        let mut input = file.open(None, None, &count).expect("it is text");
        assert_eq!(file.grown(), None, "it was not read");
        input.reader.read_to_end(&mut Vec::new()).expect("readable");
        file.ended(&count, 2);
        let mut appended = fs::OpenOptions::new().append(true).open(&path).expect("it is there");
        appended.write_all(more.as_bytes()).expect("it can be written");
        let expect = expect.map(|(bytes, may_be_cut)| Grown { bytes, line: 2, may_be_cut });
        assert_eq!(file.grown(), expect, "{text:?} and {more:?}");
    }
}
