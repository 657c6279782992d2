//! Files of which a reader could make a board that nobody meant, without a word: each kind is refused in
//! several of its spellings, and what only looks like it is loaded.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::command::command;
use crate::support::node::Node;

struct Files {
    service: Node,
    folder: TempDir,
}

impl Files {
    fn new() -> Self {
        Self { service: Node::start(), folder: tempfile::tempdir().expect("a temporary directory") }
    }

    /// The exit status and all that was said.
    fn import(&self, text: &str, board: &str, options: &[&str]) -> (Option<i32>, String) {
        let path: PathBuf = self.folder.path().join("scores");
        fs::write(&path, text).expect("it can be written");
        let mut import = command();
        import.arg("import").arg(&path).args(["--url", self.service.base(), "--board", board]).args(options);
        let Output { status, stdout, stderr } = import.output().expect("the binary can be started");
        (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
    }

    fn refuses(&self, text: &str, options: &[&str], words: &str) {
        let (code, said) = self.import(text, "refused", options);
        assert!(
            code == Some(2) && said.contains(words),
            "{text:?} {options:?}: {code:?}, {words:?} in {said}"
        );
        assert_eq!(self.service.client().get("/v1/boards/refused").0, 404, "nothing was sent: {text}");
    }

    fn loads(&self, board: &str, text: &str, options: &[&str], expect: &[(&str, i64)]) {
        let (code, said) = self.import(text, board, options);
        assert_eq!(code, Some(0), "{text:?} {options:?}: {said}");
        let page = self.service.client().get(&format!("/v1/boards/{board}/top?limit=100")).1;
        let told = |entry: &Value| (entry["member"].clone(), entry["score"].clone());
        let entries: Vec<_> = page["entries"].as_array().expect("entries").iter().map(told).collect();
        let expect: Vec<_> = expect.iter().map(|(member, score)| (json!(member), json!(score))).collect();
        assert_eq!(entries, expect, "{text:?}: {said}");
    }
}

#[test]
fn ids_and_times_that_have_lost_their_digits_are_refused() {
    let files = Files::new();
    let shortened = "is a number that a spreadsheet has shortened";
    for id in [
        "7.65611980123457E+016",
        "7.6561198E+16",
        "7.6561E+16",
        "7.6561e16",
        "8E+16",
        "-7.6E+16",
        "\"7,6561E+16\"",
    ] {
        files.refuses(&format!("member,score\nann,5\n{id},7\n"), &[], shortened);
    }
    for id in ["7.6561198012345678e16", "7.6561E+16", "\"7.6561E+16\"", "8e16"] {
        let text = format!("{{\"id\":{id},\"score\":5}}\n");
        files.refuses(&text, &["--column", "member=id"], shortened);
    }
    files.refuses("{\"7.6561E+16\":5}", &["--member-from-key"], shortened);
    for (at, format) in [
        ("1.78489E+12", "unix-ms"),
        ("1.784894400E+012", "unix-ms"),
        ("1.78489E+09", "unix"),
        ("1.7848944e9", "unix"),
    ] {
        files.refuses(&format!("member,score,at\nann,5,{at}\n"), &["--at-format", format], shortened);
        let text = format!("{{\"member\":\"ann\",\"score\":5,\"at\":{at}}}\n");
        files.refuses(&text, &["--at-format", format], shortened);
    }
    files.refuses("member,score,at\nann,5,1.78489E+12\nbob,7,1.78489E+12\n", &[], shortened);
    files.loads("hex", "member,score\n12345e67,5\n1e3f,7\n", &[], &[("1e3f", 7), ("12345e67", 5)]);
}

#[test]
fn ids_of_which_a_program_has_made_fractions_are_refused() {
    let files = Files::new();
    let made = "is a number that some programs have made of";
    for id in ["1.0", "2.0", "12.00", "1001.0", "\"3,0\""] {
        files.refuses(&format!("member,score\nann,5\n{id},7\n"), &[], made);
    }
    for id in ["1.0", "\"1.0\"", "12.0"] {
        files.refuses(&format!("[{{\"id\":{id},\"score\":5}}]"), &["--column", "member=id"], made);
    }
    files.loads("v", "member,score\n2.0,5\n2.1,7\n", &[], &[("2.1", 7), ("2.0", 5)]);
    let text = "[{\"id\":\"2.0\",\"score\":5},{\"id\":\"2.1\",\"score\":7}]";
    files.loads("w", text, &["--column", "member=id"], &[("2.1", 7), ("2.0", 5)]);
}

#[test]
fn what_databases_write_for_no_value_and_for_other_characters_is_refused() {
    let files = Files::new();
    let tabs = ["--delimiter", "tab"];
    for member in ["\\N", "NULL", "#N/A", "#NAME?", "#REF!", "(null)"] {
        let words = "where a database or a spreadsheet has no value";
        files.refuses(&format!("member\tscore\nann\t5\n{member}\t7\n"), &tabs, words);
        files.refuses(&format!("member,score\nann,5\n{member},7\n"), &[], words);
    }
    let without = ["--blank", "\\N", "--blank", "NULL"];
    files.loads(
        "blank",
        "member,score\nann,5\n\\N,7\nNULL,9\nNull,4\n",
        &without,
        &[("ann", 5), ("Null", 4)],
    );
    for member in ["DOM\\\\ann", "a\\tb", "a\\nb", "x\\N"] {
        let words = "has a backslash as PostgreSQL and MySQL write it";
        files.refuses(&format!("member\tscore\n{member}\t5\n"), &tabs, words);
    }
    let meta = [&tabs[..], &["--column", "meta.team=team"]].concat();
    files.refuses("member\tscore\tteam\nann\t5\ta\\\\b\n", &meta, "write it for another character");
    files.loads("plain", "member,score\nDOM\\\\ann,5\n", &[], &[("DOM\\\\ann", 5)]);
    files.loads("other", "member\tscore\tx\n\\o/\t5\t\\N\n", &tabs, &[("\\o/", 5)]);
}

#[test]
fn sums_among_the_rows_are_refused_wherever_they_stand() {
    let files = Files::new();
    let (above, below) = ("has what is called so of the rows above it", "of those below it");
    for (text, words) in [
        ("Total,21\nann,9\nbob,7\ncid,5\n", below),
        ("ann,9\nbob,7\nSubtotal,16\ncid,5\ndan,3\n", above),
        ("ann,9\nbob,7\nTeam total,16\ncid,5\n", above),
        ("ann,9\nbob,7\nTotal (2 players),16\ncid,5\n", above),
        ("ann,9\nbob,7\nTotal players: 2,2\ncid,5\n", above),
        ("ann,9\nbob,7\nExported rows:,2\ncid,5\n", above),
        ("ann,9\nbob,7\nAnzahl,2\ncid,5\n", above),
        ("ann,9\nbob,7\nDurchschnitt,8\ncid,5\n", above),
        ("ann,9\nbob,7\ncid,5\nMax,9\n", above),
        ("ann,9\nbob,7\nGrand Total,99\n", "a sum or the like below the rows"),
    ] {
        files.refuses(&format!("member,score\n{text}"), &[], words);
        let rows: Vec<String> = text
            .lines()
            .map(|line| {
                let (name, score) = line.rsplit_once(',').expect("two cells");
                format!("{{\"name\":\"{name}\",\"score\":{score}}}")
            })
            .collect();
        files.refuses(&rows.join("\n"), &["--column", "member=name"], words);
        files.refuses(&format!("[{}]", rows.join(",")), &["--column", "member=name"], words);
    }
    files.refuses("{\"ann\":9,\"bob\":7,\"total\":16}", &["--member-from-key"], above);
    files.refuses("{\"total\":16,\"ann\":9,\"bob\":7}", &["--member-from-key"], below);
    let text = "member,score\nMax,9\nann,9\nTotal,7\nbob,5\nMin,5\n";
    files.loads("players", text, &[], &[("Max", 9), ("ann", 9), ("Total", 7), ("bob", 5), ("Min", 5)]);
    let many: Vec<String> = (0..200).map(|row| format!("m{row:03},{}\n", 500 - row)).collect();
    files.refuses(&format!("member,score\nTotal,80100\n{}", many.concat()), &[], below);
}

#[test]
fn rows_whose_times_run_backwards_are_told() {
    let files = Files::new();
    let told = "the times of 1 of the rows run backwards";
    for (number, (text, is_backwards)) in [
        ("member,score,at\nann,10,2026-07-24\nann,5,2026-07-20\n", true),
        ("member,score,at\nann,5,2026-07-20\nann,10,2026-07-24\n", false),
        ("member,score,at\nann,10,2026-07-24\nbob,5,2026-07-20\n", false),
        (
            "{\"member\":\"ann\",\"score\":10,\"at\":\"2026-07-24T00:00:00Z\"}\n{\"member\":\"ann\",\"score\":5,\"at\":\"2026-07-20T00:00:00Z\"}\n",
            true,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let (code, said) = files.import(text, &format!("b{number}"), &[]);
        assert_eq!((code, said.contains(told)), (Some(0), is_backwards), "{text}: {said}");
        assert!(!is_backwards || said.contains("as on line 3") || said.contains("as on line 2"), "{said}");
    }
}

#[test]
fn columns_in_another_order_than_the_keys_that_they_name_are_refused() {
    let files = Files::new();
    let client = files.service.client();
    let (status, answer) = client.put("/v1/boards/keys", &json!({"keys": [{"name": "a"}, {"name": "b"}]}));
    assert!((200..300).contains(&status), "{answer}");
    let columns = |first, second| ["--column", first, "--column", second];
    for (text, options) in [
        ("member,a,b\nann,1,2\n", columns("score=b", "score=a")),
        ("member,A,B\nann,1,2\n", columns("score=B", "score=A")),
        ("member,a,c\nann,1,2\n", columns("score=c", "score=a")),
        ("{\"member\":\"ann\",\"s\":{\"a\":1,\"b\":2}}", columns("score=s.b", "score=s.a")),
    ] {
        let (code, said) = files.import(text, "keys", &options);
        let words = "give the columns in the order of the keys";
        assert!(code == Some(2) && said.contains(words), "{text}: {said}");
    }
    for (text, options) in [
        ("member,a,b\nann,1,2\n", columns("score=a", "score=b")),
        ("member,x,y\nann,1,2\n", columns("score=x", "score=y")),
    ] {
        let (code, said) = files.import(text, "keys", &options);
        assert_eq!(code, Some(0), "{text}: {said}");
    }
}
