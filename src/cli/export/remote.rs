//! A running service's boards, page by page.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::cli::Failure;
use crate::cli::board_line::definition_in;
use crate::cli::client::Reader;
use crate::cli::export::row::Page;
use crate::config::ClientArgs;
use crate::types::BoardName;

/// The most that a page may have.
const PAGE_ENTRIES: usize = 1_000;

pub struct Remote {
    service: Reader,
    /// As a parameter has it.
    window: String,
    profiles: bool,
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

impl Remote {
    /// # Errors
    /// When the address is none that can be connected to, the token cannot be read, or there are no
    /// certificates to accept.
    pub fn new(base: &str, client: &ClientArgs, window: &str, profiles: bool) -> Result<Self, Failure> {
        let service = Reader::new(base, client, "export")?;
        let window = utf8_percent_encode(window, NON_ALPHANUMERIC).to_string();
        Ok(Self { service, window, profiles })
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

    /// What the board is, as JSON.
    ///
    /// # Errors
    /// When there is none, or the service stays away.
    pub fn definition(&self, board: &BoardName) -> Result<String, Failure> {
        let url = self.url(board);
        definition_in(&self.service.get(&url)?).ok_or_else(|| no_ranktree(&url))
    }

    /// The page behind a cursor, or the first one.
    ///
    /// # Errors
    /// When there is none, or the service stays away.
    pub fn page(&self, board: &BoardName, cursor: Option<&str>) -> Result<Page, Failure> {
        // A cursor has nothing to escape.
        let cursor = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let (board, window) = (self.url(board), &self.window);
        let profiles = if self.profiles { "&profile=true" } else { "" };
        let url =
            format!("{board}/top?window={window}&limit={PAGE_ENTRIES}&reached_at=true{profiles}{cursor}");
        serde_json::from_str(&self.service.get(&url)?).map_err(|_| no_ranktree(&url))
    }

    fn url(&self, board: &BoardName) -> String {
        format!("{}/v1/boards/{}", self.service.base(), utf8_percent_encode(board.as_str(), NON_ALPHANUMERIC))
    }
}

fn no_ranktree(url: &str) -> Failure {
    format!("{url}: the answer is not that of a ranktree service; check the address").into()
}
