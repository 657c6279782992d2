//! HTTPS, and certificates that are replaced while the service runs.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::command;
use crate::support::nats::wait_until;
use crate::support::node::Node;
use crate::support::raw::{connect, get, rest_of};
use crate::support::tokens::new_token;

/// A certificate for 127.0.0.1 and its key, in PEM.
fn pair() -> (String, String) {
    let pair = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    (pair.cert.pem(), pair.signing_key.serialize_pem())
}

/// A token with this scope, and its lines for the tokens file.
fn token(scope: &str) -> (String, String) {
    new_token(&["--scope", scope, "--name", scope])
}

fn write(folder: &Path, (certificate, key): (&str, &str)) {
    fs::write(folder.join("cert.pem"), certificate).expect("it can be written");
    fs::write(folder.join("key.pem"), key).expect("it can be written");
}

#[test]
fn certificates_are_replaced_while_connections_stay_open() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let (cert, key) = (cert.to_str().expect("UTF-8"), key.to_str().expect("UTF-8"));
    let (old, old_key) = pair();
    write(folder.path(), (&old, &old_key));
    let mut service = Node::flags(&["--tls-cert", cert, "--tls-key", key]).start();
    assert!(service.base().starts_with("https://"), "{}", service.base());
    // The client keeps its connection open as long as the service does.
    let first = Client::trusting(service.base(), &old);
    assert_eq!(first.put("/v1/boards/a/members/m", &json!({"score": 1})).0, 200);

    let (new, new_key) = pair();
    let is_in_force = |certificate: &str| {
        let client = Client::trusting(service.base(), certificate);
        client.send(ureq::http::Method::GET, "/v1/boards/a", None).is_ok()
    };
    assert!(is_in_force(&old) && !is_in_force(&new));
    write(folder.path(), (&new, &new_key));
    wait_until("the new certificate is in force", || is_in_force(&new));
    assert!(!is_in_force(&old));
    assert_eq!(first.get("/v1/boards/a/members/m").0, 200, "an open connection goes on");

    // A certificate and a key that do not match, and a file without a certificate: the log says so, and the
    // old certificate stays in use.
    for broken in [(old.as_str(), new_key.as_str()), ("nothing", new_key.as_str())] {
        let told = || service.log().matches("cannot be used, so the old content stays in use").count();
        let before = told();
        write(folder.path(), broken);
        wait_until("the log says so", || told() > before);
        assert!(is_in_force(&new));
    }

    assert!(service.terminate().success());
}

#[test]
fn a_client_that_does_not_speak_tls_is_disconnected() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let (cert, key) = (cert.to_str().expect("UTF-8"), key.to_str().expect("UTF-8"));
    let (certificate, its_key) = pair();
    write(folder.path(), (&certificate, &its_key));
    let mut service = Node::flags(&["--tls-cert", cert, "--tls-key", key, "--header-seconds", "1"]).start();
    let started = Instant::now();
    assert_eq!(rest_of(&mut connect(service.address())), "");
    assert!(started.elapsed().as_millis() >= 950, "{:?}", started.elapsed());
    // On a busy machine the client may be disconnected before it has sent its request.
    let mut answer = String::new();
    wait_until("the client is told", || {
        answer = get(service.address(), "/healthz");
        !answer.is_empty()
    });
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("use https://"), "{answer}");
    let mut stream = connect(service.address());
    // On a busy machine the client may be disconnected before it has sent this.
    let _ = stream.write_all(&[22, 3, 1, 2, 0, 1]);
    assert_eq!(rest_of(&mut stream), "", "a handshake that goes no further");
    wait_until("who does speak it is let in", || {
        let client = Client::trusting(service.base(), &certificate);
        client.send(ureq::http::Method::GET, "/healthz", None).is_ok_and(|(status, _)| status == 200)
    });
    assert!(service.terminate().success());
}

#[test]
fn a_start_with_an_unusable_certificate_or_key_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let flags = ["--tls-cert", cert.to_str().expect("UTF-8"), "--tls-key", key.to_str().expect("UTF-8")];
    let (status, words) = Node::flags(&flags).refusal();
    assert!(!status.success() && words.contains("cannot read"), "{words}");
    write(folder.path(), (&pair().0, &pair().1));
    let (status, words) = Node::flags(&flags).refusal();
    assert!(!status.success() && words.contains("cannot be used together"), "{words}");
}

