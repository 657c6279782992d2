//! What answers look like: JSON, problems, entries and lists.

pub mod fields;
pub mod json;
pub mod problem;
pub mod reply;
