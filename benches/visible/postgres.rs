//! PostgreSQL: a table with an index on the score, and batches of upserts.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::support::nats::free_port;
use crate::support::postgres::Postgres as Client;
use crate::system::{BATCH, Job, MARKER, Publish, Read, System};

/// PostgreSQL refuses to run as root; Debian's package comes with this user.
const USER: &str = "postgres";
/// The server gets a quarter of the memory that machines of this size have, as its manual suggests; the rest
/// are defaults.
const SETTINGS: [&str; 4] = ["shared_buffers=2GB", "max_wal_size=4GB", "synchronous_commit=on", "fsync=on"];
const UPSERT: &str = "INSERT INTO scores (member, score) SELECT * FROM unnest($1::text[], $2::bigint[]) \
                      ON CONFLICT (member) DO UPDATE SET score = excluded.score";
const START_WITHIN: Duration = Duration::from_secs(60);

pub struct Postgres {
    process: Child,
    port: u16,
    /// Outlives the process.
    _folder: tempfile::TempDir,
}

/// Where Debian, or whoever else, put the server's programs: the newest version there is.
fn programs() -> Option<PathBuf> {
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|folders| folders.flatten().map(|folder| folder.path().join("bin")).collect())
        .unwrap_or_default();
    versions.sort();
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::split_paths(&on_path).collect::<Vec<_>>();
    versions.into_iter().rev().chain(path).find(|folder| folder.join("initdb").exists())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A command that runs as somebody whom PostgreSQL accepts.
fn command(program: &Path) -> Command {
    if is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--"]).arg(program);
        command
    } else {
        Command::new(program)
    }
}

pub fn start() -> Result<Box<dyn System>, String> {
    let programs = programs().ok_or("PostgreSQL; install it with: apt install postgresql-15")?;
    let folder = tempfile::tempdir().expect("a scratch folder");
    if is_root() {
        let given = Command::new("chown").arg(USER).arg(folder.path()).status();
        if !given.is_ok_and(|status| status.success()) {
            return Err(format!(
                "PostgreSQL, which does not run as root; there is no user {USER} to run it as"
            ));
        }
    }
    let data = folder.path().join("data");
    let made = command(&programs.join("initdb"))
        .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "-D"])
        .arg(&data)
        .stdout(Stdio::null())
        .status();
    assert!(made.expect("initdb runs").success(), "initdb failed");
    let port = free_port();
    let mut server = command(&programs.join("postgres"));
    server.arg("-D").arg(&data).args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k", ""]);
    for setting in SETTINGS {
        server.args(["-c", setting]);
    }
    let process = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("postgres runs");
    let postgres = Postgres { process, port, _folder: folder };
    let started = Instant::now();
    let mut client = loop {
        if let Some(client) = Client::connect(port, USER) {
            break client;
        }
        assert!(started.elapsed() < START_WITHIN, "PostgreSQL does not start");
        std::thread::sleep(Duration::from_millis(10));
    };
    let tables = "CREATE TABLE scores (member text PRIMARY KEY, score bigint NOT NULL); CREATE INDEX ON scores (score)";
    client.execute(tables);
    Ok(Box::new(postgres))
}

fn connect(port: u16) -> Client {
    Client::connect(port, USER).expect("PostgreSQL listens")
}

impl System for Postgres {
    fn name(&self) -> String {
        "postgres".to_owned()
    }

    fn load(&mut self, jobs: &mut dyn Iterator<Item = Job>) {
        let mut client = connect(self.port);
        client.prepare("upsert", UPSERT);
        let mut jobs = jobs.peekable();
        while jobs.peek().is_some() {
            upsert(&mut client, jobs.by_ref().take(10 * BATCH).collect());
        }
        client.execute("VACUUM ANALYZE scores");
    }

    fn publisher(&self) -> Box<dyn Publish> {
        let (jobs, queue) = channel();
        let client = connect(self.port);
        std::thread::spawn(move || consume(client, &queue));
        Box::new(Publisher(jobs))
    }

    fn reader(&self) -> Box<dyn Read> {
        let mut client = connect(self.port);
        client.prepare("marker", "SELECT score FROM scores WHERE member = $1");
        client.prepare("better", "SELECT count(*) FROM scores WHERE score > $1");
        Box::new(Reader(client))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One transaction per batch. Of several jobs for a member the last one counts: a statement may change a row
/// only once.
fn upsert(client: &mut Client, jobs: Vec<Job>) {
    let last: HashMap<String, i64> = jobs.into_iter().map(|job| (job.member, job.score)).collect();
    let (members, scores): (Vec<String>, Vec<String>) =
        last.into_iter().map(|(member, score)| (member, score.to_string())).unzip();
    // Ids of the bench need no quotes in an array.
    client.run("upsert", &[&format!("{{{}}}", members.join(",")), &format!("{{{}}}", scores.join(","))]);
}

fn consume(mut client: Client, queue: &Receiver<Job>) {
    client.prepare("upsert", UPSERT);
    while let Ok(first) = queue.recv() {
        let batch = std::iter::once(first).chain(queue.try_iter()).take(BATCH).collect();
        upsert(&mut client, batch);
    }
}

struct Publisher(Sender<Job>);

impl Publish for Publisher {
    fn publish(&mut self, job: Job) {
        self.0.send(job).expect("the consumer runs as long as this does");
    }

    fn flush(&mut self) {}
}

struct Reader(Client);

impl Read for Reader {
    fn marker(&mut self) -> i64 {
        self.0.run("marker", &[MARKER]).map_or(0, |score| score.parse().expect("a number"))
    }

    fn better(&mut self, score: i64) -> u64 {
        let better = self.0.run("better", &[&score.to_string()]).expect("a count is a row");
        better.parse().expect("a number")
    }
}
