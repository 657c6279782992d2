//! Redis, or Valkey: a stream, a consumer, and a sorted set.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::nats::free_port;
use crate::support::redis::valkey;
use crate::support::resp::{Reply, Resp};
use crate::system::{BATCH, Job, MARKER, Publish, Read, System};

const STREAM: &str = "jobs";
const SORTED_SET: &str = "arena";
/// Where the consumer notes, in the transaction that holds the scores, how far it is.
const DONE: &str = "jobs:done";
/// About so many entries are kept in the stream, as a log for replay is.
const STREAM_KEEPS: &str = "1000000";

pub struct Redis {
    name: &'static str,
    process: Child,
    port: u16,
    sync: &'static str,
}

pub fn start(folder: &Path, sync: &'static str) -> Result<Box<dyn System>, String> {
    start_program("redis", Path::new("redis-server"), folder, sync)
}

pub fn start_valkey(folder: &Path, sync: &'static str) -> Result<Box<dyn System>, String> {
    let program = valkey().ok_or("valkey-server; `make valkey` unpacks one, --valkey names one")?;
    start_program("valkey", &program, folder, sync)
}

fn start_program(
    name: &'static str,
    program: &Path,
    folder: &Path,
    sync: &'static str,
) -> Result<Box<dyn System>, String> {
    std::fs::create_dir_all(folder).expect("the scratch folder can be written");
    let port = free_port();
    let process = Command::new(program)
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
        .args(["--appendonly", "yes", "--appendfsync", sync, "--dir"])
        .arg(folder)
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| format!("{name}-server ({error}); install it with: apt install {name}-server"))?;
    let redis = Redis { name, process, port, sync };
    while Resp::connect(port).is_none() {
        std::thread::yield_now();
    }
    std::thread::spawn(move || consume(&mut redis_at(port)));
    Ok(Box::new(redis))
}

fn redis_at(port: u16) -> Resp {
    Resp::connect(port).expect("redis-server listens")
}

/// What a good consumer does: reads many at a time, writes them at once, and notes how far it is in the same
/// transaction.
fn consume(redis: &mut Resp) {
    let mut last = "0".to_owned();
    let count = BATCH.to_string();
    loop {
        redis.add(&["XREAD", "COUNT", &count, "BLOCK", "1000", "STREAMS", STREAM, &last]);
        redis.send();
        let Some(read) = redis.read() else { return };
        // One stream, as its name and its entries; each entry as its id and its fields.
        let entries = match read.list() {
            [stream] => stream.list().get(1).cloned().unwrap_or(Reply::Nothing),
            _ => continue,
        };
        let mut zadd = vec!["ZADD".to_owned(), SORTED_SET.to_owned()];
        for entry in entries.list() {
            let [id, fields] = entry.list() else { panic!("an entry is an id and fields: {entry:?}") };
            let [_, member, _, score] = fields.list() else { panic!("it is as it was added: {fields:?}") };
            zadd.extend([score.text().to_owned(), member.text().to_owned()]);
            id.text().clone_into(&mut last);
        }
        redis.add(&["MULTI"]);
        redis.add(&zadd);
        redis.add(&["SET", DONE, &last]);
        redis.add(&["EXEC"]);
        redis.send();
        for _ in 0..4 {
            if redis.read().is_none() {
                return;
            }
        }
    }
}

impl System for Redis {
    fn name(&self) -> String {
        format!("{}_{}", self.name, self.sync)
    }

    fn load(&mut self, jobs: &mut dyn Iterator<Item = Job>) {
        let mut redis = redis_at(self.port);
        let mut jobs = jobs.peekable();
        while jobs.peek().is_some() {
            let mut zadd = vec!["ZADD".to_owned(), SORTED_SET.to_owned()];
            for job in jobs.by_ref().take(BATCH) {
                zadd.extend([job.score.to_string(), job.member]);
            }
            redis.ask(&zadd);
        }
    }

    fn publisher(&self) -> Box<dyn Publish> {
        let redis = redis_at(self.port);
        let mut answers = redis.split();
        std::thread::spawn(move || while answers.read().is_some() {});
        Box::new(Publisher(redis))
    }

    fn reader(&self) -> Box<dyn Read> {
        Box::new(Reader(redis_at(self.port)))
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Publisher(Resp);

impl Publish for Publisher {
    fn publish(&mut self, job: Job) {
        let (member, score) = (job.member.as_str(), job.score.to_string());
        self.0.add(&["XADD", STREAM, "MAXLEN", "~", STREAM_KEEPS, "*", "m", member, "s", &score]);
    }

    fn flush(&mut self) {
        self.0.send();
    }
}

struct Reader(Resp);

impl Read for Reader {
    fn marker(&mut self) -> i64 {
        match self.0.ask(&["ZSCORE", SORTED_SET, MARKER]) {
            Reply::Nothing => 0,
            score => score.text().parse().expect("a whole number"),
        }
    }

    fn better(&mut self, score: i64) -> u64 {
        match self.0.ask(&["ZCOUNT", SORTED_SET, &format!("({score}"), "+inf"]) {
            Reply::Number(better) => u64::try_from(better).expect("a count"),
            other => panic!("a count is a number: {other:?}"),
        }
    }
}
