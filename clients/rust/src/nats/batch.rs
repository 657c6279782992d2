//! Which jobs share a message. Knows nothing of connections.

use std::collections::VecDeque;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::error::Error;
use crate::nats::PublishError;
use crate::tokens::shard_of;
use crate::types::Job;

/// Fixed, because ids of a `publish_many` follow from where it is cut into messages.
pub(super) const JOBS_MAX: usize = 1_000;
/// Every jobs stream takes messages of 128 KiB; the rest is for the headers.
pub(super) const BYTES_MAX: usize = 127 * 1_024;
const ID_MAX: usize = 512;

/// Jobs that go into one message, and who waits for it.
pub(super) struct Waiting {
    pub(super) jobs: Vec<Vec<u8>>,
    /// With the comma or bracket behind each.
    size: usize,
    /// Jobs without an id of the caller's may share a message with others.
    pub(super) message_id: Option<String>,
    /// Whether they are published although nobody waits for it.
    is_kept: bool,
    pub(super) stored: oneshot::Sender<Result<u64, PublishError>>,
    /// Room for others, once these are stored or given up.
    _permit: OwnedSemaphorePermit,
}

impl Waiting {
    pub(super) fn new(
        jobs: Vec<Vec<u8>>,
        message_id: Option<String>,
        is_kept: bool,
        stored: oneshot::Sender<Result<u64, PublishError>>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let size = jobs.iter().map(|job| job.len() + 1).sum();
        Self { jobs, size, message_id, is_kept, stored, _permit: permit }
    }
}

/// The next message: the first that waits, and those after it that fit into the same array.
pub(super) fn take(waiting: &mut VecDeque<Waiting>) -> Vec<Waiting> {
    let mut taken: Vec<Waiting> = Vec::new();
    let (mut jobs, mut size) = (0, 0);
    while let Some(one) = waiting.pop_front() {
        if !one.is_kept && one.stored.is_closed() {
            // Who waited for it has dropped the future.
            continue;
        }
        let is_alone = one.message_id.is_some();
        let fits = jobs + one.jobs.len() <= JOBS_MAX && size + one.size <= BYTES_MAX;
        if !taken.is_empty() && (is_alone || !fits) {
            waiting.push_front(one);
            break;
        }
        jobs += one.jobs.len();
        size += one.size;
        taken.push(one);
        if is_alone {
            break;
        }
    }
    taken
}

/// The JSON of the array of a message.
pub(super) fn payload(message: &[Waiting]) -> Vec<u8> {
    let mut text = Vec::with_capacity(1 + message.iter().map(|one| one.size).sum::<usize>());
    for job in message.iter().flat_map(|one| &one.jobs) {
        text.push(if text.is_empty() { b'[' } else { b',' });
        text.extend_from_slice(job);
    }
    text.push(b']');
    text
}

/// Arrays of at most as many jobs and bytes as a message may have.
pub(super) fn cut(jobs: Vec<Vec<u8>>) -> Vec<Vec<Vec<u8>>> {
    let mut found: Vec<Vec<Vec<u8>>> = Vec::new();
    let mut size = 0;
    for job in jobs {
        let more = job.len() + 1;
        match found.last_mut() {
            Some(last) if last.len() < JOBS_MAX && size + more <= BYTES_MAX => {
                size += more;
                last.push(job);
            }
            _ => {
                size = more;
                found.push(vec![job]);
            }
        }
    }
    found
}

/// A job as JSON.
pub(super) fn encode(job: &Job) -> Result<Vec<u8>, Error> {
    let text = serde_json::to_vec(job).expect("a job has text for keys, and finite numbers");
    if text.len() >= BYTES_MAX {
        return Err(Error::Argument(format!("a job has at most {BYTES_MAX} bytes; got {}", text.len())));
    }
    Ok(text)
}

pub(super) fn shard_of_job(job: &Job, shards: u32) -> Result<u32, Error> {
    if !(1..=256).contains(&job.member.len()) {
        return Err(Error::Argument(format!("a member's id is 1 to 256 bytes; got {:?}", job.member)));
    }
    shard_of(&job.member, shards).map_err(|error| Error::Argument(error.to_string()))
}

