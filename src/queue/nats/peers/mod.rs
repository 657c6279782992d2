//! The other nodes of the same streams: who is there, and what of the streams they still need.
//!
//! Knows: two key-value buckets. `PREFIX_NODES` has an entry for each node that is alive, which the node
//! renews and the server drops once it is old. `PREFIX_FLOORS` has an entry for each node and shard, which
//! stays: what the node's last checkpoint holds. Must not know: what is purged (`retention`), or how status
//! shows nodes.
//!
//! - `entries`: what the entries of both buckets say
//! - `known`: what is known of other nodes, in memory; `roster`: which are alive, and what they own
//! - `holding`: which messages of a stream other nodes need; `floors`: whose floor counts
//! - `follow`: reads both buckets into memory
//! - `claim`, `renew`: this node's own entries, under a name that no other node has
//! - `hashes`, `owners`: what other owners of a shard say of their hashes; `judge`: what follows from that;
//!   `decide`: when; `compare`: halts a shard whose replicas differ
//! - `lineage`: of which stream other owners' data are
//! - `gauges`: metrics

pub mod claim;
pub mod compare;
pub mod decide;
pub mod entries;
pub mod floors;
pub mod follow;
pub mod gauges;
pub mod hashes;
pub mod holding;
pub mod judge;
pub mod known;
pub mod lineage;
pub mod owners;
pub mod renew;
pub mod roster;
