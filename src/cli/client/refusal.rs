//! What a service's refusal says, for people: the code and the words of its problem, and what the caller of a
//! subcommand can do about it.

use serde::Deserialize;
use thiserror::Error;
use ureq::http::StatusCode;

use crate::cli::escaped::escaped_text;

/// The most characters that are shown of an answer that is no problem of ranktree's.
const SHOWN_CHARACTERS: usize = 200;

#[derive(Deserialize)]
struct Problem {
    code: String,
    detail: String,
}

/// That the service refused a request, so that asking again is of no use.
#[derive(Debug, Error)]
#[error("{base} cannot be read: {reason}")]
pub struct Refused {
    pub base: String,
    /// The code of the problem, if the answer was one.
    pub code: Option<String>,
    pub reason: String,
}

/// The code of a problem.
pub fn code_of(body: &[u8]) -> Option<String> {
    serde_json::from_slice(body).ok().map(|Problem { code, .. }| code)
}

/// An answer that refuses a request.
pub fn describe_refusal(status: StatusCode, body: &[u8]) -> String {
    let Ok(Problem { code, detail }) = serde_json::from_slice(body) else {
        let text = String::from_utf8_lossy(body);
        let shown: String = text.trim().chars().take(SHOWN_CHARACTERS).collect();
        return format!("{status} {}", escaped_text(&shown)).trim_end().to_owned();
    };
    let words = format!("{} {code}: {detail}", status.as_str());
    with_advice(&escaped_text(&words), &code)
}

/// Adds what to do about a refused token. A service can only speak of headers.
pub fn with_advice(words: &str, code: &str) -> String {
    match code {
        "unauthorized" | "invalid_token" => {
            format!("{words}. Give a token with --token-file FILE, or in the variable RANKTREE_TOKEN")
        }
        _ => words.to_owned(),
    }
}

/// What to do about a service that nobody answers for.
pub fn not_there(reason: &str) -> String {
    let reason = reason.strip_prefix("io: ").unwrap_or(reason);
    format!("{reason}. Check that the service runs there, and give its address with --url")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_told_by_its_code_and_words() {
        let body = br#"{"type":"t","title":"Not Found","status":404,"code":"unknown_board","detail":"there is none"}"#;
        assert_eq!(describe_refusal(StatusCode::NOT_FOUND, body), "404 unknown_board: there is none");
        let body = br#"{"code":"unauthorized","detail":"a token is needed"}"#;
        let told = describe_refusal(StatusCode::UNAUTHORIZED, body);
        assert!(
            told.starts_with("401 unauthorized: a token is needed") && told.contains("--token-file"),
            "{told}"
        );
        assert_eq!(describe_refusal(StatusCode::BAD_GATEWAY, b"<html>\n"), "502 Bad Gateway <html>");
        assert_eq!(describe_refusal(StatusCode::BAD_GATEWAY, b""), "502 Bad Gateway");
    }
}
