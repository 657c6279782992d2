//! The audit log: whose token made a change that others will ask about.
//!
//! A change is noted when its outcome is known. If the client leaves before, it is noted then, since what was
//! published is applied all the same. Knows: the request that asks for the change. Must not know: how it is
//! made.

use std::net::IpAddr;

use axum::http::Method;

use crate::http::render::problem::Problem;
use crate::job::{Job, Op, Targets};
use crate::operations::Failure;

/// Jobs in a line of the log.
const JOBS_PER_LINE: usize = 50;

/// A change that is being made. It is noted with [`Change::finish`], or when it is dropped.
#[must_use]
pub struct Change {
    /// What the log says.
    what: &'static str,
    /// Whose change it is; `None` where no tokens are needed, or when it is noted.
    author: Option<Author>,
    /// Whether the request consents to what is refused otherwise.
    forced: bool,
    /// The jobs that it consists of; empty if the path says it all.
    jobs: Vec<String>,
    /// What of the body is told: which board it is about, and why.
    about: Option<Box<(Option<String>, Option<String>)>>,
}

/// Whose request asks for a change.
pub struct Author {
    pub token: String,
    pub client: Option<IpAddr>,
    pub method: Method,
    pub path: String,
}

impl Change {
    pub fn new(what: &'static str, author: Option<Author>) -> Self {
        Self { what, author, forced: false, jobs: Vec::new(), about: None }
    }

    /// The same change, of which more is known by now.
    pub fn named(mut self, what: &'static str) -> Self {
        self.what = what;
        self
    }

    /// The same change, asked for with `?force=true` or without.
    pub fn forced(mut self, forced: bool) -> Self {
        self.forced = forced;
        self
    }

    /// The same change, of which the body says the board and the reason.
    pub fn about(mut self, board: Option<&str>, reason: Option<&str>) -> Self {
        self.about = Some(Box::new((board.map(str::to_owned), reason.map(str::to_owned))));
        self
    }

    /// Those of the jobs that take entries away, or hide or show them; `None` if no job does. In a box, as
    /// most requests have none.
    ///
    /// # Arguments
    /// `author`: made only if there are such jobs.
    pub fn of_jobs(jobs: &[Job], author: impl FnOnce() -> Option<Author>) -> Option<Box<Self>> {
        let is_noted = |job: &&Job| matches!(job.op, Some(Op::Remove | Op::Hide | Op::Show));
        jobs.iter().find(is_noted)?;
        let author = Some(author()?);
        let jobs = jobs.iter().filter(is_noted).map(text_of).collect();
        let what = "jobs that remove, hide or show entries were sent";
        Some(Box::new(Self { what, author, forced: false, jobs, about: None }))
    }

    /// Notes what came of it. What was refused before anything was changed is not noted.
    pub fn finish<T>(mut self, outcome: &Result<T, Problem>) {
        let Some(author) = self.author.take() else { return };
        match outcome {
            Ok(_) => self.note(&author, None),
            // Some shards may have the change already, or get it yet.
            Err(problem) if problem.status() >= 500 => self.note(&author, Some(problem.code())),
            Err(_) => {}
        }
    }

    /// As [`Change::finish`], of an operation.
    pub fn finish_operation<T>(self, outcome: &Result<T, Failure>) {
        self.finish(&outcome.as_ref().map_err(|why| Problem::from(why.clone())));
    }

    /// # Arguments
    /// `failed`: why it may have been made in part only.
    fn note(&self, author: &Author, failed: Option<&'static str>) {
        let Author { token, client, method, path } = author;
        let (board, reason) = self
            .about
            .as_deref()
            .map_or((None, None), |(board, reason)| (board.as_deref(), reason.as_deref()));
        let line = |jobs: Option<String>| {
            tracing::info!(
                token,
                client = client.map(tracing::field::display),
                method = method.as_str(),
                ?path,
                board,
                reason = reason.map(tracing::field::debug),
                force = self.forced.then_some(true),
                jobs,
                failed,
                "{}",
                self.what
            );
        };
        if self.jobs.is_empty() {
            line(None);
        }
        self.jobs.chunks(JOBS_PER_LINE).for_each(|jobs| line(Some(jobs.join(", "))));
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        if let Some(author) = self.author.take() {
            self.note(&author, Some("the client left before the outcome was known"));
        }
    }
}

