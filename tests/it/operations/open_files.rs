//! The service raises the limit of open files that it was started with.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const SOFT: f64 = 256.0;

#[test]
fn a_start_raises_the_limit_of_open_files_to_what_the_system_allows() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut command = Command::new("prlimit");
    command.arg(format!("--nofile={SOFT}:")).arg(env!("CARGO_BIN_EXE_ranktree"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.path().join("data"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut service = command.spawn().expect("util-linux is installed");
    let mut line = String::new();
    BufReader::new(service.stdout.take().expect("it is piped")).read_line(&mut line).expect("it says where");
    let base = line.split_whitespace().last().unwrap_or_default();
    let metrics = ureq::get(format!("{base}/metrics")).call().expect("it answers");
    let metrics = metrics.into_body().read_to_string().expect("it is text");
    service.kill().expect("it runs");
    service.wait().expect("a child can be waited for");
    let files_max = metrics.lines().find_map(|line| line.strip_prefix("process_max_fds "));
    let files_max: f64 =
        files_max.and_then(|text| text.parse().ok()).expect("the process's metrics are there");
    // The test's own limit may be this low, but not where tests are run as root or by a usual account.
    assert!(files_max > SOFT, "{files_max}");
}
