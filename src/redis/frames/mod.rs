//! The protocol's frames. Knows no command.

mod replies;
mod requests;

pub use replies::{Mark, Protocol, Replies};
pub use requests::{Arguments, OwnedArguments, ProtocolError, RequestReader};
