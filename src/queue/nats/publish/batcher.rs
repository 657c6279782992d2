//! HTTP writes of the same moment share a message.
//!
//! Knows: while messages of a shard are on their way to the server, what is to be published next waits, and then goes as one: a
//! server that syncs each message does it once for all of them. Group commit, as the embedded queue has it. What fills a
//! message need not wait, and messages are sent one after the other, in the order in which their requests came. Must not
//! know: how a message is sent.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::job::Job;
use crate::queue::error::NotPublished;
use crate::queue::message_order::MessageOrder;
use crate::types::Sequence;
use crate::wire::encode;
use crate::writer::MessageOutcome;

/// Messages of a shard that may be on their way at once while others could still join the next...
const UNDER_WAY_MAX: usize = 2;
/// ...and if the next is full.
const FULL_UNDER_WAY_MAX: usize = 64;
/// Jobs in a shared message: as many as a message of one request has at most, for the same reason.
const JOBS_MAX: usize = 64;
/// Bytes in a shared message, if its server takes twice as many. A request of more goes by itself.
const BYTES_MAX: usize = 64 << 10;

/// Who waits for a request, and for what.
pub enum Answer {
    Stored(oneshot::Sender<Result<Sequence, NotPublished>>),
    Applied(oneshot::Sender<Result<MessageOutcome, NotPublished>>),
}

/// A request's jobs for one shard.
pub struct Request {
    /// As JSON, with commas between them.
    jobs: Vec<u8>,
    count: usize,
    /// Absent once it was told.
    answer: Option<Answer>,
    /// Hears of it too: messages of the same HTTP request may have to wait for this one.
    order: MessageOrder,
}

impl Request {
    pub fn new(jobs: &[Job], answer: Answer, order: MessageOrder) -> Self {
        let jobs_json: Vec<Vec<u8>> = jobs.iter().map(encode).collect();
        Self { jobs: jobs_json.join(&b','), count: jobs.len(), answer: Some(answer), order }
    }

    /// Its bytes in a message of its own.
    pub fn bytes(&self) -> usize {
        self.jobs.len() + 2
    }

    fn is_waited_for(&self) -> bool {
        match &self.answer {
            Some(Answer::Stored(to)) => !to.is_closed(),
            Some(Answer::Applied(to)) => !to.is_closed(),
            None => false,
        }
    }
}

/// Whether anybody waits for more than that they are stored.
pub fn want_outcome(requests: &[Request]) -> bool {
    requests.iter().any(|request| matches!(request.answer, Some(Answer::Applied(_))))
}

/// The body of a message with all their jobs, in order.
pub fn body(requests: &[Request]) -> Vec<u8> {
    if let [Request { jobs, count: 1, .. }] = requests {
        return jobs.clone();
    }
    let mut body = Vec::with_capacity(requests.iter().map(Request::bytes).sum());
    for (index, request) in requests.iter().enumerate() {
        body.push(if index == 0 { b'[' } else { b',' });
        body.extend_from_slice(&request.jobs);
    }
    body.push(b']');
    body
}

/// Says that a message is stored, to those who wait for no more, and to messages that wait to be sent after it.
pub fn tell_stored(requests: &mut [Request], sequence: Sequence) {
    for request in requests {
        request.order.tell(Ok(()));
        if let Some(Answer::Stored(to)) = request.answer.take_if(|answer| matches!(answer, Answer::Stored(_)))
        {
            // Whoever asked may have gone away.
            let _ = to.send(Ok(sequence));
        }
    }
}

/// Says what came of a message's jobs, to each of those who wait for that what came of his.
pub fn tell_applied(requests: Vec<Request>, outcome: Result<MessageOutcome, NotPublished>) {
    let (sequence, mut jobs) = match outcome {
        Ok(MessageOutcome { sequence, jobs, .. }) => (sequence, jobs.into_iter()),
        Err(why) => return refuse(requests, &why),
    };
    for request in requests {
        let jobs = jobs.by_ref().take(request.count).collect();
        if let Some(Answer::Applied(to)) = request.answer {
            let _ = to.send(Ok(MessageOutcome::of_jobs(sequence, jobs)));
        }
    }
}

/// Completes once nobody waits for any of them.
pub async fn all_leave(requests: &mut [Request]) {
    for request in requests {
        match &mut request.answer {
            Some(Answer::Stored(to)) => to.closed().await,
            Some(Answer::Applied(to)) => to.closed().await,
            None => {}
        }
    }
}

