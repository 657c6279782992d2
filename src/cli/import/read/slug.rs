//! Names of boards made of whatever a column has.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::types::{BoardName, quoted};

/// The names that `--slug` has made in one pass over all files, each with what it was made of.
#[derive(Debug, Clone, Default)]
pub struct Slugs(Rc<RefCell<HashMap<String, String>>>);

impl Slugs {
    /// # Errors
    /// When no name can be made of the text, or the name was made of another text.
    pub fn make(&self, text: &str) -> Result<String, String> {
        let told = quoted(text);
        let made = slug(text).ok_or_else(|| {
            format!(
                "--slug makes no name of a board of {told}, whose letters and digits must be a to z and 0 to 9"
            )
        })?;
        let mut known = self.0.borrow_mut();
        match known.get(&made) {
            Some(other) if other != text => Err(format!(
                "--slug makes {made} of {told}, and of {} too: two boards would become one",
                quoted(other)
            )),
            Some(_) => Ok(made),
            None => {
                known.insert(made.clone(), text.to_owned());
                Ok(made)
            }
        }
    }
}

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
