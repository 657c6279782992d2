//! What the tests stand on: a node and its subcommands, a client, a nats-server, a model, the real jobs,
//! random numbers, raw connections, tokens, a browser, a collector of traces, programs of others.

pub mod arena;
pub mod browser;
pub mod certificates;
pub mod client;
pub mod clock;
#[cfg(feature = "otlp")]
pub mod collector;
pub mod command;
pub mod compose;
pub mod counting;
pub mod cut_link;
pub mod delivery_link;
pub mod files;
pub mod jwt;
pub mod late_link;
pub mod model;
pub mod nats;
pub mod nats_cluster;
pub mod nats_server;
pub mod node;
pub mod place;
pub mod prometheus;
pub mod random;
pub mod raw;
pub mod real_jobs;
pub mod redis;
pub mod rust_words;
pub mod secured;
pub mod slow_link;
pub mod snapshots;
pub mod toggled_link;
pub mod tokens;
pub mod tools;
pub mod watch;
pub mod write_service;
