//! `ranktree import`: rows from files, a pipe or a Redis become jobs of a running service.
//!
//! Knows: the order of things. All rows are read and checked, and kept until the last one is known to be
//! good; then they are sent: rows → lanes by member → batches → one connection each. Must not know: storage.
//! An import is a client of `POST /v1/jobs`, and can do no more than any other client.
//!
//! A member's rows stay in order because a member has one lane, and a lane's connection waits for each answer
//! before it sends the next batch. Equal scores stay in order because rows without a time get one (`clock`).

mod archive;
mod args;
mod best_end;
mod boards;
mod clock;
mod error;
mod in_use;
mod key_order;
mod open_windows;
mod progress;
mod read;
mod repeats;
mod send;
mod shell_word;
mod source;
mod stop;
mod tally;

use std::fs::Metadata;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::sync_channel;
use std::thread;

pub use args::Args;
pub use error::ImportError;

use crate::cli::client::Client;
use args::Format;
use boards::{Boards, Known, Making};
use clock::Clock;
use progress::Progress;
use read::{Asked, Field, Keeper, KeptRows, Parsed, Place, Rows};
use repeats::Repeats;
use send::{Connection, Lane, Service, ToFinish};
use source::Source;
use tally::Tally;

/// Batches that wait for a connection while it sends one: enough that a connection never waits for the
/// reader.
const BATCHES_QUEUED: usize = 2;
/// Room that the time of a row takes in its job.
const TIME_BYTES: usize = 48;

/// Imports, and prints the summary to standard output; progress and notes go to standard error.
///
/// # Errors
/// When the import could not be completed; the exit status is to be 2. What was done until then is printed
/// first.
pub fn run(args: &Args) -> Result<ExitCode, ImportError> {
    let rules = args.rules()?;
    let key_names = rules.columns.scores().into_iter().map(str::to_owned).collect();
    let making = Making {
        order: args.order.clone(),
        key_names,
        rows_only: args.rows_only,
        into_all_windows: args.into_all_windows,
        goes_on: args.from_line > Place::from(1),
        is_dry: args.dry_run,
        if_absent: args.if_absent,
        drops_times: rules.columns.of(&Field::At) == Asked::Off,
    };
    if let Some(rejects) = &args.rejects {
        refuse_input(&args.files, rejects)?;
        tally::check_rejects(rejects)?;
    }
    let mut source = Source::find(args, rules)?;
    // Until here a signal ends the process, which may wait for a pipe: nothing was sent that had to be
    // settled.
    stop::listen().map_err(ImportError::Signals)?;
    if args.dry_run || !args.unchecked {
        let (exit_code, checked) = check(&mut source, args, &making)?;
        return checked.map_or(Ok(exit_code), |checked| send(&mut source, args, &making, Some(checked)));
    }
    send(&mut source, args, &making, None)
}

/// Refuses to write rejected lines into a file that is to be read.
fn refuse_input(files: &[PathBuf], rejects: &Path) -> Result<(), ImportError> {
    let file = |path: &Path| std::fs::metadata(path).ok().filter(Metadata::is_file);
    let number = |path: &Path| file(path).map(|found| (found.dev(), found.ino()));
    let Some(of_rejects) = number(rejects) else { return Ok(()) };
    if files.iter().any(|path| number(path) == Some(of_rejects)) {
        return Err(ImportError::RejectsIsInput(rejects.to_owned()));
    }
    Ok(())
}

fn print(summary: &str) {
    // The reader may have closed the pipe; the exit status still tells.
    let _ = io::stdout().lock().write_all(summary.as_bytes());
}

/// What a check leaves for the sending.
struct Checked {
    known: Known,
    rows: KeptRows,
}

/// Reads everything and sends nothing. A dry run leaves nothing.
fn check(
    source: &mut Source,
    args: &Args,
    making: &Making,
) -> Result<(ExitCode, Option<Checked>), ImportError> {
    let tally = Tally::new(
        source.progress()?.of_check(),
        args.limit_errors,
        args.rejects.as_deref(),
        source.names(),
    )?;
    let service = service(args, &tally)?;
    let mut keeper = if args.dry_run { None } else { Some(Keeper::new()?) };
    let tell = |note: &str| tally.note(note);
    let checked = source.rows(&tell).and_then(|rows| {
        let connection = service.as_ref().map(Connection::new);
        let boards = Boards::new(connection, &tally, making, false, Known::default());
        let known = check_rows(rows, &tally, boards, keeper.as_mut(), args.if_absent)?;
        let rows = keeper.map(Keeper::finish).transpose()?;
        Ok(rows.map(|rows| Checked { known, rows }))
    });
    if args.dry_run {
        source.tell_grown(&tell);
    }
    let (summary, all_good) = tally.finish(true)?;
    if args.dry_run {
        // A summary of nothing would only stand before the error.
        if checked.is_ok() || tally.has_outcomes() {
            print(&summary);
        }
        checked?;
        return Ok((if all_good { ExitCode::SUCCESS } else { ExitCode::from(1) }, None));
    }
    let rejected = tally.rejected_rows();
    let is_refused = rejected > args.limit_errors.unwrap_or(0);
    if rejected > 0 && (is_refused || checked.is_err()) {
        print(&summary);
    }
    match checked {
        Err(error @ (ImportError::NotThere { .. } | ImportError::Unusable { .. })) => Err(error),
        Err(error) => Err(ImportError::CheckFailed(Box::new(error))),
        Ok(_) if is_refused => Err(ImportError::NotSent(rejected)),
        Ok(checked) => Ok((ExitCode::SUCCESS, checked)),
    }
}

