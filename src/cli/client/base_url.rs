//! The base URL of a service, as an argument gives it.
//!
//! An argument is seen by everybody on the machine, and what is wrong with it is printed: so a URL with a
//! user and a password is not taken, and not repeated.

use ureq::http::Uri;

use crate::tls_roots::{SPEAKS_NO_TLS, SPEAKS_TLS, speaks_tls};

/// What a path ends with that is the API's own, and not that of a proxy in front of a service.
const OF_THE_API: [&str; 8] = ["v1", "boards", "jobs", "status", "readyz", "healthz", "metrics", "docs"];

/// A service's base URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    /// Without a slash at its end.
    pub text: String,
    pub is_https: bool,
}

impl BaseUrl {
    /// # Arguments
    /// `flag`: what it was given as.
    ///
    /// # Errors
    /// In words, when it is none that can be connected to.
    pub fn parse(flag: &str, text: &str) -> Result<Self, String> {
        if text.contains('@') {
            return Err(format!(
                "{flag} must not contain a user or a password (there is an @ in it), because every user \
                 of this machine can read arguments; give a token in a file or in the environment instead"
            ));
        }
        if text.contains(['?', '#']) {
            return Err(format!(
                "{flag} must be a service's base URL, without a query or a fragment (there is a ? or a # \
                 in it); leave that part away"
            ));
        }
        let text = text.trim_end_matches('/');
        let uri = text.parse::<Uri>().ok();
        let is_https = match uri.as_ref().and_then(Uri::scheme_str) {
            Some("http") => false,
            Some("https") => true,
            _ => {
                return Err(format!(
                    "{flag} must be a URL that begins with http:// or https://; got {text:?}"
                ));
            }
        };
        let last = uri.as_ref().map(Uri::path).and_then(|path| path.rsplit('/').next());
        if let Some(path) = OF_THE_API.into_iter().find(|path| Some(*path) == last) {
            return Err(format!(
                "{flag} must be a service's base URL, to which the paths of the API are added; leave \
                 /{path} away"
            ));
        }
        Ok(Self { text: text.to_owned(), is_https })
    }

    /// Host and port.
    pub fn authority(&self) -> String {
        let uri = self.text.parse::<Uri>().ok();
        let authority = uri.as_ref().and_then(Uri::authority);
        authority.map_or_else(String::new, |authority| {
            let port = authority.port_u16().unwrap_or(if self.is_https { 443 } else { 80 });
            format!("{}:{port}", authority.host())
        })
    }

    /// Whether the port speaks TLS although the URL says that it does not.
    pub fn speaks_tls(&self) -> bool {
        !self.is_https && speaks_tls(&self.authority())
    }

    /// What to do about a port that speaks TLS, of a URL that says that it does not.
    pub fn use_https(&self) -> String {
        self.with_scheme(SPEAKS_TLS, "http://", "https://")
    }

    /// What to do about a port that does not speak TLS, of a URL that says that it does.
    pub fn use_http(&self) -> String {
        self.with_scheme(SPEAKS_NO_TLS, "https://", "http://")
    }

    /// The words, and the right URL, with the port that was asked.
    fn with_scheme(&self, words: &str, wrong: &str, right: &str) -> String {
        let scheme_bytes = self.text.len().min(wrong.len());
        let rest = self.text.get(scheme_bytes..).unwrap_or_default();
        let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or_default();
        format!("{words}: {right}{}{path}", self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_has_a_scheme_and_no_password() {
        for (text, base, is_https) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080", false),
            ("https://ranks.example/eu/", "https://ranks.example/eu", true),
        ] {
            let url = BaseUrl::parse("--url", text).expect("a good one");
            assert_eq!((url.text.as_str(), url.is_https), (base, is_https));
        }
        for (text, right) in [
            ("http://127.0.0.1:8443", "https://127.0.0.1:8443"),
            ("http://[::1]:8443/eu/", "https://[::1]:8443/eu"),
            ("http://ranks.example/eu", "https://ranks.example:80/eu"),
        ] {
            let said = BaseUrl::parse("--url", text).expect("a good one").use_https();
            assert_eq!(said, format!("this port speaks TLS: use https:// in the URL: {right}"));
        }
        let said = BaseUrl::parse("--url", "https://127.0.0.1:8080").expect("a good one").use_http();
        assert_eq!(said, "this port does not speak TLS: use http:// in the URL: http://127.0.0.1:8080");
        for bad in ["", "127.0.0.1:8080", "ftp://ranks.example", "http://"] {
            let said = BaseUrl::parse("--url", bad).expect_err(bad);
            assert!(
                said.starts_with("--url must be a URL that begins with http:// or https://; got "),
                "{said}"
            );
        }
        for (more, path) in
            [("http://h:1/v1", "/v1"), ("http://h/eu/v1/", "/v1"), ("https://h/readyz", "/readyz")]
        {
            let said = BaseUrl::parse("--url", more).expect_err(more);
            assert!(said.ends_with(&format!("leave {path} away")), "{said}");
        }
        // One may carry a secret, too.
        for more in ["http://h/?token=hunter2", "http://h#hunter2"] {
            let said = BaseUrl::parse("--url", more).expect_err(more);
            assert!(said.contains("without a query or a fragment") && !said.contains("hunter2"), "{said}");
        }
        for secret in ["http://u:hunter2@h", "htp://u:hunter2@h", "u:hunter2@h:8080", "https://hunter2@h/x"] {
            let said = BaseUrl::parse("--url", secret).expect_err(secret);
            assert!(said.starts_with("--url must not contain a user") && !said.contains("hunter2"), "{said}");
        }
    }
}
