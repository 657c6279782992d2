//! The commands between `MULTI` and `EXEC`.

use std::sync::Arc;

use tokio::time::Instant;

use crate::operations::{Admission, BodyBytes};
use crate::redis::frames::{Arguments, OwnedArguments};
use crate::redis::refused::Refused;

/// The most bytes that the commands of one transaction may have together.
const BYTES_MAX: usize = 8 << 20;

/// Commands that wait for `EXEC`.
pub struct Transaction {
    commands: Vec<OwnedArguments>,
    bytes: usize,
    /// Their memory, as all requests share it. `None`: a command was refused, and none of the others is done.
    held: Option<BodyBytes>,
    /// When the first of them came.
    since: Option<Instant>,
}

/// The commands of a transaction, in order.
pub struct KeptCommands {
    pub commands: Vec<OwnedArguments>,
    _held: Option<BodyBytes>,
}

impl Transaction {
    pub fn begin(admission: &Arc<Admission>) -> Self {
        let held = Some(BodyBytes::none(admission));
        Self { commands: Vec::new(), bytes: 0, held, since: None }
    }

    /// Notes that a command was refused.
    pub fn refuse(&mut self) {
        (self.commands, self.held) = (Vec::new(), None);
    }

    /// Since when commands wait.
    pub fn since(&self) -> Option<Instant> {
        self.since
    }

    /// # Errors
    /// When they are too many.
    pub fn push(&mut self, arguments: Arguments<'_>) -> Result<(), Refused> {
        let Some(held) = &mut self.held else { return Ok(()) };
        let command = arguments.to_owned();
        let bytes = command.memory();
        if self.bytes + bytes > BYTES_MAX {
            return Err(Refused::new(format!(
                "ERR the commands of a transaction may have {BYTES_MAX} bytes together; send fewer"
            )));
        }
        self.bytes += bytes;
        if !held.take(bytes) {
            return Err(Refused::new("OOM the requests of all clients take too much memory together"));
        }
        self.since.get_or_insert_with(Instant::now);
        self.commands.push(command);
        Ok(())
    }

    /// The commands, in order.
    ///
    /// # Errors
    /// When one was refused.
    pub fn commands(self) -> Result<KeptCommands, Refused> {
        if self.held.is_none() {
            return Err(Refused::new("EXECABORT Transaction discarded because of previous errors."));
        }
        Ok(KeptCommands { commands: self.commands, _held: self.held })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::RequestLimits;
    use crate::redis::frames::RequestReader;

    #[test]
    fn commands_of_all_transactions_share_their_memory_until_they_are_done() {
        let limits = RequestLimits { body_bytes_in_flight: 8 << 20, ..RequestLimits::default() };
        let admission = Admission::new(limits);
        let mut reader = RequestReader::default();
        reader.room().extend_from_slice(format!("ECHO {}\r\n", "x".repeat(60_000)).as_bytes());
        let request = reader.next(1 << 20).expect("a request").expect("all of it");
        let command = reader.arguments(&request);
        let mut transactions: Vec<Transaction> = Vec::new();
        let refused = loop {
            let mut transaction = Transaction::begin(&admission);
            assert_eq!(transaction.since(), None);
            if let Some(refused) = (0..10).find_map(|_| transaction.push(command).err()) {
                break refused;
            }
            assert!(transaction.since().is_some());
            transactions.push(transaction);
        };
        assert_eq!(refused.code(), "OOM");
        assert!((8..16).contains(&transactions.len()), "{}", transactions.len());
        // Being done, they keep it.
        let done = transactions.pop().expect("there are some").commands().expect("none was refused");
        let mut more = Transaction::begin(&admission);
        assert!((0..10).any(|_| more.push(command).is_err()));
        drop((done, transactions, more));
        let mut alone = Transaction::begin(&admission);
        let refused = (0..1_000).find_map(|_| alone.push(command).err()).expect("it is long");
        assert_eq!(refused.code(), "OOM");
    }
}
