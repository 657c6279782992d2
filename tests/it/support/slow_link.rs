//! A link to a server that carries so many bytes a second towards the client, until it is told to carry all.
//! It can be told to drop everything.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const CHUNK_BYTES: usize = 16 << 10;

pub struct SlowLink {
    address: String,
    /// 0: as fast as it goes.
    bytes_per_second: Arc<AtomicU64>,
    drops: Arc<AtomicBool>,
}

impl SlowLink {
    /// Begins to listen for connections, each of which it carries to `to`, a host and a port.
    pub fn start(to: &str, bytes_per_second: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let bytes_per_second = Arc::new(AtomicU64::new(bytes_per_second));
        let (to, pace) = (to.to_owned(), Arc::clone(&bytes_per_second));
        let drops = Arc::new(AtomicBool::new(false));
        let dropping = Arc::clone(&drops);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(&to) else { continue };
                let back = (server.try_clone().expect("a handle"), client.try_clone().expect("a handle"));
                let (pace, at_once) = (Arc::clone(&pace), Arc::new(AtomicU64::new(0)));
                let (there, here) = (Arc::clone(&dropping), Arc::clone(&dropping));
                thread::spawn(move || carry(client, server, &at_once, &there));
                thread::spawn(move || carry(back.0, back.1, &pace, &here));
            }
        });
        Self { address, bytes_per_second, drops }
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether all that is sent goes nowhere, in both directions. Connections stay, and new ones are
    /// accepted.
    pub fn drop_all(&self, drops: bool) {
        self.drops.store(drops, Ordering::SeqCst);
    }

    /// From now on, it carries so many bytes a second; 0: as fast as it goes.
    pub fn pace(&self, bytes_per_second: u64) {
        self.bytes_per_second.store(bytes_per_second, Ordering::Relaxed);
    }

    /// From now on, nothing is held up.
    pub fn open(&self) {
        self.bytes_per_second.store(0, Ordering::Relaxed);
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, pace: &AtomicU64, drops: &AtomicBool) {
    let (mut chunk, mut lacks) = (vec![0; CHUNK_BYTES], false);
    while let Ok(count @ 1..) = from.read(&mut chunk) {
        if drops.load(Ordering::SeqCst) {
            lacks = true;
            continue;
        }
        if lacks {
            // A connection that lacks something in the middle is none any more.
            break;
        }
        if to.write_all(&chunk[..count]).is_err() {
            break;
        }
        let bytes_per_second = pace.load(Ordering::Relaxed);
        let micros = u64::try_from(count).expect("small") * 1_000_000;
        if let Some(micros) = micros.checked_div(bytes_per_second) {
            // This is what the link is: nobody waits for it to be over.
            thread::sleep(Duration::from_micros(micros));
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
