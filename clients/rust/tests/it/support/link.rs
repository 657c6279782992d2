//! A connection that can lose what the server says, and be cut.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Passes bytes on between clients and a server.
pub struct Link {
    state: Arc<State>,
    address: SocketAddr,
    accepting: tokio::task::JoinHandle<()>,
}

struct State {
    server: u16,
    is_deaf: AtomicBool,
    lost: AtomicUsize,
    opened: AtomicUsize,
    /// Counts how often all connections were cut.
    cuts: watch::Sender<usize>,
}

impl Link {
    pub async fn to(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let state = Arc::new(State {
            server,
            is_deaf: AtomicBool::new(false),
            lost: AtomicUsize::new(0),
            opened: AtomicUsize::new(0),
            cuts: watch::channel(0).0,
        });
        let shared = state.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                shared.opened.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(pass(shared.clone(), client));
            }
        });
        Self { state, address, accepting }
    }

    pub fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.address)
    }

    /// Whether what the server says is lost.
    pub fn set_deaf(&self, is_deaf: bool) {
        self.state.is_deaf.store(is_deaf, Ordering::SeqCst);
    }

    /// Bytes that the server said and no client heard.
    pub fn lost(&self) -> usize {
        self.state.lost.load(Ordering::SeqCst)
    }

    /// Connections so far.
    pub fn opened(&self) -> usize {
        self.state.opened.load(Ordering::SeqCst)
    }

    /// Ends all connections.
    pub fn cut(&self) {
        self.state.cuts.send_modify(|cuts| *cuts += 1);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn pass(state: Arc<State>, client: TcpStream) {
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, state.server)).await else { return };
    let mut cuts = state.cuts.subscribe();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let questions = tokio::io::copy(&mut from_client, &mut to_server);
    let answers = async {
        let mut buffer = vec![0; 65_536];
        while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
            if state.is_deaf.load(Ordering::SeqCst) {
                state.lost.fetch_add(count, Ordering::SeqCst);
            } else if to_client.write_all(buffer.get(..count).expect("it is of the buffer")).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        _ = questions => {}
        () = answers => {}
        _ = cuts.changed() => {}
    }
}
