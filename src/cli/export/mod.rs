//! `ranktree export`: a board, best first, into a file.
//!
//! Knows: pages go in, lines come out. Must not know: where pages come from (`remote`, `stopped`), nor how
//! lines look (`output`).

mod file;
mod output;
mod page_json;
mod page_text;
mod pipe;
mod remote;
mod row;
mod source;
mod stopped;

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use indicatif::HumanCount;
use serde_json::Value;

use crate::cli::Failure;
use crate::cli::board_line::BoardLine;
use crate::cli::escaped::escaped_text;
use crate::cli::progress::Progress;
use crate::cli::window_argument::window_argument;
use crate::config::{ClientArgs, FileArgs};
use crate::query::WindowChoice;
use crate::types::{BoardName, count};
use crate::window::Instance;
use output::Output;
use remote::NoInstance;
use row::HiddenMembers;
use source::{Fetched, Source};

const EXAMPLES: &str = "\
Examples:
  From the service on this machine:
    ranktree export --board arena --output arena.ndjson
  From the data directory of a stopped one, for a spreadsheet:
    ranktree export --board arena --data-dir ./data --format csv --rows-only --spreadsheet-safe --output arena.csv
  A season that has ended, with the names of its players:
    ranktree export --board arena --window s7 --profiles --output arena-s7.ndjson
  Every board, from one service to another, whose number of shards may differ:
    ranktree export --all --profiles --url http://10.0.0.5:8080 | ranktree import - --url http://10.0.0.6:8080

The first line is the definition of the board: its keys and their directions, its policy, its rule for ties. In CSV it \
begins with #ranktree, in NDJSON it is an object of its own; --rows-only leaves it out. Each row has board, member, \
score, rank, position, at, updated_at and meta. With --all, which needs NDJSON, each board has such a line before its rows.

A row has a version, too, if its entry has one. Behind the rows is who is hidden: the entry, if there is one, with hidden, and \
then a job that hides the member, or in CSV both in one row. A running service tells that to a token with the scope write.

`ranktree import` reads both formats, into any number of shards. It defines the board if the service does not have it, and \
refuses a board that is defined differently, so that ranks come out equal. The order of ties comes out equal, too: it is the \
order of at, the time at which the score was reached, and then of ids. On boards where only ids order ties, at is the time of \
the entry's last change. Of an entry whose at and updated_at differ an import makes two jobs. Entries beyond the board's capacity are left out, and so are the \
versions of removed entries, which refuse late jobs.

With --profiles, the profile of each member on the board is a job of its own before the member's first row, which an import \
applies. Members that are on no board are left out.

--window exports one instance of a board, current or past; without it, what a read without a window is about: all, or the \
current instance of the board's first window. The first line says which it is, and from when to when. An import of it makes a \
board of its own that has that window alone, and the same instance in it; ranktree help import says more. One instance is one \
export: snapshot copies a service with all of them. From a data directory the current instance is that of its last job, and \
not of today. With --all, boards that do not have such a window or instance are left out, and standard error names them; if \
no board has it, the export fails.

