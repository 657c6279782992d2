//! One entry on its way into an export, whatever it was read from.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::cli::export::page_text;

/// An entry, in the words of the API's answers: nothing is parsed that is only passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'a> {
    pub member: Cow<'a, str>,
    /// As JSON.
    pub score: Cow<'a, str>,
    /// Digits.
    pub rank: Cow<'a, str>,
    pub position: Cow<'a, str>,
    pub updated_at: Cow<'a, str>,
    /// When the score was reached, where that orders ties.
    pub reached_at: Option<Cow<'a, str>>,
    /// A JSON object, or null where it cannot be told.
    pub meta: Cow<'a, str>,
    /// A JSON object, if profiles are exported and the member has one.
    pub profile: Option<Cow<'a, str>>,
}

impl Row<'_> {
    /// The time to import it with, so that it takes the same place among its ties.
    pub fn at(&self) -> &str {
        self.reached_at.as_deref().unwrap_or(&self.updated_at)
    }

    /// Whether there is metadata to speak of.
    pub fn has_meta(&self) -> bool {
        !matches!(&*self.meta, "{}" | "null")
    }

    /// Whether the service could not read the metadata that there is.
    pub fn lacks_meta(&self) -> bool {
        self.meta == "null"
    }

    /// The keys, separated by commas.
    pub fn score_keys(&self) -> Cow<'_, str> {
        let is_key = |byte: u8| byte == b'-' || byte.is_ascii_digit();
        if self.score.bytes().all(is_key) {
            return Cow::Borrowed(&self.score);
        }
        Cow::Owned(self.score.chars().filter(|c| !matches!(c, '[' | ']' | '"' | ' ')).collect())
    }
}

/// Entries in order, and how exact they are together.
#[derive(Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// The name of the instance that they are of.
    pub window: Cow<'a, str>,
    pub total: u64,
    pub entries: Vec<Row<'a>>,
    pub next_cursor: Option<Cow<'a, str>>,
    pub as_of: Cow<'a, str>,
    pub stale: bool,
}

impl<'a> Page<'a> {
    /// Reads what a service has answered.
    ///
    /// # Errors
    /// When it is no page.
    pub fn read(answer: &'a str) -> serde_json::Result<Self> {
        match page_text::read(answer) {
            Some(page) => Ok(page),
            None => serde_json::from_str::<PageJson<'a>>(answer).map(Self::from),
        }
    }
}

/// A page of any service that speaks JSON.
#[derive(serde::Deserialize)]
struct PageJson<'a> {
    #[serde(borrow)]
    window: Cow<'a, str>,
    total: u64,
    #[serde(borrow)]
    entries: Vec<RowJson<'a>>,
    #[serde(borrow)]
    next_cursor: Option<Cow<'a, str>>,
    #[serde(borrow)]
    as_of: Cow<'a, str>,
    #[serde(default)]
    stale: bool,
}

#[derive(serde::Deserialize)]
struct RowJson<'a> {
    #[serde(borrow)]
    member: Cow<'a, str>,
    #[serde(borrow)]
    score: &'a RawValue,
    rank: u64,
    position: u64,
    #[serde(borrow)]
    updated_at: Cow<'a, str>,
    #[serde(borrow)]
    reached_at: Option<Cow<'a, str>>,
    #[serde(borrow)]
    meta: &'a RawValue,
    #[serde(borrow, default)]
    profile: Option<&'a RawValue>,
}

impl<'a> From<PageJson<'a>> for Page<'a> {
    fn from(page: PageJson<'a>) -> Self {
        let PageJson { window, total, entries, next_cursor, as_of, stale } = page;
        let entries = entries.into_iter().map(|row| Row {
            member: row.member,
            score: row.score.get().into(),
            rank: row.rank.to_string().into(),
            position: row.position.to_string().into(),
            updated_at: row.updated_at,
            reached_at: row.reached_at,
            meta: row.meta.get().into(),
            profile: row.profile.map(|profile| profile.get().into()),
        });
        Self { window, total, entries: entries.collect(), next_cursor, as_of, stale }
    }
}
