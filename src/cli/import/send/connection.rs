//! Sends batches to the service, one after the other, and counts the outcome of their jobs.

use std::collections::BTreeSet;
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::cli::client::Client;
use crate::cli::import::ImportError;
use crate::cli::import::read::RejectedLine;
use crate::cli::import::send::answer::{InvalidJob, JobResult};
use crate::cli::import::send::batch::Batch;
use crate::cli::import::send::pending::Ticket;
use crate::cli::import::send::retries::{Ended, Retries, until_answered};
use crate::cli::import::send::service::Service;

/// Failures of a single job that mean that it was not applied.
const JOB_NOT_APPLIED: [&str; 1] = ["overloaded"];
/// The rejection of a row whose version was applied before.
const STALE: &str = "stale_version";

/// One keep-alive connection.
pub struct Connection<'a> {
    pub(super) service: &'a Service<'a>,
    pub(super) client: Client,
}

impl<'a> Connection<'a> {
    pub fn new(service: &'a Service<'a>) -> Self {
        Self { service, client: service.client.with_own_connections() }
    }

    /// Sends a batch until every job of it has an outcome. An answer about invalid jobs means that no job was
    /// applied: the invalid ones are taken out, and the rest is sent again. Jobs that failed while others did
    /// not are sent again too.
    ///
    /// # Errors
    /// When the import cannot go on.
    pub fn send(&self, mut batch: Batch) -> Result<(), ImportError> {
        // Of each job, an import only counts whether it changed anything. Ranks would cost the service more
        // than the jobs themselves.
        let url = format!("{}/v1/jobs?wait=applied&results=changed", self.client.base());
        let mut retries = Retries::new(self.service);
        while !batch.rows.is_empty() {
            let (first, last) = batch.places();
            let [first, last] = [first, last].map(|place| self.service.tally.place(place));
            let to = || self.client.base().to_owned();
            let post = || self.client.post(&url, batch.body());
            let (status, answer) = match until_answered(post, batch.is_repeatable(), &mut retries)? {
                Ended::Answered(status, answer) => (status, answer),
                Ended::OutcomeUnknown { reason } => {
                    return Err(ImportError::InDoubt { to: to(), first, last, reason });
                }
                Ended::Permanent { reason } => return Err(ImportError::Unusable { to: to(), reason }),
            };
            if let Some(changes) = &answer.changes {
                return self.count(&batch, changes, retries.sent_twice);
            } else if status.is_success() || !answer.results.is_empty() {
                self.settle(&mut batch, answer.results, &mut retries)?;
            } else if answer.errors.is_empty() {
                return Err(ImportError::Refused { to: to(), first, last, reason: answer.describe(status) });
            } else {
                self.take_out(&mut batch, answer.errors)?;
            }
        }
        Ok(())
    }

    /// All rows of a batch have an outcome.
    pub fn settled(&self, ticket: Ticket) {
        self.service.pending.settle(ticket);
    }

    /// The service's address.
    pub fn to(&self) -> String {
        self.client.base().to_owned()
    }

    pub(super) fn board_url(&self, board: &str) -> String {
        format!("{}/v1/boards/{}", self.client.base(), utf8_percent_encode(board, NON_ALPHANUMERIC))
    }

    /// Counts the outcome of jobs that were all applied.
    ///
    /// # Arguments
    /// - `changes`: whether each changed anything.
    /// - `sent_twice`: a request before this one may have applied them.
    fn count(&self, batch: &Batch, changes: &[bool], sent_twice: bool) -> Result<(), ImportError> {
        self.check_count(changes.len(), batch)?;
        let is_in_doubt = sent_twice && self.service.tally.tells_absent();
        let (mut applied, mut changed, mut repeated) = (0, 0, 0);
        let rows = batch.rows.iter().zip(changes).filter(|(row, _)| !row.is_repeat);
        for (_, has_changed) in rows {
            if is_in_doubt && !has_changed {
                repeated += 1;
            } else {
                applied += 1;
                changed += u64::from(*has_changed);
            }
        }
        self.service.tally.applied(applied, changed);
        self.service.tally.repeated(repeated);
        Ok(())
    }

    fn check_count(&self, found: usize, batch: &Batch) -> Result<(), ImportError> {
        let expected = batch.rows.len();
        if found == expected {
            return Ok(());
        }
        Err(self.service.not_understood(format!("the answer has {found} results for {expected} jobs")))
    }

