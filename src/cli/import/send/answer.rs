//! What the service answers, as far as an import needs it.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};
use ureq::http::StatusCode;

use crate::cli::client::with_advice;
use crate::window::Instance;

/// An answer to jobs, or an `application/problem+json` about them, as far as it matters here.
#[derive(Deserialize, Default)]
pub struct Answer {
    /// One per job, in order.
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
    /// By window.
    instances: Option<Value>,
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

impl Answer {
    /// A board's definition, without the fields that are null.
    pub fn definition(&self) -> Value {
        let Self { policy, keys, ties, windows, utc_offset, season, entry_ttl, .. } = self;
        let Self { keep, grace, capacity, movement, kind, .. } = self;
        let mut definition = json!({
            "policy": policy, "keys": keys, "ties": ties, "windows": windows, "utc_offset": utc_offset,
            "season": season, "entry_ttl": entry_ttl, "keep": keep, "grace": grace, "capacity": capacity,
            "movement": movement, "kind": kind
        });
        if let Some(fields) = definition.as_object_mut() {
            fields.retain(|_, field| !field.is_null());
        }
        definition
    }

    /// What the board tells of one of its instances.
    pub fn instance(&self, instance: Instance) -> Option<&Value> {
        let name = instance.to_string();
        let listed = self.instances.as_ref()?.get(instance.window.name())?.as_array()?;
        listed.iter().find(|listed| listed.get("name").and_then(Value::as_str) == Some(&name))
    }

    /// For people, as short as it can be.
    pub fn describe(&self, status: StatusCode) -> String {
        let words = if self.detail.is_empty() { &self.title } else { &self.detail };
        let parts = [status.as_str(), &self.code, words];
        let words = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        with_advice(&words, &self.code)
    }
}
