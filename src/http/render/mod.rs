//! What answers look like: JSON, problems, entries and lists.

pub mod json;
pub mod problem;
pub mod reply;
pub mod views;
