//! Which certificates a client accepts from a service, and what to do about one that it does not accept, in
//! words.
//!
//! Knows: the certificates that were given, by `--ca` or by the system. Must not know: what is asked of the
//! service.
//!
//! A self-signed certificate, as `openssl req -x509` makes one, says that it is an authority, and rustls
//! accepts no authority as a server. curl does if it was given that certificate, and so does this client: the
//! service's certificate has to be equal to one that was given, byte for byte. Its dates and names are
//! checked all the same, and the service proves that it has the key.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};

/// How long a port is given to answer a greeting.
const GREETING_TIMEOUT: Duration = Duration::from_secs(2);

/// How TLS to a service is set up.
pub type ClientTls = Arc<ClientConfig>;

/// A configuration that accepts certificates that one of these (in DER) has signed, and each of these itself.
///
/// # Errors
/// In words, when there are none.
pub fn client_tls(given: Vec<CertificateDer<'static>>) -> Result<ClientTls, String> {
    let mut roots = RootCertStore::empty();
    // A system's list may hold certificates that rustls cannot read; the others suffice.
    roots.add_parsable_certificates(given.iter().cloned());
    let provider = Arc::new(ring::default_provider());
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
    let by_authority = verifier.map_err(
        |_| "https needs trusted certificates, and there are none; name a PEM file of certificates with --ca",
    )?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier { by_authority, given }))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Verifies as rustls does, and accepts a given certificate as it is.
