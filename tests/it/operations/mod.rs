//! Deployment files, dashboards, metrics, secrets and snapshots.
//!
//! - [`metrics`]: every metric of the contract, and no more series than shards and routes make
//! - [`dashboards`]: a real Prometheus finds something for every expression of every panel and rule
//! - [`deployment`]: the container files name what exists, pinned and confined
//! - [`compose`]: what the compose file starts works together, and asks everybody for a token or a password
//! - [`secrets`]: passwords in arguments, files that hold secrets, and the data are kept from others
//! - [`shutdown`]: a service ends on a signal, even if a file of credentials keeps its readers waiting
//! - [`snapshots`]: a snapshot of a node under load is restored to exactly what it states
//! - [`snapshots_refused`]: half and damaged snapshots are refused, and nothing else is touched
//! - [`snapshots_killed`]: kill -9 of the client, of the service and of restore leaves nothing half
//! - [`read_only`]: a service or a board that is read-only refuses writes by every front end
//! - [`set_back`]: a service that is set back to an earlier state refuses tokens and cursors of what it lost
//! - [`restored_by_root`]: root works in a data directory by its owner's rights, whatever the owner has put
//!   there
//! - [`root_below_others`]: the same for every path below a folder of somebody else's; and special files in
//!   the data
//! - [`open_files`]: a start raises the limit of open files
//! - [`touched_memory`]: memory that is taken at the start stays
//! - [`traces`]: a request or a job is one trace through nodes, and nothing waits for a collector

mod compose;
mod dashboards;
mod deployment;
mod metrics;
mod open_files;
mod read_only;
mod restored_by_root;
mod root_below_others;
mod secrets;
mod set_back;
mod shutdown;
mod snapshots;
mod snapshots_killed;
mod snapshots_refused;
mod touched_memory;
#[cfg(feature = "otlp")]
mod traces;