/// The service that is asked what its boards are. `None`: there is none, and nothing will be sent either.
fn service<'a>(args: &Args, tally: &'a Tally) -> Result<Option<Service<'a>>, ImportError> {
    let client = Client::new(&args.url, &args.client, "import");
    if !args.dry_run {
        let service = Service::new(client?, args.retry_for, tally);
        service.greet()?;
        service.ask_leave()?;
        return Ok(Some(service));
    }
    // A dry run needs no service.
    let there = client.ok().filter(|client| client.greet().is_ok());
    if there.is_none() {
        tally.note(&format!(
            "{} does not answer as a service does, so what its boards would refuse is not looked at",
            args.url
        ));
    }
    let service = there.map(|client| Service::new(client, args.retry_for, tally));
    service.as_ref().map_or(Ok(()), Service::ask_leave)?;
    Ok(service)
}

fn check_rows(
    rows: Box<dyn Rows + '_>,
    tally: &Tally,
    mut boards: Boards<'_>,
    mut keeper: Option<&mut Keeper>,
    if_absent: bool,
) -> Result<Known, ImportError> {
    let mut repeats = Repeats::new(if_absent);
    for parsed in rows {
        if stop::is_stopped() {
            return Err(ImportError::Interrupted);
        }
        let mut keep = |parsed| keeper.as_mut().map_or(Ok(()), |keeper| keeper.push(&parsed));
        match parsed? {
            Parsed::Row(mut row) => {
                let adds = row.adds;
                boards.note(&mut row)?;
                let refusal = boards.refusal(&row);
                boards.compare(&row)?;
                match refusal {
                    // Here it is known which option helps; the service would refuse it without.
                    Some(line) if !row.is_repeat => {
                        tally.read();
                        keep(Parsed::Rejected(line.clone()))?;
                        tally.rejected(line)?;
                        continue;
                    }
                    Some(_) if row.no_integer.is_some() => continue,
                    // The row itself is counted; what belongs to it may be refused, too.
                    refusal if row.is_repeat => refusal.map_or(Ok(()), |line| tally.rejected(line))?,
                    _ => {
                        tally.read();
                        repeats.note(&row);
                        tally.checked(&row);
                    }
                }
                row.adds = adds;
                keep(Parsed::Row(row))?;
            }
            Parsed::Rejected(line) => {
                tally.read();
                keep(Parsed::Rejected(line.clone()))?;
                tally.rejected(line)?;
            }
            Parsed::Blank(text) => {
                keep(Parsed::Blank(text.clone()))?;
                tally.blank(text);
            }
            Parsed::Board(line) => {
                boards.describe(&line)?;
                let instance = line.instance.map(|rows_of| format!(", and rows of its {}", rows_of.instance));
                let instance = instance.unwrap_or_default();
                tally.note(&format!("the file has the definition of the board {}{instance}", line.board));
                keep(Parsed::Board(line))?;
            }
        }
    }
    boards.compare_rest()?;
    repeats.tell(tally);
    Ok(boards.into_known())
}

