//! Three nats-servers on this machine that replicate their streams.

use std::time::Duration;

use async_nats::jetstream::stream::{Config, Info};
use async_nats::jetstream::{self, Context};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::support::client::Client;
use crate::support::command::signal;
use crate::support::nats::{connect, wait_until};
use crate::support::nats_server::{NatsServer, free_port};

pub const SERVERS: usize = 3;

pub struct Cluster {
    servers: Vec<NatsServer>,
    /// Where each says over HTTP how it is.
    monitors: Vec<Client>,
    runtime: Runtime,
    context: Context,
    _folder: TempDir,
}

impl Cluster {
    /// Starts all, and waits until they keep streams together.
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// As [`Cluster::start`], but clients are not told where the other servers are: each stays with the
    /// addresses that it was given.
    pub fn start_unadvertised() -> Self {
        Self::start_with("no_advertise: true, ")
    }

    fn start_with(settings: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let (servers, monitors) = loop {
            match start_servers(&folder, settings) {
                Ok(servers) => break servers,
                Err(said) => assert!(said.contains("address already in use"), "{said}"),
            }
        };
        let runtime = Runtime::new().expect("a runtime");
        let urls = urls(&servers);
        let context = runtime.block_on(async { jetstream::new(connect(&urls).await) });
        let cluster = Self { servers, monitors, runtime, context, _folder: folder };
        let scratch = Config {
            name: "SCRATCH".to_owned(),
            subjects: vec!["scratch".to_owned()],
            num_replicas: SERVERS,
            ..Config::default()
        };
        wait_until("the servers keep streams together", || {
            cluster.runtime.block_on(async { cluster.context.create_stream(scratch.clone()).await.is_ok() })
        });
        cluster
    }

    /// All of them, separated by commas.
    pub fn urls(&self) -> String {
        urls(&self.servers)
    }

    /// Each server's host and port.
    pub fn addresses(&self) -> Vec<String> {
        self.servers.iter().map(|server| server.url().replace("nats://", "")).collect()
    }

    /// All but one.
    pub fn urls_without(&self, absent: usize) -> String {
        let others = self.servers.iter().enumerate().filter(|(number, _)| *number != absent);
        others.map(|(_, server)| server.url()).collect::<Vec<_>>().join(",")
    }

    /// `None`: no server leads it at the moment, or none answers.
    pub fn info(&self, stream: &str) -> Option<Info> {
        self.runtime.block_on(async {
            let asked = tokio::time::timeout(Duration::from_secs(2), self.context.get_stream(stream)).await;
            asked.ok()?.ok().map(|stream| stream.cached_info().clone())
        })
    }

    /// The server that leads a stream; waits until one does.
    pub fn leader(&self, stream: &str) -> usize {
        let mut leader = None;
        wait_until("the stream has a leader", || {
            let name = self.info(stream).and_then(|info| info.cluster?.leader);
            leader = name.and_then(|name| (0..SERVERS).find(|number| name == server_name(*number)));
            leader.is_some()
        });
        leader.expect("it was just seen")
    }

    /// The servers that hold a connection whose name has this in it.
    pub fn connected(&self, name: &str) -> Vec<usize> {
        self.connected_without(name, None)
    }

    /// The same without asking one of them, which is frozen.
    pub fn connected_without(&self, name: &str, frozen: Option<usize>) -> Vec<usize> {
        let holds = |monitor: &Client| {
            let (status, answer) = monitor.get("/connz?limit=1000");
            assert_eq!(status, 200, "{answer}");
            let connections = answer["connections"].as_array().cloned().unwrap_or_default();
            connections.iter().any(|connection| {
                connection["name"].as_str().is_some_and(|connected| connected.contains(name))
            })
        };
        let asked = self.monitors.iter().enumerate().filter(|(number, _)| Some(*number) != frozen);
        let holding = asked.filter(|(_, monitor)| holds(monitor));
        holding.map(|(number, _)| number).collect()
    }

    pub fn kill9(&mut self, server: usize) {
        self.servers[server].kill9();
    }

    /// Stops a server in its tracks. Its connections stay, and its kernel accepts new ones.
    pub fn freeze(&self, server: usize) {
        signal("STOP", self.servers[server].pid());
    }

    /// Lets a frozen server go on, and waits until it has what the others have.
    pub fn thaw(&self, server: usize, streams: &[String]) {
        signal("CONT", self.servers[server].pid());
        self.wait_for_replicas(streams);
    }

    /// Starts a server again, and waits until it has what the others have.
    pub fn restart(&mut self, server: usize, streams: &[String]) {
        self.servers[server].restart();
        self.wait_for_replicas(streams);
    }

    fn wait_for_replicas(&self, streams: &[String]) {
        for stream in streams {
            wait_until("every replica is there and up to date", || {
                self.info(stream).and_then(|info| info.cluster).is_some_and(|cluster| {
                    cluster.leader.is_some()
                        && cluster.replicas.len() == SERVERS - 1
                        && cluster.replicas.iter().all(|replica| replica.current && !replica.offline)
                })
            });
        }
    }
}

fn urls(servers: &[NatsServer]) -> String {
    servers.iter().map(NatsServer::url).collect::<Vec<_>>().join(",")
}

fn server_name(number: usize) -> String {
    format!("n{number}")
}

fn start_servers(folder: &TempDir, settings: &str) -> Result<(Vec<NatsServer>, Vec<Client>), String> {
    let routes: [u16; SERVERS] = std::array::from_fn(|_| free_port());
    let (mut servers, mut monitors) = (Vec::new(), Vec::new());
    for (number, route) in routes.iter().enumerate() {
        let path = |name: &str| folder.path().join(format!("{name}{number}"));
        let (monitor, store) = (free_port(), path("store"));
        let others = routes.iter().filter(|other| *other != route);
        let others: Vec<_> = others.map(|port| format!("\"nats://127.0.0.1:{port}\"")).collect();
        let config = format!(
            "server_name: {}\nhttp: \"127.0.0.1:{monitor}\"\njetstream {{ store_dir: \"{}\" }}\n\
             cluster {{ {settings}name: test, listen: \"127.0.0.1:{route}\", routes: [{}] }}\n",
            server_name(number),
            store.display(),
            others.join(", ")
        );
        let file = path("nats.conf.");
        std::fs::write(&file, config).expect("it can be written");
        let arguments = ["-c".to_owned(), file.to_str().expect("it is text").to_owned()];
        servers.push(NatsServer::start_at(free_port(), &arguments)?);
        monitors.push(Client::new(&format!("http://127.0.0.1:{monitor}")));
    }
    Ok((servers, monitors))
}
