//! The words of Rust source, for tests that hold what modules may name.

use std::fs;
use std::path::Path;

/// All files of `src`: their paths below it, and their texts.
pub fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the source can be read") {
            let path = entry.expect("the source can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("the source can be read");
                let path = path.strip_prefix(&root).expect("it was found there").to_string_lossy();
                sources.push((path.replace('\\', "/"), text));
            }
        }
    }
    sources.sort();
    sources
}

#[derive(PartialEq)]
enum Piece {
    Comment,
    /// A text or a character, in quotes.
    Literal,
    Word,
    /// `::`, or a single character.
    Mark,
}

/// Identifiers, `::` and single marks, without comments and literals, with the lines they stand on.
pub fn words(text: &str) -> Vec<(usize, String)> {
    let mut words = Vec::new();
    let mut line = 1;
    for (piece, text) in pieces(text) {
        let is_word = piece == Piece::Word || (piece == Piece::Mark && !text.trim().is_empty());
        if is_word {
            words.push((line, text.to_owned()));
        }
        line += text.matches('\n').count();
    }
    words
}

/// The text without literals, line by line as before.
pub fn without_literals(text: &str) -> String {
    let kept = |(piece, text): (Piece, &str)| match piece {
        Piece::Literal => "\n".repeat(text.matches('\n').count()),
        _ => text.to_owned(),
    };
    pieces(text).into_iter().map(kept).collect()
}

fn pieces(text: &str) -> Vec<(Piece, &str)> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (piece, length) = if rest.starts_with("//") {
            (Piece::Comment, rest.find('\n').unwrap_or(rest.len()))
        } else if rest.starts_with("/*") {
            (Piece::Comment, block_comment(rest))
        } else if let Some(length) = raw_text(rest) {
            (Piece::Literal, length)
        } else if first == '"' || rest.starts_with("b\"") {
            let quote = rest.find('"').unwrap_or(0);
            (Piece::Literal, quote + quoted(rest.split_at(quote).1))
        } else if let Some(length) = character(rest) {
            (Piece::Literal, length)
        } else if first.is_alphanumeric() || first == '_' {
            (Piece::Word, rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len()))
        } else if rest.starts_with("::") {
            (Piece::Mark, 2)
        } else {
            (Piece::Mark, first.len_utf8())
        };
        let (passed, next) = rest.split_at(length);
        pieces.push((piece, passed));
        rest = next;
    }
    pieces
}

/// The length of a block comment, with those inside it.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    loop {
        let rest = text.split_at(at).1;
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            match rest.chars().next() {
                Some(next) => at += next.len_utf8(),
                None => return at,
            }
        }
    }
}

/// The length of `r"..."`, `r#"..."#` and the like, if the text starts with one.
fn raw_text(text: &str) -> Option<usize> {
    let after = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let content = after.split_at(hashes).1.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - content.len();
    Some(content.find(&end).map_or(text.len(), |length| start + length + end.len()))
}

/// The length of a text in double quotes, which the text starts with.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a character in single quotes, if the text starts with one and not with a lifetime.
fn character(text: &str) -> Option<usize> {
    let content = text.strip_prefix('\'')?;
    let first = content.chars().next()?;
    let skipped = if first == '\\' { 2 } else { first.len_utf8() };
    let end = content.get(skipped..)?.find('\'')?;
    // `'a, 'b` are lifetimes; `'\u{7f}'` is a character of more than one letter.
    (end == 0 || first == '\\').then_some(1 + skipped + end + 1)
}
