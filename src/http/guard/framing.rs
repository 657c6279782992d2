//! Whether a request says, and says once, where its body ends (RFC 9112, section 6).
//!
//! hyper takes whatever ends with `chunked`, and lets chunks overrule a length. A proxy in front that reads it the other way
//! sees other requests than this server does; and a body that was compressed would be taken for JSON.

use axum::http::{HeaderMap, header};

use crate::http::render::problem::Problem;

/// # Arguments
/// `names_both`: the head says both how long the body is and that it comes in chunks. hyper takes the length out of `headers`
/// then.
///
/// # Errors
/// When the body's end is said twice, or it comes in a coding that is not understood.
pub fn check(headers: &HeaderMap, names_both: bool) -> Result<(), Problem> {
    let fields = headers.get_all(header::TRANSFER_ENCODING);
    let mut chunked = 0;
    for coding in fields.iter().flat_map(|field| field.as_bytes().split(|byte| *byte == b',')) {
        match coding.trim_ascii() {
            [] => {}
            coding if coding.eq_ignore_ascii_case(b"chunked") => chunked += 1,
            _ => return Err(Problem::unsupported_coding()),
        }
    }
    if names_both || chunked > 1 {
        return Err(Problem::body_ends_twice());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_chunks_are_understood_and_only_once() {
        for (fields, expect) in [
            (&[][..], None),
            (&["chunked"][..], None),
            (&[" CHUNKED ,"][..], None),
            (&["gzip, chunked"][..], Some("unsupported_coding")),
            (&["identity"][..], Some("unsupported_coding")),
            (&["gzip", "chunked"][..], Some("unsupported_coding")),
            (&["chunked;q=1"][..], Some("unsupported_coding")),
            (&["chunked, chunked"][..], Some("malformed")),
            (&["chunked", "chunked"][..], Some("malformed")),
        ] {
            let mut headers = HeaderMap::new();
            for field in fields {
                headers.append(header::TRANSFER_ENCODING, HeaderValue::from_static(field));
            }
            assert_eq!(check(&headers, false).err().map(|problem| problem.code()), expect, "{fields:?}");
        }
        assert_eq!(check(&HeaderMap::new(), true).err().map(|problem| problem.code()), Some("malformed"));
    }
}