/// # Arguments
/// `checked`: if there was a check; otherwise rows are sent as they are read.
fn send(
    source: &mut Source,
    args: &Args,
    making: &Making,
    checked: Option<Checked>,
) -> Result<ExitCode, ImportError> {
    let progress = match &checked {
        Some(checked) => Progress::of_rows(checked.rows.count),
        None => source.progress()?,
    };
    let tally = Tally::new(progress, args.limit_errors, args.rejects.as_deref(), source.names())?;
    if args.if_absent {
        tally.tell_absent();
    }
    let client = Client::new(&args.url, &args.client, "import")?;
    let service = Service::new(client, args.retry_for, &tally);
    service.greet()?;
    let tell = |note: &str| tally.note(note);
    let mut next = Place::default();
    let (known, kept) = checked.map(|Checked { known, rows }| (known, rows)).unzip();
    let rows = match kept {
        Some(kept) => {
            let rows: Box<dyn Rows> = Box::new(kept);
            Ok(rows)
        }
        None => source.rows(&tell),
    };
    let outcome = rows.and_then(|rows| {
        let connection = Connection::new(&service);
        let boards = Boards::new(Some(connection), &tally, making, true, known.unwrap_or_default());
        send_rows(rows, args, &service, boards, &mut next)
    });
    if outcome.is_ok() {
        source.tell_grown(&tell);
    }
    let (summary, all_applied) = tally.finish(false)?;
    if outcome.is_ok() || tally.has_outcomes() {
        print(&summary);
        print(&format!("{:<14}{}\n", "service", service.client.base()));
    }
    if outcome.is_err() && tally.has_outcomes() {
        let place = service.pending.first().unwrap_or(next);
        print(&source.go_on(place, tally.adds_twice()));
    }
    outcome?;
    Ok(if all_applied { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// # Arguments
/// `next`: becomes the place behind the last row that was read.
fn send_rows(
    rows: Box<dyn Rows + '_>,
    args: &Args,
    service: &Service<'_>,
    boards: Boards<'_>,
    next: &mut Place,
) -> Result<(), ImportError> {
    let mut to_finish = Vec::new();
    let sent = thread::scope(|scope| {
        let mut lanes = Vec::new();
        let mut connections = Vec::new();
        for _ in 0..args.connections.get() {
            let (queue, batches) = sync_channel(BATCHES_QUEUED);
            let connection = Connection::new(service);
            connections.push(scope.spawn(move || {
                batches.into_iter().try_for_each(|batch: send::Batch| {
                    let ticket = batch.ticket;
                    connection.send(batch)?;
                    if let Some(ticket) = ticket {
                        connection.settled(ticket);
                    }
                    Ok::<(), ImportError>(())
                })
            }));
            lanes.push(Lane::new(queue, args.batch, &service.pending));
        }
        let mut sending = Sending { service, args, boards, to_finish: &mut to_finish, next };
        let read = sending.distribute(rows, &mut lanes);
        if read.is_err() {
            // What was read is sent, so that there is one line to go on from.
            let _ = lanes.iter_mut().try_for_each(Lane::finish);
        }
        drop(lanes);
        // A connection's failure comes first: it is what stopped the reading.
        for connection in connections {
            let sent: Result<(), ImportError> = connection.join().expect("a connection does not panic");
            sent?;
        }
        read
    });
    let connection = Connection::new(service);
    let finished = sent.and_then(|()| {
        while let Some(board) = to_finish.last() {
            connection.finish(board)?;
            to_finish.pop();
        }
        Ok(())
    });
    for board in &to_finish {
        service.tally.note(&board.told());
    }
    finished
}

/// What rows need on their way to their lanes.
struct Sending<'a, 'b> {
    service: &'a Service<'a>,
    args: &'a Args,
    boards: Boards<'b>,
    /// The boards that are to get their `entry_ttl` when all rows are applied.
    to_finish: &'a mut Vec<ToFinish>,
    next: &'a mut Place,
}

impl Sending<'_, '_> {
    /// Reads to the end, or until a lane's connection has failed.
    fn distribute(&mut self, rows: Box<dyn Rows + '_>, lanes: &mut [Lane<'_>]) -> Result<(), ImportError> {
        let Self { service, args, boards, to_finish, next } = self;
        let tally = service.tally;
        let connection = Connection::new(service);
        let mut clock = Clock::of_service(&service.client);
        let mut warned = false;
        for parsed in rows {
            if stop::is_stopped() {
                return Err(ImportError::Interrupted);
            }
            let mut row = match parsed? {
                Parsed::Row(row) => row,
                Parsed::Rejected(line) => {
                    tally.read();
                    **next = line.place.behind();
                    tally.rejected(line)?;
                    continue;
                }
                Parsed::Blank(text) => {
                    tally.blank(text);
                    continue;
                }
                // A board is defined before any of its rows is sent: on another board they would rank
                // otherwise.
                Parsed::Board(line) => {
                    boards.describe(&line)?;
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
            // Rows that were not checked before.
            if row.no_integer.is_some()
                && let Some(line) = boards.refusal(&row)
            {
                if !row.is_repeat {
                    **next = line.place.behind();
                    tally.rejected(line)?;
                }
                continue;
            }
            if adds_for_sure && !warned {
                warned = true;
                tally.note(
                    "rows add to scores (incr) and carry no version: running this import again would count them twice",
                );
                tally.add_twice();
            }
            tally.note_time(&row);
            if row.takes_time && row.job.len() + TIME_BYTES < read::limits::MAX_JOB_BYTES {
                row.set_time(clock.tick());
            }
            **next = row.place.behind();
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
}