#[test]
fn imports_and_exports_work_over_https_with_a_token() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (certificate, key) = pair();
    write(folder.path(), (&certificate, &key));
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (secret, listed) = token("write");
    let secret = secret.as_str();
    fs::write(path("tokens.toml"), listed).expect("it can be written");
    fs::write(path("scores.csv"), "board,member,score\na,m,1\na,n,2\n").expect("it can be written");
    let [cert, key, tokens] = ["cert.pem", "key.pem", "tokens.toml"].map(path);
    let service = Node::flags(&["--tls-cert", &cert, "--tls-key", &key, "--tokens", &tokens]).start();
    let import = |ca: &[&str], token: Option<&str>| {
        let mut command = command();
        command.args(["import", &path("scores.csv"), "--url", service.base()]).args(ca);
        let output = command.envs(token.map(|token| ("RANKTREE_TOKEN", token))).output();
        let output = output.expect("the binary can be started");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let ca = ["--ca", cert.as_str()];
    let (status, words) = import(&[], Some(secret));
    assert!(status == Some(2) && words.contains("with --ca"), "{words}");
    let (status, words) = import(&ca, None);
    assert!(status == Some(2) && words.contains("401 unauthorized"), "{words}");
    let (status, words) = import(&ca, Some(secret));
    assert_eq!(status, Some(0), "{words}");
    fs::write(path("token"), format!("{secret}\n")).expect("it can be written");
    let token_file = path("token");
    let with_file = [&ca[..], &["--token-file", &token_file]].concat();
    assert_eq!(import(&with_file, None).0, Some(0));
    // An export works the same way, and a health check needs neither.
    let run = |arguments: &[&str]| {
        let mut command = command();
        let output = command.args(arguments).output().expect("the binary can be started");
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &words)
    };
    let export = ["export", "--board", "a", "--url", service.base(), "--token-file", &token_file];
    let (status, words) = run(&export);
    assert!(status == Some(2) && words.contains("with --ca"), "{words}");
    let (status, rows) = run(&[&export[..], &ca].concat());
    assert!(status == Some(0) && rows.contains("\"member\":\"n\""), "{rows}");
    let (status, words) = run(&["healthcheck", "--url", service.base()]);
    assert_eq!(status, Some(0), "{words}");
    let client = Client::trusting(service.base(), &certificate).with_token(secret);
    assert_eq!(client.get("/v1/boards/a/members/n").1["rank"], 1);
    // A URL with the wrong scheme has an error of its own. An import that tried again would report it later,
    // or with another message.
    let plain = Node::start();
    let cleartext = service.base().replace("https:", "http:");
    let no_tls = format!("https://{}", plain.address());
    let (without, with) = ("this port speaks TLS: use https://", "this port does not speak TLS: use http://");
    let scores = path("scores.csv");
    for (url, expect) in [(&cleartext, without), (&no_tls, with)] {
        for (command, code) in [
            (&["import", &scores, "--ca", &cert, "--retry-for", "1h"][..], 2),
            (&["export", "--board", "a", "--ca", &cert], 2),
            (&["rejects", "--ca", &cert], 2),
            (&["healthcheck"], 1),
            (&["healthcheck", "--ca", &cert], 1),
        ] {
            let (status, words) = run(&[command, &["--url", url]].concat());
            assert!(status == Some(code) && words.contains(expect), "{command:?} {url}: {words}");
        }
    }
}

/// Certificates as `openssl req -x509` makes them: self-signed, and marked as authorities.
#[test]
fn a_self_signed_certificate_is_accepted_if_it_is_the_given_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let make = |name: &str, names: Option<&str>| {
        let (cert, key) = (path(&format!("{name}.pem")), path(&format!("{name}.key")));
        let mut openssl = std::process::Command::new("openssl");
        openssl.args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "30",
            "-subj",
            "/CN=localhost",
        ]);
        openssl.args(["-keyout", &key, "-out", &cert]);
        openssl.args(
            names
                .map(|names| ["-addext".to_owned(), format!("subjectAltName={names}")])
                .into_iter()
                .flatten(),
        );
        let output = openssl.output().expect("openssl is here");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (cert, key)
    };
    fs::write(path("scores.csv"), "board,member,score\na,m,1\n").expect("it can be written");
    let names = "DNS:localhost,IP:127.0.0.1";
    let (cert, key) = make("ours", Some(names));
    let (other, _) = make("other", Some(names));
    let (nameless, nameless_key) = make("nameless", None);
    let start = |cert: &str, key: &str| Node::flags(&["--tls-cert", cert, "--tls-key", key]).start();
    let (service, without_names) = (start(&cert, &key), start(&nameless, &nameless_key));
    let run = |arguments: &[&str]| {
        let output = command().args(arguments).output().expect("the binary can be started");
        let words = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.success(), words)
    };
    let by_name = service.base().replace("127.0.0.1", "localhost");
    let scores = path("scores.csv");
    let commands =
        [&["import", &scores][..], &["export", "--board", "a"], &["load", "--jobs", "100"], &["healthcheck"]];
    for (url, ca, expect) in [
        (service.base(), &cert, None),
        (&by_name, &cert, None),
        // The same names, and another key.
        (service.base(), &other, Some("is none of the trusted certificates")),
        (without_names.base(), &nameless, Some("-addext subjectAltName=IP:127.0.0.1")),
    ] {
        for command in commands {
            let (succeeds, words) = run(&[command, &["--url", url, "--ca", ca]].concat());
            assert_eq!(succeeds, expect.is_none(), "{command:?} {url}: {words}");
            assert!(expect.is_none_or(|expect| words.contains(expect)), "{command:?} {url}: {words}");
        }
    }
}

