//! Sockets, TLS, connections, and how they end.

pub mod activity;
pub mod connection;
pub mod connection_limit;
pub mod listener;
pub mod pipelining;
pub mod socket;
pub mod threads;
pub mod tls;
