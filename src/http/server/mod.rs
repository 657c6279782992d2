//! Sockets, TLS, connections, their limits, and how they end.
//!
//! In the order in which a request meets them:
//! - `listener`: accepts connections; `connection_limit`: how many; `threads`: gives each to a thread;
//!   `unread`: what the system keeps of answers that a client does not read
//! - `connection`: from the handshake (`tls`) to the end (`ended`); `cleartext`: who speaks no TLS; `socket`:
//!   whether the client has left
//! - `activity`, `observed_stream`, `pipelining`, `timeouts`: what a connection is doing, and for how long
//! - `requests`: the requests of a connection, handed to the router; `cors`: what browsers are told of pages
//!   of allowed origins; `context`: what all connections share

mod activity;
mod cleartext;
mod connection;
pub mod connection_limit;
mod context;
mod cors;
mod ended;
pub mod listener;
mod observed_stream;
mod pipelining;
mod requests;
mod socket;
pub mod threads;
pub mod timeouts;
pub mod tls;
mod unread;
