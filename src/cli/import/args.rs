//! Flags of `ranktree import`, and what is told of them.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, ValueEnum};
use encoding_rs::Encoding;
use jiff::tz::TimeZone;

use crate::cli::import::ImportError;
use crate::cli::import::best_end::BestEnd;
use crate::cli::import::read::{
    AtFormat, ColumnNames, DurationOf, Field, Numbers, Place, Rules, Times, encoding, zone,
};

use crate::config::duration;
use crate::config::{ClientArgs, FileArgs, RedisArgs};
use crate::job::{MAX_JOBS_PER_MESSAGE, Op};
use crate::types::{BoardName, Malformed};

const EXAMPLES: &str = "\
Examples:
  A sample that comes with ranktree:
    ranktree import examples/github-stars-sample.csv
  Columns with other names, and one board for every row:
    ranktree import scores.csv.gz --board arena --column member=Player --column score=Points --column at=played_on
  What a file would become, and whether all of it can be sent:
    ranktree import scores.csv --board arena --dry-run
  Lap times such as 1:23.456, of which the lowest is best, in milliseconds:
    ranktree import laps.csv --board laps --order asc --duration ms
  Lap times in seconds with two decimal places, such as 83.45, of which the lowest is best:
    ranktree import laps.csv --board laps --order asc --scale 100
  Two keys, the most points and then the least time, in columns of their own:
    ranktree import results.csv --board cup --column score=Points --column score=Seconds --order desc,asc
  The same with times among the keys, such as 1:23.456, which become milliseconds:
    ranktree import results.csv --board cup --column score=Points --column score=Time --order desc,asc --duration ms=Time
  Scores of a backup, for those alone who have none on the board:
    ranktree import arena.ndjson --board arena --if-absent
  A table of a European spreadsheet: semicolons, decimal commas, points between thousands, Windows' own letters:
    ranktree import tabelle.csv --board liga --delimiter \";\" --decimal , --thousands . --encoding windows-1252
  No header, tabs, and three lines of something else at the top:
    ranktree import xp.tsv --board xp --delimiter tab --skip-lines 3 --no-header --column member=2 --column score=5
  Results with people who did not finish, and dates as people write them:
    ranktree import race.csv --board race --order asc --duration s --blank DNF --blank \"\" --at-format %d.%m.%Y
  A JSON document with its rows within, and fields within those:
    ranktree import cup.json --board cup --rows-at data.standings --column member=player.name --column score=points
  A JSON object with a name for each score, such as {\"ann\":5,\"bob\":7}:
    ranktree import scores.json --board arena --member-from-key
  Job objects, one per line, from a pipe:
    zcat jobs.ndjson.gz | ranktree import - --url http://10.0.0.5:8080
  A season that was exported, into a board of its own:
    ranktree import arena-s7.ndjson --board arena-s7
  A sorted set of a running Redis, whose password is in RANKTREE_REDIS_PASSWORD:
    ranktree import --redis redis://10.0.0.7:6379/0 --key leaderboard --board arena
  The same from an append-only file, or from redis-cli --csv ZRANGE leaderboard 0 -1 WITHSCORES:
    ranktree import appendonly.aof --key leaderboard --board arena

docs/import.md lists the forms that files have, with the options for each.

All files are read before anything is sent. If a row would be refused, nothing is sent, and the rows are listed: with \
file, line, column, value and the option that helps. --limit-errors N sends the others if there are no more than N of them. What \
only the service knows, such as a version that is stored, it can still refuse. Until they are sent, rows are kept \
in a temporary file of some 100 bytes a row, where TMPDIR says; --unchecked sends them as they are read.

CSV needs a header with the columns member, score and, without --board, board; --column names others. The columns at, version \
and meta (a JSON object) are read where they fit, op and hidden are done, and others are not read. What is read is printed at \
the start. Cells are trimmed, \
names of members too. --board sends every row to that board, even if the row names another one. at is RFC 3339, or a date such as \
2026-07-24, which means midnight UTC or of --at-zone.

A score is a whole number: 1200, 42.0 and 1e3 are, and 12.5 is with --scale 10. It stays 12.5 if the board is there with a key of \
the type float, or the file defines it so. Nothing is guessed: \"1,234\" and 1.000 are refused until --thousands or --decimal says what the comma or the point is. With --duration, a number alone is seconds if the name of its column \
says so, or a first row is written as 1:23.456 or 59.9, and is refused otherwise. Several keys are a column each, and \
--duration ms=NAME is about the one of that name.

NDJSON is one job object per line, as in POST /v1/jobs. With --column, or another option about fields, rows of JSON are read \
field by field, and may be of any form.

A flag holds for every row, or the row is refused: --op, --board and --version take the place of what rows say.

With --if-absent a row does what the operation create does: whoever has an entry keeps it, and the summary says how many had \
one. Of several rows of a member the first one counts. A board with several windows is looked at window by window. Rows that \
hide a member, or have a profile, are refused, for they would change those who are there.

A board that is not there is made by its first row: the highest score leads, unless --order asc says that the lowest does. \
The import says which. With --order, or with several keys, a token needs the scope admin for it.

The output of `ranktree export` can be imported in either format. Its first line is the definition of the board. A board \
that does not exist is defined by it, for which a token needs the scope admin. A board that exists with another definition \
is left unchanged, and the import fails. Its entry_ttl a board gets after all rows; one that has an entry_ttl is without it \
until then, for which a token needs the scope admin, too. Ranks, the order of ties and times come out as they were. --rows-only ignores the \
definition: the rows go into the board as it is, or as its first job creates it, with the defaults. The apostrophes of an export \
with --spreadsheet-safe are taken away again. --scale and its like are refused: the scores are what they are on the board.

An export of one instance, such as the season s7, comes back as that instance. Where the board does not exist, the import \
defines one that has the window of the instance alone, with a long grace, so that the instance is open, the greatest keep, and \
no entry_ttl; a season that an operator opened becomes a regular one of its number and its beginning. Give it a name of its own \
with --board, such as arena-s7, and read it with window=s7. Where the board exists, it must have the same instance, and the \
instance must be open: give the board a grace that reaches back to it, import, and shorten the grace again.

Rows of an instance are jobs like others, and enter all instances of their board that their times fall in. Into a board that has \
other windows, too, they are not imported, because they would set its entries of all or of the day to what they were then. \
--into-all-windows allows it, for a board that is to have nothing else. Rows of all enter the open instances of other windows, \
too: import all before anybody plays. Where a member has another score in such an instance, nothing is imported \
without --into-all-windows; --unchecked and --rows-only do not look.

Scores of Redis are floating-point numbers. Whole numbers are imported exactly; fractions and infinities are, too, if the \
board is there with a key of the type float, and are refused otherwise, unless --scale makes whole numbers of fractions. Ranks come out equal. Redis keeps no times, so equal scores are ordered by id, \
upwards with the best first, whereas ZREVRANK orders them downwards, as a board does whose `ties` are `member_desc`. Otherwise the \
board should order ties by `first` (the default) or `member`. Members that are added or removed while Redis is read may be missed.

If the service asks for tokens, pass one in --token-file, or in the environment variable RANKTREE_TOKEN; it needs the \
scope write.

Equal scores are ordered by at, the time at which each was reached, or by the board's rule. Rows without at get times in the \
order of the file, a microsecond apart, so that the first of equal rows leads, however many connections there are; so do rows of \
one time, in all files of a call. Rows of Redis have one time.

Ctrl-C ends an import in order: what was read is settled, and the line to go on from is printed, for --from-line. It is \
printed after a failure, too. An interrupted import can also be run again from the beginning. best has the same result then, and \
so has set as long as nobody else writes to the board, but for the order of equal scores of rows without a time of their own. incr counts a row twice, unless the row has a version; rows with versions that \
were applied before are rejected as stale_version, and so is a row that comes after one of its member with a greater version.

Exit status: 0 all rows applied, 1 some rejected, 2 failure, or nothing was sent.";

/// Sends the rows of CSV or JSON files, or of a Redis, to a running service.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Args {
    /// The files to read, one after the other; - is standard input. Files that are compressed with gzip are
    /// recognised
    #[arg(value_name = "FILE", default_value = "-", num_args = 1.., conflicts_with = "redis")]
    pub files: Vec<PathBuf>,

    // No comment that rustdoc reads: it takes the brackets for a link.
    #[arg(long, help = "Reads a sorted set of the Redis at redis://[user@]host:port/db instead of a file",
          value_name = "URL", env = "RANKTREE_REDIS", hide_env_values = true,
          requires_all = ["key", "board"])]
    pub redis: Option<String>,

    /// The sorted set's key, in a running Redis or in its append-only file
    #[arg(long, env = "RANKTREE_KEY")]
    pub key: Option<String>,

    /// Multiplies scores by this: 100 keeps two decimal places
    #[arg(long, value_name = "FACTOR", env = "RANKTREE_SCALE", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub scale: u32,

    /// Rounds scores that are not whole, halves away from zero. By default they are refused
    #[arg(long, env = "RANKTREE_ROUND", action = ArgAction::SetTrue)]
    pub round: bool,

    /// The decimal point of scores [default: a point, or a comma where --thousands is a point]
    #[arg(long, value_name = "C", env = "RANKTREE_DECIMAL")]
    pub decimal: Option<char>,

    /// What separates thousands in scores, such as , or a space. By default nothing may
    #[arg(long, value_name = "C", env = "RANKTREE_THOUSANDS")]
    pub thousands: Option<char>,

    // Without a variable: a file of settings has a duration of `load`.
    /// Scores are durations, such as 1:23.456, 26:50:29, PT1M or 83.456 seconds, to be counted in this unit:
    /// s, ms or us. With =NAME, the key of the column NAME alone is; may be repeated
    #[arg(long = "duration", value_name = "UNIT[=NAME]", value_parser = DurationOf::parse)]
    pub durations: Vec<DurationOf>,

    /// Leaves out rows that have this in place of a score, such as DNF, or of a member, such as NULL, and
    /// counts them; may be repeated
    #[arg(
        long = "blank",
        value_name = "TEXT",
        env = "RANKTREE_BLANK",
        value_delimiter = '\n',
        allow_hyphen_values = true
    )]
    pub blanks: Vec<String>,

    /// How times are written: unix (seconds), unix-ms, or a pattern such as %d.%m.%Y %H:%M. By default
    /// RFC 3339 or a date
    #[arg(long, value_name = "FORMAT", env = "RANKTREE_AT_FORMAT", value_parser = AtFormat::parse)]
    pub at_format: Option<AtFormat>,

    /// The zone of times that name none, such as Europe/Berlin or +05:30. Dates alone are of UTC by default
    #[arg(long, value_name = "ZONE", env = "RANKTREE_AT_ZONE", value_parser = zone, allow_hyphen_values = true)]
    pub at_zone: Option<TimeZone>,

    /// What the files are in, such as windows-1252, iso-8859-2 or gbk. By default UTF-8, or what a byte
    /// order mark says
    #[arg(long, value_name = "NAME", env = "RANKTREE_ENCODING", value_parser = encoding)]
    pub encoding: Option<&'static Encoding>,

    /// What separates the cells of a CSV: a character, or tab. By default a comma, or what a first line sep=;
    /// says
    #[arg(long, value_name = "C", env = "RANKTREE_DELIMITER", value_parser = delimiter)]
    pub delimiter: Option<u8>,

    /// Quotation marks in a CSV are characters, as in the tab-separated files of many databases; else they
    /// enclose cells
    #[arg(long, env = "RANKTREE_NO_QUOTES", action = ArgAction::SetTrue)]
    pub no_quotes: bool,

    /// The first line of a CSV is a row, and --column names columns by their numbers, from 1
    #[arg(long, env = "RANKTREE_NO_HEADER", action = ArgAction::SetTrue)]
    pub no_header: bool,

    /// Passes over lines at the top of a CSV, before its header
    #[arg(long, value_name = "LINES", default_value_t = 0, hide_default_value = true)]
    pub skip_lines: u64,

    /// Where the rows of a JSON document are: names of fields with dots between them. Of an array on the way,
    /// all items have rows; a number, from 0, reads those of one
    #[arg(long, value_name = "PATH", env = "RANKTREE_ROWS_AT")]
    pub rows_at: Option<String>,

    /// The rows of a JSON document are an object, whose names are the members. A value that is a number is
    /// the score
    #[arg(long, env = "RANKTREE_MEMBER_FROM_KEY", action = ArgAction::SetTrue)]
    pub member_from_key: bool,

    /// Makes names of boards of what rows name: Summer Cup becomes summer-cup
    #[arg(long, env = "RANKTREE_SLUG", action = ArgAction::SetTrue)]
    pub slug: bool,

    /// Which end is best of a board that the import makes; one for all keys, or one for each with commas
    /// between them. By default the highest
    #[arg(long, value_name = "ORDER", value_enum, env = "RANKTREE_ORDER", value_delimiter = ',')]
    pub order: Vec<BestEnd>,

    /// The version of every row: what has a greater one already is left as it is
    #[arg(long = "version", value_name = "N")]
    pub row_version: Option<u64>,

    /// Goes on from this line, as a stopped import has told: of the first file, or, with a number before it
    /// as in 2:1235, of that one. What is before it is read for its times alone
    #[arg(long, value_name = "[FILE:]LINE", default_value = "0", hide_default_value = true,
          value_parser = Place::parse)]
    pub from_line: Place,

    /// Sends rows as they are read, without reading everything once before. Rows that are refused are left
    /// out
    #[arg(long, action = ArgAction::SetTrue, conflicts_with = "dry_run")]
    pub unchecked: bool,

    /// Takes away the apostrophes that an export with --spreadsheet-safe has put before names. A file with
    /// the first line of an export says by itself whether it has them
    #[arg(long)]
    pub spreadsheet_safe: bool,

    #[command(flatten)]
    pub redis_password: RedisArgs,

    /// The service's base URL
    #[arg(
        long,
        alias = "to",
        value_name = "URL",
        env = "RANKTREE_URL",
        default_value = "http://127.0.0.1:8080"
    )]
    pub url: String,

    /// The format of the rows. By default it is recognised by the first character
    #[arg(long, value_enum, env = "RANKTREE_FORMAT")]
    pub format: Option<Format>,

    /// Sends every row to this board, whatever board it names. A row with `scores` of several boards is
    /// rejected
    #[arg(long, value_parser = BoardName::new, env = "RANKTREE_BOARD")]
    pub board: Option<BoardName>,

    /// The operation of every row, also of those that name another. By default it is what the row says, or
    /// the board's policy
    #[arg(long, value_parser = op_parser(), env = "RANKTREE_OP")]
    pub op: Option<Op>,

    /// Sends scores to members alone who have no entry on the board, and counts those who have one
    #[arg(long, env = "RANKTREE_IF_ABSENT", action = ArgAction::SetTrue, conflicts_with = "op")]
    pub if_absent: bool,

    /// Reads a field (board, member, score, at, version, op, hidden, meta, meta.x, profile.x) from a column
    /// of another name; may be repeated. score twice: two keys. NAME is a path with dots in JSON, a number
    /// with --no-header, and empty for a field that is not to be read
    #[arg(long = "column", value_name = "FIELD=NAME", env = "RANKTREE_COLUMN", value_delimiter = '\n')]
    pub columns: Vec<String>,

    /// Rows per request
    #[arg(long, value_name = "ROWS", env = "RANKTREE_BATCH", default_value_t = MAX_JOBS_PER_MESSAGE,
          value_parser = batch_parser())]
    pub batch: usize,

    /// Connections that send at the same time
    #[arg(long, value_name = "COUNT", env = "RANKTREE_CONNECTIONS", default_value = "4")]
    pub connections: NonZeroUsize,

    /// Leaves rows out that cannot be sent, up to so many; with more nothing is sent, or no more. By default
    /// none before rows are sent, and any number afterwards
    #[arg(long, value_name = "ROWS", env = "RANKTREE_LIMIT_ERRORS")]
    pub limit_errors: Option<u64>,

    /// Writes every rejected line to this file, as CSV: line, code, detail
    #[arg(long, value_name = "FILE", env = "RANKTREE_REJECTS")]
    pub rejects: Option<PathBuf>,

    /// How long to try again while the service cannot be reached or is overloaded [default: 0s until its
    /// first answer, 60s afterwards]
    #[arg(long, value_name = "TIME", env = "RANKTREE_RETRY_FOR", value_parser = duration)]
    pub retry_for: Option<Duration>,

    /// Ignores the definition of the board in an export, and imports its rows into the board as the service
    /// defines it
    #[arg(long, env = "RANKTREE_ROWS_ONLY", action = ArgAction::SetTrue)]
    pub rows_only: bool,

    /// Lets the rows of one instance, or of all, change every other window of their board that their times
    /// fall in
    #[arg(long, env = "RANKTREE_INTO_ALL_WINDOWS", action = ArgAction::SetTrue, conflicts_with = "rows_only")]
    pub into_all_windows: bool,

    /// Reads and checks everything, also against boards that are there, and sends nothing
    #[arg(long, env = "RANKTREE_DRY_RUN", action = ArgAction::SetTrue)]
    pub dry_run: bool,

    /// Read where the arguments are.
    #[command(flatten)]
    _file: FileArgs,
    #[command(flatten)]
    pub client: ClientArgs,
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A header, then a row per line
    Csv,
    /// JSON: a job object per line, or a document
    #[value(alias = "json")]
    Ndjson,
    /// An append-only file of Redis
    Aof,
    /// What redis-cli --csv writes of a sorted set with its scores
    RedisCsv,
}

