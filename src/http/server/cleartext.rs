//! Answers a client that speaks HTTP to a port of TLS: what rustls would send it is no HTTP, and clients call
//! that by other names.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The answer, in full: no request is read.
const ANSWER: &str = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\n\
                      content-length: 152\r\nconnection: close\r\n\r\n\
                      {\"type\":\"urn:ranktree:problem:malformed\",\"title\":\"Bad Request\",\"status\":400,\
                      \"code\":\"malformed\",\"detail\":\"this port speaks TLS: use https:// in the URL\"}";
/// What is still read of the request, and how long that is waited for: a socket that is closed before all was
/// read resets the connection, and the client would lose the answer.
const READ_MAX: u64 = 64 << 10;
const READ_TIME: Duration = Duration::from_secs(1);

/// Whether the first byte of a connection is a letter, as that of an HTTP request is. A record of TLS begins
/// with a control character. Consumes nothing.
pub async fn is_cleartext(stream: &TcpStream) -> bool {
    let mut first = [0];
    matches!(stream.peek(&mut first).await, Ok(1)) && first.iter().all(u8::is_ascii_uppercase)
}

/// Tells the client to use https, and closes the connection.
pub async fn answer(mut stream: TcpStream) {
    // The client may have left already.
    if stream.write_all(ANSWER.as_bytes()).await.is_err() || stream.shutdown().await.is_err() {
        return;
    }
    let mut rest = stream.take(READ_MAX);
    let mut nowhere = tokio::io::sink();
    let read = tokio::io::copy(&mut rest, &mut nowhere);
    let _ = tokio::time::timeout(READ_TIME, read).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_has_the_length_that_it_states() {
        let (head, body) = ANSWER.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{}", body.len());
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok(), "{body}");
    }
}
