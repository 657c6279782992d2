//! Whatever a file holds, what is loaded is what another reader says that it holds, or nothing was sent.
//!
//! Files are made of random cells, separators, ends of lines and encodings, as CSV or JSON, and imported with
//! random options, of which some do not suit them. The other reader is in `import_reader`, and shares nothing
//! with the program.

use std::collections::BTreeMap;
use std::fs;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::cli::import_reader::{Cell, Options, board};
use crate::support::command::command;
use crate::support::node::Node;

const FILES: u64 = 300;
/// Without a good part of files that are loaded, the test would say little.
const LOADED_MIN: usize = 80;

const MEMBERS: [&str; 9] = ["ann", "bob", " Damon ", "José", "日本", "a,b", "x;y", "q\"q", "m|n"];
const NO_MEMBERS: [&str; 4] = ["", "two\nlines", "ann", "Zoë"];
const GOOD: [&str; 8] = ["0", "7", "1200", "-5", "42.0", "1e3", "+3", "9007199254740993"];
const OTHER: [&str; 17] = [
    "1,234",
    "12,5",
    "1.234",
    "12.34",
    "1 234",
    "1\u{a0}234",
    "1.234,5",
    "1,234.5",
    "DNF",
    "",
    "−4",
    "1:23",
    "9223372036854775808",
    "12,34,567",
    "0x10",
    "1.5e1",
    "1.23457E+12",
];
const TIMES: [&str; 8] = ["1:23", "59", "59.5", "26:50:29", "1 day 0:00:01", "PT1M", "0:07.25", "83"];

/// How a table is written.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is drawn by itself")]
struct Form {
    kind: Kind,
    /// Which may be another than the options say.
    delimiter: char,
    end: &'static str,
    has_last_end: bool,
    quotes_all: bool,
    encoding: &'static Encoding,
    is_wide: bool,
    has_mark: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Csv,
    Lines,
    Array,
}

impl Form {
    fn any(random: &mut StdRng, options: &Options, table: &[Vec<Cell>]) -> Self {
        let is_latin = table.iter().flatten().all(|cell| !WINDOWS_1252.encode(&cell.text).2);
        let encodings: &[_] = if is_latin { &[UTF_8, UTF_8, WINDOWS_1252] } else { &[UTF_8] };
        Self {
            kind: *[Kind::Csv, Kind::Csv, Kind::Lines, Kind::Array].choose(random).expect("some"),
            delimiter: if random.random_bool(0.9) { options.delimiter } else { ',' },
            end: ["\n", "\n", "\r\n"].choose(random).expect("some"),
            has_last_end: random.random_bool(0.7),
            quotes_all: random.random_bool(0.2),
            encoding: encodings.choose(random).expect("some"),
            is_wide: random.random_bool(0.1),
            has_mark: random.random_bool(0.2),
        }
    }

