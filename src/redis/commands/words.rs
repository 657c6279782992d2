//! A request's arguments, taken one after the other.

use crate::redis::commands::command::{Command, Connection};
use crate::redis::frames::Arguments;
use crate::redis::number;
use crate::redis::refused::Refused;

/// The arguments behind a command's name.
pub struct Words<'b> {
    arguments: Arguments<'b>,
    at: usize,
}

impl<'b> Words<'b> {
    /// # Arguments
    /// `after`: how many are passed over, the name among them.
    pub fn after(arguments: Arguments<'b>, after: usize) -> Self {
        Self { arguments, at: after }
    }

    pub fn left(&self) -> usize {
        self.arguments.len().saturating_sub(self.at)
    }

    /// # Errors
    /// When there is none: what an arity has promised is there.
    pub fn take(&mut self) -> Result<&'b [u8], Refused> {
        let word = self.arguments.get(self.at).ok_or_else(Refused::syntax)?;
        self.at += 1;
        Ok(word)
    }

    /// Takes a word in whatever case, if it is next and so many follow it.
    pub fn take_if(&mut self, word: &str, followed_by: usize) -> bool {
        let is_next = self.arguments.get(self.at).is_some_and(|next| is(next, word));
        let taken = is_next && self.left() > followed_by;
        self.at += usize::from(taken);
        taken
    }

    /// # Errors
    /// When it is no integer.
    pub fn integer(&mut self) -> Result<i64, Refused> {
        number::integer(self.take()?).ok_or_else(Refused::no_integer)
    }

    /// How many a scan is to look at.
    ///
    /// # Errors
    /// When it is no number, or less than one.
    pub fn scan_count(&mut self) -> Result<u64, Refused> {
        u64::try_from(self.integer()?).ok().filter(|count| *count > 0).ok_or_else(Refused::syntax)
    }

    /// What `HELP` asks for, if it is the next word.
    ///
    /// # Errors
    /// When something follows it.
    pub fn help(&mut self, command: &'static str) -> Result<Option<Command<'b>>, Refused> {
        if !self.take_if("HELP", 0) {
            return Ok(None);
        }
        if self.left() > 0 {
            return Err(Refused::arity(&format!("{command}|help")));
        }
        Ok(Some(Command::Connection(Connection::Help(command))))
    }

    /// All that are left.
    pub fn rest(&mut self) -> Vec<&'b [u8]> {
        let rest = self.arguments.iter().skip(self.at).collect();
        self.at = self.arguments.len();
        rest
    }

    /// # Errors
    /// When more follows.
    pub fn end(&self) -> Result<(), Refused> {
        if self.left() == 0 { Ok(()) } else { Err(Refused::syntax()) }
    }
}

/// Whether an argument is a word, in whatever case.
pub fn is(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}
