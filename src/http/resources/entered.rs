//! The instances that the jobs of a write have entered, and the member's entry in each: `windows` of an
//! answer.
//!
//! Knows: that it is read after the write, at one moment for each job, and that what is applied is not
//! answered with an error. Must not know: which instances a time falls in (`operations::entered`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::http::render::fields;
use crate::http::render::json::Object;
use crate::http::render::problem::Problem;
use crate::http::request::call::Call;
use crate::http::request::params::{Params, TIMEOUT_MS};
use crate::job::{Job, Targets};
use crate::operations::{JobResult, JobTimes, Wait, WriteOptions, Written, entered};
use crate::query::{
    BoardSelection, InstanceAsked, MemberEntry, MemberOnBoards, NoBoard, ReadOptions, UnknownWindow,
    WindowChoice,
};
use crate::types::{AsOf, BoardName, MemberId, Timestamp};
use crate::window::{Instance, Window};

/// Entries that the answer to a request may show by `windows`.
const ENTRIES_MAX: usize = 1_000;

/// The windows in which the answer of a write shows the entries: those of [`Params::windows`].
pub struct WindowsAsked(Arc<[(String, WindowChoice)]>);

impl WindowsAsked {
    /// # Errors
    /// When the parameter is not well-formed, or the write does not wait for what it does.
    pub fn of(params: &Params<'_>, options: WriteOptions) -> Result<Option<Self>, Problem> {
        let Some(windows) = params.windows()? else { return Ok(None) };
        if options.wait == Wait::UntilStored {
            let detail = "windows is of the entry that the write leaves, so it takes wait=applied; add that";
            return Err(Problem::bad_parameter(detail));
        }
        Ok(Some(Self(Arc::from(windows))))
    }

    /// # Errors
    /// When it would show too much, or a job is of several boards.
    pub fn check(&self, jobs: &[Job]) -> Result<(), Problem> {
        let several = |job: &Job| matches!(&job.targets, Targets::Boards(boards) if boards.len() > 1);
        if let Some(index) = jobs.iter().position(several) {
            return Err(Problem::bad_parameter(format!(
                "windows is for jobs that name one board each, and job {index} names several; send a job for \
                 each board, or leave windows out"
            )));
        }
        let windows = if self.0.is_empty() { Window::ALL.len() } else { self.0.len() };
        if jobs.len() * windows > ENTRIES_MAX {
            return Err(Problem::over_limit(format!(
                "windows of {windows} in the answer to {} jobs are {} entries, and at most {ENTRIES_MAX} are \
                 allowed; send fewer jobs at a time",
                jobs.len(),
                jobs.len() * windows
            )));
        }
        Ok(())
    }
}

/// What is kept of jobs to read what they have entered.
pub struct EnteredInstances {
    windows: WindowsAsked,
    began: Timestamp,
    /// Of each job that names a board.
    jobs: Vec<Option<(BoardName, MemberId, Option<Timestamp>)>>,
}

impl EnteredInstances {
    /// Before the jobs are written.
    pub fn of(call: &Call, jobs: &[Job], windows: WindowsAsked) -> Self {
        let of_job = |job: &Job| Some((job.boards().next()?.clone(), job.member.clone(), job.at));
        Self { windows, began: call.api.operations.now(), jobs: jobs.iter().map(of_job).collect() }
    }

    /// For each job, in their order.
    pub async fn read(self, call: &Call, written: &Written) -> Vec<Entered> {
        let Self { windows, began, jobs } = self;
        let deadline = Some(Instant::now() + Duration::from_millis(TIMEOUT_MS));
        let options = ReadOptions { after: written.token.clone(), deadline, ..ReadOptions::default() };
        let can_be_read = call.begin_reads(options).await.is_ok();
        let now = call.api.operations.now();
        let mut entered = Vec::with_capacity(jobs.len());
        for (job, result) in jobs.into_iter().zip(&written.results) {
            let is_applied = matches!(
                result,
                JobResult::Applied { .. }
                    | JobResult::Changed { .. }
                    | JobResult::Scores(_)
                    | JobResult::Repeated { .. }
                    | JobResult::Remote { .. }
            );
            let (Some((board, member, at)), true) = (job, is_applied) else {
                entered.push(Entered::NotAsked);
                continue;
            };
            let message = message_time(result, began, now);
            let times = JobTimes { job: at.unwrap_or(message), message };
            let entries = if can_be_read {
                Box::pin(entries_after(call, (board, member), &written.token, &windows.0, times)).await
            } else {
                None
            };
            entered.push(entries.map_or(Entered::Unreadable, Entered::In));
        }
        entered
    }
}

/// What a job has entered.
pub enum Entered {
    /// It was not applied, or is of no single board.
    NotAsked,
    In(EntryByWindow),
    Unreadable,
}

