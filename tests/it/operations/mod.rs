//! Deployment files, dashboards, metrics and secrets.
//!
//! - [`metrics`]: every metric of the contract, and no more series than shards and routes make
//! - [`dashboards`]: a real Prometheus finds something for every expression of every panel and rule
//! - [`deployment`]: the container files name what exists, pinned and confined
//! - [`compose`]: what the compose file starts works together, and asks everybody for a token or a password
//! - [`secrets`]: passwords in arguments, files that hold secrets, and the data are kept from others
//! - [`open_files`]: a start raises the limit of open files

mod compose;
mod dashboards;
mod deployment;
mod metrics;
mod open_files;
mod secrets;
