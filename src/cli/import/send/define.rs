//! The board that rows go into: defined as their file says, or found to be as it says.

use serde_json::{Value, json};
use ureq::http::StatusCode;

use crate::cli::board_line::{BoardLine, ExportedInstance};
use crate::cli::import::ImportError;
use crate::cli::import::archive::{archive, ends_in_archive};
use crate::cli::import::send::answer::Answer;
use crate::cli::import::send::connection::Connection;
use crate::cli::import::send::retries::{Ended, Retries, until_answered};
use crate::types::{BoardName, Timestamp};

/// What of a definition decides the order of entries, whatever windows there are.
const ORDERING_FIELDS: [&str; 3] = ["keys", "policy", "ties"];

/// What is left to be done with a board once all rows are applied.
pub struct ToFinish {
    board: BoardName,
    definition: String,
}

impl Connection<'_> {
    /// Defines the board of the rows that follow, unless the service has one that ranks alike.
    ///
    /// # Arguments
    /// `into_all_windows`: whether rows of one instance may change other windows of the board.
    ///
    /// # Errors
    /// When the board is there and ranks otherwise, or cannot be defined; when rows of one instance would not
    /// be of that one, or would change others.
    pub fn prepare(&self, line: &BoardLine, into_all_windows: bool) -> Result<Option<ToFinish>, ImportError> {
        match line.instance {
            None => self.prepare_board(line),
            Some(rows_of) => self.prepare_instance(line, rows_of, into_all_windows).map(|()| None),
        }
    }

    /// Defines the board as it is to be in the end.
    ///
    /// # Errors
    /// When the service refuses.
    pub fn finish(&self, left: &ToFinish) -> Result<(), ImportError> {
        let ToFinish { board, definition } = left;
        self.put_board(board, definition, |reason| self.refused(board, reason))
    }

    fn prepare_board(&self, line: &BoardLine) -> Result<Option<ToFinish>, ImportError> {
        let BoardLine { board, definition, .. } = line;
        let refused = |reason| self.refused(board, reason);
        let (status, found) = self.ask_for_board(board, "", refused)?;
        if status == StatusCode::OK && line.is_met_by(&found.definition()) {
            return Ok(None);
        }
        if status == StatusCode::NOT_FOUND
            && let Some(without_ttl) = without_ttl(definition)
        {
            // Entries whose scores are older than that would leave at once, although they were updated since.
            self.put_board(board, &without_ttl, refused)?;
            self.note(&format!(
                "board {board} is defined as the file says, but for entry_ttl, which it gets after all rows"
            ));
            return Ok(Some(ToFinish { board: board.clone(), definition: definition.clone() }));
        }
        // The service explains a mismatch better than a comparison here could.
        self.put_board(board, definition, refused)?;
        self.note(&format!("board {board} is defined as the file says"));
        Ok(None)
    }

    /// Defines a board that has the instance alone, unless there is a board that has the same one.
    fn prepare_instance(
        &self,
        line: &BoardLine,
        rows_of: ExportedInstance,
        into_all_windows: bool,
    ) -> Result<(), ImportError> {
        let (board, instance) = (&line.board, rows_of.instance);
        let unfit = |reason| ImportError::Instance {
            to: self.client.base().to_owned(),
            board: board.to_string(),
            instance: instance.to_string(),
            reason,
        };
        let query = format!("?window={instance}");
        let (status, found) = self.ask_for_board(board, &query, unfit)?;
        if status == StatusCode::OK {
            check_board(&found, line, rows_of, into_all_windows).map_err(unfit)?;
            if found.entry_ttl.as_ref().is_some_and(|ttl| !ttl.is_null()) {
                self.note(&format!(
                    "board {board} has an entry_ttl: entries of the open {instance} that were updated longer \
                     ago than that leave at once"
                ));
            }
            return Ok(());
        }
        if found.code != "unknown_board" {
            return Err(unfit(found.describe(status)));
        }
        let now = Timestamp::parse(&jiff::Timestamp::now().to_string()).expect("a clock's time is one");
        let definition = archive(&line.definition, rows_of, now).map_err(unfit)?;
        self.put_board(board, &definition, |reason| self.refused(board, reason))?;
        self.note(&format!(
            "board {board} is defined with the window {} alone, and with a long grace, so that {instance} is \
             open",
            instance.window.name()
        ));
        Ok(())
    }

    fn ask_for_board(
        &self,
        board: &BoardName,
        query: &str,
        failed: impl Fn(String) -> ImportError,
    ) -> Result<(StatusCode, Box<Answer>), ImportError> {
        let url = self.board_url(board.as_str()) + query;
        match until_answered(|| self.client.get(&url), true, &mut Retries::new(self.service))? {
            Ended::Answered(status, found) => Ok((status, found)),
            Ended::OutcomeUnknown { reason } | Ended::Permanent { reason } => Err(failed(reason)),
        }
    }

    fn put_board(
        &self,
        board: &BoardName,
        definition: &str,
        failed: impl Fn(String) -> ImportError,
    ) -> Result<(), ImportError> {
        let url = self.board_url(board.as_str());
        // Twice the same definition is the same as once.
        match until_answered(|| self.client.put(&url, definition), true, &mut Retries::new(self.service))? {
            Ended::Answered(status, _) if status.is_success() => Ok(()),
            Ended::Answered(status, answer) => Err(failed(answer.describe(status))),
            Ended::OutcomeUnknown { reason } | Ended::Permanent { reason } => Err(failed(reason)),
        }
    }

    fn refused(&self, board: &BoardName, reason: String) -> ImportError {
        ImportError::Board { to: self.client.base().to_owned(), board: board.to_string(), reason }
    }

    fn note(&self, text: &str) {
        self.service.tally.note(text);
    }
}

