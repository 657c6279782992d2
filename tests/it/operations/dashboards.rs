//! The dashboards and rules: a real Prometheus, with the shipped configuration, scrapes loaded nodes, with
//! and without NATS, and every expression of every panel and rule has to find something.
//!
//! Conversely, every metric is in a panel or a rule, or is listed here with the reason why not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::nats::Nats;
use crate::support::node::Node;
use crate::support::prometheus::{Expression, Prometheus, selectors};
use crate::support::redis::{ask, connect, listening_in, socket_in};
use crate::support::tools::tool;
use crate::support::write_service::GameService;

/// Scrapes come every second here; a rate needs two of them.
const RATE_INTERVAL: &str = "15s";

/// The token that one of the nodes requires, and its line in the tokens file.
const TOKEN: &str = "rkt_0123456789abcdef0123456789abcdef";
const TOKEN_SHA256: &str = "a03b485a91ed91fba0c826ee8b445d353594969a7c365aebfa35625edfd2dde8";

/// Metrics that no panel shows and no rule watches, and why.
const NOT_SHOWN: &[(&str, &str)] = &[
    ("process_virtual_memory_bytes", "addresses cost nothing; what is resident is shown"),
    ("process_virtual_memory_max_bytes", "a limit of addresses, which nobody sets"),
    ("ranktree_approximate_parts_total", "explains how quick approximate reads are; their age is shown"),
    ("ranktree_summary_bytes", "64 MiB at most"),
    ("ranktree_trace_spans_dropped_total", "says how whole traces are; the log says why they are not"),
    ("ranktree_trace_spans_sent_total", "traces are looked at where they are sent"),
];

#[test]
fn every_expression_of_every_panel_and_rule_finds_something() {
    let nats = Nats::start();
    let folder = tempfile::tempdir().expect("a temporary directory");
    let often = ["--checkpoint-seconds", "1"];
    // One of them asks for a token.
    let tokens = folder.path().join("tokens.toml");
    let line = format!("[[token]]\nname = \"all\"\nscope = \"admin\"\nsha256 = \"{TOKEN_SHA256}\"\n");
    fs::write(&tokens, line).expect("it can be written");
    let guarded = [&often[..], &["--tokens", tokens.to_str().expect("it is UTF-8")]].concat();
    let embedded = Node::shards(2).flags(&guarded).start();
    let fed = listening_in(folder.path(), Node::with_nats(&nats).flags(&often)).start();
    // One that owns no shard asks the one that does.
    let reader = Node::with_nats(&nats).flags(&["--node", "reader", "--own", "none"]).start();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                reader.client().get("/v1/boards/nats/top");
                thread::sleep(Duration::from_millis(20));
            }
        });
        let (folder, stopped) = (folder.path(), &stop);
        scope.spawn(move || {
            let mut redis = connect(&socket_in(folder));
            let commands = [
                &["ZADD", "redis", "1", "a"][..],
                &["ZCARD", "redis"],
                &["ZADD", "redis", "x", "a"],
                &["GET", "a"],
            ];
            while !stopped.load(Ordering::Relaxed) {
                for words in commands {
                    drop(ask(&mut redis, words));
                }
                thread::sleep(Duration::from_millis(20));
            }
        });
        for (service, nats) in [(&embedded, None), (&fed, Some(&nats))] {
            scope.spawn(|| {
                let client = service.client().with_token(TOKEN);
                let mut turn = 0;
                while !stop.load(Ordering::Relaxed) {
                    load(&client, turn);
                    turn += 1;
                }
            });
            let Some(nats) = nats else { continue };
            let (publisher, game) = (nats.publisher(), GameService::connect(&nats.url()));
            let stop = &stop;
            scope.spawn(move || {
                let mut turn = 0;
                while !stop.load(Ordering::Relaxed) {
                    let job = json!({"board": "nats", "member": format!("n{}", turn % 50), "score": turn});
                    game.write(&job);
                    turn += 1;
                }
            });
            scope.spawn(move || {
                let mut turn = 0;
                while !stop.load(Ordering::Relaxed) {
                    let job = json!({"board": "nats", "member": format!("n{}", turn % 50), "score": turn});
                    publisher.publish("ranktree.jobs.0", &job.to_string(), Duration::from_secs(1));
                    turn += 1;
                }
            });
        }
        // These threads must end even if an assertion below fails.
        let _stop = StopOnDrop(&stop);
        let prometheus = Prometheus::start(&[embedded.address(), fed.address(), reader.address()], TOKEN);
        let mut wanted = Vec::new();
        for dashboard in dashboards() {
            wanted.extend(expressions_of_panels(&dashboard));
            wanted.extend(expressions_of_variables(&dashboard));
        }
        assert!(wanted.len() > 100, "only {} expressions", wanted.len());
        wanted.extend(prometheus.expressions_of_rules());
        let used = wanted.iter().flat_map(|expression| selectors(&expression.query));
        let used = used.map(|selector| selector.split('{').next().expect("a name").to_owned()).collect();
        prometheus.wait_for_all(wanted);
        prometheus.assert_rules_are_well();
        assert_all_are_used(&[&embedded, &fed, &reader], &used);
        assert_runbooks_are_served(&prometheus);
    });
}

