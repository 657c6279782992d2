//! The examples of the OpenAPI document, sent to a real node.

use std::fs;
use std::path::Path;

use serde_json::Value;
use ureq::http::Method;

use crate::support::binary::Binary;

#[test]
fn the_examples_of_the_document_are_what_a_node_answers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http/openapi/examples.json");
    let text = fs::read_to_string(&path).expect("the examples can be read");
    let mut exchanges: Vec<Value> = serde_json::from_str(&text).expect("the examples are JSON");
    assert!(exchanges.len() > 20, "{}", exchanges.len());
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut service = Binary::start(&folder.path().join("data"), 2, &[]);
    let client = service.client();
    let renew = std::env::var_os("RENEW_EXAMPLES").is_some();
    for exchange in &mut exchanges {
        let method: Method =
            exchange["method"].as_str().and_then(|name| name.parse().ok()).expect("a method");
        let path = exchange["path"].as_str().expect("a path").to_owned();
        let (status, answer) =
            client.send(method, &path, exchange.get("body")).expect("the service is there");
        if renew {
            exchange["status"] = status.into();
            exchange["answer"] = answer;
        } else {
            let told = exchange["status"].as_u64();
            assert_eq!((Some(u64::from(status)), &answer), (told, &exchange["answer"]), "{path}: {RENEW}");
        }
    }
    if renew {
        let mut text = serde_json::to_string_pretty(&exchanges).expect("JSON");
        text.push('\n');
        fs::write(path, text).expect("the examples can be written");
    }
    assert!(service.terminate().success());
}

/// What to do when answers have changed on purpose.
const RENEW: &str = "RENEW_EXAMPLES=1 cargo test --release --test it openapi:: writes what a node answers now; \
                     then make openapi";
