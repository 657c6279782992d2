//! Which requests go on to a handler.
//!
//! Knows: how many requests there may be at a time, what a token allows, how a body must be framed, and who
//! may ask a node without tokens. Must not know: what a request asks for, or what it is answered.

pub mod authorize;
pub mod framing;
pub mod limits;
pub mod loopback;
pub mod origin;
pub mod refusal_log;
pub mod watchers;