impl Args {
    /// How rows are read.
    ///
    /// # Errors
    /// When options are not as they must be, or not for one another.
    pub fn rules(&self) -> Result<Rules, ImportError> {
        let decimal = self.decimal.unwrap_or(if self.thousands == Some('.') { ',' } else { '.' });
        let numbers = Numbers {
            decimal,
            is_decimal_given: self.decimal.is_some(),
            thousands: self.thousands,
            scale: self.scale,
            is_rounded: self.round,
            duration: None,
        };
        if self.thousands == Some(decimal) {
            return Err(ImportError::SameSeparators(decimal));
        }
        let columns = ColumnNames::from_arguments(&self.columns)?;
        self.check_durations(&columns)?;
        // The command line is checked for this, and a file of settings is not.
        if self.if_absent && self.op.is_some() {
            return Err(ImportError::AbsentOp);
        }
        let has_profiles = columns.parts().any(|(field, _)| matches!(field, Field::ProfilePart(_)));
        if self.if_absent && has_profiles {
            return Err(ImportError::AbsentProfile);
        }
        let rows_at = self.rows_at.as_deref().filter(|path| !path.is_empty());
        Ok(Rules {
            board: self.board.clone(),
            op: if self.if_absent { Some(Op::CREATE) } else { self.op },
            if_absent: self.if_absent,
            version: self.row_version,
            columns,
            numbers,
            durations: self.durations.clone(),
            times: Times { format: self.at_format.clone(), zone: self.at_zone.clone() },
            blanks: self.blanks.clone(),
            slug: self.slug,
            spreadsheet_safe: self.spreadsheet_safe,
            delimiter: self.delimiter,
            no_quotes: self.no_quotes,
            no_header: self.no_header,
            skip_lines: self.skip_lines,
            rows_at: rows_at.map(|path| path.split('.').map(str::to_owned).collect()).unwrap_or_default(),
            member_from_key: self.member_from_key,
        })
    }

