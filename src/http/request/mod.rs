//! A request as handlers see it: its path, parameters and body, and the boards that it asks.
//!
//! - `call`: a request, all of it read: from `head` and `body`
//! - `params`: parameters of the query; `json_body`, `definition`: bodies that are no jobs
//! - `ask`: how a handler asks a board; `accuracy`: how it asks for approximate ranks
//! - `columns`: lists with entries of other boards; `cursor`: the history that a cursor is of
//! - `change`: the audit log; `held_token`: the token of a request that is answered for long
//! - `job_list`: jobs
//! - `metrics`: the metrics of requests; `percent`: how paths are encoded

pub mod accuracy;
pub mod ask;
pub mod body;
pub mod call;
pub mod change;
pub mod columns;
pub mod cursor;
pub mod definition;
pub mod head;
pub mod held_token;
pub mod job_list;
pub mod json_body;
pub mod metrics;
pub mod params;
pub mod percent;