/// Says that a message was not published, or why nobody knows.
pub fn refuse(requests: Vec<Request>, why: &NotPublished) {
    for mut request in requests {
        request.order.tell(Err(why.clone()));
        match request.answer {
            Some(Answer::Stored(to)) => drop(to.send(Err(why.clone()))),
            Some(Answer::Applied(to)) => drop(to.send(Err(why.clone()))),
            None => {}
        }
    }
}

/// What waits to be sent.
#[derive(Default)]
pub struct Groups(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    requests: VecDeque<Request>,
    /// Jobs and bytes of all of them.
    jobs: usize,
    bytes: usize,
    /// Messages that were sent and not answered.
    under_way: usize,
    /// Somebody sends: nobody else may, or messages would overtake one another.
    is_sending: bool,
}

impl Waiting {
    fn may_send(&self, bytes_max: usize) -> bool {
        let is_full = self.jobs >= JOBS_MAX || self.bytes >= bytes_max;
        let most = if is_full { FULL_UNDER_WAY_MAX } else { UNDER_WAY_MAX };
        !self.requests.is_empty() && self.under_way < most
    }

    fn push(&mut self, request: Request) {
        self.jobs += request.count;
        self.bytes += request.jobs.len();
        self.requests.push_back(request);
    }

    /// Takes the first if it fits into what is left of a message.
    fn pop_if(&mut self, fits: impl FnOnce(&Request) -> bool) -> Option<Request> {
        let request = self.requests.front().is_some_and(fits).then(|| self.requests.pop_front())??;
        self.jobs -= request.count;
        self.bytes -= request.jobs.len();
        Some(request)
    }
}

fn bytes_max(payload_max: usize) -> usize {
    BYTES_MAX.min(payload_max / 2)
}

impl Groups {
    /// Puts a request behind the others.
    pub fn push(&self, request: Request) {
        self.0.lock().push(request);
    }

    /// The right to send, if nobody has it and there is something to send now.
    ///
    /// # Arguments
    /// `payload_max`: the most bytes that the server takes in a message.
    pub fn sending(self: &Arc<Self>, payload_max: usize) -> Option<Sending> {
        let mut waiting = self.0.lock();
        let may_send = !waiting.is_sending && waiting.may_send(bytes_max(payload_max));
        may_send.then(|| {
            waiting.is_sending = true;
            Sending { groups: Arc::clone(self), bytes_max: bytes_max(payload_max), is_over: false }
        })
    }
}

/// The right to send messages.
pub struct Sending {
    groups: Arc<Groups>,
    bytes_max: usize,
    is_over: bool,
}

impl Sending {
    /// The requests that share the next message; `None` ends it.
    pub fn next(&mut self) -> Option<(Vec<Request>, UnderWay)> {
        let mut waiting = self.groups.0.lock();
        while waiting.may_send(self.bytes_max) {
            let mut group: Vec<Request> = Vec::new();
            let (mut jobs, mut bytes) = (0, 0);
            let (mut is_first, bytes_max) = (true, self.bytes_max);
            while let Some(request) = waiting.pop_if(|request| {
                is_first || (jobs + request.count <= JOBS_MAX && bytes + request.jobs.len() <= bytes_max)
            }) {
                // Nobody is told that it was stored, so it need not be.
                if request.is_waited_for() {
                    is_first = false;
                    jobs += request.count;
                    bytes += request.jobs.len();
                    group.push(request);
                }
            }
            if !group.is_empty() {
                waiting.under_way += 1;
                return Some((group, UnderWay(Arc::clone(&self.groups))));
            }
        }
        // Under the same lock: whoever comes now may send.
        waiting.is_sending = false;
        self.is_over = true;
        None
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.is_over {
            // Its task was ended. Those who wait must hear of it, because nobody sends for them.
            let mut waiting = self.groups.0.lock();
            waiting.is_sending = false;
            (waiting.jobs, waiting.bytes) = (0, 0);
            waiting.requests.clear();
        }
    }
}

