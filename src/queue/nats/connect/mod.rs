//! Connections to NATS: where its servers are, who this process is to them, and how a connection stays up.

pub mod access;
pub mod connection;
pub mod credentials;
pub mod leader_requests;
pub mod server_choice;
pub mod servers;
