//! A running service's board, page by page.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::cli::Failure;
use crate::cli::asking::Service;
use crate::cli::board_line::definition_in;
use crate::cli::export::row::Page;
use crate::config::ClientArgs;

/// The most that a page may have.
const PAGE_ENTRIES: usize = 1_000;

pub struct Remote {
    service: Service,
    /// The board's own URL.
    board: String,
    /// The first page's.
    url: String,
}

impl Remote {
    /// # Errors
    /// When the address is none that can be connected to, the token cannot be read, or nothing says whose certificates
    /// to trust.
    pub fn new(base: &str, client: &ClientArgs, board: &str, window: &str) -> Result<Self, Failure> {
        let service = Service::new(base, client, "ranktree-export")?;
        let (board, window) =
            (utf8_percent_encode(board, NON_ALPHANUMERIC), utf8_percent_encode(window, NON_ALPHANUMERIC));
        let board = format!("{}/v1/boards/{board}", service.base());
        let url = format!("{board}/top?window={window}&limit={PAGE_ENTRIES}&reached_at=true");
        Ok(Self { service, board, url })
    }

    /// What the board is, as JSON.
    ///
    /// # Errors
    /// When there is none, or the service stays away.
    pub fn definition(&self) -> Result<String, Failure> {
        let answer = self.service.get(&self.board)?;
        let definition = definition_in(&answer);
        definition.ok_or_else(|| format!("{}: not the answer of a ranktree", self.board).into())
    }

    /// The page behind a cursor, or the first one.
    ///
    /// # Errors
    /// When there is none, or the service stays away.
    pub fn page(&self, cursor: Option<&str>) -> Result<Page, Failure> {
        // A cursor has nothing to escape.
        let url = cursor.map_or_else(|| self.url.clone(), |cursor| format!("{}&cursor={cursor}", self.url));
        let page = serde_json::from_str(&self.service.get(&url)?);
        page.map_err(|error| format!("{}: not the answer of a ranktree: {error}", self.url).into())
    }
}