    /// Counts the outcome of the jobs, and leaves those in the batch that are to be sent again.
    fn settle(
        &self,
        batch: &mut Batch,
        results: Vec<JobResult>,
        retries: &mut Retries<'a>,
    ) -> Result<(), ImportError> {
        self.check_count(results.len(), batch)?;
        let expected = batch.rows.len();
        let (mut applied, mut changed, mut repeated, mut outdated) = (0, 0, 0, 0);
        let mut sent_twice = retries.sent_twice;
        let mut rejected = Vec::new();
        let mut failed = Vec::new();
        let mut in_doubt = None;
        let mut last_reason = String::new();
        for (index, (row, result)) in batch.rows.iter().zip(results).enumerate() {
            if row.is_repeat && result.failed.is_none() {
                // The row itself is counted.
            } else if result.rejected.as_deref() == Some(STALE) && retries.sent_twice {
                repeated += 1;
            } else if result.rejected.as_deref() == Some(STALE) && self.service.tally.tells_absent() {
                outdated += 1;
            } else if let Some(code) = result.rejected {
                rejected.push(RejectedLine { place: row.place, code, detail: result.detail });
            } else if let Some(code) = result.failed {
                if row.adds && !JOB_NOT_APPLIED.contains(&code.as_str()) {
                    in_doubt.get_or_insert((row.place, row.place)).1 = row.place;
                }
                sent_twice |= !JOB_NOT_APPLIED.contains(&code.as_str());
                last_reason = format!("{code} {}", result.detail);
                failed.push(index);
            } else {
                let has_changed = result.changed || result.boards.values().any(|board| board.changed);
                if !has_changed && retries.sent_twice && self.service.tally.tells_absent() {
                    repeated += 1;
                } else {
                    applied += 1;
                    changed += u64::from(has_changed);
                }
            }
        }
        let progressed = failed.len() < expected;
        // Applied jobs are counted first: they stay applied, also if the import ends here.
        self.service.tally.applied(applied, changed);
        self.service.tally.repeated(repeated);
        self.service.tally.outdated(outdated);
        rejected.into_iter().try_for_each(|line| self.service.tally.rejected(line))?;
        if let Some((first, last)) = in_doubt {
            let [first, last] = [first, last].map(|place| self.service.tally.place(place));
            let to = self.client.base().to_owned();
            return Err(ImportError::InDoubt { to, first, last, reason: last_reason });
        }
        batch.retain(|index| failed.binary_search(&index).is_ok());
        if progressed {
            *retries = Retries::new(self.service);
        }
        retries.sent_twice = sent_twice;
        if batch.rows.is_empty() { Ok(()) } else { retries.wait(last_reason, Duration::ZERO) }
    }

    /// Reports invalid jobs, and leaves the others in the batch.
    fn take_out(&self, batch: &mut Batch, invalid: Vec<InvalidJob>) -> Result<(), ImportError> {
        let mut taken = BTreeSet::new();
        for InvalidJob { index, code, detail } in invalid {
            let Some(row) = batch.rows.get(index) else {
                let reason = format!("the answer has an error for job {index}, which was not sent");
                return Err(self.service.not_understood(reason));
            };
            // A second error about the same job adds nothing, and neither does one about its repetition.
            if taken.insert(index) && !row.is_repeat {
                self.service.tally.rejected(RejectedLine { place: row.place, code, detail })?;
            }
        }
        batch.retain(|index| !taken.contains(&index));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;

    use super::*;
    use crate::cli::client::RETRY_FOR;
    use crate::cli::import::progress::Progress;
    use crate::cli::import::read::Row;
    use crate::cli::import::read::row::Boards;
    use crate::cli::import::tally::Tally;
    use crate::config::ClientArgs;

    /// What the service does with one request.
    #[derive(Clone, Copy)]
    enum Reply {
        With(u16, &'static str),
        /// Reads the request and closes the connection.
        Break,
    }

    /// A service that gives these replies in turn, passes the bodies on, and ends.
    fn service(replies: Vec<Reply>) -> (String, Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (got, bodies) = channel();
        if replies.is_empty() {
            // Nobody ever accepts a connection.
            return (format!("http://{address}"), bodies);
        }
        thread::spawn(move || {
            for reply in replies {
                let (stream, _) = listener.accept().expect("a connection");
                let mut stream = BufReader::new(stream);
                let mut length = 0;
                let mut line = String::new();
                while stream.read_line(&mut line).expect("readable") > 2 {
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().expect("a length");
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).expect("readable");
                let _ = got.send(String::from_utf8(body).expect("JSON is UTF-8"));
                if let Reply::With(status, body) = reply {
                    let head =
                        format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close", body.len());
                    let answer = format!("{head}\r\nretry-after: 0\r\n\r\n{body}");
                    stream.get_mut().write_all(answer.as_bytes()).expect("writable");
                }
            }
        });
        (format!("http://{address}"), bodies)
    }

    /// Sends the jobs `0`, `1`, ... of lines 10, 11, ... as one batch; bodies received, and the summary or
    /// the error.
    fn send(replies: Vec<Reply>, jobs: u64, op: &str) -> (Vec<String>, Result<String, String>) {
        // Without a listener, the import's default applies.
        let retry_for = (!replies.is_empty()).then_some(Duration::from_secs(30));
        let (base, bodies) = service(replies);
        let tally = Tally::new(Progress::new(Arc::default(), None), None, None, Vec::new())
            .expect("no file to create");
        let client = Client::new(&base, &ClientArgs::default(), "import").expect("an address");
        if retry_for.is_some() {
            // An import greets the service first.
            client.note_answered();
        }
        let service = Service::new(client, retry_for, &tally);
        let row = |job: u64| Row::new(job + 10, job.to_string(), "m", Some(op), false, Boards::new());
        let batch = Batch::of(&(0..jobs).map(row).collect::<Vec<_>>());
        let sent =
            Connection::new(&service).send(batch).map_err(|error| error.to_string().replace(&base, "URL"));
        let summary = tally.finish(false).expect("no file to write").0;
        (bodies.try_iter().collect(), sent.map(|()| summary))
    }

    fn check(replies: Vec<Reply>, jobs: u64, bodies: &[&str], summary: &[&str]) {
        let (got, sent) = send(replies, jobs, "set");
        assert_eq!(got, bodies);
        let sent = sent.expect("the batch is settled");
        for line in summary {
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert!(sent.lines().any(|found| words(found) == words(line)), "{line:?} in {sent}");
        }
    }

    #[test]
    fn results_are_counted() {
        let answer = r#"{"token":"0:7","results":[{"changed":true,"entry":{},"previous":null},
            {"changed":false},{"rejected":"stale_version","detail":"7 is stored"}]}"#;
        check(
            vec![Reply::With(200, answer)],
            3,
            &["[0,1,2]"],
            &["applied 2", "changed 1", "rejected 1", "line 12: stale_version: 7 is stored"],
        );
    }

