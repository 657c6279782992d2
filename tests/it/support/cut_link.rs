//! A link to a server that cuts each connection after so many bytes towards the client: the first early, each
//! later one later.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const CHUNK_BYTES: usize = 1 << 10;

pub struct CutLink {
    address: String,
    connections: Arc<AtomicUsize>,
}

impl CutLink {
    /// Begins to listen for connections, each of which it carries to `to`, a host and a port, and back.
    ///
    /// # Arguments
    /// `bytes`: what the first connection carries back before it is cut; the second carries twice as much.
    pub fn start(to: &str, bytes: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let (to, connections) = (to.to_owned(), Arc::new(AtomicUsize::new(0)));
        let made = Arc::clone(&connections);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(&to) else { continue };
                let number = made.fetch_add(1, Ordering::SeqCst) + 1;
                let back = (server.try_clone().expect("a handle"), client.try_clone().expect("a handle"));
                thread::spawn(move || carry(client, server, usize::MAX));
                thread::spawn(move || carry(back.0, back.1, bytes * number));
            }
        });
        Self { address, connections }
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// How many connections there were.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, bytes: usize) {
    let (mut chunk, mut left) = (vec![0; CHUNK_BYTES], bytes);
    while let Ok(count @ 1..) = from.read(&mut chunk) {
        let carried = count.min(left);
        if to.write_all(&chunk[..carried]).is_err() || carried < count {
            break;
        }
        left -= carried;
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
