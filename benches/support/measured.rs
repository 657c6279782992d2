//! What a load generator says of a server.

use std::time::Duration;

/// What a load generator says of a run.
#[derive(Clone, Copy)]
pub struct Measured {
    pub per_second: f64,
    pub p50: Duration,
    pub p99: Duration,
}
