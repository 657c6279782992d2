//! By which proxy a service is asked, if by any.
//!
//! What is on this machine is asked directly, whatever the environment says. Others are asked by the proxy
//! that the environment names, unless a token would go there in clear: who set the variable did not mean
//! that.

use std::net::IpAddr;

use ureq::Proxy;
use ureq::http::Uri;

use crate::cli::client::BaseUrl;
use crate::config::{NamedProxy, ProxyVariables};

/// What decides about a proxy, besides the address.
pub struct ProxyChoice<'a> {
    /// What `--proxy` says.
    pub given: Option<&'a str>,
    pub variables: &'a ProxyVariables,
    /// Whether requests have a token.
    pub has_token: bool,
}

impl ProxyChoice<'_> {
    /// # Errors
    /// In words, when the proxy cannot be used, or would be shown the token.
    pub fn of(&self, base: &BaseUrl) -> Result<Option<Proxy>, String> {
        let uri: Uri = base.text.parse().map_err(|_| format!("{:?} is not a URL", base.text))?;
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or(if base.is_https { 443 } else { 80 });
        match self.given {
            Some("none") => return Ok(None),
            Some(given) => {
                if is_on_this_machine(host) {
                    return Err(format!(
                        "{host} is this machine, which is asked without a proxy; leave --proxy away"
                    ));
                }
                return given_proxy(given).map(Some);
            }
            None => {}
        }
        if is_on_this_machine(host) {
            return Ok(None);
        }
        let Some(NamedProxy { variable, url }) = self.variables.proxy_of(base.is_https, host, port) else {
            return Ok(None);
        };
        if self.has_token && !base.is_https {
            return Err(format!(
                "the token would go in clear to the proxy that the environment variable {variable} names, because \
                 {} is without TLS; use https:// in --url, list {host} in the variable no_proxy or give --proxy none \
                 to ask the service directly, or give --proxy URL to show the token to that proxy",
                base.text
            ));
        }
        // It may hold a password, so it is not repeated.
        proxy(url).map(Some).map_err(|why| {
            format!("the proxy that the environment variable {variable} names cannot be used: {why}; --proxy none asks without one")
        })
    }
}

fn given_proxy(given: &str) -> Result<Proxy, String> {
    if given.contains('@') {
        return Err("--proxy must not contain a user or a password (there is an @ in it), because every user of this \
                    machine can read arguments; set it in the environment variable https_proxy instead"
            .to_owned());
    }
    proxy(given).map_err(|why| format!("--proxy cannot be used: {why}"))
}

fn proxy(url: &str) -> Result<Proxy, &'static str> {
    const WRONG: &str =
        "it must be a URL such as http://proxy.example:3128, or https:// for one that speaks TLS";
    let proxy = Proxy::new(url).map_err(|_| WRONG)?;
    match proxy.protocol() {
        ureq::ProxyProtocol::Http | ureq::ProxyProtocol::Https => Ok(proxy),
        _ => Err(WRONG),
    }
}

/// Whether a host is the machine itself by its name or address.
fn is_on_this_machine(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    match name.parse::<IpAddr>() {
        Ok(address) => {
            let address = address.to_canonical();
            // Linux connects what is unspecified to the machine itself.
            address.is_loopback() || address.is_unspecified()
        }
        Err(_) => name == "localhost" || name.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(url: &str, given: Option<&str>, has_token: bool) -> Result<Option<String>, String> {
        let variables = ProxyVariables::for_all("http://u:hunter2@proxy.example:3128", "exempt.example");
        let choice = ProxyChoice { given, variables: &variables, has_token };
        let proxy = choice.of(&BaseUrl::parse("--url", url).expect("a base URL"))?;
        Ok(proxy.map(|proxy| format!("{}:{}", proxy.host(), proxy.port())))
    }

    #[test]
    fn this_machine_is_asked_without_a_proxy() {
        for host in [
            "127.0.0.1",
            "127.8.9.10",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "localhost",
            "LOCALHOST",
            "x.localhost",
            "localhost.",
            "0.0.0.0",
        ] {
            for scheme in ["http", "https"] {
                let url = format!("{scheme}://{host}:8080");
                for has_token in [false, true] {
                    assert_eq!(choose(&url, None, has_token), Ok(None), "{url}");
                    assert_eq!(choose(&url, Some("none"), has_token), Ok(None), "{url}");
                }
                let said = choose(&url, Some("http://proxy"), false).expect_err("it is this machine");
                assert!(said.contains("leave --proxy away"), "{said}");
            }
        }
    }

    #[test]
    fn a_token_goes_to_a_proxy_in_clear_only_if_that_is_said() {
        let by_proxy = Ok(Some("proxy.example:3128".to_owned()));
        assert_eq!(choose("http://ranks.example", None, false), by_proxy);
        assert_eq!(choose("https://ranks.example", None, false), by_proxy);
        assert_eq!(choose("https://ranks.example", None, true), by_proxy);
        assert_eq!(choose("http://exempt.example", None, true), Ok(None));
        assert_eq!(choose("http://ranks.example", Some("none"), true), Ok(None));
        let said = Ok(Some("other.example:3129".to_owned()));
        assert_eq!(choose("http://ranks.example", Some("http://other.example:3129"), true), said);
        let refused = choose("http://ranks.example", None, true).expect_err("it would be shown");
        assert!(refused.contains("the token would go in clear to the proxy"), "{refused}");
        assert!(!refused.contains("hunter2"), "{refused}");
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_refused_without_its_password() {
        for given in ["", "socks5://proxy", "http://", "ftp://proxy", "http://u:hunter2@proxy"] {
            let refused = choose("http://ranks.example", Some(given), false).expect_err(given);
            assert!(refused.starts_with("--proxy ") && !refused.contains("hunter2"), "{refused}");
        }
    }
}
