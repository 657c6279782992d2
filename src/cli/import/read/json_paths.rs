//! What a row of JSON has at a path: names of fields, and numbers of items from 0, with dots between them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::cli::import::read::numbers::Written;

pub type Object<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// What a row of JSON has at a path, as JSON. A name with dots in it comes before a path of that text.
pub fn lookup<'a>(json: &'a str, path: &str) -> Option<&'a str> {
    if json.starts_with('{') {
        let fields: Object<'a> = serde_json::from_str(json).ok()?;
        if let Some(value) = fields.get(path) {
            return Some(value.get());
        }
        let mut dots = path.match_indices('.').map(|(at, _)| at);
        return dots.find_map(|at| {
            let (name, rest) = path.split_at_checked(at)?;
            lookup(fields.get(name)?.get(), rest.strip_prefix('.')?)
        });
    }
    if json.starts_with('[') {
        let items: Vec<&'a RawValue> = serde_json::from_str(json).ok()?;
        let (index, rest) = path.split_once('.').map_or((path, None), |(index, rest)| (index, Some(rest)));
        let item = items.get(index.parse::<usize>().ok()?)?.get();
        return rest.map_or(Some(item), |rest| lookup(item, rest));
    }
    None
}

/// A text or a number of JSON.
pub fn scalar(json: &str) -> Option<(Cow<'_, str>, Written)> {
    if json.starts_with('"') {
        let text: Cow<'_, str> = serde_json::from_str::<String>(json).ok()?.into();
        return Some((text, Written::Text));
    }
    let is_number = json.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    is_number.then_some((Cow::Borrowed(json), Written::JsonNumber))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_into_objects_and_arrays() {
        let text = r#"{"a":{"b":[10,{"c":"x"}]},"a.d":7,"e":null}"#;
        for (path, expect) in [
            ("a.b.0", Some("10")),
            ("a.b.1.c", Some("\"x\"")),
            ("a.d", Some("7")),
            ("e", Some("null")),
            ("a.x", None),
            ("a.b.2", None),
            ("a.b.c", None),
        ] {
            assert_eq!(lookup(text, path), expect, "{path}");
        }
    }
}
