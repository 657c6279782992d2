//! Tests, at the level of bytes, where a request's body ends, and when `100 Continue` is sent for it.

use std::fs;
use std::io::{Read as _, Write as _};

use serde_json::json;

use crate::support::node::Node;
use crate::support::raw::{ask, connect, get, rest_of};
use crate::support::tokens::new_token;

const JOB: &str = r#"{"score":1}"#;

fn put(fields: &str, body: &str) -> String {
    format!("PUT /v1/boards/a/members/m HTTP/1.1\r\nhost: localhost\r\n{fields}\r\n{body}")
}

fn chunks(body: &str) -> String {
    format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
}

#[test]
fn a_body_of_ambiguous_length_is_refused_and_the_connection_ends() {
    let service = Node::start();
    let address = service.address();
    let length = format!("content-length: {}\r\n", chunks(JOB).len());
    for (fields, status, code) in [
        ("transfer-encoding: gzip, chunked\r\n".to_owned(), "501", "unsupported_coding"),
        ("transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n".to_owned(), "501", "unsupported_coding"),
        ("transfer-encoding: chunked, chunked\r\n".to_owned(), "400", "malformed"),
        (format!("{length}transfer-encoding: chunked\r\n"), "400", "malformed"),
        (format!("Transfer-Encoding: chunked\r\n{length}"), "400", "malformed"),
    ] {
        let said = ask(address, &put(&fields, &chunks(JOB)));
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{fields}: {said}");
        assert!(said.contains(&format!("\"code\":\"{code}\"")), "{fields}: {said}");
        assert!(said.contains("connection: close\r\n"), "{fields}: {said}");
    }
    // The head may also come right after another request, in the same packet.
    let first = put("transfer-encoding: chunked\r\n", &chunks(JOB));
    let both = put(&format!("{length}transfer-encoding: chunked\r\n"), &chunks(r#"{"score":2}"#));
    let said = ask(address, &format!("{first}{both}"));
    assert!(said.starts_with("HTTP/1.1 200 ") && said.contains("HTTP/1.1 400 "), "{said}");
    let (status, entry) = service.client().get("/v1/boards/a/members/m");
    assert_eq!((status, &entry["score"]), (200, &json!(1)), "{entry}");
}

/// Each form hides a request with both a length and chunks behind a body whose end a proxy, this service or
/// hyper may see in different places.
#[test]
fn nothing_is_read_as_a_request_behind_a_body_whose_end_is_in_doubt() {
    let service = Node::start();
    let address = service.address();
    assert_eq!(service.client().put("/v1/boards/a/members/hidden", &json!({"score": 1})).0, 200);
    let hidden = |fields: &str, body: &str| {
        format!("PUT /v1/boards/a/members/hidden HTTP/1.1\r\nhost: localhost\r\n{fields}\r\n{body}")
    };
    let score = r#"{"score":2}"#;
    let both = hidden(
        &format!("content-length: {}\r\ntransfer-encoding: chunked\r\n", chunks(score).len()),
        &chunks(score),
    );
    let plain = hidden(&format!("content-length: {}\r\n", score.len()), score);
    let body = format!("{:x}\r\n{JOB}\r\n", JOB.len());
    let size = format!("{:x}", JOB.len());
    for in_doubt in [
        // Bare line feeds in trailers: behind the last chunk's line hyper goes on to an empty line with a
        // carriage return.
        format!("{body}0\r\nx: y\n\n"),
        format!("{body}0\r\nx: y\n\r\n"),
        format!("{body}0\r\n\n"),
        format!("{body}0\r\n\nx: y\r\n\r\n"),
        format!("{body}0\r\nx: y\n\nz: a\r\n\r\n"),
        format!("{body}0\r\nx: y\r\nz: a\n\n\r\n\r\n"),
        // Bare line feeds and carriage returns around sizes and chunks.
        format!("{size}\n{JOB}\r\n0\r\n\r\n"),
        format!("{size}\r\n{JOB}\n0\r\n\r\n"),
        format!("{size}\r{JOB}\r\n0\r\n\r\n"),
        format!("{size};x\ny\r\n{JOB}\r\n0\r\n\r\n"),
        format!("{size};x=\"\n\"\r\n{JOB}\r\n0\r\n\r\n"),
        format!("{body}0\n\r\n"),
        // Sizes that others may read otherwise.
        format!("{size} \r\n{JOB}\r\n0\r\n\r\n"),
        format!("0x{size}\r\n{JOB}\r\n0\r\n\r\n"),
        format!("+{size}\r\n{JOB}\r\n0\r\n\r\n"),
        format!("1000000000000000{size}\r\n{JOB}\r\n0\r\n\r\n"),
        format!("{size}\r\n{JOB}x\r\n0\r\n\r\n"),
    ] {
        for smuggled in [&both, &plain] {
            let said =
                ask(address, &format!("{}{smuggled}", put("transfer-encoding: chunked\r\n", &in_doubt)));
            // It may be understood as hyper does, or refused. Nothing is answered behind it.
            assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{in_doubt:?}: {said}");
            let (_, entry) = service.client().get("/v1/boards/a/members/hidden");
            assert_eq!(entry["score"], json!(1), "{in_doubt:?}: {said}");
        }
    }
    // In one piece or byte by byte, a body by the letter of the RFC is followed by the next request.
    let good = format!("{body}0\r\nx: y\r\n\r\n");
    let said = ask(address, &format!("{}{both}", put("transfer-encoding: chunked\r\n", &good)));
    assert!(said.starts_with("HTTP/1.1 200 ") && said.contains("HTTP/1.1 400 "), "{said}");
    let (_, entry) = service.client().get("/v1/boards/a/members/hidden");
    assert_eq!(entry["score"], json!(1), "{said}");
    let last = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let said = ask(address, &format!("{}{plain}{last}", put("transfer-encoding: chunked\r\n", &good)));
    assert_eq!(said.matches("HTTP/1.1 200 ").count(), 3, "{said}");
}

#[test]
fn a_head_that_says_twice_where_its_body_ends_is_refused_wherever_it_stands() {
    let service = Node::start();
    let address = service.address();
    let length = JOB.len();
    let forms = [
        format!("content-length: {length}\r\ncontent-length: {length}\r\n"),
        format!("content-length: {length}\r\nContent-Length: 0\r\n"),
        format!("content-length: {length}, {length}\r\n"),
        format!("content-length: +{length}\r\n"),
        format!("content-length: {length}\r\ntransfer-encoding: identity\r\n"),
        format!("content-length : {length}\r\n"),
        format!("x: y\r\n content-length: {length}\r\n"),
        format!("transfer-encoding:\x0bchunked\r\ncontent-length: {length}\r\n"),
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n".to_owned(),
        "transfer-encoding : chunked\r\n".to_owned(),
    ];
    let before = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for fields in &forms {
        for first in ["", before] {
            let said = ask(address, &format!("{first}{}", put(fields, JOB)));
            let last = said.rfind("HTTP/1.1 ").map(|at| &said[at..]).unwrap_or_default();
            let status: u16 = last.get(9..12).and_then(|status| status.parse().ok()).unwrap_or_default();
            assert!(matches!(status, 400 | 501), "{fields:?}: {said}");
        }
    }
    assert_eq!(service.client().get("/v1/boards/a").0, 404, "nothing was written");
}

#[test]
fn chunks_that_cannot_be_read_are_told_as_such_and_a_body_that_breaks_off_as_well() {
    let service = Node::start();
    let coding = "connection: close\r\ntransfer-encoding: chunked\r\n";
    let long = format!("5;{}\r\n", "x".repeat(20_000));
    for (body, expect) in [
        ("zz\r\n", "the chunks of the body cannot be read"),
        ("fffffffffffffffff\r\n", "the chunks of the body cannot be read"),
        ("3\r\n{\"score\":1}\r\n", "the chunks of the body cannot be read"),
        (long.as_str(), "the chunks of the body cannot be read"),
    ] {
        let said = ask(service.address(), &put(coding, body));
        assert!(said.starts_with("HTTP/1.1 400 ") && said.contains(expect), "{body:.40}: {said}");
    }
    let mut stream = connect(service.address());
    stream.write_all(put(coding, "ff\r\n{").as_bytes()).expect("it is open");
    stream.shutdown(std::net::Shutdown::Write).expect("it is open");
    let said = rest_of(&mut stream);
    assert!(said.is_empty() || said.contains("ended within a chunk"), "{said}");
}

#[test]
fn a_percent_sign_in_a_path_is_followed_by_two_digits() {
    let service = Node::start();
    for path in ["/v1/boards/a%zz", "/v1/boards/a/members/%zz", "/nowhere/%zz", "/v1/boards/%zz/top"] {
        let said = get(service.address(), path);
        assert!(
            said.starts_with("HTTP/1.1 400 ") && said.contains("\"code\":\"malformed\""),
            "{path}: {said}"
        );
        assert!(said.contains("got \\\"%zz\\\""), "what was refused: {said}");
    }
    assert_eq!(service.client().put("/v1/boards/a/members/%25zz", &json!({ "score": 1 })).0, 200);
    let (status, entry) = service.client().get("/v1/boards/a/members/%25zz");
    assert_eq!((status, &entry["member"]), (200, &json!("%zz")), "{entry}");
}

#[test]
fn a_request_names_exactly_one_host() {
    let service = Node::start();
    for hosts in ["", "host: localhost\r\nhost: localhost\r\n"] {
        let said = ask(service.address(), &format!("GET /healthz HTTP/1.1\r\n{hosts}\r\n"));
        assert!(said.starts_with("HTTP/1.1 400 "), "{said}");
        assert!(said.contains("exactly one header Host") && said.contains("connection: close"), "{said}");
    }
    let said = ask(service.address(), "GET /healthz HTTP/1.0\r\n\r\n");
    assert!(said.starts_with("HTTP/1.0 200 "), "{said}");
}

#[test]
fn a_client_without_a_token_is_refused_before_it_is_told_to_send_its_body() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (token, lines) = new_token(&["--scope", "write", "--name", "game"]);
    let file = folder.path().join("tokens.toml");
    fs::write(&file, lines).expect("it can be written");
    let service = Node::flags(&["--tokens", file.to_str().expect("UTF-8")]).start();
    let asks_first = format!("expect: 100-continue\r\ncontent-length: {}\r\n", JOB.len());

    // Reads everything that arrives, without sending a byte of the body. The connection ends.
    let said = ask(service.address(), &put(&asks_first, ""));
    assert!(said.starts_with("HTTP/1.1 401 "), "{said}");
    let wrong = format!("authorization: Bearer rkt_wrong\r\n{asks_first}");
    let said = ask(service.address(), &put(&wrong, ""));
    assert!(said.starts_with("HTTP/1.1 401 ") && said.contains("\"code\":\"invalid_token\""), "{said}");
    let nowhere = format!("POST /v2/jobs HTTP/1.1\r\nhost: localhost\r\n{asks_first}\r\n");
    let said = ask(service.address(), &nowhere);
    assert!(said.starts_with("HTTP/1.1 404 "), "{said}");

    // A client with a token is told to continue.
    let mut stream = connect(service.address());
    let right = put(&format!("connection: close\r\nauthorization: Bearer {token}\r\n{asks_first}"), "");
    stream.write_all(right.as_bytes()).expect("it is open");
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).expect("it is answered");
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(JOB.as_bytes()).expect("it is open");
    let said = rest_of(&mut stream);
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
}