Cells of a CSV are written unchanged, so that other programs can read them. A spreadsheet takes a cell that begins with =, +, - \
or @ for a formula, and players choose the names of members. --spreadsheet-safe writes an apostrophe before such names, and \
before those that begin with one, also behind blanks and what is not seen, and puts names and metadata in quotation marks, so \
that the file can be opened, with the comma as the separator. Its first line says so, and an import takes the apostrophes away \
again; of a file without that line it does with its own --spreadsheet-safe. Scores are numbers, and metadata begin with {; \
what would be computed in them behind another separator is written as an escape of JSON.

Control characters and those that turn text around are written as escapes wherever JSON is, so that no terminal obeys them.

Boards of a running service may change during the export. Each page begins after the last entry of the page before, so an \
entry whose score does not change is neither skipped nor repeated. The summary has the as_of of the first and of the last page; \
if they are equal, all rows are of the same moment.

Exit status: 0 complete, 2 failure. The file is written completely or not at all. One that is there is refused before anything is \
read, unless it is empty, or --replace is given.";

/// Boards that are named because they are left out.
const LEFT_OUT_NAMED: u64 = 100;

/// Writes a board's entries, best first, with ranks, to a file or standard output.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Args {
    /// The board
    #[arg(long, value_parser = BoardName::new, required_unless_present = "all", conflicts_with = "all")]
    board: Option<BoardName>,
    /// Exports every board that the token may read, one after the other
    #[arg(long)]
    all: bool,
    /// The instance of the board: a name such as 2026-11-20T09, 2026-11-20, 2026-W47, 2026-11 or s7, or
    /// hour, day, week, month or season for the current one [default: all, or the board's first window]. With
    /// --all, boards without it are left out and named
    #[arg(long, value_parser = window_argument)]
    window: Option<WindowChoice>,
    /// The running service's base URL
    #[arg(long, value_name = "URL", env = "RANKTREE_URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// Reads the data directory of a stopped service, instead of asking a running one
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The format of the rows [default: csv if --output ends with .csv, otherwise ndjson]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// The file to write, which must be empty or absent; standard output if not given
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replaces the file that --output names
    #[arg(long)]
    replace: bool,
    /// Writes the profiles of the members, too: a line each, before the member's first row. NDJSON only
    #[arg(long)]
    profiles: bool,
    /// Leaves out the first line, which has the board's definition
    #[arg(long)]
    rows_only: bool,
    /// Writes an apostrophe before names in a CSV that a spreadsheet would take for a formula, such as
    /// '=1+1. An import takes them away again. CSV only
    #[arg(long)]
    spreadsheet_safe: bool,
    /// Reads everything, and writes nothing
    #[arg(long)]
    dry_run: bool,
    /// Read where the arguments are.
    #[command(flatten)]
    _file: FileArgs,
    #[command(flatten)]
    client: ClientArgs,
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A job object per line, with its rank
    Ndjson,
    /// A header, then a row per line; see below before opening it in a spreadsheet
    Csv,
}

impl Args {
    fn format(&self) -> Format {
        let is_csv = |path: &PathBuf| path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
        let by_name = if self.output.as_ref().is_some_and(is_csv) { Format::Csv } else { Format::Ndjson };
        self.format.unwrap_or(by_name)
    }
}

/// What came of all boards.
#[derive(Default)]
struct Summary {
    boards: u64,
    rows: u64,
    /// Members who are hidden, on each board.
    hidden: u64,
    /// Of these, whose ban of all boards becomes one of the board.
    narrowed: u64,
    /// Why it is not known who is.
    hidden_unknown: Option<String>,
    /// At the first page, and at the last.
    as_of: Option<(String, String)>,
    stale: bool,
    /// The instance, if that is not `all`; of the last board.
    instance: Option<Instance>,
    /// Boards that have other instances than the one that was exported.
    have_more: u64,
    /// Boards that do not have what was asked for.
    left_out: u64,
}

impl Summary {
    /// Notes what a page was exact at.
    fn note_as_of(&mut self, as_of: &str, is_last: bool) {
        let escaped = escaped_text(as_of);
        let as_of: &str = &escaped;
        match &mut self.as_of {
            None => self.as_of = Some((as_of.to_owned(), as_of.to_owned())),
            Some((_, to)) if is_last => as_of.clone_into(to),
            Some(_) => {}
        }
    }

