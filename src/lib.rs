//! ranktree keeps leaderboards of any size exact.
//!
//! Game services publish set-score jobs; one writer per shard drains them in batches into a counted B+
//! tree that is persisted in RocksDB, one write batch per drained batch; reads ask every shard and add the
//! counts up.
//!
//! # Layout
//! In reading order, which is also the direction of dependencies: a module knows those above it.
//!
//! - [`types`], [`board`], [`job`]: the nouns
//! - [`wire`]: a job as JSON
//! - [`tree`]: the counted B+ tree
//! - [`state`]: a shard in memory
//! - [`state_lock`]: the lock that its writer and its readers share
//! - [`storage`]: a shard on disk
//! - [`writer`]: fetch → decode → plan → commit → apply → show
//! - [`snapshot`]: copies of all shards, and how they are put in place
//! - [`query`]: reads, summed and merged over shards
//! - [`queue`]: where jobs come from, and where writes are published; it and [`query`] do not know each other
//! - [`access`]: tokens, and what each allows
//! - [`http`]: the API
//! - [`tls_roots`]: which certificates a client of a service accepts
//! - [`loadgen`]: a load generator for a running service, and what it measured
//! - [`credential_files`]: tokens and certificates from files, read again when they change
//! - [`service`]: puts it all together; it alone sees everything
//! - [`cli`]: a file or folder per subcommand
//!
//! Beside them: [`metrics`], the name of every metric, and [`config`], the settings.

#[cfg(test)]
mod allocated;

pub mod types;

pub mod board;
pub mod job;

pub mod wire;

pub mod tree;

pub mod state;

pub mod state_lock;

pub mod storage;

pub mod writer;

pub mod snapshot;

pub mod query;

pub mod queue;

pub mod access;

pub mod http;

pub mod tls_roots;

pub mod loadgen;

pub mod metrics;

pub mod config;

pub mod credential_files;

pub mod service;

pub mod cli;
