//! `ranktree man`: the help of every command as pages for man(1), which packages bring.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Command;
use clap_mangen::Man;

use crate::cli::Failure;
use crate::cli::as_owner::{become_owner_of, create_file};

const EXAMPLES: &str = "\
Examples:
  ranktree man /usr/local/share/man/man1     # as root; then: man ranktree-serve";

/// Writes a page for each command into a folder that exists: ranktree.1, ranktree-serve.1 and so on.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub fn run(args: &Args, command: Command) -> Result<ExitCode, Failure> {
    // `ranktree help serve` says what the page of `serve` does.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    // Once for the folder, and once more for what has the name of a page.
    let written = become_owner_of(&args.folder).and_then(|folder| write_pages(command, &folder));
    written.map_err(|error| format!("{}: the pages cannot be written: {error}", args.folder.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages of a command and of all within it.
fn write_pages(command: Command, folder: &Path) -> Result<(), Failure> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        write_pages(inner.clone(), folder)?;
    }
    // Without a date, so that two builds of one source write the same.
    let page = Man::new(command).source(concat!("ranktree ", env!("CARGO_PKG_VERSION"))).manual("ranktree");
    let mut text = Vec::new();
    page.render(&mut text)?;
    Ok(create_file(&folder.join(page.get_filename()))?.write_all(&text)?)
}