/// A job as the log has it. Ids are quoted, and what would end a line in them is escaped.
fn text_of(job: &Job) -> String {
    let (op, member) = (job.op.map_or("", Op::name), job.member.as_str());
    match &job.targets {
        Targets::Boards(boards) => {
            let boards: Vec<String> =
                boards.iter().map(|(board, _)| format!("{:?}", board.as_str())).collect();
            format!("{op} {member:?} on {}", boards.join(" and "))
        }
        Targets::EveryBoard | Targets::Profile(_) => format!("{op} {member:?} on every board"),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;
    use crate::wire::decode_strictly;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What is logged meanwhile.
    fn logged(work: impl FnOnce()) -> Vec<String> {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, work);
        let text = String::from_utf8_lossy(&lines.0.lock()).replace("\\\"", "\"");
        text.lines().map(str::to_owned).collect()
    }

    fn author() -> Author {
        let (token, path) = ("game".to_owned(), "/v1/jobs".to_owned());
        Author { token, client: Some(Ipv4Addr::LOCALHOST.into()), method: Method::POST, path }
    }

    fn jobs(text: &str) -> Vec<Job> {
        let decoded = decode_strictly(text.as_bytes()).expect("a list");
        decoded.into_iter().map(|job| job.expect("a good job")).collect()
    }

    #[test]
    fn a_change_is_noted_once_whatever_becomes_of_it_unless_it_was_refused() {
        const LEFT: &str = "the client left";
        let change = || Change::new("a board was dropped", Some(author()));
        for (lines, part) in [
            (logged(|| change().finish(&Ok(()))), Some("path=\"/v1/jobs\"")),
            (logged(|| change().finish::<()>(&Err(Failure::Unanswered.into()))), Some("commit_unknown")),
            (logged(|| drop(change())), Some(LEFT)),
            (logged(|| change().finish::<()>(&Err(Problem::unknown_board()))), None),
            (logged(|| drop(Change::new("a board was dropped", None))), None),
            (logged(|| change().forced(true).finish(&Ok(()))), Some("force=true")),
            (logged(|| drop(change().forced(true))), Some("force=true")),
        ] {
            assert_eq!(lines.len(), usize::from(part.is_some()), "{lines:?}");
            let says_force = lines.concat().contains("force");
            assert_eq!(says_force, part == Some("force=true"), "{lines:?}");
            for part in part.iter().chain(&["a board was dropped", "token=\"game\"", "client=127.0.0.1"]) {
                assert!(lines.first().is_none_or(|line| line.contains(part)), "{part} in {lines:?}");
            }
        }
    }

    #[test]
    fn jobs_that_take_away_are_noted_each_and_others_are_not() {
        let taking = jobs(
            r#"[{"board":"a","member":"m","score":1},{"board":"a","member":"m\"n","op":"remove"},
                {"member":"m","op":"remove"},{"board":"b","member":"m","op":"hide"},
                {"board":"b","member":"m","op":"show"},{"member":"m","op":"profile","profile":{}}]"#,
        );
        let change = || Change::of_jobs(&taking, || Some(author())).expect("there are such jobs");
        let lines = logged(|| change().finish(&Ok(())));
        assert_eq!(lines.len(), 1, "{lines:?}");
        for part in [
            r#"remove "m"#,
            r#"n" on "a", remove "m" on every board, hide "m" on "b", show "m" on "b""#,
            "game",
        ] {
            assert!(lines[0].contains(part), "{part} in {lines:?}");
        }
        let scores = jobs(r#"[{"board":"a","member":"m","score":1},{"board":"a","member":"n","score":2}]"#);
        assert!(Change::of_jobs(&scores, || unreachable!("nobody asks for it")).is_none());
        assert!(Change::of_jobs(&taking, || None).is_none(), "nobody has a name without tokens");
        // Each of many has a place in some line.
        let one = r#"{"board":"a","member":"m","op":"remove"}"#;
        let many = jobs(&format!("[{}]", [one; 120].join(",")));
        let change = || Change::of_jobs(&many, || Some(author())).expect("there are such jobs");
        let lines = logged(|| change().finish(&Ok(())));
        let each: Vec<usize> = lines.iter().map(|line| line.matches("remove \"m\"").count()).collect();
        assert_eq!(each, [50, 50, 20]);
    }
}
