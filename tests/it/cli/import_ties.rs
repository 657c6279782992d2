//! Equal scores keep the order of the rows, in whatever files these are and wherever an import goes on; and
//! times that an import does not change are told.

use std::fs;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::command::command;
use crate::support::node::Node;

struct Ties {
    service: Node,
    folder: TempDir,
}

impl Ties {
    fn new() -> Self {
        Self { service: Node::shards(2).start(), folder: tempfile::tempdir().expect("a temporary directory") }
    }

    fn import(&self, files: &[&str], arguments: &[&str]) -> (Option<i32>, String) {
        let mut import = command();
        import.arg("import");
        for (number, text) in files.iter().enumerate() {
            let path = self.folder.path().join(format!("file{number}"));
            fs::write(&path, text).expect("it can be written");
            import.arg(path);
        }
        let output = import.args(["--url", self.service.base()]).args(arguments).output();
        let Output { status, stdout, stderr } = output.expect("the binary can be started");
        (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
    }

    fn members(&self, board: &str) -> String {
        let page = self.service.client().get(&format!("/v1/boards/{board}/top?limit=100")).1;
        let entries = page["entries"].as_array().unwrap_or_else(|| panic!("{page}"));
        let name = |entry: &Value| entry["member"].as_str().expect("an id").to_owned();
        entries.iter().map(name).collect::<Vec<_>>().join(" ")
    }
}

/// Rows of one time, for one board.
fn rows(names: &str, at: &str) -> String {
    let row = |name| format!("{name},5,{at}\n");
    names.split(' ').map(row).collect()
}

fn first_lines(text: &str, count: usize) -> String {
    text.split_inclusive('\n').take(count).collect()
}

#[test]
fn rows_of_one_time_are_in_order_over_files_and_behind_the_line_to_go_on_from() {
    let ties = Ties::new();
    let head = "member,score,at\n";
    let json = |names: &str| {
        let row = |name| format!("{{\"name\":\"{name}\",\"score\":5,\"at\":\"2026-07-24\"}}\n");
        names.split(' ').map(row).collect::<String>()
    };
    let csv = |names: &str| format!("{head}{}", rows(names, "2026-07-24"));
    let both =
        |names: [&str; 2]| [(names.map(csv), 4, &[][..]), (names.map(json), 3, &["--column", "member=name"])];
    for (number, (files, line, arguments)) in both(["z y x", "b c a"]).into_iter().enumerate() {
        let files = files.each_ref().map(String::as_str);
        let run = |board: &str, files: &[&str], more: &[&str]| {
            let (code, said) = ties.import(files, &[&["--board", board], arguments, more].concat());
            assert_eq!(code, Some(0), "{said}");
            said
        };
        run(&format!("one{number}"), &files, &[]);
        assert_eq!(ties.members(&format!("one{number}")), "z y x b c a");
        // What was sent before the import was stopped, and then what it says to go on with.
        for (before, from) in [(line, line.to_string()), (line, format!("1:{line}"))] {
            let board = format!("two{number}-{}", from.replace(':', "-"));
            let sent = first_lines(files[0], before - 1);
            run(&board, &[&sent], &[]);
            run(&board, &files, &["--from-line", &from]);
            assert_eq!(ties.members(&board), "z y x b c a", "{from}");
        }
        let board = format!("three{number}");
        let sent = first_lines(files[1], line - 1);
        run(&board, &[files[0], &sent], &[]);
        run(&board, &files, &["--from-line", &format!("2:{line}")]);
        assert_eq!(ties.members(&board), "z y x b c a");
        let said = run(&board, &files, &["--from-line", "2:99"]);
        assert!(said.contains("no row is on line 99 or behind it (--from-line)"), "{said}");
    }
    let (code, said) = ties.import(&[head], &["--board", "b", "--from-line", "2:1"]);
    assert!(code == Some(2) && said.contains("--from-line goes on in file 2, and there are 1"), "{said}");
}

#[test]
fn an_import_that_changes_no_time_says_so() {
    let ties = Ties::new();
    let text = |at: &str| format!("member,score,at\n{}", rows("ann bob", at));
    let words = "stay as they are, too: equal scores keep the times";
    for (at, board, is_told) in [
        ("2026-07-24T10:00:00Z", "b", false),
        ("2026-07-23T10:00:00Z", "b", true),
        ("2026-07-23T10:00:00Z", "c", false),
    ] {
        let (code, said) = ties.import(&[&text(at)], &["--board", board]);
        assert_eq!((code, said.contains(words)), (Some(0), is_told), "{said}");
    }
    let (code, said) = ties.import(&["member,score\nann,5\n"], &["--board", "b"]);
    assert!(code == Some(0) && !said.contains(words), "{said}");
}
