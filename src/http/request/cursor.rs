//! The history that a cursor is of, which stands in front of it once there was more than one.
//!
//! Without NATS a service can be set back to an earlier state. A page that went on from one before that would
//! lack what the two states differ in, and nobody would notice.
//!
//! Knows: how that is written. Must not know: what a cursor itself says.

use crate::http::render::json::Object;
use crate::http::render::problem::Problem;
use crate::http::request::call::Call;
use crate::operations::Failure;

/// Between the history and the cursor. No cursor that is written here has it, and no URL needs it encoded.
const MARK: char = '~';

impl Call {
    /// A cursor that this answered, without its history.
    ///
    /// # Errors
    /// When it is of another history.
    pub fn cursor_here<'t>(&self, text: &'t str) -> Result<&'t str, Problem> {
        let (history, cursor) = split(text);
        let is_here = history == self.api.operations.history();
        if is_here { Ok(cursor) } else { Err(Failure::OtherHistory.into()) }
    }

    /// Writes the cursor of the next page, if there is one, with the history that it is of.
    pub fn write_next_cursor(&self, object: &mut Object<'_>, next: Option<String>) {
        let next = next.map(|next| join(self.api.operations.history(), next));
        object.or_null("next_cursor", next.as_deref(), Object::text);
    }
}

fn join(history: u64, cursor: String) -> String {
    if history == 0 { cursor } else { format!("{history:x}{MARK}{cursor}") }
}

/// The history, which is 0 for the first one, and the cursor itself. What is no history is left where it is,
/// for whoever reads the cursor to refuse it.
fn split(text: &str) -> (u64, &str) {
    let with_history = text.split_once(MARK);
    let found = with_history.and_then(|(history, rest)| Some((u64::from_str_radix(history, 16).ok()?, rest)));
    found.unwrap_or((0, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_reads_back_and_the_first_one_costs_nothing() {
        for (history, text) in [(0, "01ab"), (0xa7, "a7~01ab"), (u64::MAX, "ffffffffffffffff~01ab")] {
            assert_eq!(join(history, "01ab".to_owned()), text);
            assert_eq!(split(text), (history, "01ab"));
        }
        for text in ["", "~", "x~1", "10000000000000000~1"] {
            assert_eq!(split(text), (0, text));
        }
    }
}
