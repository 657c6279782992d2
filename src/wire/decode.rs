//! From bytes to jobs: the fast path if it can read them, and the strict decoder otherwise.

use crate::job::{Job, Reject};
use crate::types::{BoardName, MemberId};
use crate::wire::fast_path;
use crate::wire::fast_path::BoardNames;
use crate::wire::strict::{self, Decoded, decode_strictly};

/// Decodes one job, or an array of 1 to [`MAX_JOBS_PER_MESSAGE`](crate::job::MAX_JOBS_PER_MESSAGE), in order.
///
/// # Errors
/// When the bytes are no JSON, or neither an object nor such an array: then there are no jobs.
pub fn decode(bytes: &[u8]) -> Result<Vec<Decoded>, Reject> {
    decode_with(&mut BoardNames::default(), bytes)
}

/// Decodes as [`decode`] does, with the board names of earlier messages.
pub fn decode_with(names: &mut BoardNames, bytes: &[u8]) -> Result<Vec<Decoded>, Reject> {
    let mut jobs = Vec::new();
    if decode_plain(names, bytes, |job| jobs.push(Ok(job))) { Ok(jobs) } else { decode_strictly(bytes) }
}

/// Decodes a message of jobs in their commonest form, and gives `each` to the caller in order. `false`: one
/// of them is not of that form, and what was given does not count; [`decode_strictly`] reads such a message.
pub fn decode_plain(names: &mut BoardNames, bytes: &[u8], each: impl FnMut(Job)) -> bool {
    fast_path::decode(names, bytes, each).is_some()
}

/// Decodes a job whose board and member the URL's path has named. The body may repeat them.
///
/// # Errors
/// When the bytes are no JSON, or no job, or name another board or member.
pub fn decode_for(bytes: &[u8], board: BoardName, member: MemberId) -> Decoded {
    fast_path::decode_for(bytes, board, member)
        .or_else(|(board, member)| strict::decode_for(bytes, board, member))
}

/// Decodes the one job that [`encode`](crate::wire::encode()) encoded; `None` if the bytes are anything else.
pub fn decode_one(bytes: &[u8]) -> Option<Job> {
    let mut jobs = decode(bytes).ok()?;
    let job = jobs.pop()?.ok()?;
    jobs.is_empty().then_some(job)
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
