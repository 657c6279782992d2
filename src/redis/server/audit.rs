//! The audit log: whose token had entries or a board taken away, or replaced. What it has of HTTP is in
//! `http::request::change`.
//!
//! Knows: which commands others will ask about. Must not know: how they are done.

use crate::redis::commands::{Command, Keyspace, Write};
use crate::redis::frames::Arguments;
use crate::redis::refused::Refused;
use crate::redis::server::session::{Allowed, Session};

/// Arguments in a line of the log.
const ARGUMENTS_PER_LINE: usize = 50;
/// The code of a refusal whose command may be done in part.
const UNKNOWN: &str = "UNKNOWN";

/// A command that is noted when it is known what came of it.
pub struct Audited {
    token: String,
    client: String,
    command: &'static str,
    arguments: Vec<String>,
}

impl Audited {
    /// `None` if nobody will ask about the command, or no tokens are needed.
    pub fn of(
        (session, allowed): (&Session, &Allowed),
        (name, command): (&'static str, &Command<'_>),
        arguments: Arguments<'_>,
    ) -> Option<Self> {
        let grant = allowed.grant().filter(|_| takes_away(command))?;
        // Quoted, so that what would end a line in them is escaped.
        let quoted = |argument: &[u8]| format!("{:?}", String::from_utf8_lossy(argument));
        Some(Self {
            token: grant.name.clone(),
            client: session.client.address().to_owned(),
            command: name,
            arguments: arguments.iter().skip(1).map(quoted).collect(),
        })
    }

    /// Notes what came of it. What was refused before anything was changed is not noted.
    pub fn finish(self, outcome: Result<(), &Refused>) {
        let failed = match outcome {
            Ok(()) => None,
            Err(why) if why.code() == UNKNOWN => Some(why.text()),
            Err(_) => return,
        };
        let Self { token, client, command, arguments } = self;
        for arguments in arguments.chunks(ARGUMENTS_PER_LINE) {
            tracing::info!(
                token,
                client,
                command,
                arguments = arguments.join(" "),
                failed,
                "a command of Redis' protocol that takes entries or a board away was sent"
            );
        }
    }
}

/// Whether others will ask who it was.
fn takes_away(command: &Command<'_>) -> bool {
    match command {
        Command::Write(_, Write::Remove(_)) | Command::Take(_) | Command::Store(_) => true,
        Command::Keyspace(command) => {
            matches!(command, Keyspace::Delete(_) | Keyspace::Expire(_) | Keyspace::Persist(_))
        }
        _ => false,
    }
}
