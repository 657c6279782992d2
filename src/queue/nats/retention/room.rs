//! How full a shard's stream is, what holds the messages in it, and which setting would make room.
//!
//! Knows: a message stays because it is not applied, or no checkpoint holds it, or it is younger than the
//! stream's duplicate window, or another node needs it, or `--nats-keep` keeps it. Must not know: how a
//! stream is looked at (`task`), or what may be purged (`policy`).

use std::fmt::Write as _;

use crate::queue::nats::retention::policy::StreamSnapshot;
use crate::writer::{QueueLevel, QueueRoom, RetainedBy, RetainedMessages};

/// Above seven eighths a stream is nearly full: purges begin at three quarters, so the messages that are left
/// cannot go.
const NEARLY_FULL: (u64, u64) = (7, 8);
/// Above this share of its limit a stream refuses large messages already.
const FULL: (u64, u64) = (63, 64);

/// How far the shard is, in the stream's own sequences.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    pub applied: u64,
    /// What the last checkpoint holds.
    pub checkpoint: u64,
    /// The last message that is older than the duplicate window, as far as is known.
    pub past_duplicate_window: u64,
    /// The lowest floor of another owner.
    pub floor: u64,
    pub is_live: bool,
}

/// What the operator has set about purging, and why it failed last.
#[derive(Debug, Clone, Copy)]
pub struct Purging<'a> {
    pub stream: &'a str,
    /// `None`: nothing is ever purged.
    pub purge_keeps: Option<u64>,
    /// Which node needs messages, or why that is unknown.
    pub holder: Option<&'a str>,
    /// Why the last attempt to purge the stream failed.
    pub failure: Option<&'a str>,
}

/// Works out how full a stream is, and which reason holds how many of its messages.
///
/// # Arguments
/// `bytes_between`: bytes of the messages after one sequence, up to and including another.
pub fn room_of(
    snapshot: &StreamSnapshot,
    progress: Progress,
    purging: Purging<'_>,
    bytes_between: impl Fn(u64, u64) -> u64,
) -> QueueRoom {
    let begin = snapshot.first.saturating_sub(1).min(snapshot.last);
    let within = |sequence: u64| sequence.clamp(begin, snapshot.last);
    let applied = within(progress.applied);
    let checkpoint = within(progress.checkpoint).min(applied);
    let past_duplicate_window = within(progress.past_duplicate_window).min(checkpoint);
    let floor = within(progress.floor).min(past_duplicate_window);
    let ends = [snapshot.last, applied, checkpoint, past_duplicate_window, floor, begin];
    let mut held = RetainedBy::ALL.map(|by| RetainedMessages { by, messages: 0, bytes: 0 });
    let mut bytes_left = snapshot.bytes;
    for (part, (up_to, after)) in held.iter_mut().zip(ends.into_iter().zip(ends.into_iter().skip(1))) {
        part.messages = up_to - after;
        // The estimates must not add up to more than the stream holds.
        let estimate = if part.messages > 0 { bytes_between(after, up_to) } else { 0 };
        part.bytes = estimate.min(bytes_left);
        bytes_left -= part.bytes;
    }
    // The estimates must not add up to less either: the oldest messages get the rest.
    if let Some(oldest) = held.iter_mut().rfind(|part| part.messages > 0) {
        oldest.bytes += bytes_left;
    }
    let limit = |most: u64| (most > 0).then_some(most);
    let fills = |(part, of): (u64, u64)| {
        let fills = |is: u64, most: u64| {
            most > 0 && u128::from(is) * u128::from(of) > u128::from(most) * u128::from(part)
        };
        fills(snapshot.bytes, snapshot.bytes_max) || fills(snapshot.messages, snapshot.messages_max)
    };
    let level = if fills(FULL) {
        QueueLevel::Full
    } else if fills(NEARLY_FULL) {
        QueueLevel::NearlyFull
    } else {
        QueueLevel::Roomy
    };
    let mut room = QueueRoom {
        level,
        bytes: snapshot.bytes,
        bytes_max: limit(snapshot.bytes_max),
        messages: snapshot.messages,
        messages_max: limit(snapshot.messages_max),
        held,
        held_for: None,
        reason: String::new(),
        fault: None,
    };
    let is_held = room.held.iter().any(|part| part.by == RetainedBy::Nodes && part.messages > 0);
    room.held_for = purging.holder.filter(|_| is_held).map(str::to_owned);
    room.reason = reason(&room, progress, purging);
    room
}