    fn leave_out(&mut self, board: &BoardName, why: &str) {
        self.left_out += 1;
        match self.left_out {
            ..=LEFT_OUT_NAMED => eprintln!("board {board} is left out: {}", escaped_text(why)),
            _ if self.left_out == LEFT_OUT_NAMED + 1 => eprintln!("more boards are left out"),
            _ => {}
        }
    }
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let format = args.format();
    if args.all && format == Format::Csv {
        return Err("a CSV file can hold one board only, because the first line describes it; give --board, or --format ndjson".into());
    }
    if args.profiles && format == Format::Csv {
        return Err(
            "profiles are lines of their own, which a CSV file cannot have; give --format ndjson".into()
        );
    }
    if args.spreadsheet_safe && format != Format::Csv {
        return Err(
            "--spreadsheet-safe is about the cells of a CSV file; give --format csv, or leave it away".into(),
        );
    }
    args.output.as_deref().map_or(Ok(()), |path| file::check(path, args.replace))?;
    let window = args.window.unwrap_or_default();
    let source = match &args.data_dir {
        Some(data_dir) => Source::stopped(data_dir.clone(), window, args.profiles)?,
        None => Source::remote(&args.url, &args.client, window, args.profiles)?,
    };
    let boards = match &args.board {
        Some(board) => vec![board.clone()],
        None => source.boards()?,
    };
    let started = Instant::now();
    let mut summary = Summary::default();
    let mut output = None;
    for board in &boards {
        let (definition, page) = match first_page(&source, board, args) {
            Ok(found) => found,
            Err(failure) if args.all => {
                let Some(NoInstance { why, .. }) = failure.downcast_ref() else {
                    return Err(format!("board {board}: {failure}").into());
                };
                summary.leave_out(board, why);
                continue;
            }
            Err(failure) => return Err(failure),
        };
        let windows = windows_of(&definition);
        let instance = page.as_ref().map(|page| source.instance(board, page)).transpose()?.flatten();
        summary.instance = instance.map(|exported| exported.instance);
        summary.have_more += u64::from(windows != ["all"]);
        let line =
            BoardLine { board: board.clone(), instance, spreadsheet_safe: args.spreadsheet_safe, definition };
        // Create the file only once there is something to write: after a wrong board name an existing file
        // stays.
        let mut to = match output.take() {
            Some(output) => output,
            None if args.dry_run => Output::nothing(),
            None => Output::create(args.output.as_deref(), args.replace, format)?
                .spreadsheet_safe(args.spreadsheet_safe),
        };
        match write_board(&source, &line, page, args, &mut to, &mut summary) {
            Ok(()) => output = Some(to),
            // The reader closed the pipe and does not want the rest.
            Err(failure) if is_broken_pipe(&failure) => return Ok(ExitCode::SUCCESS),
            Err(failure) => return Err(failure),
        }
    }
    let Some(output) = output else {
        return Err(match args.window {
            Some(window) if summary.left_out > 0 => {
                format!("none of the {} boards has {window}, so there is nothing to export", summary.left_out)
            }
            _ => "there are no boards to export".to_owned(),
        }
        .into());
    };
    output.finish()?;
    print_summary(args, &summary, started.elapsed());
    Ok(ExitCode::SUCCESS)
}

/// What a board is, as JSON, and the first page of its entries; `None` if no season of it has begun.
fn first_page(source: &Source, board: &BoardName, args: &Args) -> Result<(String, Option<Fetched>), Failure> {
    let (definition, has_begun) = source.definition(board)?;
    let is_read = has_begun || args.window.is_some();
    let page = is_read.then(|| source.first_page(board)).transpose()?;
    Ok((definition, page))
}

