//! HTTP writes of the same moment share a message.
//!
//! Knows: while messages of a shard are on their way to the server, what is to be published next waits, and then goes as one: a server
//! that syncs each message does it once for all of them. Group commit, as the embedded queue has it. Must not know: who
//! waits for what.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::job::Job;
use crate::queue::describe::describe;
use crate::queue::publisher::NotPublished;
use crate::types::Sequence;
use crate::writer::MessageOutcome;

/// Messages of a shard that may be on their way at once.
const UNDER_WAY_MAX: usize = 2;
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
}

impl Request {
    pub fn new(jobs: &[Job], answer: Answer) -> Self {
        let jobs_json: Vec<Vec<u8>> = jobs.iter().map(describe).collect();
        Self { jobs: jobs_json.join(&b','), count: jobs.len(), answer: Some(answer) }
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
    let jobs: Vec<&[u8]> =
        requests.iter().filter(|request| request.count > 0).map(|request| &*request.jobs).collect();
    [&b"["[..], &jobs.join(&b','), b"]"].concat()
}

/// Says that a message is stored, to those who wait for no more.
pub fn tell_stored(requests: &mut [Request], sequence: Sequence) {
    for request in requests {
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
        Ok(MessageOutcome { sequence, jobs }) => (sequence, jobs.into_iter()),
        Err(why) => return refuse(requests, &why),
    };
    for request in requests {
        let jobs = jobs.by_ref().take(request.count).collect();
        if let Some(Answer::Applied(to)) = request.answer {
            let _ = to.send(Ok(MessageOutcome { sequence, jobs }));
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
    for request in requests {
        match request.answer {
            Some(Answer::Stored(to)) => drop(to.send(Err(why.clone()))),
            Some(Answer::Applied(to)) => drop(to.send(Err(why.clone()))),
            None => {}
        }
    }
}

/// What waits for its turn.
#[derive(Default)]
pub struct Groups(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    requests: VecDeque<Request>,
    under_way: usize,
}

impl Groups {
    /// Puts a request behind the others. Whoever gets a [`Turn`] for it publishes groups until there are none.
    pub fn push(self: &Arc<Self>, request: Request) -> Option<Turn> {
        let mut waiting = self.0.lock();
        waiting.requests.push_back(request);
        (waiting.under_way < UNDER_WAY_MAX).then(|| {
            waiting.under_way += 1;
            Turn { groups: Arc::clone(self), is_over: false }
        })
    }
}

/// The right to have a message under way.
pub struct Turn {
    groups: Arc<Groups>,
    is_over: bool,
}

impl Turn {
    /// The requests that share the next message; `None` ends the turn.
    ///
    /// # Arguments
    /// `payload_max`: the most bytes that the server takes in a message.
    pub fn next(&mut self, payload_max: usize) -> Option<Vec<Request>> {
        let bytes_max = BYTES_MAX.min(payload_max / 2);
        let mut waiting = self.groups.0.lock();
        let mut group = Vec::new();
        let (mut jobs, mut bytes) = (0, 0);
        while let Some(request) = waiting.requests.pop_front() {
            // Nobody is told that it was stored, so it need not be.
            if !request.is_waited_for() {
                continue;
            }
            jobs += request.count;
            bytes += request.jobs.len();
            if !group.is_empty() && (jobs > JOBS_MAX || bytes > bytes_max) {
                waiting.requests.push_front(request);
                break;
            }
            group.push(request);
        }
        if group.is_empty() {
            // Under the same lock: whoever comes now gets a turn.
            waiting.under_way -= 1;
            self.is_over = true;
            return None;
        }
        Some(group)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.is_over {
            self.groups.0.lock().under_way -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::job::RejectCode;
    use crate::queue::describe::read_described;
    use crate::writer::JobOutcome;

    const PAYLOAD_MAX: usize = 1 << 20;

    type Stored = oneshot::Receiver<Result<Sequence, NotPublished>>;
    type Applied = oneshot::Receiver<Result<MessageOutcome, NotPublished>>;

    /// So many jobs of a member, each with so many bytes of metadata.
    fn jobs(member: &str, count: usize, bytes: usize) -> Vec<Job> {
        let job =
            json!({ "board": "arena", "member": member, "score": 1, "meta": { "m": "x".repeat(bytes) } });
        vec![read_described(job.to_string().as_bytes()).expect("a job"); count]
    }

    fn stored(jobs: &[Job]) -> (Request, Stored) {
        let (answer, answered) = oneshot::channel();
        (Request::new(jobs, Answer::Stored(answer)), answered)
    }

    fn applied(jobs: &[Job]) -> (Request, Applied) {
        let (answer, answered) = oneshot::channel();
        (Request::new(jobs, Answer::Applied(answer)), answered)
    }

    /// The members of a message's jobs, in order.
    fn members(requests: &[Request]) -> Vec<String> {
        let member = |job: &Value| job["member"].as_str().expect("a member").to_owned();
        match serde_json::from_slice(&body(requests)).expect("JSON") {
            Value::Array(jobs) => jobs.iter().map(member).collect(),
            job => vec![member(&job)],
        }
    }

    #[test]
    fn what_comes_while_messages_are_under_way_shares_the_next_in_its_order() {
        let groups = Arc::new(Groups::default());
        let mut waiting = Vec::new();
        let mut push = |member: &str, count: usize| {
            let (request, answered) = stored(&jobs(member, count, 0));
            waiting.push(answered);
            groups.push(request)
        };
        let mut first = push("a", 1).expect("nothing is under way");
        assert_eq!(members(&first.next(PAYLOAD_MAX).expect("a request")), ["a"]);
        let mut second = push("b", 2).expect("one is under way");
        assert_eq!(members(&second.next(PAYLOAD_MAX).expect("a request")), ["b", "b"]);
        for member in ["c", "d", "e"] {
            assert!(push(member, 1).is_none(), "two are under way");
        }
        assert!(push("f", 62).is_none());
        assert_eq!(members(&second.next(PAYLOAD_MAX).expect("requests")), ["c", "d", "e"], "64 jobs at most");
        assert_eq!(members(&first.next(PAYLOAD_MAX).expect("a request")).len(), 62);
        assert!(first.next(PAYLOAD_MAX).is_none());
        let mut third = push("g", 1).expect("a turn has ended");
        assert_eq!(members(&third.next(PAYLOAD_MAX).expect("a request")), ["g"]);
        // One that is lost is not under way any more.
        drop(third);
        assert!(push("h", 1).is_some());
    }

    #[test]
    fn a_message_is_no_larger_than_its_server_takes_unless_one_request_is() {
        let groups = Arc::new(Groups::default());
        let requests: Vec<_> = ["a", "b", "c", "d"].map(|member| stored(&jobs(member, 1, 900))).into();
        let (mut waiting, mut turn) = (Vec::new(), None);
        for (request, answered) in requests {
            waiting.push(answered);
            turn = turn.or(groups.push(request));
        }
        let mut turn = turn.expect("nothing is under way");
        let mut sizes = Vec::new();
        for payload_max in [4_400, 1_000, PAYLOAD_MAX] {
            sizes.push(members(&turn.next(payload_max).expect("requests")).join(""));
        }
        assert_eq!(sizes, ["ab", "c", "d"]);
    }

    #[test]
    fn who_has_left_before_it_was_published_is_not_published() {
        let groups = Arc::new(Groups::default());
        let (request, gone) = stored(&jobs("gone", 1, 0));
        let mut turn = groups.push(request).expect("nothing is under way");
        let (request, _there) = applied(&jobs("there", 1, 0));
        drop((gone, groups.push(request)));
        assert_eq!(members(&turn.next(PAYLOAD_MAX).expect("a request")), ["there"]);
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
        let outcome = MessageOutcome { sequence: Sequence(7), jobs: codes.map(reject).into() };
        tell_applied(group, Ok(outcome));
        let own = |range: std::ops::Range<usize>| MessageOutcome {
            sequence: Sequence(7),
            jobs: codes[range].iter().copied().map(reject).collect(),
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