impl Entered {
    pub fn write(&self, object: &mut Object<'_>) {
        match self {
            Self::NotAsked => {}
            Self::In(entries) => entries.write(object),
            Self::Unreadable => object.null("windows"),
        }
    }
}

/// A member's entries in several windows of a board, at one moment.
pub struct EntryByWindow {
    pub as_of: AsOf,
    /// By the names that were asked for.
    entries: Vec<(String, Option<(BoardName, MemberEntry)>)>,
}

impl EntryByWindow {
    pub fn write(&self, object: &mut Object<'_>) {
        let mut windows = object.object("windows");
        for (asked, entry) in &self.entries {
            match entry {
                None => windows.null(asked),
                Some((name, entry)) => {
                    let (board, instance) = name.split();
                    let mut object = windows.object(asked);
                    let instance = instance.unwrap_or(Window::All.name());
                    fields::entry(&mut object, board, instance, entry, &self.as_of);
                    object.end();
                }
            }
        }
        windows.end();
    }
}

/// # Arguments
/// `windows`: those of [`Params::windows`].
///
/// # Errors
/// When there is no such board, it has no such window, or the member has an entry in none of them; when some
/// shard does not reply.
pub async fn entry_by_window(
    call: &Call,
    board: BoardName,
    member: MemberId,
    windows: Vec<(String, WindowChoice)>,
    hidden: bool,
) -> Result<EntryByWindow, Problem> {
    let known = call
        .api
        .operations
        .registry
        .get(board.as_str())
        .ok_or_else(|| call.api.operations.no_board(NoBoard::Unknown))?;
    let of_board = known.definition.windows.iter();
    let asked = if windows.is_empty() {
        of_board.map(|window| (window.name().to_owned(), WindowChoice::Current(*window))).collect()
    } else {
        windows
    };
    for (_, choice) in &asked {
        let instance = InstanceAsked { choice: *choice, ..call.instance_asked() };
        if let Err(why @ UnknownWindow::NotOfBoard { .. }) = instance.of(&known.definition) {
            return Err(Problem::unknown_window(&why));
        }
    }
    let choices = asked.iter().map(|(_, choice)| *choice).collect();
    let (boards, instance) = (BoardSelection::Named(vec![board]), call.instance_asked());
    let reading = MemberOnBoards { member: member.clone(), boards, instance, windows: Some(choices), hidden };
    let answer = call.ask_with_metadata(reading).await?;
    call.api.operations.check_home_replied(&call.reading, &member)?;
    if answer.entries.is_empty() {
        return Err(Problem::unknown_member_of(&known.definition));
    }
    let found = |choice: WindowChoice| {
        let is_of = |(name, _): &&(BoardName, MemberEntry)| {
            Instance::of_name_on_shards(name)
                .is_some_and(|instance| choice.may_be(&known.definition, instance))
        };
        answer.entries.iter().find(is_of).cloned()
    };
    let entries = asked.into_iter().map(|(name, choice)| (name, found(choice))).collect();
    Ok(EntryByWindow { as_of: answer.as_of, entries })
}

/// When the message of a job came that was sent after `began` and is applied `now`. An entry that it has
/// changed says so.
fn message_time(result: &JobResult, began: Timestamp, now: Timestamp) -> Timestamp {
    let changed = match result {
        JobResult::Applied { changes, .. } => changes.first().and_then(|change| change.entry.as_ref()),
        _ => None,
    };
    let told = changed.map(|entry| entry.listed.updated_at);
    told.filter(|time| (began..=now).contains(time)).unwrap_or(now)
}

/// A member's entries right after a write of a board, in the instances that the job has entered. `None`: they
/// cannot be read.
async fn entries_after(
    call: &Call,
    (board, member): (BoardName, MemberId),
    token: &AsOf,
    windows: &[(String, WindowChoice)],
    times: JobTimes,
) -> Option<EntryByWindow> {
    let known = call.api.operations.registry.get(board.as_str())?;
    let entered = entered(&known.definition, windows, times);
    let wanted: Vec<(String, WindowChoice)> =
        entered.iter().filter_map(|(name, choice)| Some((name.clone(), (*choice)?))).collect();
    let nothing = EntryByWindow { as_of: token.clone(), entries: Vec::new() };
    let found = match entry_by_window(call, board, member, wanted, false).await {
        Ok(entries) => entries,
        Err(problem) if problem.code() == "unknown_member" => nothing,
        Err(_) => return None,
    };
    let entry_of = |name: &str| found.entries.iter().find(|(known, _)| known == name)?.1.clone();
    let entries = entered.into_iter().map(|(name, choice)| {
        let entry = choice.and_then(|_| entry_of(&name));
        (name, entry)
    });
    Some(EntryByWindow { entries: entries.collect(), as_of: found.as_of })
}