/// The windows of a definition.
fn windows_of(definition: &str) -> Vec<String> {
    let definition: Value = serde_json::from_str(definition).unwrap_or_default();
    let windows = definition.get("windows").and_then(Value::as_array).cloned().unwrap_or_default();
    windows.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn write_board(
    source: &Source,
    line: &BoardLine,
    first: Option<Fetched>,
    args: &Args,
    output: &mut Output,
    summary: &mut Summary,
) -> Result<(), Failure> {
    let board = &line.board;
    let progress = Progress::new(format!("board {board}"));
    let written = |result: io::Result<()>| {
        result.map_err(|error| {
            progress.finish();
            match error.kind() {
                io::ErrorKind::BrokenPipe => Failure::from(error),
                _ => format!("the export is not complete: {error}").into(),
            }
        })
    };
    written(output.begin((!args.rows_only).then_some(line)))?;
    summary.boards += 1;
    let Some(mut fetched) = first else {
        progress.finish();
        return Ok(());
    };
    let mut rows = 0_u64;
    let mut ahead = None;
    loop {
        let answer;
        let page = match fetched {
            Fetched::Page(page) => page,
            Fetched::Answer(one) => {
                answer = one;
                answer.read()?
            }
        };
        summary.stale |= page.stale;
        for row in &page.entries {
            written(output.write(board.as_str(), row))?;
        }
        rows += count(page.entries.len());
        let next = page.next_cursor.map(Cow::into_owned);
        // Entries may have come or gone since the pages before: at the end, there are as many as there were.
        progress.note("entries", rows, if next.is_some() { page.total } else { rows });
        summary.note_as_of(&page.as_of, next.is_none());
        match next {
            Some(cursor) => fetched = source.next_page(board, cursor, &mut ahead)?,
            None => break,
        }
    }
    progress.finish();
    summary.rows += rows;
    match source.hidden(board)? {
        HiddenMembers::Unknown(why) => summary.hidden_unknown = Some(why),
        HiddenMembers::Known(all) => {
            summary.hidden += count(all.len());
            if !args.all || output.is_csv() {
                summary.narrowed += count(all.iter().filter(|hidden| hidden.is_everywhere).count());
            }
            for hidden in &all {
                written(output.write_hidden(board.as_str(), hidden, args.all))?;
            }
        }
    }
    Ok(())
}

fn print_summary(args: &Args, summary: &Summary, elapsed: Duration) {
    let rate = u128::from(summary.rows) * 1_000_000 / elapsed.as_micros().max(1);
    if args.all {
        eprintln!("boards      {:>12}", HumanCount(summary.boards).to_string());
        if summary.left_out > 0 {
            eprintln!("left out    {:>12}", HumanCount(summary.left_out).to_string());
        }
    }
    if let (Some(instance), Some(_)) = (&summary.instance, &args.board) {
        eprintln!("window      {:>12}", instance.to_string());
    }
    eprintln!("rows        {:>12}", HumanCount(summary.rows).to_string());
    if summary.hidden > 0 {
        eprintln!("hidden      {:>12}", HumanCount(summary.hidden).to_string());
    }
    if summary.narrowed > 0 {
        eprintln!(
            "of these, {} are hidden on all boards, and in this export on each of its boards alone: where it is imported, \
             \"show\" of all boards does not end that{}",
            HumanCount(summary.narrowed),
            if args.all { "" } else { "; --all as NDJSON keeps it" }
        );
    }
    if let Some(why) = &summary.hidden_unknown {
        eprintln!("who is hidden is not in this export, nor are hidden entries: {}", escaped_text(why));
    }
    eprintln!("seconds     {:>12.2}", elapsed.as_secs_f64());
    eprintln!("rows/s      {:>12}", HumanCount(u64::try_from(rate).unwrap_or(u64::MAX)).to_string());
    match &summary.as_of {
        Some((from, to)) if from == to => eprintln!("as of       {from}: all rows"),
        Some((from, to)) => eprintln!("as of       {from} to {to}: the board changed during the export"),
        None => {}
    }
    match (summary.have_more, &args.board) {
        (0, _) => {}
        (_, Some(board)) => eprintln!(
            "board {board} has other windows or instances, which are not in this export: --window NAME \
             exports the one of that name"
        ),
        (boards, None) => eprintln!(
            "{} of the boards have other windows or instances, which are not in this export; \
             --board and --window export one",
            HumanCount(boards)
        ),
    }
    if summary.stale {
        eprintln!(
            "a shard has stopped applying jobs, and its entries may be out of date: GET /v1/status says why"
        );
    }
}

fn is_broken_pipe(failure: &Failure) -> bool {
    failure.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
