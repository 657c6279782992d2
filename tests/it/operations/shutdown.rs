//! A service ends on a signal, whatever its files of credentials have become.

use std::fs;
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use crate::support::command::command;
use crate::support::nats::wait_until;
use crate::support::node::Node;

/// Far above what an end takes.
const WITHIN: Duration = Duration::from_secs(60);

#[test]
fn tokens_file_that_becomes_a_pipe_is_reported_and_does_not_keep_the_service_from_ending() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("tokens.toml");
    let made = command().args(["token", "new", "--scope", "read", "--name", "a"]).output();
    fs::write(&file, made.expect("the binary can be started").stdout).expect("it can be written");
    let mut node = Node::flags(&["--tokens", file.to_str().expect("UTF-8")]).start();
    fs::remove_file(&file).expect("it is there");
    assert!(Command::new("mkfifo").arg(&file).status().expect("coreutils are installed").success());
    wait_until("it is reported", || node.log().contains("it is not a regular file"));
    let (ended, end) = channel();
    thread::spawn(move || ended.send(node.terminate().success()));
    assert_eq!(end.recv_timeout(WITHIN), Ok(true), "it ends");
}