    /// Whether each key is a duration of one unit at most, and no other option is about it.
    fn check_durations(&self, columns: &ColumnNames) -> Result<(), ImportError> {
        let is_of_all = self.durations.iter().any(|of| of.column.is_none());
        if is_of_all && self.durations.len() > 1 {
            return Err(ImportError::DurationTwice);
        }
        if is_of_all && (self.scale != 1 || self.thousands.is_some()) {
            return Err(ImportError::ScaledDuration);
        }
        let scores = columns.scores();
        for (index, DurationOf { column, .. }) in self.durations.iter().enumerate() {
            let Some(column) = column else { continue };
            if self.durations.iter().skip(index + 1).any(|other| other.column.as_ref() == Some(column)) {
                return Err(ImportError::DurationTwice);
            }
            let is_key = scores.contains(&column.as_str()) || scores.is_empty() && column == "score";
            if !is_key {
                return Err(ImportError::DurationOfNoKey(column.clone()));
            }
        }
        Ok(())
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err("it must be one character, such as ; or |, or tab".to_owned()),
    }
}

fn op_parser() -> impl TypedValueParser<Value = Op> {
    // A profile has a field of its own, so it is no row's operation unless the row says so.
    let ops = Op::ALL.into_iter().filter(|op| *op != Op::Profile);
    PossibleValuesParser::new(ops.map(Op::name))
        .try_map(|name| Op::ALL.into_iter().find(|op| op.name() == name).ok_or(Malformed::Score))
}

fn batch_parser() -> impl TypedValueParser<Value = usize> {
    let most = u64::try_from(MAX_JOBS_PER_MESSAGE).unwrap_or(u64::MAX);
    clap::value_parser!(u64).range(1..=most).try_map(usize::try_from)
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
        assert_eq!((args.op, args.retry_for), (Some(Op::Best), Some(Duration::from_secs(120))));
        assert_eq!(parse(&[]).expect("all have defaults").batch, MAX_JOBS_PER_MESSAGE);
        for bad in [
            ["--op", "add"],
            ["--batch", "0"],
            ["--batch", "1001"],
            ["--connections", "0"],
            ["--board", "no spaces"],
            ["--retry-for", "soon"],
            ["--format", "xml"],
            ["--delimiter", ";;"],
            ["--decimal", "ab"],
            ["--duration", "h"],
            ["--duration", "h=lap"],
            ["--duration", "ms="],
            ["--encoding", "latin-99"],
            ["--at-format", "%K"],
            ["--at-zone", "Europe/Atlantis"],
            ["--order", "best"],
            ["--from-line", "0:7"],
            ["--from-line", "a.csv:7"],
        ] {
            assert!(parse(&bad).is_err(), "{bad:?}");
        }
    }
}
