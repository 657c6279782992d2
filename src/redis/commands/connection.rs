//! Commands about the connection and the service.

#![allow(clippy::unnecessary_wraps, reason = "the table has one signature for all")]

use crate::redis::commands::command::{
    Authentication, ClientCommand, Command, CommandQuery, Connection, Listing,
};
use crate::redis::commands::words::{Words, is};
use crate::redis::frames::{Arguments, Protocol};
use crate::redis::number;
use crate::redis::refused::Refused;

type Parsed<'b> = Result<Command<'b>, Refused>;

fn about(connection: Connection<'_>) -> Parsed<'_> {
    Ok(Command::Connection(connection))
}

/// `PING [message]`
pub fn ping(arguments: Arguments<'_>) -> Parsed<'_> {
    if arguments.len() > 2 {
        return Err(Refused::arity("ping"));
    }
    about(Connection::Ping(arguments.get(1)))
}

/// `ECHO message`
pub fn echo(arguments: Arguments<'_>) -> Parsed<'_> {
    about(Connection::Echo(Words::after(arguments, 1).take()?))
}

/// `QUIT`
pub fn quit(_: Arguments<'_>) -> Parsed<'_> {
    about(Connection::Quit)
}

/// `RESET`
pub fn reset(_: Arguments<'_>) -> Parsed<'_> {
    about(Connection::Reset)
}

/// `SELECT index`
pub fn select(arguments: Arguments<'_>) -> Parsed<'_> {
    about(Connection::Select(Words::after(arguments, 1).integer()?))
}

/// `AUTH [username] password`
pub fn auth(arguments: Arguments<'_>) -> Parsed<'_> {
    let mut words = Words::after(arguments, 1).rest();
    if words.len() > 2 {
        return Err(Refused::syntax());
    }
    let token = words.pop().ok_or_else(Refused::syntax)?;
    about(Connection::Auth(Authentication { has_user: !words.is_empty(), token }))
}

/// `HELLO [protover [AUTH username password] [SETNAME clientname]]`
pub fn hello(arguments: Arguments<'_>) -> Parsed<'_> {
    let mut words = Words::after(arguments, 1);
    let (mut protocol, mut authentication, mut name) = (None, None, None);
    if words.left() > 0 {
        let version = number::integer::<i64>(words.take()?)
            .ok_or_else(|| Refused::new("ERR Protocol version is not an integer or out of range"))?;
        protocol = Some(match version {
            2 => Protocol::Resp2,
            3 => Protocol::Resp3,
            _ => return Err(Refused::new("NOPROTO unsupported protocol version")),
        });
    }
    while words.left() > 0 {
        if words.take_if("AUTH", 2) {
            words.take()?;
            authentication = Some(Authentication { has_user: true, token: words.take()? });
        } else if words.take_if("SETNAME", 1) {
            name = Some(checked_name(words.take()?)?);
        } else {
            return Err(Refused::option("HELLO", words.take()?));
        }
    }
    about(Connection::Hello { protocol, authentication, name })
}

/// `CLIENT ID|GETNAME|SETNAME|SETINFO|INFO|LIST|NO-EVICT|NO-TOUCH|HELP`
pub fn client(arguments: Arguments<'_>) -> Parsed<'_> {
    let mut words = Words::after(arguments, 1);
    if let Some(help) = words.help("client")? {
        return Ok(help);
    }
    let (name, more) = (words.take()?, words.left());
    let (subcommand, most) = [
        ("id", 0),
        ("getname", 0),
        ("setname", 1),
        ("setinfo", 2),
        ("info", 0),
        ("list", usize::MAX),
        ("no-evict", 1),
        ("no-touch", 1),
    ]
    .into_iter()
    .find(|(known, _)| is(name, known))
    .ok_or_else(|| Refused::unknown_subcommand("client", name))?;
    if more != most && most != usize::MAX {
        return Err(Refused::arity(&format!("client|{subcommand}")));
    }
    about(Connection::Client(match subcommand {
        "id" => ClientCommand::Id,
        "getname" => ClientCommand::GetName,
        "setname" => ClientCommand::SetName(checked_name(words.take()?)?),
        "info" => ClientCommand::Info,
        "setinfo" => {
            let (attribute, value) = (words.take()?, words.take()?);
            if !is(attribute, "lib-name") && !is(attribute, "lib-ver") {
                return Err(Refused::named("ERR Unrecognized option", attribute));
            }
            if !value.iter().all(u8::is_ascii_graphic) {
                return Err(Refused::new(format!(
                    "ERR {} cannot contain spaces, newlines or special characters.",
                    String::from_utf8_lossy(attribute)
                )));
            }
            ClientCommand::Accepted
        }
        "list" => ClientCommand::List(listing(&mut words)?),
        "no-evict" | "no-touch" => {
            let word = words.take()?;
            if !is(word, "on") && !is(word, "off") {
                return Err(Refused::syntax());
            }
            ClientCommand::Accepted
        }
        _ => ClientCommand::Accepted,
    }))
}

/// Which connections are asked for: all there are are normal ones.
fn listing(words: &mut Words<'_>) -> Result<Listing, Refused> {
    if words.left() == 0 {
        return Ok(Listing::All);
    }
    if words.left() == 2 && words.take_if("TYPE", 1) {
        let kind = words.take()?;
        if is(kind, "normal") {
            return Ok(Listing::All);
        }
        let is_known = ["master", "slave", "replica", "pubsub"].iter().any(|known| is(kind, known));
        return if is_known {
            Ok(Listing::None)
        } else {
            Err(Refused::named("ERR Unknown client type", kind))
        };
    }
    if words.take_if("ID", 1) {
        let id = |text: &[u8]| number::integer(text).ok_or_else(|| Refused::new("ERR Invalid client ID"));
        return Ok(Listing::Of(words.rest().into_iter().map(id).collect::<Result<_, _>>()?));
    }
    Err(Refused::syntax())
}

/// The longest name of a client, in bytes: it is kept for as long as its connection is open.
const NAME_BYTES_MAX: usize = 256;

fn checked_name(name: &[u8]) -> Result<&[u8], Refused> {
    if name.len() > NAME_BYTES_MAX {
        return Err(Refused::new(format!("ERR a client's name may have {NAME_BYTES_MAX} bytes")));
    }
    if name.iter().all(u8::is_ascii_graphic) {
        return Ok(name);
    }
    Err(Refused::new("ERR Client names cannot contain spaces, newlines or special characters."))
}

/// `COMMAND [COUNT|INFO|DOCS|GETKEYS|HELP]`
pub fn command(arguments: Arguments<'_>) -> Parsed<'_> {
    let mut words = Words::after(arguments, 1);
    if words.left() == 0 {
        return about(Connection::Command(CommandQuery::All));
    }
    if let Some(help) = words.help("command")? {
        return Ok(help);
    }
    let name = words.take()?;
    let rest = words.rest();
    about(Connection::Command(if is(name, "count") && rest.is_empty() {
        CommandQuery::Count
    } else if is(name, "info") {
        if rest.is_empty() { CommandQuery::All } else { CommandQuery::Info(rest) }
    } else if is(name, "docs") {
        CommandQuery::Docs(rest)
    } else if is(name, "getkeys") && !rest.is_empty() {
        CommandQuery::GetKeys(rest)
    } else if is(name, "count") || is(name, "getkeys") {
        return Err(Refused::arity(&format!("command|{}", String::from_utf8_lossy(name).to_lowercase())));
    } else {
        return Err(Refused::unknown_subcommand("command", name));
    }))
}

/// More sections than there are: each is looked for.
const SECTIONS_MAX: usize = 100;

/// `INFO [section ...]`
pub fn info(arguments: Arguments<'_>) -> Parsed<'_> {
    let sections = Words::after(arguments, 1).rest();
    if sections.len() > SECTIONS_MAX {
        return Err(Refused::syntax());
    }
    about(Connection::Info(sections))
}

/// `CONFIG GET parameter [parameter ...]`, `CONFIG HELP`
pub fn config(arguments: Arguments<'_>) -> Parsed<'_> {
    let mut words = Words::after(arguments, 1);
    if let Some(help) = words.help("config")? {
        return Ok(help);
    }
    let name = words.take()?;
    if !is(name, "get") {
        return Err(Refused::unknown_subcommand("config", name));
    }
    if words.left() == 0 {
        return Err(Refused::arity("config|get"));
    }
    about(Connection::ConfigGet(words.rest()))
}

/// `UNWATCH`
pub fn unwatch(_: Arguments<'_>) -> Parsed<'_> {
    about(Connection::Unwatch)
}

/// `TIME`
pub fn time(_: Arguments<'_>) -> Parsed<'_> {
    about(Connection::Time)
}

/// `WAIT numreplicas timeout`
pub fn wait(arguments: Arguments<'_>) -> Parsed<'_> {
    let mut words = Words::after(arguments, 1);
    let replicas = words.integer()?;
    let timeout = number::integer::<i64>(words.take()?)
        .ok_or_else(|| Refused::new("ERR timeout is not an integer or out of range"))?;
    if timeout < 0 {
        return Err(Refused::new("ERR timeout is negative"));
    }
    about(Connection::Wait(replicas.max(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::commands::table::tests::{parsed, refused};

    #[test]
    fn a_hello_chooses_a_version_and_brings_a_token_and_a_name() {
        let hello = |request| {
            parsed(request, |command| match command {
                Command::Connection(Connection::Hello { protocol, authentication, name }) => {
                    let token = authentication.map(|with| String::from_utf8_lossy(with.token).into_owned());
                    (protocol.map(Protocol::number), token, name.map(<[u8]>::len))
                }
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(hello("HELLO"), (None, None, None));
        assert_eq!(hello("HELLO 3"), (Some(3), None, None));
        assert_eq!(
            hello("hello 2 setname abc auth default s3cret"),
            (Some(2), Some("s3cret".to_owned()), Some(3))
        );
        for (request, expect) in [
            ("HELLO 4", "NOPROTO unsupported protocol version"),
            ("HELLO x", "ERR Protocol version is not an integer or out of range"),
            ("HELLO 3 AUTH x", "ERR Syntax error in HELLO option 'AUTH'"),
            ("HELLO 3 FOO", "ERR Syntax error in HELLO option 'FOO'"),
        ] {
            assert_eq!(refused(request), expect);
        }
    }

    #[test]
    fn subcommands_are_found_and_judged_like_commands() {
        for (request, expect) in [
            ("CLIENT", "ERR wrong number of arguments for 'client' command"),
            ("CLIENT KILL x", "ERR unknown subcommand 'KILL'. Try CLIENT HELP."),
            ("CLIENT SETNAME", "ERR wrong number of arguments for 'client|setname' command"),
            ("CLIENT NO-EVICT maybe", "ERR syntax error"),
            ("CLIENT LIST ID", "ERR syntax error"),
            ("CLIENT LIST ID 7 x", "ERR Invalid client ID"),
            ("CLIENT LIST TYPE normal x", "ERR syntax error"),
            ("CLIENT LIST TYPE x", "ERR Unknown client type 'x'"),
            ("CLIENT SETINFO FOO 1", "ERR Unrecognized option 'FOO'"),
            (
                "CLIENT SETINFO LIB-NAME 'a b'",
                "ERR LIB-NAME cannot contain spaces, newlines or special characters.",
            ),
            ("COMMAND X", "ERR unknown subcommand 'X'. Try COMMAND HELP."),
            ("CONFIG SET a b", "ERR unknown subcommand 'SET'. Try CONFIG HELP."),
            ("CONFIG GET", "ERR wrong number of arguments for 'config|get' command"),
            ("PING a b", "ERR wrong number of arguments for 'ping' command"),
            ("AUTH a b c", "ERR syntax error"),
            ("SELECT x", "ERR value is not an integer or out of range"),
            ("WAIT 1 -1", "ERR timeout is negative"),
        ] {
            assert_eq!(refused(request), expect, "{request}");
        }
    }

    #[test]
    fn connections_are_listed_by_type_or_number() {
        for (request, expect) in [
            ("CLIENT LIST", Listing::All),
            ("CLIENT LIST TYPE Normal", Listing::All),
            ("CLIENT LIST TYPE pubsub", Listing::None),
            ("client list type replica", Listing::None),
            ("CLIENT LIST ID 7 9", Listing::Of(vec![7, 9])),
        ] {
            parsed(request, |command| {
                let expect = Command::Connection(Connection::Client(ClientCommand::List(expect)));
                assert_eq!(*command, expect, "{request}");
            });
        }
        parsed("CLIENT SETINFO lib-ver 1.0", |command| {
            assert_eq!(*command, Command::Connection(Connection::Client(ClientCommand::Accepted)));
        });
    }

    #[test]
    fn a_name_is_short() {
        let name = "n".repeat(NAME_BYTES_MAX);
        parsed(&format!("CLIENT SETNAME {name}"), |_| ());
        for request in [format!("CLIENT SETNAME {name}n"), format!("HELLO 3 SETNAME {name}n")] {
            assert_eq!(refused(&request), "ERR a client's name may have 256 bytes");
        }
    }

    #[test]
    fn a_token_is_not_printed() {
        let said = parsed("AUTH anybody s3cret", |command| format!("{command:?}"));
        assert!(said.contains("Authentication(..)") && !said.contains("s3cret"), "{said}");
    }
}
