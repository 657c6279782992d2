//! Who may do what: bearer tokens, their scopes, and the boards they are confined to.
//!
//! Knows: tokens as an operator writes them, and what a grant allows. Must not know: requests, routes,
//! statuses (`http::guard::authorize` puts a grant and a route together). Reads no file: the caller hands its
//! text over.

mod grant;
mod profile_access;
mod scope;
mod secret;
mod tokens;

pub use grant::Grant;
pub use profile_access::ProfileAccess;
pub use scope::Scope;
pub use secret::{Digest, InvalidSecret, SECRET_CHARS_MIN, Secret};
pub use tokens::{ActiveTokens, CONFINED_BOARDS_MAX, InvalidTokens, NO_PATTERN, Tokens, is_pattern};
