//! A reply as messages. Most fit into one; a larger one is sent as several, in order, all made from the same
//! bytes.
//!
//! Each begins with a one, its place, and how many there are. NATS keeps the order of what one connection
//! publishes, so a part out of order means that one was lost, and with it the reply.

use bytes::Bytes;

use crate::cluster::questions::refusal::Refusal;
use crate::cluster::questions::wire::REPLY_BYTES_MAX;

const FRAME: u8 = 1;
const HEADER: usize = 3;
/// NATS lets through 1 MiB by default. Smaller parts would be more messages.
const PART_BYTES_MAX: usize = 1 << 20;
/// What NATS itself may need of the size of a message.
const SPARE: usize = 1 << 10;

/// The messages of a reply; `None` if there would be more than 255. `deploy/nats/ranktree.conf` lets a node
/// send as many (`allow_responses`).
///
/// # Arguments
/// `max_payload`: the largest message that the server lets through.
pub fn split(reply: &[u8], max_payload: usize) -> Option<Vec<Bytes>> {
    let each = max_payload.min(PART_BYTES_MAX).saturating_sub(SPARE).max(SPARE);
    let count = u8::try_from(reply.len().div_ceil(each).max(1)).ok()?;
    let part = |(index, chunk): (u8, &[u8])| {
        let mut message = Vec::with_capacity(HEADER + chunk.len());
        message.extend([FRAME, index, count]);
        message.extend_from_slice(chunk);
        Bytes::from(message)
    };
    if reply.is_empty() {
        return Some(vec![part((0, reply))]);
    }
    Some((0..).zip(reply.chunks(each)).map(part).collect())
}

/// What has arrived of a reply.
#[derive(Debug, Default)]
pub struct Parts {
    bytes: Vec<u8>,
    next: u8,
    count: Option<u8>,
}

/// A message that another node sent.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrived {
    /// All parts are there.
    Reply(Vec<u8>),
    Refused(Refusal),
    /// No node answers there.
    NobodyThere,
    /// It is no part of a reply.
    Garbage,
}

impl Parts {
    /// Takes the next message; `None`: there are more to come.
    pub fn take(&mut self, message: &[u8]) -> Option<Arrived> {
        let (index, count, chunk) = match message {
            [0, refusal @ ..] => return Some(Arrived::Refused(Refusal::decode(refusal))),
            [FRAME, index, count, chunk @ ..] => (*index, *count, chunk),
            _ => return Some(Arrived::Garbage),
        };
        let is_next = index == self.next && index < count && self.count.is_none_or(|known| known == count);
        if !is_next || self.bytes.len() + chunk.len() > REPLY_BYTES_MAX {
            return Some(Arrived::Garbage);
        }
        self.bytes.extend_from_slice(chunk);
        (self.next, self.count) = (index.saturating_add(1), Some(count));
        (self.next == count).then(|| Arrived::Reply(std::mem::take(&mut self.bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::questions::refusal::Reason;

    #[test]
    fn a_reply_of_any_length_arrives_as_it_was_sent() {
        for length in [0, 1, 1_024, 1_025, 5_000, 100_000] {
            let reply: Vec<u8> = (0..=255).cycle().take(length).collect();
            for max_payload in [2_048, 4_096, 1 << 20] {
                let messages = split(&reply, max_payload).expect("it is not too long");
                assert!(messages.iter().all(|message| message.len() <= max_payload));
                let mut parts = Parts::default();
                let (last, first) = messages.split_last().expect("there is one at least");
                for message in first {
                    assert_eq!(parts.take(message), None);
                }
                assert_eq!(parts.take(last), Some(Arrived::Reply(reply.clone())));
            }
        }
        assert_eq!(split(&vec![0; 1 << 20], 2_048), None, "there would be 1,024 parts");
    }

    #[test]
    fn a_reply_that_lacks_a_part_is_none() {
        let messages = split(&[7; 5_000], 2_048).expect("it is not too long");
        for missing in 0..messages.len() - 1 {
            let mut parts = Parts::default();
            let mut kept = messages.clone();
            kept.remove(missing);
            let arrived = kept.iter().find_map(|message| parts.take(message));
            assert_eq!(arrived, Some(Arrived::Garbage), "without {missing}");
        }
        for garbage in [&b""[..], b"{}", &[1], &[1, 0], &[1, 0, 0, 7], &[2, 0, 1, 7], &[1, 1, 2, 7]] {
            assert_eq!(Parts::default().take(garbage), Some(Arrived::Garbage), "{garbage:?}");
        }
        // A part of another reply.
        let mut parts = Parts::default();
        assert_eq!(parts.take(&[1, 0, 3, 7]), None);
        assert_eq!(parts.take(&[1, 1, 2, 7]), Some(Arrived::Garbage));
    }

    #[test]
    fn a_refusal_is_understood_in_all_formats() {
        for reason in [
            Reason::Overloaded,
            Reason::Ending,
            Reason::NotLevel,
            Reason::NotYetApplied,
            Reason::Format,
            Reason::Invalid,
            Reason::TooLarge,
            Reason::Unreadable,
            Reason::NoWrites,
            Reason::Unknown,
            Reason::OtherHistory,
            Reason::Other(99),
        ] {
            let refusal = Refusal::new(reason, "why");
            assert_eq!(Parts::default().take(&refusal.encode()), Some(Arrived::Refused(refusal)));
        }
        let long = Refusal::new(Reason::Invalid, "é".repeat(9_000)).encode();
        assert!(long.len() <= 514);
        assert!(matches!(Parts::default().take(&long), Some(Arrived::Refused(_))));
        assert!(matches!(Parts::default().take(&[0]), Some(Arrived::Refused(_))));
    }
}
