//! JSON errors in words for clients: where the mistake is, what stands there, and what should.
//!
//! Knows: the JSON parser's phrases, which are for programmers. No other module shows them to clients.

use crate::types::quoted;

/// How many bytes are shown of what stands at the mistake.
const SHOWN_BYTES: usize = 24;

/// Explains `error`, which a parser gave for `bytes`.
pub fn json_words(bytes: &[u8], error: &serde_json::Error) -> String {
    if bytes.trim_ascii().is_empty() {
        return "it is empty".to_owned();
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
        rest => format!("{what}, {place}: {}", quoted(&String::from_utf8_lossy(rest))),
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
        "expected value" | "expected ident" => "a value is missing, or is not a JSON value",
        "expected `:`" => "a colon is missing after a name",
        "expected `,` or `]`" => "a comma or the end of the array is missing",
        "expected `,` or `}`" => "a comma or the end of the object is missing",
        "expected `\"`" | "key must be a string" => "a name is missing, or is not in quotation marks",
        "trailing comma" => "nothing follows a comma",
        "trailing characters" => "more follows after the end of the value",
        "number out of range" => "a number is too large",
        "invalid number" => "a number is not written as JSON requires",
        "recursion limit exceeded" => "it is nested too deeply",
        "invalid unicode code point" => "a string is not UTF-8",
        phrase if phrase.starts_with("EOF") => "it ends too early",
        phrase if phrase.starts_with("control character") => {
            "a string contains a control character that is not escaped"
        }
        phrase if phrase.contains("escape") || phrase.contains("surrogate") => {
            "a string contains an invalid escape"
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
        return format!("there is no field {} here; the fields are {known}", name(stray));
    }
    "a value is of the wrong type".to_owned()
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
            ("", "it is empty"),
            ("nonsense", "a value is missing, or is not a JSON value, at line 1, column 2: \"onsense\""),
            ("{\"a\":1", "it ends too early, at line 1, column 6: \"1\""),
            ("{\n\"a\":x}", "a value is missing, or is not a JSON value, at line 2, column 5: \"x}\""),
            ("[1 2]", "a comma or the end of the array is missing, at line 1, column 4: \"2]\""),
            ("[1]]", "more follows after the end of the value, at line 1, column 4: \"]\""),
            ("[1e999]", "a number is too large"),
            ("[1,]", "nothing follows a comma"),
            ("{1:2}", "a name is missing, or is not in quotation marks"),
            ("[01]", "a number is not written as JSON requires"),
            ("[\"\\x\"]", "a string contains an invalid escape"),
            ("[\"\\ud800\"]", "a string contains an invalid escape"),
        ] {
            let error = serde_json::from_str::<Value>(text).expect_err(text);
            let said = json_words(text.as_bytes(), &error);
            assert!(said.starts_with(expect), "{text}: {said}");
        }
        let deep = "[".repeat(1_000);
        let error = serde_json::from_str::<Value>(&deep).expect_err("too deep");
        assert!(json_words(deep.as_bytes(), &error).starts_with("it is nested too deeply"));
        let binary = b"\x1f\x8b\x00\xff[";
        let error = serde_json::from_slice::<Value>(binary).expect_err("no JSON");
        let said = json_words(binary, &error);
        assert!(said.chars().all(|c| !c.is_control()), "{said:?}");
    }

    #[test]
    fn json_of_the_wrong_shape_is_explained_by_its_fields() {
        for (text, expect) in [
            ("{}", "members is missing"),
            ("{\"members\":[],\"more\":1}", "there is no field more here; the fields are members"),
            ("{\"members\":[],\"members\":[]}", "members is given twice"),
            ("{\"members\":5}", "a value is of the wrong type"),
        ] {
            let error = serde_json::from_str::<Body>(text).expect_err(text);
            let said = json_words(text.as_bytes(), &error);
            assert!(said.starts_with(expect), "{text}: {said}");
        }
    }
}
