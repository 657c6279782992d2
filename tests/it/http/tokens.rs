//! Bearer tokens with the real binary: they are made, used, replaced while the service runs, and never
//! logged.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;
use ureq::http::Method;

use crate::support::client::Client;
use crate::support::command::command;
use crate::support::nats::wait_until;
use crate::support::node::Node;
use crate::support::raw::{ask, get};
use crate::support::tokens::new_token;

#[test]
fn scopes_are_enforced_and_tokens_are_replaced_while_the_service_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("tokens.toml");
    let write = |text: &str| fs::write(&file, text).expect("it can be written");
    let (dashboard, dashboard_lines) =
        new_token(&["--scope", "read", "--board-prefix", "eu-", "--name", "dashboard"]);
    let (game, game_lines) = new_token(&["--scope", "write", "--name", "game"]);
    let (operator, operator_lines) = new_token(&["--scope", "admin", "--name", "operator"]);
    write(&[dashboard_lines.as_str(), &game_lines, &operator_lines].join("\n"));
    let service = Node::shards(2)
        .flags(&["--tokens", file.to_str().expect("UTF-8")])
        .environment(&[("RANKTREE_LOG", "trace,ranktree=trace")])
        .start();
    let with = |token: &str| service.client().with_token(token);
    let (dashboard, game, operator) = (with(&dashboard), with(&game), (with(&operator), operator));
    let code = |(status, answer): (u16, serde_json::Value)| {
        (status, answer["code"].as_str().unwrap_or_default().to_owned())
    };
    let problem = |status: u16, code: &str| (status, code.to_owned());

    let client = service.client();
    assert_eq!(code(client.get("/v1/boards")), problem(401, "unauthorized"));
    let said = get(service.address(), "/v1/boards");
    assert!(said.contains("www-authenticate: Bearer realm=\"ranktree\"\r\n"), "{said}");
    assert!(said.contains("content-type: application/problem+json\r\n"), "{said}");
    assert!(
        said.contains("x-content-type-options: nosniff\r\n") && said.contains("cache-control: no-store\r\n")
    );
    for (path, status) in [("/healthz", 200), ("/readyz", 200), ("/metrics", 401), ("/v1/status", 401)] {
        assert_eq!(client.get(path).0, status, "{path}");
    }

    assert_eq!(code(game.put("/v1/boards/eu-a", &json!({}))), problem(403, "insufficient_scope"));
    assert_eq!(operator.0.put("/v1/boards/eu-a", &json!({})).0, 201);
    assert_eq!(game.put("/v1/boards/eu-a/members/m", &json!({"score": 1})).0, 200);
    assert_eq!(game.put("/v1/boards/us-a/members/m", &json!({"score": 1})).0, 200);
    assert_eq!(dashboard.get("/v1/boards/eu-a/top").0, 200);
    assert_eq!(code(dashboard.get("/v1/boards/us-a/top")), problem(403, "forbidden_board"));
    assert_eq!(
        code(dashboard.put("/v1/boards/eu-a/members/m", &json!({"score": 2}))),
        problem(403, "insufficient_scope")
    );
    assert_eq!(code(dashboard.get("/metrics")), problem(403, "forbidden_board"));
    assert_eq!(game.send(Method::DELETE, "/v1/members/m", None).expect("an answer").0, 200);

    // Refused requests are counted, and logged now and then with the name of their token. Changes of boards
    // are logged with the token's name.
    let metrics = ask(
        service.address(),
        &format!(
            "GET /metrics HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
            operator.1
        ),
    );
    for (reason, count) in
        [("unauthorized", 4), ("invalid_token", 0), ("insufficient_scope", 2), ("forbidden_board", 2)]
    {
        let line = format!("ranktree_http_unauthorized_total{{reason=\"{reason}\"}} {count}");
        assert!(metrics.lines().any(|found| found == line), "{line}");
    }
    let none = "ranktree_http_responses_total{route=\"none\",class=\"4xx\"} ";
    let none = metrics.lines().find_map(|line| line.strip_prefix(none)).expect("refusals are answers too");
    assert_eq!(none, "8");
    let log = service.log();
    let told: Vec<_> = log.lines().filter(|line| line.contains("a request was refused")).collect();
    assert!((1..=3).contains(&told.len()), "not one line each: {told:?}");
    for part in ["WARN", "reason=\"unauthorized\"", "client=127.0.0.1", "method=\"GET\"", "/v1/boards"] {
        assert!(told[0].contains(part), "{part} in {}", told[0]);
    }
    for (did, token, path) in [
        ("a board was created", "operator", "/v1/boards/eu-a"),
        ("a member was removed from every board", "game", "/v1/members/m"),
    ] {
        let line = log.lines().find(|line| line.contains(did)).unwrap_or_else(|| panic!("{did}"));
        for part in [" INFO ", &format!("token=\"{token}\""), path, "client=127.0.0.1"] {
            assert!(line.contains(part), "{part} in {line}");
        }
    }

    // Another token takes the place of the game's, without a restart.
    let (successor, successor_lines) = new_token(&["--scope", "write", "--name", "game 2"]);
    write(&[dashboard_lines.as_str(), &successor_lines, &operator_lines].join("\n"));
    let after = with(&successor);
    wait_until("the new token is in force", || after.get("/v1/boards").0 == 200);
    assert_eq!(code(game.get("/v1/boards")), problem(401, "invalid_token"));
    assert_eq!(operator.0.get("/v1/boards").0, 200);
    // An unusable or missing file leaves the old tokens in force.
    let told = || service.log().matches("cannot be used, so the old content stays in use").count();
    write("[[token]]\nname = \"x\"\n");
    wait_until("the log says so", || told() == 1);
    assert_eq!(after.get("/v1/boards").0, 200);
    fs::remove_file(&file).expect("it is there");
    wait_until("the log says so", || told() == 2);
    assert_eq!(after.get("/v1/boards").0, 200);

    // A request with a secret in each place where it could be.
    let (secret, address) = (&operator.1, service.address());
    ask(
        address,
        &format!(
            "GET /v1/boards?token={secret} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {secret}\r\nconnection: close\r\n\r\n"
        ),
    );
    ask(address, &format!("BROKEN\r\nauthorization: Bearer {secret}\r\n\r\n"));
    wait_until("the log is as detailed as it gets", || service.log().contains("DEBUG"));
    let log = service.log();
    for secret in [secret, &successor] {
        assert!(!log.contains(secret.as_str()), "a token is in the log");
    }
}

