//! `ranktree export`: a board, best first, into a file.
//!
//! Knows: pages go in, lines come out. Must not know: where pages come from (`remote`, `stopped`), nor how lines look
//! (`output`).

mod output;
mod remote;
mod row;
mod stopped;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::ValueEnum;
use indicatif::HumanCount;

use crate::cli::Failure;
use crate::cli::board_line::BoardLine;
use crate::cli::offline::Offline;
use crate::cli::progress::Progress;
use crate::config::ClientArgs;
use crate::types::BoardName;
use output::Output;
use remote::Remote;
use row::Page;
use stopped::Stopped;

const EXAMPLES: &str = "\
Examples:
  From a running service:
    ranktree export --board arena --url http://127.0.0.1:8080 --output arena.ndjson
  From the data directory of a stopped one, for a spreadsheet:
    ranktree export --board arena --data-dir ./data --format csv --rows-only --output arena.csv
  From one service to another, whose number of shards may differ:
    ranktree export --board arena --url http://10.0.0.5:8080 | ranktree import - --to http://10.0.0.6:8080

The first line says what the board is: its keys and their directions, its policy, its rule for ties. In CSV it begins with
#ranktree, in NDJSON it is an object of its own; --rows-only leaves it out, for a spreadsheet. Each row has board, member,
score, rank, position, at, updated_at and meta.

`ranktree import` takes both forms, into any number of shards. It defines the board if it is not there, and refuses one that
is defined otherwise; so ranks come out equal. So does the order of ties, which is that of at, the time that the score was
reached, and then of ids; where ids alone order ties, at is when the entry last changed. It becomes updated_at too.
Versions are not part of an export, and hidden entries are not listed.

Cells of a CSV are written as they are, so that an import reads them back. A spreadsheet takes one that begins with =, +, - or @
for a formula, and members are named by players: bring the columns member and meta in as text, and not by opening the file.

A running service goes on changing. Pages follow each other by the entry that the last one ended with, so nobody who
stays in place is skipped or told twice; the summary says between which as_of the pages were read. Where both are the same,
all of it is of one moment.

Exit status: 0 complete, 2 failure; a file is there complete or not at all.";

/// Writes a board's entries, best first, with ranks, to a file or standard output.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Which board
    #[arg(long, value_parser = BoardName::new)]
    board: BoardName,
    /// Which of its windows
    #[arg(long, default_value = "all")]
    window: String,
    /// Ask a running service at this base URL, instead of reading the data of a stopped one
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// How rows are written
    #[arg(long, value_enum, default_value = "ndjson")]
    format: Format,
    /// Where to; standard output if absent
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Leaves out the first line, which says what the board is
    #[arg(long)]
    rows_only: bool,
    /// Reads everything, and writes nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    offline: Offline,
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A job object per line, with its rank
    Ndjson,
    /// A header, then a row per line; for a spreadsheet, see below
    Csv,
}

/// Gives the page behind a cursor, or the first one.
type Pages = Box<dyn Fn(Option<&str>) -> Result<Page, Failure>>;

/// What the board is, and its pages.
fn open(args: &Args) -> Result<(BoardLine, Pages), Failure> {
    let board = args.board.as_str();
    let line = |definition| BoardLine { board: args.board.clone(), definition };
    if let Some(url) = &args.url {
        let remote = Remote::new(url, &args.client, board, &args.window)?;
        return Ok((line(remote.definition()?), Box::new(move |cursor| remote.page(cursor))));
    }
    if args.window != "all" {
        return Err("a data directory holds the window all only".into());
    }
    let stopped = Stopped::open(&args.offline, board)?;
    Ok((line(stopped.definition()), Box::new(move |cursor| stopped.page(cursor))))
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let board = args.board.as_str();
    let (definition, pages) = open(args)?;
    let started = Instant::now();
    let mut page = pages(None)?;
    let definition = (!args.rows_only).then_some(&definition);
    let mut output = if args.dry_run {
        Output::nothing()
    } else {
        Output::create(args.output.as_deref(), args.format, definition)?
    };
    let progress = Progress::new(format!("board {board}"));
    let from = page.as_of.clone();
    let (mut rows, mut stale) = (0_u64, false);
    loop {
        stale |= page.stale;
        for row in &page.entries {
            if let Err(error) = output.write(board, row) {
                progress.finish();
                return written(&error);
            }
            rows += 1;
        }
        progress.note("entries", rows, page.total);
        match &page.next_cursor {
            Some(cursor) => page = pages(Some(cursor))?,
            None => break,
        }
    }
    progress.finish();
    output.finish()?;
    let seconds = started.elapsed();
    let rate = u128::from(rows) * 1_000_000 / seconds.as_micros().max(1);
    eprintln!("rows        {:>12}", HumanCount(rows).to_string());
    eprintln!("seconds     {:>12.2}", seconds.as_secs_f64());
    eprintln!("rows/s      {:>12}", HumanCount(u64::try_from(rate).unwrap_or(u64::MAX)).to_string());
    if from == page.as_of {
        eprintln!("as of       {from}: all of it");
    } else {
        eprintln!("as of       {from} to {}: the board changed meanwhile", page.as_of);
    }
    if stale {
        eprintln!(
            "a shard has stopped applying jobs, and its entries may be out of date: GET /v1/status says why"
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Whoever closed the pipe does not want the rest.
fn written(error: &io::Error) -> Result<ExitCode, Failure> {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Ok(ExitCode::SUCCESS);
    }
    Err(format!("the export is not complete: {error}").into())
}
