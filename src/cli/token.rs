//! `ranktree token`: bearer tokens, and the lines of the file that lets them in.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::process::ExitCode;

use clap::Subcommand;

use crate::access::{NO_PATTERN, ProfileAccess, Scope, Secret, is_pattern};
use crate::cli::Failure;
use crate::types::BoardName;

const EXAMPLES: &str = "\
Examples:
  A token for a dashboard that may read the boards whose names begin with eu-:
    ranktree token new --scope read --board-prefix eu- --name dashboard
  The same, which also reads the profiles of members with entries there:
    ranktree token new --scope read --board-prefix eu- --profiles read --name website
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
    #[arg(long = "board-prefix", value_name = "PREFIX", value_parser = parse_prefix)]
    board_prefixes: Vec<BoardName>,
    /// The number of boards, among those that the token gives access to, from which on it cannot create
    /// another, neither by a job nor by a definition [default: 1000 with --board-prefix, otherwise the limit
    /// of the service]
    #[arg(long, value_name = "N")]
    max_boards: Option<u32>,
    /// What a token with --board-prefix may do with profiles, which are of members and not of boards: none;
    /// read, those of members with entries on its boards; or write, which includes read, those of all members
    /// [default: none. A token of all boards reads them, and writes them if its scope lets it write]
    #[arg(long, value_name = "none|read|write", requires = "board_prefixes")]
    profiles: Option<ProfileAccess>,
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
            line.write(&mut stdout, &secret)?;
        }
        Command::Hash(line) => {
            if std::io::stdin().is_terminal() {
                return Err("standard input is a terminal; pipe the token in, because a typed token would stay on the screen".into());
            }
            let mut text = String::new();
            std::io::stdin().lock().take(4_096).read_to_string(&mut text)?;
            let secret = Secret::new(text.trim_end_matches(['\r', '\n']))?;
            line.write(&mut stdout, &secret)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Line {
    /// Writes the lines at once: a disk that fills up may still cut them.
    fn write(&self, out: &mut impl std::io::Write, secret: &Secret) -> std::io::Result<()> {
        out.write_all(self.toml(secret).as_bytes())?;
        out.flush()
    }

    /// The hash comes last: lines that are cut anywhere before let nobody in.
    fn toml(&self, secret: &Secret) -> String {
        let mut text = format!("[[token]]\nname = \"{}\"\nscope = \"{}\"\n", self.name, self.scope);
        let mut key = |key: &str, value: String| {
            writeln!(text, "{key} = {value}").expect("writing to a string does not fail");
        };
        if !self.board_prefixes.is_empty() {
            let prefixes = self.board_prefixes.iter().map(|prefix| prefix.as_str().into()).collect();
            key("board_prefixes", toml::Value::Array(prefixes).to_string());
        }
        if let Some(most) = self.max_boards {
            key("max_boards", most.to_string());
        }
        if let Some(profiles) = self.profiles {
            key("profiles", format!("\"{profiles}\""));
        }
        key("sha256", format!("\"{}\"", secret.digest()));
        text
    }
}

fn parse_prefix(text: &str) -> Result<BoardName, String> {
    if is_pattern(text) {
        return Err(NO_PATTERN.to_owned());
    }
    BoardName::new(text).map_err(|why| why.to_string())
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

    fn line(prefixes: &[&str], max_boards: Option<u32>, profiles: Option<ProfileAccess>) -> Line {
        Line {
            scope: Scope::Write,
            name: parse_name("game servers eu").expect("a good name"),
            board_prefixes: prefixes.iter().map(|p| BoardName::new(p).expect("a prefix")).collect(),
            max_boards,
            profiles,
        }
    }

    /// As a disk that fills up, or a copy that breaks off, leaves it.
    #[test]
    fn lines_that_are_cut_anywhere_give_nobody_more() {
        let [first, second] = [(); 2].map(|()| Secret::random().expect("random numbers"));
        let before = line(&[], None, None).toml(&first).replace("game servers eu", "another");
        let lines = line(&["eu-", "demo"], Some(7), Some(ProfileAccess::Read)).toml(&second);
        let whole = Tokens::parse(&(before.clone() + &lines)).expect("good lines");
        let mut let_in = 0;
        for cut in 0..=lines.len() {
            let Ok(tokens) = Tokens::parse(&(before.clone() + &lines[..cut])) else { continue };
            if let Some(grant) = tokens.find(second.reveal()) {
                assert_eq!(Some(grant), whole.find(second.reveal()), "{}", &lines[..cut]);
                let_in += 1;
            }
        }
        // The line feed at the end says nothing.
        assert_eq!(let_in, 2);
    }

    #[test]
    fn lines_are_written_in_one_piece() {
        struct Writes(Vec<usize>);
        impl std::io::Write for Writes {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.push(bytes.len());
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let (secret, mut writes) = (Secret::random().expect("random numbers"), Writes(Vec::new()));
        let line = line(&["eu-"], None, None);
        line.write(&mut writes, &secret).expect("it can be written");
        assert_eq!(writes.0, [line.toml(&secret).len()]);
    }

    #[test]
    fn the_lines_let_their_token_in() {
        let secret = Secret::random().expect("random numbers");
        for (prefixes, max_boards, profiles) in
            [(&["eu-", "demo", "a\"b'{c},[*]x"][..], Some(7), Some(ProfileAccess::Read)), (&[], None, None)]
        {
            let line = line(prefixes, max_boards, profiles);
            let tokens = Tokens::parse(&line.toml(&secret)).expect("good lines");
            let grant = tokens.find(secret.reveal()).expect("it is in");
            assert_eq!((grant.name.as_str(), grant.scope), ("game servers eu", Scope::Write));
            assert_eq!(grant.board_prefixes.as_deref().unwrap_or_default(), prefixes);
            assert_eq!(grant.allows_every_board(), prefixes.is_empty());
            assert_eq!(grant.max_boards, max_boards);
            assert_eq!(grant.profiles, profiles.unwrap_or(ProfileAccess::Write));
        }
        assert!(parse_name("rkt_1").is_err(), "logs show names");
        for bad in ["", " a", "a\"b", "a\\b", "a\nb"] {
            assert!(parse_name(bad).is_err(), "{bad}");
        }
    }
}
