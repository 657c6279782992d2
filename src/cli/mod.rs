//! The command line: one file per subcommand.

mod as_owner;
mod board_line;
mod client;
mod completions;
mod config;
mod escaped;
mod export;
mod healthcheck;
mod import;
mod load;
mod man;
mod offline;
mod open_files;
mod openapi;
mod outside_data;
mod progress;
mod rebuild;
mod rejects;
mod restore;
mod secret_permissions;
mod serve;
mod snapshot;
mod spreadsheet;
mod token;
mod verify;
mod window_argument;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::config::{LoadError, ServeArgs, load, misspelt_variables};

/// What holds for every subcommand, and is needed before there are settings.
const ENVIRONMENT: &str = "Logs go to standard error. The environment variable RANKTREE_LOG sets their \
level: error, warn, info (the default), debug or trace. It can set the level of one module too, as in \
RANKTREE_LOG=info,ranktree::queue=debug.";

const SERVE: &str = "\
Examples:
  On this machine only, with a queue of its own:
    ranktree serve --data-dir ./data
  For others, with tokens and TLS:
    ranktree serve --listen 0.0.0.0:8080 --tokens tokens.toml --tls-cert cert.pem --tls-key key.pem
  Fed by NATS JetStream, with three shards:
    ranktree serve --nats nats://127.0.0.1:4222 --shards 3 --data-dir ./data-nats
  Whether all of these can be used, without starting:
    ranktree config check --config /etc/ranktree/ranktree.toml

Once it takes requests, it prints one line that ends with its address. Open the address in a browser to see \
boards and members; GET /docs describes the HTTP API. SIGTERM and Ctrl-C end it in order; another one ends it at once.

Logs go to standard error. The environment variable RANKTREE_LOG sets their level: error, warn, info (the default), debug or \
trace.

Exit status: 0 ended in order, 1 ended at once by a second signal, 2 it could not start or go on, 70 a writer met a bug, \
and the process ended rather than show a wrong rank.";

/// Exact leaderboards of any size: ranks that are never sampled, writes that survive a kill.
#[derive(Debug, Parser)]
#[command(name = "ranktree", version, about, max_term_width = 100, after_help = ENVIRONMENT)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service: takes jobs, answers ranks over HTTP
    #[command(after_long_help = SERVE)]
    Serve(Box<ServeArgs>),
    /// Check a stopped service's data: recompute every tree and compare
    Verify(verify::Args),
    /// Rebuild every tree of a stopped service's data from its members
    Rebuild(rebuild::Args),
    /// List the jobs that were refused: by a running service with --url, by a stopped one with --data-dir
    Rejects(rejects::Args),
    /// Send scores from a file or a Redis to a running service
    Import(Box<import::Args>),
    /// Print the OpenAPI 3.1 document of the HTTP API. The service serves it at /openapi.json, and as a page
    /// at /docs
    Openapi,
    /// Send made-up jobs and reads to a running service, and measure it
    Load(Box<load::Args>),
    /// Write a board's entries, best first, to a file
    Export(export::Args),
    /// Copy the data of a running service into a directory
    Snapshot(snapshot::Args),
    /// Put a snapshot into the data directory of a stopped service
    Restore(restore::Args),
    /// Show, check and explain the settings
    Config(Box<config::Args>),
    /// Ask a running service whether it is ready, for containers and scripts
    Healthcheck(Box<healthcheck::Args>),
    /// Write completions for a shell to standard output
    Completions(completions::Args),
    /// Write pages for man(1) into a folder
    Man(man::Args),
    /// Make bearer tokens for the service's HTTP API
    Token(token::Args),
}

/// What a subcommand fails with; printed with its causes.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs the process's command line.
///
/// # Errors
/// Whatever the subcommand fails with.
pub fn run() -> Result<ExitCode, Failure> {
    let (cli, settings): (Cli, _) = match load() {
        // It prints itself, help to standard output, and ends with the status that it should.
        Err(LoadError::Usage(usage)) => usage.exit(),
        loaded => loaded?,
    };
    secret_permissions::warn(&settings);
    for (name, meant) in misspelt_variables(&Cli::command()) {
        tracing::warn!("the environment variable {name} is not read; did you mean {meant}?");
    }
    match cli.command {
        Command::Serve(args) => serve::run(*args),
        Command::Verify(args) => verify::run(&args),
        Command::Rebuild(args) => rebuild::run(&args),
        Command::Rejects(args) => rejects::run(&args),
        Command::Import(args) => Ok(import::run(&args)?),
        Command::Openapi => openapi::run().map(|()| ExitCode::SUCCESS),
        Command::Load(args) => load::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Snapshot(args) => snapshot::run(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Config(args) => config::run(*args, &settings),
        Command::Healthcheck(args) => healthcheck::run(&args),
        Command::Completions(args) => completions::run(&args, &mut Cli::command()),
        Command::Man(args) => man::run(&args, Cli::command()),
        Command::Token(args) => token::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is broken into lines by hand is broken once more by a narrow terminal, in the middle of them.
    #[test]
    fn paragraphs_of_help_are_not_broken_by_hand() {
        let mut commands = vec![Cli::command()];
        let mut looked_at = 0;
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().cloned());
            for help in [command.get_after_help(), command.get_after_long_help()].into_iter().flatten() {
                let help = help.to_string();
                looked_at += 1;
                let is_text = |line: &str| !line.is_empty() && !line.starts_with(' ');
                for (line, next) in help.lines().zip(help.lines().skip(1)) {
                    assert!(!is_text(line) || !is_text(next), "{}: {line}\n{next}", command.get_name());
                }
            }
        }
        assert!(looked_at >= 5, "{looked_at}");
    }
}
