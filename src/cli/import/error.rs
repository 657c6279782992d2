//! What ends an import early, in the words that an operator reads.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::cli::client::ClientError;
use crate::config::ConfigError;

/// Why an import ended early. Rows that were answered before are applied; the same import can be run again.
#[derive(Debug, Error)]
pub enum ImportError {
    #[error("cannot open {}", .path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("there is nothing to read: name a file, or pipe rows into ranktree import -")]
    Terminal,
    #[error("reading failed at line {line}")]
    Read { line: u64, source: io::Error },
    #[error(
        "the file is no text: CSV or NDJSON in UTF-8 is expected, packed with gzip or not; save or unpack it as such"
    )]
    Binary,
    #[error("there is nothing in the file: it is empty")]
    Empty,
    #[error(
        "the file's header has no column {name:?}; it has: {found}. --column {field}=NAME says which is meant{}",
        if *field == "board" { ", and --board NAME sends every row to that board" } else { "" }
    )]
    MissingColumn { field: &'static str, name: String, found: String },
    #[error("the file's header names the column {0:?} twice")]
    RepeatedColumn(String),
    #[error("--column is FIELD=NAME with a field of board, member, score, at, version, meta; got {0:?}")]
    ColumnArgument(String),
    #[error("Redis cannot be read")]
    Redis(#[source] redis::RedisError),
    #[error(
        "Redis has no sorted set {0:?} with anyone in it; --key names it, and the URL's last part the database"
    )]
    RedisEmpty(String),
    #[error("--op with --redis is set or best, not {0}: members may be read twice, and must not count twice")]
    RedisOp(&'static str),
    #[error(
        "--scale {0} is for CSV and Redis: the lines of NDJSON are jobs as the service takes them, whose scores are whole numbers; \
         multiply them where they are written, or import them as CSV"
    )]
    ScaledNdjson(u32),
    #[error("{0}")]
    Address(String),
    #[error(transparent)]
    Settings(#[from] ConfigError),
    #[error("cannot trust anybody's certificate: {0}")]
    Trust(String),
    #[error("cannot write rejected lines to {}", .path.display())]
    Rejects { path: PathBuf, source: io::Error },
    #[error("more than {0} rows are rejected (--limit-errors)")]
    TooManyRejected(u64),
    #[error("nothing answers at {to}: {reason}. Is the service there? --retry-for 60s waits for it")]
    NotThere { to: String, reason: String },
    #[error("no answer from {to} for {seconds} s (--retry-for): {reason}")]
    Unreachable { to: String, seconds: u64, reason: String },
    #[error(
        "{to} may or may not have applied lines {first} to {last}, of rows that add and carry no version: {reason}. \
         Sending them again could count them twice; look at their members first"
    )]
    InDoubt { to: String, first: u64, last: u64, reason: String },
    #[error("{to} cannot be used: {reason}")]
    Unusable { to: String, reason: String },
    #[error("{to} refused lines {first} to {last}: {reason}")]
    Refused { to: String, first: u64, last: u64, reason: String },
    #[error("the first line does not say what a board is: {0}")]
    BoardLine(String),
    #[error(
        "{to} does not have the board {board} as the file defines it, and does not take that: {reason}. A token that may define \
         boards has the scope admin; --rows-only imports the rows into the board as it is there, where they may rank otherwise"
    )]
    Board { to: String, board: String, reason: String },
    #[error("{to} gave an answer that ranktree import does not understand: {reason}")]
    Answer { to: String, reason: String },
}

impl From<ClientError> for ImportError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Address(reason) => Self::Address(reason),
            ClientError::Certificates(reason) => Self::Trust(reason),
        }
    }
}
