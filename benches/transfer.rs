//! `ranktree import` and `ranktree export` through a running service: rows a second, and the processor time
//! that a row costs the command and the service each.
//!
//! The rows have distinct ids of twelve bytes and distinct scores. They are imported from CSV, compressed
//! with gzip, and exported again in both formats. What was exported is what was imported, by number and
//! checksum, and in the order of places.
//!
//! - `import_vs_reading`: against reading the same file with the same crates, `csv` and `flate2`, and sending
//!   nothing
//! - `import_vs_redis`: against `redis-cli --pipe` with a ZADD per row into a Redis that syncs always, as the
//!   service does; what it sends is prepared, and not compressed
//! - `import_nats_vs_reading`, `import_nats_vs_redis`: the same with NATS behind the service, which syncs at
//!   nats-server's default, every two minutes, unless `--nats-sync always` is given
//! - `export_csv_vs_zrange`, `export_ndjson_vs_zrange`: against pages of the same size from that Redis, each
//!   `ZRANGE ... BYSCORE REV LIMIT 0 1000 WITHSCORES` from the last score of the one before, written to a
//!   file
//!
//! Needs Debian's `redis-server` and `redis-tools`, and nats-server (`make nats`) for the case `nats`. Prints
//! `RATIO name value`, ours / theirs in rows a second, the median of the runs.
//!
//! `cargo bench --bench transfer -- --rows 1000000 --runs 3 --queues embedded,nats --shards 1`
//!
//! - `--again true`: the export is imported once more into another service, rows with times
//! - `--baselines false`: without them
//! - `--binary PATH`: another build of ranktree, service and commands

#![allow(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "figures are for people; numbers stay far below 2^53"
)]

mod support;

use std::fs::File;
use std::hash::{Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use support::machine::{children_cpu_seconds, cpu_seconds, load, median};
use support::nats::Nats;
use support::redis::Redis;
use support::resp::{Reply, Resp};
use support::service::Service;
use support::workload::id;
use support::{argument, list, number, scratch};

const BOARD: &str = "arena";
const PAGE: usize = 1_000;

/// What the rows of a file come to, in whatever order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum {
    rows: u64,
    hash: u64,
}

impl Sum {
    fn add(&mut self, member: &str, score: &str) {
        let mut hasher = std::hash::DefaultHasher::new();
        (member, score).hash(&mut hasher);
        self.rows += 1;
        self.hash = self.hash.wrapping_add(hasher.finish());
    }
}

/// Rows a second, and microseconds of processor time per row.
#[derive(Debug, Clone, Copy)]
struct Speed {
    rows_per_second: f64,
    client: f64,
    service: f64,
    queue: f64,
}

fn main() {
    let rows = number("rows", 1_000_000);
    let has_baselines = argument("baselines").is_none_or(|given| given != "false");
    let folder = scratch();
    eprintln!("  {}", load());
    let packed = folder.path().join("rows.csv.gz");
    let made = make_rows(&packed, rows);
    let mut baselines = Baselines::default();
    for run in 0..number("runs", 3) {
        let place = folder.path().join(format!("run{run}"));
        std::fs::create_dir(&place).expect("the scratch folder can be written");
        if has_baselines {
            baselines.measure(&place, &packed, rows);
        }
        for queue in list("queues", "embedded,nats") {
            let of_run = place.join(&queue);
            std::fs::create_dir(&of_run).expect("the scratch folder can be written");
            run_queue(&of_run, &queue, &packed, made, &mut baselines.ours);
            std::fs::remove_dir_all(&of_run).expect("nobody uses it any more");
        }
    }
    if has_baselines {
        baselines.report();
    }
    eprintln!("  {}", load());
}

/// As a spread of scores that are distinct: an odd factor makes a permutation of the numbers below 2^40.
fn score(row: u64) -> u64 {
    row.wrapping_mul(0x9e37_79b9_7f4a_7c15) & ((1 << 40) - 1)
}

fn make_rows(packed: &Path, rows: u64) -> Sum {
    let file = File::create(packed).expect("the scratch folder can be written");
    let mut out = BufWriter::new(GzEncoder::new(file, Compression::default()));
    let mut sum = Sum::default();
    writeln!(out, "board,member,score").expect("the disk has room");
    for row in 0..rows {
        let (member, score) = (id(row), score(row).to_string());
        writeln!(out, "{BOARD},{member},{score}").expect("the disk has room");
        sum.add(&member, &score);
    }
    let file = out.into_inner().expect("the disk has room").finish().expect("the disk has room");
    file.sync_all().expect("the disk has room");
    sum
}

