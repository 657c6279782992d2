//! Arguments → run. Prints the chain of causes of a failure and sets the exit code: 0 done, 1 as the
//! subcommand says, 2 failed.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use ranktree::cli::run;
use tracing_subscriber::EnvFilter;

/// Requests are allocated by the threads of HTTP and freed by the writers, which glibc's allocator, an arena
/// a thread, is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is logged unless `RANKTREE_LOG` says otherwise. What the NATS client says of its connections is said
/// by `queue::nats`, with the cause and less often.
const QUIET: &str = "info,async_nats=off";

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_env("RANKTREE_LOG").unwrap_or_else(|_| EnvFilter::new(QUIET));
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colours)
        .with_writer(std::io::stderr)
        // By default a line that cannot be written is reported on standard error, by a macro that panics if
        // that fails too: a log on a full disk would end the writers.
        .log_internal_errors(false)
        .init();
    match run() {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("ranktree: {failure}");
            let mut cause = failure.source();
            while let Some(error) = cause {
                eprintln!("  because: {error}");
                cause = error.source();
            }
            ExitCode::from(2)
        }
    }
}
