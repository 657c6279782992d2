//! The publish batcher: writes of the same moment, over HTTP and by the write service, share a message.
//!
//! Knows: while messages of a shard are in flight, the next writes wait, and then go as one message. A server
//! that syncs each message then syncs once for all of them: group commit, as the embedded queue has it. Once
//! no message is in flight any more, those who were just answered are waited for a moment. Writes that fill a
//! message need not wait. Messages are sent one after the other, in the order in which
//! their requests came. Must not know: how a message is sent.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::yield_now;

use crate::job::{BOARDS_PER_MESSAGE, Job};
use crate::queue::error::NotPublished;
use crate::queue::gathering::Gathering;
use crate::queue::message_order::MessageOrder;
use crate::traces::{self, CALLERS_MAX, Kind, Span, TraceContext};
use crate::types::{Sequence, count};
use crate::wire::encode_into;
use crate::writer::{MessageOutcome, OutcomeDetail};

/// Messages of a shard that may be in flight while more writes can still join the next one. One server syncs
/// one message after the other, so a second one would only take writes from the next.
const IN_FLIGHT_MAX: usize = 1;
/// The same for a stream with replicas: a message takes long to reach them, and several go together. A write
/// waits for half of that on average, and not for all of it.
const IN_FLIGHT_REPLICATED_MAX: usize = 2;
/// Messages of a shard that may be in flight if the next one is full.
const FULL_IN_FLIGHT_MAX: usize = 64;
/// Turns of the event loop in a row by which no request came, after which no more are waited for. A turn that
/// brings nothing takes a microsecond or two, and clients that share the cores take some 30 each to come
/// back.
const EMPTY_TURNS_MAX: usize = 128;
/// On a thread that has other requests to answer, turns are long. There this many are enough, if no request
/// came for [`EMPTY_FOR`], which is what [`EMPTY_TURNS_MAX`] short ones take.
const LONG_EMPTY_TURNS_MAX: usize = 16;
const EMPTY_FOR: Duration = Duration::from_micros(250);
/// Jobs in a shared message: as many as a message of one request may have, for the same reason.
const JOBS_MAX: usize = 64;
/// Bytes in a shared message, if the server takes twice as many. A larger request has a message of its own.
const BYTES_MAX: usize = 64 << 10;
/// Most jobs are shorter, as JSON.
const JOB_BYTES: usize = 96;

/// What a request waits for, and where its reply goes.
pub enum ReplyTo {
    Stored(oneshot::Sender<Result<Sequence, NotPublished>>),
    Applied(oneshot::Sender<Result<MessageOutcome, NotPublished>>, OutcomeDetail),
}

/// The jobs of an HTTP request for one shard, or some of them.
pub struct PublishRequest {
    /// JSON, with commas between the jobs.
    jobs: Vec<u8>,
    count: usize,
    /// The boards of all of them, each counted for every job.
    boards: usize,
    /// Absent once the reply was sent.
    reply_to: Option<ReplyTo>,
    /// The request's order is told the outcome as well, because other messages of the same HTTP request may
    /// wait for this one.
    order: MessageOrder,
    /// Until the message is stored; `None` if the request is not sampled.
    span: Option<Span>,
}

impl PublishRequest {
    pub fn new(jobs: &[Job], reply_to: ReplyTo, order: MessageOrder) -> Self {
        let mut jobs_json = Vec::with_capacity(JOB_BYTES * jobs.len());
        for (index, job) in jobs.iter().enumerate() {
            if index > 0 {
                jobs_json.push(b',');
            }
            encode_into(&mut jobs_json, job);
        }
        let mut span = traces::child(Kind::Producer, "publish");
        if let Some(span) = &mut span {
            span.attribute("ranktree.jobs", count(jobs.len()));
        }
        let boards = jobs.iter().map(|job| job.boards_in_message(BOARDS_PER_MESSAGE)).sum();
        Self { jobs: jobs_json, count: jobs.len(), boards, reply_to: Some(reply_to), order, span }
    }

    /// The size of a message with this request alone.
    pub fn bytes(&self) -> usize {
        self.jobs.len() + 2
    }

    fn is_waited_for(&self) -> bool {
        match &self.reply_to {
            Some(ReplyTo::Stored(to)) => !to.is_closed(),
            Some(ReplyTo::Applied(to, _)) => !to.is_closed(),
            None => false,
        }
    }
}

