//! Whose certificates a subcommand trusts that talks HTTPS to a service, and how it asks.

use std::path::Path;

use tokio_rustls::rustls::pki_types::CertificateDer;
use ureq::Agent;
use ureq::config::Config;
use ureq::tls::{PemItem, parse_pem};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{ConnectProxyConnector, Connector as _, TcpConnector};

use crate::cli::client::tls_connector::{TlsConnector, Untrusted};
use crate::tls_roots::{ClientTls, client_tls};

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

/// Whether a request failed because the service's certificate is not trusted: nothing was sent then, and waiting does not
/// help. The error's own words say what to do.
pub fn is_untrusted(error: &ureq::Error) -> bool {
    let ureq::Error::Io(error) = error else { return false };
    error.get_ref().and_then(|inner| inner.downcast_ref::<Untrusted>()).is_some()
}
