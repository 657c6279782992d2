//! The dashboards and rules: a real Prometheus, with the shipped configuration, scrapes two loaded nodes, one of them
//! fed by NATS, and every expression of every panel and rule has to find something.
//!
//! `make prometheus` brings Prometheus and promtool. Of the configuration only addresses and intervals are changed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::binary::Binary;
use crate::support::client::Client;
use crate::support::nats::{Nats, wait_until};

/// Scrapes come every second here; a rate needs two of them.
const RATE_INTERVAL: &str = "15s";
const PATIENCE: Duration = Duration::from_secs(90);

#[test]
fn every_expression_of_every_panel_and_rule_finds_something() {
    let nats = Nats::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let url = nats.url();
    let often = ["--checkpoint-seconds", "1"];
    let embedded = Binary::start(&folder.path().join("embedded"), 2, &often);
    let fed = Binary::start(&folder.path().join("fed"), 1, &["--checkpoint-seconds", "1", "--nats", &url]);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for (service, nats) in [(&embedded, None), (&fed, Some(&nats))] {
            scope.spawn(|| {
                let client = service.client();
                let mut turn = 0;
                while !stop.load(Ordering::Relaxed) {
                    load(&client, turn);
                    turn += 1;
                }
            });
            let Some(nats) = nats else { continue };
            let publisher = nats.publisher();
            let stop = &stop;
            scope.spawn(move || {
                let mut turn = 0;
                while !stop.load(Ordering::Relaxed) {
                    let job = json!({"board": "nats", "member": format!("n{}", turn % 50), "score": turn});
                    publisher.publish("ranktree.jobs.0", &job.to_string(), Duration::from_secs(1));
                    turn += 1;
                }
            });
        }
        // Whatever fails below, those threads must end.
        let _stop = StopOnDrop(&stop);
        let prometheus = Prometheus::start(&[embedded.address(), fed.address()]);
        let mut wanted = Vec::new();
        for dashboard in dashboards() {
            wanted.extend(expressions_of_panels(&dashboard));
            wanted.extend(expressions_of_variables(&dashboard));
        }
        assert!(wanted.len() > 100, "only {} expressions", wanted.len());
        wanted.extend(prometheus.expressions_of_rules());
        prometheus.wait_for_all(wanted);
        prometheus.assert_rules_are_well();
    });
}

#[test]
fn promtool_accepts_the_rules_and_fires_every_alert() {
    let folder = root().join("dashboards/prometheus");
    for arguments in [
        ["check", "config", "prometheus.yml"],
        ["check", "rules", "rules/alerts.yml"],
        ["check", "rules", "rules/recording.yml"],
        ["test", "rules", "tests/alerts.yml"],
    ] {
        let output = Command::new(tool("promtool")).args(arguments).current_dir(&folder).output();
        let output = output.expect("promtool is here; `make prometheus` installs it");
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "promtool {arguments:?}\n{}", String::from_utf8_lossy(&said));
    }
}

#[test]
fn every_alert_has_a_paragraph_and_a_test() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("it is in the repository");
    let alerts = read("dashboards/prometheus/rules/alerts.yml");
    let names: BTreeSet<_> =
        alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(names.len() >= 20, "{names:?}");
    let runbooks = read("docs/runbooks.md");
    let headings: BTreeSet<_> = runbooks.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(names, headings, "an alert without a paragraph, or a paragraph without an alert");
    let tests = read("dashboards/prometheus/tests/alerts.yml");
    for name in &names {
        let anchor = format!("runbook_url: docs/runbooks.md#{}", name.to_lowercase());
        assert_eq!(count_lines(&alerts, &anchor), 1, "{name} names its paragraph");
        assert!(tests.contains(&format!("alertname=\"{name}\"")), "no test fires {name}");
        let paragraph =
            runbooks.split(&format!("### {name}\n")).nth(1).and_then(|rest| rest.split("\n#").next());
        let paragraph = paragraph.expect("there is such a heading");
        for part in ["**Means**", "**Look**", "**Do**"] {
            assert!(paragraph.contains(part), "{name} does not say {part}");
        }
    }
    // A link within the page leads somewhere.
    for link in runbooks.split("](#").skip(1) {
        let link = link.split(')').next().expect("a link ends");
        assert!(names.iter().any(|name| name.to_lowercase() == link), "nothing is at #{link}");
    }
}