/// The spans of the requests that are sampled, as a message names them.
pub fn callers(requests: &[PublishRequest]) -> Vec<TraceContext> {
    let spans = requests.iter().filter_map(|request| request.span.as_ref());
    spans.take(CALLERS_MAX).map(|span| span.context().clone()).collect()
}

/// What the requests want to be told of their jobs that wait until these are applied: the most of it. `None`:
/// none waits for that.
pub fn wanted_outcome(requests: &[PublishRequest]) -> Option<OutcomeDetail> {
    let mut wanted = None;
    for request in requests {
        match &request.reply_to {
            Some(ReplyTo::Applied(_, OutcomeDetail::Rankings | OutcomeDetail::Scores)) => {
                return Some(OutcomeDetail::Rankings);
            }
            Some(ReplyTo::Applied(_, OutcomeDetail::Changed)) => wanted = Some(OutcomeDetail::Changed),
            Some(ReplyTo::Stored(_)) | None => {}
        }
    }
    wanted
}

/// The body of a message with the jobs of all requests, in order.
pub fn body(requests: &[PublishRequest]) -> Vec<u8> {
    if let [PublishRequest { jobs, count: 1, .. }] = requests {
        return jobs.clone();
    }
    let mut body = Vec::with_capacity(requests.iter().map(PublishRequest::bytes).sum());
    for (index, request) in requests.iter().enumerate() {
        body.push(if index == 0 { b'[' } else { b',' });
        body.extend_from_slice(&request.jobs);
    }
    body.push(b']');
    body
}

/// Replies to the requests that wait until their message is stored, and releases messages that wait for this
/// one.
pub fn reply_stored(requests: &mut [PublishRequest], sequence: Sequence) {
    for request in requests {
        request.order.notify_later(Ok(()));
        if let Some(mut span) = request.span.take() {
            span.attribute("ranktree.sequence", sequence.0);
        }
        if let Some(ReplyTo::Stored(to)) =
            request.reply_to.take_if(|answer| matches!(answer, ReplyTo::Stored(_)))
        {
            // The client may have disconnected.
            let _ = to.send(Ok(sequence));
        }
    }
}

/// Replies to the requests that wait until their message is applied, to each with the outcomes of its own
/// jobs.
pub fn reply_applied(requests: Vec<PublishRequest>, outcome: Result<MessageOutcome, NotPublished>) {
    let (sequence, mut jobs) = match outcome {
        Ok(MessageOutcome { sequence, jobs, .. }) => (sequence, jobs.into_iter()),
        Err(why) => return refuse(requests, &why),
    };
    for request in requests {
        let jobs = jobs.by_ref().take(request.count).collect();
        if let Some(ReplyTo::Applied(to, _)) = request.reply_to {
            let _ = to.send(Ok(MessageOutcome::of_jobs(sequence, jobs)));
        }
    }
}

/// Completes once no client waits for a reply to any of the requests.
pub async fn all_disconnected(requests: &mut [PublishRequest]) {
    for request in requests {
        match &mut request.reply_to {
            Some(ReplyTo::Stored(to)) => to.closed().await,
            Some(ReplyTo::Applied(to, _)) => to.closed().await,
            None => {}
        }
    }
}

/// Replies to all requests that their message was not published, or that it is unknown whether it was.
pub fn refuse(requests: Vec<PublishRequest>, why: &NotPublished) {
    for mut request in requests {
        request.order.notify_later(Err(why.clone()));
        if let Some(span) = &mut request.span {
            span.fail(why.to_string());
        }
        match request.reply_to {
            Some(ReplyTo::Stored(to)) => drop(to.send(Err(why.clone()))),
            Some(ReplyTo::Applied(to, _)) => drop(to.send(Err(why.clone()))),
            None => {}
        }
    }
}

/// The requests of one shard that wait to be sent.
pub struct PublishBatcher {
    queue: Mutex<Queue>,
    in_flight_max: usize,
}

#[derive(Default)]
struct Queue {
    requests: VecDeque<PublishRequest>,
    /// Jobs, boards and bytes of all requests.
    jobs: usize,
    boards: usize,
    bytes: usize,
    /// Messages that were sent and not acknowledged.
    in_flight: usize,
    /// A send lease is out. There is one at a time, or messages would overtake one another.
    is_leased: bool,
    gathering: Gathering,
    /// How many requests are waited for while no message is in flight, and until when. `None`: for none.
    gathers: Option<(usize, Instant)>,
}

