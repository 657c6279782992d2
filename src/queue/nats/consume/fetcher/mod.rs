//! Fetches and decodes messages, ahead of the writer, with a pull consumer that is replaced whenever anything
//! unexpected happens.
//!
//! Knows: the sequence, time and hash of the last message it handed on (the *tip*), and that the stream has
//! to continue exactly there. Must not know: what a job does. The writer's applied sequence, in the same
//! write batch as its effects, is the only acknowledgement. Nothing is acknowledged to the server, and a lost
//! consumer is created again.
//!
//! Observed behaviour of async-nats 0.51, and what the fetcher does about it:
//! - Its ordered consumer restarts from 1 and resumes past lost data. So the fetcher uses a plain consumer
//!   that starts *at* the tip. The tip's message must come again, unchanged.
//! - It may sit out a dead server for minutes. So a heartbeat is asked for twice a second, and every
//!   reconnect ends the session.
//!
//! Files:
//! - `run`: the loop of sessions, and what they hand on
//! - `continuity`: whether the stream continues the tip; `accept_message`: whether a message does
//! - `lag`: whether the consumer's server keeps up
//! - `recovery`: what the fetcher does if the stream seems not to continue the tip
//! - `rebase`: continuing with another stream, because of `--accept-gap`

mod accept_message;
mod continuity;
mod lag;
mod rebase;
mod recovery;
pub mod run;
