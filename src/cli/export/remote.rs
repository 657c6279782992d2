//! A running service's boards, page by page.

use std::collections::BTreeMap;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::cli::Failure;
use crate::cli::board_line::{ExportedInstance, definition_in};
use crate::cli::client::{Reader, Refused};
use crate::cli::export::no_instance::NoInstance;
use crate::cli::export::row::Page;
use crate::config::ClientArgs;
use crate::query::WindowChoice;
use crate::types::{BoardName, Timestamp};
use crate::window::{Instance, Span};

/// The most that a page may have.
const PAGE_ENTRIES: usize = 1_000;

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

    /// The page behind a cursor, or the first one.
    ///
    /// # Errors
    /// [`NoInstance`] when the board does not have the one that is asked for; others when there is no such
    /// board, or the service stays away.
    pub fn page(&self, board: &BoardName, cursor: Option<&str>) -> Result<Page, Failure> {
        // A cursor has nothing to escape.
        let cursor = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let (board, parameters) = (self.url(board), &self.parameters);
        let url = format!("{board}/top?limit={PAGE_ENTRIES}&reached_at=true{parameters}{cursor}");
        let answer = self.service.get(&url).map_err(|failure| match failure.downcast_ref::<Refused>() {
            Some(Refused { code: Some(code), base, reason }) if code == "unknown_window" => {
                NoInstance { at: format!("{base} cannot be read"), why: reason.clone() }.into()
            }
            _ => failure,
        });
        serde_json::from_str(&answer?).map_err(|_| no_ranktree(&url))
    }

    fn url(&self, board: &BoardName) -> String {
        format!("{}/v1/boards/{}", self.service.base(), utf8_percent_encode(board.as_str(), NON_ALPHANUMERIC))
    }
}

fn no_ranktree(url: &str) -> Failure {
    format!("{url}: the answer is not that of a ranktree service; check the address").into()
}
