//! Whose certificates a subcommand trusts that talks HTTPS to a service, and how it asks.

use std::io::ErrorKind;
use std::path::Path;

use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::CertificateDer;
use ureq::Agent;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::tls::{PemItem, parse_pem};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{ConnectProxyConnector, Connector as _, TcpConnector};

use crate::cli::tls_connector::{TlsConnector, TlsRefused};
use crate::trust::{ClientTls, SPEAKS_NO_TLS, SPEAKS_TLS, client_tls, is_no_tls, speaks_tls};

/// TLS with whom the certificates in a file stand for, or those that the system trusts.
///
/// # Errors
/// When there are none; says what to do.
pub fn trusting(ca: Option<&Path>) -> Result<ClientTls, String> {
    let mut certificates: Vec<CertificateDer<'static>> = Vec::new();
    if let Some(path) = ca {
        let text = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        for item in parse_pem(&text) {
            let item = item.map_err(|error| format!("{} is not PEM: {error}", path.display()))?;
            if let PemItem::Certificate(certificate) = item {
                certificates.push(CertificateDer::from(certificate.der().to_vec()));
            }
        }
        if certificates.is_empty() {
            return Err(format!("there is no certificate in {}", path.display()));
        }
    } else {
        certificates = rustls_native_certs::load_native_certs().certs;
        if certificates.is_empty() {
            return Err("this system has no list of certificates that it trusts; name a PEM file with --ca"
                .to_owned());
        }
    }
    client_tls(certificates)
}

/// What sends requests; over https only with `tls`.
pub fn agent(config: Config, tls: Option<ClientTls>) -> Agent {
    let connector =
        ().chain(ConnectProxyConnector::default()).chain(TcpConnector::default()).chain(TlsConnector(tls));
    Agent::with_parts(config, connector, DefaultResolver::default())
}

/// Whether a request failed because the service's certificate is not trusted, or the port does not speak TLS: nothing was
/// sent then, and waiting does not help. The error's own words say what to do.
pub fn is_tls_refused(error: &ureq::Error) -> bool {
    let ureq::Error::Io(error) = error else { return false };
    error.get_ref().and_then(|inner| inner.downcast_ref::<TlsRefused>()).is_some()
}

/// What to do if a request failed because the URL's scheme is not the port's; `None` where something else is wrong.
pub fn wrong_scheme(base: &str, error: &ureq::Error) -> Option<&'static str> {
    let inner = match error {
        ureq::Error::Io(error) => error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()),
        _ => None,
    };
    if inner.is_some_and(is_no_tls) { Some(SPEAKS_NO_TLS) } else { lacks_tls(base, error) }
}

/// What to do if a request failed because it went without TLS to a port that speaks TLS; `None` where something else is
/// wrong.
///
/// # Arguments
/// `base`: the service's base URL.
pub fn lacks_tls(base: &str, error: &ureq::Error) -> Option<&'static str> {
    // The service answers with an alert, which is no HTTP, or its end of the connection is gone before the request was sent.
    let may_be = match error {
        ureq::Error::Protocol(_) => true,
        ureq::Error::Io(error) => {
            matches!(
                error.kind(),
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::InvalidData
            )
        }
        _ => false,
    };
    let uri: Uri = base.parse().ok().filter(|_| may_be)?;
    let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http"))?;
    let address = format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(80));
    speaks_tls(&address).then_some(SPEAKS_TLS)
}
