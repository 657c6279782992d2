//! TLS: a certificate and its key, which can be replaced while connections go on.
//!
//! rustls with ring. TLS 1.2 and 1.3. Reads no file: the caller hands the pair over.

use std::sync::Arc;

use parking_lot::RwLock;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{self, ServerConfig};

/// Why a certificate and a key cannot be used; the text says what to do.
#[derive(Debug, Error)]
pub enum InvalidPair {
    #[error(
        "it contains no certificate; it must hold the server's certificate in PEM, followed by those that sign it"
    )]
    NoCertificate,
    #[error("a certificate cannot be read: {0}")]
    Certificate(pem::Error),
    #[error("the private key cannot be read; it must be in PEM, without a passphrase: {0}")]
    Key(pem::Error),
    #[error("the certificate and the key cannot be used together: {0}")]
    Pair(rustls::Error),
}

/// A connection over TCP, behind TLS.
pub type TlsConnection = tokio_rustls::server::TlsStream<TcpStream>;

/// The pair in force. New connections are set up with it; open connections keep theirs.
pub struct Tls(RwLock<Arc<Configs>>);

/// The same pair for HTTP, whose clients may name the protocol, and for protocols that have no name there.
struct Configs {
    http: Arc<ServerConfig>,
    plain: Arc<ServerConfig>,
}

impl Tls {
    /// Takes a chain of certificates and the first one's key, in PEM.
    pub fn new(certificates: &[u8], key: &[u8]) -> Result<Self, InvalidPair> {
        Ok(Self(RwLock::new(Arc::new(Configs::new(certificates, key)?))))
    }

    /// Puts another pair in force.
    ///
    /// # Errors
    /// See [`InvalidPair`]; the old pair stays then.
    pub fn replace(&self, certificates: &[u8], key: &[u8]) -> Result<(), InvalidPair> {
        let configs = Arc::new(Configs::new(certificates, key)?);
        *self.0.write() = configs;
        Ok(())
    }

    /// For HTTP/1.1.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0.read().http))
    }

    /// For another protocol, whatever the client calls it.
    pub fn plain_acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0.read().plain))
    }
}

impl Configs {
    fn new(certificates: &[u8], key: &[u8]) -> Result<Self, InvalidPair> {
        let plain = server_config(certificates, key)?;
        let mut http = plain.clone();
        http.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { http: Arc::new(http), plain: Arc::new(plain) })
    }
}

fn server_config(certificates: &[u8], key: &[u8]) -> Result<ServerConfig, InvalidPair> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificates)
        .collect::<Result<_, _>>()
        .map_err(InvalidPair::Certificate)?;
    if chain.is_empty() {
        return Err(InvalidPair::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(InvalidPair::Key)?;
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(InvalidPair::Pair)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(InvalidPair::Pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unusable_pair_is_refused_with_the_reason_and_the_old_one_stays() {
        let pair = || {
            let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
            (pair.cert.pem(), pair.signing_key.serialize_pem())
        };
        let ((certificate, key), (other, other_key)) = (pair(), pair());
        let tls = Tls::new(certificate.as_bytes(), key.as_bytes()).expect("a good pair");
        let before = Arc::as_ptr(&tls.0.read());
        for (certificate, key, expect) in [
            (&certificate, &other_key, "cannot be used together"),
            (&other, &key, "cannot be used together"),
            (&key, &key, "it contains no certificate"),
            (&String::new(), &key, "it contains no certificate"),
            (&certificate, &certificate, "private key cannot be read"),
            (&certificate, &String::new(), "private key cannot be read"),
        ] {
            let error = tls.replace(certificate.as_bytes(), key.as_bytes()).expect_err(expect).to_string();
            assert!(error.contains(expect), "{error}");
        }
        assert_eq!(Arc::as_ptr(&tls.0.read()), before);
        tls.replace(other.as_bytes(), other_key.as_bytes()).expect("a good pair");
        assert_ne!(Arc::as_ptr(&tls.0.read()), before);
    }
}
