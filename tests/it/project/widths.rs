//! Lines are no wider than a reader's window: 110 columns in Rust, 100 in Markdown.
//!
//! Text in quotes does not count, nor do tables and code in Markdown, nor a line that has no space to break
//! at.

use std::fs;
use std::path::PathBuf;

use crate::project::documents::{documents, root, sources};
use crate::support::rust_words::without_literals;

const RUST: usize = 110;
const MARKDOWN: usize = 100;

/// The numbers of the lines of a text that are too wide.
type TooWide = fn(&str) -> Vec<usize>;

#[test]
fn lines_of_sources_and_documents_are_no_wider_than_agreed() {
    let mut wide = Vec::new();
    let kinds: [(Vec<PathBuf>, TooWide); 2] =
        [(sources(), too_wide_of_rust), (documents(), too_wide_of_markdown)];
    for (paths, too_wide) in kinds {
        assert!(paths.len() > 10, "{} files", paths.len());
        for path in paths {
            let name = path.strip_prefix(root()).expect("it is in the repository").display().to_string();
            let text = fs::read_to_string(&path).expect("it is text");
            wide.extend(too_wide(&text).into_iter().map(|line| format!("{name}:{line}")));
        }
    }
    let limits = format!("{RUST} columns in Rust, {MARKDOWN} in Markdown");
    assert!(wide.is_empty(), "{} lines are wider than {limits}:\n{}", wide.len(), wide.join("\n"));
}

#[test]
fn wide_lines_are_found_where_they_could_break() {
    let word = |length: usize| "x".repeat(length);
    let check = |found: Vec<usize>, expect: &[usize], text: &str| assert_eq!(found, expect, "{text}");
    for (text, expect) in [
        (format!("// {} xx", word(104)), &[][..]),
        (format!("// {} xxx", word(104)), &[1]),
        (format!("// ä {}", "ä".repeat(105)), &[]),
        (format!("    /// {} {}", word(90), word(20)), &[1]),
        (format!("//! https://{}", word(120)), &[]),
        (format!("let a = \"{}\"; // {}", word(120), word(20)), &[]),
        (format!("let a = \"{}\\\n{}\"; // {}\n// {} xxx", word(120), word(120), word(20), word(108)), &[3]),
        (format!("let a = f({}, {});", word(60), word(60)), &[1]),
    ] {
        check(too_wide_of_rust(&text), expect, &text);
    }
    for (text, expect) in [
        (format!("{} xx", word(97)), &[][..]),
        (format!("{} xxx", word(97)), &[1]),
        (format!("- [x]({})", word(120)), &[]),
        (format!("- see [x]({})", word(120)), &[1]),
        (format!("| {} | xxx |", word(120)), &[]),
        (format!("    {} xxx", word(120)), &[]),
        (format!("```sh\n{0} xxx\n```\n{0} xxx", word(120)), &[4]),
    ] {
        check(too_wide_of_markdown(&text), expect, &text);
    }
}

fn too_wide_of_rust(text: &str) -> Vec<usize> {
    let code = without_literals(text);
    let body = |line: &str| line.trim_start_matches([' ', '/', '!']).to_owned();
    numbered(code.lines())
        .filter(|(_, line)| is_wide(line, &body(line), RUST))
        .map(|(number, _)| number)
        .collect()
}

fn too_wide_of_markdown(text: &str) -> Vec<usize> {
    let mut is_code = false;
    let counts = |line: &str| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !(is_code || is_fence || line.starts_with("    ") || line.starts_with('|'))
    };
    let counted: Vec<_> = text.lines().map(counts).collect();
    let body = |line: &str| line.trim_start_matches([' ', '-', '>']).to_owned();
    numbered(text.lines())
        .zip(counted)
        .filter(|((_, line), counts)| *counts && is_wide(line, &body(line), MARKDOWN))
        .map(|((number, _), _)| number)
        .collect()
}

fn numbered<'a>(lines: impl Iterator<Item = &'a str>) -> impl Iterator<Item = (usize, &'a str)> {
    lines.enumerate().map(|(index, line)| (index + 1, line))
}

/// Whether a line is too wide and has a space to break at.
fn is_wide(line: &str, body: &str, limit: usize) -> bool {
    line.chars().count() > limit && body.trim_end().contains(' ')
}
