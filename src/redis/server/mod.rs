//! Connections that speak Redis' protocol, their state, and the commands about it.
//!
//! In the order in which a request meets them:
//! - `listener`: where it listens, and who gets a connection; `connection`: from the first byte to the last;
//!   `client_stream`: over what; `incoming`: requests on their way from the client; `outgoing`: replies on
//!   their way to it
//! - `round`: the requests that have come together, whose writes share a message; `pending`: those writes;
//!   `flow`: whether a connection goes on
//! - `session`: who the client is, and what it has written; `transaction`: the commands between `MULTI` and
//!   `EXEC`; `clients`: all connections
//! - `answers`, `info`: commands about the connection and the service; `audit`: whose token took something
//!   away; `figures`: what is counted

mod answers;
mod audit;
mod client_stream;
mod clients;
mod connection;
mod figures;
mod flow;
mod incoming;
mod info;
mod listener;
mod outgoing;
mod pending;
mod round;
mod service;
mod session;
mod transaction;

pub use listener::{ListenAddress, Listener, Serving, serve};
