//! Traces: a request or a job is one trace, from its publisher to its readers, through nodes; and nothing
//! waits for a collector.

use std::collections::BTreeSet;
use std::fs;
use std::thread;
use std::time::Duration;

use async_nats::HeaderMap;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use ranktree::types::{MemberId, shard_of};
use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::{Method, Request};

use crate::support::certificates::Authority;
use crate::support::collector::{Behaviour, Collector, Span, Trace};
use crate::support::command::signal;
use crate::support::nats::{Nats, wait_until};
use crate::support::node::{Node, NodeSetup};

const ENTRY: &str = "/v1/boards/{board}/members/{member}";
/// The verbs of a batch, as children of a message's span.
const VERBS: [&str; 4] = ["wait", "plan", "commit", "show"];
/// The caller's span.
const CALLER: &str = "00f067aa0ba902b7";

/// A trace id with this number.
fn trace(number: u8) -> String {
    format!("4bf92f3577b34da6a3ce929d0e0e47{number:02x}")
}

fn parent(trace: &str, flags: &str) -> String {
    format!("00-{trace}-{CALLER}-{flags}")
}

/// Sends a request with these headers.
fn send(
    node: &Node,
    method: Method,
    path: &str,
    body: Option<&Value>,
    headers: &[(&str, &str)],
) -> (u16, Value) {
    let agent: Agent = Agent::config_builder().http_status_as_error(false).build().into();
    let mut request = Request::builder().method(method).uri(format!("{}{path}", node.base()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = body.map(ToString::to_string).unwrap_or_default();
    let mut response = agent.run(request.body(body).expect("a good request")).expect("the service is there");
    let text = response.body_mut().read_to_string().expect("it is text");
    (response.status().as_u16(), serde_json::from_str(&text).unwrap_or_default())
}

fn put(node: &Node, path: &str, score: u64, parent: &str) -> Value {
    let body = json!({ "score": score });
    let (status, answer) = send(node, Method::PUT, path, Some(&body), &[("traceparent", parent)]);
    assert!(matches!(status, 200 | 202), "{status} {answer}");
    answer
}

fn traced(setup: NodeSetup, collector: &Collector) -> NodeSetup {
    setup.flags(&["--otlp-endpoint", collector.url()])
}

/// A message's span, and what its batch spent on it.
fn assert_applied<'a>(trace: &'a Trace, apply: &'a Span) {
    let parts = VERBS.map(|verb| trace.child(apply, verb));
    let [wait, plan, commit, show] = parts;
    assert_eq!((wait.start, show.end), (apply.start, apply.end));
    let ends = [wait.start, plan.start, plan.end, commit.end, show.end];
    assert!(ends.is_sorted(), "{parts:#?}");
    assert_eq!(apply.error, None);
}

/// The number of a member's shard.
fn home(member: &str, shards: u16) -> u16 {
    shard_of(&MemberId::new(member).expect("a good id"), shards).0
}

fn member_of(shard: u16, shards: u16) -> String {
    (0..1_000)
        .map(|number| format!("m{number}"))
        .find(|member| home(member, shards) == shard)
        .expect("one of all")
}

#[test]
fn a_write_without_nats_is_one_trace_from_the_request_until_it_is_visible() {
    let collector = Collector::start();
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hunter2"),
        ("OTEL_SERVICE_NAME", "arcade"),
    ];
    let mut node = Node::environment(&environment).flags(&["--node", "alone"]).start();
    let trace = trace(1);
    let headers = [("traceparent", parent(&trace, "01")), ("tracestate", "vendor=opaque".to_owned())];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    let body = json!({ "score": 7 });
    let (status, _) = send(&node, Method::PUT, "/v1/boards/arena/members/p1", Some(&body), &headers);
    assert_eq!(status, 200);
    let (status, _) = send(&node, Method::GET, "/v1/boards/arena/members/nobody", None, &headers);
    assert_eq!(status, 404);

    let names = [("apply", 1), ("show", 1), (&*format!("PUT {ENTRY}"), 1), (&format!("GET {ENTRY}"), 1)];
    let found = collector.wait_for(&trace, &names);
    let request = found.one(&format!("PUT {ENTRY}"));
    assert_eq!((&*request.parent, request.has_remote_parent), (CALLER, true));
    assert_eq!((&*request.node, request.kind, &*request.state), ("alone", SpanKind::Server, "vendor=opaque"));
    for (name, value) in [
        ("http.request.method", "PUT"),
        ("http.route", ENTRY),
        ("http.response.status_code", "200"),
        ("ranktree.board", "arena"),
    ] {
        assert_eq!(request.attributes.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!format!("{request:?}").contains("p1"), "members are in no span: {request:?}");
    let apply = found.child(request, "apply");
    assert!(request.start <= apply.start && apply.end <= request.end, "{:#?}", found.0);
    assert!(!apply.has_remote_parent);
    assert_applied(&found, apply);
    let read = found.one(&format!("GET {ENTRY}"));
    assert_eq!(read.attributes["http.response.status_code"], "404");
    assert_eq!(read.error, None, "the client's mistakes are none of the service");
    assert_eq!(found.0.len(), 7, "{:#?}", found.0);

    let head = collector.heads().remove(0).to_lowercase();
    assert!(head.starts_with("post /v1/traces http/1.1"), "{head}");
    assert!(head.contains("authorization: bearer hunter2"), "{head}");
    assert!(!node.log().contains("hunter2"), "secrets are in no log");
    let sent = || node.metric("ranktree_trace_spans_sent_total").expect("it is there");
    wait_until("the sent spans are counted", || sent() >= 7.0);
    assert!(node.terminate().success());
}

#[test]
fn a_job_is_one_trace_through_nats_and_nodes() {
    let collector = Collector::start();
    let nats = Nats::start();
    let own = |name: &str, shard: &str| {
        traced(Node::with_nats(&nats).stream_mib(16).flags(&["--node", name, "--own", shard]), &collector)
    };
    let zero = own("zero", "0").shards(2).start();
    let one = own("one", "1").start();
    let member = member_of(1, 2);
    // A publisher's own message, over NATS.
    let first = trace(1);
    let mut headers = HeaderMap::new();
    headers.insert("traceparent", parent(&first, "01"));
    headers.insert("tracestate", "vendor=opaque");
    let job = json!({ "board": "arena", "member": member, "score": 5 }).to_string();
    let sequence = nats.try_publish_with("ranktree.jobs.1", job.as_bytes(), headers).expect("it is stored");
    let found = collector.wait_for(&first, &[("apply", 1), ("show", 1)]);
    let apply = found.one("apply");
    assert_eq!((&*apply.parent, apply.has_remote_parent, apply.kind), (CALLER, true, SpanKind::Consumer));
    assert_eq!((&*apply.node, &*apply.state), ("one", "vendor=opaque"));
    assert_eq!(apply.attributes["ranktree.sequence"], sequence.to_string());
    assert_eq!(apply.attributes["ranktree.shard"], "1");
    assert_applied(&found, apply);

    // A read of it, at the node that does not have it.
    let path = format!("/v1/boards/arena/members/{member}");
    let read = format!("{path}?after=1:{sequence}");
    let headers = [("traceparent", &*parent(&first, "01"))];
    wait_until("the node knows the board", || send(&zero, Method::GET, &read, None, &[]).0 == 200);
    let (status, entry) = send(&zero, Method::GET, &read, None, &headers);
    assert_eq!((status, &entry["rank"]), (200, &json!(1)), "{entry}");
    let name = format!("GET {ENTRY}");
    let found = collector.wait_for(&first, &[(&name, 1), ("answer", 1)]);
    let request = found.one(&name);
    assert_eq!((&*request.node, &*request.parent), ("zero", CALLER));
    let answers = found.0.iter().filter(|span| span.name == "answer");
    for answer in answers {
        assert_eq!((&*answer.node, answer.kind, answer.has_remote_parent), ("one", SpanKind::Server, true));
        let ask = found.0.iter().find(|span| span.id == answer.parent).expect("its parent is there");
        assert_eq!((&*ask.name, &*ask.node, &*ask.parent), ("ask", "zero", &*request.id));
        assert_eq!(ask.attributes["ranktree.shard"], "1");
    }

    // A write through the other node, which the stream stores.
    let second = trace(2);
    put(&zero, &path, 6, &parent(&second, "01"));
    let found = collector.wait_for(&second, &[("apply", 1), ("show", 1), ("publish", 1)]);
    let publish = found.child(found.one(&format!("PUT {ENTRY}")), "publish");
    assert_eq!((&*publish.node, publish.kind), ("zero", SpanKind::Producer));
    let apply = found.child(publish, "apply");
    assert_eq!((&*apply.node, apply.has_remote_parent), ("one", true));
    assert_eq!(apply.attributes["ranktree.sequence"], publish.attributes["ranktree.sequence"]);
    assert_applied(&found, apply);

    // One that waits until the other node has applied it.
    let third = trace(3);
    let answer = put(&zero, &format!("{path}?wait=applied"), 8, &parent(&third, "01"));
    assert_eq!(answer["result"]["changed"].as_bool().or(answer["changed"].as_bool()), Some(true), "{answer}");
    let found = collector.wait_for(&third, &[("apply", 1), ("show", 1), ("write", 2), ("publish", 1)]);
    let asked = found.child(found.one(&format!("PUT {ENTRY}")), "write");
    assert_eq!((&*asked.node, asked.kind), ("zero", SpanKind::Client));
    let served = found.child(asked, "write");
    assert_eq!((&*served.node, served.kind), ("one", SpanKind::Server));
    let apply = found.child(found.child(served, "publish"), "apply");
    assert_applied(&found, apply);
    assert!(apply.end <= served.end, "it was answered after it was visible");

    // What is not sampled is in no trace.
    let fourth = trace(4);
    put(&zero, &format!("{path}?wait=applied"), 9, &parent(&fourth, "00"));
    let fifth = trace(5);
    put(&zero, &format!("{path}?wait=applied"), 10, &parent(&fifth, "01"));
    collector.wait_for(&fifth, &[("apply", 1)]);
    assert_eq!(collector.spans(&fourth), []);
    drop(one);
}

/// While NATS says nothing, writes gather and then share a message.
#[test]
fn requests_that_share_a_message_have_a_whole_trace_each() {
    let collector = Collector::start();
    let nats = Nats::start();
    let node = traced(Node::with_nats(&nats), &collector).start();
    let share = |round: u8| {
        let traces: Vec<String> = (0..8).map(|request| trace(round * 8 + request)).collect();
        signal("STOP", nats.pid());
        thread::scope(|scope| {
            for (index, trace) in traces.iter().enumerate() {
                let (node, path) = (&node, format!("/v1/boards/arena/members/p{index}"));
                scope.spawn(move || put(node, &path, 1, &parent(trace, "01")));
            }
            // If they come too late to gather, the next round may do.
            thread::sleep(Duration::from_millis(50));
            signal("CONT", nats.pid());
        });
        traces
            .iter()
            .map(|trace| {
                let found = collector.wait_for(trace, &[("apply", 1), ("show", 1), ("publish", 1)]);
                let publish = found.child(found.one(&format!("PUT {ENTRY}")), "publish");
                assert_applied(&found, found.child(publish, "apply"));
                publish.attributes["ranktree.sequence"].clone()
            })
            .collect::<Vec<String>>()
    };
    let shared = |sequences: &[String]| sequences.iter().collect::<BTreeSet<_>>().len() < sequences.len();
    assert!((0..30).any(|round| shared(&share(round))), "no two requests shared a message");
}

/// Threads of a node, by their names.
fn threads(node: &Node) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{}/task", node.pid())).expect("it is running");
    let name = |task: std::io::Result<fs::DirEntry>| fs::read_to_string(task.ok()?.path().join("comm")).ok();
    tasks.filter_map(name).map(|name| name.trim().to_owned()).collect()
}