fn reason(room: &QueueRoom, progress: Progress, purging: Purging<'_>) -> String {
    let stream = purging.stream;
    let of = |most: Option<u64>, show: fn(u64) -> String| {
        most.map(|most| format!(" of {}", show(most))).unwrap_or_default()
    };
    let mut text = format!(
        "the stream {stream} holds {}{}, {}{} messages",
        mib(room.bytes),
        of(room.bytes_max, mib),
        room.messages,
        of(room.messages_max, |most| most.to_string())
    );
    for part in room.held.iter().filter(|part| part.messages > 0) {
        let why = match part.by {
            RetainedBy::Lag => "not applied yet (lag)",
            RetainedBy::Checkpoint => "in no checkpoint yet",
            RetainedBy::DuplicateWindow => "younger than the duplicate window",
            RetainedBy::Nodes => "held for other nodes",
            RetainedBy::KeepSetting if purging.purge_keeps.is_none() => {
                "never purged, because of --nats-no-purge"
            }
            RetainedBy::KeepSetting => "kept by --nats-keep",
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "; {} in {} messages: {why}", mib(part.bytes), part.messages);
    }
    let most = |part: &&RetainedMessages| if room.bytes_max.is_some() { part.bytes } else { part.messages };
    let more_room = format!(
        "give the stream more room: a larger max_bytes of {stream} (nats stream edit), or --nats-stream-mib before it is created"
    );
    let advice = match room.held.iter().max_by_key(most).map(|part| part.by) {
        _ if purging.failure.is_some() => {
            format!("the last attempt to purge it failed: {}", purging.failure.unwrap_or_default())
        }
        Some(RetainedBy::Lag) if progress.is_live => {
            format!("the shard is behind its publishers; let it catch up, or {more_room}")
        }
        Some(RetainedBy::Lag) | None => {
            "the shard does not apply messages at present; its state in GET /v1/status says why".to_owned()
        }
        Some(RetainedBy::Nodes) => format!(
            "{}; see to that node, or wait until --nats-forget is over, or {more_room}",
            purging.holder.unwrap_or("another node needs them")
        ),
        Some(RetainedBy::KeepSetting) if purging.purge_keeps.is_none() => {
            format!(
                "this node does not purge it; purge it by other means (nats stream purge), or start a node without --nats-no-purge, or {more_room}"
            )
        }
        Some(RetainedBy::KeepSetting) => format!(
            "use a smaller --nats-keep than {}, or {more_room}",
            purging.purge_keeps.unwrap_or_default()
        ),
        Some(RetainedBy::Checkpoint) => {
            format!("the next checkpoint makes room, and the log says if it fails; or {more_room}")
        }
        Some(RetainedBy::DuplicateWindow) => {
            format!("use a shorter duplicate_window of {stream} (nats stream edit), or {more_room}")
        }
    };
    text + ". " + &advice
}

