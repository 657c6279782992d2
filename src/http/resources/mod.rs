//! The handlers, one file for each resource.

pub mod boards;
pub mod combine;
pub mod entered;
pub mod hidden;
pub mod jobs;
pub mod known_nodes;
pub mod lists;
pub mod live;
pub mod members;
pub mod probes;
pub mod ranks;
pub mod read_only;
pub mod rejects;
pub mod removals;
pub mod scrapes;
pub mod seasons;
pub mod snapshots;
pub mod status;