impl Queue {
    /// # Arguments
    /// - `in_flight_max`: how many messages may be in flight if the next one is not full
    /// - `bytes_max`: how many bytes fill a message
    fn may_send(&self, in_flight_max: usize, bytes_max: usize) -> bool {
        let most = if self.is_full(bytes_max) { FULL_IN_FLIGHT_MAX } else { in_flight_max };
        !self.requests.is_empty() && self.in_flight < most
    }

    /// Whether the next message is full.
    fn is_full(&self, bytes_max: usize) -> bool {
        self.jobs >= JOBS_MAX || self.boards >= BOARDS_PER_MESSAGE || self.bytes >= bytes_max
    }

    /// Whether as many are there as are waited for, or the time for that is over.
    fn has_gathered(&self, now: Instant) -> bool {
        self.gathers.is_none_or(|(wanted, until)| self.requests.len() >= wanted || now >= until)
    }

    /// A message is sent.
    ///
    /// # Arguments
    /// - `requests`: how many share it
    /// - `was_full`: whether there were enough for it, however many were waited for
    fn note_sent(&mut self, requests: usize, was_full: bool, now: Instant) {
        if self.in_flight == 0 {
            let (wanted, _) = self.gathers.take().unwrap_or((1, now));
            let found = if was_full { wanted.max(requests) } else { requests };
            self.gathering.end(wanted, found, requests, now);
        }
        self.in_flight += 1;
    }

    /// A message is in flight no longer.
    ///
    /// # Arguments
    /// `are_answered`: its clients are answered now, and may come back.
    fn note_stored(&mut self, are_answered: bool, now: Instant) {
        self.in_flight -= 1;
        self.gathers = (are_answered && self.in_flight == 0).then(|| {
            let (back, until) = self.gathering.begin_with_nearly_all(now);
            (self.requests.len() + back, until)
        });
    }

    fn push(&mut self, request: PublishRequest) {
        self.jobs += request.count;
        self.boards += request.boards;
        self.bytes += request.jobs.len();
        self.requests.push_back(request);
    }

    /// Takes the first request if it fits into the rest of a message.
    fn pop_if(&mut self, fits: impl FnOnce(&PublishRequest) -> bool) -> Option<PublishRequest> {
        let request = self.requests.front().is_some_and(fits).then(|| self.requests.pop_front())??;
        self.jobs -= request.count;
        self.boards -= request.boards;
        self.bytes -= request.jobs.len();
        Some(request)
    }
}

fn bytes_max(payload_max: usize) -> usize {
    BYTES_MAX.min(payload_max / 2)
}

impl PublishBatcher {
    /// # Arguments
    /// `replicas`: of the stream.
    pub fn new(replicas: usize) -> Self {
        let in_flight_max = if replicas > 1 { IN_FLIGHT_REPLICATED_MAX } else { IN_FLIGHT_MAX };
        Self { queue: Mutex::default(), in_flight_max }
    }

    /// Queues a request behind the others.
    pub fn push(&self, request: PublishRequest) {
        self.queue.lock().push(request);
    }

    /// The send lease, if it is not out and a message may be sent now.
    ///
    /// # Arguments
    /// `payload_max`: the most bytes that the server takes in a message.
    pub fn lease(self: &Arc<Self>, payload_max: usize) -> Option<SendLease> {
        let mut queue = self.queue.lock();
        let may_send = !queue.is_leased && queue.may_send(self.in_flight_max, bytes_max(payload_max));
        may_send.then(|| {
            queue.is_leased = true;
            SendLease { batcher: Arc::clone(self), bytes_max: bytes_max(payload_max), is_over: false }
        })
    }
}

/// The right to send messages of one shard.
pub struct SendLease {
    batcher: Arc<PublishBatcher>,
    bytes_max: usize,
    is_over: bool,
}

impl SendLease {
    /// Waits a moment for those who were just answered, if that was just now. The event loop that the caller
    /// is on goes on meanwhile, as it is what brings their requests.
    pub async fn gather(&self) {
        let (mut came, mut empty_turns, mut last_came) = (0, 0, Instant::now());
        loop {
            let now = Instant::now();
            let before = came;
            {
                let queue = self.batcher.queue.lock();
                if queue.is_full(self.bytes_max) || queue.has_gathered(now) {
                    return;
                }
                came = queue.requests.len();
            }
            if came > before {
                (empty_turns, last_came) = (0, now);
            } else {
                empty_turns += 1;
            }
            let are_long = now.saturating_duration_since(last_came) >= EMPTY_FOR;
            let most = if are_long { LONG_EMPTY_TURNS_MAX } else { EMPTY_TURNS_MAX };
            if empty_turns >= most {
                return;
            }
            yield_now().await;
        }
    }

