//! A link to a NATS server that can withhold messages that a consumer delivers, one by one. All else passes: heartbeats, answers,
//! and what the client sends. So a consumer looks as it does on a server that lags, or lacks messages that the leader has.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;

/// A message on its way from a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub stream: String,
    pub consumer: String,
    pub stream_sequence: u64,
}

type Passes = Box<dyn FnMut(&Delivery) -> bool + Send>;

pub struct DeliveryLink {
    address: String,
    passes: Arc<Mutex<Passes>>,
}

impl DeliveryLink {
    /// Begins to listen for connections, each of which it carries to `to`, a host and a port.
    pub fn start(to: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let passes: Arc<Mutex<Passes>> = Arc::new(Mutex::new(Box::new(|_| true)));
        let (to, asked) = (to.to_owned(), Arc::clone(&passes));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(&to) else { continue };
                let back = (server.try_clone().expect("a handle"), client.try_clone().expect("a handle"));
                let asked = Arc::clone(&asked);
                thread::spawn(move || carry(client, server));
                thread::spawn(move || carry_back(back.0, back.1, &asked));
            }
        });
        Self { address, passes }
    }

    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Asks this of every delivery from now on; those for which it is not so go nowhere.
    pub fn pass_if(&self, passes: impl FnMut(&Delivery) -> bool + Send + 'static) {
        *self.passes.lock() = Box::new(passes);
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

fn carry_back(from: TcpStream, mut to: TcpStream, passes: &Mutex<Passes>) {
    let mut from = BufReader::new(from);
    let mut frame = Vec::new();
    while let Ok(1..) = from.read_until(b'\n', &mut frame) {
        let line = String::from_utf8_lossy(&frame).into_owned();
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut is_passed = true;
        if let [operation @ ("MSG" | "HMSG"), _subject, _subscription, rest @ ..] = words.as_slice() {
            // Maybe where to answer, maybe the size of the headers, and the size of all.
            let sizes = if *operation == "HMSG" { 2 } else { 1 };
            let reply = rest.first().filter(|_| rest.len() > sizes);
            is_passed = reply.and_then(|reply| read(reply)).is_none_or(|delivery| (passes.lock())(&delivery));
            let size: u64 = rest.last().and_then(|size| size.parse().ok()).expect("a message's size");
            if !(&mut from).take(size + 2).read_to_end(&mut frame).is_ok_and(|read| read > 0) {
                break;
            }
        }
        if is_passed && to.write_all(&frame).is_err() {
            break;
        }
        frame.clear();
    }
    let _ = (from.into_inner().shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Reads what a delivery is answered to: `$JS.ACK`, maybe a domain and an account, then stream, consumer, the number of times
/// it was delivered, and its sequence in the stream.
fn read(reply: &str) -> Option<Delivery> {
    let parts: Vec<&str> = reply.strip_prefix("$JS.ACK.")?.split('.').collect();
    let parts = if parts.len() > 7 { parts.get(2..)? } else { parts.as_slice() };
    let [stream, consumer, _, sequence, ..] = parts else { return None };
    let (stream, consumer) = ((*stream).to_owned(), (*consumer).to_owned());
    Some(Delivery { stream, consumer, stream_sequence: sequence.parse().ok()? })
}
