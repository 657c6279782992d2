//! What all connections share.

use std::sync::Arc;

use axum::Router;

use crate::http::api::Api;
use crate::http::routing::direct::DirectRoutes;
use crate::http::server::timeouts::ClientTimeouts;
use crate::http::server::tls::Tls;

/// What all connections share.
pub struct ServerContext {
    pub router: Router,
    /// Those of its routes that a connection may answer by itself.
    pub direct: DirectRoutes,
    /// Paths that need no token, and that the loopback guard lets through.
    pub open_paths: Vec<&'static str>,
    pub tls: Option<Arc<Tls>>,
    pub timeouts: ClientTimeouts,
    pub api: Arc<Api>,
    /// Requests of pages of other sites are refused.
    pub loopback_guard: bool,
}
