//! Several nodes on the same streams.
//!
//! - [`approximate`]: approximate ranks are within their bound, also once the owners are gone
//! - [`questions`]: a shard's owners answer questions over NATS, whatever happens to some of them
//! - [`reads`]: every read through a node that owns nothing is what a node that owns all answers
//! - [`wrong_clock`]: a node whose clock is wrong says so, and reads what is current

mod approximate;
mod questions;
mod reads;
mod wrong_clock;
