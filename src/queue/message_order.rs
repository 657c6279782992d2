//! The order of one request's messages that hold jobs of the same members.
//!
//! Knows: if a message was refused, later messages with jobs of its members must not be applied, or a
//! member's later job would overtake an earlier one. A queue on another machine may refuse a message while
//! the next one is in flight, so there a message waits for those before it ([`MessageOrder::wait`]). The
//! embedded queue checks when it hands a message on ([`MessageOrder::has_failed`]), so there no message
//! waits. Must not know: how a message is sent.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tokio::sync::watch;

use crate::job::MAX_JOBS_PER_MESSAGE;
use crate::queue::error::NotPublished;
use crate::types::MemberId;

/// Whether a message is stored; `None` while that is not known.
type Stored = Option<Result<(), NotPublished>>;

/// A message's place in that order. By default it neither follows nor precedes any.
#[derive(Default)]
pub struct MessageOrder {
    /// The last message before it with jobs of a member, for each of its members.
    earlier: Vec<watch::Receiver<Stored>>,
    /// Tells later messages whether this one is stored. `None` if there are no later messages, or after they
    /// were told.
    later: Option<watch::Sender<Stored>>,
    /// Whether any message of the request has failed. Absent where it is the only one.
    failed: Option<Arc<AtomicBool>>,
}

impl MessageOrder {
    /// The places of the messages of one request and shard, in the order of their jobs.
    ///
    /// # Arguments
    /// `messages`: for each message, the members of its jobs.
    pub fn of<'a, M: IntoIterator<Item = &'a MemberId>>(messages: impl IntoIterator<Item = M>) -> Vec<Self> {
        // Ids are other people's, so hashes are seeded; a request has a thousand of them at most.
        let mut last = HashMap::with_capacity_and_hasher(MAX_JOBS_PER_MESSAGE, RandomState::default());
        let mut earlier: Vec<BTreeSet<usize>> = Vec::new();
        for (index, members) in messages.into_iter().enumerate() {
            let before = members.into_iter().filter_map(|member| last.insert(member, index));
            earlier.push(before.filter(|before| *before != index).collect());
        }
        let failed = Arc::new(AtomicBool::new(false));
        let one = |_| Self { failed: Some(Arc::clone(&failed)), ..Self::default() };
        let mut orders: Vec<Self> = earlier.iter().map(one).collect();
        for (index, earlier) in earlier.into_iter().enumerate() {
            let heard = earlier.into_iter().filter_map(|before| {
                let later = &mut orders.get_mut(before)?.later;
                Some(later.get_or_insert_with(|| watch::Sender::new(None)).subscribe())
            });
            let heard = heard.collect();
            if let Some(order) = orders.get_mut(index) {
                order.earlier = heard;
            }
        }
        orders
    }

    /// The places of so many messages of one request in a queue that takes them in their order, and checks
    /// itself whether one before has failed.
    pub fn in_sequence(messages: usize) -> Vec<Self> {
        let failed = (messages > 1).then(|| Arc::new(AtomicBool::new(false)));
        (0..messages).map(|_| Self { failed: failed.clone(), ..Self::default() }).collect()
    }

    /// Waits until all messages are stored that go before this one.
    ///
    /// # Errors
    /// When one of them is not stored, or it is unknown whether it is. This one must not be sent then.
    pub async fn wait(&mut self) -> Result<(), NotPublished> {
        for mut earlier in std::mem::take(&mut self.earlier) {
            let stored = match earlier.wait_for(Option::is_some).await {
                Ok(stored) => stored.clone().unwrap_or(Ok(())),
                Err(_) => {
                    Err(NotPublished::Unavailable("an earlier job of the request was not sent".to_owned()))
                }
            };
            if let Err(why) = stored {
                let why = not_sent(why);
                self.notify_later(Err(why.clone()));
                return Err(why);
            }
        }
        Ok(())
    }

