//! References to the document's components.

use serde_json::{Value, json};

/// A schema that the components hold.
pub fn component(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

/// A parameter that the components hold, because many operations take it.
pub fn shared(name: &str) -> Value {
    json!({"$ref": format!("#/components/parameters/{name}")})
}