#[test]
fn dashboards_are_what_their_source_says_and_say_what_they_show() {
    let mut check = Command::new("python3");
    check.arg(root().join("dashboards/generate.py")).arg("--check").stdin(Stdio::null());
    let output = check.output().expect("python3 is here");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let mut uids = BTreeSet::new();
    for dashboard in dashboards() {
        let title = dashboard["title"].as_str().expect("a title");
        assert!(uids.insert(dashboard["uid"].as_str().expect("a uid").to_owned()), "{title}");
        let variables: Vec<_> =
            dashboard["templating"]["list"].as_array().expect("variables").iter().collect();
        let names: Vec<_> =
            variables.iter().map(|variable| variable["name"].as_str().expect("a name")).collect();
        assert_eq!(&names[..3], ["datasource", "job", "instance"], "{title}");
        let mut ids = BTreeSet::new();
        for panel in dashboard["panels"].as_array().expect("panels") {
            let name = format!("{title}: {}", panel["title"]);
            assert!(ids.insert(panel["id"].as_u64().expect("a number")), "{name}");
            if panel["type"] == "row" {
                continue;
            }
            assert!(panel["description"].as_str().is_some_and(|text| text.len() > 8), "{name}");
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{name}");
            let unit = if panel["type"] == "heatmap" {
                &panel["options"]["yAxis"]["unit"]
            } else {
                &panel["fieldConfig"]["defaults"]["unit"]
            };
            assert!(unit.is_string(), "{name} has no unit");
            let targets = panel["targets"].as_array().expect("targets");
            let legends: BTreeSet<_> =
                targets.iter().map(|target| target["legendFormat"].to_string()).collect();
            assert_eq!(legends.len(), targets.len(), "{name}: two lines of one name");
        }
    }
    assert_eq!(uids.len(), 5);
}

/// A turn of everything: writes that are applied and rejected, reads by every route, and mistakes.
fn load(client: &Client, turn: u32) {
    let member = format!("m{}", turn % 200);
    let jobs: Vec<_> =
        (0..20).map(|job| json!({"member": format!("m{job}"), "board": "arena", "score": turn})).collect();
    client.post("/v1/jobs", &json!(jobs));
    let entry = format!("/v1/boards/arena/members/{member}");
    // The second is older than what is stored, and rejected.
    client.put(&entry, &json!({"score": turn, "version": u64::from(turn) + 2, "meta": {"turn": turn}}));
    client.put(&format!("{entry}?wait=applied"), &json!({"score": turn, "version": 1}));
    client.get(&entry);
    client.get("/v1/boards/arena/members/nobody");
    client.get(&format!("{entry}/around"));
    for read in ["top", "positions/1", "rank?score=3", "score?rank=1", "count?min=1"] {
        client.get(&format!("/v1/boards/arena/{read}"));
    }
    client.post("/v1/boards/arena/members:lookup", &json!({"members": [member]}));
    client.post("/v1/boards/arena/ranks:of", &json!({"scores": [1, 2]}));
    client.get(&format!("/v1/members/{member}?boards=arena"));
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Something to ask Prometheus, and where it stands.
struct Expression {
    place: String,
    query: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn tool(name: &str) -> PathBuf {
    let here = root().join(".tools/bin").join(name);
    if here.exists() { here } else { PathBuf::from(name) }
}

fn count_lines(text: &str, line: &str) -> usize {
    text.lines().filter(|found| found.trim() == line).count()
}

fn dashboards() -> Vec<Value> {
    let files = fs::read_dir(root().join("dashboards/grafana")).expect("the folder is there");
    let parse = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("it can be read");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    files.map(|file| parse(file.expect("the folder can be read").path())).collect()
}

/// The expression as Grafana sends it, with everything chosen.
fn substituted(expr: &str) -> String {
    let mut query = expr.replace("$__rate_interval", RATE_INTERVAL);
    for (variable, value) in [("$job", "ranktree"), ("$instance", ".*"), ("$shard", ".*"), ("$route", ".*")] {
        query = query.replace(&format!("=~\"{variable}\""), &format!("=~\"{value}\""));
    }
    assert!(!query.contains('$'), "a variable that no dashboard has: {query}");
    query
}

/// Those of the panels, and the metrics in them one by one: a sum of what is there and what is not is empty, but a
/// zero in place of nothing hides what is not there.
fn expressions_of_panels(dashboard: &Value) -> Vec<Expression> {
    let mut found = Vec::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let place = format!("{} / {} / {}", dashboard["title"], panel["title"], target["refId"]);
            let query = substituted(target["expr"].as_str().expect("an expression"));
            found.extend(selectors(&query).map(|query| Expression { place: place.clone(), query }));
            found.push(Expression { place, query });
        }
    }
    found
}

