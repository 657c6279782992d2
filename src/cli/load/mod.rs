//! `ranktree load`: flags, what is shown meanwhile, and the summary. What is done is in `crate::loadgen`.

mod boards;
mod progress;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, ArgAction, ValueEnum};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::Failure;
use crate::cli::client::{BaseUrl, Client, load_tls_roots};
use crate::cli::window_argument::window_argument;
use crate::config::duration;
use crate::config::{ClientArgs, ConfigError, FileArgs, NatsAccessArgs, check_prefix};
use crate::job::Op;
use crate::loadgen::{self, Distribution, OpMix, Plan, Spec, Target, Via, encoded};
use crate::query::WindowChoice;
use crate::types::BoardName;
use crate::window::Window;
use progress::Progress;

/// As long as a run takes that is told neither how long nor how much.
const DURATION: Duration = Duration::from_secs(10);
/// Over HTTP a connection has one request at a time.
const HTTP_CONNECTIONS: usize = 50;
/// What a shell expects of a process that Ctrl-C ended.
const ENDED_BY_INTERRUPT: i32 = 130;

const EXAMPLES: &str = "\
Examples:
  As fast as NATS takes it, 100 jobs in a message, for 10 seconds:
    ranktree load --nats nats://127.0.0.1:4222 --jobs-per-message 100
  50,000 jobs per second, some members more popular than others, and measuring when readers see the jobs:
    ranktree load --nats nats://127.0.0.1:4222 --rate 50000 --distribution zipf \\
        --visible --read-url http://127.0.0.1:8080 --duration 1m --warmup 5s
  As requests to the write service, 50 at a time, each answered with what came of it:
    ranktree load --nats nats://127.0.0.1:4222 --via service --in-flight 50
  Over HTTP, with nine reads for each write:
    ranktree load --url http://127.0.0.1:8080 --read-ratio 0.9 --connections 100
  Jobs that each enter four instances, and reads of today's:
    ranktree load --url http://127.0.0.1:8080 --windows all,day,week,month --read-window day \\
        --read-ratio 0.5
  A service with TLS and tokens; the token needs the scope write:
    RANKTREE_TOKEN=... ranktree load --url https://ranks.example:8080 --ca authority.pem
  As the user of a game service, which may only publish, so that the number of shards has to be given:
    RANKTREE_NATS_PASSWORD=... ranktree load --nats tls://nats.example.net --nats-user game \\
      --shards 3
  The same million jobs in every run, and the summary as JSON:
    ranktree load --nats nats://127.0.0.1:4222 --jobs 1000000 --seed 7 --json

With --rate the loop is open: the time of each message is fixed beforehand and does not depend on earlier answers, and \
latency counts from that time. So a service that stalls shows in the latencies; if the generator itself falls behind, the \
summary says so. Without --rate the loop is closed: each connection sends the next message as soon as --in-flight allows it, \
and latency counts from sending.

The boards load0, load1, ... are created by their first job with the defaults, unless they exist. With --windows they are \
defined before the run, for which a token needs the scope admin, and --nats needs --read-url; a board that exists must have the \
same windows. Every window makes each job dearer: it enters one instance of each, and a board with all and hour soon has as \
many trees as hours. Boards with other settings, such as seasons, are to be defined before, and are used as they are. They are not dropped after \
the run; the last lines say how to drop them. Reads are, in equal parts, a member's entry, the entries around it, the top ten \
and the rank of a score; a member without a score is counted as not found, not as an error. Ctrl-C ends a run with the summary \
so far.

Exit status: 0 done; 1 no operation succeeded, or failures exceeded --limit-errors, or it gave up (--give-up); 2 it could not \
begin.";

/// The text of `serve` says what a node does with its NATS.
fn describe_nats(arg: Arg) -> Arg {
    if arg.get_id() != "nats" {
        return arg;
    }
    arg.help("Publishes jobs to this NATS server, or to one of several separated by commas, as a game service would")
}

/// Sends jobs and reads to a service, and measures it: a load generator over NATS or HTTP.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, mut_args(describe_nats))]
pub struct Args {
    #[command(flatten)]
    pub access: NatsAccessArgs,

    /// Writes to this service over HTTP, even if --nats or its variable is set
    #[arg(long, alias = "http", value_name = "URL", env = "RANKTREE_LOAD_URL")]
    pub url: Option<String>,

    /// With --nats: what the names of subjects and streams begin with
    #[arg(long, value_name = "PREFIX", env = "RANKTREE_PREFIX", default_value = "ranktree")]
    pub prefix: String,

