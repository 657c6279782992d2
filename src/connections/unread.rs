//! How much of its answers the system keeps for a client that does not read them, and for how long.
//!
//! Linux lets what is sent on a connection grow to megabytes, outside of the service's own limits, and keeps
//! it when the service has closed the connection, for as long as the client's end stays open. So clients that
//! ask and do not read would take gigabytes of the system's memory.
//!
//! Knows: the options of a listening socket, which the connections that it accepts take over. Must not know:
//! when the service itself closes a connection (`timeouts`).

use std::os::fd::AsFd;
use std::time::Duration;

/// What the system takes of an answer beyond what is on its way to the client: enough to send without pauses
/// over any distance, as what is on its way has no such limit.
#[cfg(target_os = "linux")]
const UNSENT_MAX: libc::c_int = 256 << 10;
/// A connection is given up whose client has acknowledged nothing for so long, also after it was closed.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(60);

/// Limits the connections that a socket will accept. Where the system has no such options, they stay as they
/// are.
pub fn limit(listener: &impl AsFd) {
    let limited = limit_unsent(listener);
    let timeout = u32::try_from(UNACKNOWLEDGED_MAX.as_millis()).unwrap_or(u32::MAX);
    let timed = rustix::net::sockopt::set_tcp_user_timeout(listener, timeout).map_err(std::io::Error::from);
    if let Err(error) = limited.and(timed) {
        tracing::debug!(%error, "the system keeps answers that clients do not read");
    }
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "no crate that is used has this option")]
fn limit_unsent(listener: &impl AsFd) -> std::io::Result<()> {
    use std::os::fd::AsRawFd as _;

    let size = libc::socklen_t::try_from(size_of::<libc::c_int>()).map_err(std::io::Error::other)?;
    // SAFETY: the kernel reads `size` bytes behind the pointer, and keeps no pointer.
    let result = unsafe {
        libc::setsockopt(
            listener.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_NOTSENT_LOWAT,
            std::ptr::from_ref(&UNSENT_MAX).cast(),
            size,
        )
    };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(not(target_os = "linux"))]
fn limit_unsent(_: &impl AsFd) -> std::io::Result<()> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{ErrorKind, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// What is taken for a client that reads nothing, in bytes.
    fn taken(listener: &TcpListener) -> usize {
        let _client = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let (mut stream, _) = listener.accept().expect("somebody has connected");
        stream.set_nonblocking(true).expect("it is a socket");
        let piece = vec![0; 64 << 10];
        let mut taken = 0;
        loop {
            match stream.write(&piece) {
                Ok(written) => taken += written,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    return taken;
                }
            }
        }
    }

    #[test]
    fn little_is_taken_for_a_client_that_does_not_read() {
        let [limited, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
        limit(&limited);
        let (limited, other) = (taken(&limited), taken(&other));
        assert!(limited < 1 << 20, "{limited} bytes, without a limit {other}");
    }

    #[test]
    fn connections_are_given_up_that_acknowledge_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        limit(&listener);
        let _client = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let (stream, _) = listener.accept().expect("somebody has connected");
        assert_eq!(rustix::net::sockopt::tcp_user_timeout(&stream), Ok(60_000));
    }
}