    /// Whether a message of the request has failed already.
    pub fn has_failed(&self) -> bool {
        self.failed.as_ref().is_some_and(|failed| failed.load(Ordering::Relaxed))
    }

    /// Notes that this message has failed.
    pub fn fail(&self) {
        if let Some(failed) = &self.failed {
            failed.store(true, Ordering::Relaxed);
        }
    }

    /// Whether there are other messages of the request.
    pub fn is_one_of_several(&self) -> bool {
        self.failed.is_some()
    }

    /// Tells the later messages whether this one is stored. Only the first call counts.
    pub fn notify_later(&mut self, stored: Result<(), NotPublished>) {
        if let Some(later) = self.later.take() {
            later.send_replace(Some(stored));
        }
    }
}

/// Why a message was not sent, if one before it was not stored. This one will certainly not be applied, even
/// if the earlier one is.
fn not_sent(why: NotPublished) -> NotPublished {
    match why {
        NotPublished::Unknown(_) | NotPublished::CommitFailed(_) => NotPublished::Unavailable(
            "this job was not sent, because an earlier job of the same member may not have been stored"
                .to_owned(),
        ),
        known => known,
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn orders(messages: &[&str]) -> Vec<MessageOrder> {
        let members: Vec<Vec<MemberId>> = messages
            .iter()
            .map(|members| members.split(' ').map(|id| MemberId::new(id).expect("a good id")).collect())
            .collect();
        MessageOrder::of(members.iter())
    }

    fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn messages_without_members_in_common_do_not_wait() {
        for order in &mut orders(&["a b a", "c d", "e"]) {
            assert_eq!(poll(order.wait()), Poll::Ready(Ok(())));
            assert!(order.later.is_none(), "nobody listens");
        }
    }

    #[test]
    fn a_message_waits_for_the_last_ones_of_its_members() {
        let mut orders = orders(&["a b", "c", "a c", "a b"]);
        let [first, second, third, fourth] = &mut orders[..] else { panic!("there are four") };
        assert_eq!(poll(second.wait()), Poll::Ready(Ok(())));
        let mut waiting = pin!(third.wait());
        let mut context = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        first.notify_later(Ok(()));
        assert!(waiting.as_mut().poll(&mut context).is_pending(), "c is not stored yet");
        second.notify_later(Ok(()));
        assert_eq!(waiting.as_mut().poll(&mut context), Poll::Ready(Ok(())));
        assert!(poll(fourth.wait()).is_pending());
    }

    #[test]
    fn messages_after_a_refused_one_are_refused() {
        let mut orders = orders(&["a", "a b", "b c", "d"]);
        let [first, second, third, fourth] = &mut orders[..] else { panic!("there are four") };
        let full = NotPublished::Full("full".to_owned());
        first.notify_later(Err(full.clone()));
        first.notify_later(Ok(()));
        assert_eq!(poll(second.wait()), Poll::Ready(Err(full.clone())));
        assert_eq!(poll(third.wait()), Poll::Ready(Err(full)));
        assert_eq!(poll(fourth.wait()), Poll::Ready(Ok(())));
    }

    #[test]
    fn messages_after_an_unknown_outcome_are_not_sent() {
        let mut orders = orders(&["a", "a", "a"]);
        let [first, second, third] = &mut orders[..] else { panic!("there are three") };
        first.notify_later(Err(NotPublished::Unknown("no answer".to_owned())));
        let Poll::Ready(Err(NotPublished::Unavailable(why))) = poll(second.wait()) else {
            panic!("it was not sent")
        };
        assert!(why.contains("was not sent"), "{why}");
        assert_eq!(poll(third.wait()), Poll::Ready(Err(NotPublished::Unavailable(why))));
    }

    #[test]
    fn messages_after_a_dropped_one_are_not_sent() {
        let mut orders = orders(&["a", "a"]);
        let mut second = orders.pop().expect("there are two");
        drop(orders);
        assert!(matches!(poll(second.wait()), Poll::Ready(Err(NotPublished::Unavailable(_)))));
    }
}