fn mib(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10).div_ceil(1 << 20);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// A stream of messages of 1,000 bytes each, of which a million bytes fit.
    fn look(first: u64, last: u64) -> StreamSnapshot {
        let messages = last + 1 - first;
        StreamSnapshot {
            at: Instant::now(),
            first,
            last,
            messages,
            bytes: messages * 1_000,
            bytes_max: 1_000_000,
            messages_max: 0,
            duplicate_window: Duration::from_secs(120),
        }
    }

    fn room(
        look: &StreamSnapshot,
        [applied, checkpoint, past_duplicate_window]: [u64; 3],
        keeps: Option<u64>,
    ) -> QueueRoom {
        let progress =
            Progress { applied, checkpoint, past_duplicate_window, floor: u64::MAX, is_live: true };
        let purging = Purging { stream: "S", purge_keeps: keeps, holder: None, failure: None };
        room_of(look, progress, purging, |after, up_to| (up_to - after) * 1_000)
    }

    fn parts(room: &QueueRoom) -> [u64; 5] {
        assert!(room.held.iter().all(|part| part.bytes == part.messages * 1_000), "{room:?}");
        assert_eq!(room.held.iter().map(|part| part.messages).sum::<u64>(), room.messages);
        room.held.map(|part| part.messages)
    }

    #[test]
    fn the_level_is_that_of_the_nearer_limit() {
        let level = |last| room(&look(1, last), [last, last, last], Some(0)).level;
        assert_eq!(
            [level(875), level(876), level(984), level(985), level(1_000)],
            [
                QueueLevel::Roomy,
                QueueLevel::NearlyFull,
                QueueLevel::NearlyFull,
                QueueLevel::Full,
                QueueLevel::Full
            ]
        );
        let level = |last| {
            let limited = StreamSnapshot { messages_max: 100, ..look(1, last) };
            room(&limited, [last, last, last], Some(0)).level
        };
        assert_eq!(
            [level(87), level(88), level(99)],
            [QueueLevel::Roomy, QueueLevel::NearlyFull, QueueLevel::Full]
        );
        let endless = StreamSnapshot { bytes_max: 0, ..look(1, 10_000) };
        assert_eq!(room(&endless, [0; 3], Some(0)).level, QueueLevel::Roomy);
    }

    #[test]
    fn every_message_is_held_for_one_reason() {
        assert_eq!(parts(&room(&look(101, 1_000), [900, 700, 400], Some(0))), [100, 200, 300, 0, 300]);
        // Younger than the window as far as is known, in no checkpoint, not applied; whatever comes first
        // counts.
        assert_eq!(parts(&room(&look(101, 1_000), [900, 700, 950], Some(0))), [100, 200, 0, 0, 600]);
        assert_eq!(parts(&room(&look(101, 1_000), [900, 950, 0], Some(0))), [100, 0, 800, 0, 0]);
        assert_eq!(parts(&room(&look(101, 1_000), [50, 50, 50], Some(0))), [900, 0, 0, 0, 0]);
        // The shard is beyond the stream's end, or the stream is empty.
        assert_eq!(parts(&room(&look(101, 1_000), [5_000, 5_000, 5_000], Some(0))), [0, 0, 0, 0, 900]);
        assert_eq!(parts(&room(&look(1_001, 1_000), [1_000, 700, 400], Some(0))), [0; 5]);
    }

    #[test]
    fn messages_held_for_other_nodes_are_reported_with_the_node() {
        let held = |floor| {
            let progress =
                Progress { applied: 900, checkpoint: 900, past_duplicate_window: 800, floor, is_live: true };
            let holder = Some("the node n needs messages from 300 on");
            let purging = Purging { stream: "S", purge_keeps: Some(0), holder, failure: None };
            room_of(&look(101, 1_000), progress, purging, |after, up_to| (up_to - after) * 1_000)
        };
        let room = held(300);
        assert_eq!(parts(&room), [100, 0, 100, 500, 200]);
        assert_eq!(room.held_for.as_deref(), Some("the node n needs messages from 300 on"));
        assert!(room.reason.contains("500 messages: held for other nodes"), "{}", room.reason);
        assert!(room.reason.contains("the node n needs messages from 300 on; see to"), "{}", room.reason);
        let room = held(850);
        assert_eq!((parts(&room), room.held_for), ([100, 0, 100, 0, 700], None));
    }

    #[test]
    fn the_reason_says_what_holds_most_and_which_setting_helps() {
        let reason = |progress, keeps| room(&look(1, 1_000), progress, keeps).reason;
        let begins = "the stream S holds 1.0 MiB of 1.0 MiB, 1000 messages; ";
        for (progress, keeps, expected) in [
            ([100, 0, 0], Some(5), ["900 messages: not applied yet (lag)", "--nats-stream-mib"]),
            ([900, 100, 0], Some(5), ["800 messages: in no checkpoint yet", "checkpoint makes room"]),
            (
                [900, 900, 100],
                Some(5),
                ["800 messages: younger than the duplicate window", "a shorter duplicate_window of S"],
            ),
            ([900, 900, 900], Some(5), ["900 messages: kept by --nats-keep", "a smaller --nats-keep than 5"]),
            ([900, 900, 900], None, ["900 messages: never purged", "without --nats-no-purge"]),
        ] {
            let said = reason(progress, keeps);
            assert!(said.starts_with(begins), "{said}");
            for part in expected {
                assert!(said.contains(part), "{part}: {said}");
            }
        }
        let progress =
            Progress { applied: 0, checkpoint: 0, past_duplicate_window: 0, floor: u64::MAX, is_live: false };
        let purging = Purging { stream: "S", purge_keeps: Some(5), holder: None, failure: None };
        let halted = room_of(&look(1, 1_000), progress, purging, |_, _| 0);
        assert!(halted.reason.contains("does not apply messages"), "{}", halted.reason);
        let failed = Purging { failure: Some("no permission"), ..purging };
        let failed = room_of(&look(1, 1_000), Progress { is_live: true, ..progress }, failed, |_, _| 0);
        assert!(
            failed.reason.ends_with("the last attempt to purge it failed: no permission"),
            "{}",
            failed.reason
        );
    }
}
