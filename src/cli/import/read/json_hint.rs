//! Where rows and their fields may be in JSON that is not read as it is: the options that read it.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::cli::import::read::json_paths::{Object, scalar};
use crate::cli::import::shell_word::shell_word;

/// How deep rows are looked for in a document, to say where they are.
const HINT_DEPTH: usize = 4;
/// Places that a message names.
const HINTS_NAMED: usize = 5;
/// Rows that are compared with the first one.
const ALIKE_ROWS: usize = 20;

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

/// The options by which rows are found in a document that is no row itself. Of several places all are named:
/// which of them has the rows is for nobody to guess.
///
/// # Arguments
/// - `within`: where the document itself is, if it is part of one.
/// - `is_keyed`: it is one of several in an object, and may be a group of rows even if it has one alone.
pub fn hint(text: &str, within: &[String], is_keyed: bool) -> Option<String> {
    let mut found = Hints::default();
    found.look(text, &mut within.to_vec(), within.len() + HINT_DEPTH, is_keyed);
    let all: Vec<String> = found.arrays.into_iter().chain(found.keyed).collect();
    match all.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        _ => {
            let more = all.len().saturating_sub(HINTS_NAMED);
            let more = if more > 0 { format!(", and {more} more places") } else { String::new() };
            let named = all.iter().take(HINTS_NAMED).cloned().collect::<Vec<_>>().join(", or ");
            Some(format!("{named}{more}; each reads what is there alone"))
        }
    }
}

/// Options that read one place of a document each.
#[derive(Default)]
struct Hints {
    arrays: Vec<String>,
    /// Objects with a name for each row.
    keyed: Vec<String>,
}

impl Hints {
    fn look(&mut self, text: &str, path: &mut Vec<String>, depth_max: usize, is_keyed: bool) {
        let Ok(fields) = serde_json::from_str::<Object<'_>>(text) else { return };
        let at = |path: &[String]| {
            if path.is_empty() {
                String::new()
            } else {
                format!("--rows-at {} ", shell_word(&path.join(".")))
            }
        };
        let all = |start: fn(char) -> bool| {
            !fields.is_empty() && fields.values().all(|value| value.get().starts_with(start))
        };
        let are_objects = all(|c| c == '{') && (fields.len() > 1 || is_keyed);
        if are_objects || all(|c| c.is_ascii_digit() || c == '-') {
            self.keyed.push(format!("{}--member-from-key", at(path)));
            // Rows have fields in common, and groups of rows have not.
            if !are_objects || are_alike(fields.values().map(|value| value.get())) {
                return;
            }
        }
        for (name, first) in rows_in(&fields) {
            path.push(name.to_owned());
            let rows = at(path).trim_end().to_owned();
            // The rows of groups, or rows that have lists of their own.
            let fields: Object<'_> = serde_json::from_str(first).unwrap_or_default();
            let further = rows_in(&fields).into_iter().map(|(name, _)| {
                let path = format!("{}.{name}", path.join("."));
                format!(", or --rows-at {}", shell_word(&path))
            });
            self.arrays.push(rows + &further.collect::<String>());
            path.pop();
        }
        if path.len() < depth_max {
            for (name, value) in fields.iter().filter(|(_, value)| value.get().starts_with('{')) {
                path.push(name.to_string());
                self.look(value.get(), path, depth_max, false);
                path.pop();
            }
        }
    }
}

/// Whether values are objects that have names of fields in common with the first of them. Of one alone that
/// is not known.
pub fn are_alike<'a>(values: impl Iterator<Item = &'a str>) -> bool {
    let mut objects =
        values.take(ALIKE_ROWS).map(|value| serde_json::from_str::<Object<'_>>(value).unwrap_or_default());
    let Some(first) = objects.next() else { return false };
    let mut is_any = false;
    let is_like_first = |other: &Object<'_>| {
        let common = other.keys().filter(|name| first.contains_key(*name)).count();
        common > 0 && common * 2 >= first.len().min(other.len())
    };
    objects.all(|other| {
        is_any = true;
        is_like_first(&other)
    }) && is_any
}

/// Whether values are objects of the same fields. Of one alone that is not known.
pub fn are_same<'a>(values: impl Iterator<Item = &'a str>) -> bool {
    let mut names = values.take(ALIKE_ROWS).map(|value| {
        let fields = serde_json::from_str::<Object<'_>>(value).unwrap_or_default();
        fields.into_keys().map(Cow::into_owned).collect::<Vec<String>>()
    });
    let first = names.next().unwrap_or_default();
    let mut is_any = false;
    names.all(|other| {
        is_any = true;
        other == first
    }) && is_any
}

/// What helps a document that has a column in each field, with its values by the numbers of rows.
pub fn by_columns(text: &str) -> Option<&'static str> {
    let fields: Object<'_> = serde_json::from_str(text).ok()?;
    let names = |value: &&RawValue| {
        let column: Object<'_> = serde_json::from_str(value.get()).ok()?;
        Some(column.into_keys().map(Cow::into_owned).collect::<Vec<String>>())
    };
    let first = fields.values().next().and_then(names)?;
    let is_numbered = first.iter().any(|name| name == "0")
        && first.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let is_it = is_numbered && fields.values().all(|value| names(value).as_ref() == Some(&first));
    is_it.then_some(
        "the document has an object for each column, as pandas writes them; write one for each row instead, there with \
         orient=\"records\"",
    )
}

/// The fields that are arrays of objects or arrays, each with the first of these.
fn rows_in<'a>(fields: &'a Object<'a>) -> Vec<(&'a str, &'a str)> {
    let first = |value: &'a RawValue| {
        let items: Vec<&'a RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
        items.first().map(|item| item.get()).filter(|item| item.starts_with(['{', '[']))
    };
    fields.iter().filter_map(|(name, value)| Some((&**name, first(value)?))).collect()
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
            (
                r#"{"A":[{"x":1}],"B":[{"x":1}]}"#,
                Some("--rows-at A, or --rows-at B; each reads what is there alone"),
            ),
            (
                r#"{"meta":{"n":2},"users":{"ann":{"x":1},"bob":{"x":2}}}"#,
                Some(
                    "--member-from-key, or --rows-at meta --member-from-key, or --rows-at users --member-from-key; each \
                     reads what is there alone",
                ),
            ),
            (
                r#"{"d":{"a":[{"x":1}]},"e":{"f":{"g":[{"x":1}]}},"n":1}"#,
                Some("--rows-at d.a, or --rows-at e.f.g; each reads what is there alone"),
            ),
        ] {
            assert_eq!(hint(text, &[], false).as_deref(), expect, "{text}");
        }
    }

    #[test]
    fn columns_with_the_numbers_of_rows_are_told_from_rows_by_id() {
        for (text, expect) in [
            (r#"{"name":{"0":"ann","1":"bob"},"score":{"0":5,"1":7}}"#, true),
            (r#"{"a":{"0":5,"7":1},"b":{"3":5}}"#, false),
            (r#"{"ann":{"pts":5},"bob":{"pts":7}}"#, false),
        ] {
            assert_eq!(by_columns(text).is_some(), expect, "{text}");
        }
    }
}
