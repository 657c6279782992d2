//! A strict reader of the JSON Schema that the document uses, for tests: objects are closed, so that an
//! answer with a name that is not documented is found, and a keyword that is not known here fails.

#![allow(clippy::indexing_slicing, reason = "a bad index fails the test")]

use serde_json::Value;

/// # Panics
/// When the value is not what the schema says.
pub fn check(document: &Value, schema: &Value, value: &Value) {
    if let Err(why) = validate(document, schema, value) {
        panic!("{why}\n{value}");
    }
}

/// Checks an answer's body against the schema of its operation and status.
///
/// # Panics
/// When they differ.
pub fn check_answer(document: &Value, method: &str, path: &str, status: u16, body: &Value) {
    let path = path.split('?').next().unwrap_or_default();
    let paths = document["paths"].as_object().expect("paths");
    let Some(operation) = paths
        .iter()
        .filter(|(template, _)| is_path_of(template, path))
        .find_map(|(_, methods)| methods.get(method.to_lowercase()))
    else {
        assert!([404, 405].contains(&status), "{method} {path} answered {status}, and is not documented");
        return check(document, &serde_json::json!({"$ref": "#/components/schemas/Problem"}), body);
    };
    let response = &operation["responses"][status.to_string()];
    let contents = response["content"].as_object();
    let content = contents.and_then(|contents| contents.values().next());
    let content = content
        .unwrap_or_else(|| panic!("{method} {path} answered {status}, which is not documented: {body}"));
    if let Err(why) = validate(document, &content["schema"], body) {
        panic!("{method} {path} {status}: {why}\n{body}");
    }
}

fn is_path_of(template: &str, path: &str) -> bool {
    let (mut template, mut path) = (template.split('/'), path.split('/'));
    loop {
        match (template.next(), path.next()) {
            (None, None) => return true,
            (Some(known), Some(found)) if known == found || stands_for(known, found) => {}
            _ => return false,
        }
    }
}

/// Whether a segment is a parameter, with what follows it in the template.
fn stands_for(template: &str, found: &str) -> bool {
    let parameter = template.strip_prefix('{').and_then(|rest| rest.split_once('}'));
    parameter.is_some_and(|(_, suffix)| !found.is_empty() && found.ends_with(suffix))
}

fn validate(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let keywords = schema.as_object().expect("a schema is an object");
    for (keyword, rule) in keywords {
        let fits = match keyword.as_str() {
            "$ref" => {
                let target = rule.as_str().and_then(|target| target.strip_prefix('#'));
                let target = target.and_then(|target| document.pointer(target));
                validate(document, target.unwrap_or_else(|| panic!("{rule} leads nowhere")), value)?;
                true
            }
            "anyOf" => {
                let variants = rule.as_array().expect("an array");
                let tried = variants.iter().map(|one| validate(document, one, value));
                let failed: Vec<String> = tried.filter_map(Result::err).collect();
                if failed.len() == variants.len() {
                    return Err(format!("none of\n  {}", failed.join("\n  ")));
                }
                true
            }
            "allOf" => {
                rule.as_array()
                    .expect("an array")
                    .iter()
                    .try_for_each(|one| validate(document, one, value))?;
                true
            }
            "type" => match rule {
                Value::Array(kinds) => kinds.iter().any(|kind| is_a(kind, value)),
                kind => is_a(kind, value),
            },
            "enum" => rule.as_array().expect("an array").contains(value),
            "const" => rule == value,
            "minimum" => value.as_f64().zip(rule.as_f64()).is_none_or(|(value, least)| value >= least),
            "maximum" => value.as_f64().zip(rule.as_f64()).is_none_or(|(value, most)| value <= most),
            "minItems" | "maxItems" => {
                let (count, limit) = (value.as_array().map(Vec::len), rule.as_u64().expect("a number"));
                let count = count.and_then(|count| u64::try_from(count).ok());
                count.is_none_or(|count| if keyword == "minItems" { count >= limit } else { count <= limit })
            }
            "uniqueItems" => {
                let is_repeated = |(at, item): (usize, &Value)| {
                    value.as_array().into_iter().flatten().take(at).any(|other| other == item)
                };
                !value.as_array().into_iter().flatten().enumerate().any(is_repeated)
            }
            "minProperties" | "maxProperties" => {
                let (count, limit) =
                    (value.as_object().map(serde_json::Map::len), rule.as_u64().expect("a number"));
                let count = count.and_then(|count| u64::try_from(count).ok());
                count.is_none_or(
                    |count| if keyword == "minProperties" { count >= limit } else { count <= limit },
                )
            }
            "items" => {
                value.as_array().into_iter().flatten().try_for_each(|item| validate(document, rule, item))?;
                true
            }
            "required" => {
                let mut names = rule.as_array().expect("an array").iter().filter_map(Value::as_str);
                value.as_object().is_none_or(|fields| names.all(|name| fields.contains_key(name)))
            }
            "properties" => {
                for (name, field) in value.as_object().into_iter().flatten() {
                    match rule.get(name) {
                        Some(rule) => {
                            validate(document, rule, field).map_err(|why| format!("{name}: {why}"))?;
                        }
                        // Beside `allOf`, `properties` describes a part of the fields.
                        None if keywords.contains_key("allOf") => {}
                        None => return Err(format!("{name} is not documented")),
                    }
                }
                true
            }
            "additionalProperties" => {
                if rule.is_object() {
                    let mut fields = value.as_object().into_iter().flatten();
                    fields.try_for_each(|(_, field)| validate(document, rule, field))?;
                }
                true
            }
            // Told for people, or checked by others.
            "description" | "title" | "default" | "examples" | "format" | "pattern" | "propertyNames"
            | "minLength" | "maxLength" => true,
            other => panic!("the keyword {other} is not known here"),
        };
        if !fits {
            return Err(format!("{value} breaks {keyword}: {rule}"));
        }
    }
    Ok(())
}

fn is_a(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => panic!("{kind} is no type"),
    }
}
