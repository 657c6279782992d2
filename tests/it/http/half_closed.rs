//! Clients that end their sending half once they have sent their requests, and wait for the answers.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use serde_json::json;

use crate::support::node::Node;
use crate::support::raw::{connect, rest_of};

/// Sends requests, ends the sending half, and reads what comes until the other side ends as well.
fn ask_and_end(node: &Node, requests: &str) -> String {
    rest_of(&mut sent_and_ended(node, requests))
}

fn sent_and_ended(node: &Node, requests: &str) -> TcpStream {
    let mut stream = connect(node.address());
    stream.write_all(requests.as_bytes()).expect("it is open");
    stream.shutdown(Shutdown::Write).expect("it is open");
    stream
}

fn request(line: &str, body: &str) -> String {
    format!("{line} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn a_client_that_ends_its_sending_half_gets_its_answers() {
    let node = Node::shards(2).start();
    let (job, jobs) =
        (r#"{"score":1}"#, r#"[{"board":"a","member":"m","score":2},{"board":"a","member":"n","score":3}]"#);
    let chunked = format!(
        "PUT /v1/boards/a/members/c HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{job}\r\n0\r\n\r\n",
        job.len()
    );
    // Each waits for something: a commit, a time limit, another thread.
    let requests = [
        (request("PUT /v1/boards/a/members/m", job), "200"),
        (chunked, "200"),
        (request("POST /v1/jobs", jobs), "200"),
        (request("GET /v1/boards/a/members/m", ""), "200"),
        (request("GET /v1/boards/a/members/m?after=0:99999&timeout_ms=500", ""), "504"),
        (request("GET /v1/boards/a/histogram", ""), "200"),
        (request("GET /metrics", ""), "200"),
        (request("DELETE /v1/boards/a/members/c", ""), "200"),
        (request("PUT /v1/boards/a/members/m", "{"), "422"),
    ];
    for (request, status) in &requests {
        for _ in 0..5 {
            let said = ask_and_end(&node, request);
            assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {said}");
        }
    }
    // Requests that come together are all answered.
    let together: String = (0..20).map(|n| request(&format!("PUT /v1/boards/b/members/m{n}"), job)).collect();
    let said = ask_and_end(&node, &together);
    assert_eq!(said.matches("HTTP/1.1 200 ").count(), 20, "{said}");
    let (_, board) = node.client().get("/v1/boards/b/top");
    assert_eq!(board["total"], json!(20), "{board}");
    // A body that ends too early is told of.
    let cut =
        "PUT /v1/boards/a/members/m HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{\"score\"";
    let said = ask_and_end(&node, cut);
    assert!(said.starts_with("HTTP/1.1 400 ") && said.contains("shorter than its Content-Length"), "{said}");
    // Half a head is no request.
    assert_eq!(ask_and_end(&node, "GET /healthz HTTP/1.1\r\nhost: loc"), "");
}

#[test]
fn a_watch_goes_on_whose_client_has_ended_its_sending_half() {
    let node = Node::start();
    assert_eq!(node.client().put("/v1/boards/a/members/m", &json!({"score": 1})).0, 200);
    let mut stream = sent_and_ended(&node, &request("GET /v1/boards/a/live", ""));
    let mut said = String::new();
    let mut read_until = |text: &str| {
        let mut piece = [0; 4_096];
        while !said.contains(text) {
            let length = stream.read(&mut piece).expect("it goes on");
            assert!(length > 0, "it ended: {said}");
            said += &String::from_utf8_lossy(&piece[..length]);
        }
    };
    read_until("event: state");
    assert_eq!(node.client().put("/v1/boards/a/members/late", &json!({"score": 2})).0, 200);
    read_until("late");
}
