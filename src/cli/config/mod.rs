//! `ranktree config`: what is set, from where, and whether it can be used.
//!
//! Knows the list of settings as the configuration gives it. Must not know any one of them.

mod check;
mod example;
mod print;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Subcommand;

use crate::cli::Failure;
use crate::cli::config::check::Found;
use crate::config::{ServeArgs, ServeConfig, Settings};

/// Shows, checks and explains the settings of the service: flags beat the environment, which beats the file.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print every setting with its value and the source of the value; secrets are masked
    Print(PrintArgs),
    /// Check every value, and that the files and directories that they name can be used: tokens,
    /// certificates, data
    Check(CheckArgs),
    /// Print a commented configuration file with every setting and its default
    Example,
}

/// Prints every setting with its value and the source of the value: a flag, the environment, the file, or the
/// default. The output is a configuration file. Secrets are masked and commented out. A setting that only the
/// environment can hold is listed by its variable. Takes the flags of `serve`.
#[derive(Debug, clap::Args)]
struct PrintArgs {
    /// Print JSON: an array of {key, value, secret, origin, from, default}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    serve: ServeArgs,
}

/// Checks the settings that `serve` would run with: that every value is valid, that the files and directories
/// that they name can be used, that tokens, certificates and keys are valid, and that the data directory has
/// this number of shards and was filled with NATS or without, as it would be now. Says where `--own` is
/// another than at the last start. Changes nothing. Takes the flags of `serve`.
///
/// Exit code 0: no errors found; 1: a file or directory cannot be used, and is listed; 2: a value is not
/// valid.
#[derive(Debug, clap::Args)]
struct CheckArgs {
    #[command(flatten)]
    serve: ServeArgs,
}

pub fn run(args: Args, settings: &Settings) -> Result<ExitCode, Failure> {
    let mut stdout = std::io::stdout().lock();
    match args.command {
        Command::Print(args) => {
            // Settings that `serve` would refuse are printed too, because the operator needs to see them.
            let text = if args.json { print::json(settings) } else { print::toml(settings) };
            stdout.write_all(text.as_bytes())?;
            if let Err(error) = ServeConfig::resolve(args.serve) {
                eprintln!("ranktree serve would refuse these settings: {error}");
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Check(args) => {
            let config = ServeConfig::resolve(args.serve)?;
            let Found { problems, changes } = check::look(settings, &config);
            for problem in &problems {
                writeln!(stdout, "{problem}")?;
            }
            for change in &changes {
                writeln!(stdout, "to be noted: {change}")?;
            }
            if problems.is_empty() {
                writeln!(stdout, "no errors found")?;
                return Ok(ExitCode::SUCCESS);
            }
            Ok(ExitCode::from(1))
        }
        Command::Example => {
            stdout.write_all(example::text()?.as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
