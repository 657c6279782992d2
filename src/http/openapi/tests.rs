//! The document compared with the router, the source and the answers.

#![allow(clippy::indexing_slicing, reason = "a bad index fails the test")]

use std::collections::BTreeSet;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::http::openapi::problems::{PROBLEM_STATUSES, PROBLEMS};
use crate::http::openapi::validator::{check, check_answer};
use crate::http::openapi::{document, html};
use crate::http::routing::routes;
use crate::http::tests::start;

fn document() -> Value {
    document::document(&routes::operations())
}

/// Every operation, as method, path and description.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().expect("paths");
    let methods = paths.iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().expect("methods").iter();
        methods.map(|(method, operation)| (method.clone(), path.clone(), operation.clone()))
    });
    methods.collect()
}

/// A path with something in its braces.
fn filled(path: &str) -> String {
    path.replace("{board}", "arena")
        .replace("{member}", "m")
        .replace("{position}", "1")
        .replace("{snapshot}", "6a-1")
        .replace("{shard}", "0")
        .replace("{file}", "CURRENT")
}

#[test]
fn the_committed_openapi_document_is_up_to_date() {
    let made = crate::http::openapi_json();
    let committed = include_str!("../../../docs/openapi.json");
    assert!(
        committed == made,
        "docs/openapi.json is not up to date; `make openapi` writes it, read the diff"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_documented_operation_is_routed_and_takes_its_documented_parameters() {
    let service = start(1);
    let document = document();
    let operations = operations(&document);
    assert!(operations.len() > 20, "{}", operations.len());
    for (method, path, operation) in &operations {
        let method = method.to_uppercase();
        if operation["security"].as_array().is_some_and(Vec::is_empty) || path == "/metrics" {
            let (status, _) = service.send(&method, path, "").await;
            assert_eq!(status, StatusCode::OK, "{method} {path}");
            continue;
        }
        // The refusal of an unknown parameter names those that are known.
        let (status, problem) = service.send(&method, &format!("{}?no-such=1", filled(path)), "").await;
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{method} {path}: {problem}");
        let (_, known) = detail.split_once("; the parameters are: ").expect("it names them");
        let known: BTreeSet<&str> = known.split(", ").filter(|name| *name != "none").collect();
        let (mut written, mut headers) = (BTreeSet::new(), 0);
        let parameters: Vec<Value> = operation["parameters"].as_array().cloned().unwrap_or_default();
        for parameter in &parameters {
            let target = parameter["$ref"].as_str().map(|target| target.trim_start_matches('#'));
            let parameter = target
                .map_or(parameter, |target| document.pointer(target).expect("references lead somewhere"));
            if parameter["in"] == "header" {
                headers += 1;
            } else if parameter["in"] == "query" {
                written.insert(parameter["name"].as_str().expect("a name"));
            } else {
                let name = parameter["name"].as_str().expect("a name");
                assert!(path.contains(&format!("{{{name}}}")), "{path} has no {name}");
            }
        }
        assert_eq!(written, known, "{method} {path}");
        let in_path = parameters.len() - written.len() - headers;
        assert_eq!(path.matches('{').count(), in_path, "{method} {path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn methods_that_are_not_documented_are_not_routed() {
    let service = start(1);
    let document = document();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for method in ["get", "put", "post", "delete", "patch", "options", "trace"] {
            // A verb is one where it is posted; of other methods it is a part of the board's name, which may
            // hold colons.
            if path.contains("}:") && ["get", "put", "delete"].contains(&method) {
                continue;
            }
            let (status, _) = service.send(&method.to_uppercase(), &filled(path), "").await;
            let routed = status != StatusCode::METHOD_NOT_ALLOWED;
            assert_eq!(routed, methods.get(method).is_some(), "{method} {path}");
        }
    }
}

#[test]
fn every_code_of_the_source_is_documented_and_no_other() {
    // Codes are the texts in `problem.rs` and `failure.rs` of small letters and underscores, but for the
    // names of a problem's members.
    let source = concat!(include_str!("../render/problem.rs"), include_str!("../render/failure.rs"));
    let texts = source.split('"').skip(1).step_by(2);
    let word = |text: &&str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let members = ["type", "title", "status", "code", "detail", "errors"];
    let mut codes: BTreeSet<&str> = texts.filter(word).filter(|text| !members.contains(text)).collect();
    codes.extend(crate::job::RejectCode::ALL.iter().map(|code| code.name()));
    let documented: BTreeSet<&str> = PROBLEMS.iter().map(|problem| problem.code).collect();
    assert_eq!(documented, codes);
    assert_eq!(documented.len(), PROBLEMS.len(), "each once");
}

#[test]
fn the_table_of_problems_has_the_statuses_of_the_operations() {
    let document = document();
    let mut documented: BTreeSet<(String, u64)> = BTreeSet::from([
        // Where there is no operation that could tell them.
        ("unknown_route".to_owned(), 404),
        ("method_not_allowed".to_owned(), 405),
    ]);
    for (method, path, operation) in operations(&document) {
        for (status, response) in operation["responses"].as_object().expect("responses") {
            let status: u64 = status.parse().expect("a number");
            if status < 400 {
                continue;
            }
            let codes =
                &response["content"]["application/problem+json"]["schema"]["properties"]["code"]["enum"];
            for code in codes.as_array().expect("codes") {
                documented.insert((code.as_str().expect("a code").to_owned(), status));
            }
            let retry = response["headers"]["Retry-After"].is_object();
            assert_eq!(retry, status == 503 && path != "/readyz", "{method} {path} {status}");
        }
    }
    let table: BTreeSet<(String, u64)> = PROBLEMS
        .iter()
        .flat_map(|problem| {
            problem.statuses.iter().map(|status| (problem.code.to_owned(), u64::from(*status)))
        })
        .collect();
    assert_eq!(documented, table);
    let statuses: BTreeSet<u16> = PROBLEMS.iter().flat_map(|problem| problem.statuses).copied().collect();
    assert_eq!(statuses, PROBLEM_STATUSES.iter().copied().collect());
}

#[test]
fn examples_match_their_schemas() {
    let document = document();
    let mut seen = 0;
    for (method, path, operation) in operations(&document) {
        if let Some(content) = operation.pointer("/requestBody/content/application~1json") {
            for (_, example) in content["examples"].as_object().expect("every body has an example") {
                // Refused ones are not of the shape, which is why.
                if !example["summary"]
                    .as_str()
                    .is_some_and(|text| text.contains("invalid") || text.contains("No "))
                {
                    check(&document, &content["schema"], &example["value"]);
                }
            }
        }
        for (status, response) in operation["responses"].as_object().expect("responses") {
            for (_, content) in response["content"].as_object().expect("content") {
                for (_, example) in content["examples"].as_object().into_iter().flatten() {
                    let status = status.parse().expect("a number");
                    check_answer(&document, &method, &filled(&path), status, &example["value"]);
                    seen += 1;
                }
            }
        }
    }
    let file: Value = serde_json::from_str(include_str!("examples.json")).expect("it is JSON");
    assert_eq!(file.as_array().map(Vec::len), Some(seen), "each names an operation and a status of it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_document_and_its_page_are_served_and_load_nothing() {
    let service = start(1);
    assert_eq!(service.get("/openapi.json").await, document());
    let (status, headers, html) = service.send_for_all("GET", "/docs", Vec::new()).await;
    let html = String::from_utf8_lossy(&html);
    assert_eq!(status, StatusCode::OK);
    assert_eq!(headers["content-type"], "text/html; charset=utf-8");
    let policy = headers["content-security-policy"].to_str().expect("text");
    assert!(policy.starts_with("default-src 'none'; style-src 'unsafe-inline'"), "{policy}");
    for tag in ["<script", "<img", "<link", "<iframe", "@import", "url(", " on"] {
        // ` on` would begin a handler within a tag.
        let within_tags = html.split('<').skip(1).filter_map(|part| part.split('>').next());
        if tag == " on" {
            assert!(within_tags.into_iter().all(|tag| !tag.contains(" on")), "a handler");
        } else {
            assert!(!html.contains(tag), "{tag}");
        }
    }
    for (_, path, operation) in operations(&document()) {
        assert!(html.contains(&html::escape(&path)), "{path}");
        let id = operation["operationId"].as_str().expect("a name");
        assert!(html.contains(&format!("<article id=\"{id}\">")), "{id}");
    }
    // Every link within the page leads somewhere.
    for link in html.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(html.contains(&format!("id=\"{link}\"")), "#{link}");
    }
}

#[test]
fn texts_are_escaped_on_the_page() {
    assert_eq!(
        html::markdown("a `<b>` **c&** \"d\"\n\ne"),
        "<p>a <code>&lt;b&gt;</code> <strong>c&amp;</strong> &quot;d&quot;</p>\n<p>e</p>\n"
    );
}

#[test]
fn the_validator_finds_what_is_wrong() {
    let document = document();
    let wrong = |schema: Value, value: Value| {
        let found = std::panic::catch_unwind(|| check(&document, &schema, &value));
        assert!(found.is_err(), "{value} is no {schema}");
    };
    let entry = json!({"$ref": "#/components/schemas/ListedEntry"});
    let good = json!({"member": "m", "score": 1, "rank": 1, "position": 1, "updated_at": "2026-11-20T09:59:58Z", "meta": {}});
    check(&document, &entry, &good);
    for (name, value) in [
        ("rank", json!("1")),
        ("rank", json!(0)),
        ("score", json!(true)),
        ("score", json!([1])),
        ("extra", json!(1)),
    ] {
        let mut bad = good.clone();
        bad[name] = value;
        wrong(entry.clone(), bad);
    }
    wrong(entry, json!({"member": "m"}));
}
