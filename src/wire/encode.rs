//! A job as JSON: for the queue, for parked jobs, and for stored rejects.
//!
//! The JSON is written by hand. A JSON value in between would round numbers in metadata, and drop repeated
//! names.

use std::io::Write as _;

use crate::job::{Job, Targets};
use crate::types::{Number, Score};

/// Most jobs are shorter.
const JOB_BYTES: usize = 96;

/// Encodes a job as compact JSON, which decodes to the same job. Metadata and profiles keep their text.
pub fn encode(job: &Job) -> Vec<u8> {
    let mut out = Vec::with_capacity(JOB_BYTES);
    encode_into(&mut out, job);
    out
}

/// Encodes a job as [`encode`] does, behind what there is.
pub fn encode_into(out: &mut Vec<u8>, job: &Job) {
    out.extend_from_slice(b"{\"member\":");
    write_text(out, job.member.as_str());
    if let Targets::Boards(boards) = &job.targets {
        match boards.as_slice() {
            [(board, score)] => {
                out.extend_from_slice(b",\"board\":");
                write_text(out, board.as_str());
                if let Some(score) = score {
                    out.extend_from_slice(b",\"score\":");
                    write_score(out, score);
                }
            }
            boards => {
                out.extend_from_slice(b",\"scores\":{");
                for (index, (board, score)) in boards.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write_text(out, board.as_str());
                    out.push(b':');
                    match score {
                        Some(score) => write_score(out, score),
                        None => out.extend_from_slice(b"null"),
                    }
                }
                out.push(b'}');
            }
        }
    }
    if let Some(op) = job.op {
        out.extend_from_slice(b",\"op\":");
        write_text(out, op.name());
    }
    if let Some(version) = job.version {
        out.extend_from_slice(b",\"version\":");
        write_number(out, version);
    }
    if let Some(at) = job.at {
        write!(out, ",\"at\":\"{at}\"").expect("writing to memory does not fail");
    }
    if let Some(id) = &job.id {
        out.extend_from_slice(b",\"id\":");
        write_text(out, id.as_str());
    }
    if let Some(metadata) = &job.meta {
        out.extend_from_slice(b",\"meta\":");
        // Well-formed and compact since the job was decoded.
        out.extend_from_slice(metadata.0.as_bytes());
    }
    if let Targets::Profile(profile) = &job.targets {
        out.extend_from_slice(b",\"profile\":");
        out.extend_from_slice(profile.0.as_bytes());
    }
    out.push(b'}');
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    // Most names of boards and ids of members need no escapes.
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        serde_json::to_writer(out, text)
            .expect("every text can be JSON, and writing to memory does not fail");
    }
}

fn write_number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// A score as JSON, which decodes to the same score.
pub fn score_json(score: &Score) -> String {
    let mut out = Vec::new();
    write_score(&mut out, score);
    String::from_utf8(out).expect("JSON is UTF-8")
}

fn write_score(out: &mut Vec<u8>, score: &Score) {
    let is_only = score.keys().len() == 1;
    for (index, number) in score.numbers().enumerate() {
        if !is_only {
            out.push(if index == 0 { b'[' } else { b',' });
        }
        match number {
            // To JSON, a whole number is an integer, and infinity is none.
            Number::Float(double) if double.is_infinite() || double.value().fract() == 0.0 => {
                write_text(out, &format!("{:?}", double.value()));
            }
            number => number.append_to(out),
        }
    }
    if !is_only {
        out.push(b']');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::decode::decode_one;

    fn check(json: &str) {
        let job = decode_one(json.as_bytes()).expect("it is a job");
        let encoded = encode(&job);
        assert_eq!(String::from_utf8_lossy(&encoded), json);
        assert_eq!(decode_one(&encoded), Some(job));
    }

    #[test]
    fn an_encoded_job_decodes_to_the_same_job() {
        check(r#"{"member":"m","board":"b","score":-9223372036854775808}"#);
        check(r#"{"member":"a \"quoted\" \\ 日本","board":"b","score":[1,-2],"op":"best"}"#);
        check(r#"{"member":"m","scores":{"z":1,"a":[2,3]},"version":18446744073709551615}"#);
        check(r#"{"member":"m","board":"b","op":"hide","at":"2026-11-20T09:59:58.000001Z"}"#);
        check(r#"{"member":"m","op":"remove"}"#);
        check(r#"{"member":"m","board":"b","score":1,"version":2,"id":"match-8841:p42"}"#);
        check(r#"{"member":"m","op":"hide","version":3}"#);
        check(r#"{"member":"m","op":"show"}"#);
        check(r#"{"member":"m","op":"profile","profile":{}}"#);
        check(
            r#"{"member":"m","op":"profile","version":7,"at":"2026-11-20T09:59:58Z","profile":{"n":1.10,"n":"\u0001"}}"#,
        );
    }

    #[test]
    fn encoded_metadata_keeps_its_text() {
        for meta in [
            r#"{"n":123456789012345678901234567890,"price":1.10,"e":1E2,"zero":-0.0}"#,
            r#"{"a":1,"a":2,"b":{"c":[],"c":[ ]}}"#,
            r#"{"escaped":"\" \\ \u0001","plain":"é"}"#,
            "{}",
        ] {
            let compact = meta.replace("[ ]", "[]");
            let json = format!(r#"{{"member":"m","board":"b","score":1,"meta":{meta}}}"#);
            let job = decode_one(json.as_bytes()).expect("it is a job");
            let encoded = encode(&job);
            assert_eq!(
                String::from_utf8_lossy(&encoded),
                format!(r#"{{"member":"m","board":"b","score":1,"meta":{compact}}}"#)
            );
            assert_eq!(decode_one(&encoded), Some(job));
        }
    }
}