/// A message that is on its way.
pub struct UnderWay(Arc<Groups>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.0.lock().under_way -= 1;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::job::RejectCode;
    use crate::wire::decode_one;
    use crate::writer::JobOutcome;

    const PAYLOAD_MAX: usize = 1 << 20;

    type Stored = oneshot::Receiver<Result<Sequence, NotPublished>>;
    type Applied = oneshot::Receiver<Result<MessageOutcome, NotPublished>>;

    /// So many jobs of a member, each with so many bytes of metadata.
    fn jobs(member: &str, count: usize, bytes: usize) -> Vec<Job> {
        let job =
            json!({ "board": "arena", "member": member, "score": 1, "meta": { "m": "x".repeat(bytes) } });
        vec![decode_one(job.to_string().as_bytes()).expect("a job"); count]
    }

    fn stored(jobs: &[Job]) -> (Request, Stored) {
        let (answer, answered) = oneshot::channel();
        (Request::new(jobs, Answer::Stored(answer), MessageOrder::default()), answered)
    }

    fn applied(jobs: &[Job]) -> (Request, Applied) {
        let (answer, answered) = oneshot::channel();
        (Request::new(jobs, Answer::Applied(answer), MessageOrder::default()), answered)
    }

    /// The members of a message's jobs, in order.
    fn members(requests: &[Request]) -> Vec<String> {
        let member = |job: &Value| job["member"].as_str().expect("a member").to_owned();
        match serde_json::from_slice(&body(requests)).expect("JSON") {
            Value::Array(jobs) => jobs.iter().map(member).collect(),
            job => vec![member(&job)],
        }
    }

    struct Queue {
        groups: Arc<Groups>,
        waiting: Vec<Stored>,
    }

    impl Queue {
        fn new() -> Self {
            Self { groups: Arc::default(), waiting: Vec::new() }
        }

        fn push(&mut self, member: &str, count: usize) {
            let (request, answered) = stored(&jobs(member, count, 0));
            self.waiting.push(answered);
            self.groups.push(request);
        }

        /// Whose jobs go now, message by message.
        fn send(&self, payload_max: usize) -> Vec<(Vec<String>, UnderWay)> {
            let Some(mut sending) = self.groups.sending(payload_max) else { return Vec::new() };
            std::iter::from_fn(|| sending.next()).map(|(group, way)| (members(&group), way)).collect()
        }
    }

    fn sent(messages: &[(Vec<String>, UnderWay)]) -> Vec<String> {
        messages.iter().map(|(members, _)| members.join("")).collect()
    }

    #[test]
    fn what_comes_while_messages_are_under_way_shares_the_next_in_its_order() {
        let mut queue = Queue::new();
        queue.push("a", 1);
        let mut first = queue.send(PAYLOAD_MAX);
        queue.push("b", 2);
        let second = queue.send(PAYLOAD_MAX);
        assert_eq!((sent(&first), sent(&second)), (vec!["a".into()], vec!["bb".into()]));
        for member in ["c", "d", "e"] {
            queue.push(member, 1);
            assert!(queue.send(PAYLOAD_MAX).is_empty(), "two are under way");
        }
        first.clear();
        assert_eq!(sent(&queue.send(PAYLOAD_MAX)), ["cde"]);
    }

    #[test]
    fn what_fills_a_message_need_not_wait() {
        let mut queue = Queue::new();
        let mut under_way = Vec::new();
        for member in ["a", "b", "c"] {
            queue.push(member, 40);
            under_way.extend(queue.send(PAYLOAD_MAX));
        }
        assert_eq!(under_way.len(), 2);
        queue.push("d", 40);
        under_way.extend(queue.send(PAYLOAD_MAX));
        assert_eq!(sent(&under_way)[2..], ["c".repeat(40)], "with d there are more than 64 jobs");
        queue.push("e", 23);
        assert!(queue.send(PAYLOAD_MAX).is_empty(), "others may join d and e");
        queue.push("f", 64);
        under_way.extend(queue.send(PAYLOAD_MAX));
        assert_eq!(sent(&under_way)[3..], ["d".repeat(40) + &"e".repeat(23), "f".repeat(64)]);
        for _ in 0..100 {
            queue.push("g", 64);
            under_way.extend(queue.send(PAYLOAD_MAX));
        }
        assert_eq!(under_way.len(), FULL_UNDER_WAY_MAX);
    }

    #[test]
    fn only_one_sends_at_a_time() {
        let mut queue = Queue::new();
        queue.push("a", 1);
        let mut sending = queue.groups.sending(PAYLOAD_MAX).expect("nobody sends");
        queue.push("b", 1);
        assert!(queue.groups.sending(PAYLOAD_MAX).is_none());
        let (group, _under_way) = sending.next().expect("two requests");
        assert_eq!(members(&group), ["a", "b"]);
        assert!(sending.next().is_none());
        queue.push("c", 1);
        let mut sending = queue.groups.sending(PAYLOAD_MAX).expect("nobody sends any more");
        queue.push("d", 1);
        drop(sending.next());
        // One whose task is ended leaves nobody waiting for what nobody sends.
        queue.push("e", 1);
        drop(sending);
        assert!(
            queue
                .waiting
                .last_mut()
                .expect("e's")
                .try_recv()
                .is_err_and(|error| { error == oneshot::error::TryRecvError::Closed })
        );
        queue.push("f", 1);
        assert_eq!(sent(&queue.send(PAYLOAD_MAX)), ["f"]);
    }

    #[test]
    fn a_message_is_no_larger_than_its_server_takes_unless_one_request_is() {
        let groups = Arc::new(Groups::default());
        let mut waiting = Vec::new();
        for member in ["a", "b", "c", "d"] {
            let (request, answered) = stored(&jobs(member, 1, 900));
            waiting.push(answered);
            groups.push(request);
        }
        let mut sizes = Vec::new();
        for payload_max in [4_400, 1_000] {
            let mut sending = groups.sending(payload_max).expect("nobody sends");
            let mut group = || sending.next().map(|(group, _)| members(&group).join(""));
            sizes.push(std::iter::from_fn(&mut group).collect::<Vec<_>>());
            for member in ["e", "f"] {
                let (request, answered) = stored(&jobs(member, 1, 900));
                waiting.push(answered);
                groups.push(request);
            }
        }
        assert_eq!(sizes, [vec!["ab", "cd"], vec!["e", "f"]]);
    }

    #[test]
    fn who_has_left_before_it_was_published_is_not_published() {
        let groups = Arc::new(Groups::default());
        let (request, gone) = stored(&jobs("gone", 1, 0));
        groups.push(request);
        let (request, _there) = applied(&jobs("there", 1, 0));
        groups.push(request);
        drop(gone);
        let mut sending = groups.sending(PAYLOAD_MAX).expect("nobody sends");
        assert_eq!(members(&sending.next().expect("a request").0), ["there"]);
        assert!(sending.next().is_none());
        let (request, gone) = stored(&jobs("gone", 1, 0));
        groups.push(request);
        drop(gone);
        let mut sending = groups.sending(PAYLOAD_MAX).expect("nobody sends");
        assert!(sending.next().is_none());
    }

    #[test]
    fn everyone_is_told_of_his_own() {
        let reject = |code| JobOutcome::Rejected(crate::job::Reject::new(code, ""));
        let (one, mut one_is) = stored(&jobs("a", 2, 0));
        let (two, mut two_is) = applied(&jobs("b", 1, 0));
        let (three, mut three_is) = applied(&jobs("c", 2, 0));
        let mut group = vec![one, two, three];
        assert!(want_outcome(&group) && !want_outcome(&group[..1]));
        tell_stored(&mut group, Sequence(7));
        assert_eq!(one_is.try_recv(), Ok(Ok(Sequence(7))));
        assert!(two_is.try_recv().is_err(), "it waits for more");
        let codes = [
            RejectCode::Malformed,
            RejectCode::Malformed,
            RejectCode::BadScore,
            RejectCode::TooLarge,
            RejectCode::UnknownBoard,
        ];
        let outcome = MessageOutcome::of_jobs(Sequence(7), codes.map(reject).into());
        tell_applied(group, Ok(outcome));
        let own = |range: std::ops::Range<usize>| {
            MessageOutcome::of_jobs(Sequence(7), codes[range].iter().copied().map(reject).collect())
        };
        assert_eq!(two_is.try_recv(), Ok(Ok(own(2..3))));
        assert_eq!(three_is.try_recv(), Ok(Ok(own(3..5))));
    }

    #[test]
    fn all_are_told_why_it_was_not_published() {
        let (one, mut one_is) = stored(&jobs("a", 1, 0));
        let (two, mut two_is) = applied(&jobs("b", 1, 0));
        refuse(vec![one, two], &NotPublished::Overloaded);
        assert_eq!(one_is.try_recv(), Ok(Err(NotPublished::Overloaded)));
        assert_eq!(two_is.try_recv(), Ok(Err(NotPublished::Overloaded)));
    }

    #[tokio::test]
    async fn nobody_waits_once_the_last_has_left() {
        let (one, one_is) = applied(&jobs("a", 1, 0));
        let (two, two_is) = applied(&jobs("b", 1, 0));
        let mut group = [one, two];
        drop(one_is);
        tokio::select! {
            biased;
            () = all_leave(&mut group) => panic!("one is still there"),
            () = std::future::ready(()) => {}
        }
        drop(two_is);
        all_leave(&mut group).await;
    }
}
