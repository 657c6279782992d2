//! The metrics: all that the contract names, each with a description, and no more series than shards and
//! routes need.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::support::nats::{Nats, wait_until};
use crate::support::node::Node;

/// The names of the contract, and those that dashboards and alerts rest on, with their types.
const OF_THE_CONTRACT: &[(&str, &str)] = &[
    ("jobs_applied_total", "counter"),
    ("jobs_rejected_total", "counter"),
    ("batch_jobs", "histogram"),
    ("plan_seconds", "histogram"),
    ("commit_seconds", "histogram"),
    ("apply_seconds", "histogram"),
    ("publish_to_visible_seconds", "histogram"),
    ("applied_sequence", "gauge"),
    ("stream_lag_messages", "gauge"),
    ("members", "gauge"),
    ("tree_bytes", "gauge"),
    ("shard_state", "gauge"),
    ("read_seconds", "histogram"),
    ("read_shards", "histogram"),
    ("http_request_seconds", "histogram"),
    ("build_info", "gauge"),
];
const OF_OURS: &[(&str, &str)] = &[
    ("fetch_seconds", "histogram"),
    ("boards", "gauge"),
    ("read_only", "gauge"),
    ("boards_read_only", "gauge"),
    ("jobs_parked", "gauge"),
    ("state_lock_held_seconds", "histogram"),
    ("state_lock_wait_seconds", "histogram"),
    ("commit_failures_total", "counter"),
    ("storage_damaged", "gauge"),
    ("checkpoint_seconds", "histogram"),
    ("checkpoint_bytes", "gauge"),
    ("checkpoint_pages", "gauge"),
    ("checkpoint_sequence", "gauge"),
    ("checkpoint_timestamp_seconds", "gauge"),
    ("checkpoint_pending_changes", "gauge"),
    ("time_ahead_seconds", "gauge"),
    ("checkpoint_failures_total", "counter"),
    ("summary_age_seconds", "gauge"),
    ("summary_bytes", "gauge"),
    ("live_watchers", "gauge"),
    ("live_computations_total", "counter"),
    ("live_events_total", "counter"),
    ("live_coalesced_total", "counter"),
    ("live_dropped_total", "counter"),
    ("approximate_parts_total", "counter"),
    ("trace_spans_sent_total", "counter"),
    ("trace_spans_dropped_total", "counter"),
    ("data_dir_free_bytes", "gauge"),
    ("data_dir_size_bytes", "gauge"),
    ("http_responses_total", "counter"),
    ("http_requests_shed_total", "counter"),
    ("http_unauthorized_total", "counter"),
    ("http_connections", "gauge"),
    ("http_connections_ended_total", "counter"),
    ("rocksdb_memtable_bytes", "gauge"),
    ("rocksdb_sst_bytes", "gauge"),
    ("rocksdb_pending_compaction_bytes", "gauge"),
    ("rocksdb_running_compactions", "gauge"),
    ("rocksdb_running_flushes", "gauge"),
    ("rocksdb_level0_files", "gauge"),
    ("rocksdb_table_readers_bytes", "gauge"),
    ("rocksdb_background_errors", "gauge"),
    ("rocksdb_writes_stopped", "gauge"),
    ("rocksdb_block_cache_bytes", "gauge"),
    ("rocksdb_block_cache_capacity_bytes", "gauge"),
];
const OF_NATS: &[(&str, &str)] = &[
    ("decode_seconds", "histogram"),
    ("stream_messages", "gauge"),
    ("stream_bytes", "gauge"),
    ("stream_bytes_max", "gauge"),
    ("stream_misconfigured", "gauge"),
    ("stream_purged_messages_total", "counter"),
    ("stream_purged_early_messages_total", "counter"),
    ("write_requests_total", "counter"),
    ("nats_connections", "gauge"),
    ("nats_connections_wanted", "gauge"),
    ("nats_disconnects_total", "counter"),
    ("nodes", "gauge"),
    ("node_silent_seconds", "gauge"),
    ("shard_owners", "gauge"),
    ("shard_owners_live", "gauge"),
    ("shard_replicas_differing", "gauge"),
];

