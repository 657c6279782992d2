//! A client of ranktree, an exact, durable leaderboard engine: HTTP, and with the feature `nats` a publisher of
//! jobs to NATS.
#![cfg_attr(feature = "nats", doc = include_str!("../README.md"))]
//!
//! # Layout
//!
//! `client` has a method for each request, `request` what is done with one: options, `.await`, pages. `live` watches
//! boards. `transport`, `retry` and `query` are HTTP; `nats` publishes. `types` is written by `clients/generator`.

#[macro_use]
mod words;

mod client;
mod error;
mod integers;
mod live;
#[cfg(feature = "nats")]
pub mod nats;
mod query;
mod request;
mod retry;
mod score;
mod time;
mod tokens;
mod transport;
// Generated, for reading and not for its form.
#[rustfmt::skip]
#[allow(clippy::doc_markdown, reason = "the words are those of the API's document")]
pub mod types;

/// For certificates of your own.
pub use rustls;

pub use client::{Builder, Ranktree};
pub use error::{Error, Problem};
pub use live::{LiveEvent, LiveView, Watch};
pub use request::Request;
pub use score::{MAX_KEYS, NoScore, Score};
pub use time::{Season, Time};
pub use tokens::{MAX_SHARDS, ShardsError, Token, TokenError, latest, member_hash, shard_of};