#[test]
fn a_start_that_would_let_everybody_in_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let mut exposed = command();
    exposed.args(["serve", "--listen", "0.0.0.0:0", "--data-dir"]).arg(&data);
    let output = exposed.output().expect("the binary can be started");
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.contains("ranktree token new") && words.contains("--insecure"), "{words}");
    assert!(!data.exists(), "nothing was made");

    let file = folder.path().join("tokens.toml");
    fs::write(&file, "# none yet\n").expect("it can be written");
    let (status, words) = Node::flags(&["--tokens", file.to_str().expect("UTF-8")]).refusal();
    assert!(!status.success() && words.contains("it lists no tokens"), "{words}");
}

#[test]
fn the_loopback_guard_keeps_pages_of_other_sites_from_a_node_without_tokens() {
    let requests = [
        // A write that a page of another site may send without a preflight request.
        ("POST /v1/jobs", "host: localhost\r\norigin: http://evil.example\r\ncontent-type: text/plain\r\n"),
        // Requests that a page may send, and whose answers it may read, if its site's name resolves to
        // 127.0.0.1.
        ("GET /v1/boards", "host: evil.example:8080\r\n"),
        ("GET /metrics", "host: evil.example:8080\r\n"),
    ];
    let job = r#"{"board":"a","member":"m","score":1}"#;
    let send = |service: &Node, (line, headers): (&str, &str)| {
        let body = if line.starts_with("POST") { job } else { "" };
        let length = body.len();
        ask(
            service.address(),
            &format!(
                "{line} HTTP/1.1\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            ),
        )
    };
    let service = Node::start();
    for request in requests {
        let said = send(&service, request);
        assert!(said.starts_with("HTTP/1.1 403") && said.contains("\"foreign_origin\""), "{said}");
    }
    assert_eq!(service.client().get("/v1/boards").1["boards"], json!([]), "nothing was written");
    assert_eq!(service.log().matches("a request was refused").count(), 1);
    let metrics = get(service.address(), "/metrics");
    let count = "ranktree_http_unauthorized_total{reason=\"foreign_origin\"} 3";
    assert!(metrics.lines().any(|line| line == count));
    // Probes are answered for any Host, and the service's own pages may ask.
    for request in [
        ("GET /readyz", "host: node-3.example\r\n"),
        ("POST /v1/jobs", "host: 127.0.0.1:1\r\norigin: http://127.0.0.1:1\r\n"),
    ] {
        let said = send(&service, request);
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    }
    // Anybody may ask by any name then, and pages of other sites still change nothing.
    let insecure = Node::flags(&["--insecure"]).start();
    for (request, status) in requests.into_iter().zip([403, 200, 200]) {
        let said = send(&insecure, request);
        assert!(said.starts_with(&format!("HTTP/1.1 {status}")), "{said}");
    }
}

#[test]
fn tokens_made_elsewhere_and_token_lists_in_the_environment_are_accepted() {
    let hash = |secret: &str| {
        let mut command = command();
        command.args(["token", "hash", "--scope", "read", "--name", "x"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary can be started");
        let mut stdin = child.stdin.take().expect("it is piped");
        stdin.write_all(secret.as_bytes()).expect("it is read");
        drop(stdin);
        child.wait_with_output().expect("it ends")
    };
    let short = hash("hunter2\n");
    assert!(!short.status.success());
    assert!(!String::from_utf8_lossy(&short.stderr).contains("hunter2"));
    let secret = "0123456789abcdef0123456789abcdef";
    let lines = hash(&format!("{secret}\n"));
    assert!(lines.status.success());
    let list = String::from_utf8(lines.stdout).expect("UTF-8");
    let service = Node::environment(&[("RANKTREE_TOKEN_LIST", &list)]).start();
    assert_eq!(service.client().get("/v1/boards").0, 401);
    assert_eq!(Client::new(service.base()).with_token(secret).get("/v1/boards").0, 200);
}
