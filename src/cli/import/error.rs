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
         \"5\"\" of it\". Where marks are characters, as in many files with tabs, --no-quotes reads them so. Every row \
         before that line was read, and none from there on"
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
        "the file's header has {0} columns, and an import reads {MAX_COLUMNS} at most; leave others away"
    )]
    ManyColumns(usize),
    #[error(
        "the file is not text; it must be CSV or JSON, and may be compressed with gzip; text in UTF-16 without a byte order mark needs --encoding utf-16le"
    )]
    Binary,
    #[error("the file is empty")]
    Empty,
    #[error("standard input is empty: what is before the pipe has written nothing")]
    EmptyInput,
    #[error("the file is {what}, which an import does not unpack: {how}")]
    Packed { what: &'static str, how: String },
    #[error("the file is {what}, which an import does not read: {how}")]
    Foreign { what: &'static str, how: &'static str },
    #[error(
        "the file is a dump of Redis, or an append-only file that begins with one; write an append-only file without \
         (CONFIG SET aof-use-rdb-preamble no, then BGREWRITEAOF), or import from the running Redis with --redis"
    )]
    RedisDump,
    #[error(
        "its byte order mark says that the file is in {marked}, and --encoding says {given}; leave --encoding away"
    )]
    OtherMark { marked: &'static str, given: &'static str },
    #[error(
        "rows that were checked are kept in a temporary file until they are sent, and that failed; TMPDIR names another folder, and --unchecked sends rows as they are read"
    )]
    Keep(#[source] io::Error),
    #[error("{file}: {error}")]
    InFile {
        file: String,
        #[source]
        error: Box<ImportError>,
    },
    #[error("line {line}: the JSON is not well-formed: {why}")]
    Json { line: u64, why: String },
    #[error(
        "--rows-at {path}: the object that is to have it has no field {name:?} with rows in it; it ends at line {line}"
    )]
    NoRowsAt { path: String, name: String, line: u64 },
    #[error("what is at {} is an object and no array; where its names are the members, --member-from-key reads it{}", at(.0), .1)]
    RowsAreObject(String, String),
    #[error("what is at {} is an array, whose rows have no names; leave --member-from-key away", at(.0))]
    RowsAreArray(String),
    #[error("--rows-at and --member-from-key are about JSON, and the file is CSV; leave them away")]
    JsonOptions,
    #[error("--delimiter, --no-header and --skip-lines are about CSV, and the file is JSON; leave them away")]
    CsvOptions,
    #[error(
        "the file is an export of ranktree, whose scores are what they are on the board: with --scale, --duration, \
         --decimal, --thousands or --round they would become others; leave these away"
    )]
    ScaledExport,
    #[error(
        "the file is an export of ranktree that another program has saved, such as a spreadsheet: {0}. Those change \
         large numbers, times, names such as 007, and scores of two keys. Import the file as ranktree has written it, \
         or export again"
    )]
    SavedExport(&'static str),
    #[error(
        "the file is an export of one instance of a board, whose rows belong to it by their times; leave --column at= \
         away, or ignore what it was with --rows-only"
    )]
    InstanceTimes,
    #[error(
        "the file is one part of an append-only file of Redis, or the list of them, and scores are what all parts make together: join \
         them, such as by cat appendonly.aof.2.base.aof appendonly.aof.2.incr.aof | ranktree import -"
    )]
    PartOfLog,
    #[error("{0} is not about what Redis has, whose members and scores have one form; leave it away")]
    RedisOption(&'static str),
    #[error(
        "its first line says that {0:?} is between its cells, and --delimiter says otherwise; leave --delimiter away"
    )]
    SeparatorLine(String),
    #[error("the header has {0}, which is not UTF-8; {1}")]
    HeaderEncoding(String, String),
    #[error(
        "line {line} seems to be another header, {found}, whose columns are not those of the first: files were joined. \
         Import each of them by itself"
    )]
    OtherHeader { line: u64, found: String },
    #[error(
        "--from-line goes on in file {given}, and there are {files}; give all files that were given before"
    )]
    FromFile { given: usize, files: usize },
    #[error("--skip-lines {lines} leaves nothing: the file has {found} lines")]
    SkippedAll { lines: u64, found: u64 },
    #[error("member {0} has no score behind it; redis-cli --csv ZRANGE KEY 0 -1 WITHSCORES writes both")]
    OddCells(u64),
    #[error(
        "the file seems to be what redis-cli writes {0}; redis-cli --csv ZRANGE KEY 0 -1 WITHSCORES writes what an \
         import reads"
    )]
    RedisForm(&'static str),
    #[error("command {number} of the log: {why}")]
    RedisLog { number: u64, why: String },
    #[error(
        "the log has the key in the databases {0} and {1}; import from the running Redis with --redis, whose URL names one"
    )]
    RedisTwice(String, String),
    #[error(
        "--key (RANKTREE_KEY) names a sorted set of a Redis that runs, or in its append-only file, and the file is neither; \
         leave it away"
    )]
    KeyOfNoRedis,
    #[error("the file is an append-only file of Redis; --key names the sorted set to import")]
    RedisKey,
    #[error(
        "the file's header has no column {name:?}; it has: {found}. Name the column with --column {field}=NAME{}{perhaps}",
        if *field == "board" { ", or send every row to one board with --board NAME" } else { "" }
    )]
    MissingColumn { field: String, name: String, found: String, perhaps: String },
    #[error(
        "with --no-header, columns have numbers, and {field} is not from a column {name:?}; of the first row, {found}. \
         Name the column with --column {field}=NUMBER{}",
        if *field == "board" { ", or send every row to one board with --board NAME" } else { "" }
    )]
    MissingNumber { field: String, name: String, found: String },
    #[error(
        "{found}: columns must be separated by {given}, and these seem to be separated by {separator}; --delimiter \
         {option} reads them"
    )]
    Separator { found: String, given: String, separator: &'static str, option: &'static str },
    #[error(
        "its columns are lined up with spaces, as in {0}: sed -E 's/ {{2,}}/\\t/g' FILE | ranktree import - --delimiter tab reads \
         them, where at least two spaces are between columns"
    )]
    Aligned(String),
    #[error(
        "its rows have their numbers before what the header names, as R writes them: --no-header --skip-lines {line} \
         --column member={member} --column score={score} reads columns by their numbers"
    )]
    RowNames { line: u64, member: usize, score: usize },
    #[error(
        "the file's header is one cell, {0}: each line may stand in quotation marks as a whole, or --delimiter is \
         another; take the marks away first, such as by sed 's/^\"//; s/\"$//'"
    )]
    OneCell(String),
    #[error(
        "the file's header names the column {0:?} twice; --no-header --skip-lines 1 reads columns by their numbers"
    )]
    RepeatedColumn(String),
    #[error(
        "--column must be FIELD=NAME, where FIELD is board, member, score, at, version, op, hidden, meta, meta.x or profile.x; got {0:?}"
    )]
    ColumnArgument(String),
    #[error(
        "--column names {0} twice, and it is one; only score may have several columns, which are its keys"
    )]
    ColumnTwice(String),
    #[error("--decimal and --thousands are both {0:?}; a number cannot have one for the other")]
    SameSeparators(char),
    #[error(
        "--duration counts in its own unit, and takes no --scale and no --thousands; leave these away, or, if they are about \
         another key of the score, name the column that has durations, as in --duration ms=NAME"
    )]
    ScaledDuration,
    #[error(
        "--duration is given twice; it is one unit for all keys of the score, or one for each column, as in --duration ms=NAME"
    )]
    DurationTwice,
    #[error(
        "--duration names the column {0:?}, which no key of the score is from; --column score={0} makes it one"
    )]
    DurationOfNoKey(String),
    #[error("--if-absent and --op both say what rows do, and --if-absent is --op create; leave one away")]
    AbsentOp,
    #[error(
        "--if-absent is about scores, and profiles that come from columns would replace those of members who are there; \
         import them apart, without --if-absent"
    )]
    AbsentProfile,
    #[error("signals cannot be listened to")]
    Signals(#[source] io::Error),
    #[error(
        "the file's first line has no column {name:?} for the field {field}, and line {line} has: --skip-lines \
         {skipped} passes over what is above it"
    )]
    LaterHeader { field: String, name: String, line: u64, skipped: u64 },
    #[error(
        "the file's header has no column {name:?} for the field {field}; it has: {found}. If this line is a row, \
         --no-header reads it, with --column member={member} --column score={score}; if it is a header, --column \
         {field}=NAME names the column"
    )]
    NoHeader { field: String, name: String, found: String, member: usize, score: usize },
    #[error("--column {0}= leaves {0} out, which every row has; --board NAME sends all rows to one board")]
    ColumnOff(String),
    #[error(
        "its lines end with a carriage return alone, as files of old programs do, and would be one line: \
         tr '\\r' '\\n' < FILE | ranktree import -"
    )]
    CarriageReturns,
    #[error(
        "line {line}: the column {field:?} has times, which are not read as they are written: {why}. Without times, all \
         rows would count as of now; --column at= leaves them out for that"
    )]
    OtherTimes { line: u64, field: String, why: String },
    #[error(
        "--at-format says how times are written, and the file has no times that are read: name their column with --column \
         at=NAME, or leave the option away"
    )]
    NoTimes,
    #[error("rows of Redis name no board; set --board, and --key with --redis")]
    RedisNeeds,
    #[error("Redis cannot be read")]
    Redis(#[source] redis::RedisError),
    #[error(
        "Redis has no sorted set {0:?}, or it is empty; check --key and the database, which is the last part of the URL"
    )]
    RedisEmpty(String),
    #[error(
        "--op must be set, best or create with --redis, not {0}: a member may be read twice, and {0} would count it twice"
    )]
    RedisOp(&'static str),
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
    #[error(
        "{0} of the rows would be rejected, so nothing was sent. Mend them, or send the others with --limit-errors {0}"
    )]
    NotSent(u64),
    #[error("{} is to be read, and --rejects would empty it: give --rejects another file. Nothing was sent", .0.display())]
    RejectsIsInput(PathBuf),
    #[error(
        "{} is there, and has no rejected lines of an import: give --rejects another name. Nothing was sent", .0.display()
    )]
    RejectsIsAnother(PathBuf),
    #[error("{0}. Nothing was sent")]
    CheckFailed(#[source] Box<ImportError>),
    #[error("stopped by a signal")]
    Interrupted,
    #[error(
        "--order is of a board that the import makes, and the file itself says what its board is; leave it away"
    )]
    OrderOfExport,
    #[error(
        "board {board} is there, and its keys are {found}, where --order says {given}; leave --order away, or name another board"
    )]
    OtherOrder { board: String, found: String, given: String },
    #[error(
        "board {board} has a key that is called {column:?}, its number {other}, and --column score={column} stands in the \
         place of its number {key}: give the columns in the order of the keys"
    )]
    CrossedKeys { board: String, column: String, key: usize, other: usize },
    #[error(
        "--order names {given} ends, and scores of board {board} have {keys} keys; name one for all, or one for each"
    )]
    OrderCount { board: String, given: usize, keys: usize },
    #[error("{to} does not tell whether there is a board {board}, which --order needs to know: {reason}")]
    OrderUnknown { to: String, board: String, reason: String },
    #[error(
        "{to} did not make the board {board}: {reason}. Defining a board takes a token with the scope admin"
    )]
    NotMade { to: String, board: String, reason: String },
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
        "{to} may or may not have applied {first} to {last}, whose rows add to scores and carry no \
         version: {reason}. Sending them again could count them twice; check their members' scores first"
    )]
    InDoubt { to: String, first: String, last: String, reason: String },
    #[error("{to} cannot be used: {reason}")]
    Unusable { to: String, reason: String },
    #[error("{to} refused a request, whose rows are among {first} to {last}: {reason}")]
    Refused { to: String, first: String, last: String, reason: String },
    #[error(
        "the first line does not describe a board: {0}. Import the export as ranktree has written it, and not as \
         another program has saved it"
    )]
    BoardLine(String),
    #[error(
        "{to} refused the file's definition of the board {board}: {reason}. Defining a board takes a \
         token with the scope admin. --rows-only imports the rows into the board as the service defines \
         it, where they may rank differently"
    )]
    Board { to: String, board: String, reason: String },
    #[error(
        "the rows are of all times, and those whose time falls into {instance} of board {board} would replace what members have \
         there: {member} has {has}. --board NAME imports them into another board; --into-all-windows lets them \
         change every window that is open at their times"
    )]
    WindowInUse { to: String, board: String, instance: String, member: String, has: String },
    #[error("the rows of {instance} cannot go into the board {board} of {to}: {reason}")]
    Instance { to: String, board: String, instance: String, reason: String },
    #[error("the answer of {to} is not that of a ranktree service: {reason}")]
    Answer { to: String, reason: String },
}

/// Where rows were looked for.
fn at(path: &str) -> String {
    if path.is_empty() { "the top of the file".to_owned() } else { format!("--rows-at {path}") }
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