    /// With --nats: the number of shards; read from the streams if absent
    #[arg(long, value_name = "N", env = "RANKTREE_SHARDS")]
    pub shards: Option<u16>,

    /// With --nats: where messages go: into the streams of their shards, or as requests to the nodes' write
    /// service, which answers once they are applied
    #[arg(long, value_enum, value_name = "WAY", env = "RANKTREE_LOAD_VIA", default_value = "stream")]
    pub via: ViaArg,

    /// With --nats: the service that reads are sent to, and that is asked how many jobs it applied and
    /// rejected
    #[arg(long, value_name = "URL", env = "RANKTREE_LOAD_READ_URL")]
    pub read_url: Option<String>,

    /// Members that jobs and reads are about
    #[arg(long, value_name = "N", env = "RANKTREE_LOAD_MEMBERS", default_value_t = 100_000)]
    pub members: u32,

    /// Boards that jobs and reads are about
    #[arg(long, value_name = "N", env = "RANKTREE_LOAD_BOARDS", default_value = "1",
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub boards: u16,

    /// What the boards' names begin with; a number follows
    #[arg(long, value_name = "NAME", env = "RANKTREE_LOAD_BOARD_PREFIX", default_value = "load")]
    pub board_prefix: String,

    /// Defines the boards with these windows: all, hour, day, week, month, separated by commas [default: as
    /// their first job creates them, with all]
    #[arg(long, value_name = "WINDOWS", env = "RANKTREE_LOAD_WINDOWS", value_delimiter = ',',
          value_parser = boards::window)]
    pub windows: Vec<Window>,

    /// The window that reads ask for: hour, day, week, month or season for the current instance, or an
    /// instance's name, such as 2026-W47 [default: what a read without a window is about]
    #[arg(long, value_name = "WINDOW", env = "RANKTREE_LOAD_READ_WINDOW", value_parser = window_argument)]
    pub read_window: Option<WindowChoice>,

    /// How popular members are: uniform, zipf or zipf:S, where the k-th most popular member has a share of
    /// 1/k^S
    #[arg(long, value_name = "SHAPE", env = "RANKTREE_LOAD_DISTRIBUTION", default_value = "uniform",
          value_parser = distribution)]
    pub distribution: Distribution,

    /// Scores are uniformly distributed from 0 up to below this number; a small one makes many ties
    #[arg(long, value_name = "N", env = "RANKTREE_LOAD_SCORES", default_value = "1000000",
          value_parser = clap::value_parser!(i64).range(1..))]
    pub scores: i64,

    /// What jobs do: set, best or incr, or several with their shares, such as best=9,incr=1
    #[arg(long, value_name = "OPS", env = "RANKTREE_LOAD_OP", default_value = "set", value_parser = ops)]
    pub op: OpMix,

    /// Jobs in a message or request, 1 to 1,000; over HTTP one is a PUT and more are a POST
    #[arg(long, value_name = "N", env = "RANKTREE_LOAD_JOBS_PER_MESSAGE", default_value = "1",
          value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub jobs_per_message: u16,

    /// The share of reads among messages and reads together, 0 up to below 1
    #[arg(long, value_name = "SHARE", env = "RANKTREE_LOAD_READ_RATIO", default_value_t = 0.0)]
    pub read_ratio: f64,

    /// Jobs per second, sent on a fixed schedule; as fast as possible if absent
    #[arg(long, value_name = "JOBS", env = "RANKTREE_LOAD_RATE")]
    pub rate: Option<f64>,

    /// How long to measure [default: 10s, unless --jobs is given]
    #[arg(long, value_name = "TIME", env = "RANKTREE_LOAD_DURATION", value_parser = duration)]
    pub duration: Option<Duration>,

    /// Ends after this many jobs, including those of the warm-up
    #[arg(long, value_name = "N", env = "RANKTREE_LOAD_JOBS")]
    pub jobs: Option<u64>,

    /// Runs this long before anything is measured
    #[arg(long, value_name = "TIME", env = "RANKTREE_LOAD_WARMUP", default_value = "0s", value_parser = duration)]
    pub warmup: Duration,

    /// Connections for writes; over HTTP, for reads too [default: 1 for NATS, 50 for HTTP]
    #[arg(long, value_name = "N", env = "RANKTREE_LOAD_CONNECTIONS",
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub connections: Option<u16>,

    /// With --nats: connections for reads
    #[arg(long, value_name = "N", env = "RANKTREE_LOAD_READ_CONNECTIONS", default_value = "20",
          value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub read_connections: u16,

    /// With --nats: messages on each connection that wait for their answer
    #[arg(long, value_name = "N", env = "RANKTREE_LOAD_IN_FLIGHT", default_value = "1000",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub in_flight: u32,

    /// Measures when readers see what was written: over HTTP with wait=applied, over NATS for a sample of
    /// messages
    #[arg(long, env = "RANKTREE_LOAD_VISIBLE", action = ArgAction::SetTrue)]
    pub visible: bool,

    /// The same seed gives the same jobs in the same messages
    #[arg(long, value_name = "N", env = "RANKTREE_LOAD_SEED", default_value_t = 42)]
    pub seed: u64,

    /// Fails if more than this percentage of operations fail
    #[arg(long, value_name = "PERCENT", env = "RANKTREE_LOAD_LIMIT_ERRORS", default_value_t = 1.0)]
    pub limit_errors: f64,

    /// Ends if there were errors and no operation has succeeded for this long
    #[arg(long, value_name = "TIME", env = "RANKTREE_LOAD_GIVE_UP", default_value = "10s", value_parser = duration)]
    pub give_up: Duration,

    #[command(flatten)]
    pub client: ClientArgs,

    /// Writes the summary to standard output as one JSON object
    #[arg(long, env = "RANKTREE_LOAD_JSON", action = ArgAction::SetTrue)]
    pub json: bool,

    #[command(flatten)]
    pub file: FileArgs,
}

