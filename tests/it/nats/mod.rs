//! The service and a real nats-server: streams, boards, who may do what, and servers that fail.
//!
//! Streams:
//! - [`protocol`]: a stream that is not what it was, or whose messages are no jobs
//! - [`gaps`]: what one server lacks is no gap, what the leader lacks is one, and how a halt ends
//! - [`accept_gap`]: a stream that does not continue what was applied is applied once the operator says so
//! - [`retention`]: what is kept of a stream is bounded, and room is made before it is full
//! - [`full`]: a full stream says what holds its messages and what makes room
//! - [`catch_up`]: a node that has much to apply answers meanwhile, and ends when it is told to
//!
//! Boards and writes:
//! - [`boards`]: one definition per board, whoever defines it first
//! - [`boards_lost`]: the shards' boards and entries survive the loss of the boards' stream
//! - [`boards_many`]: boards by the thousand need no round trip each, and late definitions bring none back
//! - [`http`]: HTTP writes are published, share messages, and are told of their own job
//!
//! Permissions:
//! - [`control`]: who may publish jobs can do no more than that, whatever headers a message has
//! - [`credentials`]: each way to log in, wrong ones, and credentials that are replaced while a node runs
//! - [`permissions`]: the shipped permissions are enough, and none is too many
//!
//! Servers:
//! - [`outage`]: NATS is away or stalls, or the service does
//! - [`frozen`]: a server that is frozen, or whose packets are dropped, is left for another
//! - [`no_jetstream`]: a server without JetStream is named in the log once

mod accept_gap;
mod boards;
mod boards_lost;
mod boards_many;
mod catch_up;
mod control;
mod credentials;
mod frozen;
mod full;
mod gaps;
mod http;
mod no_jetstream;
mod outage;
mod permissions;
mod protocol;
mod retention;
