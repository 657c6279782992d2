//! Connections that speak HTTP, and how they end. What they share with those of other front ends is in
//! `connections`.
//!
//! In the order in which a request meets them:
//! - `listener`: accepts connections, and gives each to a thread
//! - `connection`: from the handshake to the end (`ended`); `cleartext`: who speaks no TLS; `socket`: whether
//!   the client has left
//! - `activity`, `observed_stream`, `pipelining`: what a connection is doing, and for how long
//! - `requests`: the requests of a connection, handed to the router; `cors`: what browsers are told of pages
//!   of allowed origins; `context`: what all connections share

mod activity;
mod cleartext;
mod connection;
mod context;
mod cors;
mod ended;
pub mod listener;
mod observed_stream;
mod pipelining;
mod requests;
mod socket;
