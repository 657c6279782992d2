//! A running service's boards, page by page.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use thiserror::Error;

use crate::cli::Failure;
use crate::cli::board_line::{ExportedInstance, definition_in};
use crate::cli::client::{Reader, Refused};
use crate::cli::export::row::{Hidden, HiddenMembers, Page, Row};
use crate::cli::export::{page_json, page_text};
use crate::config::ClientArgs;
use crate::query::WindowChoice;
use crate::types::{BoardName, Timestamp};
use crate::window::{Instance, Span};

/// The most that a page may have.
const PAGE_ENTRIES: usize = 1_000;
/// Pages that wait to be written.
const PAGES_AHEAD: usize = 4;

pub struct Remote {
    service: Reader,
    /// Parameters of a page: the window, and whether profiles are wanted.
    parameters: String,
}

/// Boards in the order of their names, as far as an export needs them.
#[derive(serde::Deserialize)]
struct Boards {
    boards: Vec<Board>,
    next_cursor: Option<String>,
}

#[derive(serde::Deserialize)]
struct Board {
    board: String,
}

/// A board's entries by its default window, if that has an instance.
#[derive(serde::Deserialize)]
struct Totals {
    totals: BTreeMap<String, u64>,
}

/// A board, as far as it tells of instances.
#[derive(serde::Deserialize)]
struct Instances {
    instances: BTreeMap<String, Vec<Listed>>,
}

#[derive(serde::Deserialize)]
struct Listed {
    name: String,
    begin: String,
    end: Option<String>,
}

/// Who is hidden, a page of them.
#[derive(serde::Deserialize)]
struct Bans {
    hidden: Vec<Ban>,
    next_cursor: Option<String>,
}

#[derive(serde::Deserialize)]
struct Ban {
    member: String,
    /// `None`: on all boards.
    board: Option<String>,
}

impl Remote {
    /// # Errors
    /// When the address is none that can be connected to, the token cannot be read, or there are no
    /// certificates to accept.
    pub fn new(
        base: &str,
        client: &ClientArgs,
        window: WindowChoice,
        profiles: bool,
    ) -> Result<Self, Failure> {
        let service = Reader::new(base, client, "export")?;
        // The names of windows and instances have nothing to escape.
        let window = match window {
            WindowChoice::Default => String::new(),
            window => format!("&window={window}"),
        };
        let parameters = if profiles { window + "&profile=true" } else { window };
        Ok(Self { service, parameters })
    }

    /// # Errors
    /// When the service stays away.
    pub fn boards(&self) -> Result<Vec<BoardName>, Failure> {
        let (mut names, mut cursor) = (Vec::new(), String::new());
        loop {
            let url = format!("{}/v1/boards?limit={PAGE_ENTRIES}&cursor={cursor}", self.service.base());
            let page: Option<Boards> = serde_json::from_str(&self.service.get(&url)?).ok();
            let Some(Boards { boards, next_cursor }) = page else { return Err(no_ranktree(&url)) };
            for board in boards {
                names.push(BoardName::new(&board.board).map_err(|_| no_ranktree(&url))?);
            }
            match next_cursor {
                Some(next) => cursor = utf8_percent_encode(&next, NON_ALPHANUMERIC).to_string(),
                None => return Ok(names),
            }
        }
    }

    /// What the board is, as JSON, and whether its default window has an instance.
    ///
    /// # Errors
    /// When there is none, or the service stays away.
    pub fn definition(&self, board: &BoardName) -> Result<(String, bool), Failure> {
        let url = self.url(board);
        let answer = self.service.get(&url)?;
        let told: Option<Totals> = serde_json::from_str(&answer).ok();
        let has_begun = told.is_none_or(|told| !told.totals.is_empty());
        definition_in(&answer).map(|is| (is, has_begun)).ok_or_else(|| no_ranktree(&url))
    }

    /// From when to when an instance of the board is.
    ///
    /// # Errors
    /// When there is none, or the service stays away.
    pub fn instance(&self, board: &BoardName, instance: Instance) -> Result<ExportedInstance, Failure> {
        let url = format!("{}?window={instance}", self.url(board));
        let told: Option<Instances> = serde_json::from_str(&self.service.get(&url)?).ok();
        let listed = told.and_then(|mut told| told.instances.remove(instance.window.name()));
        let listed = listed.unwrap_or_default().into_iter().find(|one| one.name == instance.to_string());
        let time = |text: &str| Timestamp::parse(text).ok();
        let span = listed.and_then(|Listed { begin, end, .. }| {
            let end = end.map(|end| time(&end).ok_or(())).transpose().ok()?;
            Some(Span { begin: time(&begin)?, end })
        });
        Ok(ExportedInstance { instance, span: span.ok_or_else(|| no_ranktree(&url))? })
    }

    /// The page behind a cursor, or the first one, as it is answered.
    ///
    /// # Errors
    /// [`NoInstance`] when the board does not have the one that is asked for; others when there is no such
    /// board, or the service stays away.
    pub fn page(&self, board: &BoardName, cursor: Option<&str>) -> Result<PageAnswer, Failure> {
        // A cursor has nothing to escape.
        let cursor = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let (board, parameters) = (self.url(board), &self.parameters);
        let url =
            format!("{board}/top?limit={PAGE_ENTRIES}&reached_at=true&version=true{parameters}{cursor}");
        let answer = self.service.get(&url).map_err(|failure| match failure.downcast_ref::<Refused>() {
            Some(Refused { code: Some(code), base, reason }) if code == "unknown_window" => {
                NoInstance { at: format!("{base} cannot be read"), why: reason.clone() }.into()
            }
            _ => failure,
        });
        Ok(PageAnswer { url, answer: answer? })
    }

