//! Whose certificates a subcommand trusts that talks HTTPS to a service.

use std::path::Path;

use ureq::tls::{Certificate, PemItem, parse_pem};

/// The certificates in a file, or those that the system trusts.
///
/// # Errors
/// When there are none; says what to do.
pub fn trusted(ca: Option<&Path>) -> Result<Vec<Certificate<'static>>, String> {
    let mut certificates: Vec<Certificate<'static>> = Vec::new();
    if let Some(path) = ca {
        let text = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        for item in parse_pem(&text) {
            let item = item.map_err(|error| format!("{} is not PEM: {error}", path.display()))?;
            if let PemItem::Certificate(certificate) = item {
                certificates.push(certificate);
            }
        }
        if certificates.is_empty() {
            return Err(format!("there is no certificate in {}", path.display()));
        }
    } else {
        let found = rustls_native_certs::load_native_certs();
        certificates.extend(found.certs.iter().map(|der| Certificate::from_der(der).to_owned()));
        if certificates.is_empty() {
            return Err("this system has no list of certificates that it trusts".to_owned());
        }
    }
    Ok(certificates)
}

/// Their bytes, for who does not use ureq.
pub fn der(certificates: &[Certificate<'static>]) -> Vec<Vec<u8>> {
    certificates.iter().map(|certificate| certificate.der().to_vec()).collect()
}

/// Whether a request failed because the service's certificate is not trusted: nothing was sent then, and waiting does not
/// help.
pub fn is_untrusted(error: &ureq::Error) -> bool {
    // rustls says it through the connection; its own words are all that is left of it there.
    let ureq::Error::Io(error) = error else { return false };
    error.kind() == std::io::ErrorKind::InvalidData
        && error.to_string().starts_with("invalid peer certificate")
}
