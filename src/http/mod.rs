//! The API over HTTP: requests in, JSON out.
//!
//! The only module that names axum. A request becomes a [`request::call::Call`]; a handler per route, in one
//! file per resource, turns it into a [`render::reply::Reply`] or a [`render::problem::Problem`]. Nothing
//! here knows how ranks come about (`query`), what a job does (`writer`), or where shards and queues are
//! (`operations`). Each route is added together with
//! its description, which makes the OpenAPI document (`openapi`).

mod render;

mod guard;

mod api;

mod request;

mod resources;

mod openapi;
mod page;
mod routing;

mod server;

#[cfg(test)]
mod tests;

pub use api::Api;
pub use guard::limits::Limits;
pub use guard::origin::{AllowedOrigins, InvalidOrigin, Origin};
pub use guard::watchers::WatcherLimits;
pub use render::fields::score as write_score;
pub use render::problem::Problem;
pub use render::reply::Reply;
pub use render::results::reply as reply_of_jobs;
pub use request::body::BODY_BYTES_MAX;
pub use request::definition::{json as definition_json, of_json as definition_of_json, offset_minutes};
pub use request::job_list::{REQUEST_ID_BYTES_MAX, check_numbers, decode as decode_jobs, identify};
pub use request::params::invalid_value;
pub use resources::scrapes::RenderMetrics;
pub use routing::routes::{openapi_json, router};
pub use server::listener::{Serving, serve};
