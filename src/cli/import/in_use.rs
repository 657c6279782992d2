//! Instances that are in use while rows of `all` come into their board: a row enters each that is open at its
//! time, and would replace what its member has there by the score of all times.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::cli::board_line::BoardLine;
use crate::cli::import::ImportError;
use crate::cli::import::send::{Connection, KeyFacts, OpenInstance};
use crate::types::{BoardName, Number, Score, Timestamp};
use crate::window::Window;
use crate::wire::lenient::number_of;

/// Members that are looked up at once.
const LOOKED_UP: usize = 1_000;

/// The windows beside `all` of the board of a file with rows of all times. `None`: there are none.
pub fn other_windows(line: &BoardLine) -> Option<String> {
    let definition: Value = serde_json::from_str(&line.definition).unwrap_or_default();
    let windows = definition.get("windows").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let names: Vec<&str> = windows.iter().filter_map(Value::as_str).collect();
    let others: Vec<&str> = names.iter().filter(|name| **name != Window::All.name()).copied().collect();
    let has_both = others.len() < names.len() && !others.is_empty();
    (line.instance.is_none() && has_both).then(|| others.join(", "))
}

/// Boards that rows of `all` come into, with the instances of theirs that are in use.
#[derive(Default)]
pub struct InUse(HashMap<BoardName, (Vec<KeyFacts>, Vec<Rows>)>);

/// What is not compared yet.
struct Rows {
    of: OpenInstance,
    /// By member, as the board orders scores.
    scores: Vec<(String, Vec<i64>)>,
}

impl InUse {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn add(&mut self, board: &BoardName, keys: Vec<KeyFacts>, instances: Vec<OpenInstance>) {
        let rows: Vec<Rows> = instances.into_iter().map(|of| Rows { of, scores: Vec::new() }).collect();
        if !rows.is_empty() {
            self.0.insert(board.clone(), (keys, rows));
        }
    }

    /// Looks whether a row changes what its member has, now or with later ones.
    ///
    /// # Errors
    /// When a member has another score in an instance; when the service cannot be reached.
    pub fn compare(
        &mut self,
        connection: &Connection<'_>,
        board: &BoardName,
        at: Timestamp,
        member: &str,
        score: &Score,
    ) -> Result<(), ImportError> {
        let Some((keys, instances)) = self.0.get_mut(board) else { return Ok(()) };
        for rows in instances.iter_mut().filter(|rows| rows.of.span.contains(at)) {
            let Some(score) = ordered(keys, score.numbers().map(Some)) else { continue };
            rows.scores.push((member.to_owned(), score));
            if rows.scores.len() >= LOOKED_UP {
                rows.compare(connection, board, keys)?;
            }
        }
        Ok(())
    }

    /// Looks at the rows that are left.
    ///
    /// # Errors
    /// As [`InUse::compare`].
    pub fn compare_rest(&mut self, connection: &Connection<'_>) -> Result<(), ImportError> {
        for (board, (keys, instances)) in &mut self.0 {
            instances.iter_mut().try_for_each(|rows| rows.compare(connection, board, keys))?;
        }
        Ok(())
    }
}

impl Rows {
    fn compare(
        &mut self,
        connection: &Connection<'_>,
        board: &BoardName,
        keys: &[KeyFacts],
    ) -> Result<(), ImportError> {
        let scores: HashMap<String, Vec<i64>> = self.scores.drain(..).collect();
        let members: HashSet<&str> = scores.keys().map(String::as_str).collect();
        for entry in connection.entries_of(board, &self.of.name, &members)? {
            let numbers = match &entry.score {
                Value::Array(numbers) => numbers.iter().map(number).collect(),
                one => vec![number(one)],
            };
            if scores.get(&entry.member).is_some_and(|score| ordered(keys, numbers).as_ref() != Some(score)) {
                return Err(ImportError::WindowInUse {
                    to: connection.to(),
                    board: board.to_string(),
                    instance: self.of.name.clone(),
                    member: entry.member,
                    has: entry.score.to_string(),
                });
            }
        }
        Ok(())
    }
}

fn number(json: &Value) -> Option<Number> {
    number_of(&json.to_string()).ok()
}

/// A score as the board orders it, in which 42 and 42.0 are one. `None`: the board has no such scores.
fn ordered(keys: &[KeyFacts], numbers: impl IntoIterator<Item = Option<Number>>) -> Option<Vec<i64>> {
    keys.iter().zip(numbers).map(|(known, number)| known.key.ordered(number?).ok()).collect()
}
