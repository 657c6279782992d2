//! What the operations of a kind have in common.

use crate::http::openapi::doc::Doc;
use crate::http::openapi::parameters;
use crate::http::openapi::problems::{ANY, READ, WRITE};
use crate::http::openapi::reference::shared;

/// A read of anything.
pub fn read(tag: &'static str, summary: &'static str) -> Doc {
    let doc = Doc::new(tag, summary).problems(ANY).problems(READ);
    parameters::of_reads().into_iter().fold(doc, Doc::query)
}

/// A read of a board.
pub fn read_board(tag: &'static str, summary: &'static str) -> Doc {
    read(tag, summary).problem(404, "unknown_board").problem(404, "unknown_window")
}

/// A read of a board's entries, which may show their members' entries on other boards.
pub fn read_table(tag: &'static str, summary: &'static str) -> Doc {
    parameters::columns().into_iter().fold(read_board(tag, summary), Doc::query)
}

/// A write, which can wait.
pub fn write(tag: &'static str, summary: &'static str) -> Doc {
    let doc = Doc::new(tag, summary).problems(ANY).problems(WRITE);
    doc.query(shared("wait"))
}
