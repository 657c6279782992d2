//! Connections as the system has them, for clients that do not behave.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Far above any time limit that tests set.
const TIMEOUT: Duration = Duration::from_secs(120);

pub fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the service listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("it can be set");
    stream
}

/// Sends a request on a connection of its own; all that comes back.
pub fn ask(address: &str, request: &str) -> String {
    let mut stream = connect(address);
    let _ = stream.write_all(request.as_bytes());
    rest_of(&mut stream)
}

/// A GET whose connection ends with the answer; all that comes back.
pub fn get(address: &str, path: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"))
}

/// Whatever still comes until the other side ends the connection.
pub fn rest_of(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4_096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => bytes.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // A connection that is ended with something of ours unread is reset.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => panic!("the other side does not end the connection: {error}"),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends a byte now and then until the other side ends the connection; what came back.
pub fn trickle(stream: &mut TcpStream, every: Duration) -> String {
    let started = Instant::now();
    let mut said = String::new();
    stream.set_read_timeout(Some(every)).expect("it can be set");
    let mut piece = [0; 4_096];
    loop {
        assert!(started.elapsed() < TIMEOUT, "the other side does not end the connection");
        let is_broken = stream.write_all(b"a").is_err();
        // The pace of a slow client: nothing is to be read until the service has had enough.
        match stream.read(&mut piece) {
            Ok(0) => return said,
            Ok(length) => said += &String::from_utf8_lossy(&piece[..length]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return said,
            Err(_) if is_broken => return said,
            Err(_) => {}
        }
    }
}