pub(super) fn check_id(message_id: Option<&str>) -> Result<(), Error> {
    let is_plain = |id: &str| {
        (1..=ID_MAX).contains(&id.len()) && id.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
    };
    match message_id {
        Some(id) if !is_plain(id) => {
            let told = format!("a message's id is 1 to {ID_MAX} printable ASCII characters; got {id:?}");
            Err(Error::Argument(told))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::*;

    type Outcome = oneshot::Receiver<Result<u64, PublishError>>;

    fn waiting(sizes: &[usize], id: Option<&str>, is_kept: bool) -> (Waiting, Outcome) {
        let (stored, outcome) = oneshot::channel();
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().expect("nobody else has it");
        let jobs = sizes.iter().map(|size| vec![b'x'; *size]).collect();
        (Waiting::new(jobs, id.map(str::to_owned), is_kept, stored, permit), outcome)
    }

    fn sizes_of_messages(mut queue: VecDeque<Waiting>) -> Vec<usize> {
        let messages = std::iter::from_fn(|| Some(take(&mut queue)).filter(|message| !message.is_empty()));
        messages.map(|message| message.len()).collect()
    }

    #[test]
    fn messages_hold_what_fits_and_ids_stand_alone() {
        let check = |given: Vec<(Waiting, Outcome)>, expected: &[usize]| {
            let (queue, _outcomes): (VecDeque<_>, Vec<_>) = given.into_iter().unzip();
            assert_eq!(sizes_of_messages(queue), expected);
        };
        check((0..2_001).map(|_| waiting(&[10], None, false)).collect(), &[1_000, 1_000, 1]);
        check((0..300).map(|_| waiting(&[1_023], None, false)).collect(), &[127, 127, 46]);
        let ids = [None, Some("a"), None, None, Some("b"), Some("c"), None];
        check(ids.into_iter().map(|id| waiting(&[10], id, false)).collect(), &[1, 1, 2, 1, 1, 1]);
        check(vec![waiting(&[BYTES_MAX - 1], None, false), waiting(&[1], None, false)], &[1, 1]);
    }

    #[test]
    fn jobs_that_nobody_waits_for_are_left_out_unless_they_were_submitted() {
        let mut queue = VecDeque::new();
        for (id, is_kept) in [(None, true), (None, false), (Some("a"), false), (Some("b"), true)] {
            let (one, outcome) = waiting(&[10], id, is_kept);
            drop(outcome);
            queue.push_back(one);
        }
        assert_eq!(sizes_of_messages(queue), [1, 1]);
    }

    #[test]
    fn arrays_are_cut_at_a_thousand_jobs_and_127_kib() {
        let check = |jobs: Vec<Vec<u8>>, expected: &[usize]| {
            let found = cut(jobs);
            assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), expected);
            for jobs in found {
                let size: usize = jobs.iter().map(|job| job.len() + 1).sum();
                assert!(size <= BYTES_MAX && jobs.len() <= JOBS_MAX, "{size} bytes in {} jobs", jobs.len());
            }
        };
        check(vec![vec![b'x'; 10]; 2_001], &[1_000, 1_000, 1]);
        check(vec![vec![b'x'; 1_023]; 128], &[127, 1]);
        check(vec![vec![b'x'; BYTES_MAX - 1]; 2], &[1, 1]);
        check(Vec::new(), &[]);
    }

    #[test]
    fn ids_are_printable() {
        for (id, expected) in
            [("match-1 p42", true), ("", false), ("a\n", false), ("é", false), (&*"x".repeat(513), false)]
        {
            assert_eq!(check_id(Some(id)).is_ok(), expected, "{id:?}");
        }
        check_id(None).expect("no id is needed");
    }

    #[test]
    fn payload_is_an_array() {
        let (one, _outcome) = waiting(&[2, 1], None, false);
        let (two, _other) = waiting(&[3], None, false);
        assert_eq!(payload(&[one, two]), b"[xx,x,xxx]");
    }
}
