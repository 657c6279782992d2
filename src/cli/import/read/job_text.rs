//! A job's JSON, as an import sends it.
//!
//! Written straight into a text: of a row, this is most of what an import does.

use std::fmt::Write as _;

use crate::types::{Floats, Score, Timestamp};
use crate::wire::score_json;

/// Most jobs are shorter.
const JOB_BYTES: usize = 128;

/// The fields of a job; those that are `None` are left out. Names of operations need no escapes.
#[derive(Clone, Copy, Default)]
pub struct JobText<'a> {
    pub board: &'a str,
    pub member: &'a str,
    pub score: Option<&'a Score>,
    pub op: Option<&'static str>,
    pub version: Option<u64>,
    pub at: Option<Timestamp>,
    /// JSON.
    pub meta: Option<&'a str>,
}

impl JobText<'_> {
    /// As JSON.
    pub fn json(&self) -> String {
        let mut digits = itoa::Buffer::new();
        let mut json = String::with_capacity(JOB_BYTES + self.meta.map_or(0, str::len));
        json.push_str("{\"board\":");
        push_text(&mut json, self.board);
        json.push_str(",\"member\":");
        push_text(&mut json, self.member);
        if let Some(score) = self.score {
            json.push_str(",\"score\":");
            if score.floats() != Floats::NONE {
                json.push_str(&score_json(score));
            } else if let [key] = score.keys() {
                json.push_str(digits.format(*key));
            } else {
                for (index, key) in score.keys().iter().enumerate() {
                    json.push(if index == 0 { '[' } else { ',' });
                    json.push_str(digits.format(*key));
                }
                json.push(']');
            }
        }
        if let Some(op) = self.op {
            json.push_str(",\"op\":\"");
            json.push_str(op);
            json.push('"');
        }
        if let Some(version) = self.version {
            json.push_str(",\"version\":");
            json.push_str(digits.format(version));
        }
        if let Some(at) = self.at {
            write!(json, ",\"at\":\"{at}\"").expect("writing to memory does not fail");
        }
        if let Some(meta) = self.meta {
            json.push_str(",\"meta\":");
            json.push_str(meta);
        }
        json.push('}');
        json
    }
}

fn push_text(json: &mut String, text: &str) {
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        json.push('"');
        json.push_str(text);
        json.push('"');
    } else {
        json.push_str(&serde_json::to_string(text).expect("every string can be JSON"));
    }
}
