//! Texts of the document as HTML.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Text as HTML has it.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A text of the document; empty if it is absent.
pub fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Paragraphs, `code` and **bold**: what the document's texts use of Markdown.
pub fn markdown(source: &str) -> String {
    let mut out = String::new();
    for paragraph in source.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
        let _ = writeln!(out, "<p>{}</p>", spans(paragraph));
    }
    out
}

fn spans(paragraph: &str) -> String {
    let mut out = String::new();
    for (index, part) in paragraph.split('`').enumerate() {
        if index % 2 == 1 {
            let _ = write!(out, "<code>{}</code>", escape(part));
        } else {
            for (index, part) in part.split("**").enumerate() {
                let part = escape(part);
                let _ = if index % 2 == 1 {
                    write!(out, "<strong>{part}</strong>")
                } else {
                    write!(out, "{part}")
                };
            }
        }
    }
    out
}

/// The fields of an object, if it has any.
pub fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object).filter(|fields| !fields.is_empty())
}
