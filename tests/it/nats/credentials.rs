//! Every kind of credentials against a server that requires them. With the right ones a node connects. With
//! wrong ones it says why, serves reads meanwhile, and connects as soon as they are corrected.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::certificates::Authority;
use crate::support::client::entry_path;
use crate::support::jwt::Operator;
use crate::support::nats::{shard_status, wait_state, wait_until};
use crate::support::node::Node;
use crate::support::secured::Secured;

/// Writes through NATS, and reads what was written.
fn check_works(service: &Node, score: i64) {
    let client = service.client();
    wait_state(&client, 0, "live");
    let path = entry_path("arena", "a");
    let mut reply = (0, Value::Null);
    // Publishing has a connection of its own, which may be up later than the one that makes the shard live.
    wait_until("a write is taken", || {
        reply = client.put(&format!("{path}?wait=applied"), &json!({ "score": score }));
        reply.0 == 200
    });
    assert_eq!(reply.1["entry"]["score"], score);
}

/// Waits until the shard's state has this reason, and checks that reads are answered.
fn check_refused(service: &Node, says: &str, score: i64) {
    let client = service.client();
    let mut status = Value::Null;
    wait_until(says, || {
        status = shard_status(&client, 0);
        status["reason"].as_str().is_some_and(|reason| reason.contains(says))
    });
    assert_eq!(status["state"], "catching_up", "{status}");
    let (status, answer) = client.get(&entry_path("arena", "a"));
    assert_eq!((status, &answer["score"], &answer["stale"]), (200, &json!(score), &json!(true)), "{answer}");
    assert_eq!(client.get("/readyz").0, 503);
}

/// Ends the service, and checks that its log has no secrets.
fn end(mut service: Node, secrets: &[&str]) {
    assert!(service.terminate().success());
    let log = service.log();
    for secret in secrets {
        assert!(!log.contains(secret), "the log shows {secret}:\n{log}");
    }
    service.verify();
}

fn with_password(password: &str) -> String {
    format!("authorization {{ user: node, password: {password} }}")
}

#[test]
fn a_changed_password_is_read_from_its_file() {
    let mut server = Secured::start(&with_password("first-secret"));
    let file = server.file("password", "first-secret\n");
    let arguments = ["--nats-user", "node", "--nats-password-file", &file];
    let service = Node::with_nats(&server.url()).flags(&arguments).start();
    check_works(&service, 1);
    server.restart_with(&with_password("second-secret"));
    check_refused(&service, "refused the credentials", 1);
    server.file("password", "second-secret\n");
    check_works(&service, 2);
    std::fs::remove_file(&file).expect("it was there");
    server.restart_with(&with_password("second-secret"));
    check_refused(&service, "cannot read the password file", 2);
    server.file("password", "second-secret");
    check_works(&service, 3);
    end(service, &["first-secret", "second-secret"]);
}

#[test]
fn a_node_with_wrong_credentials_serves_stored_data_and_reports_the_reason() {
    let mut server = Secured::start(&with_password("right"));
    let url = |password: &str| format!("nats://node:{password}@127.0.0.1:{}", server.port);
    let mut service = Node::with_nats(&url("right")).start();
    check_works(&service, 1);
    assert!(service.terminate().success());
    let service = Node::with_nats(&url("wr%6fng-secret")).at(service.data_dir()).start();
    check_refused(&service, "refused the credentials", 1);
    server.restart_with(&with_password("wrong-secret"));
    check_works(&service, 2);
    end(service, &["wrong-secret", "wr%6fng"]);
}

#[test]
fn a_token_logs_in_from_a_file_and_from_the_url() {
    let server = Secured::start("authorization { token: \"t0ken-secret\" }");
    let file = server.file("token", "t0ken-secret\n");
    let mut service = Node::with_nats(&server.url()).flags(&["--nats-token-file", &file]).start();
    check_works(&service, 1);
    assert!(service.terminate().success());
    let service = Node::with_nats(&format!("nats://t0ken-secret@127.0.0.1:{}", server.port))
        .at(service.data_dir())
        .start();
    check_works(&service, 2);
    end(service, &["t0ken-secret"]);
}

#[test]
fn only_the_right_nkey_logs_in() {
    let [right, other] = [nkeys::KeyPair::new_user(), nkeys::KeyPair::new_user()];
    let allow =
        |key: &nkeys::KeyPair| format!("authorization {{ users: [ {{ nkey: {} }} ] }}", key.public_key());
    let mut server = Secured::start(&allow(&right));
    let seed = right.seed().expect("it was made with one");
    let file = server.file("node.nk", &format!("# the node\n{seed}\n"));
    let service = Node::with_nats(&server.url()).flags(&["--nats-nkey", &file]).start();
    check_works(&service, 1);
    server.restart_with(&allow(&other));
    check_refused(&service, "refused the credentials", 1);
    server.file("node.nk", &other.seed().expect("it was made with one"));
    check_works(&service, 2);
    end(service, &[&seed]);
}

