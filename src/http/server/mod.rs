//! Sockets, TLS, connections, their limits, and how they end.

mod activity;
mod connection;
pub mod connection_limit;
mod context;
mod ended;
pub mod listener;
mod observed_stream;
mod pipelining;
mod requests;
mod socket;
mod threads;
pub mod timeouts;
pub mod tls;
