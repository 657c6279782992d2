//! Where rows and their fields may be in JSON that is not read as it is: the options that read it.

use serde_json::value::RawValue;

use crate::cli::import::read::json_paths::{Object, scalar};
use crate::cli::import::shell_word::shell_word;

/// How deep rows are looked for in a document, to say where they are.
const HINT_DEPTH: usize = 4;

/// What reads a value that is an object or an array, rather than a text or a number.
pub fn within(field: &str, path: &str, value: &str) -> String {
    let fields: Object<'_> = serde_json::from_str(value).unwrap_or_default();
    let is_list = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    if value.starts_with('[') || fields.keys().any(|name| is_list(name)) {
        return "; if it has the values of all rows, write an object for each row instead, as pandas does with \
                orient=\"records\""
            .to_owned();
    }
    let is_read = |value: &RawValue| scalar(value.get()).is_some();
    let found = fields.iter().find(|(_, value)| is_read(value));
    found.map_or_else(String::new, |(name, _)| {
        format!("; --column {} reads what is in it", shell_word(&format!("{field}={path}.{name}")))
    })
}

/// The path of a field of a name that is not a row's own, but of an object in it.
pub fn path_of(text: &str, name: &str) -> Option<String> {
    let fields: Object<'_> = serde_json::from_str(text).ok()?;
    fields.iter().filter(|(_, value)| value.get().starts_with('{')).find_map(|(outer, value)| {
        let inner: Object<'_> = serde_json::from_str(value.get()).ok()?;
        let path = if inner.get(name).is_some_and(|value| scalar(value.get()).is_some()) {
            name.to_owned()
        } else {
            path_of(value.get(), name)?
        };
        Some(format!("{outer}.{path}"))
    })
}

/// The options by which rows are found in a document that is no row itself.
///
/// # Arguments
/// - `within`: where the document itself is, if it is part of one.
/// - `is_keyed`: it is one of several in an object, and may be a group of rows even if it has one alone.
pub fn hint(text: &str, within: &[String], is_keyed: bool) -> Option<String> {
    hint_below(text, &mut within.to_vec(), within.len() + HINT_DEPTH, is_keyed)
}

fn hint_below(text: &str, path: &mut Vec<String>, depth_max: usize, is_keyed: bool) -> Option<String> {
    let fields: Object<'_> = serde_json::from_str(text).ok()?;
    let at = |path: &[String]| {
        if path.is_empty() { String::new() } else { format!("--rows-at {} ", shell_word(&path.join("."))) }
    };
    if let Some((name, first)) = rows_in(&fields) {
        path.push(name.to_owned());
        let rows = at(path).trim_end().to_owned();
        // The rows of groups, or rows that have lists of their own.
        let fields: Object<'_> = serde_json::from_str(first).unwrap_or_default();
        let further = rows_in(&fields).map(|(name, _)| {
            let path = format!("{}.{name}", path.join("."));
            format!(", or --rows-at {}", shell_word(&path))
        });
        return Some(rows + &further.unwrap_or_default());
    }
    let all = |start: fn(char) -> bool| {
        !fields.is_empty() && fields.values().all(|value| value.get().starts_with(start))
    };
    let has_rows_alone = all(|c| c == '{') && (fields.len() > 1 || is_keyed);
    if has_rows_alone || all(|c| c.is_ascii_digit() || c == '-') {
        return Some(format!("{}--member-from-key", at(path)));
    }
    if path.len() >= depth_max {
        return None;
    }
    fields.iter().find_map(|(name, value)| {
        path.push(name.to_string());
        let found = hint_below(value.get(), path, depth_max, false);
        path.pop();
        found
    })
}

/// A field that is an array of objects or arrays, and the first of these.
fn rows_in<'a>(fields: &'a Object<'a>) -> Option<(&'a str, &'a str)> {
    fields.iter().find_map(|(name, value)| {
        let items: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
        let first = items.first().map(|item| item.get()).filter(|item| item.starts_with(['{', '[']))?;
        Some((&**name, first))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_within_a_row_is_found_by_its_name() {
        for (text, expect) in [
            (r#"{"id":1,"stats":{"score":5}}"#, Some("stats.score")),
            (r#"{"a":{"b":{"score":"5"}},"c":{"score":[]}}"#, Some("a.b.score")),
            (r#"{"score":5}"#, None),
            (r#"[{"score":5}]"#, None),
        ] {
            assert_eq!(path_of(text, "score").as_deref(), expect, "{text}");
        }
    }

    #[test]
    fn where_rows_are_is_told_of_a_document() {
        for (text, expect) in [
            (r#"{"standings":[{"name":"ann"}]}"#, Some("--rows-at standings")),
            (r#"{"n":1,"data":{"page":1,"rows":[[1,2]]}}"#, Some("--rows-at data.rows")),
            (r#"{"ann":{"s":1},"bob":{"s":2}}"#, Some("--member-from-key")),
            (r#"{"ann":1,"bob":2}"#, Some("--member-from-key")),
            (r#"{"x":"","scores":{"ann":1}}"#, Some("--rows-at scores --member-from-key")),
            (
                r#"{"groups":[{"name":"a","rows":[{"x":1}]}]}"#,
                Some("--rows-at groups, or --rows-at groups.rows"),
            ),
            (r#"{"name":"ann","points":5}"#, None),
            (r#"{"v1.0":{"my rows":[{"x":1}]}}"#, Some("--rows-at 'v1.0.my rows'")),
        ] {
            assert_eq!(hint(text, &[], false).as_deref(), expect, "{text}");
        }
    }
}
