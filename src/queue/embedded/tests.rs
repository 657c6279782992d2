//! Group commit, overload and the end of the embedded queue. The writer is played by the test: what a fetch
//! brings is what one commit would hold.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::job::{Boards, Metadata, Targets};
use crate::types::Timestamp;

const AT_ONCE: Duration = Duration::ZERO;

fn runtime() -> tokio::runtime::Runtime {
    // Of several threads, as the service's is: only such a one keeps time while the writer's thread waits.
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime starts")
}

fn job(id: &str) -> Job {
    let targets = Targets::Boards(Boards::new());
    let member = crate::types::MemberId::new(id).expect("a well-formed member id");
    Job { member, targets, op: None, version: None, at: None, meta: None, id: None }
}

fn outcome(message: &Message) -> MessageOutcome {
    MessageOutcome::of_jobs(message.sequence, Vec::new())
}

/// Lets a publisher come as far as it can without an answer.
fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn batch(source: &mut EmbeddedSource) -> Vec<Message> {
    let limits = source.limits();
    match source.fetch(limits, AT_ONCE) {
        Fetched::Batch(messages) => messages,
        Fetched::OriginChanged(_) | Fetched::Nothing => Vec::new(),
        Fetched::Ended => panic!("the queue is open"),
    }
}

fn members(messages: &[Message]) -> Vec<String> {
    let member = |message: &Message| match &message.payload {
        Payload::Jobs(jobs) => jobs[0].as_ref().expect("a job").member.to_string(),
        Payload::Define { .. }
        | Payload::Drop { .. }
        | Payload::Trim { .. }
        | Payload::Store(_)
        | Payload::Erase { .. }
        | Payload::Unpark { .. }
        | Payload::Tick => {
            panic!("only jobs were sent")
        }
    };
    messages.iter().map(member).collect()
}

#[test]
fn requests_that_wait_share_a_batch_and_each_has_its_own_answer() {
    let runtime = runtime();
    let (publisher, mut source) = channel();
    source.resume(Applied { sequence: Sequence(41), ..Applied::default() }, "").expect("it always can");
    let mut publishing: Vec<_> =
        ["a", "b", "c"].iter().map(|id| Box::pin(publisher.publish_jobs(vec![job(id)]))).collect();
    for one in &mut publishing {
        assert!(poll_once(one.as_mut()).is_pending());
    }
    let messages = batch(&mut source);
    assert_eq!(members(&messages), ["a", "b", "c"]);
    let sequences: Vec<u64> = messages.iter().map(|message| message.sequence.0).collect();
    assert_eq!(sequences, [42, 43, 44]);
    assert!(messages.windows(2).all(|pair| pair[0].timestamp <= pair[1].timestamp));
    assert!(source.needs_sync(), "an answer means durable");
    // Nobody has an answer before the commit.
    assert!(publishing.iter_mut().all(|one| poll_once(one.as_mut()).is_pending()));
    for message in messages {
        let applied = outcome(&message);
        message.answer.expect("somebody waits").send(Ok(applied)).expect("they wait still");
    }
    let answers: Vec<u64> =
        publishing.into_iter().map(|one| runtime.block_on(one).expect("committed").sequence.0).collect();
    assert_eq!(answers, [42, 43, 44]);
}

#[test]
fn a_batch_keeps_to_its_limits_and_what_is_over_them_comes_first_in_the_next() {
    let (publisher, mut source) = channel();
    let large = || Job { meta: Some(Metadata("x".repeat(1_000).into())), ..job("large") };
    let mut first = pin!(publisher.publish_jobs(vec![job("a"), job("a")]));
    let mut second = pin!(publisher.publish_jobs(vec![job("b"), job("b"), job("b")]));
    let mut third = pin!(publisher.publish_jobs(vec![large()]));
    let mut fourth = pin!(publisher.publish_jobs(vec![large()]));
    assert!(poll_once(first.as_mut()).is_pending());
    assert!(poll_once(second.as_mut()).is_pending());
    assert!(poll_once(third.as_mut()).is_pending());
    assert!(poll_once(fourth.as_mut()).is_pending());
    let limits = BatchLimits { jobs: 2, bytes: 1_500 };
    let mut sequences = Vec::new();
    let mut fetched = Vec::new();
    for _ in 0..4 {
        let Fetched::Batch(messages) = source.fetch(limits, AT_ONCE) else { panic!("there is more") };
        sequences.extend(messages.iter().map(|message| message.sequence.0));
        fetched.push(members(&messages));
    }
    // Three jobs are over the limit of two and admitted alone; metadata counts, so two large ones do not fit
    // together.
    assert_eq!(fetched, [["a"], ["b"], ["large"], ["large"]]);
    assert_eq!(sequences, [1, 2, 3, 4]);
    assert!(matches!(source.fetch(limits, AT_ONCE), Fetched::Nothing));
}

