//! What a refusal of the page of imports advises leads on: each option that it names is one, and given as it
//! says, the file is loaded, or refused for something else.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::cli::import_forms::{Imported, code, import_with, rows, words};
use crate::support::command::command;
use crate::support::node::Node;

/// Without a good part of advice that loads its file at once, the test would say little.
const LOADED_MIN: usize = 40;

/// Options of other programs that refusals name.
const OF_OTHERS: [&str; 2] = ["--csv", "--json"];
/// What is given once for each field or text, so that one more does not take the place of another.
const REPEATED: [&str; 3] = ["--column", "--blank", "--duration"];
/// Names that stand for others.
const PLACEHOLDERS: [&str; 7] = ["NAME", "NUMBER", "A", "B", "FIELD", "FILE", "LINES"];

/// The flags that `ranktree help import` has, and those of them that take a value.
fn flags() -> (BTreeSet<String>, BTreeSet<String>) {
    let help = command().args(["help", "import"]).output().expect("the binary can be started");
    let help = String::from_utf8(help.stdout).expect("it writes UTF-8");
    let of = |line: &str| {
        let line = line.trim_start();
        let (_, flag) = line.starts_with('-').then(|| line.split_once("--"))??;
        let (name, rest) =
            flag.split_once(|c: char| c != '-' && !c.is_ascii_lowercase()).unwrap_or((flag, ""));
        Some((format!("--{name}"), rest.starts_with('<') || rest.starts_with('[')))
    };
    let all: Vec<(String, bool)> = help.lines().filter_map(of).collect();
    let valued = all.iter().filter(|(_, takes)| *takes).map(|(name, _)| name.clone()).collect();
    (all.into_iter().map(|(name, _)| name).collect(), valued)
}

/// An option that a text names, with its value if one stands behind it, and where it ends.
struct Named {
    flag: String,
    value: Option<String>,
    /// It is to be left away.
    is_without: bool,
    begin: usize,
    end: usize,
}

/// The options that a text names.
fn named(text: &str, valued: &BTreeSet<String>) -> Vec<Named> {
    let mut named = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find("--").map(|at| from + at) {
        let is_flag = |c: char| c == '-' || c.is_ascii_lowercase();
        let end = text[at..].find(|c| !is_flag(c)).map_or(text.len(), |length| at + length);
        from = end.max(at + 2);
        let flag = text[at..end].trim_end_matches('-').to_owned();
        let is_begun = text[..at].ends_with([' ', '(', '\'', '"']) || at == 0;
        if flag.len() < 3 || !is_begun {
            continue;
        }
        let before = text[..at].trim_end();
        let is_without = ["leave", "without", "in place of"].iter().any(|word| before.ends_with(word))
            || ["leave them away", "leave these away", "leave it away", "leave one away"]
                .iter()
                .any(|words| text[at..].lines().next().is_some_and(|line| line.contains(words)));
        let (mut value, mut value_end) = (None, end);
        if let Some(rest) = text[end..].strip_prefix(' ').filter(|_| valued.contains(&flag)) {
            let mark = rest.chars().next().filter(|c| ['"', '\''].contains(c));
            let (found, length) = if let Some(mark) = mark {
                let quoted = &rest[1..];
                let close = quoted.find(mark).unwrap_or(quoted.len());
                (quoted[..close].to_owned(), close + 2)
            } else {
                let length = rest.find(|c: char| c.is_whitespace() || ";)".contains(c)).unwrap_or(rest.len());
                let word = rest[..length].trim_end_matches([',', ':']);
                let word = if word.len() > 1 { word.trim_end_matches('.') } else { word };
                (word.to_owned(), length)
            };
            if fits(&flag, &found) {
                (value, value_end) = (Some(found), end + 1 + length);
            }
        }
        named.push(Named { flag, value, is_without, begin: at, end: value_end });
    }
    named
}

/// Whether a word is a value of the option, and not the next one of the sentence.
fn fits(flag: &str, value: &str) -> bool {
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = value.split('=').collect();
    if parts.iter().any(|part| PLACEHOLDERS.iter().any(|name| part.split('.').any(|word| word == *name))) {
        return false;
    }
    match flag {
        "--duration" => matches!(parts.first(), Some(&"s" | &"ms" | &"us")),
        "--scale" | "--skip-lines" | "--limit-errors" => is_number,
        "--column" => parts.len() > 1,
        "--thousands" | "--decimal" => value.chars().count() == 1,
        "--delimiter" => value.chars().count() == 1 || value == "tab",
        "--at-format" => value.starts_with("unix") || value.contains('%'),
        "--at-zone" => value == "UTC" || value.contains('/'),
        "--rows-at" => !["says", "is", "reads"].contains(&value),
        "--blank" => true,
        _ => false,
    }
}

