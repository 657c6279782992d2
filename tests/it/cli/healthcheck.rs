//! `ranktree healthcheck` against the real service: up, down, and not a service at all.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use crate::support::command::command;
use crate::support::node::Node;

fn healthcheck(arguments: &[&str]) -> (Option<i32>, String) {
    let output = command().arg("healthcheck").args(arguments).output().expect("the binary can be started");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).expect("it writes UTF-8"))
}

#[test]
fn the_exit_code_says_whether_the_service_is_ready() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut binary = Node::shards(2).start();
    let address = binary.address().to_owned();
    let file = folder.path().join("ranktree.toml");
    std::fs::write(&file, format!("listen = \"{address}\"\nshards = 2\n")).expect("it can be written");
    let file = file.to_str().expect("it is UTF-8");
    let url = format!("http://{address}/");
    for arguments in
        [&["--listen", &address][..], &["--config", file], &["--config", file, "--live"], &["--url", &url]]
    {
        let (code, said) = healthcheck(&[arguments, &["--timeout-ms", "60000"]].concat());
        assert_eq!(code, Some(0), "{arguments:?}: {said}");
        assert!(said.starts_with(&format!("http://{address}/")) && said.contains(": 200 OK"), "{said}");
    }
    binary.terminate();
    let (code, said) = healthcheck(&["--config", file]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("/readyz: no answer: "), "{said}");
    assert_eq!(healthcheck(&["--listen", "127.0.0.1:0"]).0, Some(2), "that port cannot be asked");
}

#[test]
fn its_help_shows_only_settings_that_say_where_to_ask_and_it_accepts_those_of_serve() {
    let (code, said) = healthcheck(&["--help"]);
    assert_eq!(code, Some(0), "{said}");
    for shown in ["--url", "--ca", "--live", "--timeout-ms", "--config", "--listen", "--tls-cert"] {
        assert!(said.contains(shown), "{shown}: {said}");
    }
    for hidden in ["--tokens", "--max-requests", "--idle-seconds"] {
        assert!(!said.contains(hidden), "{hidden}: {said}");
    }
    // All flags of serve are accepted. The check then fails only because nothing listens there.
    let (code, said) = healthcheck(&["--listen", "127.0.0.1:1", "--max-requests", "5"]);
    assert_eq!(code, Some(1), "{said}");
}

#[test]
fn a_healthcheck_times_out_and_reports_a_service_that_is_not_ready() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    // The operating system accepts connections, but nothing answers them.
    let (code, said) = healthcheck(&["--listen", &address, "--timeout-ms", "100"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("no answer: timeout"), "{said}");
    let answers = thread::spawn(move || {
        for connection in listener.incoming().flatten().skip(1).take(1) {
            let mut connection = connection;
            let _ = connection.read(&mut [0; 1024]).expect("it asks");
            let answer = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 9\r\n\r\nnot ready";
            connection.write_all(answer.as_bytes()).expect("it listens");
        }
    });
    let (code, said) = healthcheck(&["--listen", &address, "--timeout-ms", "60000"]);
    assert_eq!(
        (code, said.trim()),
        (Some(1), &*format!("http://{address}/readyz: 503 Service Unavailable not ready"))
    );
    answers.join().expect("it answered");
}
