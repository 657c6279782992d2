//! JSON errors in words for clients: where the mistake is, what stands there, and what should.
//!
//! Knows: the JSON parser's phrases, which are for programmers. No other module shows them to clients.

use crate::types::quoted;

/// How many bytes are shown of what stands at the mistake.
const SHOWN_BYTES: usize = 24;

/// Explains `error`, which a parser gave for `bytes`.
#[must_use]
pub fn json_words(bytes: &[u8], error: &serde_json::Error) -> String {
    if bytes.trim_ascii().is_empty() {
        return "there is nothing in it".to_owned();
    }
    let said = error.to_string();
    let phrase = said.rsplit_once(" at line ").map_or(said.as_str(), |(phrase, _)| phrase);
    let what = words(phrase);
    if error.line() == 0 {
        return what;
    }
    let place = format!("at line {}, column {}", error.line(), error.column());
    match at(bytes, error.line(), error.column()) {
        [] => format!("{what}, {place}"),
        rest => format!("{what}, {place}, where {} stands", quoted(&String::from_utf8_lossy(rest))),
    }
}

/// The bytes from a place on, up to the end of the line.
fn at(bytes: &[u8], line: usize, column: usize) -> &[u8] {
    let line = bytes.split(|byte| *byte == b'\n').nth(line.saturating_sub(1)).unwrap_or_default();
    let rest = line.get(column.saturating_sub(1)..).unwrap_or_default();
    rest.get(..SHOWN_BYTES).unwrap_or(rest)
}

fn words(phrase: &str) -> String {
    let plain = match phrase {
        "expected value" | "expected ident" => "a value is missing or is none",
        "expected `:`" => "a colon is missing behind a name",
        "expected `,` or `]`" => "a comma or the end of the array is missing",
        "expected `,` or `}`" => "a comma or the end of the object is missing",
        "expected `\"`" | "key must be a string" => "a name in quotation marks is missing",
        "trailing comma" => "a comma has nothing behind it",
        "trailing characters" => "there is more behind the end",
        "number out of range" => "a number is too large to be read",
        "invalid number" => "a number is not written as JSON has numbers",
        "recursion limit exceeded" => "it is nested too deep",
        "invalid unicode code point" => "a text is not UTF-8",
        phrase if phrase.starts_with("EOF") => "it ends too early",
        phrase if phrase.starts_with("control character") => {
            "a text holds a control character, which has to be escaped"
        }
        phrase if phrase.contains("escape") || phrase.contains("surrogate") => {
            "a text holds an escape that stands for nothing"
        }
        phrase => return of_shape(phrase),
    };
    plain.to_owned()
}

/// Explains a mistake in well-formed JSON of the wrong shape.
fn of_shape(phrase: &str) -> String {
    let name = |rest: &str| rest.trim_matches('`').to_owned();
    if let Some(rest) = phrase.strip_prefix("missing field ") {
        return format!("{} is missing", name(rest));
    }
    if let Some(rest) = phrase.strip_prefix("duplicate field ") {
        return format!("{} is given twice", name(rest));
    }
    if let Some(rest) = phrase.strip_prefix("unknown field ") {
        let (stray, known) = rest.split_once(", ").unwrap_or((rest, ""));
        let known = known.trim_start_matches("expected ").trim_start_matches("one of ").replace('`', "");
        return format!("there is no field {} here, only {known}", name(stray));
    }
    "a value is of another kind than it should be".to_owned()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::Value;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body {
        #[expect(dead_code, reason = "only what is wrong with it matters here")]
        members: Vec<String>,
    }

    #[test]
    fn a_mistake_is_explained_with_its_place_and_without_the_parsers_phrases() {
        for (text, expect) in [
            ("", "there is nothing in it"),
            ("nonsense", "a value is missing or is none, at line 1, column 2, where \"onsense\" stands"),
            ("{\"a\":1", "it ends too early, at line 1, column 6, where \"1\" stands"),
            ("{\n\"a\":x}", "a value is missing or is none, at line 2, column 5, where \"x}\" stands"),
            ("[1 2]", "a comma or the end of the array is missing, at line 1, column 4, where \"2]\" stands"),
            ("[1]]", "there is more behind the end, at line 1, column 4, where \"]\" stands"),
            ("[1e999]", "a number is too large to be read"),
            ("[1,]", "a comma has nothing behind it"),
            ("{1:2}", "a name in quotation marks is missing"),
            ("[01]", "a number is not written as JSON has numbers"),
            ("[\"\\x\"]", "a text holds an escape that stands for nothing"),
            ("[\"\\ud800\"]", "a text holds an escape that stands for nothing"),
        ] {
            let error = serde_json::from_str::<Value>(text).expect_err(text);
            let said = json_words(text.as_bytes(), &error);
            assert!(said.starts_with(expect), "{text}: {said}");
        }
        let deep = "[".repeat(1_000);
        let error = serde_json::from_str::<Value>(&deep).expect_err("too deep");
        assert!(json_words(deep.as_bytes(), &error).starts_with("it is nested too deep"));
        let binary = b"\x1f\x8b\x00\xff[";
        let error = serde_json::from_slice::<Value>(binary).expect_err("no JSON");
        let said = json_words(binary, &error);
        assert!(said.chars().all(|c| !c.is_control()), "{said:?}");
    }

    #[test]
    fn json_of_the_wrong_shape_is_explained_by_its_fields() {
        for (text, expect) in [
            ("{}", "members is missing"),
            ("{\"members\":[],\"more\":1}", "there is no field more here, only members"),
            ("{\"members\":[],\"members\":[]}", "members is given twice"),
            ("{\"members\":5}", "a value is of another kind than it should be"),
        ] {
            let error = serde_json::from_str::<Body>(text).expect_err(text);
            let said = json_words(text.as_bytes(), &error);
            assert!(said.starts_with(expect), "{text}: {said}");
        }
    }
}
