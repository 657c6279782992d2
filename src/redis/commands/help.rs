//! What `HELP` of a command says of its subcommands.

/// A subcommand with its arguments, and what it does.
type Line = (&'static str, &'static str);

/// Of commands that have subcommands, by name.
const HELP: &[(&str, &[Line])] = &[
    (
        "client",
        &[
            ("ID", "Return the ID of the current connection."),
            ("GETNAME", "Return the name of the current connection."),
            ("SETNAME <name>", "Assign the name <name> to the current connection."),
            ("SETINFO <option> <value>", "Accept what a client library says of itself: LIB-NAME or LIB-VER."),
            ("INFO", "Return information about the current connection."),
            (
                "LIST [TYPE (NORMAL|MASTER|REPLICA|PUBSUB)] [ID <id> [<id> ...]]",
                "Return information about connections; without the scope admin, about the current one.",
            ),
            ("NO-EVICT (ON|OFF)", "Accepted: no connection is evicted."),
            ("NO-TOUCH (ON|OFF)", "Accepted: nothing notes when a board was read."),
        ],
    ),
    (
        "command",
        &[
            ("(no subcommand)", "Return details about all commands."),
            ("COUNT", "Return the total number of commands."),
            ("INFO [<command-name> ...]", "Return details about commands; about all without names."),
            ("DOCS [<command-name> ...]", "Return what commands do; of all without names."),
            ("GETKEYS <full-command>", "Return the keys from a full command."),
        ],
    ),
    (
        "config",
        &[("GET <pattern> [<pattern> ...]", "Return parameters matching the patterns, and their values.")],
    ),
    (
        "memory",
        &[("USAGE <key> [SAMPLES <count>]", "Return the bytes that the board <key> takes in memory, about.")],
    ),
    (
        "object",
        &[(
            "ENCODING <key>",
            "Return how the entries of the board <key> are kept: skiplist, as Redis calls it.",
        )],
    ),
];

/// The lines for a command: a head, and two for each subcommand.
pub fn help_lines(command: &str) -> Vec<String> {
    let known = HELP.iter().find(|(name, _)| *name == command).map(|(_, lines)| *lines).unwrap_or_default();
    let name = command.to_ascii_uppercase();
    let mut lines = vec![format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")];
    for (usage, text) in known.iter().chain(&[("HELP", "Print this help.")]) {
        lines.push((*usage).to_owned());
        lines.push(format!("    {text}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::commands::command::{Command, Connection};
    use crate::redis::commands::table::tests::{parsed, refused};

    #[test]
    fn whoever_is_told_to_try_help_gets_it() {
        for (name, lines) in HELP {
            let told = refused(&format!("{name} nonsense"));
            let advice = format!("Try {} HELP.", name.to_ascii_uppercase());
            assert!(told.ends_with(&advice), "{told}");
            parsed(&format!("{name} help"), |command| {
                assert_eq!(*command, Command::Connection(Connection::Help(name)));
            });
            assert_eq!(
                refused(&format!("{name} help x")),
                format!("ERR wrong number of arguments for '{name}|help' command")
            );
            let said = help_lines(name);
            assert_eq!(said.len(), 1 + 2 * (lines.len() + 1));
            assert_eq!(said.last().map(String::as_str), Some("    Print this help."));
        }
    }
}