/// All metrics that these services expose and that the source names.
fn assert_all_are_used(services: &[&Node], used: &BTreeSet<String>) {
    let source = fs::read_to_string(root().join("src/metrics.rs")).expect("it is in the repository");
    let named: BTreeSet<_> =
        source.split('"').filter(|text| text.starts_with("ranktree_")).map(str::to_owned).collect();
    let mut there = BTreeSet::new();
    for service in services {
        let mut answer = ureq::get(format!("{}/metrics", service.base()))
            .header("authorization", format!("Bearer {TOKEN}"))
            .call()
            .expect("metrics are served");
        let text = answer.body_mut().read_to_string().expect("they are text");
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        there.extend(types.map(str::to_owned));
    }
    let ours: BTreeSet<_> = there.iter().filter(|name| name.starts_with("ranktree_")).cloned().collect();
    assert_eq!(ours, named, "what loaded services have, and what src/metrics.rs names");
    let parts = ["", "_bucket", "_sum", "_count"];
    let is_used = |name: &str| parts.iter().any(|part| used.contains(&format!("{name}{part}")));
    let unused: Vec<_> = there.iter().filter(|name| !is_used(name)).map(String::as_str).collect();
    let excused: Vec<_> = NOT_SHOWN.iter().map(|(name, _)| *name).collect();
    assert_eq!(unused, excused, "on no panel and in no rule, and excused for it");
}

/// The link of each alert leads to its paragraph.
fn assert_runbooks_are_served(prometheus: &Prometheus) {
    let page = prometheus.page("/user/runbooks.html");
    let mut alerts = 0;
    for rule in prometheus.rules() {
        let Some(url) = rule["annotations"]["runbook_url"].as_str() else { continue };
        let anchor = url.strip_prefix("{{ $externalURL }}/user/runbooks.html#").expect("it is on that page");
        let heading = format!("<h3 id=\"{anchor}\">{}</h3>", rule["name"].as_str().expect("a name"));
        assert!(page.contains(&heading), "{url} leads to no {heading}");
        alerts += 1;
    }
    assert!(alerts >= 20, "only {alerts} alerts lead somewhere");
}

#[test]
fn promtool_accepts_the_rules_and_fires_every_alert() {
    let folder = root().join("dashboards/prometheus");
    for arguments in [
        &["check", "config", "--syntax-only", "prometheus.yml"][..],
        &["check", "rules", "rules/alerts.yml"],
        &["check", "rules", "rules/recording.yml"],
        &["test", "rules", "tests/alerts.yml"],
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
        let page = "{{ $externalURL }}/user/runbooks.html";
        let anchor = format!("runbook_url: \"{page}#{}\"", name.to_lowercase());
        assert_eq!(count_lines(&alerts, &anchor), 1, "{name} names its paragraph");
        assert!(tests.contains(&format!("alertname=\"{name}\"")), "no test fires {name}");
        let paragraph =
            runbooks.split(&format!("### {name}\n")).nth(1).and_then(|rest| rest.split("\n#").next());
        let paragraph = paragraph.expect("there is such a heading");
        for part in ["**Means**", "**Look**", "**Do**"] {
            assert!(paragraph.contains(part), "{name} does not say {part}");
        }
    }
    // Every link within the page has a target.
    for link in runbooks.split("](#").skip(1) {
        let link = link.split(')').next().expect("a link ends");
        assert!(names.iter().any(|name| name.to_lowercase() == link), "nothing is at #{link}");
    }
}

#[test]
fn the_runbook_page_matches_its_source() {
    assert_is_up_to_date("runbooks.py");
}

fn assert_is_up_to_date(script: &str) {
    let mut check = Command::new("python3");
    check.arg(root().join("dashboards").join(script)).arg("--check").stdin(Stdio::null());
    let output = check.output().expect("python3 is here");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn dashboards_match_their_generator_and_describe_their_panels() {
    assert_is_up_to_date("generate.py");
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

/// One round of everything: writes that are applied and rejected, reads of every route, and invalid requests.
fn load(client: &Client, turn: u32) {
    let member = format!("m{}", turn % 200);
    let jobs: Vec<_> =
        (0..20).map(|job| json!({"member": format!("m{job}"), "board": "arena", "score": turn})).collect();
    client.post("/v1/jobs", &json!(jobs));
    let entry = format!("/v1/boards/arena/members/{member}");
    // The second job has a version that is not greater than the stored one, and is rejected.
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

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
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

/// The expressions of the panels, and each metric in them by itself. A sum with a missing metric is empty,
/// but `or vector(0)` would hide a missing metric.
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

#[test]
fn selectors_are_found_with_their_matchers() {
    let found: Vec<_> = selectors(
        "sum by (instance, le) (rate(ranktree_x_bucket{job=\"up\",a=~\"b|c\"}[5m])) / (up > 0.5 and process_y) or vector(0)",
    )
    .collect();
    assert_eq!(found, ["ranktree_x_bucket{job=\"up\",a=~\"b|c\"}", "up", "process_y"]);
}
