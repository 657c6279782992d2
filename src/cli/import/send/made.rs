//! What a board is, as far as rows must know before they are sent; and the board that an import makes.

use std::collections::HashSet;

use serde_json::{Value, json};
use ureq::http::StatusCode;

use crate::board::{Key, KeyType};
use crate::cli::board_line::BoardLine;
use crate::cli::import::ImportError;
use crate::cli::import::open_windows::OpenWindows;
use crate::cli::import::send::answer::Entry;
use crate::cli::import::send::connection::Connection;
use crate::cli::import::send::retries::{Ended, Retries, until_answered};
use crate::types::BoardName;
use crate::wire::lenient::number_of;

/// A board, as far as the service tells.
#[derive(Debug, Clone, Default)]
pub struct BoardFacts {
    /// `None`: the service does not tell, and `reason` has its words.
    pub is_there: Option<bool>,
    pub reason: String,
    /// Of a board that is not there: whether a job makes it. `None`: the service does not tell.
    pub may_be_made: Option<bool>,
    /// Windows that it has beside `all`.
    pub windows: Vec<String>,
    /// Whether jobs that name no operation add to what is there.
    pub adds: Option<bool>,
    /// Of a board that is there, or that a file defines.
    pub keys: Option<Vec<KeyFacts>>,
    /// Of such a board, unless every time is taken.
    pub open: Option<OpenWindows>,
}

#[derive(Debug, Clone)]
pub struct KeyFacts {
    pub name: String,
    /// `asc` or `desc`.
    pub order: String,
    /// Its type and bounds.
    pub key: Key,
}

impl BoardFacts {
    /// Of a board that the definition of a file will make, if it is not there.
    pub fn of_file(line: &BoardLine) -> Self {
        let definition: Value = serde_json::from_str(&line.definition).unwrap_or_default();
        // The board of one instance is made so that the instance is open.
        let open =
            if line.instance.is_some() { None } else { OpenWindows::of_file(&line.definition, &line.board) };
        Self { keys: keys(definition.get("keys")), open, ..Self::default() }
    }
}

impl Connection<'_> {
    /// # Errors
    /// When the service cannot be reached.
    pub fn facts(&self, board: &str) -> Result<BoardFacts, ImportError> {
        let url = self.board_url(board);
        let get = || self.client.get(&url);
        match until_answered(get, true, &mut Retries::new(self.service))? {
            // The board will be created with the defaults, whose policy is set.
            Ended::Answered(StatusCode::NOT_FOUND, _) => Ok(BoardFacts {
                is_there: Some(false),
                may_be_made: self.service.makes_boards(),
                adds: Some(false),
                ..BoardFacts::default()
            }),
            // Without the right to read the definition, its jobs will be refused, too.
            Ended::Answered(status, answer) => Ok(BoardFacts {
                is_there: (status == StatusCode::OK).then_some(true),
                reason: answer.describe(status),
                may_be_made: None,
                windows: answer.other_windows(),
                adds: answer.policy.as_deref().map(|policy| policy == "incr"),
                keys: keys(answer.keys.as_ref()),
                open: BoardName::new(board).ok().filter(|_| status == StatusCode::OK).and_then(|name| {
                    OpenWindows::of_board(&answer.definition().to_string(), &name, answer.instances.as_ref())
                }),
            }),
            Ended::OutcomeUnknown { reason } => Err(self.service.not_understood(reason)),
            Ended::Permanent { reason } => {
                Err(ImportError::Unusable { to: self.client.base().to_owned(), reason })
            }
        }
    }

    /// The entries of members in an instance. What the service does not show, nobody has.
    ///
    /// # Errors
    /// When the service cannot be reached.
    pub fn entries_of(
        &self,
        board: &BoardName,
        instance: &str,
        members: &HashSet<&str>,
    ) -> Result<Vec<Entry>, ImportError> {
        let url = format!("{}/members:lookup?window={instance}", self.board_url(board.as_str()));
        let body = json!({ "members": members }).to_string();
        match until_answered(|| self.client.post(&url, &body), true, &mut Retries::new(self.service))? {
            Ended::Answered(_, answer) => Ok(answer.entries),
            Ended::OutcomeUnknown { reason } => Err(self.service.not_understood(reason)),
            Ended::Permanent { reason } => {
                Err(ImportError::Unusable { to: self.client.base().to_owned(), reason })
            }
        }
    }

    /// Makes a board.
    ///
    /// # Arguments
    /// `keys`: the name of each, and its order.
    ///
    /// # Errors
    /// When the service refuses, or cannot be reached.
    pub fn make(&self, board: &str, keys: &[(String, &'static str)]) -> Result<(), ImportError> {
        let keys: Vec<Value> =
            keys.iter().map(|(name, order)| json!({"name": name, "order": order})).collect();
        let definition = json!({ "keys": keys }).to_string();
        let not_made = |reason: String| ImportError::NotMade {
            to: self.client.base().to_owned(),
            board: board.to_owned(),
            reason,
        };
        let put = || self.client.put(&self.board_url(board), &definition);
        match until_answered(put, true, &mut Retries::new(self.service))? {
            Ended::Answered(status, _) if status.is_success() => Ok(()),
            Ended::Answered(status, answer) => Err(not_made(answer.describe(status))),
            Ended::OutcomeUnknown { reason } | Ended::Permanent { reason } => Err(not_made(reason)),
        }
    }
}

fn keys(keys: Option<&Value>) -> Option<Vec<KeyFacts>> {
    keys.and_then(Value::as_array).map(|keys| keys.iter().map(key).collect())
}

fn key(key: &Value) -> KeyFacts {
    let text = |name: &str| key.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_float = text("type") == KeyType::Float.name();
    let key_type = if is_float { KeyType::Float } else { KeyType::Integer };
    let any = Key { key_type, ..Key::score() };
    let bound = |name: &str, otherwise: i64| {
        let number = key.get(name).and_then(|value| number_of(&value.to_string()).ok());
        number.and_then(|number| any.ordered(number).ok()).unwrap_or(otherwise)
    };
    let (min, max) = (bound("min", i64::MIN), bound("max", i64::MAX));
    KeyFacts { name: text("name"), order: text("order"), key: Key { min, max, ..any } }
}