/// Where messages go over NATS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ViaArg {
    Stream,
    Service,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let plan = plan(args)?;
    let boards = plan.spec.boards.clone();
    define_boards(args, &boards)?;
    let progress = Progress::new(plan.duration.map(|duration| duration + plan.warmup), plan.spec.jobs);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let summary = runtime.block_on(async {
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        let summary =
            loadgen::run(plan, |interval| progress.show(interval), told_to_end(interrupt, terminate));
        Ok::<_, Failure>(summary.await?)
    });
    progress.finish();
    let summary = summary?;
    let text = if args.json { serde_json::to_string(&summary)? + "\n" } else { summary.text() };
    // The reader closed the pipe; the exit status still tells the result.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    eprint!("{}", left_behind(args, &boards, summary.writes.messages));
    if !summary.succeeded {
        eprintln!("ranktree load: {}", why_not(&summary));
    }
    Ok(if summary.succeeded { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Defines the boards with the windows that they are to have, if that is said.
fn define_boards(args: &Args, boards: &[BoardName]) -> Result<(), Failure> {
    if args.windows.is_empty() {
        return Ok(());
    }
    let Some(url) = args.url.as_deref().or(args.read_url.as_deref()) else {
        return Err("--windows defines the boards over HTTP; name a service with --read-url".into());
    };
    let client = Client::new(url, &args.client, "load")?;
    boards::define(&client, &args.windows, boards)
}

/// Which boards stay, and how to drop them. Nothing drops them by itself: they may have been there before.
fn left_behind(args: &Args, boards: &[BoardName], messages: u64) -> String {
    let [Some(first), Some(last)] = [boards.first(), boards.last()] else { return String::new() };
    if messages == 0 {
        return String::new();
    }
    let url = args.url.as_deref().or(args.read_url.as_deref()).unwrap_or("http://127.0.0.1:8080");
    let url = url.trim_end_matches('/');
    let ca = args.client.ca.as_ref().map(|ca| format!(" --cacert {}", ca.display())).unwrap_or_default();
    // The token of a load need not be one that may drop boards, and is not shown.
    let token = args.client.token().ok().flatten();
    let token = token.map(|_| " -H \"Authorization: Bearer $ADMIN_TOKEN\"").unwrap_or_default();
    let drop = |board: &str| format!("curl -X DELETE{ca}{token} {url}/v1/boards/{board}");
    if first == last {
        format!("the board {first} was not dropped; to drop it: {}\n", drop(&encoded(first.as_str())))
    } else {
        let (count, prefix) = (boards.len(), &args.board_prefix);
        let each = drop(&format!("{}$n", encoded(prefix)));
        format!(
            "the boards {first} to {last} were not dropped; to drop them: for n in $(seq 0 {}); do {each}; done\n",
            count - 1
        )
    }
}

/// The first signal ends the run, a second one the process.
async fn told_to_end(mut interrupt: Signal, mut terminate: Signal) {
    let mut wait = async move || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    wait().await;
    tokio::spawn(async move {
        wait().await;
        std::process::exit(ENDED_BY_INTERRUPT);
    });
}

fn why_not(summary: &loadgen::Summary) -> String {
    let answered = summary.writes.messages + summary.reads.as_ref().map_or(0, |reads| reads.requests);
    if summary.ended == "gave_up" {
        "gave up because no operation succeeded for as long as --give-up allows".to_owned()
    } else if answered == 0 && summary.errors.is_empty() {
        "nothing was measured, because the run ended during its warm-up".to_owned()
    } else if answered == 0 {
        "no operation succeeded".to_owned()
    } else {
        "more operations failed than --limit-errors allows".to_owned()
    }
}

fn plan(args: &Args) -> Result<Plan, Failure> {
    if args.url.is_some() && args.read_url.is_some() {
        return Err(ConfigError::Conflicting("--url", "--read-url").into());
    }
    check_prefix(&args.prefix)?;
    let mut over_tls = false;
    for (flag, url) in [("--url", &args.url), ("--read-url", &args.read_url)] {
        let Some(url) = url else { continue };
        over_tls |= BaseUrl::parse(flag, url)?.is_https;
    }
    let target = if let Some(url) = &args.url {
        Target::Http { url: url.clone() }
    } else if let Some(access) = args.access.clone().resolve(&args.prefix)? {
        Target::Nats {
            access,
            prefix: args.prefix.clone(),
            shards: args.shards,
            in_flight: usize::try_from(args.in_flight)?,
            via: match args.via {
                ViaArg::Stream => Via::Stream,
                ViaArg::Service => Via::Service,
            },
        }
    } else {
        return Err(
            "no service to load was named; give --nats nats://HOST:4222, or --url http://HOST:8080".into()
        );
    };
    let tls = over_tls.then(|| load_tls_roots(args.client.ca.as_deref())).transpose()?;
    let boards = (0..args.boards).map(|number| BoardName::new(&format!("{}{number}", args.board_prefix)));
    let boards = boards.collect::<Result<Vec<_>, _>>().map_err(|why| format!("--board-prefix: {why}"))?;
    let default_connections = if args.url.is_some() { HTTP_CONNECTIONS } else { 1 };
    Ok(Plan {
        spec: Spec {
            members: args.members,
            boards,
            distribution: args.distribution,
            ops: args.op.clone(),
            scores: 0..args.scores,
            jobs_per_message: args.jobs_per_message.into(),
            shards: args.shards,
            read_ratio: args.read_ratio,
            read_parameters: args.read_window.map(|window| format!("window={window}")).unwrap_or_default(),
            jobs: args.jobs,
            seed: args.seed,
        },
        target,
        read_url: args.read_url.clone(),
        token: args.client.token()?,
        tls,
        connections: args.connections.map_or(default_connections, usize::from),
        read_connections: args.read_connections.into(),
        rate: args.rate,
        duration: args.duration.or(args.jobs.is_none().then_some(DURATION)),
        warmup: args.warmup,
        visible: args.visible,
        give_up: args.give_up,
        error_ratio_max: args.limit_errors / 100.0,
    })
}

/// `uniform`, `zipf`, `zipf:1.2`.
fn distribution(text: &str) -> Result<Distribution, String> {
    let wrong = || {
        format!(
            "the distribution must be uniform, zipf, or zipf:S with S above 0 and at most 10; got {text:?}"
        )
    };
    match text.split_once(':') {
        None if text == "uniform" => Ok(Distribution::Uniform),
        None if text == "zipf" => Ok(Distribution::Zipf(0.99)),
        Some(("zipf", exponent)) => match exponent.parse::<f64>() {
            Ok(exponent) if exponent > 0.0 && exponent <= 10.0 => Ok(Distribution::Zipf(exponent)),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

/// `best`, `best=9,incr=1`.
fn ops(text: &str) -> Result<OpMix, String> {
    let shares = text.split(',').map(|part| {
        let (name, share) = part.split_once('=').unwrap_or((part, "1"));
        let op = Op::ALL.into_iter().find(|op| op.name() == name.trim());
        let op = op.ok_or_else(|| format!("the operation must be set, best or incr; got {name:?}"))?;
        let share = share
            .trim()
            .parse()
            .map_err(|_| format!("a share must be a whole number such as 9; got {share:?}"))?;
        Ok((op, share))
    });
    OpMix::new(shares.collect::<Result<_, String>>()?)
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
        Command::try_parse_from([&["load"], arguments].concat()).map(|command| command.args)
    }

    #[test]
    fn the_end_of_a_run_says_how_to_drop_its_boards() {
        let told = |arguments: &[&str], messages| {
            let args = parse(arguments).expect("well-formed");
            left_behind(&args, &plan(&args).expect("a good plan").spec.boards, messages)
        };
        let one = ["--url", "http://h:1/"];
        assert_eq!(
            told(&one, 5),
            "the board load0 was not dropped; to drop it: curl -X DELETE http://h:1/v1/boards/load0\n"
        );
        let several = ["--url", "http://h:1", "--boards", "3", "--board-prefix", "b"];
        let each = "curl -X DELETE http://h:1/v1/boards/b$n";
        let expect = format!(
            "the boards b0 to b2 were not dropped; to drop them: for n in $(seq 0 2); do {each}; done\n"
        );
        assert_eq!(told(&several, 5), expect);
        assert_eq!(told(&several, 0), "", "nothing was sent");
        let token = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(token.path(), "rkt_secret\n").expect("it can be written");
        let path = token.path().to_str().expect("it is UTF-8");
        let boards = plan(&parse(&one).expect("well-formed")).expect("a good plan").spec.boards;
        let args =
            parse(&["--url", "https://h:1", "--ca", "a.pem", "--token-file", path]).expect("well-formed");
        let secured = left_behind(&args, &boards, 5);
        let expect = "curl -X DELETE --cacert a.pem -H \"Authorization: Bearer $ADMIN_TOKEN\" https://h:1/v1/boards/load0\n";
        assert!(secured.ends_with(expect), "{secured}");
    }

    #[test]
    fn arguments_are_checked_before_anything_is_sent() {
        let http = ["--url", "http://127.0.0.1:8080"];
        let args = parse(&[&http[..], &["--op", "best=9,incr=1", "--distribution", "zipf:1.2"]].concat());
        let args = args.expect("well-formed");
        assert_eq!(args.op, OpMix::new(vec![(Op::Best, 9), (Op::Incr, 1)]).expect("good shares"));
        assert_eq!(args.distribution, Distribution::Zipf(1.2));
        let made = plan(&args).expect("a good plan");
        assert_eq!((made.duration, made.connections), (Some(DURATION), HTTP_CONNECTIONS));
        let counted = parse(&[&http[..], &["--jobs", "5"]].concat()).expect("well-formed");
        assert_eq!(plan(&counted).expect("a good plan").duration, None, "it ends after its jobs");
        for bad in [
            &["--op", "hide"][..],
            &["--op", "best=0"],
            &["--op", "best=x"],
            &["--distribution", "normal"],
            &["--distribution", "zipf:0"],
            &["--jobs-per-message", "1001"],
            &["--scores", "0"],
            &["--boards", "0"],
            &["--duration", "soon"],
            &["--windows", "all,year"],
            &["--windows", "season"],
            &["--read-window", "today"],
            &["--connections", "0"],
            // An argument is seen by everybody on the machine. Put together, since sources name no flags that
            // are not.
            &[concat!("--", "token"), "rkt_0123456789"],
        ] {
            assert!(parse(&[&http[..], bad].concat()).is_err(), "{bad:?}");
        }
        let twice =
            parse(&[&http[..], &["--read-url", "http://127.0.0.1:8081"]].concat()).expect("well-formed");
        let said = plan(&twice).expect_err("--url is where reads go").to_string();
        assert!(said.contains("--url and --read-url are both set"), "{said}");
        let nats = ["--nats", "nats://127.0.0.1:4222", "--prefix", "a.b"];
        let said = plan(&parse(&nats).expect("well-formed")).expect_err("no prefix").to_string();
        assert!(said.contains("--prefix must be 1 to 32"), "{said}");
        let nowhere = plan(&parse(&[]).expect("well-formed"));
        assert!(nowhere.is_err(), "there is no default target: it would be loaded by accident");
        let both = parse(&[&http[..], &["--nats", "nats://127.0.0.1:4222"]].concat()).expect("well-formed");
        let target = plan(&both).expect("a good plan").target;
        assert!(matches!(target, Target::Http { .. }), "{target:?}: the environment may name NATS");
        let bad = parse(&[&http[..], &["--board-prefix", "no spaces"]].concat()).expect("well-formed");
        assert!(plan(&bad).is_err());
    }
}
