//! A node: the real `ranktree serve`, started, killed and started again.
//!
//! A test says what is special about its node and nothing else: `Node::start()`, or
//! `Node::with_nats(&nats).shards(3).start()`.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::support::client::Client;
use crate::support::command::{command, run, signal};
use crate::support::files::copy_folder;
use crate::support::nats::Nats;

/// Far above what any start needs; a node that says nothing for so long has hung.
const READY_TIMEOUT: Duration = Duration::from_secs(120);

/// A running node, and all that is needed to start it once more.
pub struct Node {
    child: Option<Child>,
    base: String,
    data_dir: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    /// What it writes to standard error, shown when a test fails.
    log: PathBuf,
    /// The folder that its data is in, if the test did not name one; removed when the node is dropped.
    _folder: Option<TempDir>,
}

/// What is special about a node that is to be started.
#[derive(Default)]
pub struct NodeSetup {
    shards: Option<u16>,
    data_dir: Option<PathBuf>,
    /// The folder that a copy is in.
    folder: Option<TempDir>,
    flags: Vec<String>,
    environment: Vec<(String, String)>,
}

/// A NATS server, or a link to one.
pub trait NatsAddress {
    fn address(&self) -> String;
}

impl NatsAddress for Nats {
    fn address(&self) -> String {
        self.url()
    }
}

impl NatsAddress for str {
    fn address(&self) -> String {
        self.to_owned()
    }
}

impl NatsAddress for String {
    fn address(&self) -> String {
        self.clone()
    }
}

impl NodeSetup {
    /// One if a test does not say, or, with `--own`, as many as the streams have.
    pub fn shards(self, shards: u16) -> Self {
        Self { shards: Some(shards), ..self }
    }

    /// The data directory; one in a temporary folder if a test does not say.
    pub fn at(self, data_dir: impl Into<PathBuf>) -> Self {
        Self { data_dir: Some(data_dir.into()), ..self }
    }

    pub fn with_nats(self, nats: &(impl NatsAddress + ?Sized)) -> Self {
        self.flags(&["--nats", &nats.address()])
    }

    /// The size of streams that the node creates: a test with many streams shares the server's room.
    pub fn stream_mib(self, mib: u64) -> Self {
        self.flags(&["--nats-stream-mib", &mib.to_string()])
    }

    pub fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(ToString::to_string));
        self
    }

    pub fn environment(mut self, variables: &[(&str, &str)]) -> Self {
        let owned = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        self.environment.extend(owned);
        self
    }

    /// Starts the node on a free port, and waits until it says that it is ready.
    pub fn start(self) -> Node {
        let mut node = self.stopped();
        node.restart();
        node
    }

    /// The data of a stopped node, copied.
    pub fn copy_of(self, node: &Node) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let data_dir = folder.path().join("data");
        copy_folder(node.data_dir(), &data_dir);
        Self { data_dir: Some(data_dir), folder: Some(folder), ..self }
    }

    /// Starts the node where it is expected to refuse; gives its status, and what it says.
    pub fn refusal(self) -> (ExitStatus, String) {
        let node = self.stopped();
        let mut command = command();
        command.args(&node.arguments).arg("--data-dir").arg(&node.data_dir).stdin(Stdio::null());
        let Output { status, stderr, .. } = command.output().expect("the binary can be started");
        (status, String::from_utf8_lossy(&stderr).into_owned())
    }

    /// Starts the node where it may refuse; gives what it says then.
    pub fn start_or_refusal(self) -> Result<Node, String> {
        let mut node = self.stopped();
        if node.launch(&[]).is_some() {
            return Ok(node);
        }
        let mut child = node.child.take().expect("it was started");
        let status = child.wait().expect("a child can be waited for");
        assert_eq!(status.code(), Some(2), "{}", node.log());
        Err(node.log())
    }

    fn stopped(self) -> Node {
        let Self { shards, data_dir, folder, flags, environment } = self;
        let (data_dir, folder) = if let Some(data_dir) = data_dir {
            (data_dir, folder)
        } else {
            let folder = tempfile::tempdir().expect("a temporary directory");
            (folder.path().join("data"), Some(folder))
        };
        let mut arguments = ["serve", "--listen", "127.0.0.1:0"].map(str::to_owned).to_vec();
        // A node that owns some of the shards asks the streams how many there are.
        if shards.is_some() || !flags.iter().any(|flag| flag == "--own") {
            arguments.extend(["--shards".to_owned(), shards.unwrap_or(1).to_string()]);
        }
        arguments.extend(flags);
        let log = data_dir.with_extension("log");
        Node { child: None, base: String::new(), data_dir, arguments, environment, log, _folder: folder }
    }
}

impl Node {
    /// Starts a node with one shard and without NATS.
    pub fn start() -> Self {
        NodeSetup::default().start()
    }

