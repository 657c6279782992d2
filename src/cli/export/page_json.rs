//! Pages as a service answers them, in whatever form of JSON.
//!
//! Knows: the API's names. Must not know: what becomes of a page.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::cli::export::page_text;
use crate::cli::export::row::{Page, Row};

/// Reads what a service has answered.
///
/// # Errors
/// When it is no page.
pub fn read(answer: &str) -> serde_json::Result<Page<'_>> {
    match page_text::read(answer) {
        Some(page) => Ok(page),
        None => serde_json::from_str::<PageJson<'_>>(answer).map(Page::from),
    }
}

/// Reads one entry that a service has answered.
pub fn read_row(answer: &str) -> serde_json::Result<Row<'_>> {
    serde_json::from_str::<RowJson<'_>>(answer).map(Row::from)
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
    #[serde(borrow, default)]
    version: Option<&'a RawValue>,
    #[serde(borrow)]
    meta: &'a RawValue,
    #[serde(borrow, default)]
    profile: Option<&'a RawValue>,
}

impl<'a> From<PageJson<'a>> for Page<'a> {
    fn from(page: PageJson<'a>) -> Self {
        let PageJson { window, total, entries, next_cursor, as_of, stale } = page;
        let entries = entries.into_iter().map(Row::from);
        Self { window, total, entries: entries.collect(), next_cursor, as_of, stale }
    }
}

impl<'a> From<RowJson<'a>> for Row<'a> {
    fn from(row: RowJson<'a>) -> Self {
        Self {
            member: row.member,
            score: row.score.get().into(),
            rank: row.rank.to_string().into(),
            position: row.position.to_string().into(),
            updated_at: row.updated_at,
            reached_at: row.reached_at,
            version: row.version.map(|version| version.get().trim_matches('"').into()),
            meta: row.meta.get().into(),
            profile: row.profile.map(|profile| profile.get().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const START: &str = r#"{"board":"arena","window":"2026-W47","total":3,"entries":["#;
    const END: &str = r#"],"next_cursor":"01ab","as_of":"0:3,1:4"}"#;

    fn entry(fields: &str) -> String {
        format!(r#"{{"member":"m","score":1,"rank":1,"position":1,"updated_at":"t","meta":{{}}{fields}}}"#)
    }

    /// What serde reads, where it may differ from what is read here: of a page with another order of fields.
    fn by_serde(answer: &str) -> String {
        let Value::Object(fields) = serde_json::from_str(answer).expect("JSON") else { panic!("{answer}") };
        let reversed: serde_json::Map<String, Value> = fields.into_iter().rev().collect();
        json!(reversed).to_string()
    }

    #[test]
    fn pages_are_read_as_serde_reads_them() {
        let long = entry("").replace("\"score\":1", r#""score":[-5,"9007199254740993",0]"#);
        let other = entry(r#","reached_at":"2026-11-20T09:59:58.25Z""#).replace("\"m\"", "\"日本 é\"");
        let versioned = entry(r#","reached_at":"t","version":17"#);
        let greatest = entry(r#","version":"18446744073709551615""#);
        let large = entry("").replace("\"score\":1", r#""score":"-9223372036854775808","error":"7""#);
        for entries in
            [String::new(), entry(""), format!("{long},{other},{large},{versioned},{greatest},{}", entry(""))]
        {
            for end in [
                END.to_owned(),
                r#"],"next_cursor":null,"as_of":"0:3"}"#.to_owned(),
                END.replace('}', r#","stale":true}"#),
            ] {
                let answer = format!("{START}{entries}{end}");
                let page = page_text::read(&answer).unwrap_or_else(|| panic!("{answer} is a page of ours"));
                let other = by_serde(&answer);
                assert_eq!(page_text::read(&other), None, "{other}");
                assert_eq!(read(&other).expect("a page"), page);
                assert_eq!(page_text::next_cursor(&answer), page.next_cursor.as_deref());
            }
        }
    }

    #[test]
    fn other_pages_are_left_to_serde() {
        let quoted = entry("").replace("\"m\"", r#""\"""#);
        let metadata = entry("").replace("{}", r#"{"a":[],"next_cursor":"02","as_of":1}"#);
        let profile = entry(r#","profile":{"name":"A"}"#);
        for entries in [quoted, metadata, profile, entry(r#","more":1"#)] {
            let answer = format!("{START}{entries}{END}");
            assert_eq!(page_text::read(&answer), None, "{answer}");
            let page = read(&answer).expect("a page");
            assert_eq!(page.entries.len(), 1, "{answer}");
            assert_eq!(page_text::next_cursor(&answer), page.next_cursor.as_deref(), "{answer}");
            let last = answer.replace(r#""01ab""#, "null");
            assert_eq!(page_text::next_cursor(&last), None, "{last}");
        }
        for bad in ["", "{}", "[", START, &format!("{START}{},{END}", entry("")), &format!("{START}{END} x")]
        {
            assert_eq!(page_text::read(bad), None, "{bad}");
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
