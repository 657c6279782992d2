//! Whether a request says where its body ends, and says it once (RFC 9112, section 6).
//!
//! hyper takes whatever ends with `chunked`, and lets chunks overrule a length. A proxy in front that reads
//! it the other way sees other requests than this server does. A compressed body would be taken for JSON.

use axum::http::{HeaderMap, header};

use crate::http::render::problem::Problem;

/// Checks the head of a request.
///
/// # Arguments
/// `names_both`: the head names both a length and chunks. hyper takes the length out of `headers` then.
///
/// # Errors
/// When the body's end is said twice, or the body has a transfer coding other than `chunked`.
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
    fn transfer_codings_other_than_one_chunked_are_refused() {
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
