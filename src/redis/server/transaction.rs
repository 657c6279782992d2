//! The commands between `MULTI` and `EXEC`.

use crate::redis::frames::{Arguments, OwnedArguments};
use crate::redis::refused::Refused;

/// The most bytes that the commands of one transaction may have together.
const BYTES_MAX: usize = 8 << 20;

/// Commands that wait for `EXEC`.
#[derive(Debug, Default)]
pub struct Transaction {
    commands: Vec<OwnedArguments>,
    bytes: usize,
    /// One was refused: none of the others is done.
    pub is_refused: bool,
}

impl Transaction {
    /// # Errors
    /// When they are too many.
    pub fn push(&mut self, arguments: Arguments<'_>) -> Result<(), Refused> {
        let command = arguments.to_owned();
        self.bytes += command.memory();
        if self.bytes > BYTES_MAX {
            return Err(Refused::new(format!(
                "ERR the commands of a transaction may have {BYTES_MAX} bytes together; send fewer"
            )));
        }
        self.commands.push(command);
        Ok(())
    }

    /// The commands, in order.
    ///
    /// # Errors
    /// When one was refused.
    pub fn commands(self) -> Result<Vec<OwnedArguments>, Refused> {
        if self.is_refused {
            return Err(Refused::new("EXECABORT Transaction discarded because of previous errors."));
        }
        Ok(self.commands)
    }
}