#[test]
fn without_an_endpoint_there_is_no_thread_and_nothing_is_sent() {
    let collector = Collector::start();
    let node = Node::environment(&[("OTEL_TRACES_SAMPLER", "always_on")]).start();
    put(&node, "/v1/boards/arena/members/p1", 1, &parent(&trace(1), "01"));
    assert!(!threads(&node).iter().any(|name| name == "traces"), "{:?}", threads(&node));
    assert_eq!(node.metric("ranktree_trace_spans_sent_total"), Some(0.0));
    let other = traced(NodeSetup::default(), &collector).start();
    // A thread takes its name once it runs.
    wait_until("there is the thread", || threads(&other).iter().any(|name| name == "traces"));
    assert_eq!(collector.heads(), Vec::<String>::new(), "without spans nothing is sent");
}

#[test]
fn the_sampler_chooses_where_nobody_has_said() {
    let collector = Collector::start();
    let all = traced(NodeSetup::default(), &collector).flags(&["--otlp-sampler", "parentbased_always_on"]);
    let mut node = all.start();
    let body = json!({ "score": 1 });
    send(&node, Method::PUT, "/v1/boards/arena/members/p1", Some(&body), &[]);
    send(&node, Method::GET, "/healthz", None, &[]);
    wait_until("a trace of its own", || collector.all().iter().any(|span| span.name == "show"));
    let begun: Vec<_> = collector.all().into_iter().filter(|span| span.parent.is_empty()).collect();
    assert_eq!(begun.len(), 1, "probes are in no trace: {begun:#?}");
    assert_eq!(begun[0].name, format!("PUT {ENTRY}"));
    // The last spans are sent at the end.
    put(&node, "/v1/boards/arena/members/p2", 2, &parent(&trace(2), "01"));
    assert!(node.terminate().success());
    assert_eq!(collector.spans(&trace(2)).len(), 6);
}

