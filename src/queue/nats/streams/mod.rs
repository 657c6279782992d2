//! The streams of a node: how each is configured, and how they are created or checked at a start.

pub mod boards_config;
pub mod buckets_config;
pub mod find_shards;
pub mod jobs_config;
pub mod mismatches;
pub mod new_service;
pub mod no_room;
pub mod rejects_config;
pub mod set_up;
pub mod watch;
