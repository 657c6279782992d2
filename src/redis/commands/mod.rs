//! Commands: which there are, and what their arguments ask for. Pure: nothing here reads a board.
//!
//! - `table`: every command, once; `absent`: those of Redis that are not here, and why
//! - `command`: what a client asks for, in types
//! - `help`: what HELP says
//! - `words`: arguments, taken one after the other
//! - `add`, `combine`, `range`, `store`, `take`, `keyspace`, `expiry`, `connection`, `transaction`: arguments
//!   to those types, in the order in which Redis judges them

mod absent;
mod add;
mod combine;
mod command;
mod connection;
mod expiry;
mod help;
mod keyspace;
mod range;
mod store;
mod table;
mod take;
mod transaction;
mod words;

pub use absent::{is_of_redis, why_absent};
pub use command::{
    Add, Authentication, ClientCommand, CombineReply, Combined, Combining, Command, CommandQuery, Connection,
    EntryScan, Expire, Keyspace, LexBound, Listing, PopReply, Popping, RandomCount, RangeOf, Read, Scan,
    ScoreBound, Selection, Stored, Storing, Taking, TimeAsked, TransactionStep, WhenToExpire, Write,
};
pub use help::help_lines;
pub use table::{COMMANDS, Needs, Spec, find};
