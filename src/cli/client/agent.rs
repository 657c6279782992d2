//! What sends requests: ureq, with TLS as `tls_roots` sets it up. ureq's own TLS takes lists of authorities
//! only.

use std::fmt;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConnection, StreamOwned};
use ureq::config::Config;
use ureq::tls::{PemItem, parse_pem};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    Buffers, ConnectProxyConnector, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout,
    TcpConnector, Transport, TransportAdapter,
};
use ureq::{Agent, Error};

use crate::cli::client::BaseUrl;
use crate::regular_file::read_regular;
use crate::tls_roots::{ClientTls, SPEAKS_NO_TLS, client_tls, is_no_tls, untrusted};

/// How long a port is given to answer a request that is made only to find out whether it speaks HTTP.
const HTTP_TIMEOUT: Duration = Duration::from_secs(2);

/// An agent of ureq; https needs `tls`. The caller says by which proxy: by itself, ureq would ask the
/// environment, also for what is on this machine.
pub fn agent(config: Config, tls: Option<ClientTls>) -> Agent {
    let connector =
        ().chain(ConnectProxyConnector::default()).chain(TcpConnector::default()).chain(TlsConnector(tls));
    Agent::with_parts(config, connector, DefaultResolver::default())
}

/// Whether a request failed because the service's certificate is not accepted, or the port does not speak
/// TLS: nothing was sent then, and waiting does not help. The error's own words say what to do.
pub fn is_tls_refused(error: &Error) -> bool {
    let Error::Io(error) = error else { return false };
    error.get_ref().and_then(|inner| inner.downcast_ref::<TlsRefused>()).is_some()
}

/// What to do if a request failed because the URL's scheme is not the port's; `None` where something else is
/// wrong.
pub fn wrong_scheme(base: &BaseUrl, error: &Error) -> Option<String> {
    let inner = match error {
        Error::Io(error) => error.get_ref(),
        _ => None,
    };
    let no_tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()).is_some_and(is_no_tls);
    let refused = inner.and_then(|inner| inner.downcast_ref::<TlsRefused>());
    let refused = refused.is_some_and(|TlsRefused(why)| why == SPEAKS_NO_TLS);
    if no_tls || refused { Some(base.use_http()) } else { lacks_tls(base, error) }
}

/// What to do if a request failed because it went without TLS to a port that speaks TLS; `None` where
/// something else is wrong.
pub fn lacks_tls(base: &BaseUrl, error: &Error) -> Option<String> {
    // The service answers with an alert, which is not HTTP, or it closes the connection before the request is
    // sent.
    let may_be = match error {
        Error::Protocol(_) => true,
        Error::Io(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::UnexpectedEof
                | ErrorKind::InvalidData
        ),
        _ => false,
    };
    (may_be && base.speaks_tls()).then(|| base.use_https())
}

/// Whether a port answers a request without TLS with HTTP.
pub fn speaks_http(base: &BaseUrl) -> bool {
    let authority = base.authority();
    let ask = || {
        let address = authority.to_socket_addrs()?.next().ok_or(ErrorKind::AddrNotAvailable)?;
        let mut stream = TcpStream::connect_timeout(&address, HTTP_TIMEOUT)?;
        stream.set_read_timeout(Some(HTTP_TIMEOUT))?;
        stream.set_write_timeout(Some(HTTP_TIMEOUT))?;
        write!(stream, "GET /healthz HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\r\n")?;
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        Ok::<_, std::io::Error>(head == *b"HTTP/")
    };
    ask().unwrap_or(false)
}

/// Sets TLS up on connections to https. Without a configuration there is no such connection.
struct TlsConnector(Option<ClientTls>);

/// TLS cannot be set up, because the service's certificate is not taken or the port does not speak TLS:
/// nothing was sent, and waiting does not help.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct TlsRefused(String);

impl fmt::Debug for TlsConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsConnector")
    }
}

impl<In: Transport> Connector<In> for TlsConnector {
    type Out = Either<In, TlsTransport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        let Some(transport) = chained else { return Ok(None) };
        if !details.needs_tls() || transport.is_tls() {
            return Ok(Some(Either::A(transport)));
        }
        let config = self.0.as_ref().ok_or(Error::Tls("no trusted certificates were given for https"))?;
        let host = details.uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Error::Tls("the host in the URL is not a valid name"))?;
        let mut connection = ClientConnection::new(Arc::clone(config), name)?;
        let mut socket = TransportAdapter::new(transport.boxed(), Arc::clone(&details.current_time));
        socket.set_timeout(details.timeout);
        connection.complete_io(&mut socket).map_err(|error| tls_error(error, host))?;
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(Either::B(TlsTransport { buffers, stream: StreamOwned::new(connection, socket) })))
    }
}

fn tls_error(error: std::io::Error, host: &str) -> Error {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let no_tls = |inner: &rustls::Error| is_no_tls(inner).then(|| SPEAKS_NO_TLS.to_owned());
    match inner.and_then(|inner| untrusted(inner, host).or_else(|| no_tls(inner))) {
        Some(words) => Error::Io(std::io::Error::new(std::io::ErrorKind::InvalidData, TlsRefused(words))),
        None => Error::from(error),
    }
}

struct TlsTransport {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl fmt::Debug for TlsTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsTransport")
    }
}

impl Transport for TlsTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.get_mut().set_timeout(timeout);
        let output = self.buffers.output().get(..amount).unwrap_or_default();
        Ok(self.stream.write_all(output)?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.get_mut().set_timeout(timeout);
        let count = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

/// TLS that accepts servers by the certificates in a PEM file, or by those that the system has.
///
/// # Errors
/// When there are none; says what to do.
pub fn load_tls_roots(ca: Option<&Path>) -> Result<ClientTls, String> {
    let mut certificates: Vec<CertificateDer<'static>> = Vec::new();
    if let Some(path) = ca {
        let text = read_regular(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
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
