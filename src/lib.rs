//! ranktree keeps leaderboards of any size exact.
//!
//! Game services publish set-score jobs; one writer per shard drains them in batches into a counted B+
//! tree that is persisted in RocksDB, one write batch per drained batch; reads ask every shard and add the
//! counts up.
//!
//! # Layout
//! The modules stand in the order in which they may know one another, from the nouns to the command line:
//! a module knows only modules above it. `ARCHITECTURE.md` tells the order, and what each of them is.

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

pub mod connections;

pub mod window;

pub mod board;
pub mod job;

pub mod wire;

pub mod state;

pub mod state_lock;

pub mod applied_sequence;

pub mod message_clock;

pub mod storage;

pub mod writer;

pub mod snapshot;

pub mod query;

pub mod queue;

pub mod cluster;

pub mod operations;

pub mod http;

pub mod redis;

pub mod loadgen;

pub mod config;

pub mod credential_files;

pub mod service;

pub mod cli;
