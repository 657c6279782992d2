//! Every form of a file that `docs/import.md` lists is imported as it stands there, and every refusal is
//! refused with its words and without anything being sent.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Output;

use encoding_rs::Encoding;
use serde_json::Value;

use crate::support::client::{Client, entry_path};
use crate::support::command::command;
use crate::support::node::Node;

/// The rows of the tables whose first cell of the header is this, each cell as it stands.
pub fn rows(first: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/import.md");
    let text = fs::read_to_string(path).expect("it is text");
    let mut rows = Vec::new();
    let mut is_wanted = false;
    for line in text.lines() {
        let Some(cells) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) else {
            is_wanted &= line.starts_with("|---");
            continue;
        };
        if cells.starts_with(&format!("{first} |")) {
            is_wanted = true;
        } else if is_wanted {
            rows.push(cells.replace("| |", "|  |").split(" | ").map(|cell| cell.trim().to_owned()).collect());
        }
    }
    rows
}

/// What is between backticks.
pub fn code(cell: &str) -> &str {
    cell.split('`').nth(1).unwrap_or_default()
}

/// The words of a command line, as a shell would split them.
pub fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut in_quotes, mut is_begun) = (Vec::new(), String::new(), false, false);
    for c in line.chars() {
        match c {
            '"' => (in_quotes, is_begun) = (!in_quotes, true),
            ' ' if !in_quotes => {
                if is_begun {
                    words.push(std::mem::take(&mut word));
                }
                is_begun = false;
            }
            c => {
                word.push(c);
                is_begun = true;
            }
        }
    }
    if is_begun {
        words.push(word);
    }
    words
}

/// The file of a row, in the encoding that its options name.
fn bytes(file: &str, options: &str) -> Vec<u8> {
    let text = file.replace('⏎', "\n").replace('⇥', "\t");
    let text = if text == "PK" { "PK\u{3}\u{4}".to_owned() } else { text };
    if options.contains("(UTF-16)") {
        return [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    }
    let options = words(code(options));
    let label = options.iter().skip_while(|word| *word != "--encoding").nth(1);
    match label.and_then(|label| Encoding::for_label(label.as_bytes())) {
        Some(encoding) => encoding.encode(&text).0.into_owned(),
        None => text.into_bytes(),
    }
}

pub struct Imported {
    pub code: Option<i32>,
    pub said: String,
}

fn import(service: &Node, folder: &Path, board: &str, file: &str, options: &str) -> Imported {
    import_with(service, folder, board, (file, options), &words(code(options)))
}

/// # Arguments
/// - `row`: the file and the options of a row of the page, which say what the file is in.
/// - `arguments`: the options that are given.
pub fn import_with(
    service: &Node,
    folder: &Path,
    board: &str,
    (file, options): (&str, &str),
    arguments: &[String],
) -> Imported {
    let path = folder.join("scores");
    fs::write(&path, bytes(file, options)).expect("it can be written");
    let mut import = command();
    import.arg("import").arg(&path).args(["--url", service.base()]).args(arguments);
    if !file.starts_with("board,") {
        import.args(["--board", board]);
    }
    let Output { status, stdout, stderr } = import.output().expect("the binary can be started");
    Imported { code: status.code(), said: String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned() }
}

/// A board as the page writes it: `bob 7, ann 5`, with what else the row of the page tells.
fn told(client: &Client, board: &str, expect: &str) -> String {
    let page = client.get(&format!("/v1/boards/{board}/top?limit=100")).1;
    let entry = |entry: &Value| {
        let member = entry["member"].as_str().expect("an id");
        let mut told = format!("{member} {}", entry["score"]);
        if expect.contains('@') {
            write!(told, " @{}", entry["updated_at"].as_str().expect("a time")).expect("it is text");
        }
        if expect.contains('{') {
            write!(told, " {}", entry["meta"]).expect("it is text");
        }
        told
    };
    let entries = page["entries"].as_array().unwrap_or_else(|| panic!("{page}"));
    entries.iter().map(entry).collect::<Vec<_>>().join(", ")
}

#[test]
fn every_form_of_the_page_becomes_the_board_that_it_says() {
    let service = Node::shards(2).start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let client = service.client();
    let rows = rows("form");
    assert!(rows.len() > 40, "{} rows", rows.len());
    let mut wrong = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let [form, file, options, expect] = row.as_slice() else { panic!("{row:?}") };
        let file = code(file);
        let own = format!("t{number}");
        let Imported { code: status, said } = import(&service, folder.path(), &own, file, options);
        let (board, expect) =
            expect.split_once(": ").filter(|(name, _)| !name.contains(' ')).unwrap_or((&own, expect));
        if status != Some(0) {
            wrong.push(format!("{form}: {said}"));
            continue;
        }
        let found = told(&client, board, expect);
        if found != *expect {
            wrong.push(format!("{form}: {found:?}, and the page says {expect:?}: {said}"));
        }
        if form.starts_with("profiles") {
            let entry = client.get(&format!("{}?profile=true", entry_path(board, "p1"))).1;
            assert_eq!(entry["profile"]["name"], "Ann", "{entry}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_refusal_of_the_page_has_its_words_and_sends_nothing() {
    let service = Node::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let rows = rows("file");
    assert!(rows.len() > 20, "{} rows", rows.len());
    let mut wrong = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let [file, options, expect] = row.as_slice() else { panic!("{row:?}") };
        let board = format!("t{number}");
        let Imported { code: status, said } = import(&service, folder.path(), &board, code(file), options);
        if status != Some(2) || !said.contains(expect.as_str()) {
            wrong.push(format!("{file} {options}: {expect:?} in {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let boards = service.client().get("/v1/boards").1;
    assert_eq!(boards["boards"], serde_json::json!([]), "nothing was sent");
}