/// Rows a second of what they are measured against, by the name of the ratio.
#[derive(Default)]
struct Baselines {
    reading: Vec<f64>,
    redis_import: Vec<f64>,
    redis_export: Vec<f64>,
    ours: Vec<(String, f64)>,
}

impl Baselines {
    fn measure(&mut self, place: &Path, packed: &Path, rows: u64) {
        let began = Instant::now();
        let file = BufReader::with_capacity(1 << 18, File::open(packed).expect("it was made"));
        let mut reader = csv::Reader::from_reader(MultiGzDecoder::new(file));
        let (mut record, mut read) = (csv::ByteRecord::new(), 0);
        while reader.read_byte_record(&mut record).expect("it is well-formed") {
            read += 1;
        }
        assert_eq!(read, rows);
        self.reading.push(rows as f64 / began.elapsed().as_secs_f64());

        let redis = Redis::start(place, 1);
        redis.make_durable();
        let commands = place.join("commands");
        let mut out = BufWriter::new(File::create(&commands).expect("the scratch folder can be written"));
        for row in 0..rows {
            let (member, score) = (id(row), score(row).to_string());
            let words = ["ZADD", BOARD, &score, &member];
            write!(out, "*{}\r\n", words.len()).expect("the disk has room");
            for word in words {
                write!(out, "${}\r\n{word}\r\n", word.len()).expect("the disk has room");
            }
        }
        drop(out);
        let began = Instant::now();
        redis.pipe(&commands);
        self.redis_import.push(rows as f64 / began.elapsed().as_secs_f64());

        let began = Instant::now();
        let written = zrange_to(redis.port(), &place.join("zrange.csv"));
        assert_eq!(written, rows);
        self.redis_export.push(rows as f64 / began.elapsed().as_secs_f64());
        println!(
            "baselines: reading {:.0} rows/s, redis-cli --pipe {:.0} rows/s, ZRANGE {:.0} rows/s",
            self.reading.last().copied().unwrap_or_default(),
            self.redis_import.last().copied().unwrap_or_default(),
            self.redis_export.last().copied().unwrap_or_default()
        );
    }

    fn report(&self) {
        let mut names: Vec<&String> = self.ours.iter().map(|(name, _)| name).collect();
        names.dedup();
        names.sort();
        names.dedup();
        for name in names {
            let ours: Vec<f64> =
                self.ours.iter().filter(|(of, _)| of == name).map(|(_, rows)| *rows).collect();
            let against: &[(&str, &[f64])] = if name.starts_with("import") {
                &[("reading", &self.reading), ("redis", &self.redis_import)]
            } else {
                &[("zrange", &self.redis_export)]
            };
            for (baseline, theirs) in against {
                let ratios: Vec<f64> = ours.iter().zip(*theirs).map(|(ours, theirs)| ours / theirs).collect();
                println!("RATIO {name}_vs_{baseline} {:.2}", median(&ratios));
            }
        }
    }
}

/// Writes a sorted set to a file, best first, page by page; how many members it has.
fn zrange_to(port: u16, path: &Path) -> u64 {
    let mut redis = Resp::connect(port).expect("it listens");
    let mut out = BufWriter::new(File::create(path).expect("the scratch folder can be written"));
    let (mut from, mut written) = ("+inf".to_owned(), 0);
    let page = PAGE.to_string();
    loop {
        let words = ["ZRANGE", BOARD, &from, "-inf", "BYSCORE", "REV", "LIMIT", "0", &page, "WITHSCORES"];
        let reply = redis.ask(&words);
        let entries = reply.list();
        for pair in entries.chunks_exact(2) {
            let [member, score] = pair else { continue };
            writeln!(out, "{},{}", member.text(), score.text()).expect("the disk has room");
            written += 1;
        }
        match entries.last().map(Reply::text) {
            // Scores are distinct.
            Some(last) if entries.len() == 2 * PAGE => from = format!("({last}"),
            _ => return written,
        }
    }
}