    pub fn shards(shards: u16) -> NodeSetup {
        NodeSetup::default().shards(shards)
    }

    pub fn at(data_dir: impl Into<PathBuf>) -> NodeSetup {
        NodeSetup::default().at(data_dir)
    }

    pub fn with_nats(nats: &(impl NatsAddress + ?Sized)) -> NodeSetup {
        NodeSetup::default().with_nats(nats)
    }

    pub fn environment(variables: &[(&str, &str)]) -> NodeSetup {
        NodeSetup::default().environment(variables)
    }

    pub fn flags(flags: &[&str]) -> NodeSetup {
        NodeSetup::default().flags(flags)
    }

    /// Starts the node again, on another port.
    pub fn restart(&mut self) {
        self.restart_with(&[]);
    }

    /// Starts the node again, this time with more flags than its own.
    pub fn restart_with(&mut self, flags: &[&str]) {
        assert!(self.launch(flags).is_some(), "the node ended before it was ready");
    }

    /// `None`: it ended instead.
    fn launch(&mut self, more: &[&str]) -> Option<()> {
        assert!(self.child.is_none(), "it is still running");
        let log = File::options().create(true).append(true).open(&self.log).expect("the log can be written");
        let mut command = command();
        command.args(&self.arguments).args(more).arg("--data-dir").arg(&self.data_dir);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().expect("the binary can be started");
        let stdout = child.stdout.take().expect("it is piped");
        self.child = Some(child);

        let (lines, said) = channel();
        // The thread reads to the end, so that the node never writes into a closed pipe.
        thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).for_each(|line| drop(lines.send(line)));
        });
        let ready = match said.recv_timeout(READY_TIMEOUT) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("the node is not ready after {READY_TIMEOUT:?}"),
            Err(RecvTimeoutError::Disconnected) => return None,
        };
        let base = ready.split_whitespace().last().filter(|word| word.contains("://"));
        let base = base.unwrap_or_else(|| panic!("its first line ends with its address: {ready:?}"));
        base.clone_into(&mut self.base);
        Some(())
    }

    pub fn client(&self) -> Client {
        Client::new(&self.base)
    }

    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// The process's number, while it runs.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it is running").id()
    }

    /// Scheme, host and port.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        self.base.split_once("://").expect("it is a URL").1
    }

    /// Its metrics, as Prometheus has them.
    pub fn metrics(&self) -> String {
        self.metrics_for(None)
    }

    fn metrics_for(&self, token: Option<&str>) -> String {
        let mut asked = ureq::get(format!("{}/metrics", self.base));
        if let Some(token) = token {
            asked = asked.header("authorization", format!("Bearer {token}"));
        }
        asked.call().expect("metrics are served").body_mut().read_to_string().expect("it is text")
    }

    /// The value of a metric.
    ///
    /// # Arguments
    /// `series`: its name and all of its labels.
    pub fn metric(&self, series: &str) -> Option<f64> {
        value_of(series, &self.metrics())
    }

    /// The same of a node that needs a token for it.
    pub fn metric_for(&self, token: &str, series: &str) -> Option<f64> {
        value_of(series, &self.metrics_for(Some(token)))
    }

    /// What it wrote to standard error so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("the log can be read")
    }

    pub fn kill9(&mut self) {
        let mut child = self.child.take().expect("it is running");
        child.kill().expect("a child that was not waited for can be signalled");
        child.wait().expect("a child can be waited for");
    }

    /// Waits for the end, of which it was told otherwise.
    pub fn wait(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("it is running");
        child.wait().expect("a child can be waited for")
    }

    /// Sends SIGTERM, and waits for the end.
    pub fn terminate(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("it is running");
        signal("TERM", child.id());
        child.wait().expect("a child can be waited for")
    }

    /// Runs `ranktree verify` on the data directory; the node must not be running.
    pub fn verify(&self) {
        assert!(self.child.is_none(), "the directory is in use");
        let Output { status, stdout, stderr } = run("verify", &self.data_dir);
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "verify found something ({status}):\n{stdout}\n{stderr}");
    }
}

fn value_of(series: &str, metrics: &str) -> Option<f64> {
    metrics.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if thread::panicking() {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            let last = lines.get(lines.len().saturating_sub(50)..).unwrap_or_default();
            eprintln!("the service's log ends with:\n{}", last.join("\n"));
        }
    }
}

/// From now on, the running node can make no file larger than this; `0` plays a full disk.
pub fn limit_files(node: &Node, bytes: &str) {
    let (pid, limit) = (node.pid().to_string(), format!("--fsize={bytes}:unlimited"));
    let set = Command::new("prlimit").args(["--pid", &pid, &limit]).status();
    assert!(set.expect("util-linux is installed").success());
}
