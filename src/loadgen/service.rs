//! A service to load over HTTP: its address, the certificates that are accepted, the token, and how a
//! connection is opened.
//!
//! Must not know: what is asked on a connection (`http`).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HeaderValue;
use hyper::rt::{Read, Write};
use hyper::{Uri, http};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::loadgen::tally::OperationError;
use crate::tls_roots::{ClientTls, SPEAKS_NO_TLS, SPEAKS_TLS, is_no_tls, speaks_tls, untrusted};

/// For the connection, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Before the next try to connect.
const CONNECT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Clone)]
pub struct Service {
    /// Host and port.
    authority: String,
    host: HeaderValue,
    /// What paths begin with: empty, or `/ranks`.
    base: String,
    authorization: Option<HeaderValue>,
    /// For https.
    tls: Option<Tls>,
}

#[derive(Debug, Clone)]
struct Tls {
    config: ClientTls,
    /// The name that the certificate must be for.
    name: ServerName<'static>,
}

impl Service {
    /// `url` is `http://host:port` or `https://host:port`, perhaps with a path; `token` is sent as a bearer
    /// token; `tls` is for https.
    ///
    /// # Errors
    /// In words, when it cannot be used.
    pub fn new(url: &str, token: Option<&str>, tls: Option<ClientTls>) -> Result<Self, String> {
        let wrong = || format!("{url:?} is not a URL such as http://127.0.0.1:8080 or https://ranks.example");
        let uri: Uri = url.trim_end_matches('/').parse().map_err(|_| wrong())?;
        let port = match uri.scheme_str() {
            Some("http") => 80,
            Some("https") => 443,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
        let authority = authority.ok_or_else(wrong)?;
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| wrong())?;
        let tls = if uri.scheme() == Some(&http::uri::Scheme::HTTPS) {
            let name = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
            Some(Tls {
                config: tls.ok_or("no trusted certificates were given for https")?,
                name: ServerName::try_from(name).map_err(|_| wrong())?,
            })
        } else {
            None
        };
        let authority = format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(port));
        let authorization = token.map(|token| {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| "the token has characters that an HTTP header cannot hold")?;
            value.set_sensitive(true);
            Ok::<_, String>(value)
        });
        let base = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { authority, host, base, authorization: authorization.transpose()?, tls })
    }

    /// Another node of the same service, which takes the same token, and which has a certificate of the same
    /// authority.
    ///
    /// # Arguments
    /// `url`: as nodes say it of themselves.
    ///
    /// # Errors
    /// In words, when it cannot be used. The token is not sent without TLS to a node of a service with TLS.
    pub fn at(&self, url: &str) -> Result<Self, String> {
        if self.tls.is_some() && !url.starts_with("https://") {
            return Err("it has no TLS".to_owned());
        }
        let config = self.tls.as_ref().map(|tls| Arc::clone(&tls.config));
        Ok(Self { authorization: self.authorization.clone(), ..Self::new(url, None, config)? })
    }

    pub fn host(&self) -> &HeaderValue {
        &self.host
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    pub fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    /// Scheme, host and port.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.authority)
    }

    /// What to do if it is asked without TLS and speaks TLS; `None` where something else is wrong.
    pub async fn lacks_tls(&self) -> Option<&'static str> {
        let authority = self.authority.clone();
        let speaks = tokio::task::spawn_blocking(move || speaks_tls(&authority));
        (self.tls.is_none() && speaks.await.unwrap_or(false)).then_some(SPEAKS_TLS)
    }

    /// # Errors
    /// When there is no connection; what to do is in its words.
    pub async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, OperationError> {
        let opened = timeout(CONNECT_TIMEOUT, self.open()).await;
        opened.unwrap_or_else(|_| Err(NO_ANSWER.to_owned())).map_err(|why| OperationError {
            pause: Some(CONNECT_PAUSE),
            ..OperationError::new("connect", format!("cannot connect to {}: {why}", self.url()))
        })
    }

    async fn open(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let refused = |error: std::io::Error| format!("{error}; is `ranktree serve` running there?");
        let stream = TcpStream::connect(&self.authority).await.map_err(refused)?;
        stream.set_nodelay(true).map_err(refused)?;
        let Some(Tls { config, name }) = &self.tls else {
            return speak(TokioIo::new(stream)).await;
        };
        let connector = TlsConnector::from(Arc::clone(config));
        let stream = connector.connect(name.clone(), stream).await;
        let host = name.to_str();
        speak(TokioIo::new(stream.map_err(|error| no_tls(&error, &host))?)).await
    }
}

const NO_ANSWER: &str = "no answer; is `ranktree serve` running there?";

/// Begins with HTTP on a stream.
async fn speak<S>(stream: S) -> Result<SendRequest<Full<Bytes>>, String>
where
    S: Read + Write + Send + Unpin + 'static,
{
    let (sender, connection) = handshake(stream).await.map_err(|error| error.to_string())?;
    // It ends when the sender is dropped, or the service closes it; either is seen at the next request.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

/// What rustls says, and what to do about it.
fn no_tls(error: &std::io::Error, host: &str) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    if let Some(words) = inner.and_then(|inner| untrusted(inner, host)) {
        return words;
    }
    match inner {
        Some(error) if is_no_tls(error) => SPEAKS_NO_TLS.to_owned(),
        _ => format!("TLS cannot be set up: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls_roots::client_tls;

    #[test]
    fn addresses_are_checked() {
        let pair = rcgen::generate_simple_self_signed(["ranks.example".to_owned()]).expect("a certificate");
        let tls = client_tls(vec![pair.cert.der().clone()]).ok();
        for (url, authority, shown) in [
            ("http://ranks.example/base/", "ranks.example:80", "http://ranks.example:80"),
            ("https://ranks.example/base", "ranks.example:443", "https://ranks.example:443"),
            ("https://[::1]:8443/base", "[::1]:8443", "https://[::1]:8443"),
        ] {
            let service = Service::new(url, Some("hunter2"), tls.clone()).expect("an address");
            assert_eq!((service.authority.as_str(), service.base()), (authority, "/base"));
            assert_eq!(service.url(), shown);
            assert!(!format!("{service:?}").contains("hunter2"), "a token is not for logs");
            let scheme = if url.starts_with("https:") { "https" } else { "http" };
            let other = service.at(&format!("{scheme}://other.example:81")).expect("an address");
            assert_eq!((other.url(), other.base()), (format!("{scheme}://other.example:81"), ""));
            assert_eq!(other.authorization(), service.authorization());
            let is_taken = service.at("http://other.example:81").is_ok();
            assert_eq!(is_taken, scheme == "http", "what TLS has hidden stays hidden");
        }
        for bad in ["", "127.0.0.1:8080", "ftp://ranks.example", "http://", "http://me:pw@ranks.example"] {
            assert!(Service::new(bad, None, tls.clone()).is_err(), "{bad}");
        }
        let nobody = Service::new("https://ranks.example", None, None).expect_err("nobody is trusted");
        assert!(nobody.contains("https"), "{nobody}");
        assert!(Service::new("http://ranks.example", None, None).is_ok());
        assert!(Service::new("http://ranks.example", Some("a\nb"), None).is_err(), "no header has that");
    }
}
