//! As much of a PostgreSQL client as a bench needs: prepared statements with parameters and answers as text,
//! one connection, no password.

use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;

pub struct Postgres {
    stream: BufReader<TcpStream>,
}

/// What the server said, by the letter that the protocol gives it.
struct Said {
    kind: u8,
    body: Vec<u8>,
}

impl Postgres {
    /// `None` while nobody listens, or the server is still starting.
    pub fn connect(port: u16, user: &str) -> Option<Self> {
        /// 3.0, as 16 bits each.
        const PROTOCOL: i32 = 3 << 16;
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_nodelay(true).ok()?;
        let mut client = Self { stream: BufReader::new(stream) };
        let mut body = PROTOCOL.to_be_bytes().to_vec();
        for text in ["user", user, "database", "postgres"] {
            put_text(&mut body, text);
        }
        body.push(0);
        let length = i32::try_from(body.len() + 4).ok()?;
        client.stream.get_mut().write_all(&[&length.to_be_bytes()[..], &body].concat()).ok()?;
        loop {
            match client.hear()?.kind {
                b'Z' => return Some(client),
                b'E' => return None,
                _ => {}
            }
        }
    }

    /// Runs statements as they are.
    pub fn execute(&mut self, statements: &str) {
        let mut body = Vec::new();
        put_text(&mut body, statements);
        let out = message(b'Q', &body);
        self.ask(&out);
    }

    pub fn prepare(&mut self, name: &str, statement: &str) {
        let mut body = Vec::new();
        put_text(&mut body, name);
        put_text(&mut body, statement);
        // The statement says of which types its parameters are.
        body.extend(0_i16.to_be_bytes());
        let out = [message(b'P', &body), message(b'S', &[])].concat();
        self.ask(&out);
    }

    /// Runs a prepared statement in a transaction of its own, and gives the first column of its only row, if
    /// there is one.
    pub fn run(&mut self, name: &str, parameters: &[&str]) -> Option<String> {
        let mut bind = Vec::new();
        put_text(&mut bind, "");
        put_text(&mut bind, name);
        // All parameters as text.
        bind.extend(0_i16.to_be_bytes());
        bind.extend(i16::try_from(parameters.len()).expect("there are few").to_be_bytes());
        for parameter in parameters {
            bind.extend(i32::try_from(parameter.len()).expect("it is short").to_be_bytes());
            bind.extend(parameter.as_bytes());
        }
        // All columns as text.
        bind.extend(0_i16.to_be_bytes());
        // The unnamed portal, and all its rows.
        let execute = [0; 5];
        let out = [message(b'B', &bind), message(b'E', &execute), message(b'S', &[])].concat();
        self.ask(&out)
    }

    fn ask(&mut self, out: &[u8]) -> Option<String> {
        self.stream.get_mut().write_all(out).expect("PostgreSQL takes it");
        let mut value = None;
        loop {
            let said = self.hear().expect("PostgreSQL answers");
            match said.kind {
                b'Z' => return value,
                b'E' => panic!("PostgreSQL: {}", String::from_utf8_lossy(&said.body)),
                // A row: the number of columns, then each with its length.
                b'D' => {
                    let text = said.body.get(6..).expect("it has a column");
                    value = Some(String::from_utf8_lossy(text).into_owned());
                }
                _ => {}
            }
        }
    }

    fn hear(&mut self) -> Option<Said> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).ok()?;
        let [kind, length @ ..] = head;
        let mut body = vec![0; usize::try_from(i32::from_be_bytes(length)).ok()?.checked_sub(4)?];
        self.stream.read_exact(&mut body).ok()?;
        Some(Said { kind, body })
    }
}

fn put_text(body: &mut Vec<u8>, text: &str) {
    body.extend(text.as_bytes());
    body.push(0);
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = i32::try_from(body.len() + 4).expect("it is short");
    [&[kind][..], &length.to_be_bytes(), body].concat()
}