/// The definition without its `entry_ttl`. `None`: it has none.
fn without_ttl(definition: &str) -> Option<String> {
    let mut definition: Value = serde_json::from_str(definition).ok()?;
    let ttl = definition.get_mut("entry_ttl").filter(|ttl| !ttl.is_null())?;
    *ttl = Value::Null;
    Some(definition.to_string())
}

/// Whether rows of an instance can go into a board that there is, and rank there as they did.
fn check_board(
    found: &Answer,
    line: &BoardLine,
    rows_of: ExportedInstance,
    into_all_windows: bool,
) -> Result<(), String> {
    const ANOTHER: &str = "--board NAME imports them into another one, which the import defines";
    let (instance, theirs) = (rows_of.instance, found.definition());
    let ours: Value = serde_json::from_str(&line.definition).unwrap_or_default();
    let differs = |name: &&&str| ours.get(**name) != theirs.get(**name);
    let differing: Vec<&str> = ORDERING_FIELDS.iter().filter(differs).copied().collect();
    if !differing.is_empty() {
        return Err(format!("the board has other {}. {ANOTHER}", differing.join(", ")));
    }
    let listed = found.instance(instance).ok_or("the service does not tell of the instance")?;
    let time = |name: &str| listed.get(name).and_then(Value::as_str).and_then(|at| Timestamp::parse(at).ok());
    let (begin, end) = (time("begin"), time("end"));
    let is_same_end =
        end == rows_of.span.end || end.is_some_and(|end| Some(end.as_micros()) == ends_in_archive(rows_of));
    if begin != Some(rows_of.span.begin) || !is_same_end {
        let told =
            |time: Option<Timestamp>| time.map_or_else(|| "no known time".to_owned(), |at| at.to_string());
        return Err(format!(
            "{instance} of the board is from {} to {}, and {instance} of the file from {} to {}. {ANOTHER}",
            told(begin),
            told(end),
            rows_of.span.begin,
            told(rows_of.span.end)
        ));
    }
    if listed.get("open") != Some(&json!(true)) {
        return Err(format!(
            "{instance} of the board is closed. Give the board a grace that reaches back to it (PUT \
             /v1/boards/{}), import, and shorten the grace again",
            line.board
        ));
    }
    let windows = found.windows.as_ref().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let others: Vec<&str> =
        windows.iter().filter_map(Value::as_str).filter(|name| *name != instance.window.name()).collect();
    if !others.is_empty() && !into_all_windows {
        return Err(format!(
            "they would change {} of the board, too. {ANOTHER}, with the window {} alone; \
             --into-all-windows lets them change all windows",
            others.join(", "),
            instance.window.name()
        ));
    }
    Ok(())
}