#[test]
fn every_metric_is_exposed_with_its_description_and_no_member_is_a_label() {
    let service = Node::shards(2).start();
    make_traffic(&service, 0..300);
    let before = scrape_with(&service, OF_OURS);
    for (name, kind) in OF_THE_CONTRACT.iter().chain(OF_OURS) {
        let name = format!("ranktree_{name}");
        let metric = before.metrics.get(&name).unwrap_or_else(|| panic!("there is no {name}"));
        assert_eq!(metric.kind, *kind, "{name}");
        assert!(metric.help.len() > 5, "{name} has no help: {:?}", metric.help);
        assert!(metric.series > 0, "{name} has no series");
    }
    for name in ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"] {
        assert!(before.metrics.contains_key(name), "there is no {name}");
    }
    let known = BTreeSet::from([
        "shard",
        "reason",
        "route",
        "class",
        "kind",
        "le",
        "version",
        "connection",
        "purpose",
        "source",
    ]);
    let labels: BTreeSet<_> = before.labels.keys().map(String::as_str).collect();
    assert!(labels.is_subset(&known), "{labels:?}");
    assert_eq!(before.labels["shard"], BTreeSet::from(["0".to_owned(), "1".to_owned()]));

    // Ten times as many members and boards, and not one more series.
    make_traffic(&service, 300..3_000);
    let after = scrape_with(&service, OF_OURS);
    assert_eq!(before.series(), after.series());
    // About forty per route and a hundred and fifty per shard.
    assert!(after.series() < 3_100, "{} series", after.series());
}

#[test]
fn seconds_are_counted_from_25_microseconds_to_10_seconds() {
    let service = Node::start();
    make_traffic(&service, 0..10);
    let text = text_of(&service);
    for name in ["plan_seconds", "commit_seconds", "apply_seconds", "publish_to_visible_seconds"] {
        assert_bounds(&text, name, "shard=\"0\"");
    }
    for name in ["read_seconds", "http_request_seconds"] {
        assert_bounds(&text, name, "route=\"member\"");
    }
}

#[test]
fn nats_connections_and_streams_have_metrics_of_their_own() {
    let mut nats = Nats::start();
    let service = Node::with_nats(&nats).shards(3).start();
    make_traffic(&service, 0..100);
    let found = scrape_with(&service, OF_NATS);
    for (name, kind) in OF_NATS {
        let metric = &found.metrics[&format!("ranktree_{name}")];
        assert_eq!((metric.kind.as_str(), metric.help.is_empty()), (*kind, false), "{name}");
    }
    let value = |series: &str| value_of(&text_of(&service), series);
    let up = |purpose: &str| value(&format!("ranktree_nats_connections{{connection=\"{purpose}\"}}"));
    let purposes = ["manage", "publish", "consume", "writes"];
    let all = [Some(1.0), Some(1.0), Some(3.0), Some(1.0)];
    assert_eq!(purposes.map(up), all);
    let wanted = "ranktree_nats_connections_wanted{connection=\"consume\"}";
    assert_eq!(value(wanted), Some(3.0));
    wait_until("the stream was looked at", || value("ranktree_stream_messages{shard=\"0\"}") > Some(0.0));

    nats.kill9();
    wait_until("all connections are down", || purposes.map(up) == [Some(0.0); 4]);
    assert_eq!(value(wanted), Some(3.0));
    assert_eq!(value("ranktree_nats_disconnects_total{connection=\"consume\"}"), Some(3.0));
    wait_until("no shard is live", || value("ranktree_shard_state{shard=\"0\"}") == Some(1.0));
    nats.restart();
    wait_until("all connections are up", || {
        purposes.map(up) == all && value("ranktree_shard_state{shard=\"0\"}") == Some(2.0)
    });
}

