//! Which paths there are, and what happens to a request before and after its handler.
//!
//! The list of all routes is in `list`.

pub mod answering;
pub mod list;
pub mod routes;
pub mod unrouted;
pub mod verb_dispatch;
pub mod verbs;
