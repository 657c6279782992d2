//! Secrets stay secret: passwords in arguments, files that hold secrets, and the data.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use crate::support::command::command;
use crate::support::node::Node;

/// The exit code, and all that was written.
fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let output = command().args(arguments).output().expect("the binary can be started");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).expect("it writes UTF-8"))
}

#[test]
fn a_url_with_a_password_is_refused_and_not_repeated() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let rows = folder.path().join("rows.csv");
    fs::write(&rows, "board,member,score\na,m,1\n").expect("it can be written");
    let rows = rows.to_str().expect("it is UTF-8");
    let url = "http://me:hunter2@127.0.0.1:1";
    for arguments in [
        &["export", "--board", "a", "--url", url][..],
        &["import", rows, "--url", url, "--retry-for", "1s"],
        &["load", "--url", url],
        &["load", "--nats", "nats://127.0.0.1:1", "--read-url", url],
        &["healthcheck", "--url", url],
    ] {
        let (code, said) = run(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        assert!(
            said.contains("must not contain a user or a password") && !said.contains("hunter2"),
            "{said}"
        );
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}

#[test]
fn secret_files_that_others_can_read_are_warned_of() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| folder.path().join(name).to_str().expect("it is UTF-8").to_owned();
    let (cert, key, password) = (path("cert.pem"), path("key.pem"), path("password"));
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    fs::write(&cert, pair.cert.pem()).expect("it can be written");
    fs::write(&key, pair.signing_key.serialize_pem()).expect("it can be written");
    fs::write(&password, "hunter2\n").expect("it can be written");
    let data = path("data");
    let tls = ["--tls-cert", cert.as_str(), "--tls-key", &key];
    let nats = ["--nats", "nats://127.0.0.1:1", "--nats-user", "me", "--nats-password-file", &password];
    let check = [&["config", "check", "--data-dir", &data][..], &tls, &nats].concat();
    for (mode, problem) in [
        (0o600, None),
        (0o400, None),
        (0o640, None),
        (0o644, Some("every user of this machine can read it (its mode is 644)")),
        (0o660, Some("users other than its owner can change it (its mode is 660)")),
        (0o777, Some("users other than its owner can change it (its mode is 777)")),
    ] {
        for file in [&key, &password] {
            set_mode(Path::new(file), mode);
        }
        let (code, said) = run(&check);
        assert_eq!(code, Some(0), "it is a warning: {said}");
        assert!(said.contains("no errors found") && !said.contains("hunter2"), "{said}");
        assert!(!said.contains("tls_cert ="), "a certificate is no secret: {said}");
        for setting in [format!("tls_key = {key}"), format!("nats_password_file = {password}")] {
            let told = problem.map(|problem| format!("{setting} holds a secret, and {problem}; chmod 600"));
            match told {
                Some(told) => assert!(said.contains(&told), "{mode:o}: {said}"),
                None => assert!(!said.contains(&setting), "{mode:o}: {said}"),
            }
        }
    }
    let service = Node::at(Path::new(&data)).flags(&tls).start();
    let log = service.log();
    assert!(log.contains(&format!("tls_key = {key} holds a secret")), "{log}");
}

#[test]
fn a_new_data_directory_is_open_to_its_owner_only() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let data = folder.path().join("data");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").mode() & 0o777;
    drop(Node::at(&data).start());
    for made in [&data, &data.join("shard-000")] {
        assert_eq!(mode(made), 0o700, "{}", made.display());
    }
    // The mode of an existing directory is not changed.
    let made = folder.path().join("made");
    fs::create_dir(&made).expect("it can be made");
    set_mode(&made, 0o750);
    drop(Node::at(&made).start());
    assert_eq!(mode(&made), 0o750);
}
