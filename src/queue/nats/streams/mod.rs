//! The streams of a node: how they are configured, and how they are made or checked at a start.

pub mod boards_config;
pub mod jobs_config;
pub mod set_up;
