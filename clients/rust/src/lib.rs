#![doc = include_str!("../README.md")]

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

pub use client::{Builder, Ranktree};
pub use error::{Error, Problem};
pub use live::{LiveEvent, LiveView, Watch};
pub use request::Request;
pub use score::{MAX_KEYS, NoScore, Score};
pub use time::{Season, Time};
pub use tokens::{MAX_SHARDS, ShardsError, Token, TokenError, latest, member_hash, shard_of};
