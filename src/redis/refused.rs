//! Why a command is refused, in Redis' own words where it has any: client libraries look at them.
//!
//! The first word is a code. What is said behind it tells what is known of a write: nothing was written, or
//! that it is unknown whether it was.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::access::Scope;
use crate::operations::{BoardRefused, DefineRefused, Failure, NotPublished};
use crate::query::{NoBoard, ReadError};
use crate::redis::frames::ProtocolError;

/// An error reply, without its first byte and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused(Cow<'static, str>);

/// The most characters of an unknown name, or of its arguments, that are repeated.
const REPEATED_CHARS_MAX: usize = 128;

impl Refused {
    /// # Arguments
    /// `text`: a code, a space, and words.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self(text.into())
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// The first word.
    pub fn code(&self) -> &str {
        self.0.split(' ').next().unwrap_or_default()
    }

    /// What an `EXEC` is told that is refused itself: its transaction is over.
    #[must_use]
    pub fn ends_transaction(&self) -> Self {
        let why = self.text().split_once(' ').map_or(self.text(), |(_, why)| why);
        Self::new(format!("EXECABORT Transaction discarded because of: {why}"))
    }

    pub fn syntax() -> Self {
        Self::new("ERR syntax error")
    }

    pub fn no_integer() -> Self {
        Self::new("ERR value is not an integer or out of range")
    }

    pub fn no_float() -> Self {
        Self::new("ERR value is not a valid float")
    }

    pub fn no_score_bound() -> Self {
        Self::new("ERR min or max is not a float")
    }

    pub fn no_lex_bound() -> Self {
        Self::new("ERR min or max not valid string range item")
    }

    /// # Arguments
    /// `command`: its name, with its subcommand's behind a `|`.
    pub fn arity(command: &str) -> Self {
        Self::new(format!("ERR wrong number of arguments for '{command}' command"))
    }

    /// # Arguments
    /// `instead`: what to do.
    pub fn unknown_command<'a>(
        name: &[u8],
        arguments: impl Iterator<Item = &'a [u8]>,
        instead: Option<&str>,
    ) -> Self {
        let mut arguments = arguments.peekable();
        let mut text = format!("ERR unknown command '{}'", shown(name));
        if arguments.peek().is_some() || instead.is_none() {
            text.push_str(", with args beginning with: ");
        }
        for argument in arguments {
            if text.len() > 2 * REPEATED_CHARS_MAX {
                break;
            }
            let _ = write!(text, "'{}' ", shown(argument));
        }
        if let Some(instead) = instead {
            text.truncate(text.trim_end().len());
            let _ = write!(text, "; {instead}");
        }
        Self::new(text)
    }

    pub fn unknown_subcommand(command: &str, name: &[u8]) -> Self {
        let help = command.to_ascii_uppercase();
        Self::new(format!("ERR unknown subcommand '{}'. Try {help} HELP.", shown(name)))
    }

    /// # Arguments
    /// `why`: a code, and what is wrong with something that the client has sent.
    pub fn named(why: &str, sent: &[u8]) -> Self {
        Self::new(format!("{why} '{}'", shown(sent)))
    }

    /// # Arguments
    /// `option`: which `command` does not have, or not so.
    pub fn option(command: &str, option: &[u8]) -> Self {
        Self::new(format!("ERR Syntax error in {command} option '{}'", shown(option)))
    }

    pub fn not_authenticated() -> Self {
        Self::new("NOAUTH Authentication required.")
    }

    pub fn no_scope(token: &str, command: &str, needs: Scope) -> Self {
        Self::new(format!(
            "NOPERM User {token} has no permissions to run the '{command}' command: it needs a token of the \
             scope {needs}"
        ))
    }

    pub fn no_key() -> Self {
        Self::new("NOPERM No permissions to access a key: the token does not give access to this board")
    }

    /// As a replica of Redis refuses a write.
    pub fn read_only(why: &str) -> Self {
        Self::new(format!("READONLY {why}. Nothing was written"))
    }

    /// # Arguments
    /// `why`: what the board is, and what to do.
    pub fn other_board(board: &str, why: &str) -> Self {
        Self::new(format!("WRONGTYPE the board {board} {why}"))
    }
}

/// What a client has sent, in a message.
fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().take(REPEATED_CHARS_MAX).collect()
}

impl From<ProtocolError> for Refused {
    fn from(why: ProtocolError) -> Self {
        Self::new(format!("ERR {why}"))
    }
}

