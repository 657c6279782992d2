//! A real Prometheus with the shipped configuration, of which only addresses, intervals and folders are
//! changed, and what to ask it. `make prometheus` brings it.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::client::Client;
use crate::support::nats::wait_until;
use crate::support::tools::tool;

const TIMEOUT: Duration = Duration::from_secs(180);

/// A real Prometheus on a free port.
pub struct Prometheus {
    child: Child,
    base: String,
    client: Client,
    log: PathBuf,
    _folder: TempDir,
}

impl Prometheus {
    /// Scrapes these with a token.
    pub fn start(targets: &[&str], token: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = format!("127.0.0.1:{}", port.expect("there is a free port").port());
        let folder = tempfile::tempdir().expect("a temporary directory");
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards/prometheus");
        let mut config = fs::read_to_string(shipped.join("prometheus.yml")).expect("it is in the repository");
        let targets: Vec<_> = targets.iter().map(|target| format!("\"{target}\"")).collect();
        for (from, to) in [
            ("\"ranktree:8080\"", targets.join(", ")),
            ("\"127.0.0.1:9090\"", format!("\"{address}\"")),
            ("scrape_interval: 5s", "scrape_interval: 1s".to_owned()),
            ("scrape_timeout: 4s", "scrape_timeout: 1s".to_owned()),
            ("evaluation_interval: 15s", "evaluation_interval: 1s".to_owned()),
            ("/secrets/prometheus/token", folder.path().join("token").display().to_string()),
            ("rules/*.yml", shipped.join("rules/*.yml").display().to_string()),
        ] {
            assert_eq!(config.matches(from).count(), 1, "the configuration has {from} once");
            config = config.replace(from, &to);
        }
        fs::write(folder.path().join("token"), token).expect("it can be written");
        let (file, log) = (folder.path().join("prometheus.yml"), folder.path().join("log"));
        fs::write(&file, config).expect("it can be written");
        let mut command = Command::new(tool("prometheus"));
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
        command.arg(format!("--web.listen-address={address}"));
        command.arg(format!("--web.user-assets={}", shipped.join("user").display()));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(&log).expect("it can be written"));
        let child = command.spawn().expect("prometheus is here; `make prometheus` installs it");
        let base = format!("http://{address}");
        let prometheus = Self { child, client: Client::new(&base), base, log, _folder: folder };
        wait_until("Prometheus is ready", || {
            let answer = prometheus.client.send(ureq::http::Method::GET, "/-/ready", None);
            answer.is_ok_and(|(status, _)| status == 200)
        });
        prometheus
    }

    /// What a query finds; `Err` if it is refused.
    pub fn query(&self, query: &str) -> Result<Vec<f64>, String> {
        let path = format!("/api/v1/query?query={}", utf8_percent_encode(query, NON_ALPHANUMERIC));
        let (status, answer) = self.client.get(&path);
        if status != 200 {
            return Err(answer["error"].to_string());
        }
        let series = answer["data"]["result"].as_array().expect("a vector");
        let values = series.iter().filter_map(|series| series["value"][1].as_str()?.parse::<f64>().ok());
        Ok(values.filter(|value| value.is_finite()).collect())
    }

    /// A page that it serves.
    pub fn page(&self, path: &str) -> String {
        let mut answer = ureq::get(format!("{}{path}", self.base)).call().expect("there is such a page");
        answer.body_mut().read_to_string().expect("it is text")
    }

    pub fn rules(&self) -> Vec<Value> {
        let (status, answer) = self.client.get("/api/v1/rules");
        assert_eq!(status, 200, "{answer}");
        let groups = answer["data"]["groups"].as_array().expect("groups");
        groups.iter().flat_map(|group| group["rules"].as_array().expect("rules").clone()).collect()
    }

    /// Of a recording rule, what it records and what it is made of; of an alert, which should not fire, what
    /// it is made of.
    pub fn expressions_of_rules(&self) -> Vec<Expression> {
        let mut found = Vec::new();
        let rules = self.rules();
        assert!(rules.len() > 30, "only {} rules are loaded", rules.len());
        for rule in rules {
            let (name, expr) =
                (rule["name"].as_str().expect("a name"), rule["query"].as_str().expect("a query"));
            let place = format!("rule {name}");
            let before = found.len();
            found.extend(selectors(expr).map(|query| Expression { place: place.clone(), query }));
            assert!(found.len() > before, "{name} has no metric that is known here: {expr}");
            if rule["type"] == "recording" {
                found.push(Expression { place, query: name.to_owned() });
            }
        }
        found
    }

    pub fn wait_for_all(&self, mut wanted: Vec<Expression>) {
        let started = Instant::now();
        loop {
            wanted.retain(|expression| match self.query(&expression.query) {
                Ok(values) => values.is_empty(),
                Err(error) => panic!("{}: {}: {error}", expression.place, expression.query),
            });
            if wanted.is_empty() {
                return;
            }
            if started.elapsed() > TIMEOUT {
                let left: Vec<_> = wanted
                    .iter()
                    .map(|Expression { place, query }| format!("{place}\n    {query}"))
                    .collect();
                panic!("no data after {TIMEOUT:?}:\n{}", left.join("\n"));
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    pub fn assert_rules_are_well(&self) {
        for rule in self.rules() {
            assert_eq!(rule["health"], "ok", "{rule}");
            // These would mean that the nodes of this test are not well, or that the rule is wrong.
            let alarming =
                ["RanktreeDown", "RanktreeMissing", "RanktreeShardHalted", "RanktreeCommitFailing"];
            if alarming.iter().any(|name| rule["name"] == *name) {
                assert_eq!(rule["state"], "inactive", "{rule}");
            }
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("Prometheus said:\n{}", fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}

/// Something to ask Prometheus, and where it stands.
pub struct Expression {
    pub place: String,
    pub query: String,
}

/// The metrics of an expression, with their matchers.
pub fn selectors(expr: &str) -> impl Iterator<Item = String> {
    const BEGINNINGS: &[&str] =
        &["ranktree_", "process_", "scrape_", "instance:", "instance_shard:", "instance_route:", "up"];
    let mut found = Vec::new();
    let mut rest = expr;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic() || matches!(c, '{' | '"')) {
        rest = &rest[start..];
        if rest.starts_with(['{', '"']) {
            let end = if rest.starts_with('{') { '}' } else { '"' };
            let length = rest[1..].find(end).expect("it is closed");
            rest = &rest[length + 2..];
            continue;
        }
        let length =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len());
        let (name, after) = rest.split_at(length);
        let matchers =
            if after.starts_with('{') { &after[..=after.find('}').expect("it is closed")] } else { "" };
        if BEGINNINGS
            .iter()
            .any(|beginning| name == *beginning || (name.starts_with(beginning) && *beginning != "up"))
        {
            found.push(format!("{name}{matchers}"));
        }
        rest = after;
    }
    found.into_iter()
}
