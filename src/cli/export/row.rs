//! One entry on its way into an export, whatever it was read from.

use serde_json::value::RawValue;

/// An entry, in the words of the API's answers: nothing is parsed that is only passed on.
#[derive(Debug, serde::Deserialize)]
pub struct Row {
    pub member: String,
    pub score: Box<RawValue>,
    pub rank: u64,
    pub position: u64,
    pub updated_at: String,
    /// When the score was reached, where that orders ties.
    pub reached_at: Option<String>,
    /// A JSON object, or null where it cannot be told.
    pub meta: Box<RawValue>,
    /// A JSON object, if profiles are exported and the member has one.
    #[serde(default)]
    pub profile: Option<Box<RawValue>>,
}

impl Row {
    /// The time to import it with, so that it takes the same place among its ties.
    pub fn at(&self) -> &str {
        self.reached_at.as_deref().unwrap_or(&self.updated_at)
    }

    /// Whether there is metadata to speak of.
    pub fn has_meta(&self) -> bool {
        !matches!(self.meta.get(), "{}" | "null")
    }

    /// Whether the service could not read the metadata that there is.
    pub fn lacks_meta(&self) -> bool {
        self.meta.get() == "null"
    }

    /// The keys, separated by commas.
    pub fn score_keys(&self) -> String {
        self.score.get().chars().filter(|c| !matches!(c, '[' | ']' | '"' | ' ')).collect()
    }
}

/// Entries in order, and how exact they are together.
#[derive(Debug, serde::Deserialize)]
pub struct Page {
    /// The name of the instance that they are of.
    pub window: String,
    pub total: u64,
    pub entries: Vec<Row>,
    pub next_cursor: Option<String>,
    pub as_of: String,
    #[serde(default)]
    pub stale: bool,
}
