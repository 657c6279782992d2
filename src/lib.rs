//! ranktree keeps leaderboards of any size exact.
//!
//! Game services publish set-score jobs; one writer per shard drains them in batches into a counted B+
//! tree that is persisted in RocksDB, one write batch per drained batch; reads ask every shard and add the
//! counts up.
//!
//! # Layout
//! In reading order, which is also the direction of dependencies: a module knows only modules above it.
//!
//! - [`types`]: the nouns that need no other
//! - [`metrics`]: the name of every metric
//! - [`tls_roots`]: which certificates a client of a service accepts
//! - [`regular_file`]: opens files for reading, and neither waits for a pipe nor follows links of others
//! - [`short_slice`]: time slices of threads that answer readers
//! - [`allocator`]: how long free memory is kept
//! - `processor`: ends the program where the processor lacks what RocksDB was compiled for
//! - [`traces`]: spans of what is sampled, and their way to a collector
//! - [`tree`]: the counted B+ tree
//! - [`access`]: tokens, and what each allows
//! - [`window`]: when instances of a board's windows begin and end, and what they are called
//! - [`board`], [`job`]: definitions of boards, and jobs
//! - [`wire`]: a job as JSON
//! - [`state`]: a shard in memory
//! - [`state_lock`]: the lock that its writer and its readers share
//! - [`applied_sequence`]: up to where a shard is shown, and who waits for that
//! - [`storage`]: a shard on disk
//! - [`writer`]: fetch → plan → commit → apply → show
//! - [`snapshot`]: copies of all shards, and how they are put in place
//! - [`query`]: reads, summed and merged over shards
//! - [`queue`]: where jobs come from, and where writes are published; it and [`query`] do not know each other
//! - [`cluster`]: what nodes do for each other over NATS: questions to shards, writes, copies of shards
//! - [`http`]: the API
//! - [`loadgen`]: a load generator for a running service, and what it measured
//! - [`config`]: the settings
//! - [`credential_files`]: tokens and certificates from files, read again when they change
//! - [`service`]: puts it all together
//! - [`cli`]: a file or folder per subcommand

#[cfg(test)]
mod allocated;

pub mod types;

pub mod metrics;

pub mod tls_roots;

pub mod regular_file;
pub mod short_slice;

pub mod allocator;
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
mod processor;

pub mod traces;

pub mod tree;

pub mod access;

pub mod window;

pub mod board;
pub mod job;

pub mod wire;

pub mod state;

pub mod state_lock;

pub mod applied_sequence;

pub mod storage;

pub mod writer;

pub mod snapshot;

pub mod query;

pub mod queue;

pub mod cluster;

pub mod http;

pub mod loadgen;

pub mod config;

pub mod credential_files;

pub mod service;

pub mod cli;
