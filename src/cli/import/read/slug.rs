//! Names of boards made of whatever a column has.

use crate::types::BoardName;

/// `Summer Cup 2026` becomes `summer-cup-2026`. `None`: nothing is left of it, or it has letters other than a
/// to z, without which it would be another name.
pub fn slug(text: &str) -> Option<String> {
    if text.contains(|c: char| c.is_alphanumeric() && !c.is_ascii()) {
        return None;
    }
    let mut made = String::new();
    for c in text.trim().chars().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '.') {
            made.push(c);
        } else if !made.ends_with('-') {
            made.push('-');
        }
    }
    let made = made.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    BoardName::new(made).ok().map(|name| name.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_boards_are_made_of_other_names_or_not_at_all() {
        for (text, expect) in [
            ("Summer Cup 2026", Some("summer-cup-2026")),
            (" 100 m (men) ", Some("100-m-men")),
            ("arena", Some("arena")),
            ("a/b", Some("a-b")),
            ("Zürich", None),
            ("日本", None),
            ("", None),
            ("--", None),
        ] {
            assert_eq!(slug(text).as_deref(), expect, "{text}");
        }
    }
}
