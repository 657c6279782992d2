//! The real `ranktree` binary, started, killed and started again.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::support::client::Client;

/// Far above what any start needs; a service that says nothing for so long has hung.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// A running service, and all that is needed to start it once more.
pub struct Binary {
    child: Option<Child>,
    base: String,
    data_dir: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    /// What it writes to standard error, shown when a test fails.
    log: PathBuf,
}

impl Binary {
    /// Starts the service on a free port, and waits until it says that it is ready.
    pub fn start(data_dir: &Path, shards: u16, extra: &[&str]) -> Self {
        Self::start_in(data_dir, shards, extra, &[])
    }

    /// The same, with variables in its environment.
    pub fn start_in(data_dir: &Path, shards: u16, extra: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut binary = Self::stopped(data_dir, shards, extra, environment);
        binary.restart();
        binary
    }

    fn stopped(data_dir: &Path, shards: u16, extra: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut arguments = vec!["serve".to_owned(), "--listen".to_owned(), "127.0.0.1:0".to_owned()];
        arguments.extend(["--shards".to_owned(), shards.to_string()]);
        arguments.extend(extra.iter().map(ToString::to_string));
        let data_dir = data_dir.to_owned();
        let log = data_dir.with_extension("log");
        let environment =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { child: None, base: String::new(), data_dir, arguments, environment, log }
    }

    /// Starts the service where it may refuse; what it says then.
    pub fn start_or_refusal(data_dir: &Path, shards: u16, extra: &[&str]) -> Result<Self, String> {
        let mut binary = Self::stopped(data_dir, shards, extra, &[]);
        if binary.launch().is_some() {
            return Ok(binary);
        }
        let mut child = binary.child.take().expect("it was started");
        let status = child.wait().expect("a child can be waited for");
        assert_eq!(status.code(), Some(2), "{}", binary.log());
        Err(binary.log())
    }

    /// Starts the service again, on another port.
    pub fn restart(&mut self) {
        assert!(self.launch().is_some(), "the service ended before it was ready");
    }

    /// `None`: it ended instead.
    fn launch(&mut self) -> Option<()> {
        assert!(self.child.is_none(), "it is still running");
        let log = File::options().create(true).append(true).open(&self.log).expect("the log can be written");
        let mut command = command();
        command.args(&self.arguments).arg("--data-dir").arg(&self.data_dir);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().expect("the binary can be started");
        let stdout = child.stdout.take().expect("it is piped");
        self.child = Some(child);

        let (lines, said) = channel();
        // The thread reads to the end, so that the service never writes into a closed pipe.
        thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).for_each(|line| drop(lines.send(line)));
        });
        let ready = match said.recv_timeout(READY_WITHIN) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("the service is not ready after {READY_WITHIN:?}"),
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

    /// What it wrote to standard error so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("the log can be read")
    }

    pub fn kill9(&mut self) {
        let mut child = self.child.take().expect("it is running");
        child.kill().expect("a child that was not waited for can be signalled");
        child.wait().expect("a child can be waited for");
    }

    /// Sends SIGTERM, and waits for the end.
    pub fn terminate(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("it is running");
        signal("TERM", child.id());
        child.wait().expect("a child can be waited for")
    }

    /// Runs `ranktree verify` on the data directory; the service must not be running.
    pub fn verify(&self) {
        assert!(self.child.is_none(), "the directory is in use");
        let Output { status, stdout, stderr } = run("verify", &self.data_dir);
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "verify found something ({status}):\n{stdout}\n{stderr}");
    }
}

impl Drop for Binary {
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

/// Sends a process of ours a signal by its name.
pub fn signal(name: &str, pid: u32) {
    // The shell's own kill: the command of that name is not on every machine.
    let kill = Command::new("sh").arg("-c").arg(format!("kill -{name} {pid}")).status();
    assert!(kill.expect("there is a shell").success());
}

/// Runs a subcommand on a data directory to its end.
pub fn run(subcommand: &str, data_dir: &Path) -> Output {
    let mut command = command();
    command.arg(subcommand).arg("--data-dir").arg(data_dir).stdin(Stdio::null());
    command.output().expect("the binary can be started")
}

/// Starts the service where it is expected to refuse; its status, and what it says.
pub fn run_serve(data_dir: &Path, shards: u16, extra: &[&str]) -> (ExitStatus, String) {
    let mut command = command();
    command.args(["serve", "--listen", "127.0.0.1:0", "--shards", &shards.to_string(), "--data-dir"]);
    let output = command.arg(data_dir).args(extra).stdin(Stdio::null()).output();
    let Output { status, stderr, .. } = output.expect("the binary can be started");
    (status, String::from_utf8_lossy(&stderr).into_owned())
}

/// Starts a subcommand that ends by itself, or when it is told to; what it writes is read by whoever waits for it.
pub fn spawn(arguments: &[&str]) -> Child {
    let mut command = command();
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the binary can be started")
}

/// The binary, without what the tester's environment would change about it.
pub fn command() -> Command {
    let mut command = Command::new(executable());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("RANKTREE_") {
            command.env_remove(name);
        }
    }
    command
}

/// A copy of the binary under test. Clones share compiled files, so that a build in another clone may replace the
/// original while the tests run, and a restart would start something else.
fn executable() -> &'static Path {
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    COPY.get_or_init(|| {
        let clone = ranktree::types::fnv1a_32(env!("CARGO_MANIFEST_DIR").as_bytes());
        let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ranktree-{clone:08x}"));
        // A running copy cannot be written to, but its name can be taken away.
        let _ = fs::remove_file(&copy);
        fs::copy(env!("CARGO_BIN_EXE_ranktree"), &copy).expect("the binary can be copied");
        copy
    })
}

/// From now on, the running service can make no file larger than this; `0` plays a full disk.
pub fn limit_files(service: &Binary, bytes: &str) {
    let (pid, limit) = (service.pid().to_string(), format!("--fsize={bytes}:unlimited"));
    let set = Command::new("prlimit").args(["--pid", &pid, &limit]).status();
    assert!(set.expect("util-linux is installed").success());
}
