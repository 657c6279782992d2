//! The origin guard: which page has sent a request, as far as its browser says so.
//!
//! A browser lets any page send requests to any address that it can reach, 127.0.0.1 among them, also ones
//! that write: a form or a `no-cors` POST asks nobody first. It says where the page is from, in
//! `Sec-Fetch-Site` and `Origin`, which pages cannot set. So a request in which neither names another origin
//! has come from a program, or from a page of this service. Knows: these two headers, and the hosts that they
//! are compared with. Must not know: routes, and what a refused request is answered.

use std::str::FromStr;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use thiserror::Error;

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// A proxy in front says here which host its client has asked. A page that sets it must ask first, by a
/// preflight request, which is refused.
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Where a page is from: `https://game.example`, in lower case, without the port that goes without saying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

/// The text is no origin.
#[derive(Debug, Error)]
#[error(
    "an origin is a scheme and a host, with the port if it is not the usual one, and without a path, such as \
     https://game.example or http://localhost:3000; name each one, as * and null would let every page in"
)]
pub struct InvalidOrigin;

impl FromStr for Origin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let text = text.to_ascii_lowercase();
        let (scheme, host) = text.split_once("://").ok_or(InvalidOrigin)?;
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_lowercase())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        let is_host = |byte: u8| byte.is_ascii_graphic() && !b"/\\?#@*,".contains(&byte);
        if !is_scheme || host.is_empty() || !host.bytes().all(is_host) {
            return Err(InvalidOrigin);
        }
        Ok(Self(format!("{scheme}://{}", without_usual_port(scheme, host))))
    }
}

/// Origins of other sites whose pages may do what the service's own may.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedOrigins(Vec<Origin>);

impl AllowedOrigins {
    pub fn new(origins: Vec<Origin>) -> Self {
        Self(origins)
    }

    /// Whether the value of `Origin` is one of them.
    fn has(&self, origin: &[u8]) -> bool {
        let origin = ascii(origin).and_then(|text| text.parse::<Origin>().ok());
        origin.is_some_and(|origin| self.0.contains(&origin))
    }

    /// Whether the value of `Host` is the host of one of them.
    pub fn have_host(&self, host: &str) -> bool {
        let is_host = |Origin(origin): &Origin| {
            origin
                .split_once("://")
                .is_some_and(|(scheme, known)| without_usual_port(scheme, host).eq_ignore_ascii_case(known))
        };
        self.0.iter().any(is_host)
    }
}

/// The page that has sent a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Page {
    /// One of this service, or none at all: a program.
    Own,
    /// One of an allowed origin: the value of `Origin`.
    Allowed(HeaderValue),
    /// Any other one.
    Foreign,
}

impl Page {
    /// # Arguments
    /// `is_tls`: the service itself speaks TLS, so that its own pages do.
    pub fn of(headers: &HeaderMap, allowed: &AllowedOrigins, is_tls: bool) -> Self {
        let (Ok(site), Ok(origin)) = (single(headers, &SITE), single(headers, &header::ORIGIN)) else {
            return Self::Foreign;
        };
        let is_own = match site.map(HeaderValue::as_bytes) {
            // The browser has compared the two, whatever a proxy in between makes of `Host`.
            Some(b"same-origin") => true,
            // `none`: a person has asked, by the address bar for instance. Extensions say so too.
            None | Some(b"none") => {
                origin.is_none_or(|origin| is_of_own_host(origin.as_bytes(), headers, is_tls))
            }
            Some(_) => false,
        };
        match origin {
            _ if is_own => Self::Own,
            Some(origin) if allowed.has(origin.as_bytes()) => Self::Allowed(origin.clone()),
            _ => Self::Foreign,
        }
    }
}

/// Whether a foreign page has led a person here, by a link, and does not see what is answered.
pub fn is_followed_link(headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|found| found == value);
    is("sec-fetch-mode", "navigate")
        && is("sec-fetch-dest", "document")
        && !headers.contains_key(header::ORIGIN)
}

/// Whether the value of `Origin` is the origin of the host that a request names.
///
/// # Arguments
/// `host`: the value of `Host`. `is_tls`: as of [`Page::of`].
fn is_of_host(origin: &[u8], host: &[u8], is_tls: bool) -> bool {
    let (Some(origin), Some(host)) = (ascii(origin), ascii(host)) else { return false };
    let Some((scheme, named)) = origin.split_once("://") else { return false };
    // What speaks no TLS may stand behind a proxy that does.
    let is_scheme = scheme == "https" || (scheme == "http" && !is_tls);
    let [named, host] = [named, host].map(|host| without_usual_port(scheme, host));
    is_scheme && !named.is_empty() && named.eq_ignore_ascii_case(host)
}

fn is_of_own_host(origin: &[u8], headers: &HeaderMap, is_tls: bool) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let forwarded = headers.get_all(&FORWARDED_HOST).iter();
    let mut forwarded = forwarded.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    hosts.any(|host| is_of_host(origin, host.as_bytes(), is_tls))
        || forwarded.any(|host| is_of_host(origin, host.trim_ascii(), false))
}

