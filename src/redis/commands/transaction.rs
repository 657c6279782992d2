//! Commands about transactions.

#![allow(clippy::unnecessary_wraps, reason = "the table has one signature for all")]

use crate::redis::commands::command::{Command, TransactionStep};
use crate::redis::frames::Arguments;
use crate::redis::refused::Refused;

/// `MULTI`
pub fn multi(_: Arguments<'_>) -> Result<Command<'_>, Refused> {
    Ok(Command::Transaction(TransactionStep::Begin))
}

/// `EXEC`
pub fn exec(_: Arguments<'_>) -> Result<Command<'_>, Refused> {
    Ok(Command::Transaction(TransactionStep::Execute))
}

/// `DISCARD`
pub fn discard(_: Arguments<'_>) -> Result<Command<'_>, Refused> {
    Ok(Command::Transaction(TransactionStep::Discard))
}
