//! The components' schemas: what requests bring and answers hold.
//!
//! Limits come from where they are enforced, and names of operations, policies and rejects from where they
//! are read. A test compares every answer of the other tests of `http` with these schemas, closed to any
//! further name.

#![allow(clippy::needless_pass_by_value, reason = "schemas are built by value, as parts of other schemas")]

mod boards;
mod combined;
pub mod components;
mod entries;
pub mod jobs;
pub mod parts;
mod service;
mod snapshots;
mod values;
