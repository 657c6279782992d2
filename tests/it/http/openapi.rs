//! The OpenAPI document against a real node: its examples, and requests that a fuzzer makes of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use ureq::http::Method;

use crate::support::node::Node;
use crate::support::place::{Place, at_each_place};
use crate::support::rounds::rounds;
use crate::support::tools::tool;

at_each_place![a_fuzzer_finds_no_violation_of_the_document];

#[test]
fn the_examples_of_the_document_match_a_nodes_answers() {
    let mut exchanges = exchanges();
    assert!(exchanges.len() > 20, "{}", exchanges.len());
    let mut service = Node::shards(2).flags(&["--node", "node-1"]).start();
    let client = service.client();
    let renew = std::env::var_os("RENEW_EXAMPLES").is_some();
    for exchange in &mut exchanges {
        let method: Method =
            exchange["method"].as_str().and_then(|name| name.parse().ok()).expect("a method");
        let path = exchange["path"].as_str().expect("a path").to_owned();
        let (status, answer) =
            client.send(method, &path, exchange.get("body")).expect("the service is there");
        // The port is another one each time.
        let answer = answer.to_string().replace(service.base(), "http://127.0.0.1:8080");
        let answer: Value = serde_json::from_str(&answer).expect("it is JSON as before");
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
        fs::write(path_of_examples(), text).expect("the examples can be written");
    }
    assert!(service.terminate().success());
}

/// Schemathesis sends what the document allows and what it forbids, and compares the answers with the
/// document: no answer is a failure of the service, none has an undocumented status, header or shape, no
/// forbidden request is accepted, and no other method is answered. The test does not require that everything
/// allowed is accepted: tokens, cursors and numbers of keys depend on the state, and no schema can say that
/// `min` is not above `max`.
fn a_fuzzer_finds_no_violation_of_the_document(place: Place) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let service = place.start(2);
    let client = service.client();
    let mut writes = exchanges();
    writes.retain(|exchange| {
        exchange["status"].as_u64() < Some(300)
            && ["PUT", "POST"].iter().any(|name| exchange["method"] == *name)
    });
    for exchange in &writes {
        let method = exchange["method"].as_str().and_then(|name| name.parse().ok()).expect("a method");
        let path = exchange["path"].as_str().expect("a path");
        let (status, answer) = client.send(method, path, exchange.get("body")).expect("the service is there");
        assert!(status < 300, "{path}: {answer}");
    }
    let removals = ["delete_board", "delete_everywhere", "clear_board", "trim_board"];
    let flags = |flag: &'static str| removals.iter().flat_map(move |name| [flag, name]).collect::<Vec<_>>();
    fs::write(folder.path().join("schemathesis.toml"), FUZZER_SETTINGS).expect("it can be written");
    // Operations that remove the boards and members of others come last.
    // An answer of `live` has no end: it has tests of its own.
    let others = ["--exclude-operation-id", "live", "--exclude-operation-id", "set_read_only"];
    let first = [flags("--exclude-operation-id"), others.to_vec()].concat();
    fuzz(&service, folder.path(), &first);
    fuzz(&service, folder.path(), &flags("--include-operation-id"));
    // After it all writes are refused.
    fuzz(&service, folder.path(), &["--include-operation-id", "set_read_only"]);
    service.end();
}

/// Requests that are made up for each operation.
const EXAMPLES: [u64; 3] = [5, 60, 120];

/// A read may wait a minute for a write that never comes, which is longer than the fuzzer waits. Its answer,
/// 504, is part of the contract and not a failure of the service.
const FUZZER_SETTINGS: &str = r#"
[parameters]
timeout_ms = 50

[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", 504]

# A verb is one where it is posted; other methods take it for a part of a board's name, which may hold colons.
[[operations]]
include-operation-id = ["clear_board", "trim_board"]
checks.unsupported_method.enabled = false
checks.allow_header_conformance.enabled = false
"#;

/// # Panics
/// With what Schemathesis says, if it finds anything.
fn fuzz(service: &Node, folder: &Path, operations: &[&str]) {
    let mut command = Command::new(tool("schemathesis"));
    // Where it is set, Hypothesis beneath it has other defaults: no run would be like one at home.
    command.env_remove("CI");
    command.arg("run").arg(format!("http://{}/openapi.json", service.address()));
    command.args(["--phases", "examples,coverage,fuzzing", "--exclude-checks", "positive_data_acceptance"]);
    // With --max-time, the tried requests would depend on the speed of the machine.
    command.args(["--seed", "7", "--max-examples", &rounds(EXAMPLES).to_string()]);
    command.args([
        "--generation-database",
        "none",
        "--continue-on-failure",
        "--no-color",
        "--warnings",
        "off",
    ]);
    // Schemathesis looks for its settings in the current folder, and writes its findings there.
    let output = command.args(operations).current_dir(folder).output();
    let output = output.expect("schemathesis is here; `make schemathesis` installs it");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("No issues found"), "{said}\n{errors}");
}

fn exchanges() -> Vec<Value> {
    let text = fs::read_to_string(path_of_examples()).expect("the examples can be read");
    serde_json::from_str(&text).expect("the examples are JSON")
}

fn path_of_examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http/openapi/examples.json")
}

/// What to do when answers have changed on purpose.
const RENEW: &str = "RENEW_EXAMPLES=1 cargo test --release --test it openapi:: writes what a node answers now; \
                     then make openapi";
