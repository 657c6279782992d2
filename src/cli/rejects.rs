//! `ranktree rejects`: jobs that were refused, from a running service or the data of a stopped one, one and
//! the same.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cli::Failure;
use crate::cli::client::Reader;
use crate::cli::escaped::escaped_json;
use crate::cli::offline::Offline;
use crate::config::ClientArgs;
use crate::job::RejectCode;
use crate::query::is_reject_of;
use crate::queue::reject_text;
use crate::storage::codec::RejectRecord;
use crate::storage::{RejectsLimits, page_of_rejects};
use crate::types::{MemberId, ShardId};

/// Rejects asked for at a time.
const PAGE: usize = 1_000;

/// Lists jobs that were refused, the newest first, one JSON object a line: shard, sequence, index, time,
/// reason, detail and the job. With --url those of a running service, which takes a token with the scope read
/// where it asks for tokens; without, those in the data directory of a stopped one.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Ask a running service at this base URL, instead of reading the data of a stopped one
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// List rejects of this shard only
    #[arg(long, value_name = "N")]
    shard: Option<u16>,
    /// List rejects for this reason only: `unknown_board`, `bad_score`, `wrong_shard`, `malformed` and others
    #[arg(long, value_name = "REASON", value_parser = reason)]
    reason: Option<RejectCode>,
    /// List rejects of this member only: those that the erasure of the member reaches
    #[arg(long, value_name = "ID", value_parser = member)]
    member: Option<MemberId>,
    /// List at most this many rejects; without it, all
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    offline: Offline,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let listed = match &args.url {
        Some(url) => of_service(args, url, &mut out),
        None => of_directory(args, &mut out),
    };
    let listed = listed.and_then(|has_more| {
        out.flush()?;
        Ok(has_more)
    });
    match listed {
        // The reader closed the pipe and does not want the rest.
        Err(failure) if is_broken_pipe(&failure) => Ok(ExitCode::SUCCESS),
        listed => {
            if let (true, Some(limit)) = (listed?, args.limit) {
                eprintln!(
                    "these are the newest {limit}, and there may be more; leave out --limit to list all"
                );
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn is_broken_pipe(failure: &Failure) -> bool {
    failure.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[derive(Deserialize)]
struct Page<'a> {
    /// As the service writes them, which is as they are listed.
    #[serde(borrow)]
    rejects: Vec<&'a RawValue>,
    next_cursor: Option<String>,
}

/// Returns whether there may be more than the limit lets through.
fn of_service(args: &Args, url: &str, out: &mut impl Write) -> Result<bool, Failure> {
    let service = Reader::new(url, &args.client, "rejects")?;
    let shard = args.shard.map(|shard| format!("&shard={shard}")).unwrap_or_default();
    let reason = args.reason.map(|reason| format!("&reason={reason}")).unwrap_or_default();
    let encoded = |member: &MemberId| utf8_percent_encode(member.as_str(), NON_ALPHANUMERIC).to_string();
    let member = args.member.as_ref().map(encoded);
    let member = member.map(|member| format!("&member={member}")).unwrap_or_default();
    let filters = shard + &reason + &member;
    let (mut left, mut cursor) = (args.limit.unwrap_or(usize::MAX), String::new());
    while left > 0 {
        let url = format!("{}/v1/rejects?limit={}&cursor={cursor}{filters}", service.base(), left.min(PAGE));
        let answer = service.get(&url)?;
        let page: Result<Page<'_>, _> = serde_json::from_str(&answer);
        let page = page.map_err(|error| {
            format!("{url}: the answer is not that of a ranktree service: {error}; check the address")
        })?;
        for reject in &page.rejects {
            writeln!(out, "{}", escaped_json(reject.get()))?;
        }
        left = left.saturating_sub(page.rejects.len());
        let Some(next) = page.next_cursor else { return Ok(false) };
        // Where the filters leave much out, a page can be long in coming.
        out.flush()?;
        cursor = next;
    }
    Ok(true)
}

/// As [`of_service`].
fn of_directory(args: &Args, out: &mut impl Write) -> Result<bool, Failure> {
    let mut stores = args.offline.open_all()?;
    if let Some(shard) = args.shard {
        let shards = stores.len();
        stores.retain(|store| store.shard() == ShardId(shard));
        if stores.is_empty() {
            return Err(
                format!("there is no shard {shard}; the directory holds {shards}, numbered from 0").into()
            );
        }
    }
    let limits =
        RejectsLimits { rejects: args.limit.unwrap_or(usize::MAX), read: usize::MAX, bytes: usize::MAX };
    let mut written = Ok(());
    let is_wanted = |reject: &RejectRecord| {
        args.reason.is_none_or(|reason| reason == reject.code)
            && args.member.as_ref().is_none_or(|member| is_reject_of(member.as_str(), &reject.job))
    };
    let next = page_of_rejects(&stores, None, limits, |shard, reject| {
        if written.is_err() || !is_wanted(reject) {
            return None;
        }
        let text = reject_text(shard, reject);
        written = writeln!(out, "{}", escaped_json(&text));
        Some(text.len())
    })?;
    written?;
    Ok(next.is_some())
}

fn member(text: &str) -> Result<MemberId, String> {
    MemberId::new(text).map_err(|why| why.to_string())
}

fn reason(text: &str) -> Result<RejectCode, String> {
    let known = RejectCode::ALL.into_iter().find(|code| code.name() == text);
    known.ok_or_else(|| {
        let all = RejectCode::ALL.map(RejectCode::name).join(", ");
        format!("there is no such reason; the reasons are {all}")
    })
}
