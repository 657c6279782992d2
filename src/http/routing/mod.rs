//! Which paths there are, and what happens to a request before and after its handler.
//!
//! - `list`: every route
//! - `routes`: makes the router of them
//! - `answering`: a request on its way through its route: authorized, read, admitted, answered, measured
//! - `unrouted`: requests that no route takes
//! - `verbs`, `verb_dispatch`: verbs behind a board's name, such as `:clear`

pub mod answering;
pub mod list;
pub mod routes;
pub mod unrouted;
pub mod verb_dispatch;
pub mod verbs;
