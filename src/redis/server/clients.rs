//! The connections that are open, as `CLIENT LIST` shows them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

/// The connections that are open.
#[derive(Default)]
pub struct Clients {
    /// How many there were.
    count: AtomicU64,
    open: Mutex<BTreeMap<u64, Arc<Client>>>,
}

/// A connection.
pub struct Client {
    /// From 1 on.
    pub id: u64,
    address: String,
    since: Instant,
    state: Mutex<State>,
}

struct State {
    name: String,
    /// Whose token it has.
    user: String,
    command: &'static str,
    at: Instant,
}

/// Takes a connection out of those that are open when it is dropped.
pub struct OpenClient<'c> {
    clients: &'c Clients,
    pub client: Arc<Client>,
}

impl Clients {
    pub fn open(&self, address: String) -> OpenClient<'_> {
        let id = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let since = Instant::now();
        let state = State { name: String::new(), user: "default".to_owned(), command: "NULL", at: since };
        let client = Arc::new(Client { id, address, since, state: Mutex::new(state) });
        self.open.lock().insert(id, Arc::clone(&client));
        OpenClient { clients: self, client }
    }

    /// How many there were since the start.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub fn open_count(&self) -> usize {
        self.open.lock().len()
    }

    /// A line for each that is to be shown.
    pub fn lines(&self, shown: impl Fn(&Client) -> bool) -> String {
        let all: Vec<Arc<Client>> = self.open.lock().values().cloned().collect();
        all.iter().filter(|client| shown(client)).map(|client| client.line()).collect()
    }
}

impl Drop for OpenClient<'_> {
    fn drop(&mut self) {
        self.clients.open.lock().remove(&self.client.id);
    }
}

impl Client {
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn name(&self) -> String {
        self.state.lock().name.clone()
    }

    pub fn set_name(&self, name: &[u8]) {
        self.state.lock().name = String::from_utf8_lossy(name).into_owned();
    }

    pub fn set_user(&self, user: &str) {
        user.clone_into(&mut self.state.lock().user);
    }

    /// Notes the command that it has sent last.
    pub fn note(&self, command: &'static str, at: Instant) {
        let mut state = self.state.lock();
        (state.command, state.at) = (command, at);
    }

    /// What is known of it, as a line.
    pub fn line(&self) -> String {
        let State { name, user, command, at } = &*self.state.lock();
        let (age, idle) = (self.since.elapsed().as_secs(), at.elapsed().as_secs());
        let mut line = String::new();
        let _ = writeln!(
            line,
            "id={} addr={} name={name} age={age} idle={idle} flags=N db=0 sub=0 psub=0 multi=-1 cmd={command} user={user}",
            self.id, self.address
        );
        line
    }
}
