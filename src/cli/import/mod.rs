//! `ranktree import`: rows from a file, a pipe or a Redis become jobs of a running service.
//!
//! Knows: the order of things, rows → lanes by member → batches → one connection each. Must not know: storage. An
//! import goes through the front door, `POST /v1/jobs`, so that it can do what any client can and no more.
//!
//! A member's rows stay in order because a member has one lane, and a lane's connection waits for each answer before
//! it sends the next batch.

mod answer;
mod batch;
mod connection;
mod csv_rows;
mod input;
mod ndjson_rows;
mod patience;
mod progress;
mod redis_rows;
mod row;
mod tally;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, ValueEnum};
use thiserror::Error;

use crate::config::{ClientArgs, ConfigError, RedisArgs};
use crate::job::{MAX_JOBS_PER_MESSAGE, Op};
use crate::types::{BoardName, Malformed, Timestamp};
use batch::Lane;
use connection::Service;
use csv_rows::{ColumnNames, CsvRows};
use input::Input;
use ndjson_rows::NdjsonRows;
use progress::Progress;
use redis_rows::{RedisRows, RedisSource};
use row::{Defaults, Parsed, Rows};
use tally::Tally;

/// Batches that wait for a connection while it sends one: enough that a connection never waits for the reader.
const BATCHES_QUEUED: usize = 2;

const EXAMPLES: &str = "\
Examples:
  A sample that comes with ranktree:
    ranktree import examples/github-stars-sample.csv
  A column under another name, and one board for every row:
    ranktree import scores.csv.gz --board arena --column at=played_on --column score=points
  Job objects, one per line, from a pipe:
    zcat jobs.ndjson.gz | ranktree import - --to http://10.0.0.5:8080
  Only look whether a file is well-formed:
    ranktree import scores.csv --dry-run
  A sorted set of a running Redis, whose password is in RANKTREE_REDIS_PASSWORD:
    ranktree import --redis redis://10.0.0.7:6379/0 --key leaderboard --board arena

CSV needs a header with the columns member and score; board (or --board), at, version and meta (a JSON object) are
optional, and other columns are ignored. A score with several keys is one quoted cell: \"1200,90000\". at is RFC 3339, or a date such
as 2026-07-24, which is midnight UTC. NDJSON is one job object per line, as POST /v1/jobs takes it.

What `ranktree export` writes is taken as well, in either form. Its first line says what the board is: a board that is not
there is defined so, for which a token needs the scope admin, and one that is defined otherwise is not written to. Ranks and the
order of ties come out as they were. --rows-only passes that line over, and the board must be there, or is created with the
defaults.

Scores of Redis are floating-point numbers. Whole ones are taken exactly; fractions and infinities are refused, unless
--scale makes whole numbers of them. Ranks come out equal. Redis keeps no times, so equal scores are ordered by id,
upwards with the best first, where ZREVRANK orders them downwards. The board should order ties by `first` (the
default) or `member`. Members that come and go while Redis is read may be missed.

A service that asks for tokens gets the one in --token-file, or in the environment variable RANKTREE_TOKEN; it needs the
scope write.

An interrupted import can be run again from the beginning. set and best come to the same result, and to the same
order among ties where rows carry at. incr counts a row twice unless it carries a version; with versions, rows that
were already there are rejected as stale_version.

Exit status: 0 all rows applied, 1 some rejected, 2 failure.";