/// Command lines that a refusal advises: options that stand beside each other are given together.
fn advised(text: &str, given: &[String], valued: &BTreeSet<String>) -> Vec<Vec<String>> {
    let mut groups: Vec<(usize, Vec<Named>)> = Vec::new();
    for named in named(text, valued) {
        let is_complete = named.is_without || named.value.is_some() || !valued.contains(&named.flag);
        if !is_complete || OF_OTHERS.contains(&named.flag.as_str()) {
            continue;
        }
        let joins =
            |end: usize| matches!(&text[end..named.begin], " " | " reads it, with " | " in place of ");
        match groups.last_mut() {
            Some((end, group)) if joins(*end) => {
                *end = named.end;
                group.push(named);
            }
            _ => groups.push((named.end, vec![named])),
        }
    }
    groups.into_iter().map(|(_, group)| with(given, &group)).filter(|line| !is_same(line, given)).collect()
}

fn is_same(one: &[String], other: &[String]) -> bool {
    let sorted = |words: &[String]| {
        let mut words = words.to_vec();
        words.sort();
        words
    };
    sorted(one) == sorted(other)
}

/// The options that were given, with others added or left away.
fn with(given: &[String], group: &[Named]) -> Vec<String> {
    let mut line: Vec<(String, Option<String>)> = Vec::new();
    for word in given {
        if word.starts_with("--") {
            line.push((word.clone(), None));
        } else if let Some((_, value)) = line.last_mut() {
            *value = Some(word.clone());
        }
    }
    for Named { flag, value, is_without, .. } in group {
        let field = |value: &Option<String>| {
            value.as_deref().and_then(|value| value.split('=').next().map(str::to_owned))
        };
        let takes_place = |(known, old): &(String, Option<String>)| {
            let is_same_field = flag == "--column" && field(old) == field(value);
            known == flag && (*is_without || !REPEATED.contains(&flag.as_str()) || is_same_field)
        };
        line.retain(|known| !takes_place(known));
        if !is_without {
            line.push((flag.clone(), value.clone()));
        }
    }
    line.into_iter().flat_map(|(flag, value)| [Some(flag), value]).flatten().collect()
}

/// The lines of what was said that say why.
fn why(said: &str) -> BTreeSet<String> {
    let is_note = |line: &str| line.contains(": reads ") || line.contains(" is new, ");
    let is_why = |line: &&str| line.contains(": ") && !is_note(line);
    said.lines().filter(is_why).map(str::to_owned).collect()
}

/// The command of a refusal that writes what is read, and what stands behind it: those of every system.
fn piped(text: &str) -> Option<(String, &str)> {
    let end = text.find(" FILE | ranktree import -")?;
    let begin = ["sed ", "tr "].iter().filter_map(|name| text[..end].rfind(name)).max()?;
    let command = text[begin..end].trim_end_matches(" <").to_owned();
    Some((command, text[end..].strip_prefix(" FILE | ranktree import -")?))
}

/// What a command makes of a text.
fn through(command: &str, text: &str) -> String {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is a shell");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(text.as_bytes()).expect("it reads");
    drop(stdin);
    String::from_utf8(child.wait_with_output().expect("it ends").stdout).expect("it is text")
}

#[test]
fn the_options_that_a_refusal_names_are_there_and_lead_on() {
    let service = Node::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let (all, valued) = flags();
    assert!(all.contains("--thousands") && valued.contains("--thousands") && !valued.contains("--round"));
    let (mut wrong, mut loaded) = (Vec::new(), 0);
    for (number, row) in rows("file").iter().enumerate() {
        let [file, options, _] = row.as_slice() else { panic!("{row:?}") };
        let given = words(code(options));
        let run = |board: &str, line: &[String]| {
            import_with(&service, folder.path(), board, (code(file), options), line)
        };
        let refused = run(&format!("t{number}"), &given).said;
        let text = refused.lines().filter(|line| line.contains("--")).collect::<Vec<_>>().join("\n");
        for Named { flag, .. } in named(&text, &valued) {
            if !all.contains(&flag) && !OF_OTHERS.contains(&flag.as_str()) {
                wrong.push(format!("{flag} is no option: {text}"));
            }
        }
        let file = code(file);
        let mut lines: Vec<(String, Vec<String>)> =
            advised(&text, &given, &valued).into_iter().map(|line| (file.to_owned(), line)).collect();
        if let Some((command, rest)) = piped(&refused) {
            // What stands behind the command is of what it writes.
            let options = advised(rest, &given, &valued).into_iter().next().unwrap_or(given.clone());
            let rest = rest.trim_start();
            let options = if rest.starts_with("--") { options } else { given.clone() };
            let written = through(&command, &file.replace('⏎', "\n").replace('⇥', "\t"));
            lines = vec![(written, options)];
        }
        for (index, (file, line)) in lines.iter().enumerate() {
            let board = format!("t{number}-{index}");
            let Imported { code, said } = import_with(&service, folder.path(), &board, (file, options), line);
            loaded += usize::from(code == Some(0));
            if code != Some(0) && why(&said) == why(&refused) {
                wrong.push(format!("{file} {given:?}, as advised with {line:?}: {said}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(loaded >= LOADED_MIN, "{loaded} were loaded");
}
