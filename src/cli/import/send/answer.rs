//! What the service answers, as far as an import needs it.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};
use ureq::http::StatusCode;

use crate::cli::client::with_advice;
use crate::types::Timestamp;
use crate::window::{Instance, Span, Window};

/// An answer to jobs, or an `application/problem+json` about them, as far as it matters here.
#[derive(Deserialize, Default)]
pub struct Answer {
    /// If all jobs were applied and nothing else is told of them: whether each changed anything.
    #[serde(skip)]
    pub changes: Option<Vec<bool>>,
    /// Otherwise one per job, in order.
    #[serde(default)]
    pub results: Vec<JobResult>,
    #[serde(default)]
    pub code: String,
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub detail: String,
    /// Jobs that are invalid, so that none of the request was applied.
    #[serde(default)]
    pub errors: Vec<InvalidJob>,
    /// A field of a board, as are those that follow.
    pub policy: Option<String>,
    pub keys: Option<Value>,
    pub ties: Option<String>,
    pub windows: Option<Value>,
    pub utc_offset: Option<String>,
    pub season: Option<Value>,
    pub entry_ttl: Option<Value>,
    keep: Option<Value>,
    grace: Option<Value>,
    capacity: Option<Value>,
    movement: Option<Value>,
    kind: Option<Value>,
    expires_at: Option<Value>,
    expires_after: Option<Value>,
    /// By window.
    pub instances: Option<Value>,
    /// Of members that were looked up.
    #[serde(default)]
    pub entries: Vec<Entry>,
}

/// An instance that takes jobs.
pub struct OpenInstance {
    pub name: String,
    pub span: Span,
}

#[derive(Deserialize)]
pub struct Entry {
    pub member: String,
    pub score: Value,
}

#[derive(Deserialize)]
pub struct JobResult {
    #[serde(default)]
    pub changed: bool,
    /// For a job that names several boards.
    #[serde(default)]
    pub boards: HashMap<String, BoardResult>,
    pub rejected: Option<String>,
    /// The job's shard could not commit it.
    pub failed: Option<String>,
    #[serde(default)]
    pub detail: String,
}

#[derive(Deserialize)]
pub struct BoardResult {
    pub changed: bool,
}

#[derive(Deserialize)]
pub struct InvalidJob {
    pub index: usize,
    pub code: String,
    #[serde(default)]
    pub detail: String,
}

/// How the results of applied jobs begin, behind the token, and what they are.
const RESULTS: &[u8] = b"\",\"results\":[";
const CHANGED: &[u8] = b"{\"changed\":true}";
const UNCHANGED: &[u8] = b"{\"changed\":false}";

/// Reads the usual answer to jobs: `{"token":"0:7","results":[{"changed":true},{"changed":false}]}`. `None`:
/// it is another one. A large import reads as many results as rows.
fn read_changes(body: &[u8]) -> Option<Vec<bool>> {
    let rest = body.strip_prefix(b"{\"token\":\"")?;
    let is_token = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b':' | b',');
    let token = rest.iter().position(|byte| !is_token(byte))?;
    let mut rest = rest.get(token..)?.strip_prefix(RESULTS)?;
    let mut changes = Vec::with_capacity(rest.len() / CHANGED.len());
    loop {
        rest = if let Some(after) = rest.strip_prefix(CHANGED) {
            changes.push(true);
            after
        } else {
            changes.push(false);
            rest.strip_prefix(UNCHANGED)?
        };
        match rest {
            b"]}" => return Some(changes),
            [b',', after @ ..] => rest = after,
            _ => return None,
        }
    }
}