/// Sends the rows of a CSV or NDJSON file, or of a Redis, to a running service.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// What to read; gzip is recognised, and - is standard input
    #[arg(value_name = "FILE", default_value = "-", conflicts_with = "redis")]
    pub file: PathBuf,

    /// Reads a sorted set of the Redis at redis://[user@]host:port/db instead of a file
    #[arg(long, value_name = "URL", env = "RANKTREE_REDIS", hide_env_values = true,
          requires_all = ["key", "board"])]
    pub redis: Option<String>,

    /// The sorted set's key
    #[arg(long, env = "RANKTREE_KEY", requires = "redis")]
    pub key: Option<String>,

    /// What scores of Redis are multiplied by: 100 keeps two places after the point
    #[arg(long, value_name = "FACTOR", env = "RANKTREE_SCALE", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub scale: u32,

    #[command(flatten)]
    pub redis_password: RedisArgs,

    /// The service's base URL
    #[arg(long, value_name = "URL", env = "RANKTREE_TO", default_value = "http://127.0.0.1:8080")]
    pub to: String,

    /// How rows are written; recognised by the first character if absent
    #[arg(long, value_enum, env = "RANKTREE_FORMAT")]
    pub format: Option<Format>,

    /// The board of rows that name none
    #[arg(long, value_parser = BoardName::new, env = "RANKTREE_BOARD")]
    pub board: Option<BoardName>,

    /// What rows that name no operation do; the board's policy decides if absent
    #[arg(long, value_parser = op_parser(), env = "RANKTREE_OP")]
    pub op: Option<Op>,

    /// Reads a CSV field (board, member, score, at, version) from a column of another name; may be repeated
    #[arg(long = "column", value_name = "FIELD=NAME", env = "RANKTREE_COLUMN", value_delimiter = ',')]
    pub columns: Vec<String>,

    /// Rows per request
    #[arg(long, value_name = "ROWS", env = "RANKTREE_BATCH", default_value_t = MAX_JOBS_PER_MESSAGE,
          value_parser = batch_parser())]
    pub batch: usize,

    /// Connections that send at the same time
    #[arg(long, value_name = "COUNT", env = "RANKTREE_CONNECTIONS", default_value = "4")]
    pub connections: NonZeroUsize,

    /// Gives up once more rows than this are rejected
    #[arg(long, value_name = "ROWS", env = "RANKTREE_LIMIT_ERRORS")]
    pub limit_errors: Option<u64>,

    /// Writes every rejected line to this file, as CSV: line, code, detail
    #[arg(long, value_name = "FILE", env = "RANKTREE_REJECTS")]
    pub rejects: Option<PathBuf>,

    /// How long to go on trying while the service is away or overloaded
    #[arg(long, value_name = "TIME", env = "RANKTREE_RETRY_FOR", default_value = "60s", value_parser = duration)]
    pub retry_for: Duration,

    /// Passes over what an export says of its board, and imports its rows into the board as it is
    #[arg(long, env = "RANKTREE_ROWS_ONLY", action = ArgAction::SetTrue)]
    pub rows_only: bool,

    /// Reads and checks everything, and sends nothing
    #[arg(long, env = "RANKTREE_DRY_RUN", action = ArgAction::SetTrue)]
    pub dry_run: bool,

    #[command(flatten)]
    pub client: ClientArgs,
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A header, then a row per line
    Csv,
    /// A job object per line
    Ndjson,
}

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
        "the file's header has no column {name:?}; it has: {found}. --column {field}=NAME says which is meant"
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
    #[error("{0}")]
    Address(String),
    #[error(transparent)]
    Settings(#[from] ConfigError),
    #[error("cannot trust anybody's certificate: {0}; name a PEM file with --ca")]
    Trust(String),
    #[error("cannot write rejected lines to {}", .path.display())]
    Rejects { path: PathBuf, source: io::Error },
    #[error("more than {0} rows are rejected (--limit-errors)")]
    TooManyRejected(u64),
    #[error("no answer from {to} for {seconds} s (--retry-for): {reason}")]
    Unreachable { to: String, seconds: u64, reason: String },
    #[error(
        "{to} may or may not have applied lines {first} to {last}, of rows that add and carry no version: {reason}. \
         Sending them again could count them twice; look at their members first"
    )]
    InDoubt { to: String, first: u64, last: u64, reason: String },
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

