//! Exchanges with a real node, shown in the document.
//!
//! `examples.json` is a story: a test sends its requests in order to a fresh node of two shards, and compares
//! the answers to the letter.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Exchange {
    /// The operation that the request is for.
    operation: String,
    title: String,
    method: String,
    path: String,
    #[serde(default)]
    body: Option<Value>,
    status: u16,
    answer: Value,
}

static EXCHANGES: LazyLock<Vec<Exchange>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("examples.json")).expect("a test reads the file, and replays it")
});

/// Puts an operation's exchanges where OpenAPI has them: its body's examples and its answers'.
pub fn add(operation: &mut Value, name: &str) {
    let exchanges = EXCHANGES.iter().filter(|exchange| exchange.operation == name);
    for (number, exchange) in (1..).zip(exchanges) {
        let key = format!("example-{number}");
        let request = format!("{}: {} {}", exchange.title, exchange.method, exchange.path);
        if let Some(body) = &exchange.body {
            put(operation.pointer_mut("/requestBody"), &key, &request, body);
        }
        let answer = format!("/responses/{}", exchange.status);
        put(operation.pointer_mut(&answer), &key, &request, &exchange.answer);
    }
}

/// Adds an example to the one kind of content that a body or an answer has.
fn put(place: Option<&mut Value>, key: &str, summary: &str, value: &Value) {
    let contents = place.and_then(|place| place.get_mut("content")).and_then(Value::as_object_mut);
    let content = contents.and_then(|contents| contents.values_mut().next());
    if let Some(content) = content.and_then(Value::as_object_mut) {
        let examples = content.entry("examples").or_insert_with(|| json!({}));
        if let Some(examples) = examples.as_object_mut() {
            examples.insert(key.to_owned(), json!({"summary": summary, "value": value}));
        }
    }
}
