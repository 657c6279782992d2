//! Which certificates a subcommand accepts that talks HTTPS to a service: those in a file, or the system's.

use std::path::Path;

use tokio_rustls::rustls::pki_types::CertificateDer;
use ureq::tls::{PemItem, parse_pem};

use crate::tls_roots::{ClientTls, client_tls};

/// TLS that accepts servers by the certificates in a PEM file, or by those that the system has.
///
/// # Errors
/// When there are none; says what to do.
pub fn load_tls_roots(ca: Option<&Path>) -> Result<ClientTls, String> {
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
            return Err("this system has no list of trusted certificates; name a PEM file of them with --ca"
                .to_owned());
        }
    }
    client_tls(certificates)
}
