//! The integration tests: one binary, so that `RocksDB` is linked once, and a file per behaviour.
//!
//! The `mod.rs` of each folder lists its files and says what each of them holds:
//!
//! - [`durability`]: nothing answered is lost or counted twice, even if processes are killed, files are
//!   damaged or disks are full
//! - [`exactness`]: ranks, tokens, removals and rejections follow from the jobs exactly
//! - [`nats`]: streams, boards, permissions and outages with a real nats-server
//! - [`cluster`]: several nodes: what they ask each other, and reads through nodes that own some shards
//! - [`disturbed_cluster`]: several nodes, while nodes and servers are killed, frozen, cut off and emptied
//! - [`http`]: the API, who may use it, and clients that do not behave
//! - [`redis_protocol`]: Redis' protocol, beside a real redis-server
//! - [`cli`]: the other subcommands, and settings
//! - [`operations`]: metrics, dashboards, containers, secrets, snapshots
//! - [`cost`]: what a job costs, apart from time
//! - [`project`]: what holds the repository itself together: layers, documents, names
//!
//! [`support`] has what they share: a node, a nats-server, a client, a model.

#![allow(clippy::indexing_slicing, reason = "a JSON value answers Null for a name that it does not have")]

mod support;

mod durability;
mod exactness;
mod nats;

mod cluster;
mod disturbed_cluster;

mod http;

mod redis_protocol;

mod cli;
mod cost;
mod operations;

mod project;
