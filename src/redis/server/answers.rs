//! Commands about the connection and the service.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::access::Scope;
use crate::operations::InProgress;
use crate::redis::boards::{Asking, LOOKUP, Pace, Pattern, Peer, board_count};
use crate::redis::commands::{
    Authentication, COMMANDS, ClientCommand, CommandQuery, Connection, Listing, Needs, Spec, find, help_lines,
};
use crate::redis::frames::{Protocol, Replies};
use crate::redis::refused::Refused;
use crate::redis::server::clients::Client;
use crate::redis::server::flow::Flow;
use crate::redis::server::info::{REDIS_VERSION, info};
use crate::redis::server::service::Service;
use crate::redis::server::session::{Allowed, Session};

/// Answers a command about the connection or the service.
///
/// # Errors
/// When it is refused. What was written to the replies is to be forgotten then.
pub async fn answer(
    service: &Service,
    session: &mut Session,
    allowed: &Allowed,
    (peer, unsent): (&dyn Peer, &InProgress),
    command: &Connection<'_>,
    replies: &mut Replies,
) -> Result<Flow, Refused> {
    match command {
        Connection::Ping(None) => replies.word("PONG"),
        Connection::Ping(Some(message)) | Connection::Echo(message) => replies.bulk(message),
        Connection::Quit => {
            replies.ok();
            return Ok(Flow::Close);
        }
        Connection::Reset => {
            session.reset();
            replies.protocol = session.protocol;
            replies.word("RESET");
        }
        Connection::Select(0) | Connection::Unwatch => replies.ok(),
        Connection::Select(_) => return Err(Refused::new("ERR DB index is out of range")),
        Connection::Hello { protocol, authentication, name } => {
            hello(service, session, (*protocol, authentication.as_ref(), *name), replies)?;
        }
        Connection::Auth(with) => {
            session.authenticate(service, with)?;
            replies.ok();
        }
        Connection::Client(command) => client(service, session, allowed, command, replies),
        Connection::Command(query) => {
            commands(&session.asking(service, allowed, peer, unsent), query, replies).await?;
        }
        Connection::Info(sections) => {
            let keys = board_count(&session.asking(service, allowed, peer, unsent)).await?;
            replies.verbatim(&info(service, sections, sees_all(allowed), keys));
        }
        Connection::ConfigGet(patterns) => {
            config(service, &session.asking(service, allowed, peer, unsent), patterns, replies).await?;
        }
        Connection::Help(command) => {
            let lines = help_lines(command);
            replies.array(lines.len());
            for line in &lines {
                replies.word(line);
            }
        }
        Connection::Time => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            replies.array(2);
            replies.text(&now.as_secs().to_string());
            replies.text(&now.subsec_micros().to_string());
        }
        // A write is replied to when it is committed and synced, or applied from the stream that keeps it.
        Connection::Wait(replicas) => replies.integer(*replicas),
    }
    Ok(Flow::Continue)
}

