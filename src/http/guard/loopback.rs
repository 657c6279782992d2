//! The loopback guard: a node without tokens answers programs of its own machine, and no page of another
//! site.
//!
//! A browser lets any page send a request to 127.0.0.1, even one that writes, and says in `Origin` where the
//! page is from. If the page's own name has come to mean 127.0.0.1 (DNS rebinding), the page can read the
//! answer as well. Then `Host` is that name. Knows: these two headers. Must not know: tokens, which make both
//! harmless.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::{HeaderMap, HeaderValue, Uri, header};

/// Whether a request names this machine by a name that no other machine can have, and comes from no other
/// site.
pub fn is_local(uri: &Uri, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter().map(HeaderValue::as_bytes);
    let mut origins = headers.get_all(header::ORIGIN).iter().map(HeaderValue::as_bytes);
    uri.host().is_none_or(is_own_name) && hosts.all(is_local_host) && origins.all(is_local_origin)
}

/// Whether the value of `Host` is such a name.
pub fn is_local_host(value: &[u8]) -> bool {
    ascii(value).is_some_and(is_own_host)
}

/// Whether the value of `Origin` is a page with such a name.
pub fn is_local_origin(value: &[u8]) -> bool {
    ascii(value).is_some_and(is_own_origin)
}

fn ascii(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok().filter(|text| text.is_ascii())
}

fn is_own_origin(origin: &str) -> bool {
    origin.split_once("://").is_some_and(|(_, host)| is_own_host(host))
}

/// A name, perhaps with a port.
fn is_own_host(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        // The colons of an IPv6 address are within brackets.
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (host, ""),
    };
    port.bytes().all(|byte| byte.is_ascii_digit()) && is_own_name(name)
}

fn is_own_name(name: &str) -> bool {
    if let Some(address) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address
            .parse::<Ipv6Addr>()
            .is_ok_and(|address| IpAddr::V6(address).to_canonical().is_loopback());
    }
    if let Ok(address) = name.parse::<Ipv4Addr>() {
        return address.is_loopback();
    }
    // RFC 6761, section 6.3: these names always mean the own machine.
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uri: &str, named: &[(header::HeaderName, &str)], expect: bool) {
        let mut headers = HeaderMap::new();
        for (name, value) in named {
            headers.append(name, HeaderValue::from_str(value).expect("a good value"));
        }
        assert_eq!(is_local(&uri.parse().expect("a good path"), &headers), expect, "{uri} {named:?}");
    }

    #[test]
    fn only_loopback_names_in_host_and_origin_are_local() {
        for (host, expect) in [
            ("localhost", true),
            ("LocalHost.:8080", true),
            ("127.0.0.1", true),
            ("127.8.9.1:8080", true),
            ("[::1]", true),
            ("[::1]:8080", true),
            ("[::ffff:127.0.0.1]:80", true),
            ("ranks.localhost:80", true),
            ("evil.example", false),
            ("evil.example:8080", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("notlocalhost", false),
            ("0.0.0.0:8080", false),
            ("192.168.0.1", false),
            ("[::]:8080", false),
            ("::1", false),
            ("localhost:80x", false),
            ("", false),
        ] {
            check("/v1/boards", &[(header::HOST, host)], expect);
            let origin = format!("http://{host}");
            check("/v1/boards", &[(header::HOST, "localhost"), (header::ORIGIN, &origin)], expect);
        }
        check("/v1/boards", &[], true);
        check("/v1/boards", &[(header::HOST, "localhost"), (header::HOST, "evil.example")], false);
        check("/v1/boards", &[(header::ORIGIN, "null")], false);
        check("http://evil.example/v1/boards", &[(header::HOST, "localhost")], false);
        check("http://localhost:8080/v1/boards", &[(header::HOST, "localhost")], true);
    }
}
