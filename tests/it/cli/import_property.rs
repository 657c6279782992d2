//! Whatever a file holds, what is loaded is what another reader says that it holds, or nothing was sent.
//!
//! Files are made of random cells, separators and encodings, and imported with random options, of which some
//! do not suit them. The other reader is below, and shares nothing with the program.

use std::collections::BTreeMap;
use std::fs;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use crate::support::command::command;
use crate::support::node::Node;

const FILES: u64 = 150;
/// Without a good part of files that are loaded, the test would say little.
const LOADED_MIN: usize = 30;

const MEMBERS: [&str; 10] = ["ann", "bob", " Damon ", "José", "日本", "a,b", "x;y", "q\"q", "", "two\nlines"];
const GOOD: [&str; 8] = ["0", "7", "1200", "-5", "42.0", "1e3", "+3", "9007199254740993"];
const OTHER: [&str; 16] = [
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
];

/// What the command line says.
#[derive(Debug)]
struct Options {
    delimiter: char,
    decimal: char,
    thousands: Option<char>,
    scale: i128,
    is_rounded: bool,
    has_blank: bool,
    encoding: Option<&'static Encoding>,
}

impl Options {
    fn any(random: &mut StdRng) -> Self {
        Self {
            delimiter: *[',', ';', '\t', '|'].choose(random).expect("some"),
            decimal: *['.', '.', ','].choose(random).expect("some"),
            thousands: *[None, None, Some(','), Some('.'), Some(' ')].choose(random).expect("some"),
            scale: *[1, 1, 10, 100].choose(random).expect("some"),
            is_rounded: random.random_bool(0.3),
            has_blank: random.random_bool(0.5),
            encoding: *[None, None, Some(WINDOWS_1252)].choose(random).expect("some"),
        }
    }

    fn arguments(&self) -> Vec<String> {
        let delimiter = if self.delimiter == '\t' { "tab".to_owned() } else { self.delimiter.to_string() };
        let mut arguments = vec!["--delimiter".to_owned(), delimiter];
        arguments.extend(["--decimal".to_owned(), self.decimal.to_string()]);
        arguments.extend(self.thousands.iter().flat_map(|c| ["--thousands".to_owned(), c.to_string()]));
        arguments.extend(["--scale".to_owned(), self.scale.to_string()]);
        arguments.extend(self.is_rounded.then(|| "--round".to_owned()));
        arguments
            .extend(self.has_blank.then_some(["--blank", "DNF"]).into_iter().flatten().map(str::to_owned));
        let encoding = self.encoding.map(|encoding| ["--encoding".to_owned(), encoding.name().to_owned()]);
        arguments.extend(encoding.into_iter().flatten());
        arguments
    }
}

/// A table of random cells.
fn table(random: &mut StdRng) -> Vec<(&'static str, &'static str)> {
    let rows = random.random_range(1..6);
    (0..rows)
        .map(|_| {
            let of: &[&str] = if random.random_bool(0.85) { &GOOD } else { &OTHER };
            (*MEMBERS.choose(random).expect("some"), *of.choose(random).expect("some"))
        })
        .collect()
}