fn hello(
    service: &Service,
    session: &mut Session,
    (protocol, authentication, name): (Option<Protocol>, Option<&Authentication<'_>>, Option<&[u8]>),
    replies: &mut Replies,
) -> Result<(), Refused> {
    if let Some(with) = authentication {
        session.authenticate(service, with)?;
    }
    if session.allowed(service) == Allowed::Nothing {
        return Err(Refused::new(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
             <user> <pass> option can be used to authenticate the client and select the RESP protocol version at \
             the same time",
        ));
    }
    if let Some(name) = name {
        session.client.set_name(name);
    }
    session.protocol = protocol.unwrap_or(session.protocol);
    replies.protocol = session.protocol;
    replies.map(7);
    replies.text("server");
    replies.text("redis");
    replies.text("version");
    replies.text(REDIS_VERSION);
    replies.text("proto");
    replies.integer(i64::from(session.protocol.number()));
    replies.text("id");
    replies.count(session.client.id);
    replies.text("mode");
    replies.text("standalone");
    replies.text("role");
    replies.text("master");
    replies.text("modules");
    replies.array(0);
    Ok(())
}

fn client(
    service: &Service,
    session: &Session,
    allowed: &Allowed,
    command: &ClientCommand<'_>,
    replies: &mut Replies,
) {
    match command {
        ClientCommand::Id => replies.count(session.client.id),
        ClientCommand::GetName => match session.client.name() {
            name if name.is_empty() => replies.null(),
            name => replies.text(&name),
        },
        ClientCommand::SetName(name) => {
            session.client.set_name(name);
            replies.ok();
        }
        ClientCommand::Accepted => replies.ok(),
        ClientCommand::Info => replies.verbatim(&session.client.line()),
        ClientCommand::List(listing) => {
            // Names and addresses of others are for those who manage the service.
            let manages = allowed.grant().is_none_or(|grant| grant.allows(Scope::Admin));
            let sees_all = manages && sees_all(allowed);
            let shown = |client: &Client| match listing {
                Listing::All => true,
                Listing::None => false,
                Listing::Of(ids) => ids.contains(&client.id),
            };
            let lines = if sees_all {
                service.clients.lines(shown)
            } else {
                Some(&session.client).filter(|own| shown(own)).map(|own| own.line()).unwrap_or_default()
            };
            replies.verbatim(&lines);
        }
    }
}

/// Whether the client may know what is of all boards, and of all clients.
fn sees_all(allowed: &Allowed) -> bool {
    allowed.grant().is_none_or(|grant| grant.allows_every_board())
}

async fn commands(
    asking: &Asking<'_>,
    query: &CommandQuery<'_>,
    replies: &mut Replies,
) -> Result<(), Refused> {
    let mut pace = Pace::begin();
    match query {
        CommandQuery::All => {
            replies.array(COMMANDS.len());
            for spec in COMMANDS {
                describe(spec, replies);
            }
        }
        CommandQuery::Count => replies.count(crate::types::count(COMMANDS.len())),
        CommandQuery::Info(names) => {
            replies.array(names.len());
            for name in names {
                match find(name) {
                    Some(spec) => describe(spec, replies),
                    None => replies.null(),
                }
                asking.count(replies)?;
                pace.note(asking, LOOKUP).await?;
            }
        }
        CommandQuery::Docs(names) => {
            let all = COMMANDS.iter().collect();
            let told: Vec<&Spec> =
                if names.is_empty() { all } else { names.iter().filter_map(|name| find(name)).collect() };
            replies.map(told.len());
            for spec in told {
                replies.text(spec.name);
                replies.map(3);
                for (field, value) in
                    [("summary", spec.summary), ("since", spec.since), ("group", spec.group.name())]
                {
                    replies.text(field);
                    replies.text(value);
                }
                asking.count(replies)?;
                pace.note(asking, LOOKUP).await?;
            }
        }
        CommandQuery::GetKeys(words) => {
            let spec = words.first().and_then(|name| find(name));
            let spec = spec.ok_or_else(|| Refused::new("ERR Invalid command specified"))?;
            if spec.check_arity(words.len()).is_err() {
                return Err(Refused::new("ERR Invalid number of arguments specified for command"));
            }
            let keys: Vec<&[u8]> = spec.keys.among(words).copied().collect();
            if keys.is_empty() {
                let why = if spec.keys.are_counted() {
                    "ERR Invalid arguments specified for command"
                } else {
                    "ERR The command has no key arguments"
                };
                return Err(Refused::new(why));
            }
            replies.array(keys.len());
            for key in keys {
                replies.bulk(key);
            }
        }
    }
    Ok(())
}

/// As `COMMAND` describes a command.
fn describe(spec: &Spec, replies: &mut Replies) {
    replies.array(10);
    replies.text(spec.name);
    replies.integer(spec.arity);
    let flags = spec.flags();
    replies.set(flags.len());
    for flag in flags {
        replies.word(flag);
    }
    replies.integer(spec.keys.first);
    replies.integer(spec.keys.last);
    replies.integer(spec.keys.step);
    let scope = match spec.needs {
        Needs::Nothing => "@connection",
        Needs::Token(Scope::Read) => "@read",
        Needs::Token(_) => "@write",
    };
    replies.set(1);
    replies.word(scope);
    for _ in ["tips", "key specifications", "subcommands"] {
        replies.array(0);
    }
}

/// The parameters that clients ask for.
async fn config(
    service: &Service,
    asking: &Asking<'_>,
    patterns: &[&[u8]],
    replies: &mut Replies,
) -> Result<(), Refused> {
    let connections = service.connections_max.to_string();
    let known = [
        ("appendfsync", "always"),
        ("appendonly", "yes"),
        ("databases", "1"),
        ("maxclients", connections.as_str()),
        ("maxmemory", "0"),
        ("maxmemory-policy", "noeviction"),
        ("save", ""),
        ("timeout", "0"),
    ];
    let (mut told, mut pace) = (BTreeSet::new(), Pace::begin());
    for pattern in patterns {
        let pattern = Pattern::new(&pattern.to_ascii_lowercase())?;
        told.extend(known.iter().filter(|(name, _)| pattern.matches(name.as_bytes())));
        pace.note(asking, LOOKUP).await?;
    }
    replies.map(told.len());
    for (name, value) in told {
        replies.text(name);
        replies.text(value);
    }
    Ok(())
}
