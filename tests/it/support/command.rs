//! The real `ranktree` binary and its subcommands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

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

/// Starts a subcommand that ends by itself, or when it is told to; what it writes is read by whoever waits
/// for it.
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

/// A copy of the binary under test. Clones share compiled files, so that a build in another clone may replace
/// the original while the tests run, and a restart would start something else.
fn executable() -> &'static Path {
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    COPY.get_or_init(|| {
        let clone = ranktree::types::fnv1a_32(env!("CARGO_MANIFEST_DIR").as_bytes());
        let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ranktree-{clone:08x}"));
        // Another run of the tests may start the copy just now: it is there as a whole, or not at all.
        let new = copy.with_extension(std::process::id().to_string());
        // By a process of its own: a copy that this process writes cannot be started ("Text file busy") while
        // another thread starts a child, which has the open file until it becomes another program.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_ranktree")).arg(&new).status();
        assert!(copied.expect("there is cp").success(), "the binary can be copied");
        fs::rename(&new, &copy).expect("the copy gets its name");
        copy
    })
}
