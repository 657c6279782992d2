//! `ranktree openapi`: the API's description, for programs.

use std::io::Write as _;

use crate::cli::Failure;
use crate::http;

/// Prints the OpenAPI 3.1 document that a running service has at /openapi.json.
pub fn run() -> Result<(), Failure> {
    std::io::stdout().lock().write_all(http::openapi_json().as_bytes())?;
    Ok(())
}
