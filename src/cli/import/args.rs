//! Flags of `ranktree import`, and what is told of them.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, ValueEnum};

use crate::config::duration;
use crate::config::{ClientArgs, FileArgs, RedisArgs};
use crate::job::{MAX_JOBS_PER_MESSAGE, Op};
use crate::types::{BoardName, Malformed};

const EXAMPLES: &str = "\
Examples:
  A sample that comes with ranktree:
    ranktree import examples/github-stars-sample.csv
  Columns with other names, and one board for every row:
    ranktree import scores.csv.gz --board arena --column at=played_on --column score=points
  Job objects, one per line, from a pipe:
    zcat jobs.ndjson.gz | ranktree import - --url http://10.0.0.5:8080
  Scores with two decimal places, such as 12.34:
    ranktree import laps.csv --board laps --scale 100
  Only check whether a file is well-formed:
    ranktree import scores.csv --dry-run
  A season that was exported, into a board of its own:
    ranktree import arena-s7.ndjson --board arena-s7
  A sorted set of a running Redis, whose password is in RANKTREE_REDIS_PASSWORD:
    ranktree import --redis redis://10.0.0.7:6379/0 --key leaderboard --board arena

CSV needs a header with the columns member, score and, without --board, board. The columns at, version and meta (a JSON \
object) are optional, and other columns are ignored. --board sends every row to that board, even if the row names another one. \
A score with several keys is one quoted cell: \"1200,90000\". at is RFC 3339, or a date such as 2026-07-24, which means midnight \
UTC. With --scale 100 a score may have two decimal places: each of its keys is multiplied by 100, and must then be a whole \
number. NDJSON is one job object per line, as in POST /v1/jobs.

The output of `ranktree export` can be imported in either format. Its first line is the definition of the board. A board \
that does not exist is defined by it, for which a token needs the scope admin. A board that exists with another definition \
is left unchanged, and the import fails. Its entry_ttl a board gets after all rows; one that has an entry_ttl is without it \
until then, for which a token needs the scope admin, too. Ranks, the order of ties and times come out as they were. --rows-only ignores the \
definition: the rows go into the board as it is, or as its first job creates it, with the defaults. The apostrophes of an export \
with --spreadsheet-safe are taken away again.

An export of one instance, such as the season s7, comes back as that instance. Where the board does not exist, the import \
defines one that has the window of the instance alone, with a long grace, so that the instance is open, the greatest keep, and \
no entry_ttl; a season that an operator opened becomes a regular one of its number and its beginning. Give it a name of its own \
with --board, such as arena-s7, and read it with window=s7. Where the board exists, it must have the same instance, and the \
instance must be open: give the board a grace that reaches back to it, import, and shorten the grace again.

Rows of an instance are jobs like others, and enter all instances of their board that their times fall in. Into a board that has \
other windows, too, they are not imported, because they would set its entries of all or of the day to what they were then. \
--into-all-windows allows it, for a board that is to have nothing else. Rows of all enter the open instances of other windows in \
any case: import all before anybody plays.

Scores of Redis are floating-point numbers. Whole numbers are imported exactly; fractions and infinities are refused, unless \
--scale makes whole numbers of them. Ranks come out equal. Redis keeps no times, so equal scores are ordered by id, \
upwards with the best first, whereas ZREVRANK orders them downwards. The board should order ties by `first` (the \
default) or `member`. Members that are added or removed while Redis is read may be missed.

If the service asks for tokens, pass one in --token-file, or in the environment variable RANKTREE_TOKEN; it needs the \
scope write.

Equal scores are ordered by at, the time at which each was reached, or by the board's rule. Without at, it is the moment at \
which a row is applied: rows of different members come in the order of the file only with --connections 1.

An interrupted import can be run again from the beginning. best has the same result then, and so has set as long as \
nobody else writes to the board; the order among ties is the same if rows have at. incr counts a row twice, unless the \
row has a version; rows with versions that were applied before are rejected as stale_version, and so is a row that \
comes after one of its member with a greater version.

Exit status: 0 all rows applied, 1 some rejected, 2 failure.";

/// Sends the rows of a CSV or NDJSON file, or of a Redis, to a running service.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Args {
    /// The file to read; - is standard input. Files that are compressed with gzip are recognised
    #[arg(value_name = "FILE", default_value = "-", conflicts_with = "redis")]
    pub file: PathBuf,

    /// Reads a sorted set of the Redis at redis://[user@]host:port/db instead of a file
    #[arg(long, value_name = "URL", env = "RANKTREE_REDIS", hide_env_values = true,
          requires_all = ["key", "board"])]
    pub redis: Option<String>,

    /// The sorted set's key
    #[arg(long, env = "RANKTREE_KEY", requires = "redis")]
    pub key: Option<String>,

    /// Multiplies scores of Redis and of CSV by this: 100 keeps two decimal places
    #[arg(long, value_name = "FACTOR", env = "RANKTREE_SCALE", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub scale: u32,

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

    /// The operation of rows that name none. By default it is the board's policy
    #[arg(long, value_parser = op_parser(), env = "RANKTREE_OP")]
    pub op: Option<Op>,

    /// Reads a CSV field (board, member, score, at, version, meta) from a column of another name; may be
    /// repeated
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

    /// How long to try again while the service cannot be reached or is overloaded [default: 0s until its
    /// first answer, 60s afterwards]
    #[arg(long, value_name = "TIME", env = "RANKTREE_RETRY_FOR", value_parser = duration)]
    pub retry_for: Option<Duration>,

    /// Ignores the definition of the board in an export, and imports its rows into the board as the service
    /// defines it
    #[arg(long, env = "RANKTREE_ROWS_ONLY", action = ArgAction::SetTrue)]
    pub rows_only: bool,

    /// Lets the rows of one instance change every other window of their board that their times fall in
    #[arg(long, env = "RANKTREE_INTO_ALL_WINDOWS", action = ArgAction::SetTrue, conflicts_with = "rows_only")]
    pub into_all_windows: bool,

    /// Reads and checks everything, and sends nothing
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
    /// A job object per line
    Ndjson,
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
        ] {
            assert!(parse(&bad).is_err(), "{bad:?}");
        }
    }
}
