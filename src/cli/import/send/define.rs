//! The board that rows go into: defined as their file says, or found to be as it says.

use serde_json::{Map, Value, json};
use ureq::http::StatusCode;

use crate::cli::board_line::{BoardLine, ExportedInstance};
use crate::cli::import::ImportError;
use crate::cli::import::archive::{Archive, archive, ends_in_archive};
use crate::cli::import::send::answer::{Answer, OpenInstance};
use crate::cli::import::send::connection::Connection;
use crate::cli::import::send::retries::{Ended, Retries, until_answered};
use crate::types::{BoardName, Timestamp};

/// What of a definition decides the order of entries, whatever windows there are.
const ORDERING_FIELDS: [&str; 3] = ["keys", "policy", "ties"];

/// What is left to be done with a board once all rows are applied: it gets its `entry_ttl`.
///
/// It has none until then. An entry whose score was reached longer ago than that, and which was updated
/// since, comes as two rows; the first would let it leave, and the second would enter it anew, as of its last
/// update and without metadata.
pub struct ToFinish {
    board: BoardName,
    ttl: Value,
}

impl ToFinish {
    /// For the operator of an import that failed before it could finish the board.
    pub fn told(&self) -> String {
        let Self { board, ttl } = self;
        format!(
            "the import did not give board {board} its entry_ttl, which is {ttl}. Run the import again, and \
             then see whether GET /v1/boards/{board} has it; if not, set it with PUT"
        )
    }
}

/// Where rows of one instance go.
enum PlaceOfInstance {
    /// Into a board that has the same instance.
    There(Box<Answer>),
    /// Into one that is to be defined.
    New(Archive),
}

