//! One entry on its way into an export, whatever it was read from.

use std::borrow::Cow;

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
    /// Digits, if a job had a version.
    pub version: Option<Cow<'a, str>>,
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

    /// The same, of what it was read from no longer.
    pub fn into_owned(self) -> Row<'static> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Row {
            member: owned(self.member),
            score: owned(self.score),
            rank: owned(self.rank),
            position: owned(self.position),
            updated_at: owned(self.updated_at),
            reached_at: self.reached_at.map(owned),
            version: self.version.map(owned),
            meta: owned(self.meta),
            profile: self.profile.map(owned),
        }
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

/// A member who is hidden on a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    pub member: String,
    /// On all boards, and not only on this one.
    pub is_everywhere: bool,
    /// The entry that is hidden, which has no rank and no position. `None`: there is none in this instance.
    pub entry: Option<Row<'static>>,
}

/// Who is hidden, if that can be told.
#[derive(Debug, PartialEq, Eq)]
pub enum HiddenMembers {
    Known(Vec<Hidden>),
    /// In words, why not.
    Unknown(String),
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
