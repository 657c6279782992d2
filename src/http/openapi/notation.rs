//! Schemas in few words: `integer, 1 to 1000, default 10`; an object's fields as a table.
//!
//! Knows: the JSON Schema that `schemas` and `parameters` use. Must not know: what it is about.

use std::fmt::Write as _;

use serde_json::Value;

use crate::http::openapi::html::{escape, markdown, properties, text};

/// A schema where it is used: its name if it has one, its fields if not.
pub fn describe(schema: &Value) -> String {
    if properties(schema).is_some() { fields(schema) } else { inline(schema) }
}

/// A schema in a line.
pub fn inline(schema: &Value) -> String {
    if let Some(name) =
        schema.get("$ref").and_then(Value::as_str).and_then(|target| target.rsplit('/').next())
    {
        return format!("<a href=\"#schema-{0}\">{0}</a>", escape(name));
    }
    if let Some(value) = schema.get("const") {
        return code(value);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let names: Vec<String> = values.iter().map(code).collect();
        return names.join(" | ") + &default(schema);
    }
    if let Some(variants) = variants(schema) {
        let inlined: Vec<String> = variants.iter().map(inline).collect();
        return inlined.join(" | ");
    }
    let mut out = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | "),
        Some(Value::String(name)) => name.clone(),
        _ => String::new(),
    };
    if let Some(items) = schema.get("items") {
        let _ = write!(out, " of {}", inline(items));
    }
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        let _ = write!(out, " of {}", inline(values));
    }
    for (least, most, unit) in [
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
        ("minProperties", "maxProperties", " fields"),
    ] {
        let bound = |name: &str| schema.get(name).map(Value::to_string);
        let _ = match (bound(least), bound(most)) {
            (Some(least), Some(most)) if least == most => write!(out, ", {least}{unit}"),
            (Some(least), Some(most)) => write!(out, ", {least} to {most}{unit}"),
            (Some(least), None) => write!(out, ", from {least}{unit}"),
            (None, Some(most)) => write!(out, ", up to {most}{unit}"),
            (None, None) => Ok(()),
        };
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        let _ = write!(out, ", <code>{}</code>", escape(pattern));
    }
    out + &default(schema)
}

fn default(schema: &Value) -> String {
    match schema.get("default").filter(|value| !value.is_null()) {
        Some(value) => format!(", default {}", code(value)),
        None => String::new(),
    }
}

fn code(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    format!("<code>{}</code>", escape(text.trim_end()))
}

fn variants(schema: &Value) -> Option<&Vec<Value>> {
    ["anyOf", "oneOf", "allOf"].into_iter().find_map(|name| schema.get(name)?.as_array())
}

/// A schema at length: an object's fields as a table, one after the other for one of several.
pub fn fields(schema: &Value) -> String {
    if let Some(variants) = variants(schema).filter(|all| all.iter().any(|one| properties(one).is_some())) {
        let mut out = String::new();
        for variant in variants {
            let title = text(variant, "title");
            if !title.is_empty() {
                let _ = writeln!(out, "<h4>{}</h4>", escape(title));
            }
            let _ = write!(out, "{}{}", markdown(text(variant, "description")), fields(variant));
        }
        return out;
    }
    let Some(properties) = properties(schema) else { return format!("<p>{}</p>\n", inline(schema)) };
    let required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|known| known == name))
    };
    let mut out = "<div class=\"wide\"><table>\n<tbody>\n".to_owned();
    for (name, field) in properties {
        let mark =
            if required(name) { "<span class=\"required\" title=\"always there\">*</span>" } else { "" };
        let inner = field.get("items").filter(|items| self::properties(items).is_some()).unwrap_or(field);
        let nested = if self::properties(inner).is_some() { fields(inner) } else { String::new() };
        let kind = if nested.is_empty() { inline(field) } else { text(field, "type").to_owned() };
        let _ = writeln!(
            out,
            "<tr><td><code>{}</code>{mark}</td><td>{kind}</td><td>{}{nested}</td></tr>",
            escape(name),
            markdown(text(field, "description"))
        );
    }
    out + "</tbody></table></div>\n"
}
