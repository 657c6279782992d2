//! What an operator can do about a server that has promised its storage to others.
//!
//! Knows: what streams reserve and hold. Must not know: which stream found no room, or why it is needed.

use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy, Info};
use async_nats::jetstream::{Error, ErrorCode};
use futures_util::TryStreamExt as _;

use crate::queue::nats::jetstream::JetStream;

/// How long the server is asked for its streams. A user who may not list them gets no answer.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);
/// Streams that are named.
const NAMED: usize = 3;
const MIB: u64 = 1 << 20;

/// Whether the server or the account has too little room for a stream, or limits streams to less.
pub fn is_no_room(error: &Error) -> bool {
    match error.error_code() {
        ErrorCode::INSUFFICIENT_RESOURCES
        | ErrorCode::STORAGE_RESOURCES_EXCEEDED
        | ErrorCode::ACCOUNT_RESOURCES_EXCEEDED
        | ErrorCode::STREAM_MAX_STREAM_BYTES_EXCEEDED => true,
        // A cluster gives this reason among others for finding no suitable server.
        ErrorCode::CLUSTER_NO_PEERS => error.to_string().contains("insufficient storage"),
        _ => false,
    }
}

/// A stream that keeps storage from others.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reservation {
    stream: String,
    /// Bytes that it may hold.
    limit: u64,
    /// Bytes that it holds.
    held: u64,
    /// Whether it refuses messages at its limit. Another one deletes its oldest.
    refuses: bool,
}

impl Reservation {
    fn of(Info { config, state, .. }: Info) -> Option<Self> {
        let Config { name, max_bytes, discard, .. } = config;
        let limit = u64::try_from(max_bytes).ok().filter(|limit| *limit > 0)?;
        Some(Self { stream: name, limit, held: state.bytes, refuses: discard == DiscardPolicy::New })
    }

    /// A limit, in bytes, that makes room and deletes nothing; `None` if the stream needs what it has.
    fn smaller_limit(&self) -> Option<u64> {
        let half = self.limit / 2;
        (self.refuses && self.held <= half / 2 && half >= 64 * MIB).then_some(half)
    }
}

impl JetStream {
    /// What makes room on the server, in words: the streams that keep most of it, and the command that takes
    /// some from one.
    pub(super) async fn advise_room(&self) -> String {
        let streams = self.managing.context.streams().try_collect::<Vec<_>>();
        let found = tokio::time::timeout(LIST_TIMEOUT, streams).await;
        advice(found.ok().and_then(Result::ok).into_iter().flatten().filter_map(Reservation::of).collect())
    }
}

fn advice(mut reservations: Vec<Reservation>) -> String {
    reservations.sort_by(|one, other| (other.limit, &one.stream).cmp(&(one.limit, &other.stream)));
    let named: Vec<_> = reservations
        .iter()
        .take(NAMED)
        .map(|one| format!("{} keeps {} MiB and holds {}", one.stream, one.limit / MIB, one.held / MIB))
        .collect();
    let (named, what) = if named.is_empty() {
        ("`nats stream ls` lists them".to_owned(), "NAME --max-bytes BYTES".to_owned())
    } else {
        let smaller = reservations.iter().find_map(|one| Some((one.stream.as_str(), one.smaller_limit()?)));
        let what = smaller.map_or_else(
            || "NAME --max-bytes BYTES".to_owned(),
            |(stream, limit)| format!("{stream} --max-bytes {limit}"),
        );
        (named.join(", "), what)
    };
    format!(
        "the server reserves storage for the limits of the existing streams, however little they hold, and too \
         little is left ({named}). Lower a limit with `nats stream edit {what}`, or raise max_file_store of the \
         server or the account's limit"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reservation(stream: &str, limit: u64, held: u64, refuses: bool) -> Reservation {
        Reservation { stream: stream.to_owned(), limit: limit * MIB, held: held * MIB, refuses }
    }

    #[test]
    fn the_largest_stream_that_can_give_some_is_named_with_what_it_gives() {
        let said = advice(vec![
            reservation("SMALL", 100, 0, true),
            reservation("FULL", 2000, 900, true),
            reservation("EVENTS", 3000, 1, false),
            reservation("FIRST_JOBS_0", 1024, 3, true),
        ]);
        assert!(said.contains("EVENTS keeps 3000 MiB and holds 1, FULL keeps 2000"), "{said}");
        assert!(!said.contains("SMALL"), "{said}");
        // Halving the limit of the others would delete messages, or refuse publishers soon.
        assert!(said.contains("nats stream edit FIRST_JOBS_0 --max-bytes 536870912`"), "{said}");
    }

    #[test]
    fn streams_that_cannot_be_listed_are_left_to_the_operator() {
        let said = advice(Vec::new());
        assert!(said.contains("nats stream ls") && said.contains("NAME --max-bytes BYTES"), "{said}");
    }
}