#[test]
fn a_full_queue_refuses_and_takes_requests_again_once_it_is_drained() {
    let (publisher, mut source) = channel();
    let mut waiting: Vec<_> =
        (0..WAITING_REQUESTS).map(|_| Box::pin(publisher.publish_jobs(vec![job("m")]))).collect();
    assert!(waiting.iter_mut().all(|one| poll_once(one.as_mut()).is_pending()));
    let refused = poll_once(pin!(publisher.publish_jobs(vec![job("late")])));
    assert_eq!(refused, Poll::Ready(Err(NotPublished::Overloaded)));
    assert!(!batch(&mut source).is_empty());
    assert!(poll_once(pin!(publisher.publish_jobs(vec![job("later")]))).is_pending());
}

/// Batches are full before everything is handed out: what is left over counts among what may wait.
#[test]
fn a_queue_with_full_batches_takes_no_more_than_may_wait() {
    let (publisher, mut source) = channel();
    let limits = BatchLimits { jobs: 10, ..source.limits() };
    let publish = || Box::pin(publisher.publish_jobs(vec![job("m")]));
    let mut waiting: Vec<_> = (0..WAITING_REQUESTS).map(|_| publish()).collect();
    assert!(waiting.iter_mut().all(|one| poll_once(one.as_mut()).is_pending()));
    for _ in 0..3 {
        let Fetched::Batch(batch) = source.fetch(limits, AT_ONCE) else { panic!("there is a batch") };
        let mut more: Vec<_> = (0..=batch.len()).map(|_| publish()).collect();
        let refused: usize = more.iter_mut().map(|one| usize::from(poll_once(one.as_mut()).is_ready())).sum();
        assert_eq!((batch.len(), refused), (10, 1));
        waiting.append(&mut more);
    }
}

#[test]
fn closing_drains_what_was_sent_and_refuses_what_comes_after() {
    let runtime = runtime();
    let (publisher, mut source) = channel();
    let mut before = pin!(publisher.publish_jobs(vec![job("before")]));
    assert!(poll_once(before.as_mut()).is_pending());
    publisher.close();
    let mut messages = batch(&mut source);
    assert_eq!(members(&messages), ["before"]);
    assert!(matches!(source.fetch(source.limits(), AT_ONCE), Fetched::Ended));
    let refused = poll_once(pin!(publisher.publish_jobs(vec![job("after")])));
    assert!(matches!(refused, Poll::Ready(Err(NotPublished::Unavailable(_)))), "{refused:?}");
    let message = messages.remove(0);
    let applied = outcome(&message);
    message.answer.expect("somebody waits").send(Ok(applied.clone())).expect("they wait still");
    assert_eq!(runtime.block_on(before), Ok(applied));
    publisher.close();
}

#[test]
fn nobody_is_left_waiting_once_the_writer_has_gone_and_no_writer_once_nobody_publishes() {
    let runtime = runtime();
    let (publisher, mut source) = channel();
    let (mut handed_out, mut waiting) =
        (pin!(publisher.publish_jobs(vec![job("a")])), pin!(publisher.publish_jobs(vec![job("b")])));
    assert!(poll_once(handed_out.as_mut()).is_pending());
    let messages = batch(&mut source);
    assert!(poll_once(waiting.as_mut()).is_pending());
    drop((messages, source));
    for one in [handed_out, waiting] {
        assert!(matches!(runtime.block_on(one), Err(NotPublished::Unavailable(_))));
    }
    let refused = poll_once(pin!(publisher.publish_jobs(vec![job("late")])));
    assert!(matches!(refused, Poll::Ready(Err(NotPublished::Unavailable(_)))), "{refused:?}");
    let (publisher, mut source) = channel();
    let other = publisher.clone();
    drop(publisher);
    assert!(matches!(source.fetch(source.limits(), AT_ONCE), Fetched::Nothing));
    drop(other);
    assert!(matches!(source.fetch(source.limits(), Duration::from_secs(600)), Fetched::Ended));
}