fn expressions_of_variables(dashboard: &Value) -> Vec<Expression> {
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    let queries = variables.iter().filter(|variable| variable["type"] == "query");
    let expression = |variable: &Value| {
        let query = variable["query"]["query"].as_str().expect("a query");
        let inner = query.strip_prefix("label_values(").and_then(|query| query.strip_suffix(')'));
        let (metric, label) =
            inner.and_then(|inner| inner.rsplit_once(", ")).expect("label_values(metric, label)");
        let place = format!("{} / variable {}", dashboard["title"], variable["name"]);
        let matcher = format!("{label}!=\"\"");
        let metric = substituted(metric);
        let query = match metric.split_once('{') {
            Some((name, matchers)) => format!("{name}{{{matcher},{matchers}"),
            None => format!("{metric}{{{matcher}}}"),
        };
        Expression { place, query }
    };
    queries.map(expression).collect()
}

/// The metrics of an expression, with their matchers.
fn selectors(expr: &str) -> impl Iterator<Item = String> {
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

#[test]
fn selectors_are_found_with_their_matchers() {
    let found: Vec<_> = selectors(
        "sum by (instance, le) (rate(ranktree_x_bucket{job=\"up\",a=~\"b|c\"}[5m])) / (up > 0.5 and process_y) or vector(0)",
    )
    .collect();
    assert_eq!(found, ["ranktree_x_bucket{job=\"up\",a=~\"b|c\"}", "up", "process_y"]);
}

/// A real Prometheus on a free port.
struct Prometheus {
    child: Child,
    client: Client,
    log: PathBuf,
    _folder: TempDir,
}

impl Prometheus {
    fn start(targets: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = format!("127.0.0.1:{}", port.expect("there is a free port").port());
        let folder = tempfile::tempdir().expect("a temporary directory");
        let shipped = root().join("dashboards/prometheus");
        let mut config = fs::read_to_string(shipped.join("prometheus.yml")).expect("it is in the repository");
        let targets: Vec<_> = targets.iter().map(|target| format!("\"{target}\"")).collect();
        for (from, to) in [
            ("\"ranktree:8080\"", targets.join(", ")),
            ("\"127.0.0.1:9090\"", format!("\"{address}\"")),
            ("scrape_interval: 5s", "scrape_interval: 1s".to_owned()),
            ("scrape_timeout: 4s", "scrape_timeout: 1s".to_owned()),
            ("evaluation_interval: 15s", "evaluation_interval: 1s".to_owned()),
            ("rules/*.yml", shipped.join("rules/*.yml").display().to_string()),
        ] {
            assert_eq!(config.matches(from).count(), 1, "the configuration has {from} once");
            config = config.replace(from, &to);
        }
        let (file, log) = (folder.path().join("prometheus.yml"), folder.path().join("log"));
        fs::write(&file, config).expect("it can be written");
        let mut command = Command::new(tool("prometheus"));
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
        command.arg(format!("--web.listen-address={address}"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(&log).expect("it can be written"));
        let child = command.spawn().expect("prometheus is here; `make prometheus` installs it");
        let prometheus =
            Self { child, client: Client::new(&format!("http://{address}")), log, _folder: folder };
        wait_until("Prometheus is ready", || {
            let answer = prometheus.client.send(ureq::http::Method::GET, "/-/ready", None);
            answer.is_ok_and(|(status, _)| status == 200)
        });
        prometheus
    }

    /// What a query finds; `Err` if it is refused.
    fn query(&self, query: &str) -> Result<Vec<f64>, String> {
        let path = format!("/api/v1/query?query={}", utf8_percent_encode(query, NON_ALPHANUMERIC));
        let (status, answer) = self.client.get(&path);
        if status != 200 {
            return Err(answer["error"].to_string());
        }
        let series = answer["data"]["result"].as_array().expect("a vector");
        let values = series.iter().filter_map(|series| series["value"][1].as_str()?.parse::<f64>().ok());
        Ok(values.filter(|value| value.is_finite()).collect())
    }

    fn rules(&self) -> Vec<Value> {
        let (status, answer) = self.client.get("/api/v1/rules");
        assert_eq!(status, 200, "{answer}");
        let groups = answer["data"]["groups"].as_array().expect("groups");
        groups.iter().flat_map(|group| group["rules"].as_array().expect("rules").clone()).collect()
    }

    /// Of a recording rule, what it records and what it is made of; of an alert, which should not fire, what it is
    /// made of.
    fn expressions_of_rules(&self) -> Vec<Expression> {
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

    fn wait_for_all(&self, mut wanted: Vec<Expression>) {
        let started = Instant::now();
        loop {
            wanted.retain(|expression| match self.query(&expression.query) {
                Ok(values) => values.is_empty(),
                Err(error) => panic!("{}: {}: {error}", expression.place, expression.query),
            });
            if wanted.is_empty() {
                return;
            }
            if started.elapsed() > PATIENCE {
                let left: Vec<_> = wanted
                    .iter()
                    .map(|Expression { place, query }| format!("{place}\n    {query}"))
                    .collect();
                panic!("no data after {PATIENCE:?}:\n{}", left.join("\n"));
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn assert_rules_are_well(&self) {
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
