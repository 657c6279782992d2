//! All schemas, as the components hold them.

use serde_json::{Map, Value};

use crate::http::openapi::schemas::{boards, combined, entries, jobs, service, snapshots, values};

/// All schemas, in the order in which the document has them.
pub fn all() -> Value {
    let mut all = Map::new();
    for group in [
        values::schemas(),
        boards::schemas(),
        boards::seasons(),
        boards::removals(),
        jobs::inputs(),
        jobs::answers(),
        entries::schemas(),
        entries::ranks(),
        combined::schemas(),
        snapshots::schemas(),
        service::nodes(),
        service::rejects(),
        service::schemas(),
    ] {
        if let Value::Object(schemas) = group {
            all.extend(schemas);
        }
    }
    Value::Object(all)
}
