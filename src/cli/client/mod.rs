//! A client of a running service: its address, its token, whom it trusts, and how often it tries again.
//!
//! Must not know: what is asked of the service.

pub mod base_url;
pub mod reader;
pub mod tls_connector;
pub mod tls_roots;
