//! A real redis-server, and clients of Redis' protocol: those of the crate `redis`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use redis::{Client, Connection, Value};

use crate::support::nats::wait_until;
use crate::support::node::{Node, NodeSetup};
use crate::support::tools::tool;

/// A redis-server without a password, on a socket of its own.
pub struct RedisServer {
    child: Child,
    socket: PathBuf,
}

impl RedisServer {
    /// # Arguments
    /// `folder`: where its socket and its files are.
    pub fn start(folder: &Path) -> Self {
        let socket = folder.join("real.sock");
        let mut command = Command::new(tool("redis-server"));
        command.args(["--port", "0", "--save", "", "--unixsocket"]).arg(&socket).arg("--dir").arg(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().expect("redis-server is here; `make redis` installs it");
        Self { child, socket }
    }

    pub fn connect(&self) -> Connection {
        connect(&self.socket)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The socket of a node in a folder.
pub fn socket_in(folder: &Path) -> PathBuf {
    folder.join("ranktree.sock")
}

/// A node that speaks Redis' protocol on a socket in this folder.
pub fn listening_in(folder: &Path, setup: NodeSetup) -> NodeSetup {
    setup.flags(&["--redis-listen", &format!("unix:{}", socket_in(folder).display())])
}

/// A connection to what listens on a socket.
pub fn connect(socket: &Path) -> Connection {
    let url = format!("redis+unix://{}", socket.display());
    let client = Client::open(url.as_str()).expect("a good address");
    let mut connection = None;
    wait_until("it listens on its socket", || {
        connection = client.get_connection().ok();
        connection.is_some()
    });
    connection.expect("it is connected")
}

/// A node that speaks Redis' protocol, and a connection to it.
pub fn start(folder: &Path, setup: NodeSetup) -> (Node, Connection) {
    let node = listening_in(folder, setup).start();
    let connection = connect(&socket_in(folder));
    (node, connection)
}

/// The reply to a command, as text: a value as it is printed, or an error's words.
pub fn ask(connection: &mut Connection, words: &[&str]) -> String {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(*word);
    }
    match command.query::<Value>(connection) {
        Ok(value) => shown(&value),
        Err(error) => format!("error {error}"),
    }
}

/// A value on one line.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Int(integer) => integer.to_string(),
        Value::Okay => "OK".to_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::BulkString(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
        Value::Double(double) => format!("double {double}"),
        Value::Array(values) | Value::Set(values) => {
            format!("[{}]", values.iter().map(shown).collect::<Vec<_>>().join(" "))
        }
        Value::Map(pairs) => {
            let pair = |(key, value): &(Value, Value)| format!("{}: {}", shown(key), shown(value));
            format!("{{{}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(" "))
        }
        Value::VerbatimString { text, .. } => format!("{text:?}"),
        other => format!("{other:?}"),
    }
}
