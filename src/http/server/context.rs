//! What all connections share.

use std::sync::Arc;

use crate::connections::ClientTimeouts;
use crate::connections::Tls;
use crate::http::api::Api;
use crate::http::guard::origin::AllowedOrigins;
use crate::http::routing::router::Router;

/// What all connections share.
pub struct ServerContext {
    pub router: Router,
    /// Paths that need no token, and that anybody may read, whoever asks.
    pub open_paths: Vec<&'static str>,
    pub tls: Option<Arc<Tls>>,
    pub timeouts: ClientTimeouts,
    pub api: Arc<Api>,
    /// Requests that name this machine by a name that another one can have are refused, and all of other
    /// sites' pages, also those that only read.
    pub loopback_guard: bool,
    /// Other sites whose pages may do what the service's own may.
    pub origins: AllowedOrigins,
}
