//! Several nodes on the same streams.
//!
//! - [`questions`]: a shard's owners answer questions over NATS, whatever happens to some of them
//! - [`reads`]: every read through a node that owns nothing is what a node that owns all answers

mod questions;
mod reads;
