//! Connections to NATS: where its servers are, who this process is to them, and how a connection stays up.
//!
//! - `access`: everything that a connection needs: `servers`, `credentials`, and the `inbox` for answers
//! - `connection`: reconnects for ever; `server_choice`: to which server
//! - `leader_requests`: requests to a stream's leader, repeated while no answer comes

pub mod access;
pub mod connection;
pub mod credentials;
pub mod inbox;
pub mod leader_requests;
pub mod server_choice;
pub mod servers;
