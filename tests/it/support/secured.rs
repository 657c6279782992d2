//! A real nats-server with a configuration of the test's own, which can be restarted with another one.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use async_nats::{Client, ConnectOptions};
use tempfile::TempDir;

use crate::support::nats::wait_until;
use crate::support::tools::tool;

pub struct Secured {
    child: Option<Child>,
    pub port: u16,
    folder: TempDir,
}

/// The part of a configuration that the repository ships for users, nodes and games.
pub fn shipped() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/nats/ranktree.conf");
    fs::read_to_string(path).expect("the configuration is shipped")
}

impl Secured {
    /// Starts a server with JetStream and what `config` says beside it.
    pub fn start(config: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = port.expect("there is a free port").port();
        let folder = tempfile::tempdir().expect("a temporary directory");
        let mut server = Self { child: None, port, folder };
        server.restart_with(config);
        server
    }

    /// Kills it, and starts it again with another configuration and the same streams.
    pub fn restart_with(&mut self, config: &str) {
        self.stop();
        let folder = self.folder.path();
        let own = format!(
            "listen: \"127.0.0.1:{}\"\njetstream {{ store_dir: \"{}\" }}\n",
            self.port,
            folder.display()
        );
        let path = folder.join("server.conf");
        fs::write(&path, own + config).expect("the configuration can be written");
        let log = fs::File::create(folder.join("server.log")).expect("the log can be written");
        let mut command = Command::new(tool("nats-server"));
        command.arg("-c").arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        for user in ["NODE", "GAME", "REJECTS"] {
            command.env(format!("RANKTREE_{user}_PASSWORD"), format!("\"{}-secret\"", user.to_lowercase()));
        }
        self.child = Some(command.spawn().expect("nats-server is here; `make nats` installs it"));
        wait_until("nats-server is ready", || {
            let log = fs::read_to_string(folder.join("server.log")).unwrap_or_default();
            let ended =
                self.child.as_mut().is_none_or(|child| child.try_wait().is_ok_and(|end| end.is_some()));
            assert!(!ended, "nats-server did not start:\n{log}");
            log.contains("Server is ready")
        });
    }

    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("a child that was not waited for can be signalled");
            child.wait().expect("a child can be waited for");
        }
    }

    /// Writes a file that others do not read, and gives its path.
    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, content).expect("the file can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
        path.to_str().expect("UTF-8").to_owned()
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Connects as a user, whose answers come by an inbox of its own.
    pub async fn connect(&self, user: &str) -> Client {
        let options = ConnectOptions::with_user_and_password(user.to_owned(), format!("{user}-secret"));
        let options = options.custom_inbox_prefix(format!("_INBOX.{user}"));
        let client = options.connect(self.url()).await.expect("it is let in");
        client.flush().await.expect("the server answers");
        client
    }
}

impl Drop for Secured {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
