//! `ranktree import --redis` against a real redis-server: its sorted sets have the same ranks after the
//! import.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::client::{count_of, entry_path};
use crate::support::command::command;
use crate::support::nats::wait_until;
use crate::support::node::Node;
use crate::support::tools::tool;

const PASSWORD: &str = "s3cret";

/// A server with a password, on a free port, and a connection to it.
struct Redis {
    child: Child,
    port: u16,
    stream: BufReader<TcpStream>,
}

impl Redis {
    fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[])
    }

    fn start_with(folder: &Path, arguments: &[&str]) -> Self {
        loop {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let port = listener.local_addr().expect("it is bound").port();
            drop(listener);
            let mut command = Command::new(tool("redis-server"));
            command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"]);
            command.arg(folder).args(arguments);
            command.args(["--requirepass", PASSWORD]).stdin(Stdio::null()).stdout(Stdio::null());
            let mut child = command.spawn().expect("redis-server is here; `make redis` installs it");
            let (mut stream, mut has_ended) = (None, false);
            wait_until("redis-server listens", || {
                has_ended = child.try_wait().expect("it is ours").is_some();
                stream = TcpStream::connect(("127.0.0.1", port)).ok();
                has_ended || stream.is_some()
            });
            // It ends if another process has taken the port.
            if let Some(stream) = stream.filter(|_| !has_ended) {
                let mut redis = Self { child, port, stream: BufReader::new(stream) };
                if redis.ask(&["AUTH", PASSWORD]) == "+OK" {
                    return redis;
                }
            }
        }
    }

    /// The first line of the answer, and the text that follows it, if any.
    fn ask(&mut self, words: &[&str]) -> String {
        let mut request = Vec::new();
        write!(request, "*{}\r\n", words.len()).expect("writing to a Vec does not fail");
        for word in words {
            write!(request, "${}\r\n{word}\r\n", word.len()).expect("writing to a Vec does not fail");
        }
        self.stream.get_mut().write_all(&request).expect("it is there");
        let mut line = || {
            let mut line = String::new();
            self.stream.read_line(&mut line).expect("it answers");
            line.trim_end().to_owned()
        };
        let first = line();
        if first.starts_with('$') && first != "$-1" { line() } else { first }
    }

    fn add(&mut self, key: &str, score: &str, member: &str) {
        assert_eq!(self.ask(&["ZADD", key, score, member]), ":1", "{member}");
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The append-only file in `folder` as one. Redis 7 writes it in parts, of which `import` takes none alone:
/// they are joined as it says then.
fn whole_log(folder: &Path, import: impl Fn(&Path) -> (Option<i32>, String)) -> PathBuf {
    let parts = folder.join("appendonlydir");
    if !parts.exists() {
        return folder.join("appendonly.aof");
    }
    let [base, increment] = ["base", "incr"].map(|kind| parts.join(format!("appendonly.aof.1.{kind}.aof")));
    let (code, said) = import(&increment);
    assert!(code == Some(2) && said.contains("join them, such as by cat"), "{said}");
    let joined = folder.join("joined.aof");
    let bytes = [base, increment].map(|part| std::fs::read(part).expect("Redis writes both"));
    std::fs::write(&joined, bytes.concat()).expect("it can be written");
    joined
}

fn import(redis: &Redis, to: &str, arguments: &[&str]) -> (Option<i32>, String) {
    import_to(redis, to, &[&["--board", "arena"], arguments].concat())
}

fn import_to(redis: &Redis, to: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = command();
    command.args(["import", "--url", to]).args(arguments);
    command.env("RANKTREE_REDIS", format!("redis://127.0.0.1:{}", redis.port));
    command.env("RANKTREE_REDIS_PASSWORD", PASSWORD).stdin(Stdio::null());
    let output = command.output().expect("the binary can be started");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).expect("it writes UTF-8");
    // The columns of the summary are aligned with spaces, which are normalised here.
    (output.status.code(), said.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn an_imported_sorted_set_ranks_as_in_redis() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut redis = Redis::start(folder.path());
    // More than one page of ZSCAN, many ties, negative scores, and the largest integers that a double holds
    // exactly.
    for number in 0..3_000_i64 {
        redis.add("leaderboard", &(number % 501 - 250).to_string(), &format!("player {number} / 日本"));
    }
    redis.add("leaderboard", "9007199254740991", "the best");
    redis.add("leaderboard", "-9007199254740991", "the worst");
    let service = Node::shards(3).start();
    let to = format!("http://{}", service.address());

    let (code, said) = import(&redis, &to, &["--key", "leaderboard", "--dry-run"]);
    assert!(code == Some(0) && said.contains("well-formed 3,002"), "{said}");
    assert_eq!(service.client().get("/v1/boards/arena").0, 404, "a dry run sends nothing");
    for _ in 0..2 {
        let (code, said) = import(&redis, &to, &["--key", "leaderboard"]);
        assert!(code == Some(0) && said.contains("applied 3,002"), "{said}");
    }

    let client = service.client();
    let (mut entries, mut cursor) = (Vec::new(), String::new());
    loop {
        let (_, page) = client.get(&format!("/v1/boards/arena/top?limit=1000&cursor={cursor}"));
        entries.extend(page["entries"].as_array().expect("a page").clone());
        match &page["next_cursor"] {
            Value::String(next) => cursor.clone_from(next),
            _ => break,
        }
    }
    assert_eq!(entries.len(), 3_002);
    for entry in &entries {
        let member = entry["member"].as_str().expect("an id");
        let score = redis.ask(&["ZSCORE", "leaderboard", member]);
        let theirs: f64 = score.parse().expect("a number");
        assert_eq!(entry["score"].as_f64(), Some(theirs), "{member}");
        let better = redis.ask(&["ZCOUNT", "leaderboard", &format!("({score}"), "+inf"]);
        assert_eq!(format!(":{}", count_of(&entry["rank"]) - 1), better, "{member}");
    }
    // Redis orders equal scores by id, and ZREVRANK by id downwards; here it is upwards, best first.
    let ties: Vec<_> =
        entries.iter().filter(|entry| entry["score"] == 0).map(|entry| &entry["member"]).collect();
    let mut sorted = ties.clone();
    sorted.sort_by_key(|member| member.as_str());
    assert!(ties.len() > 1 && ties == sorted, "{ties:?}");
}

#[test]
fn fractional_scores_are_refused_with_an_explanation_or_scaled() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut redis = Redis::start(folder.path());
    for (score, member) in [("12.34", "a"), ("-0.07", "b"), ("5", "c"), ("inf", "d"), ("0.1234", "e")] {
        redis.add("laps", score, member);
    }
    assert_eq!(redis.ask(&["SET", "text", "hello"]), "+OK");
    let service = Node::start();
    let to = format!("http://{}", service.address());
    let score = |member: &str| service.client().get(&entry_path("arena", member)).1["score"].clone();

    let (code, said) = import(&redis, &to, &["--key", "laps"]);
    assert!(
        code == Some(2) && said.contains("4 of the rows would be rejected, so nothing was sent"),
        "{said}"
    );
    assert_eq!(service.client().get("/v1/boards/arena").0, 404);
    let (code, said) = import(&redis, &to, &["--key", "laps", "--limit-errors", "4"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("bad_score: member \"a\": \"12.34\" is not a whole number: --scale 100"), "{said}");
    assert!(said.contains("member \"d\": inf is not a score"), "{said}");
    let kept = "it stays as it is on a board whose key has the type float, which is defined before";
    assert_eq!(said.matches(kept).count(), 4, "{said}");
    assert_eq!((score("c"), score("a")), (5.into(), Value::Null));

    let (code, said) = import(&redis, &to, &["--key", "laps", "--scale", "100", "--limit-errors", "2"]);
    assert_eq!(code, Some(1), "infinity and four places remain: {said}");
    assert_eq!((score("a"), score("b"), score("c")), (1_234.into(), (-7).into(), 500.into()));

    let unchecked = ["--key", "laps", "--unchecked"];
    let (code, said) = import(&redis, &to, &unchecked);
    assert!(code == Some(1) && said.contains("member \"a\": \"12.34\" is not a whole number"), "{said}");
    let float = serde_json::json!({"keys": [{"name": "score", "type": "float"}]});
    assert_eq!(service.client().put("/v1/boards/seconds", &float).0, 201);
    for more in [&[][..], &["--unchecked"]] {
        let arguments = [&["--board", "seconds", "--key", "laps"][..], more].concat();
        let (code, said) = import_to(&redis, &to, &arguments);
        assert!(code == Some(0) && said.contains("applied 5"), "{said}");
        let score = |member: &str| service.client().get(&entry_path("seconds", member)).1["score"].clone();
        let found = ["a", "b", "c", "d", "e"].map(score);
        let kept = [12.34.into(), (-0.07).into(), 5.into(), Value::from("inf"), 0.1234.into()];
        assert_eq!(found, kept, "as they are");
    }

    for (arguments, words) in [
        (&["--key", "none"][..], "no sorted set"),
        (&["--key", "text"], "WRONGTYPE"),
        (&["--key", "laps", "--op", "incr"], "--op"),
        (&[], "--key"),
    ] {
        let (code, said) = import(&redis, &to, arguments);
        assert!(code == Some(2) && said.contains(words), "{arguments:?}: {said}");
        assert!(!said.contains(PASSWORD), "{said}");
    }
    let mut command = command();
    command.args(["import", "--board", "arena", "--key", "laps"]).stdin(Stdio::null());
    command.env("RANKTREE_REDIS", format!("redis://:wrong@127.0.0.1:{}", redis.port));
    let mut child = command.stderr(Stdio::piped()).spawn().expect("the binary can be started");
    let mut said = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it writes UTF-8");
    assert_eq!(child.wait().expect("it ends").code(), Some(2), "{said}");
    assert!(said.contains("Redis") && !said.contains("wrong@"), "{said}");
}

/// What Redis itself writes: its append-only file, and what its command line prints.
#[test]
fn files_that_redis_writes_are_imported_as_the_set_is() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let log_at_once = ["--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble", "no"];
    let mut redis = Redis::start_with(folder.path(), &log_at_once);
    for (score, member) in [("5", "ann"), ("1", "gone"), ("7.5", "bob, \"b\""), ("2", "日本")] {
        redis.add("laps", score, member);
    }
    redis.add("other", "9", "ann");
    assert_eq!(redis.ask(&["ZINCRBY", "laps", "1.5", "ann"]), "6.5");
    assert_eq!(redis.ask(&["ZREM", "laps", "gone"]), ":1");
    let service = Node::start();
    let to = format!("http://{}", service.address());
    let run = |file: &Path, board: &str, arguments: &[&str]| {
        let mut command = command();
        command
            .arg("import")
            .arg(file)
            .args(["--url", &to, "--board", board, "--scale", "10"])
            .args(arguments);
        let output = command.output().expect("the binary can be started");
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let log = &whole_log(folder.path(), |part| run(part, "part", &["--key", "laps"]));
    let printed = folder.path().join("laps.csv");
    let mut cli = Command::new(tool("redis-server").with_file_name("redis-cli"));
    cli.args(["-p", &redis.port.to_string(), "--csv", "ZRANGE", "laps", "0", "-1", "WITHSCORES"]);
    let output = cli.env("REDISCLI_AUTH", PASSWORD).output().expect("redis-cli is beside redis-server");
    std::fs::write(&printed, output.stdout).expect("it can be written");
    for (file, board, arguments) in [(log, "log", &["--key", "laps"][..]), (&printed, "cli", &[])] {
        let (code, said) = run(file, board, arguments);
        assert_eq!(code, Some(0), "{board}: {said}");
        let page = service.client().get(&format!("/v1/boards/{board}/top")).1;
        let entries = page["entries"].as_array().expect("a page").iter();
        let found: Vec<_> = entries.map(|entry| (entry["member"].clone(), entry["score"].clone())).collect();
        let expect = [("bob, \"b\"", 75), ("ann", 65), ("日本", 20)];
        assert_eq!(found, expect.map(|(member, score)| (member.into(), score.into())), "{board}");
    }
    let (code, said) = run(log, "none", &[]);
    assert!(code == Some(2) && said.contains("--key names the sorted set"), "{said}");
    let (code, said) = run(log, "none", &["--key", "no such set"]);
    assert!(code == Some(2) && said.contains("no sorted set"), "{said}");
    assert_eq!(redis.ask(&["ZUNIONSTORE", "laps", "1", "other"]), ":1");
    let log = &whole_log(folder.path(), |part| run(part, "part", &["--key", "laps"]));
    let (code, said) = run(log, "none", &["--key", "laps"]);
    assert!(code == Some(2) && said.contains("ZUNIONSTORE changes"), "{said}");
}
