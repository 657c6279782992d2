//! The first request of a command: one that is small, carries no token, and is answered at once by a service.
//! What answers otherwise is no service, or is asked by the wrong scheme: the command ends with words about
//! that, before it has sent anything that matters or begins to try again.

use std::io::Read as _;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use ureq::http::StatusCode;
use ureq::{Agent, Error, Timeout};

use crate::cli::client::agent::{is_tls_refused, lacks_tls, speaks_http, wrong_scheme};
use crate::cli::client::{BaseUrl, Failed};

/// A service answers it without looking anything up, also one that is busy.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
/// What others say by themselves when a client connects, they say at once.
const BANNER_TIMEOUT: Duration = Duration::from_millis(500);
const BANNER_BYTES: usize = 64;

/// Asks whether the process is alive.
///
/// # Arguments
/// `is_direct`: whether no proxy is between.
///
/// # Errors
/// [`Failed::Permanent`]: what is there is no service, or the URL's scheme is wrong. [`Failed::Unknown`]:
/// whatever is there does not answer. [`Failed::NotReached`]: nobody is there.
pub fn greet(agent: &Agent, base: &BaseUrl, is_direct: bool) -> Result<StatusCode, Failed> {
    let request = agent.get(format!("{}/healthz", base.text));
    let request = request.config().timeout_recv_response(Some(GREETING_TIMEOUT)).build();
    let error = match request.call() {
        // Services, and others, tell a client without TLS in HTTP.
        Ok(answer) if answer.status() == StatusCode::BAD_REQUEST && is_direct && base.speaks_tls() => {
            return Err(Failed::Permanent(base.use_https()));
        }
        Ok(answer) => return Ok(answer.status()),
        Err(error) => error,
    };
    if is_tls_refused(&error) {
        let words = wrong_scheme(base, &error).unwrap_or_else(|| error.to_string());
        return Err(Failed::Permanent(words));
    }
    if is_direct {
        if let Some(words) = lacks_tls(base, &error) {
            return Err(Failed::Permanent(words));
        }
        // A service without TLS may close the connection in answer to the greeting of TLS.
        if base.is_https && is_broken(&error) && speaks_http(base) {
            return Err(Failed::Permanent(base.use_http()));
        }
    }
    if is_no_http(&error) {
        let says = if is_direct { banner(base) } else { None };
        let says = says.map(|says| format!("; it says {says:?}")).unwrap_or_default();
        return Err(Failed::Permanent(format!(
            "what listens there does not speak HTTP{says}. A service's address is what its first line says, such as \
             http://127.0.0.1:8080; give it with --url"
        )));
    }
    Err(match error {
        Error::Timeout(Timeout::RecvResponse) => Failed::Unknown(format!(
            "it takes connections, and has not answered within {} s",
            GREETING_TIMEOUT.as_secs()
        )),
        error if is_broken(&error) => {
            Failed::Unknown(format!("it closes the connection without an answer ({error})"))
        }
        error => Failed::of_request(error),
    })
}

/// Whether the other side has sent something else than HTTP.
fn is_no_http(error: &Error) -> bool {
    matches!(error, Error::Protocol(_))
}

/// Whether a connection came to be, and ended without an answer.
fn is_broken(error: &Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let Error::Io(error) = error else { return false };
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// The first line that is said to a client that says nothing, if it is text.
fn banner(base: &BaseUrl) -> Option<String> {
    let address = base.authority().to_socket_addrs().ok()?.next()?;
    let mut stream = TcpStream::connect_timeout(&address, BANNER_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(BANNER_TIMEOUT)).ok()?;
    let mut said = [0; BANNER_BYTES];
    let length = stream.read(&mut said).ok()?;
    let text = std::str::from_utf8(said.get(..length)?).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty() && !line.contains(char::is_control)).then(|| line.to_owned())
}