    #[test]
    fn invalid_jobs_are_taken_out_and_the_others_sent_again() {
        let refusal = r#"{"code":"invalid_jobs","errors":[{"index":2,"code":"bad_score","detail":"c"},
            {"index":0,"code":"malformed","detail":"a"},{"index":0,"code":"bad_score"}]}"#;
        check(
            vec![
                Reply::With(422, refusal),
                Reply::With(200, r#"{"results":[{"changed":true},{"changed":true}]}"#),
            ],
            4,
            &["[0,1,2,3]", "[1,3]"],
            &["applied 2", "rejected 2", "line 10: malformed: a", "line 12: bad_score: c"],
        );
        let all = r#"{"errors":[{"index":0,"code":"malformed","detail":"a"}]}"#;
        check(vec![Reply::With(422, all)], 1, &["[0]"], &["applied 0", "rejected 1"]);
    }

    #[test]
    fn jobs_are_sent_again_to_an_overloaded_service() {
        let overloaded = Reply::With(503, r#"{"code":"overloaded"}"#);
        let applied = Reply::With(200, r#"{"results":[{"changed":true}]}"#);
        check(vec![overloaded, overloaded, applied], 1, &["[0]"; 3], &["applied 1"]);
        let (bodies, sent) = send(vec![overloaded, applied], 1, "incr");
        assert_eq!(
            (bodies.len(), sent.is_ok()),
            (2, true),
            "nothing was applied, so that sending again is safe"
        );
    }

    #[test]
    fn a_batch_of_unknown_outcome_is_sent_again_only_if_that_changes_nothing() {
        for failure in [Reply::Break, Reply::With(500, "{}"), Reply::With(503, r#"{"code":"commit_failed"}"#)]
        {
            let applied = Reply::With(200, r#"{"results":[{"changed":true}]}"#);
            let (bodies, sent) = send(vec![failure, applied], 1, "incr");
            let error = sent.expect_err("nobody knows whether it was applied");
            assert!(error.starts_with("URL may or may not have applied line 10 to line 10"), "{error}");
            assert_eq!(bodies, ["[0]"]);
            check(vec![failure, applied], 1, &["[0]"; 2], &["applied 1"]);
        }
    }

    /// A reject of `stale_version` would send the operator looking for a mistake in the rows.
    #[test]
    fn rows_applied_before_their_answer_was_lost_count_as_sent_twice_and_not_as_rejected() {
        let stale = Reply::With(
            200,
            r#"{"results":[{"rejected":"stale_version","detail":"7 is stored"},{"changed":true}]}"#,
        );
        let twice = "sent twice 1 applied by a first request whose answer was lost";
        for lost in [Reply::Break, Reply::With(500, "{}")] {
            check(vec![lost, stale], 2, &["[0,1]"; 2], &["applied 1", twice, "rejected 0"]);
        }
        // Nothing of the batch was applied before: these versions are another writer's.
        let overloaded = Reply::With(503, r#"{"code":"overloaded"}"#);
        check(vec![overloaded, stale], 2, &["[0,1]"; 2], &["applied 1", "rejected 1", "stale_version 1"]);
        let partly = r#"{"results":[{"changed":true},{"failed":"commit_unknown","detail":"?"}]}"#;
        let again = Reply::With(200, r#"{"results":[{"rejected":"stale_version","detail":"7 is stored"}]}"#);
        check(
            vec![Reply::With(503, partly), again],
            2,
            &["[0,1]", "[1]"],
            &["applied 1", twice, "rejected 0"],
        );
    }

    #[test]
    fn a_refusal_or_a_strange_answer_ends_the_import() {
        for (reply, expect) in [
            (
                Reply::With(401, r#"{"code":"unauthorized","detail":"a token is needed"}"#),
                "URL refused a request, whose rows are among line 10 to line 10: 401 unauthorized a token is needed",
            ),
            (
                Reply::With(404, "nothing here"),
                "URL refused a request, whose rows are among line 10 to line 10: 404",
            ),
            (Reply::With(200, "hello"), "the answer of URL is not that"),
            (Reply::With(200, r#"{"results":[]}"#), "the answer of URL is not that"),
            (
                Reply::With(422, r#"{"errors":[{"index":1,"code":"malformed"}]}"#),
                "the answer of URL is not that",
            ),
        ] {
            let error = send(vec![reply], 1, "set").1.expect_err(expect);
            assert!(error.starts_with(expect), "{error}");
        }
    }

    #[test]
    fn jobs_that_failed_among_others_are_sent_again() {
        let partly = r#"{"code":"overloaded","token":"0:7","results":[{"changed":true},
            {"failed":"overloaded"},{"changed":false,"boards":{"b":{"changed":true}}},{"failed":"overloaded"}]}"#;
        let rest = Reply::With(200, r#"{"results":[{"changed":true},{"rejected":"stale_version"}]}"#);
        let counts = ["applied 3", "changed 3", "rejected 1"];
        check(vec![Reply::With(503, partly), rest], 4, &["[0,1,2,3]", "[1,3]"], &counts);
        let (bodies, sent) = send(vec![Reply::With(503, partly), rest], 4, "incr");
        assert_eq!((bodies.len(), sent.is_ok()), (2, true), "what was not applied may be sent again");

        let unknown = r#"{"results":[{"changed":true},{"failed":"commit_failed","detail":"disk full"}]}"#;
        let error = send(vec![Reply::With(503, unknown)], 2, "incr").1.expect_err("nobody knows");
        assert!(error.starts_with("URL may or may not have applied line 11 to line 11"), "{error}");
        let one = Reply::With(200, r#"{"results":[{"changed":true}]}"#);
        check(vec![Reply::With(503, unknown), one], 2, &["[0,1]", "[1]"], &["applied 2"]);
    }

    #[test]
    fn a_service_that_was_never_there_is_not_waited_for() {
        let (_, sent) = send(Vec::new(), 1, "set");
        let error = sent.expect_err("nobody is there");
        assert!(error.starts_with("nothing answers at URL: "), "{error}");
        assert!(
            error.ends_with("Check that the service runs there, or wait for it with --retry-for 60s"),
            "{error}"
        );
    }

    #[test]
    fn a_service_that_has_answered_once_is_waited_for() {
        let (base, _) = service(vec![Reply::With(404, "{}")]);
        let tally = Tally::new(Progress::new(Arc::default(), None), None, None, Vec::new())
            .expect("no file to create");
        let client = || Client::new(&base, &ClientArgs::default(), "import").expect("an address");
        let service = |retry_for| Service::new(client(), retry_for, &tally);
        let there = service(None);
        assert_eq!(there.retry_for(), None);
        assert!(Connection::new(&there).facts("b").is_ok_and(|facts| facts.is_there == Some(false)));
        assert_eq!(there.retry_for(), Some(RETRY_FOR));
        let asked = service(Some(Duration::ZERO));
        let error = Connection::new(&asked).facts("b").expect_err("nobody is there any more").to_string();
        let expected =
            format!("gave up on {base}, because the next try would come later than 0 s after the first");
        assert!(error.starts_with(&expected), "{error}");
    }
}
