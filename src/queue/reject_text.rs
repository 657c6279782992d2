//! A reject as JSON: in the stream of rejects, from `GET /v1/rejects` and from `ranktree rejects`.
//!
//! The job keeps its text, as an encoded job keeps its metadata's: a JSON value in between would round
//! numbers, and drop what is named twice.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::storage::codec::RejectRecord;
use crate::types::ShardId;
use crate::wire::compact;

#[derive(Serialize)]
struct RejectJson<'a> {
    shard: u16,
    sequence: u64,
    index: u32,
    /// The shard's time when the job was rejected.
    rejected_at: String,
    reason: &'static str,
    detail: &'a str,
    /// The job, or as text the bytes that came in its place.
    job: Box<RawValue>,
}

/// One compact JSON object, without a line break.
pub fn reject_text(shard: ShardId, reject: &RejectRecord) -> String {
    let json = RejectJson {
        shard: shard.0,
        sequence: reject.sequence.0,
        index: reject.index,
        rejected_at: reject.time.to_string(),
        reason: reject.code.name(),
        detail: &reject.detail,
        job: job_text(&reject.job),
    };
    serde_json::to_string(&json).expect("text, numbers and raw JSON can be JSON")
}

fn job_text(job: &[u8]) -> Box<RawValue> {
    // Raw text is only skipped over. A value that subscribers could not read, such as 1e999, is sent as text;
    // so is a cut job.
    let raw = match std::str::from_utf8(job) {
        Ok(json) if serde_json::from_str::<Value>(json).is_ok() => compact(json).0,
        Ok(_) | Err(_) => Value::from(String::from_utf8_lossy(job)).to_string(),
    };
    RawValue::from_string(raw).expect("the text was parsed or written as JSON just above")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::RejectCode;
    use crate::types::{Sequence, Timestamp};

    fn check(job: &[u8], expected: &str) {
        let (code, detail) = (RejectCode::Malformed, "why".to_owned());
        let time = Timestamp::from_micros(1_500_000).expect("in range");
        let (sequence, job) = (Sequence(7), job.to_vec());
        let reject = RejectRecord { sequence, index: 2, code, detail, job, time, board: None };
        let start = r#"{"shard":3,"sequence":7,"index":2,"rejected_at":"1970-01-01T00:00:01.5Z","reason":"malformed","detail":"why","job":"#;
        assert_eq!(reject_text(ShardId(3), &reject), format!("{start}{expected}}}"));
    }

    #[test]
    fn the_job_in_a_reject_keeps_its_text() {
        for job in [
            r#"{"score":123456789012345678901234567890,"price":1.10,"e":1E2,"zero":-0.0}"#,
            r#"{"a":1,"a":2,"escaped":"\u0041\/"}"#,
            "1.10",
            "null",
        ] {
            check(job.as_bytes(), job);
        }
        check(b"{ \"a\":\n [ 1.10, 2 ] }\n", r#"{"a":[1.10,2]}"#);
    }

    #[test]
    fn bytes_that_are_no_json_are_sent_as_text() {
        check(b"", r#""""#);
        check(b"\xff not\nJSON", "\"\u{fffd} not\\nJSON\"");
        check(b"{\"cut\":1", r#""{\"cut\":1""#);
        check(b"[1e999]", r#""[1e999]""#);
        check(&b"[".repeat(300), &format!("{:?}", "[".repeat(300)));
        let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
        check(deep.as_bytes(), &format!("{deep:?}"));
    }
}
