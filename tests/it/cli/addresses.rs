//! A wrong address is told at once and in words; and what is on this machine is never asked by a proxy.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::certificates::{Authority, Certified};
use crate::support::command::command;
use crate::support::node::Node;

/// What tells a wrong address from one that is tried again: that goes on for a minute.
const AT_ONCE: Duration = Duration::from_secs(30);
const PROXIES: [&str; 6] =
    ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];

/// Something that listens, and what was said to it.
struct Listening {
    address: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Listening {
    /// One that says this to everybody who connects, listens to one request, or a piece of something else,
    /// and hangs up.
    fn start(says: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&heard);
        let listen = move |mut client: TcpStream| {
            let (mut piece, mut all) = ([0; 1024], Vec::new());
            let _ = client.write_all(says.as_bytes());
            let _ = client.set_read_timeout(Some(Duration::from_secs(5)));
            while let Ok(count @ 1..) = client.read(&mut piece) {
                all.extend_from_slice(&piece[..count]);
                if all.ends_with(b"\r\n\r\n") || !all[0].is_ascii_uppercase() {
                    break;
                }
            }
            notes.lock().expect("no panic").push(String::from_utf8_lossy(&all).into_owned());
        };
        thread::spawn(move || listener.incoming().flatten().for_each(listen));
        Self { address, heard }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("no panic").clone()
    }
}

/// Runs a subcommand with variables; its exit code, what it said, and how long that took.
fn run(arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, Duration) {
    let mut command = command();
    for name in PROXIES.iter().chain(&["no_proxy", "NO_PROXY"]) {
        command.env_remove(name);
    }
    let began = Instant::now();
    let output = command.args(arguments).envs(variables.iter().copied()).stdin(Stdio::null()).output();
    let output = output.expect("the binary can be started");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (output.status.code(), said, began.elapsed())
}

/// A file of one row.
fn scores(folder: &tempfile::TempDir) -> String {
    let path = folder.path().join("scores.csv");
    std::fs::write(&path, "board,member,score\narena,m,1\n").expect("it can be written");
    path.to_str().expect("it is UTF-8").to_owned()
}

#[test]
fn a_wrong_address_is_told_at_once_by_every_command() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    let authority = Authority::new("the authority");
    let Certified { certificate, key: its_key } = authority.certify("localhost");
    let ca = path("ca.pem");
    for (file, text) in [(&cert, certificate), (&key, its_key), (&ca, authority.pem())] {
        std::fs::write(file, text).expect("it can be written");
    }
    let with_tls = Node::flags(&["--tls-cert", &cert, "--tls-key", &key]).start();
    let plain = Node::start();
    let (ssh, nats) =
        (Listening::start("SSH-2.0-OpenSSH_9.2\r\n"), Listening::start("INFO {\"server_id\":\"x\"}\r\n"));
    let mute = Listening::start("");
    let (https, http) = (with_tls.base().to_owned(), format!("http://{}", plain.address()));
    let of = |listening: &Listening| format!("http://{}", listening.address);
    let tls_of_mute = format!("https://{}", mute.address);
    // A label of a name is not longer than 63 letters, so that no name server is asked.
    let nowhere = format!("http://{}.example:8080", "a".repeat(64));
    let use_https = format!("this port speaks TLS: use https:// in the URL: {https}");
    let use_http = format!("this port does not speak TLS: use http:// in the URL: {http}");
    let scores = scores(&folder);
    for (url, expect) in [
        (https.replace("https:", "http:"), use_https.as_str()),
        (http.replace("http:", "https:"), use_http.as_str()),
        (of(&ssh), "SSH-2.0-OpenSSH_9.2"),
        (of(&nats), "does not speak HTTP"),
        (of(&mute), "closes the connection without an answer"),
        (tls_of_mute, ""),
        (nowhere, "failed to lookup address information"),
    ] {
        let to = path("snapshot");
        for arguments in [
            &["import", scores.as_str()][..],
            &["export", "--board", "arena"],
            &["rejects"],
            &["snapshot", "--to", to.as_str()],
            &["load", "--jobs", "10", "--windows", "all", "--board-prefix", "l"],
        ] {
            let (code, said, took) = run(&[arguments, &["--url", &url, "--ca", &ca]].concat(), &[]);
            assert!(code.is_some_and(|code| code != 0), "{arguments:?} {url}: {said}");
            assert!(took < AT_ONCE, "{arguments:?} {url} took {took:?}: {said}");
            // The generator connects by itself, and has words of its own.
            assert!(said.contains(expect) || arguments[0] == "load", "{arguments:?} {url}: {said}");
        }
    }
    let right = run(&["import", &scores, "--url", &https, "--ca", &ca], &[]);
    assert_eq!(right.0, Some(0), "{}", right.1);
}

#[test]
fn this_machine_is_asked_directly_whatever_the_environment_says() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let node = Node::start();
    let proxy = Listening::start("");
    let proxy_url = format!("http://{}", proxy.address);
    let mut variables: Vec<_> = PROXIES.iter().map(|name| (*name, proxy_url.as_str())).collect();
    variables.push(("RANKTREE_TOKEN", "rkt_this_is_shown_to_no_proxy"));
    let scores = scores(&folder);
    let port = node.address().rsplit(':').next().expect("a port").to_owned();
    for (number, host) in ["127.0.0.1", "localhost"].iter().enumerate() {
        let url = format!("http://{host}:{port}");
        let to = folder.path().join(number.to_string());
        for arguments in [
            &["import", scores.as_str()][..],
            &["export", "--board", "arena"],
            &["rejects"],
            &["snapshot", "--to", to.to_str().expect("UTF-8")],
            &["load", "--jobs", "10", "--windows", "all", "--board-prefix", "l"],
            &["healthcheck"],
        ] {
            let (code, said, _) = run(&[arguments, &["--url", &url]].concat(), &variables);
            assert_eq!(code, Some(0), "{arguments:?} {url}: {said}");
        }
    }
    assert_eq!(proxy.heard(), Vec::<String>::new());
}

#[test]
fn a_token_goes_to_a_proxy_in_clear_only_if_that_is_said() {
    let proxy = Listening::start("");
    let proxy_url = format!("http://{}", proxy.address);
    let token = ("RANKTREE_TOKEN", "rkt_this_is_shown_to_no_proxy");
    let export = ["export", "--board", "arena", "--url", "http://ranks.example"];
    for name in PROXIES.iter().filter(|name| !name.eq_ignore_ascii_case("https_proxy")) {
        let (code, said, _) = run(&export, &[(*name, proxy_url.as_str()), token]);
        assert!(
            code == Some(2) && said.contains("the token would go in clear to the proxy"),
            "{name}: {said}"
        );
        assert!(said.contains(*name) && said.contains("no_proxy"), "{said}");
    }
    assert_eq!(proxy.heard(), Vec::<String>::new());
    // Without a token, and where it is said, the service is asked by the proxy.
    assert_eq!(run(&export, &[("http_proxy", proxy_url.as_str())]).0, Some(2), "the proxy hangs up");
    assert_eq!(run(&[&export[..], &["--proxy", proxy_url.as_str()]].concat(), &[token]).0, Some(2));
    let heard = proxy.heard();
    assert!(heard.len() >= 2, "{heard:?}");
    for request in heard {
        assert!(request.starts_with("CONNECT ranks.example:80 "), "{request}");
    }
}
