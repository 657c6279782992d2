//! Which paths there are, and what becomes of a request on its way to a handler.

pub mod answering;
pub mod list;
pub mod verbs;
