//! The description of each operation: one function each, named as its route is.

mod boards;
mod entries;
mod kinds;
mod ranks;
mod service;
mod snapshots;
mod writes;

pub use boards::{
    board, boards, cancel_season, clear_board, delete_board, move_season, open_season, put_board, trim_board,
};
pub use entries::{around, combine, live, lookup, member, member_boards, positions, range, top};
pub use ranks::{count, histogram, percentiles, rank, ranks_of, score};
pub use service::{docs, healthz, hidden, metrics, openapi, readyz, rejects, set_read_only, status};
pub use snapshots::{begin_snapshot, delete_snapshot, snapshot_file};
pub use writes::{delete_everywhere, delete_member, jobs, put_member};