impl Answer {
    /// What is no such answer at all is one without anything.
    pub fn read(status: StatusCode, body: &[u8]) -> Self {
        if status == StatusCode::OK
            && let Some(changes) = read_changes(body)
        {
            return Self { changes: Some(changes), ..Self::default() };
        }
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// A board's definition, without the fields that are null.
    pub fn definition(&self) -> Value {
        let Self { policy, keys, ties, windows, utc_offset, season, entry_ttl, .. } = self;
        let Self { keep, grace, capacity, movement, kind, expires_at, expires_after, .. } = self;
        let mut definition = json!({
            "policy": policy, "keys": keys, "ties": ties, "windows": windows, "utc_offset": utc_offset,
            "season": season, "entry_ttl": entry_ttl, "keep": keep, "grace": grace, "capacity": capacity,
            "movement": movement, "kind": kind, "expires_at": expires_at, "expires_after": expires_after
        });
        if let Some(fields) = definition.as_object_mut() {
            fields.retain(|_, field| !field.is_null());
        }
        definition
    }

    /// The windows of the board beside `all`.
    pub fn other_windows(&self) -> Vec<String> {
        let windows = self.windows.as_ref().and_then(Value::as_array).into_iter().flatten();
        windows.filter_map(Value::as_str).filter(|name| *name != "all").map(str::to_owned).collect()
    }

    /// What the board tells of one of its instances.
    pub fn instance(&self, instance: Instance) -> Option<&Value> {
        let name = instance.to_string();
        let listed = self.instances.as_ref()?.get(instance.window.name())?.as_array()?;
        listed.iter().find(|listed| listed.get("name").and_then(Value::as_str) == Some(&name))
    }

    /// Instances of windows other than `all` that are open and have entries.
    pub fn in_use(&self) -> Vec<OpenInstance> {
        let windows = self.instances.as_ref().and_then(Value::as_object).into_iter().flatten();
        let listed = windows.filter(|(window, _)| *window != Window::All.name());
        let in_use = |listed: &Value| {
            let time = |name: &str| Timestamp::parse(listed.get(name)?.as_str()?).ok();
            let has_entries = listed.get("total").and_then(Value::as_u64).is_some_and(|total| total > 0);
            let is_open = listed.get("open") == Some(&Value::Bool(true));
            let span = Span { begin: time("begin")?, end: time("end") };
            let name = listed.get("name")?.as_str()?.to_owned();
            (is_open && has_entries).then_some(OpenInstance { name, span })
        };
        listed.filter_map(|(_, listed)| listed.as_array()).flatten().filter_map(in_use).collect()
    }

    /// For people, as short as it can be.
    pub fn describe(&self, status: StatusCode) -> String {
        let words = if self.detail.is_empty() { &self.title } else { &self.detail };
        let parts = [status.as_str(), &self.code, words];
        let words = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        with_advice(&words, &self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_answer_is_read_as_any_other_would_be() {
        for (results, expect) in [
            (r#"{"changed":true}"#, Some(vec![true])),
            (r#"{"changed":false},{"changed":true}"#, Some(vec![false, true])),
            ("", None),
            (r#"{"changed":true},"#, None),
            (r#"{"changed":true} "#, None),
            (r#"{"changed":true}{"changed":true}"#, None),
            (r#"{"changed":true,"boards":{}}"#, None),
            (r#"{"changed":false},{"rejected":"overflow"}"#, None),
        ] {
            let body = format!(r#"{{"token":"0:17,3:4","results":[{results}]}}"#);
            assert_eq!(read_changes(body.as_bytes()), expect, "{body}");
            let by_serde: Answer = serde_json::from_str(&body).unwrap_or_default();
            if let Some(expect) = expect {
                assert!(by_serde.results.iter().map(|result| result.changed).eq(expect), "{body}");
            }
        }
        for body in ["", "{}", r#"{"token":"0:1"}"#, r#"{"token":"a","results":[{"changed":true}]}"#] {
            assert_eq!(read_changes(body.as_bytes()), None, "{body}");
        }
        let body = br#"{"token":"0:1","results":[{"changed":true}]}"#;
        assert!(Answer::read(StatusCode::SERVICE_UNAVAILABLE, body).changes.is_none());
    }
}
