//! What is told of each operation: one function each, named as its route is.

mod boards;
mod entries;
mod ranks;
mod service;
mod writes;

pub use boards::{board, boards, clear_board, delete_board, put_board, trim_board};
pub use entries::{around, lookup, member, member_boards, positions, range, top};
pub use ranks::{count, histogram, percentiles, rank, ranks_of, score};
pub use service::{docs, healthz, metrics, openapi, readyz, rejects, status};
pub use writes::{delete_everywhere, delete_member, jobs, put_member};

use crate::http::openapi::doc::{Doc, Scope};
use crate::http::openapi::parameters;
use crate::http::openapi::problems::{ANY, READ, WRITE};

/// A read of anything.
fn read(tag: &'static str, summary: &'static str) -> Doc {
    let doc = Doc::new(tag, Scope::Read, summary).problems(ANY).problems(READ);
    parameters::of_reads().into_iter().fold(doc, Doc::query)
}

/// A read of a board.
fn read_board(tag: &'static str, summary: &'static str) -> Doc {
    read(tag, summary).problem(404, "unknown_board")
}

/// A write, which can wait.
fn write(tag: &'static str, scope: Scope, summary: &'static str) -> Doc {
    let doc = Doc::new(tag, scope, summary).problems(ANY).problems(WRITE);
    doc.query(parameters::shared("wait"))
}