    fn bytes(&self, table: &[Vec<Cell>]) -> Vec<u8> {
        let names: Vec<&str> = ["member", "points", "time_s"].into_iter().take(table[0].len()).collect();
        let object = |row: &Vec<Cell>| {
            let fields = names.iter().zip(row).map(|(name, cell)| format!("\"{name}\":{}", cell.json()));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        };
        let mut text = match self.kind {
            Kind::Csv => {
                let rows = table.iter().map(|row| row.iter().map(|cell| self.cell(&cell.text)).collect());
                let header: Vec<String> = names.iter().map(ToString::to_string).collect();
                let lines = [header]
                    .into_iter()
                    .chain(rows)
                    .map(|cells: Vec<String>| cells.join(&self.delimiter.to_string()));
                lines.collect::<Vec<_>>().join(self.end)
            }
            Kind::Lines => table.iter().map(object).collect::<Vec<_>>().join(self.end),
            Kind::Array => {
                format!("[{}]", table.iter().map(object).collect::<Vec<_>>().join(&format!(",{}", self.end)))
            }
        };
        if self.has_last_end {
            text += self.end;
        }
        if self.is_wide {
            return [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        }
        let mark: &[u8] = if self.has_mark && self.encoding == UTF_8 { b"\xef\xbb\xbf" } else { b"" };
        [mark, &self.encoding.encode(&text).0].concat()
    }

    fn cell(&self, text: &str) -> String {
        let is_quoted = self.quotes_all || text.contains(['"', '\n', ',', ';', '|', '\t']);
        if is_quoted { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
    }

    /// Whether what fits the options is not refused for how it is written.
    fn is_readable(&self, options: &Options, table: &[Vec<Cell>]) -> bool {
        let is_ascii = table.iter().flatten().all(|cell| cell.text.is_ascii());
        let is_marked = self.is_wide || self.has_mark && self.encoding == UTF_8;
        let has_separators = self.kind == Kind::Csv;
        is_ascii
            && (!has_separators || self.delimiter == options.delimiter)
            && (!is_marked || options.encoding.is_none())
            && options.thousands != Some(options.decimal)
    }
}

fn options(random: &mut StdRng) -> Options {
    let has_times = random.random_bool(0.4);
    Options {
        delimiter: *[',', ';', '\t', '|'].choose(random).expect("some"),
        decimal: *['.', '.', ','].choose(random).expect("some"),
        thousands: *[None, None, Some(','), Some('.'), Some(' ')].choose(random).expect("some"),
        scale: *[1, 1, 10, 100].choose(random).expect("some"),
        is_rounded: random.random_bool(0.3),
        has_blank: random.random_bool(0.5),
        encoding: *[None, None, Some(WINDOWS_1252)].choose(random).expect("some"),
        duration: has_times.then(|| *["s", "ms", "us"].choose(random).expect("some")),
    }
}

fn arguments(options: &Options, kind: Kind) -> Vec<String> {
    let mut arguments: Vec<String> = vec!["--decimal".to_owned(), options.decimal.to_string()];
    let mut add = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    if kind == Kind::Csv {
        let delimiter =
            if options.delimiter == '\t' { "tab".to_owned() } else { options.delimiter.to_string() };
        add("--delimiter", delimiter);
    }
    if let Some(thousands) = options.thousands {
        add("--thousands", thousands.to_string());
    }
    add("--scale", options.scale.to_string());
    add("--column", "score=points".to_owned());
    if let Some(unit) = options.duration {
        add("--column", "score=time_s".to_owned());
        add("--duration", format!("{unit}=time_s"));
    }
    if options.has_blank {
        add("--blank", "DNF".to_owned());
    }
    if let Some(encoding) = options.encoding {
        add("--encoding", encoding.name().to_owned());
    }
    arguments.extend(options.is_rounded.then(|| "--round".to_owned()));
    arguments
}

/// A table of random cells: a member, points, and a time if options are about one.
fn table(random: &mut StdRng, options: &Options) -> Vec<Vec<Cell>> {
    let rows = random.random_range(1..6);
    let mut cell = |of: &[&str]| {
        let text = (*of.choose(random).expect("some")).to_owned();
        Cell { text, is_text: random.random_bool(0.5) }
    };
    (0..rows)
        .map(|_| {
            let is_good = cell(&["", "", "", "", "", "", "x"]).text.is_empty();
            let member = cell(if is_good { &MEMBERS } else { &NO_MEMBERS });
            let mut row = vec![Cell { is_text: true, ..member }];
            row.push(cell(if is_good { &GOOD } else { &OTHER }));
            if options.duration.is_some() {
                row.push(cell(if is_good { &TIMES } else { &OTHER }));
            }
            row
        })
        .collect()
}

/// What the service has, each key as a number.
fn found(page: &Value) -> BTreeMap<String, Vec<i128>> {
    let number = |key: &Value| {
        let text = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
        text.parse::<i128>().expect("a number")
    };
    let entry = |entry: &Value| {
        let score = &entry["score"];
        let keys =
            score.as_array().map_or_else(|| vec![number(score)], |keys| keys.iter().map(number).collect());
        (entry["member"].as_str().expect("an id").to_owned(), keys)
    };
    page["entries"].as_array().into_iter().flatten().map(entry).collect()
}

#[test]
fn of_any_file_all_rows_are_loaded_as_another_reader_has_them_or_nothing_is() {
    let service = Node::start();
    let client = service.client();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("scores");
    let (mut loaded, mut is_refused) = (0, 0);
    for seed in 0..FILES {
        let random = &mut StdRng::seed_from_u64(seed);
        let options = options(random);
        let table = table(random, &options);
        let form = Form::any(random, &options, &table);
        fs::write(&path, form.bytes(&table)).expect("it can be written");
        let name = format!("t{seed}");
        let mut import = command();
        import.arg("import").arg(&path).args(["--board", &name, "--url", service.base()]);
        let output = import.args(arguments(&options, form.kind)).output().expect("the binary can be started");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let about = || format!("seed {seed}: {table:?} by {options:?} as {form:?}: {said}");
        let (status, page) = client.get(&format!("/v1/boards/{name}/top?limit=100"));
        let expect = board(&table, &options, form.kind == Kind::Csv);
        if output.status.code() == Some(0) {
            assert_eq!(Some(found(&page)), expect, "{}", about());
            loaded += 1;
        } else {
            assert_eq!((output.status.code(), status), (Some(2), 404), "{}", about());
            is_refused += 1;
            assert!(!form.is_readable(&options, &table) || expect.is_none(), "{}", about());
        }
    }
    assert!(loaded >= LOADED_MIN && is_refused > 0, "{loaded} of {FILES} files were loaded");
    assert_ne!(client.get("/v1/boards").1["boards"], json!([]));
}