/// The table as a file, which may have another separator than the options say.
fn file(table: &[(&str, &str)], delimiter: char, encoding: &'static Encoding) -> Vec<u8> {
    let cell = |text: &str| {
        let is_quoted = text.contains(['"', '\n', ',', ';', '|', '\t']);
        if is_quoted { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
    };
    let row = |(member, score): &(&str, &str)| format!("{}{delimiter}{}\n", cell(member), cell(score));
    let text = format!("member{delimiter}score\n{}", table.iter().map(row).collect::<String>());
    encoding.encode(&text).0.into_owned()
}

/// The score of a cell, by the other reader. `None`: it is no score.
fn score(text: &str, options: &Options) -> Option<i128> {
    let text = text.trim();
    let (sign, rest) = match text.chars().next()? {
        '-' | '−' => (-1, text.chars().skip(1).collect::<String>()),
        '+' => (1, text.chars().skip(1).collect()),
        _ => (1, text.to_owned()),
    };
    let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa.to_owned(), exponent.parse::<u32>().ok()?),
        None => (rest, 0),
    };
    let (whole, fraction) = match mantissa.split_once(options.decimal) {
        Some((_, "")) => return None,
        Some((whole, fraction)) => (whole.to_owned(), fraction.to_owned()),
        None => (mantissa, String::new()),
    };
    let is_mark = |c: char| Some(c) == options.thousands || options.thousands == Some(' ') && c == '\u{a0}';
    let groups: Vec<&str> = whole.split(is_mark).collect();
    let sizes: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let fits = match sizes.as_slice() {
        [] => false,
        [_] => true,
        [first, middle @ .., last] => {
            let threes = *last == 3 && middle.iter().all(|size| *size == 3) && (1..=3).contains(first);
            let twos = *last == 3 && middle.iter().all(|size| *size == 2) && (1..=2).contains(first);
            threes || twos
        }
    };
    let digits = groups.concat();
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !fits || digits.is_empty() || !is_digits(&digits) || !is_digits(&fraction) {
        return None;
    }
    let numerator: i128 = format!("{digits}{fraction}").parse().ok()?;
    let numerator = numerator * 10_i128.pow(exponent) * options.scale;
    let denominator = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    let (mut quotient, rest) = (numerator / denominator, numerator % denominator);
    if rest != 0 && !options.is_rounded {
        return None;
    }
    quotient += i128::from(rest * 2 >= denominator && rest != 0);
    i64::try_from(sign * quotient).ok().map(i128::from)
}

/// The board, by the other reader. `None`: a row of the table cannot be loaded.
fn board(table: &[(&str, &str)], options: &Options) -> Option<BTreeMap<String, i128>> {
    let mut board = BTreeMap::new();
    for (member, text) in table {
        let member = member.trim();
        if member.is_empty() && text.trim().is_empty() {
            continue;
        }
        if options.has_blank && text.trim() == "DNF" {
            continue;
        }
        if member.is_empty() || member.contains('\n') {
            return None;
        }
        board.insert(member.to_owned(), score(text, options)?);
    }
    Some(board)
}

#[test]
fn of_any_file_all_rows_are_loaded_as_another_reader_has_them_or_nothing_is() {
    let service = Node::start();
    let client = service.client();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("scores.csv");
    let (mut loaded, mut is_refused) = (0, 0);
    for seed in 0..FILES {
        let random = &mut StdRng::seed_from_u64(seed);
        let options = Options::any(random);
        let table = table(random);
        let delimiter = if random.random_bool(0.9) { options.delimiter } else { ',' };
        let is_latin =
            table.iter().all(|(member, score)| !WINDOWS_1252.encode(&format!("{member}{score}")).2);
        let written = if is_latin { *[UTF_8, WINDOWS_1252].choose(random).expect("some") } else { UTF_8 };
        fs::write(&path, file(&table, delimiter, written)).expect("it can be written");
        let name = format!("t{seed}");
        let mut import = command();
        import.arg("import").arg(&path).args(["--board", &name, "--url", service.base()]);
        let output = import.args(options.arguments()).output().expect("the binary can be started");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let about = || {
            format!("seed {seed}: {table:?} by {options:?} with {delimiter:?} in {}: {said}", written.name())
        };
        let (status, page) = client.get(&format!("/v1/boards/{name}/top?limit=100"));
        if output.status.code() == Some(0) {
            let entries = page["entries"].as_array().cloned().unwrap_or_default();
            let found: BTreeMap<String, i128> = entries
                .iter()
                .map(|entry| {
                    let score = &entry["score"];
                    let score = score.as_str().map_or_else(|| score.to_string(), str::to_owned);
                    (entry["member"].as_str().expect("an id").to_owned(), score.parse().expect("a number"))
                })
                .collect();
            assert_eq!(Some(found), board(&table, &options), "{}", about());
            loaded += 1;
        } else {
            assert_eq!((output.status.code(), status), (Some(2), 404), "{}", about());
            is_refused += 1;
            // What fits its options is not refused.
            let is_ascii = table.iter().all(|(member, score)| member.is_ascii() && score.is_ascii());
            let is_readable =
                delimiter == options.delimiter && is_ascii && options.thousands != Some(options.decimal);
            assert!(!is_readable || board(&table, &options).is_none(), "{}", about());
        }
    }
    assert!(loaded >= LOADED_MIN && is_refused > 0, "{loaded} of {FILES} files were loaded");
}
