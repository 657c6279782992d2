//! A link to a server whose other end is far away: whatever is sent arrives so much later, and as much as is
//! sent.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

const CHUNK_BYTES: usize = 64 << 10;

pub struct LateLink {
    address: String,
}

impl LateLink {
    /// Begins to listen for connections, each of which it carries to `to`, a host and a port, and back.
    pub fn start(to: &str, later: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let to = to.to_owned();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(&to) else { continue };
                let back = (server.try_clone().expect("a handle"), client.try_clone().expect("a handle"));
                carry(client, server, later);
                carry(back.0, back.1, later);
            }
        });
        Self { address }
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        &self.address
    }
}

fn carry(mut from: TcpStream, to: TcpStream, later: Duration) {
    let (sender, receiver): (Sender<(Instant, Vec<u8>)>, _) = channel();
    thread::spawn(move || deliver(&receiver, to));
    thread::spawn(move || {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(count @ 1..) = from.read(&mut chunk) {
            if sender.send((Instant::now() + later, chunk[..count].to_vec())).is_err() {
                break;
            }
        }
    });
}

fn deliver(chunks: &Receiver<(Instant, Vec<u8>)>, mut to: TcpStream) {
    for (due, chunk) in chunks {
        // This is what the link is: nobody waits for it to be over.
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&chunk).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
