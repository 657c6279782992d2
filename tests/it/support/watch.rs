//! A client that watches a board: server-sent events, read as they come.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Far longer than any event of these tests takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// What came over the stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Empty for a comment.
    pub kind: String,
    pub id: String,
    pub data: Value,
}

/// An open stream.
pub struct Watch {
    stream: BufReader<TcpStream>,
    pub status: u16,
    /// In small letters.
    pub head: String,
    /// What was read of chunks and is no whole event yet.
    text: String,
    is_over: bool,
}

impl Watch {
    /// # Arguments
    /// `headers`: whole lines.
    pub fn open(address: &str, path: &str, headers: &[String]) -> Self {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n");
        for line in headers {
            request += line;
            request += "\r\n";
        }
        request += "\r\n";
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut head).expect("a head"), 0, "{head}");
        }
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Self { stream, status, head: head.to_lowercase(), text: String::new(), is_over: false }
    }

    /// From now on the system keeps little for a client that does not read.
    pub fn take_little(&self) {
        let set = rustix::net::sockopt::set_socket_recv_buffer_size(self.stream.get_ref(), 4_096);
        set.expect("a socket's buffer can be changed");
    }

    /// The code of a refusal.
    pub fn refusal(mut self) -> String {
        let length = self.head.split("content-length: ").nth(1).expect("a length");
        let length: usize = length.split('\r').next().and_then(|text| text.parse().ok()).expect("a number");
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("a body");
        let problem: Value = serde_json::from_slice(&body).expect("JSON");
        problem["code"].as_str().expect("a code").to_owned()
    }

    /// The next event or comment; `None` at the end of the stream.
    pub fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (read(event), rest.to_owned());
                self.text = rest;
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            self.read_chunk();
        }
    }

    fn read_chunk(&mut self) {
        let mut size = String::new();
        let read = self.stream.read_line(&mut size).unwrap_or_else(|error| panic!("nothing came: {error}"));
        if read == 0 {
            self.is_over = true;
            return;
        }
        let size = usize::from_str_radix(size.trim_end(), 16).expect("a size");
        let mut chunk = vec![0; size + 2];
        self.stream.read_exact(&mut chunk).expect("a whole chunk");
        chunk.truncate(size);
        self.text.push_str(&String::from_utf8(chunk).expect("text"));
        self.is_over = size == 0;
    }

    /// The next event of any kind, leaving comments out.
    pub fn event(&mut self) -> Event {
        loop {
            let event = self.next().expect("the stream goes on");
            if !event.kind.is_empty() {
                return event;
            }
        }
    }

    /// Reads events until one is as it should be.
    pub fn until(&mut self, mut is_it: impl FnMut(&Event) -> bool) -> Event {
        loop {
            let event = self.event();
            if is_it(&event) {
                return event;
            }
        }
    }
}

fn read(text: &str) -> Event {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(|value| value.strip_prefix(' ').unwrap_or(value)).unwrap_or_default().to_owned()
    };
    let data = field("data");
    Event { kind: field("event"), id: field("id"), data: serde_json::from_str(&data).unwrap_or_default() }
}

/// What a client knows of a board that it watches: events put together as the document says.
#[derive(Debug, Default)]
pub struct Board {
    pub entries: Vec<Value>,
    pub total: u64,
}

impl Board {
    pub fn take(&mut self, event: &Event) {
        let list = |name: &str| event.data[name].as_array().cloned().unwrap_or_default();
        match event.kind.as_str() {
            "state" => self.entries = list("entries"),
            "changes" => {
                let gone = list("left");
                let new = list("entries");
                self.entries.retain(|entry| {
                    !gone.contains(&entry["member"])
                        && !new.iter().any(|other| other["member"] == entry["member"])
                });
                self.entries.extend(new);
                self.entries.sort_by_key(|entry| entry["position"].as_u64());
            }
            _ => return,
        }
        self.total = event.data["total"].as_u64().expect("a total");
    }
}