impl Connection<'_> {
    /// Defines the board of the rows that follow, unless the service has one that ranks alike. In any case it
    /// has no `entry_ttl` then.
    ///
    /// # Arguments
    /// - `into_all_windows`: whether rows of one instance may change other windows of the board.
    /// - `to_finish`: gets the board, if it is to have an `entry_ttl`, also where this fails.
    ///
    /// # Errors
    /// When the board is there and ranks otherwise, or cannot be defined; when rows of one instance would not
    /// be of that one, or would change others.
    pub fn prepare(
        &self,
        line: &BoardLine,
        into_all_windows: bool,
        to_finish: &mut Vec<ToFinish>,
    ) -> Result<(), ImportError> {
        match line.instance {
            None => self.prepare_board(line, to_finish),
            Some(rows_of) => self.prepare_instance(line, rows_of, into_all_windows, to_finish),
        }
    }

    /// Gives the board its `entry_ttl`, and leaves the rest of it as it is by now.
    ///
    /// # Errors
    /// When the service refuses, or has no such board any more.
    pub fn finish(&self, left: &ToFinish) -> Result<(), ImportError> {
        let ToFinish { board, ttl } = left;
        let refused = |reason: String| self.refused(board, format!("it is to get its entry_ttl: {reason}"));
        let (status, found) = self.ask_for_board(board, "", refused)?;
        if status != StatusCode::OK {
            return Err(refused(found.describe(status)));
        }
        // The rows that are older than that had left before they were exported, or while they were away.
        let query = "?force=true";
        self.put_board(board, query, &json!({ "entry_ttl": ttl }).to_string(), refused)
    }

    fn prepare_board(&self, line: &BoardLine, to_finish: &mut Vec<ToFinish>) -> Result<(), ImportError> {
        let BoardLine { board, definition, .. } = line;
        let refused = |reason| self.refused(board, reason);
        let (status, found) = self.ask_for_board(board, "", refused)?;
        let found = found.definition();
        let ours = split_ttl(definition);
        if status == StatusCode::OK && line.is_met_by(&found) {
            if self.take_ttl(board, &found, to_finish)? {
                return Ok(());
            }
            let Some((ours, ttl)) = ours else { return Ok(()) };
            if Value::from(ours) == found {
                // An import that failed has left it so.
                self.note(&format!(
                    "board {board} is as the file says, but for entry_ttl, which it gets after all rows"
                ));
                to_finish.push(ToFinish { board: board.clone(), ttl });
            } else {
                self.note(&format!(
                    "board {board} has other settings than the file says, and keeps them; so it gets no \
                     entry_ttl, which is {ttl} in the file"
                ));
            }
            return Ok(());
        }
        if status == StatusCode::NOT_FOUND
            && let Some((ours, ttl)) = ours
        {
            self.put_without_ttl(board, ours, ttl, to_finish)?;
            self.note(&format!(
                "board {board} is defined as the file says, but for entry_ttl, which it gets after all rows"
            ));
            return Ok(());
        }
        if status == StatusCode::OK {
            return Err(self.differs(line, &found, true));
        }
        self.put_board(board, "", definition, refused)?;
        self.note(&format!("board {board} is defined as the file says"));
        Ok(())
    }

    /// Looks whether the board of a file can be used, before any row of any board is sent. Returns instances
    /// that rows of `all` would enter, too, unless they may.
    ///
    /// # Arguments
    /// - `may_ask`: whether the service may be asked by a request to define the board, which it refuses.
    /// - `into_all_windows`: whether rows of one instance may change other windows of the board.
    ///
    /// # Errors
    /// When the board is there and ranks otherwise; when rows of one instance would not be of that one, or
    /// would change others.
    pub fn agrees(
        &self,
        line: &BoardLine,
        may_ask: bool,
        into_all_windows: bool,
    ) -> Result<Vec<OpenInstance>, ImportError> {
        if let Some(rows_of) = line.instance {
            return self.place_of_instance(line, rows_of, into_all_windows).map(|_| Vec::new());
        }
        let (status, found) =
            self.ask_for_board(&line.board, "", |reason| self.refused(&line.board, reason))?;
        let in_use = if into_all_windows { Vec::new() } else { found.in_use() };
        let found = found.definition();
        if status != StatusCode::OK || line.is_met_by(&found) {
            return Ok(in_use);
        }
        Err(self.differs(line, &found, may_ask))
    }

    /// Why a board that is there cannot take the rows of a file.
    fn differs(&self, line: &BoardLine, found: &Value, may_ask: bool) -> ImportError {
        let BoardLine { board, definition, .. } = line;
        let refused = |reason| self.refused(board, reason);
        // The service explains what is fixed better than a comparison here could. What it would change, an
        // import leaves alone.
        if may_ask && let Err(error) = self.put_board(board, "", &line.fixed_part(), refused) {
            return error;
        }
        let windows = |definition: &Value| definition.get("windows").cloned().unwrap_or_default();
        let ours: Value = serde_json::from_str(definition).unwrap_or_default();
        let words = format!(
            "the board has the windows {} or its seasons, and the file has {} or others. Add windows with PUT \
             /v1/boards/{board}, or use --rows-only to import the rows into the board as it is",
            windows(found),
            windows(&ours)
        );
        refused(if may_ask {
            words
        } else {
            format!("board_differs: it is there with other keys, ties or calendar, or {words}")
        })
    }

    /// Takes the `entry_ttl` from a board that there is, until it is finished. `false`: it has none, and
    /// this import did not take it.
    fn take_ttl(
        &self,
        board: &BoardName,
        found: &Value,
        to_finish: &mut Vec<ToFinish>,
    ) -> Result<bool, ImportError> {
        if to_finish.iter().any(|left| left.board == *board) {
            return Ok(true);
        }
        let Some((without, ttl)) = split_ttl(&found.to_string()) else { return Ok(false) };
        let note = format!(
            "board {board} has an entry_ttl of {ttl}, which it gets again after all rows; until then no entry \
             leaves, and then those do that were updated longer ago"
        );
        self.put_without_ttl(board, without, ttl, to_finish)?;
        self.note(&note);
        Ok(true)
    }

    fn put_without_ttl(
        &self,
        board: &BoardName,
        mut without: Map<String, Value>,
        ttl: Value,
        to_finish: &mut Vec<ToFinish>,
    ) -> Result<(), ImportError> {
        let refused =
            |reason| self.refused(board, format!("without entry_ttl, until all rows are there: {reason}"));
        without.insert("entry_ttl".to_owned(), Value::Null);
        let put = self.put_board(board, "", &Value::from(without).to_string(), refused);
        // What was not refused, but had no answer, may have been done.
        if !matches!(put, Err(ImportError::Board { .. })) {
            to_finish.push(ToFinish { board: board.clone(), ttl });
        }
        put
    }

    /// Where rows of one instance go.
    fn place_of_instance(
        &self,
        line: &BoardLine,
        rows_of: ExportedInstance,
        into_all_windows: bool,
    ) -> Result<PlaceOfInstance, ImportError> {
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
            return Ok(PlaceOfInstance::There(found));
        }
        if found.code != "unknown_board" {
            return Err(unfit(found.describe(status)));
        }
        let now = Timestamp::parse(&jiff::Timestamp::now().to_string()).expect("a clock's time is one");
        archive(&line.definition, rows_of, now).map(PlaceOfInstance::New).map_err(unfit)
    }

    /// Defines a board that has the instance alone, unless there is a board that has the same one.
    fn prepare_instance(
        &self,
        line: &BoardLine,
        rows_of: ExportedInstance,
        into_all_windows: bool,
        to_finish: &mut Vec<ToFinish>,
    ) -> Result<(), ImportError> {
        let (board, instance) = (&line.board, rows_of.instance);
        let Archive { definition, drops_at } =
            match self.place_of_instance(line, rows_of, into_all_windows)? {
                PlaceOfInstance::There(found) => {
                    return self.take_ttl(board, &found.definition(), to_finish).map(drop);
                }
                PlaceOfInstance::New(archive) => archive,
            };
        self.put_board(board, "", &definition, |reason| self.refused(board, reason))?;
        let until = drops_at.map(|drops_at| {
            format!(
                ". {instance} is dropped with all of its entries at {drops_at}: to keep it for good, define a \
                 board with the window all, and import with --rows-only"
            )
        });
        self.note(&format!(
            "board {board} is defined with the window {} alone, and with a long grace, so that {instance} is \
             open{}",
            instance.window.name(),
            until.unwrap_or_default()
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
        query: &str,
        definition: &str,
        failed: impl Fn(String) -> ImportError,
    ) -> Result<(), ImportError> {
        let url = self.board_url(board.as_str()) + query;
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

/// The definition without its `entry_ttl` and fields that are null, and that. `None`: it has none.
fn split_ttl(definition: &str) -> Option<(Map<String, Value>, Value)> {
    let mut definition: Map<String, Value> = serde_json::from_str(definition).ok()?;
    definition.retain(|_, field| !field.is_null());
    let ttl = definition.remove("entry_ttl")?;
    Some((definition, ttl))
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
