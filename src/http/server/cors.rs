//! What a browser has to be told before it lets a page of an allowed origin ask, and read the answer (CORS,
//! in the Fetch standard). Pages of this service need none of it, and other pages get none.

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, PUT, POST, DELETE");
/// How long a browser need not ask again, in seconds. Tokens that are taken back are judged with each
/// request.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");
/// Headers of answers that a page cannot read otherwise.
const EXPOSED: HeaderValue =
    HeaderValue::from_static("allow, date, ranktree-crc32c, retry-after, www-authenticate");
const VARY: HeaderValue = HeaderValue::from_static("origin");

/// Whether a browser only asks whether a page may send a request of another method or with other headers.
/// Such a request carries no token.
pub fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to that, for a page of an allowed origin.
pub fn allow(asked: &HeaderMap) -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    // It may send what a program may.
    for names in asked.get_all(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.append(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    response
}

/// Adds to an answer that pages of this origin may read it.
pub fn add(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(header::VARY, VARY);
}
