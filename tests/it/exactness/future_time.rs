//! A job whose time is more than five minutes after its message's is rejected, whichever way it comes.

use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ranktree::types::Timestamp;
use serde_json::{Value, json};

use crate::support::client::{Client, entry_path};
use crate::support::command::command;
use crate::support::nats::{Nats, wait_applied, wait_until};
use crate::support::node::Node;

/// The allowed and the refused time differ by more than the test takes.
const NEAR: Duration = Duration::from_secs(4 * 60);
const FAR: Duration = Duration::from_secs(24 * 60 * 60);

fn ahead(by: Duration) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    let micros = i64::try_from((now + by).as_micros()).expect("it is not that late");
    Timestamp::from_micros(micros).expect("in range").to_string()
}

fn check(client: &Client) {
    let path = |member| format!("{}?wait=applied", entry_path("arena", member));
    let near = ahead(NEAR);
    let (status, answer) = client.put(&path("near"), &json!({ "score": 1, "at": near }));
    assert_eq!((status, &answer["entry"]["updated_at"]), (200, &json!(near)), "{answer}");
    let (status, answer) = client.put(&path("far"), &json!({ "score": 1, "at": ahead(FAR) }));
    assert_eq!((status, &answer["code"]), (409, &json!("future_time")), "{answer}");
    let job = |member: &str, by| json!({ "board": "arena", "member": member, "score": 1, "at": ahead(by) });
    let (status, answer) =
        client.post("/v1/jobs?wait=applied", &json!([job("a", NEAR), job("b", FAR), job("c", NEAR)]));
    assert_eq!((status, &answer["results"][1]["rejected"]), (200, &json!("future_time")), "{answer}");
    assert_eq!(client.get(&entry_path("arena", "b")).0, 404);
    assert_eq!(client.get(&entry_path("arena", "c")).0, 200);
}

fn import(binary: &Node, rows: &[Value]) -> String {
    let mut command = command();
    command.args(["import", "-", "--format", "ndjson", "--board", "arena", "--limit-errors", "2"]);
    command.args(["--url", &format!("http://{}", binary.address())]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary can be started");
    let rows: Vec<String> = rows.iter().map(Value::to_string).collect();
    child.stdin.take().expect("it is piped").write_all(rows.join("\n").as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn a_time_of_more_than_five_minutes_ahead_is_rejected_over_http_and_from_an_import() {
    let mut service = Node::shards(2).start();
    check(&service.client());
    let row = |member: &str, by| json!({ "member": member, "score": 2, "at": ahead(by) });
    let said = import(&service, &[row("d", NEAR), row("e", FAR), row("f", FAR)]);
    let rejected = said.lines().find(|line| line.contains("future_time")).unwrap_or_else(|| panic!("{said}"));
    assert!(rejected.trim_end().ends_with('2'), "{said}");
    assert_eq!(service.client().get(&entry_path("arena", "d")).0, 200, "{said}");
    assert!(service.terminate().success());
    service.verify();
}

#[test]
fn a_time_of_more_than_five_minutes_ahead_is_rejected_from_a_stream() {
    let nats = Nats::start();
    let mut service = Node::with_nats(&nats).start();
    let client = service.client();
    let (status, answer) = client.put("/v1/boards/arena", &json!({}));
    assert_eq!(status, 201, "{answer}");
    let job = json!({ "board": "arena", "member": "m", "score": 1, "at": ahead(FAR) }).to_string();
    wait_applied(&client, &[nats.publish("ranktree.jobs.0", job)]);
    wait_until("the reject is told", || nats.info("RANKTREE_REJECTS").state.messages == 1);
    let reject = nats.message("RANKTREE_REJECTS", 1);
    assert_eq!(reject["reason"], "future_time", "{reject}");
    check(&client);
    assert!(service.terminate().success());
    service.verify();
}