#[derive(Debug)]
struct Verifier {
    by_authority: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.by_authority.verify_server_cert(shown, intermediates, name, ocsp, now) {
            // rustls checks the dates before it, so they are good where this is the error.
            Err(error) if is_an_authority(&error) && self.given.iter().any(|given| given == shown) => {
                verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority.verify_tls12_signature(message, shown, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority.verify_tls13_signature(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authority.supported_verify_schemes()
    }
}

/// Whether the only thing wrong is that the server's certificate says it is an authority. rustls passes on
/// the error of its certificate checker as text only.
fn is_an_authority(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    other.0.to_string() == "CaUsedAsEndEntity"
}

/// What to do where a port takes TLS and was asked without.
pub const SPEAKS_TLS: &str = "this port speaks TLS: use https:// in the URL";
/// What to do where a port was asked for TLS and does not take it.
pub const SPEAKS_NO_TLS: &str = "this port does not speak TLS: use http:// in the URL";

/// Whether a port answers the greeting of TLS with TLS. It is asked once a request without TLS has failed:
/// how that fails depends on how much of the request the service had read by then.
///
/// # Arguments
/// `authority`: a host and a port.
pub fn speaks_tls(authority: &str) -> bool {
    greet(authority).unwrap_or(false)
}

fn greet(authority: &str) -> io::Result<bool> {
    let address = authority.to_socket_addrs()?.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
    let mut stream = TcpStream::connect_timeout(&address, GREETING_TIMEOUT)?;
    stream.set_read_timeout(Some(GREETING_TIMEOUT))?;
    stream.set_write_timeout(Some(GREETING_TIMEOUT))?;
    // Only the first message is sent, so that nobody needs to be trusted.
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(io::Error::other)?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::IpAddress(address.ip().into());
    let mut greeting = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    greeting.write_tls(&mut stream)?;
    stream.flush()?;
    let mut head = [0; 2];
    stream.read_exact(&mut head)?;
    // A record's kind, 20 to 23, and the first half of its version. An HTTP answer begins with letters.
    Ok(matches!(head, [20..=23, 3]))
}

/// Whether the other side of a handshake has answered with something else than TLS.
pub fn is_no_tls(error: &Error) -> bool {
    matches!(error, Error::InvalidMessage(_))
}

/// Whether a connection failed because the service's certificate is not taken.
pub fn is_untrusted(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    matches!(inner, Some(Error::InvalidCertificate(_)))
}

/// Why a service's certificate is not taken, and what to do about it; `None` where something else is wrong.
///
/// # Arguments
/// `host`: the host that the client asked for.
pub fn untrusted(error: &Error, host: &str) -> Option<String> {
    let Error::InvalidCertificate(why) = error else { return None };
    Some(match why {
        CertificateError::NotValidForName => not_for(host, &[]),
        CertificateError::NotValidForNameContext { presented, .. } => not_for(host, presented),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("{host}'s certificate has expired; give the service a new one with --tls-cert")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("{host}'s certificate is not valid yet; check the clocks of both machines")
        }
        _ if is_an_authority(error) => format!(
            "{host}'s certificate is self-signed, and is none of the trusted certificates; name a file that \
             holds that very certificate with --ca"
        ),
        CertificateError::UnknownIssuer => format!(
            "{host}'s certificate is not signed by a trusted authority; name a PEM file with --ca that \
             holds the certificate of the authority, or the certificate itself if it is self-signed"
        ),
        other => format!("{host}'s certificate was refused: {other}; --ca names the certificates to trust"),
    })
}

fn not_for(host: &str, names: &[String]) -> String {
    let kind = if host.parse::<IpAddr>().is_ok() { "IP" } else { "DNS" };
    let is_for = match names {
        // The common name does not count: of today's clients only curl falls back to it.
        [] => "has no subjectAltName".to_owned(),
        // `DnsName("localhost")`, `IpAddress(127.0.0.1)`.
        names => {
            let bare = names.iter().map(|name| {
                let inside = name.split_once('(').map_or(name.as_str(), |(_, inside)| inside);
                inside.trim_end_matches(')').trim_matches('"')
            });
            format!("names only {}", bare.collect::<Vec<_>>().join(", "))
        }
    };
    format!(
        "{host}'s certificate {is_for}, so it is not valid for {host}; connect by a name that the \
         certificate has, or make one for this name and give it to the service, for example: openssl req \
         -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN={host} -addext subjectAltName={kind}:{host} \
         -keyout key.pem -out cert.pem"
    )
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

    use super::*;

    /// A self-signed certificate as openssl makes it: an authority.
    fn certificate(names: &[&str], years: (i32, i32)) -> CertificateDer<'static> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).expect("good names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        (params.not_before, params.not_after) = (date_time_ymd(years.0, 1, 1), date_time_ymd(years.1, 1, 1));
        let key = KeyPair::generate().expect("a key can be made");
        params.self_signed(&key).expect("it can sign itself").der().clone()
    }

    fn verify(given: &CertificateDer<'static>, shown: &CertificateDer<'_>, host: &str) -> Result<(), String> {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(given.clone()).expect("it can be read");
        let by_authority = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let by_authority = by_authority.expect("somebody is trusted");
        let verifier = Verifier { by_authority, given: vec![given.clone()] };
        let name = ServerName::try_from(host.to_owned()).expect("a name");
        // The middle of 2026.
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_782_000_000));
        let verified = verifier.verify_server_cert(shown, &[], &name, &[], now);
        verified.map(|_| ()).map_err(|error| untrusted(&error, host).expect("it is about the certificate"))
    }

    #[test]
    fn a_self_signed_certificate_is_accepted_if_it_was_given_and_its_names_and_dates_are_good() {
        let names = ["localhost", "127.0.0.1"];
        let given = certificate(&names, (2026, 2027));
        for host in names {
            assert_eq!(verify(&given, &given, host), Ok(()), "{host}");
        }
        for (given, shown, host, expect) in [
            // The same names, signed by another key.
            (
                given.clone(),
                certificate(&names, (2026, 2027)),
                "localhost",
                "none of the trusted certificates",
            ),
            (
                given.clone(),
                given,
                "ranks.example",
                "names only localhost, 127.0.0.1, so it is not valid for ranks.example",
            ),
        ] {
            let said = verify(&given, &shown, host).expect_err(expect);
            assert!(said.contains(expect), "{said}");
        }
        let (old, new) = (certificate(&names, (2024, 2025)), certificate(&names, (2028, 2029)));
        assert!(
            verify(&old, &old, "localhost").expect_err("its time is up").contains("certificate has expired")
        );
        assert!(verify(&new, &new, "localhost").expect_err("too early").contains("not valid yet"));
        let nameless = certificate(&[], (2026, 2027));
        let said = verify(&nameless, &nameless, "10.0.0.5").expect_err("it names nobody");
        assert!(said.contains("has no subjectAltName"), "{said}");
        assert!(said.contains("-addext subjectAltName=IP:10.0.0.5 "), "{said}");
    }

    #[test]
    fn a_configuration_without_certificates_is_refused() {
        assert!(client_tls(Vec::new()).expect_err("nobody is").contains("--ca"));
        assert!(client_tls(vec![certificate(&["a"], (2026, 2027))]).is_ok());
    }
}