fn run_queue(place: &Path, queue: &str, packed: &Path, made: Sum, ours: &mut Vec<(String, f64)>) {
    let nats = (queue == "nats").then(|| Nats::start(&place.join("nats")).expect("nats-server is installed"));
    let shards = number("shards", 1).to_string();
    let start = |name: &str| {
        let nats = nats.as_ref().map(Nats::url);
        Service::start_fed_by(&place.join(name), nats.as_deref(), &["--shards", &shards])
    };
    let suffix = if nats.is_some() { "_nats" } else { "" };
    let service = start("data");
    let file = packed.to_str().expect("a temporary folder has a plain name");
    let speed = run(&service, nats.as_ref(), made.rows, &["import", file]);
    told(&format!("import{suffix}"), queue, speed, ours);
    let mut exported = String::new();
    for format in ["csv", "ndjson"] {
        let path = place.join(format!("exported.{format}"));
        let output = path.to_str().expect("a temporary folder has a plain name");
        let arguments = ["export", "--board", BOARD, "--format", format, "--output", output];
        let speed = run(&service, nats.as_ref(), made.rows, &arguments);
        told(&format!("export{suffix}_{format}"), queue, speed, ours);
        let sum = if format == "csv" { sum_of_csv(&path) } else { sum_of_ndjson(&path) };
        assert_eq!(sum, made, "what was exported is what was imported");
        output.clone_into(&mut exported);
    }
    drop(service);
    if argument("again").is_some_and(|given| given == "true") && nats.is_none() {
        let service = start("again");
        let speed = run(&service, None, made.rows, &["import", &exported]);
        told("import_of_ndjson_export", queue, speed, ours);
    }
}

fn told(name: &str, queue: &str, speed: Speed, ours: &mut Vec<(String, f64)>) {
    let Speed { rows_per_second, client, service, queue: of_queue } = speed;
    let of_queue = if queue == "nats" { format!(", nats-server {of_queue:.2} µs") } else { String::new() };
    println!(
        "{name}: {rows_per_second:.0} rows/s; per row: command {client:.2} µs, service {service:.2} µs{of_queue}"
    );
    ours.push((name.to_owned(), rows_per_second));
}

/// Runs a command of the program against the service.
fn run(service: &Service, nats: Option<&Nats>, rows: u64, arguments: &[&str]) -> Speed {
    let binary = argument("binary").unwrap_or_else(|| env!("CARGO_BIN_EXE_ranktree").to_owned());
    let queue = || nats.map_or(0.0, |nats| cpu_seconds(nats.pid()));
    let before = (children_cpu_seconds(), cpu_seconds(service.pid()), queue());
    let began = Instant::now();
    let done = Command::new(binary)
        .args(arguments)
        .args(["--url", &format!("http://127.0.0.1:{}", service.port)])
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    let seconds = began.elapsed().as_secs_f64();
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    let each = |after: f64, before: f64| (after - before) * 1e6 / rows as f64;
    Speed {
        rows_per_second: rows as f64 / seconds,
        client: each(children_cpu_seconds(), before.0),
        service: each(cpu_seconds(service.pid()), before.1),
        queue: each(queue(), before.2),
    }
}

fn sum_of_csv(path: &Path) -> Sum {
    let mut file = BufReader::new(File::open(path).expect("it was written"));
    let mut definition = String::new();
    file.read_line(&mut definition).expect("readable");
    assert!(definition.starts_with("#ranktree "), "{definition}");
    let mut sum = Sum::default();
    for record in csv::Reader::from_reader(file).into_records() {
        let record = record.expect("well-formed");
        let cell = |column: usize| record.get(column).expect("it has eight columns");
        assert_eq!((cell(0), cell(4).parse()), (BOARD, Ok(sum.rows + 1)), "entries are in order");
        sum.add(cell(1), cell(2));
    }
    sum
}

fn sum_of_ndjson(path: &Path) -> Sum {
    #[derive(serde::Deserialize)]
    struct Row<'a> {
        board: &'a str,
        member: &'a str,
        score: u64,
        position: u64,
    }
    let file = BufReader::new(File::open(path).expect("it was written"));
    let mut sum = Sum::default();
    for line in file.lines().skip(1) {
        let line = line.expect("readable");
        let row: Row<'_> = serde_json::from_str(&line).expect("well-formed");
        assert_eq!((row.board, row.position), (BOARD, sum.rows + 1), "entries are in order");
        sum.add(row.member, &row.score.to_string());
    }
    sum
}