/// The one value of a header, if there is one.
///
/// # Errors
/// When there are several.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h HeaderValue>, ()> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() { Err(()) } else { Ok(first) }
}

fn without_usual_port<'h>(scheme: &str, host: &'h str) -> &'h str {
    let port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return host,
    };
    host.strip_suffix(port).unwrap_or(host)
}

fn ascii(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok().filter(|text| text.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: &str = "https://Game.example:443";

    fn page(named: &[(&'static str, &str)], is_tls: bool) -> Page {
        let mut headers = HeaderMap::new();
        for (name, value) in named {
            let value = HeaderValue::from_str(value).expect("a good value");
            headers.append(HeaderName::from_static(name), value);
        }
        let allowed = AllowedOrigins::new(vec![ALLOWED.parse().expect("an origin")]);
        Page::of(&headers, &allowed, is_tls)
    }

    #[test]
    fn only_the_services_own_pages_and_programs_are_own() {
        for (origin, host, own) in [
            ("http://localhost:8080", "localhost:8080", true),
            ("http://LOCALHOST:8080", "localhost:8080", true),
            ("http://localhost", "localhost:80", true),
            ("https://ranks.example", "ranks.example", true),
            ("https://ranks.example", "ranks.example:443", true),
            ("http://[::1]:8080", "[::1]:8080", true),
            // Another port of the machine, and another name of it.
            ("http://localhost:3000", "localhost:8080", false),
            ("http://localhost", "localhost:8080", false),
            ("http://127.0.0.1:8080", "localhost:8080", false),
            ("https://ranks.example", "ranks.example:80", false),
            ("http://ranks.example", "ranks.example:443", false),
            ("http://evil.example", "localhost:8080", false),
            ("http://localhost:8080.evil.example", "localhost:8080", false),
            ("http://localhost:8080@evil.example", "localhost:8080", false),
            ("null", "localhost:8080", false),
            ("", "localhost:8080", false),
            ("http://", "", false),
            ("file://localhost:8080", "localhost:8080", false),
        ] {
            let expect = if own { Page::Own } else { Page::Foreign };
            assert_eq!(page(&[("origin", origin), ("host", host)], false), expect, "{origin} {host}");
            // As a proxy tells it that names the service otherwise.
            let forwarded = format!("{host}, 10.0.0.1:8080");
            let by_proxy = [("origin", origin), ("host", "10.0.0.1"), ("x-forwarded-host", &forwarded)];
            assert_eq!(page(&by_proxy, false), expect, "{origin} {forwarded}");
        }
        assert_eq!(page(&[("host", "localhost")], false), Page::Own, "a program");
        let twice = [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://localhost")];
        assert_eq!(page(&twice, false), Page::Foreign);
        let clear = [("host", "localhost:8080"), ("origin", "http://localhost:8080")];
        assert_eq!(page(&clear, true), Page::Foreign, "its own pages come by TLS");
    }

    #[test]
    fn a_browser_that_compares_origins_itself_is_believed() {
        let game = HeaderValue::from_static("https://game.example");
        for (site, origin, expect) in [
            ("same-origin", None, Page::Own),
            // A proxy has put another name into `Host`.
            ("same-origin", Some("https://ranks.example"), Page::Own),
            ("none", None, Page::Own),
            ("none", Some("https://ranks.example"), Page::Foreign),
            ("same-site", None, Page::Foreign),
            ("cross-site", None, Page::Foreign),
            ("cross-site", Some("http://localhost"), Page::Foreign),
            ("cross-site", Some("https://game.example"), Page::Allowed(game.clone())),
            ("cross-site", Some("http://game.example"), Page::Foreign),
            ("Same-Origin", None, Page::Foreign),
            ("", None, Page::Foreign),
        ] {
            let mut named = vec![("host", "localhost"), ("sec-fetch-site", site)];
            named.extend(origin.map(|origin| ("origin", origin)));
            assert_eq!(page(&named, false), expect, "{site} {origin:?}");
        }
        let twice = [("host", "localhost"), ("sec-fetch-site", "none"), ("sec-fetch-site", "same-origin")];
        assert_eq!(page(&twice, false), Page::Foreign);
    }

    #[test]
    fn origins_are_read_as_browsers_write_them() {
        for (text, expect) in [
            ("https://game.example", Some("https://game.example")),
            ("HTTPS://Game.Example:443", Some("https://game.example")),
            ("http://localhost:3000", Some("http://localhost:3000")),
            ("http://[::1]:80", Some("http://[::1]")),
            ("capacitor://localhost", Some("capacitor://localhost")),
            ("https://game.example/", None),
            ("https://game.example/page", None),
            ("game.example", None),
            ("https://", None),
            ("https://a@b", None),
            ("https://*.example", None),
            ("*", None),
            ("null", None),
            ("", None),
            ("1://a", None),
            ("https://a b", None),
        ] {
            let found = text.parse::<Origin>().ok().map(|Origin(origin)| origin);
            assert_eq!(found.as_deref(), expect, "{text}");
        }
    }
}
