//! The loopback guard: a node without tokens is asked by a name that only its own machine has.
//!
//! A page whose own name has come to mean 127.0.0.1 (DNS rebinding) is of the same origin as this node, to
//! its browser: it may send what it likes, and read the answers. Then `Host` is that name. Knows: that
//! header. Must not know: where pages are from (`origin`), and tokens, which make all of this harmless.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::{HeaderMap, Uri, header};

use crate::http::guard::origin::AllowedOrigins;

/// Whether a request names this machine by a name that no other machine can have, or by that of a site whose
/// pages are allowed to ask.
pub fn is_local(uri: &Uri, headers: &HeaderMap, allowed: &AllowedOrigins) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    uri.authority().is_none_or(|authority| is_local_host(authority.as_str().as_bytes(), allowed))
        && hosts.all(|host| is_local_host(host.as_bytes(), allowed))
}

/// Whether the value of `Host` is such a name.
fn is_local_host(value: &[u8], allowed: &AllowedOrigins) -> bool {
    let host = std::str::from_utf8(value).ok().filter(|text| text.is_ascii());
    host.is_some_and(|host| is_own_host(host) || allowed.have_host(host))
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
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn check(uri: &str, named: &[(HeaderName, &str)], expect: bool) {
        let mut headers = HeaderMap::new();
        for (name, value) in named {
            headers.append(name, HeaderValue::from_str(value).expect("a good value"));
        }
        let allowed = AllowedOrigins::new(vec!["https://ranks.example".parse().expect("an origin")]);
        assert_eq!(
            is_local(&uri.parse().expect("a good path"), &headers, &allowed),
            expect,
            "{uri} {named:?}"
        );
    }

    #[test]
    fn only_loopback_names_and_hosts_of_allowed_sites_are_local() {
        for (host, expect) in [
            ("localhost", true),
            ("LocalHost.:8080", true),
            ("127.0.0.1", true),
            ("127.8.9.1:8080", true),
            ("[::1]", true),
            ("[::1]:8080", true),
            ("[::ffff:127.0.0.1]:80", true),
            ("ranks.localhost:80", true),
            ("ranks.example", true),
            ("Ranks.example:443", true),
            ("ranks.example:8080", false),
            ("more.ranks.example", false),
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
        }
        check("/v1/boards", &[], true);
        check("/v1/boards", &[(header::HOST, "localhost"), (header::HOST, "evil.example")], false);
        check("http://evil.example/v1/boards", &[(header::HOST, "localhost")], false);
        check("http://localhost:8080/v1/boards", &[(header::HOST, "localhost")], true);
    }
}
