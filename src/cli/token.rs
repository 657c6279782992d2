//! `ranktree token`: bearer tokens, and the lines of the file that lets them in.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::process::ExitCode;

use clap::Subcommand;

use crate::access::{Scope, Secret};
use crate::cli::Failure;
use crate::types::BoardName;

const EXAMPLES: &str = "\
Examples:
  A token for a dashboard that may read the boards whose names begin with eu-:
    ranktree token new --scope read --board-prefix eu- --name dashboard
  The line for a token that another program made, from its file:
    ranktree token hash --scope write --name game < /run/secrets/game-token

Give the token to its user, and add the lines to the file of ranktree serve --tokens FILE, which is read again within two \
seconds of a change. To replace a token, add the new one, give it to its users, and then remove the old one.";

/// Make tokens for the service's HTTP API
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a token; prints it once, and the lines for the tokens file
    #[command(after_long_help = EXAMPLES)]
    New(Line),
    /// Read a token from standard input; prints the lines for the tokens file
    #[command(after_long_help = EXAMPLES)]
    Hash(Line),
}

#[derive(Debug, clap::Args)]
struct Line {
    /// What the token allows: read; write, which includes read; or admin, which includes both, and allows to
    /// define, clear, trim and drop boards, to open seasons, and to take snapshots
    #[arg(long, value_name = "read|write|admin")]
    scope: Scope,
    /// Who uses the token; logs show this name
    #[arg(long, value_parser = parse_name)]
    name: String,
    /// Confines the token to boards whose names begin with this prefix; may be given several times
    #[arg(long = "board-prefix", value_name = "PREFIX", value_parser = BoardName::new)]
    board_prefixes: Vec<BoardName>,
    /// The number of boards, among those that the token gives access to, from which on it cannot create
    /// another, neither by a job nor by a definition [default: 1000 with --board-prefix, otherwise the limit
    /// of the service]
    #[arg(long, value_name = "N")]
    max_boards: Option<u32>,
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut stdout = std::io::stdout().lock();
    match &args.command {
        Command::New(line) => {
            let secret = Secret::random()?;
            // The file can be made by sending the output there: what is not for it goes to standard error.
            let mut stderr = std::io::stderr().lock();
            writeln!(
                stderr,
                "The token, which is shown only now and is not stored anywhere:\n\n{}\n",
                secret.reveal()
            )?;
            writeln!(stderr, "For the file of ranktree serve --tokens FILE:\n")?;
            writeln!(stdout, "{}", line.toml(&secret))?;
        }
        Command::Hash(line) => {
            if std::io::stdin().is_terminal() {
                return Err("standard input is a terminal; pipe the token in, because a typed token would stay on the screen".into());
            }
            let mut text = String::new();
            std::io::stdin().lock().take(4_096).read_to_string(&mut text)?;
            let secret = Secret::new(text.trim_end_matches(['\r', '\n']))?;
            writeln!(stdout, "{}", line.toml(&secret))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Line {
    fn toml(&self, secret: &Secret) -> String {
        let mut text = format!(
            "[[token]]\nname = \"{}\"\nscope = \"{}\"\nsha256 = \"{}\"",
            self.name,
            self.scope,
            secret.digest()
        );
        if !self.board_prefixes.is_empty() {
            let quoted: Vec<_> = self.board_prefixes.iter().map(|prefix| format!("\"{prefix}\"")).collect();
            text.push_str("\nboard_prefixes = [");
            text.push_str(&quoted.join(", "));
            text.push(']');
        }
        if let Some(most) = self.max_boards {
            write!(text, "\nmax_boards = {most}").expect("writing to a string does not fail");
        }
        text
    }
}

/// A name that needs no escapes.
fn parse_name(text: &str) -> Result<String, &'static str> {
    let is_good = |c: char| c.is_alphanumeric() || " _.:@/-".contains(c);
    if text.starts_with(Secret::PREFIX) {
        return Err("the name looks like a token; give the name of who uses it");
    }
    if (1..=64).contains(&text.chars().count()) && text.chars().all(is_good) && text.trim() == text {
        Ok(text.to_owned())
    } else {
        Err("a name must be 1 to 64 letters, digits, spaces, or characters of _.:@/-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Tokens;

    #[test]
    fn the_lines_let_their_token_in() {
        let secret = Secret::random().expect("random numbers");
        for (prefixes, max_boards) in [(&["eu-", "demo"][..], Some(7)), (&[], None)] {
            let line = Line {
                scope: Scope::Write,
                name: parse_name("game servers, eu".replace(',', "").as_str()).expect("a good name"),
                board_prefixes: prefixes.iter().map(|p| BoardName::new(p).expect("a prefix")).collect(),
                max_boards,
            };
            let tokens = Tokens::parse(&line.toml(&secret)).expect("good lines");
            let grant = tokens.find(secret.reveal()).expect("it is in");
            assert_eq!((grant.name.as_str(), grant.scope), ("game servers eu", Scope::Write));
            assert_eq!(grant.board_prefixes.as_deref().unwrap_or_default(), prefixes);
            assert_eq!(grant.allows_every_board(), prefixes.is_empty());
            assert_eq!(grant.max_boards, max_boards);
        }
        assert!(parse_name("rkt_1").is_err(), "logs show names");
        for bad in ["", " a", "a\"b", "a\\b", "a\nb"] {
            assert!(parse_name(bad).is_err(), "{bad}");
        }
    }
}
