//! The write path as a whole, on real RocksDB directories, against a model too simple to be wrong.

mod build;
mod compare;
mod fed;
mod harness;
mod model;
mod planned_shard;
mod say;
mod source;

mod changed;
mod checkpointed_boards;
mod checkpointed_members;
mod checkpoints;
mod damage;
mod damaged_files;
mod damaged_waiting;
mod drained;
mod expired;
mod formats;
mod holds;
mod installed;
mod log_hash;
mod memory;
mod parked;
mod profiles;
mod races;
mod random;
mod rejects;
mod reopened;
mod replayed;
mod staged_files;
mod times;
mod top_k;
mod waiting;
mod window_edges;
mod windows;