/// Of a read, or of a write of which nothing was written, but where the text says otherwise.
impl From<Failure> for Refused {
    fn from(why: Failure) -> Self {
        match why {
            Failure::NoBoard(NoBoard::Unknown) => Self::new("ERR no such key"),
            Failure::NoBoard(NoBoard::Window(why)) => Self::new(format!("ERR {why}")),
            Failure::NoBoard(NoBoard::UnknownColumn(board)) => {
                Self::new(format!("ERR there is no board {board}"))
            }
            Failure::NoBoard(NoBoard::Movement(why)) => Self::new(format!("ERR {why}")),
            Failure::BoardsUnread => {
                Self::new("LOADING this node has not read yet which boards there are; try again in a moment")
            }
            Failure::Read(why) => why.into(),
            Failure::NotYetApplied => Self::new(
                "TRYAGAIN this connection's earlier writes are stored and not applied yet; try again in a moment",
            ),
            Failure::OtherHistory => Self::new(
                "ERR this connection's earlier writes are lost, because the service was set back to an earlier \
                 state; connect again",
            ),
            Failure::UnknownShard => Self::new("ERR the service failed, and its log says why"),
            Failure::Internal => Self::new(
                "UNKNOWN the service failed, and its log says why; a write may have been done: read before you \
                 send it again",
            ),
            Failure::Overloaded => {
                Self::new("TRYAGAIN too many requests are in progress; nothing was done, so send it again")
            }
            Failure::TooManyAnswers => Self::new(
                "TRYAGAIN the answers of all requests take too much memory together; ask for less, or again later",
            ),
            Failure::NotLive(shard, reason) => {
                Self::new(format!("MISCONF shard {shard} takes no writes now: {reason}. Nothing was written"))
            }
            Failure::NoOwner(shards) => {
                let shards: Vec<String> = shards.iter().map(ToString::to_string).collect();
                Self::new(format!("TRYAGAIN no node answers for shard {}", shards.join(", ")))
            }
            Failure::NotPublished(why) | Failure::NotPublishedThere(_, why) => why.into(),
            Failure::Unanswered => Self::new(
                "UNKNOWN the write was not committed in time, and may be committed later: read before you send it again",
            ),
            Failure::Board(why) => why.into(),
            Failure::ReadOnly(None, why) => {
                Self::read_only(&format!("the service is read-only: {}", why.reason))
            }
            Failure::ReadOnly(Some(board), why) => {
                Self::read_only(&format!("the board {board} is read-only: {}", why.reason))
            }
            Failure::TooManyBoards { most, existing, .. } => Self::new(format!(
                "NOPERM the token may create boards until there are {most} of those that it gives access to, \
                 and there are {existing}: drop some boards, or raise the token's max_boards"
            )),
            Failure::WouldDrop(_) => Self::new("ERR the change would drop entries"),
        }
    }
}

impl From<ReadError> for Refused {
    fn from(why: ReadError) -> Self {
        match &why {
            ReadError::Unavailable(_) => Self::new(format!("TRYAGAIN a shard does not answer: {why}")),
            ReadError::NotYetApplied(_) => Failure::NotYetApplied.into(),
            ReadError::OtherHistory(_) => Failure::OtherHistory.into(),
            ReadError::KeptChanging(_) => Self::new(format!("TRYAGAIN {why}")),
        }
    }
}

impl From<NotPublished> for Refused {
    fn from(why: NotPublished) -> Self {
        match why {
            NotPublished::Overloaded => Self::new(format!("TRYAGAIN {why}; nothing was written")),
            NotPublished::Unavailable(_) => Self::new(format!("TRYAGAIN {why}. Nothing was written")),
            NotPublished::Full(_) => Self::new(format!("OOM {why}. Nothing was written")),
            NotPublished::TooLarge(_) => Self::new(format!("ERR {why}")),
            NotPublished::Unknown(_) | NotPublished::CommitFailed(_) => {
                Self::new(format!("UNKNOWN it is not known whether the write was kept: {why}"))
            }
        }
    }
}

impl From<BoardRefused> for Refused {
    fn from(why: BoardRefused) -> Self {
        match why {
            BoardRefused::Refused(why) => why.into(),
            BoardRefused::NotPublished(why) => why.into(),
            BoardRefused::OverLimit { .. } => Self::new(format!("NOPERM {why}")),
            BoardRefused::Unavailable(_) => Self::new(format!("TRYAGAIN {why}")),
            BoardRefused::Late => Self::new(format!("UNKNOWN {why}")),
        }
    }
}

impl From<DefineRefused> for Refused {
    fn from(why: DefineRefused) -> Self {
        if let DefineRefused::ReadOnly(_) = why {
            return Self::read_only(&why.to_string());
        }
        Self::new(format!("ERR {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_command_is_refused_as_in_redis_and_with_what_to_do() {
        let text = |arguments: &[&[u8]], instead| {
            Refused::unknown_command(b"FOO", arguments.iter().copied(), instead).text().to_owned()
        };
        assert_eq!(text(&[], None), "ERR unknown command 'FOO', with args beginning with: ");
        assert_eq!(
            text(&[b"a", b"b"], None),
            "ERR unknown command 'FOO', with args beginning with: 'a' 'b' "
        );
        assert_eq!(text(&[], Some("do this")), "ERR unknown command 'FOO'; do this");
        assert_eq!(
            text(&[b"a"], Some("do this")),
            "ERR unknown command 'FOO', with args beginning with: 'a'; do this"
        );
    }
}