/// Writes and reads of some members, one board for each.
fn make_traffic(service: &Node, members: std::ops::Range<u32>) {
    let client = service.client();
    let jobs: Vec<_> = members
        .clone()
        .map(|member| json!({"board": format!("b{}", member % 100), "member": format!("m{member}"), "score": 1}))
        .collect();
    for jobs in jobs.chunks(1_000) {
        assert_eq!(client.post("/v1/jobs?wait=applied", &json!(jobs)).0, 200);
    }
    let member = members.start;
    let path = format!("/v1/boards/b{}/members/m{member}", member % 100);
    // With NATS a job of a new board waits for the board's definition.
    wait_until("the member is there", || client.get(&path).0 == 200);
    assert_eq!(client.get("/v1/boards/b0/members/nobody").0, 404);
}

fn text_of(service: &Node) -> String {
    let url = format!("http://{}/metrics", service.address());
    let mut answer = ureq::get(url).call().expect("metrics are served");
    answer.body_mut().read_to_string().expect("they are text")
}

/// Scrapes until the gauges that are updated periodically have been updated.
fn scrape_with(service: &Node, names: &[(&str, &str)]) -> Scrape {
    let mut scrape = Scrape::parse(&text_of(service));
    wait_until("all figures were looked at", || {
        scrape = Scrape::parse(&text_of(service));
        names.iter().all(|(name, _)| scrape.metrics.contains_key(&format!("ranktree_{name}")))
    });
    scrape
}

fn value_of(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(&format!("{series} ")))?;
    line.rsplit(' ').next().and_then(|value| value.parse().ok())
}

fn assert_bounds(text: &str, name: &str, label: &str) {
    let buckets = text
        .lines()
        .filter(|line| line.starts_with(&format!("ranktree_{name}_bucket{{")) && line.contains(label));
    let bounds = buckets.map(|line| {
        let bound = line.split("le=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a bound");
        bound.to_owned()
    });
    let bounds: Vec<_> = bounds.collect();
    let (first, last) = (bounds.first().expect("buckets"), &bounds[bounds.len() - 2]);
    assert_eq!((first.as_str(), last.as_str(), bounds.len()), ("0.000025", "10", 19), "{name}: {bounds:?}");
    assert_eq!(bounds.last().map(String::as_str), Some("+Inf"), "{name}");
}

#[derive(Default)]
struct Metric {
    kind: String,
    help: String,
    series: usize,
}

/// What a scrape found.
struct Scrape {
    metrics: BTreeMap<String, Metric>,
    /// Values by label.
    labels: BTreeMap<String, BTreeSet<String>>,
}

impl Scrape {
    fn parse(text: &str) -> Self {
        let mut scrape = Self { metrics: BTreeMap::new(), labels: BTreeMap::new() };
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').expect("a name and its help");
                help.clone_into(&mut scrape.metrics.entry(name.to_owned()).or_default().help);
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').expect("a name and its type");
                kind.clone_into(&mut scrape.metrics.entry(name.to_owned()).or_default().kind);
            } else {
                scrape.take_series(line);
            }
        }
        scrape
    }

    fn take_series(&mut self, line: &str) {
        let end = line.find(['{', ' ']).expect("a name and a value");
        let (name, rest) = line.split_at(end);
        let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|end| {
            name.strip_suffix(end)
                .filter(|base| self.metrics.get(*base).is_some_and(|m| m.kind == "histogram"))
        });
        let name = of_histogram.unwrap_or(name).to_owned();
        let metric =
            self.metrics.get_mut(&name).unwrap_or_else(|| panic!("{name} has neither help nor type"));
        metric.series += 1;
        let Some(labels) = rest.strip_prefix('{').and_then(|rest| rest.rsplit_once('}')) else { return };
        for label in labels.0.split("\",") {
            let (label, value) = label.split_once("=\"").expect("a label and its value");
            let value = value.trim_end_matches('"').to_owned();
            self.labels.entry(label.to_owned()).or_default().insert(value);
        }
    }

    fn series(&self) -> usize {
        // Metrics of the process depend on the platform.
        let ours = self.metrics.iter().filter(|(name, _)| name.starts_with("ranktree_"));
        ours.map(|(_, metric)| metric.series).sum()
    }
}
