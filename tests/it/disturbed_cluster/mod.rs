//! Several nodes and several nats-servers while everything goes wrong: every answer equals a model of the
//! stream's messages at the answer's `as_of`, and at the end nothing is lost or counted twice.
//!
//! - [`world`]: three nats-servers, three nodes, six shards, two copies of each
//! - [`disturbances`]: what goes wrong, and how it is mended
//! - [`recorder`]: every message of every shard's stream, as it was stored
//! - [`writers`], [`readers`]: what goes on meanwhile
//! - [`oracle`]: what an answer has to be, worked out from the recorded messages
//! - [`disturbed`]: the test, and the soak

mod disturbances;
mod disturbed;
mod oracle;
mod readers;
mod recorder;
mod world;
mod writers;
