//! As much of a Redis client as a bench needs: commands are put together and sent at once, answers read in
//! their order.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Nothing,
    Text(Vec<u8>),
    Number(i64),
    List(Vec<Reply>),
}

impl Reply {
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => std::str::from_utf8(text).expect("nothing else was stored"),
            _ => "",
        }
    }

    pub fn list(&self) -> &[Self] {
        if let Self::List(list) = self { list } else { &[] }
    }
}

pub struct Resp {
    stream: BufReader<TcpStream>,
    out: Vec<u8>,
}

impl Resp {
    /// `None` while nobody listens.
    pub fn connect(port: u16) -> Option<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_nodelay(true).ok()?;
        Some(Self { stream: BufReader::with_capacity(1 << 16, stream), out: Vec::new() })
    }

    /// The same connection for a second thread: one sends, the other reads.
    pub fn split(&self) -> Self {
        let stream = self.stream.get_ref().try_clone().expect("a socket can be shared");
        Self { stream: BufReader::with_capacity(1 << 16, stream), out: Vec::new() }
    }

    pub fn add<W: AsRef<[u8]>>(&mut self, words: &[W]) {
        write!(self.out, "*{}\r\n", words.len()).expect("into memory");
        for word in words {
            write!(self.out, "${}\r\n", word.as_ref().len()).expect("into memory");
            self.out.extend_from_slice(word.as_ref());
            self.out.extend_from_slice(b"\r\n");
        }
    }

    pub fn send(&mut self) {
        self.stream.get_mut().write_all(&self.out).expect("redis-server takes it");
        self.out.clear();
    }

    pub fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Reply {
        self.add(words);
        self.send();
        self.read().expect("redis-server answers")
    }

    /// The next answer; `None` once the connection is closed.
    pub fn read(&mut self) -> Option<Reply> {
        let mut line = String::new();
        self.stream.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        let (kind, rest) = line.trim_end().split_at(1);
        Some(match kind {
            "+" => Reply::Text(rest.as_bytes().to_vec()),
            ":" => Reply::Number(rest.parse().ok()?),
            "$" => match usize::try_from(rest.parse::<i64>().ok()?) {
                Ok(length) => {
                    let mut text = vec![0; length + 2];
                    self.stream.read_exact(&mut text).ok()?;
                    text.truncate(length);
                    Reply::Text(text)
                }
                Err(_) => Reply::Nothing,
            },
            "*" => match rest.parse::<i64>().ok()? {
                length if length < 0 => Reply::Nothing,
                length => Reply::List((0..length).map(|_| self.read()).collect::<Option<_>>()?),
            },
            _ => panic!("redis-server: {line}"),
        })
    }
}