#[test]
fn load_works_over_https_with_a_token_and_reports_wrong_settings_before_it_begins() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (certificate, key) = pair();
    write(folder.path(), (&certificate, &key));
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let ((writer, first), (reader, second)) = (token("write"), token("read"));
    fs::write(path("tokens.toml"), first + &second).expect("it can be written");
    fs::write(path("writer"), format!("{writer}\n")).expect("it can be written");
    let [cert, key, tokens, writer_file] = ["cert.pem", "key.pem", "tokens.toml", "writer"].map(path);
    let service =
        Node::shards(2).flags(&["--tls-cert", &cert, "--tls-key", &key, "--tokens", &tokens]).start();
    let load = |url: &str, secret: Option<&str>, arguments: &[&str]| {
        let mut command = command();
        command.args(["load", "--json", "--jobs", "300", "--connections", "3", "--url", url]).args(arguments);
        let output = command.envs(secret.map(|secret| ("RANKTREE_TOKEN", secret))).output();
        let output = output.expect("the binary can be started");
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!words.contains("rkt_"), "a token is not for logs: {words}");
        (output.status.code(), summary, words)
    };
    let url = service.base();
    let plain = Node::start();
    let cleartext = url.replace("https:", "http:");
    let no_tls = format!("https://{}", plain.address());
    let other = format!("https://localhost:{}", url.rsplit(':').next().expect("a port"));
    let trusting = ["--ca", cert.as_str()];
    for (url, secret, arguments, expect) in [
        (url, Some(writer.as_str()), &[][..], "with --ca"),
        (&other, Some(&writer), &trusting, "names only 127.0.0.1, so it is not valid for localhost"),
        (url, None, &trusting, "401 Unauthorized"),
        (url, Some("rkt_no_such_token_but_long_enough_to_be_one"), &trusting, "give --token-file"),
        (&no_tls, Some(&writer), &trusting, "this port does not speak TLS: use http://"),
        (&cleartext, Some(&writer), &[], "this port speaks TLS: use https://"),
        (url, None, &["--ca", &writer_file], "there is no certificate in"),
        (
            url,
            None,
            &["--ca", &cert, "--token-file", "/no/such/file"],
            "cannot read the token from /no/such/file",
        ),
    ] {
        let (code, summary, words) = load(url, secret, arguments);
        assert!(code == Some(2) && words.contains(expect), "{url} {arguments:?}: {words}");
        assert_eq!(summary, Value::Null, "nothing was sent");
    }
    let client = Client::trusting(url, &certificate).with_token(&writer);
    assert_eq!(client.get("/v1/boards/load0").0, 404);
    // With a token of scope read, every job of a load is refused.
    let (code, summary, words) = load(url, Some(&reader), &trusting);
    assert_eq!((code, &summary["errors"][0]["kind"]), (Some(1), &json!("insufficient_scope")), "{words}");
    assert_eq!(client.get("/v1/boards/load0").0, 404);
    // The token is from the environment; from a file, which overrides the environment; and with reads in
    // addition to writes.
    let with_file = ["--ca", &cert, "--token-file", &writer_file, "--read-ratio", "0.5"];
    for (secret, arguments) in [(&writer, &trusting[..]), (&reader, &with_file)] {
        let (code, summary, words) = load(url, Some(secret), arguments);
        assert_eq!((code, &summary["writes"]["jobs"]), (Some(0), &json!(300)), "{summary} {words}");
        assert_eq!((&summary["errors"], &summary["workload"]["url"]), (&json!([]), &json!(url)));
    }
    assert!(client.get("/v1/boards/load0").1["totals"]["all"].as_u64() > Some(250));
}
