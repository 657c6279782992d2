//! Whether a request says where its body ends, and says it once (RFC 9112, section 6), and which host it is
//! for (section 3.2).
//!
//! hyper takes whatever ends with `chunked`, and lets chunks overrule a length. A proxy in front that reads
//! it the other way sees other requests than this server does. A compressed body would be taken for JSON.

use axum::http::{HeaderMap, Version, header};

use crate::http::render::problem::Problem;

/// Checks the head of a request.
///
/// # Arguments
/// `is_in_doubt`: the head says more than once where the body ends, by a length or by chunks. hyper takes the
/// others out of `headers` then.
///
/// # Errors
/// When the body's end is said twice, or the body has a transfer coding other than `chunked`. When the
/// request names no host, though its version of HTTP asks for one, or several.
pub fn check(version: Version, headers: &HeaderMap, is_in_doubt: bool) -> Result<(), Problem> {
    let hosts = headers.get_all(header::HOST).iter().count();
    if hosts > 1 || (hosts == 0 && version > Version::HTTP_10) {
        return Err(Problem::not_one_host());
    }
    let fields = headers.get_all(header::TRANSFER_ENCODING);
    let mut chunked = 0;
    for coding in fields.iter().flat_map(|field| field.as_bytes().split(|byte| *byte == b',')) {
        match coding.trim_ascii() {
            [] => {}
            coding if coding.eq_ignore_ascii_case(b"chunked") => chunked += 1,
            _ => return Err(Problem::unsupported_coding()),
        }
    }
    if is_in_doubt || chunked > 1 {
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
        let host = (header::HOST, HeaderValue::from_static("h"));
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
            let mut headers = HeaderMap::from_iter([host.clone()]);
            for field in fields {
                headers.append(header::TRANSFER_ENCODING, HeaderValue::from_static(field));
            }
            assert_eq!(
                check(Version::HTTP_11, &headers, false).err().map(|problem| problem.code()),
                expect,
                "{fields:?}"
            );
        }
        let both = check(Version::HTTP_11, &HeaderMap::from_iter([host]), true);
        assert_eq!(both.err().map(|problem| problem.code()), Some("malformed"));
    }

    #[test]
    fn a_request_names_one_host_unless_its_version_is_older_than_that() {
        for (version, hosts, is_good) in [
            (Version::HTTP_11, 1, true),
            (Version::HTTP_11, 0, false),
            (Version::HTTP_11, 2, false),
            (Version::HTTP_10, 1, true),
            (Version::HTTP_10, 0, true),
            (Version::HTTP_10, 2, false),
        ] {
            let mut headers = HeaderMap::new();
            for _ in 0..hosts {
                headers.append(header::HOST, HeaderValue::from_static("h"));
            }
            let refused = check(version, &headers, false).err().map(|problem| problem.code());
            assert_eq!(refused, (!is_good).then_some("malformed"), "{version:?} with {hosts}");
        }
    }
}
