//! What ends an import early, in the words that an operator reads.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::cli::client::ClientError;
use crate::cli::import::read::{BadQuotes, MAX_CELLS, MAX_COLUMNS, MAX_ROW_BYTES};
use crate::config::ConfigError;

/// Why an import ended early. Rows that were answered before are applied; the same import can be run again.
#[derive(Debug, Error)]
pub enum ImportError {
    #[error("cannot open {}", .path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error(
        "no file was named, and standard input is a terminal; name a file, or pipe rows into ranktree import -"
    )]
    Terminal,
    #[error("reading failed at line {line}")]
    Read { line: u64, source: io::Error },
    #[error(
        "{0}. Close it, or write a quotation mark that belongs to the text twice, in a quoted cell: \
         \"5\"\" of it\". Every row before that line was read, and none from there on"
    )]
    Quotes(BadQuotes),
    #[error(
        "line {0}: the row that begins here is longer than {MAX_ROW_BYTES} bytes; each row must be on a line of \
         its own. Every row before that line was read, and none from there on"
    )]
    LongRow(u64),
    #[error(
        "line {0}: the row that begins here has more than {MAX_CELLS} cells; an import reads {MAX_COLUMNS} columns at \
         most. Every row before that line was read, and none from there on"
    )]
    ManyCells(u64),
    #[error(
        "the file's header has {0} columns, and an import reads {MAX_COLUMNS} at most, of which it uses board, member, \
         score, at, version and meta; leave others away"
    )]
    ManyColumns(usize),
    #[error("the file is not text; it must be CSV or NDJSON in UTF-8, and may be compressed with gzip")]
    Binary,
    #[error("the file is empty")]
    Empty,
    #[error("standard input is empty: what is before the pipe has written nothing")]
    EmptyInput,
    #[error(
        "the file is a JSON array; send one object per line, without the brackets and the commas between \
         them (jq -c '.[]' makes that of it)"
    )]
    JsonArray,
    #[error(
        "the file's header has no column {name:?}; it has: {found}. Name the column with --column {field}=NAME{}",
        if *field == "board" { ", or send every row to one board with --board NAME" } else { "" }
    )]
    MissingColumn { field: &'static str, name: String, found: String },
    #[error(
        "the file's header has one column, {found}: columns must be separated by commas, and these seem to \
         be separated by {separator}"
    )]
    Separator { found: String, separator: &'static str },
    #[error("the file's header names the column {0:?} twice")]
    RepeatedColumn(String),
    #[error(
        "--column must be FIELD=NAME, where FIELD is board, member, score, at, version or meta; got {0:?}"
    )]
    ColumnArgument(String),
    #[error("--redis is set without --key or --board; set all three, or none")]
    RedisNeeds,
    #[error("Redis cannot be read")]
    Redis(#[source] redis::RedisError),
    #[error(
        "Redis has no sorted set {0:?}, or it is empty; check --key and the database, which is the last part of the URL"
    )]
    RedisEmpty(String),
    #[error(
        "--op must be set or best with --redis, not {0}: a member may be read twice, and {0} would count it twice"
    )]
    RedisOp(&'static str),
    #[error(
        "--scale {0} does not apply to NDJSON, whose lines are jobs that are sent as they are, with whole \
         numbers as scores; multiply the scores in the file, or import it as CSV"
    )]
    ScaledNdjson(u32),
    #[error("--spreadsheet-safe does not apply to NDJSON, which has no cells; leave it away")]
    SafeNdjson,
    #[error("{0}")]
    Address(String),
    #[error(transparent)]
    Settings(#[from] ConfigError),
    #[error("the certificates to trust cannot be read: {0}")]
    Trust(String),
    #[error("cannot write rejected lines to {}", .path.display())]
    Rejects { path: PathBuf, source: io::Error },
    #[error("stopped because more than {0} rows were rejected (--limit-errors)")]
    TooManyRejected(u64),
    #[error(
        "nothing answers at {to}: {reason}. Check that the service runs there, or wait for it with --retry-for 60s"
    )]
    NotThere { to: String, reason: String },
    #[error(
        "gave up on {to}, because the next try would come later than {seconds} s after the first failure \
         (--retry-for): {reason}"
    )]
    Unreachable { to: String, seconds: u64, reason: String },
    #[error(
        "{to} may or may not have applied lines {first} to {last}, whose rows add to scores and carry no \
         version: {reason}. Sending them again could count them twice; check their members' scores first"
    )]
    InDoubt { to: String, first: u64, last: u64, reason: String },
    #[error("{to} cannot be used: {reason}")]
    Unusable { to: String, reason: String },
    #[error("{to} refused a request, whose rows are among lines {first} to {last}: {reason}")]
    Refused { to: String, first: u64, last: u64, reason: String },
    #[error("the first line does not describe a board: {0}")]
    BoardLine(String),
    #[error(
        "{to} refused the file's definition of the board {board}: {reason}. Defining a board takes a \
         token with the scope admin. --rows-only imports the rows into the board as the service defines \
         it, where they may rank differently"
    )]
    Board { to: String, board: String, reason: String },
    #[error("the rows of {instance} cannot go into the board {board} of {to}: {reason}")]
    Instance { to: String, board: String, instance: String, reason: String },
    #[error("the answer of {to} is not that of a ranktree service: {reason}")]
    Answer { to: String, reason: String },
}

impl From<ClientError> for ImportError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Address(reason) | ClientError::Proxy(reason) => Self::Address(reason),
            ClientError::Certificates(reason) => Self::Trust(reason),
            ClientError::Settings(error) => Self::Settings(error),
        }
    }
}
