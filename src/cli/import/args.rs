//! Flags of `ranktree import`, and what is told of them.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, ValueEnum};

use crate::cli::duration::duration;
use crate::config::{ClientArgs, RedisArgs};
use crate::job::{MAX_JOBS_PER_MESSAGE, Op};
use crate::types::{BoardName, Malformed};

const EXAMPLES: &str = "\
Examples:
  A sample that comes with ranktree:
    ranktree import examples/github-stars-sample.csv
  A column under another name, and one board for every row:
    ranktree import scores.csv.gz --board arena --column at=played_on --column score=points
  Job objects, one per line, from a pipe:
    zcat jobs.ndjson.gz | ranktree import - --url http://10.0.0.5:8080
  Scores with two places after the point, such as 12.34:
    ranktree import laps.csv --board laps --scale 100
  Only look whether a file is well-formed:
    ranktree import scores.csv --dry-run
  A sorted set of a running Redis, whose password is in RANKTREE_REDIS_PASSWORD:
    ranktree import --redis redis://10.0.0.7:6379/0 --key leaderboard --board arena

CSV needs a header with the columns member, score and, without --board, board; at, version and meta (a JSON object) are \
optional, and other columns are ignored. --board sends every row to that board, also where rows name another one. A score with several keys is one quoted cell: \"1200,90000\". at is RFC 3339, or a date such \
as 2026-07-24, which is midnight UTC. With --scale 100 a score may have two places after the point: each of its keys is \
multiplied, and must be a whole number then. NDJSON is one job object per line, as POST /v1/jobs takes it.

What `ranktree export` writes is taken as well, in either form. Its first line says what the board is: a board that is not \
there is defined so, for which a token needs the scope admin, and one that is defined otherwise is not written to. Ranks and the \
order of ties come out as they were. --rows-only passes that line over, and the board must be there, or is created with the \
defaults.

Scores of Redis are floating-point numbers. Whole ones are taken exactly; fractions and infinities are refused, unless \
--scale makes whole numbers of them. Ranks come out equal. Redis keeps no times, so equal scores are ordered by id, \
upwards with the best first, where ZREVRANK orders them downwards. The board should order ties by `first` (the \
default) or `member`. Members that come and go while Redis is read may be missed.

A service that asks for tokens gets the one in --token-file, or in the environment variable RANKTREE_TOKEN; it needs the \
scope write.

An interrupted import can be run again from the beginning. set and best come to the same result, and to the same \
order among ties where rows carry at. incr counts a row twice unless it carries a version; with versions, rows that \
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

    /// What scores of Redis and of CSV are multiplied by: 100 keeps two places after the point
    #[arg(long, value_name = "FACTOR", env = "RANKTREE_SCALE", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub scale: u32,

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

    /// How rows are written; recognised by the first character if absent
    #[arg(long, value_enum, env = "RANKTREE_FORMAT")]
    pub format: Option<Format>,

    /// The board that every row goes to, whatever board it names; a row with `scores` of several boards is
    /// rejected
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

    /// How long to go on trying while the service is away or overloaded; 60s once it has answered, and 0s
    /// before
    #[arg(long, value_name = "TIME", env = "RANKTREE_RETRY_FOR", value_parser = duration)]
    pub retry_for: Option<Duration>,

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

fn op_parser() -> impl TypedValueParser<Value = Op> {
    PossibleValuesParser::new(Op::ALL.map(Op::name))
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
