//! `ranktree import`: rows from a file, a pipe or a Redis become jobs of a running service.
//!
//! Knows: the order of things, rows → lanes by member → batches → one connection each. Must not know:
//! storage. An import is a client of `POST /v1/jobs`, and can do no more than any other client.
//!
//! A member's rows stay in order because a member has one lane, and a lane's connection waits for each answer
//! before it sends the next batch.

mod archive;
mod args;
mod error;
mod named_boards;
mod progress;
mod read;
mod send;
mod tally;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::mpsc::sync_channel;
use std::thread;

pub use args::Args;
pub use error::ImportError;

use crate::cli::client::Client;
use crate::job::Op;
use crate::types::{BoardName, Timestamp};
use args::Format;
use named_boards::NamedBoards;
use progress::Progress;
use read::{
    ColumnNames, CsvRows, Defaults, Input, NdjsonRows, Parsed, RedisRows, RedisSource, Rows, is_stdin,
};
use send::{Connection, Lane, Service, ToFinish};
use tally::Tally;

/// Batches that wait for a connection while it sends one: enough that a connection never waits for the
/// reader.
const BATCHES_QUEUED: usize = 2;

/// Imports, and prints the summary to standard output; progress and notes go to standard error.
///
/// # Errors
/// When the import could not be completed; the exit status is to be 2. What was done until then is printed
/// first.
pub fn run(args: &Args) -> Result<ExitCode, ImportError> {
    let (rows, tally) = match (&args.redis, &args.key, &args.board) {
        (Some(url), Some(key), Some(board)) => open_redis(args, url, key, board)?,
        // The command line is checked for this, and a file of settings is not.
        (Some(_), _, _) => return Err(ImportError::RedisNeeds),
        _ => open_file(args)?,
    };
    let outcome = if args.dry_run { check(rows, &tally) } else { send(rows, args, &tally) };
    let (summary, all_applied) = tally.finish(args.dry_run)?;
    // A summary of nothing would only stand before the error.
    if outcome.is_ok() || tally.has_outcomes() {
        // The reader may have closed the pipe; the exit status still tells.
        let _ = io::stdout().lock().write_all(summary.as_bytes());
    }
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
    if input.is_empty {
        return Err(if is_stdin(&args.file) { ImportError::EmptyInput } else { ImportError::Empty });
    }
    if input.is_binary {
        return Err(ImportError::Binary);
    }
    if input.is_array {
        return Err(ImportError::JsonArray);
    }
    let tally = Tally::new(input.progress(), args.limit_errors, args.rejects.as_deref())?;
    let defaults = Defaults { board: args.board.clone(), op: args.op };
    let rows: Box<dyn Rows> = match input.format {
        Format::Csv => {
            let rows = CsvRows::open(input.reader, &columns, defaults)?;
            let rows = rows.scaled_by(args.scale).spreadsheet_safe(args.spreadsheet_safe);
            if let Some(note) = rows.ignored_note() {
                tally.note(&note);
            }
            Box::new(rows)
        }
        Format::Ndjson if args.spreadsheet_safe => return Err(ImportError::SafeNdjson),
        Format::Ndjson if args.scale != 1 => return Err(ImportError::ScaledNdjson(args.scale)),
        Format::Ndjson => Box::new(NdjsonRows::new(input.reader, defaults)),
    };
    Ok((rows, tally))
}

/// Reads everything and sends nothing.
fn check(rows: Box<dyn Rows>, tally: &Tally) -> Result<(), ImportError> {
    for parsed in rows {
        let parsed = parsed?;
        match parsed {
            Parsed::Row(row) if row.is_repeat => {}
            Parsed::Row(row) => {
                tally.read();
                tally.checked(&row);
            }
            Parsed::Rejected(line) => {
                tally.read();
                tally.rejected(line)?;
            }
            Parsed::Board(line) => {
                let instance = line.instance.map(|rows_of| format!(", and rows of its {}", rows_of.instance));
                let instance = instance.unwrap_or_default();
                tally.note(&format!("the file has the definition of the board {}{instance}", line.board));
            }
        }
    }
    Ok(())
}

fn send(rows: Box<dyn Rows>, args: &Args, tally: &Tally) -> Result<(), ImportError> {
    let service = Service::new(Client::new(&args.url, &args.client, "import")?, args.retry_for, tally);
    service.greet()?;
    let mut to_finish = Vec::new();
    let sent = thread::scope(|scope| {
        let mut lanes = Vec::new();
        let mut connections = Vec::new();
        for _ in 0..args.connections.get() {
            let (queue, batches) = sync_channel(BATCHES_QUEUED);
            let connection = Connection::new(&service);
            connections.push(scope.spawn(move || batches.into_iter().try_for_each(|b| connection.send(b))));
            lanes.push(Lane::new(queue, args.batch));
        }
        let read = distribute(rows, lanes, &service, args, &mut to_finish);
        // A connection's failure comes first: it is what stopped the reading.
        for connection in connections {
            connection.join().expect("a connection does not panic")?;
        }
        read
    });
    let connection = Connection::new(&service);
    let finished = sent.and_then(|()| {
        while let Some(board) = to_finish.last() {
            connection.finish(board)?;
            to_finish.pop();
        }
        Ok(())
    });
    for board in &to_finish {
        tally.note(&board.told());
    }
    finished
}

/// Reads to the end, or until a lane's connection has failed.
///
/// # Arguments
/// `to_finish`: gets the boards that are to get their `entry_ttl` when all rows are applied.
fn distribute(
    rows: Box<dyn Rows>,
    mut lanes: Vec<Lane>,
    service: &Service<'_>,
    args: &Args,
    to_finish: &mut Vec<ToFinish>,
) -> Result<(), ImportError> {
    let tally = service.tally;
    let mut boards = NamedBoards::new(Connection::new(service), tally);
    let connection = Connection::new(service);
    let mut warned = false;
    for parsed in rows {
        let parsed = match parsed {
            Ok(parsed) => parsed,
            Err(error) => {
                // What was read is sent, so that the error says where to go on.
                let _ = lanes.into_iter().try_for_each(Lane::finish);
                return Err(error);
            }
        };
        let mut row = match parsed {
            Parsed::Row(row) => row,
            Parsed::Rejected(line) => {
                tally.read();
                tally.rejected(line)?;
                continue;
            }
            // A board is defined before any of its rows is sent: on another board they would rank otherwise.
            Parsed::Board(line) => {
                if !args.rows_only {
                    connection.prepare(&line, args.into_all_windows, to_finish)?;
                }
                continue;
            }
        };
        if !row.is_repeat {
            tally.read();
        }
        let adds_for_sure = boards.note(&mut row)?;
        if adds_for_sure && !warned {
            warned = true;
            tally.note(
                "rows add to scores (incr) and carry no version: running this import again would count them twice",
            );
        }
        let lane = row.lane(lanes.len());
        let lane = lanes.get_mut(lane).expect("a lane's number is below their count");
        if lane.push(&row).is_err() {
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