    /// The requests that share the next message. `None`: nothing may be sent now, and the lease has ended.
    pub fn next(&mut self) -> Option<(Vec<PublishRequest>, InFlight)> {
        let mut queue = self.batcher.queue.lock();
        while queue.may_send(self.batcher.in_flight_max, self.bytes_max) {
            let was_full = queue.is_full(self.bytes_max);
            let mut group: Vec<PublishRequest> = Vec::new();
            let (mut jobs, mut boards, mut bytes) = (0, 0, 0);
            let (mut is_first, bytes_max) = (true, self.bytes_max);
            while let Some(request) = queue.pop_if(|request| {
                is_first
                    || (jobs + request.count <= JOBS_MAX
                        && boards + request.boards <= BOARDS_PER_MESSAGE
                        && bytes + request.jobs.len() <= bytes_max)
            }) {
                // A request whose client has disconnected need not be stored.
                if request.is_waited_for() {
                    is_first = false;
                    jobs += request.count;
                    boards += request.boards;
                    bytes += request.jobs.len();
                    group.push(request);
                }
            }
            if !group.is_empty() {
                queue.note_sent(group.len(), was_full, Instant::now());
                // With replicas, another message is in flight mostly. Who waits until its jobs are applied is
                // answered later.
                let are_answered = self.batcher.in_flight_max == 1 && wanted_outcome(&group).is_none();
                return Some((group, InFlight { batcher: Arc::clone(&self.batcher), are_answered }));
            }
        }
        // Under the same lock, so that the next request finds the lease free.
        queue.is_leased = false;
        self.is_over = true;
        None
    }
}

impl Drop for SendLease {
    fn drop(&mut self) {
        if !self.is_over {
            // The sending task was cancelled. Dropping the requests answers their clients.
            let mut queue = self.batcher.queue.lock();
            queue.is_leased = false;
            (queue.jobs, queue.boards, queue.bytes) = (0, 0, 0);
            queue.requests.clear();
        }
    }
}

/// A message that was sent and is not acknowledged yet.
pub struct InFlight {
    batcher: Arc<PublishBatcher>,
    /// Once it is stored, its clients are answered.
    are_answered: bool,
}