/// Those who were just answered come back at once, while the writer gathers. How many it waits for is tested
/// with `gathering`.
#[test]
fn all_who_come_back_together_are_answered_and_their_messages_are_in_order() {
    const PUBLISHERS: usize = 8;
    let (publisher, mut source) = channel();
    let rounds = 200;
    let publishing: Vec<_> = (0..PUBLISHERS)
        .map(|number| {
            let publisher = publisher.clone();
            std::thread::spawn(move || {
                let runtime = runtime();
                for _ in 0..rounds {
                    let sent = publisher.publish_jobs(vec![job(&format!("m{number}"))]);
                    runtime.block_on(sent).expect("it is answered");
                }
            })
        })
        .collect();
    drop(publisher);
    let mut sequences = Vec::new();
    let limits = source.limits();
    loop {
        match source.fetch(limits, Duration::from_secs(600)) {
            Fetched::Batch(messages) => {
                assert!(messages.len() <= PUBLISHERS);
                for message in messages {
                    sequences.push(message.sequence.0);
                    let applied = outcome(&message);
                    message.answer.expect("somebody waits").send(Ok(applied)).expect("they wait still");
                }
            }
            Fetched::Ended => break,
            Fetched::OriginChanged(_) | Fetched::Nothing => panic!("somebody publishes"),
        }
    }
    for one in publishing {
        one.join().expect("it was answered");
    }
    let all: Vec<u64> = (1..).take(PUBLISHERS * rounds).collect();
    assert_eq!(sequences, all);
}

#[test]
fn a_failed_commit_and_a_clock_that_was_ahead_are_told_and_borne() {
    let runtime = runtime();
    let (publisher, mut source) = channel();
    let ahead = Timestamp::MAX;
    source.resume(Applied { sequence: Sequence(7), timestamp: ahead, hash: 0 }, "").expect("it always can");
    let mut publishing = pin!(publisher.publish_jobs(vec![job("m")]));
    assert!(poll_once(publishing.as_mut()).is_pending());
    let message = batch(&mut source).remove(0);
    assert!(message.timestamp < ahead, "the queue says what the clock says; the shard's time is its own");
    let failed = CommitFailed { reason: "the disk is full".to_owned() };
    message.answer.expect("somebody waits").send(Err(failed.clone())).expect("they wait still");
    assert_eq!(runtime.block_on(publishing), Err(NotPublished::CommitFailed(failed)));
    // The failed message's sequence is given out again, for none may be missing.
    source.resume(Applied { sequence: Sequence(7), timestamp: ahead, hash: 0 }, "").expect("it always can");
    let mut publishing = pin!(publisher.publish_jobs(vec![job("m")]));
    assert!(poll_once(publishing.as_mut()).is_pending());
    assert_eq!(batch(&mut source).remove(0).sequence, Sequence(8));
}

/// Messages of a request that come in several batches: once one is refused, those behind it are not handed
/// on.
#[test]
fn what_follows_a_failed_message_of_its_request_is_not_handed_on() {
    let runtime = runtime();
    let (publisher, mut source) = channel();
    let ids = ["a", "b", "c", "d"].map(|id| crate::types::MemberId::new(id).expect("a good id"));
    let orders = MessageOrder::of(ids.iter().map(|id| [id]));
    let publish = |(id, order): (&crate::types::MemberId, MessageOrder)| {
        Box::pin(publisher.publish_in_order(vec![job(id.as_str())], order, OutcomeDetail::Rankings))
    };
    let mut publishing: Vec<_> = ids.iter().zip(orders).map(publish).collect();
    let mut other = pin!(publisher.publish_jobs(vec![job("other")]));
    assert!(publishing.iter_mut().all(|one| poll_once(one.as_mut()).is_pending()));
    assert!(poll_once(other.as_mut()).is_pending());
    let limits = BatchLimits { jobs: 1, bytes: 1 << 20 };
    let mut fetch = || {
        let Fetched::Batch(mut messages) = source.fetch(limits, AT_ONCE) else { return None };
        assert_eq!(messages.len(), 1);
        Some((members(&messages).remove(0), messages.remove(0).answer.expect("somebody waits")))
    };
    let (first, answer) = fetch().expect("there are five");
    let applied = MessageOutcome::of_jobs(Sequence(1), Vec::new());
    answer.send(Ok(applied.clone())).expect("they wait still");
    let (second, answer) = fetch().expect("there are four");
    let failed = CommitFailed { reason: "the disk is full".to_owned() };
    answer.send(Err(failed.clone())).expect("they wait still");
    // The one that was held back and those in the channel are told; what is not of the request goes on.
    let rest: Vec<String> = (0..4).filter_map(|_| fetch()).map(|(member, _)| member).collect();
    assert_eq!((first.as_str(), second.as_str(), rest), ("a", "b", vec!["other".to_owned()]));
    let outcomes: Vec<_> = publishing.into_iter().map(|one| runtime.block_on(one)).collect();
    assert_eq!(outcomes[..2], [Ok(applied), Err(NotPublished::CommitFailed(failed))]);
    for outcome in &outcomes[2..] {
        let Err(NotPublished::CommitFailed(why)) = outcome else { panic!("{outcome:?}") };
        assert!(why.reason.contains("was not applied"), "{why}");
    }
}
