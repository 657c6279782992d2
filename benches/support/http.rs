//! As much of an HTTP client as a bench needs: one connection that is kept, requests one after another.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

pub struct Http {
    stream: BufReader<TcpStream>,
    body: Vec<u8>,
}

impl Http {
    /// `None` while nobody listens.
    pub fn connect(port: u16) -> Option<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_nodelay(true).ok()?;
        Some(Self { stream: BufReader::new(stream), body: Vec::new() })
    }

    pub fn get(&mut self, path: &str) -> (u16, &str) {
        self.request("GET", path, "")
    }

    /// The status and the body of the answer.
    pub fn request(&mut self, method: &str, path: &str, body: &str) -> (u16, &str) {
        self.try_request(method, path, body).expect("the service answers")
    }

    /// `None` if the connection is lost.
    pub fn try_request(&mut self, method: &str, path: &str, body: &str) -> Option<(u16, &str)> {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes()).ok()?;
        let mut line = String::new();
        self.stream.read_line(&mut line).ok()?;
        let status = line.split(' ').nth(1)?.parse().ok()?;
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line).ok()?;
            let header = line.trim_end().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body).ok()?;
        Some((status, std::str::from_utf8(&self.body).ok()?))
    }
}
