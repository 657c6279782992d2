//! The metrics of requests.

use axum::http::StatusCode;
use metrics::{Counter, Histogram};

use crate::metrics::{HTTP_REQUEST_SECONDS, HTTP_RESPONSES_TOTAL, READ_SECONDS, READ_SHARDS};

/// The route, in metrics, of requests that reach none.
pub const NO_ROUTE: &str = "none";

/// A route's metrics, registered once.
pub struct RouteMetrics {
    pub request_seconds: Histogram,
    pub responses: Responses,
    pub read_seconds: Histogram,
    pub read_shards: Histogram,
}

/// A route's answers, counted by class of status, from 2xx.
#[derive(Clone)]
pub struct Responses([Counter; 4]);

impl RouteMetrics {
    pub fn new(route: &'static str) -> Self {
        Self {
            request_seconds: metrics::histogram!(HTTP_REQUEST_SECONDS, "route" => route),
            responses: Responses::new(route),
            read_seconds: metrics::histogram!(READ_SECONDS, "route" => route),
            read_shards: metrics::histogram!(READ_SHARDS, "route" => route),
        }
    }
}

impl Responses {
    pub fn new(route: &'static str) -> Self {
        let classes = ["2xx", "3xx", "4xx", "5xx"];
        Self(classes.map(|class| metrics::counter!(HTTP_RESPONSES_TOTAL, "route" => route, "class" => class)))
    }

    /// Counts an answer.
    pub fn note(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).checked_sub(2);
        if let Some(counter) = class.and_then(|class| self.0.get(class)) {
            counter.increment(1);
        }
    }
}
