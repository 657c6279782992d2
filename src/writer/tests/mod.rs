//! The write path as a whole, on real RocksDB directories, against a model too simple to be wrong.

mod build;
mod harness;
mod model;

mod checkpoints;
mod damage;
mod random;
