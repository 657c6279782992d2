//! What answers look like: JSON, problems, entries and lists, server-sent events.

mod failure;
pub mod fields;
pub mod json;
pub mod problem;
pub mod repeated;
pub mod reply;
pub mod results;
pub mod server_sent;