/// With NATS a node reads its own messages again, and must not choose a second time.
#[test]
fn what_was_not_chosen_is_in_no_trace_behind_nats_either() {
    let collector = Collector::start();
    let nats = Nats::start();
    let flags = |name| ["--otlp-sampler", "parentbased_always_on", "--node", name];
    let owner = Node::with_nats(&nats).shards(1).flags(&flags("owner"));
    let owner = traced(owner, &collector).start();
    let other = traced(Node::with_nats(&nats).flags(&["--own", "none"]), &collector).flags(&flags("other"));
    let other = other.start();
    for (node, number) in [(&owner, 1), (&other, 2)] {
        for query in ["", "?wait=applied"] {
            let path = format!("/v1/boards/arena/members/p{number}{query}");
            put(node, &path, 1, &parent(&trace(number), "00"));
        }
    }
    put(&other, "/v1/boards/arena/members/p3?wait=applied", 1, &parent(&trace(3), "01"));
    collector.wait_for(&trace(3), &[("apply", 1), ("show", 1), (&format!("PUT {ENTRY}"), 1)]);
    let others: Vec<_> = collector.all().into_iter().filter(|span| span.trace != trace(3)).collect();
    assert_eq!(others, [], "only what is sampled is sent");
    // A job without a word about traces is chosen here.
    nats.publish("ranktree.jobs.0", json!({ "board": "arena", "member": "p4", "score": 1 }).to_string());
    wait_until("it is traced", || {
        collector.all().iter().any(|span| span.name == "apply" && span.parent.is_empty())
    });
}

