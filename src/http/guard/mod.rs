//! Which requests go on to a handler: admission, tokens, the loopback guard, framing.

pub mod authorize;
pub mod framing;
pub mod in_progress;
pub mod loopback;
pub mod refusal_log;
