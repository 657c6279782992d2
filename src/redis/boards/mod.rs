//! Commands on boards: which board a key is, reads, writes.
//!
//! Knows: in which order Redis shows what a board holds. Must not know: the connection.
//!
//! - `key`: which board a key is; `bounds`: bounds of scores; `slice`: a range of positions; `range`: all of
//!   its entries, as a reply; `pattern`: patterns of names
//! - `asked`: a read that sees what its connection has written, and what its reply takes; `pace`: long
//!   commands leave others their turns
//! - `read`: commands that read a board; `random`: members drawn at random; `keyspace`: commands about boards
//!   as keys; `expiry`: when they end
//! - `write`: commands as jobs, and what came of them; `take`: commands that take entries away by their
//!   place; `store`: commands that replace all of a board

mod asked;
mod bounds;
mod combine;
mod expiry;
mod key;
mod keyspace;
mod pace;
mod pattern;
mod random;
mod range;
mod read;
mod slice;
mod store;
mod take;
mod write;

pub use asked::{Asking, Peer, count_unsent};
pub use combine::answer_combined;
pub use expiry::{end_over, end_those_over, is_over};
pub use key::BoardKey;
pub use keyspace::{answer_keyspace, board_count};
pub use pace::{LOOKUP, Pace};
pub use pattern::Pattern;
pub use read::answer_read;
pub use store::answer_storing;
pub use take::{PopTurns, answer_taking};
pub use write::{WriteReply, define, jobs_of, made_definition, write_jobs};
