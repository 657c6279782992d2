//! Fetch and decode, ahead of the writer: a pull consumer that is made anew whenever anything is odd.
//!
//! Knows: the sequence, time and hash of the last message it handed on (the *tip*), and that the stream has
//! to continue exactly there. Must not know: what a job does. The writer's applied sequence, in the same
//! write batch as its effects, is the only acknowledgement. Nothing is acknowledged to the server, and a lost
//! consumer is made again.
//!
//! What async-nats 0.51 was seen to do, and what is done about it:
//! - Its ordered consumer restarts from 1 and resumes past lost data. So this is a plain consumer that starts
//!   *at* the tip, whose message must come back as it was.
//! - It may sit out a dead server for minutes. So a heartbeat is asked for twice a second, and every
//!   reconnect ends the session.
//!
//! Files:
//! - `run`: the loop of sessions; `session_end`: why a session ended; `consumer`: what a session reads with
//! - `continuity`: whether the stream continues the tip; `accept_message`: whether a message does
//! - `lag`: whether the consumer's server keeps up
//! - `doubts`, `recovery`: what is done when it seems not to
//! - `rebase`: going on with another stream, because the operator says so

mod accept_message;
mod consumer;
mod continuity;
mod doubts;
mod lag;
mod rebase;
mod recovery;
pub mod run;
mod session_end;