#[test]
fn a_collector_that_hangs_holds_nothing_up() {
    let collector = Collector::that(Behaviour::Hangs);
    let flags = ["--otlp-sampler", "always_on"];
    let mut node = traced(NodeSetup::default(), &collector).flags(&flags).start();
    let client = node.client();
    let dropped = |node: &Node| {
        node.metric("ranktree_trace_spans_dropped_total{reason=\"full\"}").expect("it is there")
    };
    let mut score = 0;
    while dropped(&node) == 0.0 {
        for _ in 0..100 {
            score += 1;
            let (status, _) = client.put("/v1/boards/arena/members/p1", &json!({ "score": score }));
            assert_eq!(status, 200);
        }
    }
    assert!(!collector.heads().is_empty(), "it was asked");
    let (status, entry) = client.get("/v1/boards/arena/members/p1");
    assert_eq!((status, &entry["score"]), (200, &json!(score)), "{entry}");
    // Nobody waits for it at the end either.
    assert!(node.terminate().success());
    assert!(node.log().contains("the last spans were not sent"), "{}", node.log());
}

#[test]
fn spans_go_to_a_collector_behind_tls_that_the_given_authority_has_signed() {
    let authority = Authority::new("ours");
    let collector = Collector::with_tls(&authority.certify("collector"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("it can be written");
        path.to_str().expect("it is text").to_owned()
    };
    let (ours, other) =
        (file("ours.pem", &authority.pem()), file("other.pem", &Authority::new("other").pem()));
    let with = |certificate: &str| {
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", certificate),
        ];
        Node::environment(&variables)
    };
    let distrusting = with(&other).start();
    put(&distrusting, "/v1/boards/arena/members/p1", 1, &parent(&trace(1), "01"));
    wait_until("it is logged", || distrusting.log().contains("spans of traces were dropped"));
    let log = distrusting.log();
    assert!(log.contains("--otlp-certificate names a PEM file"), "{log}");
    assert_eq!(collector.heads(), Vec::<String>::new(), "a stranger is told nothing");

    let node = with(&ours).start();
    put(&node, "/v1/boards/arena/members/p1", 1, &parent(&trace(2), "01"));
    let found = collector.wait_for(&trace(2), &[("apply", 1), ("show", 1)]);
    assert_applied(&found, found.one("apply"));

    let (missing, empty) = (format!("{ours}.none"), file("empty.pem", "no certificate"));
    for (certificate, said) in [(&missing, "No such file"), (&empty, "there is no certificate in it")] {
        let flags = ["--otlp-endpoint", collector.url(), "--otlp-certificate", certificate.as_str()];
        let (status, log) = Node::flags(&flags).refusal();
        assert!(!status.success(), "{log}");
        assert!(log.contains(&format!("--otlp-certificate {certificate}: {said}")), "{log}");
    }
}

