//! The service and a real nats-server: streams, boards, permissions, and servers that fail.
//!
//! Streams:
//! - [`protocol`]: a stream that was replaced or lost messages, and messages that are not jobs
//! - [`gaps`]: which missing messages are a gap, and how a halt ends
//! - [`accept_gap`]: a stream that does not continue what was applied is applied if the operator accepts it
//! - [`restored_service`]: a whole service comes back from snapshots of several nodes on new streams
//! - [`retention`]: the messages that are kept in a stream are bounded, and room is made before it is full
//! - [`full`]: a full stream's status says what holds its messages and what makes room
//! - [`changed_streams`]: a stream that someone changes or deletes while a node runs
//! - [`peers`]: nodes on the same streams know of each other, and purge nothing that another one needs
//! - [`copies`]: a node that its stream cannot fill gets copies of its shards from another one
//! - [`lost_streams`]: a node without data does not take up a stream that another owner's data contradicts
//! - [`wrong_source`]: a start with data that were filled from elsewhere is refused before it changes
//!   anything
//! - [`led_astray`]: a node that was at another server for a while harms nobody when it is back
//! - [`own`]: nodes that own some of the shards write to all, and decide boards for all
//! - [`diverged`]: replicas of a shard that differ halt, until one is given a copy of the other
//! - [`reject_lease`]: one owner of a shard publishes its rejects, and another one goes on when it is gone
//! - [`catch_up`]: a node with a long backlog answers reads meanwhile, and ends on a signal
//!
//! Boards and writes:
//! - [`boards`]: one definition per board, the first one
//! - [`boards_lost`]: the shards' boards and entries survive the loss of the boards' stream
//! - [`foreign`]: a node with the wrong data changes nothing about boards, and other nodes go on
//! - [`refilled`]: nodes that are filled from the streams have the boards that there were
//! - [`boards_many`]: thousands of boards need no round trip each, and late definitions do not create dropped
//!   boards again
//! - [`seasons`]: one request opens a season, and lengths change, through any node
//! - [`write_service`]: jobs by NATS request, answered with what came of each
//! - [`http`]: HTTP writes are published, share messages, and get the results of their own jobs
//!
//! Permissions:
//! - [`control`]: a client that may publish jobs can do nothing else, with any headers
//! - [`credentials`]: each way to log in, wrong ones, and credentials that are replaced while a node runs
//! - [`inboxes`]: with the shipped configuration nobody reads answers to others, or is taken for a server
//! - [`permissions`]: the shipped permissions are enough, and each is needed
//!
//! Servers:
//! - [`outage`]: NATS is away or stalls, or the service does
//! - [`frozen`]: connections leave a server that is frozen, or whose packets are dropped
//! - [`no_jetstream`]: a server without JetStream is named in the log once

mod accept_gap;
mod boards;
mod boards_lost;
mod boards_many;
mod catch_up;
mod changed_streams;
mod control;
mod copies;
mod credentials;
mod diverged;
mod foreign;
mod frozen;
mod full;
mod gaps;
mod http;
mod inboxes;
mod led_astray;
mod lost_streams;
mod no_jetstream;
mod outage;
mod own;
mod peers;
mod permissions;
mod protocol;
mod refilled;
mod reject_lease;
mod restored_service;
mod retention;
mod seasons;
mod write_service;
mod wrong_source;