impl InFlight {
    /// It was not acknowledged in time: the next message goes without it, and waits for none of its clients.
    pub fn end_late(mut self) {
        self.are_answered = false;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.batcher.queue.lock().note_stored(self.are_answered, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::time::Duration;

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

    fn stored(jobs: &[Job]) -> (PublishRequest, Stored) {
        let (answer, answered) = oneshot::channel();
        (PublishRequest::new(jobs, ReplyTo::Stored(answer), MessageOrder::default()), answered)
    }

    fn applied(jobs: &[Job]) -> (PublishRequest, Applied) {
        let (answer, answered) = oneshot::channel();
        let reply_to = ReplyTo::Applied(answer, OutcomeDetail::Rankings);
        (PublishRequest::new(jobs, reply_to, MessageOrder::default()), answered)
    }

    /// The members of a message's jobs, in order.
    fn members(requests: &[PublishRequest]) -> Vec<String> {
        let member = |job: &Value| job["member"].as_str().expect("a member").to_owned();
        match serde_json::from_slice(&body(requests)).expect("JSON") {
            Value::Array(jobs) => jobs.iter().map(member).collect(),
            job => vec![member(&job)],
        }
    }

    struct Clients {
        batcher: Arc<PublishBatcher>,
        waiting: Vec<Stored>,
    }

    impl Clients {
        fn new() -> Self {
            Self::of(3)
        }

        fn of(replicas: usize) -> Self {
            Self { batcher: Arc::new(PublishBatcher::new(replicas)), waiting: Vec::new() }
        }

        fn push(&mut self, member: &str, count: usize) {
            let (request, answered) = stored(&jobs(member, count, 0));
            self.waiting.push(answered);
            self.batcher.push(request);
        }

        /// Whose jobs go now, message by message.
        fn send(&self, payload_max: usize) -> Vec<(Vec<String>, InFlight)> {
            let Some(mut lease) = self.batcher.lease(payload_max) else { return Vec::new() };
            std::iter::from_fn(|| lease.next())
                .map(|(group, in_flight)| (members(&group), in_flight))
                .collect()
        }
    }

    fn sent(messages: &[(Vec<String>, InFlight)]) -> Vec<String> {
        messages.iter().map(|(members, _)| members.join("")).collect()
    }

    #[test]
    fn writes_that_come_while_messages_are_in_flight_share_the_next_in_order() {
        let mut queue = Clients::new();
        queue.push("a", 1);
        let mut first = queue.send(PAYLOAD_MAX);
        queue.push("b", 2);
        let second = queue.send(PAYLOAD_MAX);
        assert_eq!((sent(&first), sent(&second)), (vec!["a".into()], vec!["bb".into()]));
        for member in ["c", "d", "e"] {
            queue.push(member, 1);
            assert!(queue.send(PAYLOAD_MAX).is_empty(), "two are in flight");
        }
        first.clear();
        assert_eq!(sent(&queue.send(PAYLOAD_MAX)), ["cde"]);
    }

    #[test]
    fn a_stream_without_replicas_has_one_shared_message_in_flight() {
        let mut queue = Clients::of(1);
        queue.push("a", 1);
        let mut first = queue.send(PAYLOAD_MAX);
        for member in ["b", "c"] {
            queue.push(member, 1);
            assert!(queue.send(PAYLOAD_MAX).is_empty(), "one is in flight");
        }
        first.clear();
        assert_eq!(sent(&queue.send(PAYLOAD_MAX)), ["bc"]);
    }

    #[test]
    fn writes_that_fill_a_message_need_not_wait() {
        let mut queue = Clients::new();
        let mut in_flight = Vec::new();
        for member in ["a", "b", "c"] {
            queue.push(member, 40);
            in_flight.extend(queue.send(PAYLOAD_MAX));
        }
        assert_eq!(in_flight.len(), 2);
        queue.push("d", 40);
        in_flight.extend(queue.send(PAYLOAD_MAX));
        assert_eq!(sent(&in_flight)[2..], ["c".repeat(40)], "with d there are more than 64 jobs");
        queue.push("e", 23);
        assert!(queue.send(PAYLOAD_MAX).is_empty(), "others may join d and e");
        queue.push("f", 64);
        in_flight.extend(queue.send(PAYLOAD_MAX));
        assert_eq!(sent(&in_flight)[3..], ["d".repeat(40) + &"e".repeat(23), "f".repeat(64)]);
        for _ in 0..100 {
            queue.push("g", 64);
            in_flight.extend(queue.send(PAYLOAD_MAX));
        }
        assert_eq!(in_flight.len(), FULL_IN_FLIGHT_MAX);
    }

    #[test]
    fn clients_that_were_just_answered_are_waited_for() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        let takes = Duration::from_millis(1);
        let push = |queue: &mut Queue, count: usize| {
            (0..count).for_each(|_| queue.push(stored(&jobs("a", 1, 0)).0));
        };
        let send = |queue: &mut Queue, now| {
            let requests = std::iter::from_fn(|| queue.pop_if(|_| true)).count();
            queue.note_sent(requests, false, now);
        };
        assert!(queue.has_gathered(now), "nobody was answered yet");
        push(&mut queue, 1);
        send(&mut queue, now);
        push(&mut queue, 49);
        queue.note_stored(true, now + takes);
        assert!(queue.has_gathered(now + takes), "who was alone is not waited for");
        send(&mut queue, now + takes);
        push(&mut queue, 1);
        queue.note_stored(true, now + 2 * takes);
        push(&mut queue, 44);
        assert!(!queue.has_gathered(now + 2 * takes), "49 were answered, of whom 44 are back");
        assert!(!queue.has_gathered(now + 4 * takes));
        assert!(queue.has_gathered(now + 5 * takes), "the others do not come back");
        push(&mut queue, 1);
        assert!(queue.has_gathered(now + 2 * takes), "nearly all are back");
        send(&mut queue, now + 2 * takes);
        assert!(queue.has_gathered(now + 2 * takes), "while one is in flight, nobody was just answered");
        // More come back than a message takes: it is full, and nobody stayed away.
        push(&mut queue, 30);
        queue.note_stored(true, now + 3 * takes);
        push(&mut queue, JOBS_MAX - 30);
        (0..JOBS_MAX).for_each(|_| drop(queue.pop_if(|_| true)));
        queue.note_sent(JOBS_MAX, true, now + 3 * takes);
        queue.note_stored(true, now + 4 * takes);
        let (wanted, _) = queue.gathers.expect("its clients are answered");
        assert_eq!(wanted, JOBS_MAX - JOBS_MAX / 10);
    }

    #[tokio::test]
    async fn a_wait_for_clients_ends_when_nobody_comes_and_when_a_message_is_full() {
        for (there, more) in [(1, 0), (1, 63)] {
            let mut queue = Clients::of(1);
            queue.push("a", 1);
            drop(queue.send(PAYLOAD_MAX));
            // As far as the clock goes, they are waited for without end.
            let never = Instant::now() + Duration::from_secs(3_600);
            queue.batcher.queue.lock().gathers = Some((JOBS_MAX + 1, never));
            queue.push("b", there);
            let mut lease = queue.batcher.lease(PAYLOAD_MAX).expect("none is in flight");
            if more > 0 {
                queue.push("c", more);
                let (mut gathered, mut context) = (pin!(lease.gather()), Context::from_waker(Waker::noop()));
                assert!(gathered.as_mut().poll(&mut context).is_ready(), "64 jobs fill a message");
            } else {
                lease.gather().await;
            }
            let (group, _in_flight) = lease.next().expect("it is sent all the same");
            assert_eq!(group.iter().map(|request| request.count).sum::<usize>(), there + more);
        }
    }

    #[test]
    fn a_wait_for_clients_ends_after_fewer_turns_if_these_are_long() {
        let mut queue = Clients::of(1);
        queue.push("a", 1);
        let never = Instant::now() + Duration::from_secs(3_600);
        queue.batcher.queue.lock().gathers = Some((JOBS_MAX, never));
        let lease = queue.batcher.lease(PAYLOAD_MAX).expect("none is in flight");
        let (mut gathered, mut context) = (pin!(lease.gather()), Context::from_waker(Waker::noop()));
        // In the first turn a request is found.
        for _ in 0..LONG_EMPTY_TURNS_MAX {
            assert!(gathered.as_mut().poll(&mut context).is_pending());
            std::thread::sleep(EMPTY_FOR);
        }
        assert!(gathered.as_mut().poll(&mut context).is_ready());
    }

    #[test]
    fn clients_are_waited_for_that_were_answered_in_time() {
        for is_late in [false, true] {
            let mut queue = Clients::of(1);
            for member in ["a", "b"] {
                queue.push(member, 1);
            }
            let (members, in_flight) = queue.send(PAYLOAD_MAX).pop().expect("it is sent");
            assert_eq!(members, ["a", "b"]);
            if is_late {
                in_flight.end_late();
            } else {
                drop(in_flight);
            }
            assert_eq!(queue.batcher.queue.lock().gathers.is_none(), is_late);
            queue.push("c", 1);
            assert_eq!(sent(&queue.send(PAYLOAD_MAX)), ["c"], "none is in flight");
        }
    }

    #[test]
    fn there_is_one_send_lease_at_a_time() {
        let mut queue = Clients::new();
        queue.push("a", 1);
        let mut lease = queue.batcher.lease(PAYLOAD_MAX).expect("the lease is free");
        queue.push("b", 1);
        assert!(queue.batcher.lease(PAYLOAD_MAX).is_none());
        let (group, _in_flight) = lease.next().expect("two requests");
        assert_eq!(members(&group), ["a", "b"]);
        assert!(lease.next().is_none());
        queue.push("c", 1);
        let mut lease = queue.batcher.lease(PAYLOAD_MAX).expect("the lease is over");
        queue.push("d", 1);
        drop(lease.next());
        // A lease that is dropped early leaves no client waiting.
        queue.push("e", 1);
        drop(lease);
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
    fn messages_fit_the_servers_limit_unless_one_request_does_not() {
        let batcher = Arc::new(PublishBatcher::new(1));
        let mut waiting = Vec::new();
        for member in ["a", "b", "c", "d"] {
            let (request, answered) = stored(&jobs(member, 1, 900));
            waiting.push(answered);
            batcher.push(request);
        }
        let mut sizes = Vec::new();
        for payload_max in [4_400, 1_000] {
            let mut lease = batcher.lease(payload_max).expect("the lease is free");
            let mut group = || lease.next().map(|(group, _)| members(&group).join(""));
            sizes.push(std::iter::from_fn(&mut group).collect::<Vec<_>>());
            for member in ["e", "f"] {
                let (request, answered) = stored(&jobs(member, 1, 900));
                waiting.push(answered);
                batcher.push(request);
            }
        }
        assert_eq!(sizes, [vec!["ab", "cd"], vec!["e", "f"]]);
    }

    #[test]
    fn writes_of_disconnected_clients_are_not_published() {
        let batcher = Arc::new(PublishBatcher::new(1));
        let (request, gone) = stored(&jobs("gone", 1, 0));
        batcher.push(request);
        let (request, _there) = applied(&jobs("there", 1, 0));
        batcher.push(request);
        drop(gone);
        let mut lease = batcher.lease(PAYLOAD_MAX).expect("the lease is free");
        assert_eq!(members(&lease.next().expect("a request").0), ["there"]);
        assert!(lease.next().is_none());
        let (request, gone) = stored(&jobs("gone", 1, 0));
        batcher.push(request);
        drop(gone);
        let mut lease = batcher.lease(PAYLOAD_MAX).expect("the lease is free");
        assert!(lease.next().is_none());
    }

    #[test]
    fn each_request_gets_the_outcomes_of_its_own_jobs() {
        let reject = |code| JobOutcome::Rejected(crate::job::Reject::new(code, ""));
        let (one, mut one_is) = stored(&jobs("a", 2, 0));
        let (two, mut two_is) = applied(&jobs("b", 1, 0));
        let (three, mut three_is) = applied(&jobs("c", 2, 0));
        let mut group = vec![one, two, three];
        assert_eq!(wanted_outcome(&group), Some(OutcomeDetail::Rankings));
        assert_eq!(wanted_outcome(&group[..1]), None);
        reply_stored(&mut group, Sequence(7));
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
        reply_applied(group, Ok(outcome));
        let own = |range: std::ops::Range<usize>| {
            MessageOutcome::of_jobs(Sequence(7), codes[range].iter().copied().map(reject).collect())
        };
        assert_eq!(two_is.try_recv(), Ok(Ok(own(2..3))));
        assert_eq!(three_is.try_recv(), Ok(Ok(own(3..5))));
    }

    /// What a lease that was cancelled had counted would make every later message a full one.
    #[test]
    fn nothing_is_counted_any_more_of_requests_whose_lease_was_cancelled() {
        let mut queue = Clients::of(1);
        let boards = (0..64).map(|board| (format!("board-{board}"), json!(1)));
        let job = json!({ "member": "a", "scores": boards.collect::<serde_json::Map<_, _>>() });
        let job = decode_one(job.to_string().as_bytes()).expect("a job");
        let (many, mut is_answered) = stored(&vec![job; BOARDS_PER_MESSAGE.div_ceil(64)]);
        queue.batcher.push(many);
        drop(queue.batcher.lease(PAYLOAD_MAX).expect("there is something to send"));
        assert!(is_answered.try_recv().is_err(), "its client is told that it was not stored");
        queue.push("b", 1);
        let in_flight = queue.send(PAYLOAD_MAX);
        assert_eq!(sent(&in_flight), ["b"]);
        queue.push("c", 1);
        assert!(queue.send(PAYLOAD_MAX).is_empty(), "it is no full message, so that others may join it");
    }

    #[test]
    fn all_requests_of_a_refused_message_are_told_why() {
        let (one, mut one_is) = stored(&jobs("a", 1, 0));
        let (two, mut two_is) = applied(&jobs("b", 1, 0));
        refuse(vec![one, two], &NotPublished::Overloaded);
        assert_eq!(one_is.try_recv(), Ok(Err(NotPublished::Overloaded)));
        assert_eq!(two_is.try_recv(), Ok(Err(NotPublished::Overloaded)));
    }

    #[tokio::test]
    async fn a_message_is_waited_for_until_its_last_client_disconnects() {
        let (one, one_is) = applied(&jobs("a", 1, 0));
        let (two, two_is) = applied(&jobs("b", 1, 0));
        let mut group = [one, two];
        drop(one_is);
        tokio::select! {
            biased;
            () = all_disconnected(&mut group) => panic!("one is still there"),
            () = std::future::ready(()) => {}
        }
        drop(two_is);
        all_disconnected(&mut group).await;
    }
}