#[test]
fn credentials_that_expire_are_replaced_while_the_node_runs() {
    let operator = Operator::new();
    let mut server = Secured::start(&operator.config());
    let lasting = operator.user(None);
    let file = server.file("node.creds", &lasting);
    let service = Node::with_nats(&server.url()).flags(&["--nats-creds", &file]).start();
    check_works(&service, 1);
    // Whether it is connected again before they expire or after, it is refused from then on.
    let soon = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() + 5;
    server.file("node.creds", &operator.user(Some(soon)));
    server.restart_with(&operator.config());
    check_refused(&service, "refused the credentials", 1);
    server.file("node.creds", &lasting);
    check_works(&service, 2);
    let seed = lasting.lines().find(|line| line.starts_with("SU")).expect("there is a seed");
    end(service, &[seed]);
}

fn with_tls(server: &str, extra: &str) -> String {
    format!("tls {{ cert_file: \"{server}.pem\", key_file: \"{server}.key\", {extra} }}")
}

/// Writes a server's certificate; what its configuration calls it.
fn certify(server: &Secured, authority: &Authority, name: &str) -> String {
    let certified = authority.certify(name);
    server.file(&format!("{name}.key"), &certified.key);
    let path = server.file(&format!("{name}.pem"), &certified.certificate);
    path.trim_end_matches(".pem").to_owned()
}

#[test]
fn only_a_server_signed_by_the_given_authority_is_connected_to() {
    let [ours, foreign] = ["ours", "foreign"].map(Authority::new);
    let mut server = Secured::start("");
    let names =
        [(&ours, "good"), (&foreign, "other")].map(|(authority, name)| certify(&server, authority, name));
    let ca = server.file("ca.pem", &ours.pem());
    server.restart_with(&with_tls(&names[0], ""));
    let service = Node::with_nats(&server.url()).flags(&["--nats-ca", &ca]).start();
    check_works(&service, 1);
    server.restart_with(&with_tls(&names[1], ""));
    check_refused(&service, "authority that is not trusted here", 1);
    // Both authorities are trusted while one replaces the other.
    server.file("ca.pem", &format!("{}{}", ours.pem(), foreign.pem()));
    check_works(&service, 2);
    // A server without TLS is refused.
    server.restart_with("");
    check_refused(&service, "NATS cannot be reached", 2);
    server.restart_with(&with_tls(&names[0], "handshake_first: auto"));
    check_works(&service, 3);
    end(service, &[]);
}

#[test]
fn a_client_certificate_logs_in() {
    let authority = Authority::new("ours");
    let mut server = Secured::start("");
    let ca = server.file("ca.pem", &authority.pem());
    let name = certify(&server, &authority, "server");
    let node = certify(&server, &authority, "node.example");
    let (certificate, key) = (format!("{node}.pem"), format!("{node}.key"));
    let config = with_tls(&name, &format!("ca_file: {ca:?}, verify_and_map: true, handshake_first: true"))
        + "\nauthorization { users: [ { user: \"node.example\" } ] }";
    server.restart_with(&config);
    let first = ["--nats-ca", &ca, "--nats-tls-first"];
    let with_certificate = [&first[..], &["--nats-cert", &certificate, "--nats-key", &key]].concat();
    let mut service = Node::with_nats(&server.url()).flags(&with_certificate).start();
    check_works(&service, 1);
    assert!(service.terminate().success());
    let mut service = Node::with_nats(&server.url()).flags(&first).at(service.data_dir()).start();
    check_refused(&service, "requires a client certificate", 1);
    assert!(service.terminate().success());
    let service = Node::with_nats(&server.url()).flags(&with_certificate).at(service.data_dir()).start();
    check_works(&service, 2);
    end(service, &[]);
}

#[test]
fn wrong_settings_are_reported_at_the_start_without_secrets() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let other = folder.path().join("other");
    std::fs::write(&other, "hunter2").expect("it can be written");
    let other = other.to_str().expect("UTF-8");
    for (arguments, says) in [
        (&["--nats", "nats://me:hunter2@h:port"][..], "URL number 1 is not valid"),
        (&["--nats", "nats://me:hunter2@h", "--nats-token-file", other], "in one place"),
        (&["--nats", "h", "--nats-creds", other], "BEGIN NATS USER JWT"),
        (&["--nats", "h", "--nats-nkey", other], "begins with SU"),
        (&["--nats", "h", "--nats-ca", other], "BEGIN CERTIFICATE"),
        (&["--nats", "h", "--nats-creds", "/nowhere/x"], "cannot read the credentials file /nowhere/x"),
        (&["--nats", "h", "--nats-nkey", other, "--nats-creds", other], "remove one of them"),
        (&["--nats-creds", other], "--nats-creds is set without --nats"),
    ] {
        let (status, words) = Node::flags(arguments).refusal();
        assert!(!status.success() && words.contains(says), "{arguments:?}: {words}");
        assert!(!words.contains("hunter2"), "{words}");
    }
}
