//! A link to a server that can be cut, and joined again.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Carries connections to a server while it is joined.
pub struct ToggledLink {
    address: String,
    shared: Arc<Mutex<State>>,
}

struct State {
    is_cut: bool,
    /// Both ends of every connection there was since the last cut.
    open: Vec<TcpStream>,
}

impl ToggledLink {
    /// Begins to carry connections to `to`, a host and a port.
    pub fn start(to: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let shared = Arc::new(Mutex::new(State { is_cut: false, open: Vec::new() }));
        let (to, state) = (to.to_owned(), Arc::clone(&shared));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(&to) else { continue };
                let mut state = state.lock().expect("no panic");
                if state.is_cut {
                    // Both are closed here.
                    continue;
                }
                let ends = [&client, &server].map(|end| end.try_clone().expect("a handle"));
                state.open.extend(ends);
                let back = [&server, &client].map(|end| end.try_clone().expect("a handle"));
                thread::spawn(move || carry(client, server));
                let [from, to] = back;
                thread::spawn(move || carry(from, to));
            }
        });
        Self { address, shared }
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Ends all connections, and lets no new one through.
    pub fn cut(&self) {
        let mut state = self.shared.lock().expect("no panic");
        state.is_cut = true;
        for end in state.open.drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    pub fn join(&self) {
        self.shared.lock().expect("no panic").is_cut = false;
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
