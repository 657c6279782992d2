//! The API over HTTP: requests in, JSON out.
//!
//! The only module that names axum. A request becomes a [`call::Call`]; a handler per route, in one file per
//! resource, turns it into a [`reply::Reply`] or an [`error::Problem`]. Nothing here knows how ranks come about
//! (`query`) or what a job does (`writer`). Each route is added together with its description, which makes the OpenAPI
//! document (`openapi`).

mod api;

mod call;
mod error;
mod in_work;
mod json;
mod params;
mod reply;
mod views;

mod boards;
mod definition;
mod jobs;
mod lists;
mod members;
mod probes;
mod ranks;
mod rejects;
mod removals;
mod results;
mod status;
mod writes;

mod authorize;
mod local;
mod new_boards;
mod openapi;
mod refusals;
mod router;
mod routes;
mod verbs;

mod ahead;
mod connection;
mod framing;
mod places;
mod pulse;
mod server;
mod socket;
mod threads;
mod tls;

#[cfg(test)]
mod tests;

pub use api::{Api, Limits};
pub use definition::json as definition_json;
pub use openapi::json as openapi_json;
pub use places::ConnectionLimits;
pub use pulse::Patience;
pub use router::router;
pub use server::{Serving, serve};
pub use tls::{InvalidPair, Tls};
