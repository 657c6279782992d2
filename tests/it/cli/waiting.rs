//! Commands that are given a pipe where they read settings or secrets say so, and do not wait for somebody
//! who writes into it; nor does an export wait without end for somebody who reads from its pipe.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;

use crate::support::command::{signal, spawn};
use crate::support::nats::wait_until;
use crate::support::node::Node;

fn pipe(path: &Path) -> String {
    let made = Command::new("mkfifo").arg(path).status().expect("there is a mkfifo");
    assert!(made.success());
    path.to_str().expect("it is UTF-8").to_owned()
}

/// What a command says that ends by itself, with status 2.
fn refusal(arguments: &[&str]) -> String {
    let mut child = spawn(arguments);
    wait_until("the command ends", || child.try_wait().expect("it is ours").is_some());
    let output = child.wait_with_output().expect("it has ended");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    said
}

#[test]
fn a_pipe_in_the_place_of_settings_or_secrets_is_refused_at_once() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let pipe = pipe(&folder.path().join("pipe"));
    let rows = folder.path().join("rows.csv");
    fs::write(&rows, "board,member,score\na,b,1\n").expect("it can be written");
    let (rows, url) = (rows.to_str().expect("it is UTF-8"), "https://127.0.0.1:1");
    let data = folder.path().join("data");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data-dir", data.to_str().expect("it is UTF-8")];
    let export = ["export", "--board", "a", "--url", url];
    for arguments in [
        [&serve[..], &["--config", &pipe]].concat(),
        vec!["config", "check", "--config", &pipe],
        vec!["verify", "--config", &pipe],
        vec!["healthcheck", "--config", &pipe],
        [&serve[..], &["--tokens", &pipe]].concat(),
        [&export[..], &["--token-file", &pipe]].concat(),
        [&export[..], &["--ca", &pipe]].concat(),
        vec!["import", rows, "--url", url, "--token-file", &pipe],
        vec!["snapshot", "--url", url, "--to", "none", "--token-file", &pipe],
        vec![
            "import",
            "--redis",
            "redis://127.0.0.1:1",
            "--key",
            "k",
            "--board",
            "a",
            "--redis-password-file",
            &pipe,
            "--url",
            url,
        ],
    ] {
        let said = refusal(&arguments);
        assert!(said.contains("it is not a regular file") && said.contains(&pipe), "{arguments:?}: {said}");
    }
    // Nor is one read to its end that has none.
    for endless in ["/dev/zero", "/dev/urandom"] {
        let said = refusal(&[&export[..], &["--token-file", endless]].concat());
        assert!(said.contains("it is not a regular file"), "{said}");
    }
    let large = folder.path().join("large");
    fs::File::create(&large).and_then(|file| file.set_len(1 << 40)).expect("it takes no room");
    let large = large.to_str().expect("it is UTF-8");
    let said = refusal(&["verify", "--config", large]);
    assert!(said.contains("more than 16777216 bytes"), "{said}");
    assert!(!data.exists());
}

#[test]
fn an_export_into_a_pipe_that_nobody_reads_ends_and_says_so() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let pipe = pipe(&folder.path().join("pipe"));
    let mut node = Node::start();
    let score = serde_json::json!({ "score": 1 });
    assert_eq!(node.client().put("/v1/boards/a/members/m", &score).0, 200);
    let export = ["export", "--board", "a", "--url", node.base(), "--output", &pipe];
    let said = refusal(&export);
    assert!(said.contains("nobody reads from it") && said.contains(&pipe), "{said}");
    // A reader that comes a little later is waited for.
    let child = spawn(&export);
    let read = fs::read_to_string(&pipe).expect("text comes");
    assert!(child.wait_with_output().expect("it ends").status.success());
    assert_eq!(read.lines().count(), 2, "{read}");
    assert!(node.terminate().success());
}

#[test]
fn an_import_that_waits_for_a_pipe_says_so_and_ends_at_the_first_signal() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let pipe = pipe(&folder.path().join("rows"));
    let mut child = spawn(&["import", &pipe, "--board", "a", "--url", "http://127.0.0.1:1"]);
    let mut said = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut line = String::new();
    said.read_line(&mut line).expect("it says something");
    assert!(line.contains(&pipe) && line.contains("waiting for whoever writes to it"), "{line}");
    // Who runs tests in the background may have them ignore SIGINT.
    signal("TERM", child.id());
    wait_until("the import ends", || child.try_wait().expect("it is ours").is_some());
}