    /// Who is hidden on the board, by member, and the entries that are. A service tells it to moderators.
    ///
    /// # Errors
    /// When the service stays away.
    pub fn hidden(&self, board: &BoardName) -> Result<HiddenMembers, Failure> {
        let (mut bans, mut cursor) = (Vec::new(), String::new());
        loop {
            let (base, board) = (self.service.base(), utf8_percent_encode(board.as_str(), NON_ALPHANUMERIC));
            let url = format!("{base}/v1/hidden?board={board}&limit={PAGE_ENTRIES}&cursor={cursor}");
            let answer = match self.service.get(&url) {
                Ok(answer) => answer,
                Err(failure) => match failure.downcast_ref::<Refused>() {
                    Some(Refused { reason, .. }) => return Ok(HiddenMembers::Unknown(reason.clone())),
                    None => return Err(failure),
                },
            };
            let page: Option<Bans> = serde_json::from_str(&answer).ok();
            let Some(Bans { hidden, next_cursor }) = page else { return Err(no_ranktree(&url)) };
            bans.extend(hidden);
            match next_cursor {
                Some(next) => cursor = utf8_percent_encode(&next, NON_ALPHANUMERIC).to_string(),
                None => break,
            }
        }
        bans.sort_by(|one, other| (&one.member, &one.board).cmp(&(&other.member, &other.board)));
        let mut hidden: Vec<Hidden> = Vec::with_capacity(bans.len());
        for Ban { member, board: on } in bans {
            // One may be hidden on all boards, and on this one too.
            let is_new = hidden.last().is_none_or(|last| last.member != member);
            let entry = if is_new { self.hidden_entry(board, &member)? } else { None };
            hidden.push(Hidden { member, is_everywhere: on.is_none(), entry });
        }
        Ok(HiddenMembers::Known(hidden))
    }

    fn hidden_entry(&self, board: &BoardName, member: &str) -> Result<Option<Row<'static>>, Failure> {
        let member = utf8_percent_encode(member, NON_ALPHANUMERIC);
        let copied = "hidden=true&reached_at=true&version=true";
        let url = format!("{}/members/{member}?{copied}{}", self.url(board), self.parameters);
        match self.service.get(&url) {
            Ok(answer) => {
                let row = page_json::read_row(&answer).map_err(|_| no_ranktree(&url))?;
                Ok(Some(row.into_owned()))
            }
            Err(failure) => match failure.downcast_ref::<Refused>() {
                Some(Refused { code: Some(code), .. }) if code == "unknown_member" => Ok(None),
                _ => Err(failure),
            },
        }
    }

    fn url(&self, board: &BoardName) -> String {
        format!("{}/v1/boards/{}", self.service.base(), utf8_percent_encode(board.as_str(), NON_ALPHANUMERIC))
    }
}

/// A page, as it is answered.
pub struct PageAnswer {
    url: String,
    answer: String,
}

impl PageAnswer {
    /// # Errors
    /// When it is no page.
    pub fn read(&self) -> Result<Page<'_>, Failure> {
        page_json::read(&self.answer).map_err(|_| no_ranktree(&self.url))
    }

    /// Where the next page begins, without reading the whole of this one if possible.
    fn next_cursor(&self) -> Result<Option<String>, Failure> {
        match page_text::next_cursor(&self.answer) {
            Some(cursor) => Ok(Some(cursor.to_owned())),
            None => Ok(self.read()?.next_cursor.map(Cow::into_owned)),
        }
    }
}

/// The pages of a board behind a cursor, fetched ahead: the service makes the next one while this one is
/// written.
pub struct PagesAhead(Receiver<Result<PageAnswer, Failure>>);

impl PagesAhead {
    pub fn begin(remote: Arc<Remote>, board: BoardName, cursor: String) -> Self {
        let (sender, pages) = sync_channel(PAGES_AHEAD);
        // It ends with the last page, with the first failure, or once nobody takes its pages. If the export
        // ends early, the program does not wait for it.
        thread::spawn(move || {
            let mut cursor = Some(cursor);
            while let Some(from) = cursor.take() {
                let page = remote.page(&board, Some(&from));
                let next = page.as_ref().ok().map(PageAnswer::next_cursor);
                let failed = match next {
                    None => None,
                    Some(Ok(next)) => {
                        cursor = next;
                        None
                    }
                    Some(Err(failure)) => Some(failure),
                };
                if sender.send(failed.map_or(page, Err)).is_err() {
                    return;
                }
            }
        });
        Self(pages)
    }

    /// # Errors
    /// When the service refuses, or stays away.
    pub fn next(&self) -> Result<PageAnswer, Failure> {
        let ended = || Err("the pages of the board ended before the last one, which is a bug".into());
        self.0.recv().unwrap_or_else(|_| ended())
    }
}

fn no_ranktree(url: &str) -> Failure {
    format!("{url}: the answer is not that of a ranktree service; check the address").into()
}

/// That a board does not have the instance that is asked for.
#[derive(Debug, Error)]
#[error("{at}: {why}")]
pub struct NoInstance {
    pub at: String,
    pub why: String,
}
