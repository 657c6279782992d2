//! `ranktree completions`.

use std::process::ExitCode;

use clap_complete::{Shell, generate};

use crate::cli::Failure;

const EXAMPLES: &str = "\
Examples:
  ranktree completions bash > /etc/bash_completion.d/ranktree
  ranktree completions zsh > ~/.zfunc/_ranktree          # a folder in $fpath
  ranktree completions fish > ~/.config/fish/completions/ranktree.fish";

/// Writes a script to standard output that completes commands and flags in a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(args: &Args, command: &mut clap::Command) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    generate(args.shell, command, "ranktree", &mut script);
    std::io::Write::write_all(&mut std::io::stdout().lock(), &script)?;
    Ok(ExitCode::SUCCESS)
}