/// Imports, and prints the summary to standard output; progress and notes go to standard error.
///
/// # Errors
/// When the import could not be completed; the exit status is to be 2. What was done until then is printed first.
pub fn run(args: &Args) -> Result<ExitCode, ImportError> {
    let (rows, tally) = match (&args.redis, &args.key, &args.board) {
        (Some(url), Some(key), Some(board)) => open_redis(args, url, key, board)?,
        _ => open_file(args)?,
    };
    let outcome = if args.dry_run { check(rows, &tally) } else { send(rows, args, &tally) };
    let (summary, all_applied) = tally.finish(args.dry_run)?;
    // Whoever closed the pipe does not want to read it; the exit status still tells.
    let _ = io::stdout().lock().write_all(summary.as_bytes());
    outcome?;
    Ok(if all_applied { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn open_redis(
    args: &Args,
    url: &str,
    key: &str,
    board: &BoardName,
) -> Result<(Box<dyn Rows>, Tally), ImportError> {
    let op = args.op.unwrap_or(Op::Set);
    if !matches!(op, Op::Set | Op::Best) {
        return Err(ImportError::RedisOp(op.name()));
    }
    let password = args.redis_password.password()?;
    let source = RedisSource { url, password: password.as_deref(), key, board, op, scale: args.scale };
    let now = jiff::Timestamp::now().to_string();
    let at = Timestamp::parse(&now).expect("a clock's time is one");
    let rows = RedisRows::open(&source, at)?;
    let progress = Progress::of_rows(rows.total);
    let tally = Tally::new(progress, args.limit_errors, args.rejects.as_deref())?;
    Ok((Box::new(rows), tally))
}

fn open_file(args: &Args) -> Result<(Box<dyn Rows>, Tally), ImportError> {
    let columns = ColumnNames::from_arguments(&args.columns)?;
    let input = Input::open(&args.file, args.format)?;
    let tally = Tally::new(input.progress(), args.limit_errors, args.rejects.as_deref())?;
    let defaults = Defaults { board: args.board.clone(), op: args.op };
    let rows: Box<dyn Rows> = match input.format {
        Format::Csv => {
            let rows = CsvRows::open(input.reader, &columns, defaults)?;
            if let Some(note) = rows.ignored_note() {
                tally.note(&note);
            }
            Box::new(rows)
        }
        Format::Ndjson => Box::new(NdjsonRows::new(input.reader, defaults)),
    };
    Ok((rows, tally))
}

/// Reads everything and sends nothing.
fn check(rows: Box<dyn Rows>, tally: &Tally) -> Result<(), ImportError> {
    for parsed in rows {
        let parsed = parsed?;
        if !matches!(parsed, Parsed::Board(_)) {
            tally.read();
        }
        match parsed {
            Parsed::Row(_) => tally.checked(),
            Parsed::Rejected(line) => tally.rejected(line)?,
            Parsed::Board(line) => tally.note(&format!("the file defines the board {}", line.board)),
        }
    }
    Ok(())
}

fn send(rows: Box<dyn Rows>, args: &Args, tally: &Tally) -> Result<(), ImportError> {
    let token = args.client.token()?;
    let service = Service::new(&args.to, token.as_deref(), args.client.ca.as_deref(), args.retry_for, tally)?;
    thread::scope(|scope| {
        let mut lanes = Vec::new();
        let mut connections = Vec::new();
        for _ in 0..args.connections.get() {
            let (queue, batches) = sync_channel(BATCHES_QUEUED);
            let connection = service.connection();
            connections.push(scope.spawn(move || batches.into_iter().try_for_each(|b| connection.send(b))));
            lanes.push(Lane::new(queue, args.batch));
        }
        let read = distribute(rows, lanes, &service, args.rows_only);
        // A connection's failure comes first: it is what stopped the reading.
        for connection in connections {
            connection.join().expect("a connection does not panic")?;
        }
        read
    })
}

/// Reads to the end, or until a lane's connection has failed.
fn distribute(
    rows: Box<dyn Rows>,
    mut lanes: Vec<Lane>,
    service: &Service<'_>,
    rows_only: bool,
) -> Result<(), ImportError> {
    let tally = service.tally;
    let mut boards_that_add = BTreeMap::new();
    let connection = service.connection();
    let mut warned = false;
    for parsed in rows {
        let mut row = match parsed? {
            Parsed::Row(row) => row,
            Parsed::Rejected(line) => {
                tally.read();
                tally.rejected(line)?;
                continue;
            }
            // Before any of its rows: none is to come to a board that ranks otherwise.
            Parsed::Board(line) => {
                if !rows_only {
                    connection.define(&line)?;
                }
                continue;
            }
        };
        tally.read();
        for board in row.take_undecided_boards() {
            let adds = match boards_that_add.get(&board) {
                Some(adds) => *adds,
                None => *boards_that_add.entry(board.clone()).or_insert(connection.board_adds(&board)?),
            };
            row.adds |= adds;
        }
        if row.adds && !warned {
            warned = true;
            tally.note(
                "rows that add (incr) carry no version: running this import again would count them twice",
            );
        }
        let lane = row.lane(lanes.len());
        let lane = lanes.get_mut(lane).expect("a lane's number is below their count");
        if lane.push(row).is_err() {
            return Ok(());
        }
    }
    for lane in lanes {
        if lane.finish().is_err() {
            return Ok(());
        }
    }
    Ok(())
}

fn op_parser() -> impl TypedValueParser<Value = Op> {
    PossibleValuesParser::new(Op::ALL.map(Op::name))
        .try_map(|name| Op::ALL.into_iter().find(|op| op.name() == name).ok_or(Malformed::Score))
}

fn batch_parser() -> impl TypedValueParser<Value = usize> {
    let most = u64::try_from(MAX_JOBS_PER_MESSAGE).unwrap_or(u64::MAX);
    clap::value_parser!(u64).range(1..=most).try_map(usize::try_from)
}

/// `60s`, `5m`, `1h`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time such as 60s or 5m");
    let span: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(span).map_err(|_| wrong())
}

/// Whether the argument means standard input.
fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn parse(arguments: &[&str]) -> Result<Args, clap::Error> {
        Command::try_parse_from([&["import"], arguments].concat()).map(|command| command.args)
    }

    #[test]
    fn arguments_are_checked_before_anything_is_read() {
        let args = parse(&["scores.csv", "--op", "best", "--board", "arena", "--retry-for", "2m"]);
        let args = args.expect("well-formed");
        assert_eq!((args.op, args.retry_for), (Some(Op::Best), Duration::from_secs(120)));
        assert_eq!(parse(&[]).expect("all have defaults").batch, MAX_JOBS_PER_MESSAGE);
        for bad in [
            ["--op", "add"],
            ["--batch", "0"],
            ["--batch", "1001"],
            ["--connections", "0"],
            ["--board", "no spaces"],
            ["--retry-for", "soon"],
            ["--format", "xml"],
        ] {
            assert!(parse(&bad).is_err(), "{bad:?}");
        }
    }
}
