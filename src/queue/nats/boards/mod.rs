//! The boards' stream: what each board is, decided once for all shards and nodes.
//!
//! The stream has one subject per board, and keeps its last message: the definition in force, or that the
//! board was dropped. A message is stored only if it follows the one that its writer has read. So if two
//! nodes define a board at the same moment, the server accepts one record. The other node reads that record,
//! and agrees with it or refuses its client.
//!
//! A message, or record, has a number: its sequence, or a higher one that it states. A node that stores a
//! record states the number after the highest one that it ever saw. So the numbers of a board's records rise,
//! even if the stream was lost, or an old copy was restored, between two of them. The incarnation of a board
//! has the number of its first record.
//!
//! A decision is delivered to the shards through their own streams, where it has a place among the jobs and
//! takes effect. It may be delivered twice, or late: a shard ignores a decision that a later one has
//! replaced. So every node may deliver to its shards any decision that they lack. If a crash interrupts a
//! delivery, the next check completes it.
//!
//! Shards remember a limited number of drops (`state::Dropped`). A shard takes a definition for a late one if
//! its number is as low as that of a forgotten drop. If the board exists, its record is stored a second time
//! in the stream, and so gets a later number.
//!
//! - `boards_stream`: this node's view of the stream
//! - `record`: the form of a record; `decision`: what it says of a board
//! - `store`: reading and storing records; `known`: what this node knows of a board
//! - `decide`: definitions, drops and clears, one at a time or many at once; `renew`: later numbers for
//!   records
//! - `follow`: reading what other nodes decided; `following`: how far that is, and what was there at its
//!   beginning
//! - `compare`: whether the data of this node's shards are of its streams
//! - `reconcile`: storing records again that the stream has lost and shards still hold
//! - `confirm`: what is in force on shards of other nodes; `limit`: boards that are one too many
//! - `deliver`: from decisions to shards, and boards that jobs wait for; `pending`: decisions that have not
//!   reached all shards yet; `before_jobs`: decisions that jobs must not overtake
//! - `wanted`: which boards jobs wait for that no command ahead of the shard is about
//! - `tombstones`, `delete_tombstones`: records of dropped boards, of which the stream keeps a limited number

mod boards_stream;

mod decision;
mod record;

mod known;
mod store;

mod confirm;
mod decide;
mod limit;
mod renew;

mod compare;
mod follow;
mod following;
mod reconcile;

mod before_jobs;
mod deliver;
mod pending;
mod wanted;

mod delete_tombstones;
mod tombstones;

pub use boards_stream::{BoardRefused, BoardsStream};
pub use decide::Decided;
pub use limit::BoardLimit;
