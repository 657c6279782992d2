//! Where an export reads boards from: a running service, or the data of a stopped one.

use std::path::PathBuf;
use std::sync::Arc;

use crate::cli::Failure;
use crate::cli::board_line::ExportedInstance;
use crate::cli::export::remote::{PageAnswer, PagesAhead, Remote};
use crate::cli::export::row::{HiddenMembers, Page};
use crate::cli::export::stopped::Stopped;
use crate::cli::offline::Offline;
use crate::config::ClientArgs;
use crate::query::WindowChoice;
use crate::types::{BoardName, quoted};
use crate::window::Instance;

/// Where boards are read from.
pub enum Source {
    Remote(Arc<Remote>),
    Stopped(Box<Stopped>),
}

/// A page that was fetched.
pub enum Fetched {
    Answer(PageAnswer),
    Page(Page<'static>),
}

impl Fetched {
    /// # Errors
    /// When it is no page.
    fn window(&self) -> Result<String, Failure> {
        match self {
            Self::Answer(answer) => Ok(answer.read()?.window.into_owned()),
            Self::Page(page) => Ok(page.window.clone().into_owned()),
        }
    }
}

impl Source {
    /// A running service's.
    pub fn remote(
        url: &str,
        client: &ClientArgs,
        window: WindowChoice,
        profiles: bool,
    ) -> Result<Self, Failure> {
        Ok(Self::Remote(Remote::new(url, client, window, profiles)?.into()))
    }

    /// A stopped service's.
    ///
    /// # Errors
    /// When its data cannot be loaded.
    pub fn stopped(data_dir: PathBuf, window: WindowChoice, profiles: bool) -> Result<Self, Failure> {
        Ok(Self::Stopped(Stopped::open(&Offline::at(data_dir), window, profiles)?.into()))
    }

    pub fn boards(&self) -> Result<Vec<BoardName>, Failure> {
        match self {
            Self::Remote(remote) => remote.boards(),
            Self::Stopped(stopped) => Ok(stopped.boards()),
        }
    }

    /// What the board is, as JSON, and whether there is an instance of its default window: before their first
    /// manual season, boards have none.
    pub fn definition(&self, board: &BoardName) -> Result<(String, bool), Failure> {
        match self {
            Self::Remote(remote) => remote.definition(board),
            Self::Stopped(stopped) => stopped.definition(board),
        }
    }

    /// What the rows of a page are of. `None`: of `all`.
    pub fn instance(&self, board: &BoardName, page: &Fetched) -> Result<Option<ExportedInstance>, Failure> {
        let window = page.window()?;
        let instance = Instance::of_name(&window);
        let instance = instance.ok_or_else(|| format!("an unknown instance: {}", quoted(&window)))?;
        if instance == Instance::ALL {
            return Ok(None);
        }
        match self {
            Self::Remote(remote) => remote.instance(board, instance),
            Self::Stopped(stopped) => stopped.instance(board, instance),
        }
        .map(Some)
    }

    pub fn first_page(&self, board: &BoardName) -> Result<Fetched, Failure> {
        match self {
            Self::Remote(remote) => remote.page(board, None).map(Fetched::Answer),
            Self::Stopped(stopped) => stopped.page(board, None).map(Fetched::Page),
        }
    }

    /// The page behind a cursor, which the page before it had.
    ///
    /// # Arguments
    /// `ahead`: the pages that are fetched ahead, from the second one on.
    pub fn next_page(
        &self,
        board: &BoardName,
        cursor: String,
        ahead: &mut Option<PagesAhead>,
    ) -> Result<Fetched, Failure> {
        match self {
            Self::Remote(remote) => {
                let begin = || PagesAhead::begin(Arc::clone(remote), board.clone(), cursor);
                ahead.get_or_insert_with(begin).next().map(Fetched::Answer)
            }
            Self::Stopped(stopped) => stopped.page(board, Some(&cursor)).map(Fetched::Page),
        }
    }

    /// Who is hidden on the board, by member.
    ///
    /// # Errors
    /// When the service stays away, or the disk cannot be read.
    pub fn hidden(&self, board: &BoardName) -> Result<HiddenMembers, Failure> {
        match self {
            Self::Remote(remote) => remote.hidden(board),
            Self::Stopped(stopped) => stopped.hidden(board).map(HiddenMembers::Known),
        }
    }
}