#[test]
fn what_is_wrong_with_an_endpoint_is_said() {
    for (endpoint, said) in [
        ("collector:4318", "--otlp-endpoint: a URL such as http://127.0.0.1:4318 is expected"),
        ("grpc://127.0.0.1:4317", "--otlp-endpoint: a URL such as http://127.0.0.1:4318 is expected"),
    ] {
        let (status, log) = Node::flags(&["--otlp-endpoint", endpoint]).refusal();
        assert_eq!(status.code(), Some(2), "{log}");
        assert!(log.contains(said), "{log}");
    }
    let away = {
        let collector = Collector::start();
        collector.url().to_owned()
    };
    let refusing = Collector::that(Behaviour::Answers(404));
    for (endpoint, said) in
        [(&*away, "its receiver must take OTLP over HTTP"), (refusing.url(), "the collector answers 404")]
    {
        let node = Node::flags(&["--otlp-endpoint", endpoint]).start();
        put(&node, "/v1/boards/arena/members/p1", 1, &parent(&trace(1), "01"));
        wait_until("it is logged", || node.log().contains("spans of traces were dropped"));
        assert!(node.log().contains(said), "{}", node.log());
        let dropped = || node.metric("ranktree_trace_spans_dropped_total{reason=\"not_taken\"}");
        wait_until("they are counted", || dropped() == Some(6.0));
    }
}
