//! Arguments → run. Prints the chain of causes of a failure and sets the exit code: 0 done, 1 as the
//! subcommand says, 2 failed.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use ranktree::allocator::keep_huge_pages;
use ranktree::cli::run;
use ranktree::config::log_levels;
use ranktree::storage::with_real_paths;
use tracing_subscriber::EnvFilter;

/// Requests are allocated by the threads of HTTP and freed by the writers, which glibc's allocator, an arena
/// a thread, is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    keep_huge_pages();
    let filter = match log_levels()
        .and_then(|levels| EnvFilter::try_new(levels).map_err(|why| format!("RANKTREE_LOG: {why}")))
    {
        Ok(filter) => filter,
        Err(why) => {
            eprintln!("ranktree: {why}");
            return ExitCode::from(2);
        }
    };
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
            let mut told = with_real_paths(&failure);
            eprintln!("ranktree: {told}");
            let mut cause = failure.source();
            while let Some(error) = cause {
                let words = with_real_paths(error);
                // Some errors have their cause's words in their own.
                if !told.contains(&words) {
                    eprintln!("  because: {words}");
                }
                told = words;
                cause = error.source();
            }
            ExitCode::from(2)
        }
    }
}
