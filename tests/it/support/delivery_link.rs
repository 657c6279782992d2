//! A link to a NATS server that can lose or hold up messages that a consumer delivers, one by one. All else
//! passes: heartbeats, answers, and what the client sends. So a consumer looks as it does on a server that
//! lags, or lacks messages that the leader has.

use std::collections::BTreeMap;
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

/// What becomes of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryAction {
    Pass,
    /// It goes nowhere.
    Drop,
    /// It comes behind the next answer to a question about its consumer, whose servers had sent it before.
    Delay,
}

type Decides = Box<dyn FnMut(&Delivery) -> DeliveryAction + Send>;

pub struct DeliveryLink {
    address: String,
    decides: Arc<Mutex<Decides>>,
}

impl DeliveryLink {
    /// Begins to listen for connections, each of which it carries to `to`, a host and a port.
    pub fn start(to: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let decides: Arc<Mutex<Decides>> = Arc::new(Mutex::new(Box::new(|_| DeliveryAction::Pass)));
        let (to, asked) = (to.to_owned(), Arc::clone(&decides));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(&to) else { continue };
                let back = (server.try_clone().expect("a handle"), client.try_clone().expect("a handle"));
                let asked = Arc::clone(&asked);
                thread::spawn(move || carry(client, server));
                thread::spawn(move || carry_back(back.0, back.1, &asked));
            }
        });
        Self { address, decides }
    }

    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Asks this of every delivery from now on; those for which it is not so go nowhere.
    pub fn pass_if(&self, mut passes: impl FnMut(&Delivery) -> bool + Send + 'static) {
        self.decide(
            move |delivery| if passes(delivery) { DeliveryAction::Pass } else { DeliveryAction::Drop },
        );
    }

    /// Asks this of every delivery from now on.
    pub fn decide(&self, decides: impl FnMut(&Delivery) -> DeliveryAction + Send + 'static) {
        *self.decides.lock() = Box::new(decides);
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

fn carry_back(from: TcpStream, mut to: TcpStream, decides: &Mutex<Decides>) {
    let mut from = BufReader::new(from);
    let mut frame = Vec::new();
    // By consumer.
    let mut late: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    while let Ok(1..) = from.read_until(b'\n', &mut frame) {
        let line = String::from_utf8_lossy(&frame).into_owned();
        let words: Vec<&str> = line.split_whitespace().collect();
        let (mut action, mut consumer) = (DeliveryAction::Pass, String::new());
        if let [operation @ ("MSG" | "HMSG"), _subject, _subscription, rest @ ..] = words.as_slice() {
            // Maybe where to answer, maybe the size of the headers, and the size of all.
            let sizes = if *operation == "HMSG" { 2 } else { 1 };
            let reply = rest.first().filter(|_| rest.len() > sizes);
            if let Some(delivery) = reply.and_then(|reply| read(reply)) {
                action = (decides.lock())(&delivery);
                consumer = delivery.consumer;
            }
            let size: u64 = rest.last().and_then(|size| size.parse().ok()).expect("a message's size");
            if !(&mut from).take(size + 2).read_to_end(&mut frame).is_ok_and(|read| read > 0) {
                break;
            }
        }
        match action {
            DeliveryAction::Pass => {
                // What was late comes behind what is said of its consumer.
                let said = String::from_utf8_lossy(&frame);
                let is_told = said.contains("consumer_info_response");
                let told = late.keys().find(|name| is_told && said.contains(name.as_str())).cloned();
                frame.extend(told.and_then(|name| late.remove(&name)).unwrap_or_default());
                if to.write_all(&frame).is_err() {
                    break;
                }
            }
            DeliveryAction::Delay => late.entry(consumer).or_default().extend(&frame),
            DeliveryAction::Drop => {}
        }
        frame.clear();
    }
    let _ = (from.into_inner().shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Reads what a delivery is answered to: `$JS.ACK`, maybe a domain and an account, then stream, consumer, the
/// number of times it was delivered, and its sequence in the stream.
fn read(reply: &str) -> Option<Delivery> {
    let parts: Vec<&str> = reply.strip_prefix("$JS.ACK.")?.split('.').collect();
    let parts = if parts.len() > 7 { parts.get(2..)? } else { parts.as_slice() };
    let [stream, consumer, _, sequence, ..] = parts else { return None };
    let (stream, consumer) = ((*stream).to_owned(), (*consumer).to_owned());
    Some(Delivery { stream, consumer, stream_sequence: sequence.parse().ok()? })
}
