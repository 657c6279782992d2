//! Reading a shard's stream: the writer's end, the fetcher that reads ahead of it, and where the messages
//! come from.
//!
//! - `source`: the writer's end; `blocking`: how it waits for what it is handed
//! - `fetcher`: pulls, decodes and checks, ahead of the writer
//! - `pull`: a consumer's messages; `place`: where in the stream each of them is
//! - `shard_stream`: what the parts of a shard's queue share
//! - `origin`: which stream, and with which offset; `fingerprint`: how a message is recognised
//! - `sessions`: whether the stream was found to continue what was applied
//! - `gap_permission`: what `--accept-gap` accepts, once
//! - `copy_need`: whether a shard needs a copy of another owner's data

mod blocking;
pub mod copy_need;
pub mod fetcher;
pub mod fingerprint;
pub mod gap_permission;
pub mod origin;
pub mod place;
pub mod pull;
pub mod sessions;
pub mod shard_stream;
pub mod source;
