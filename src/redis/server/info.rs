//! `INFO`: the service in the sections that exporters read.

use std::fmt::Write as _;

use crate::redis::server::service::Service;

/// The version of Redis whose commands these are: clients look at it for what they may send.
pub const REDIS_VERSION: &str = "7.2.0";

/// The sections, whether they are told if none is asked for, and whether they are about all clients.
const SECTIONS: [(&str, bool, bool); 7] = [
    ("server", true, false),
    ("clients", true, true),
    ("persistence", true, false),
    ("stats", true, true),
    ("replication", true, false),
    ("commandstats", false, true),
    ("keyspace", true, false),
];

/// The text.
///
/// # Arguments
/// - `asked`: names of sections, `default`, `all` or `everything`; none for the default.
/// - `sees_all`: whether the client may know of others.
/// - `keys`: how many boards there are for the client.
pub fn info(service: &Service, asked: &[&[u8]], sees_all: bool, keys: u64) -> String {
    let is_asked = |word: &str| asked.iter().any(|section| section.eq_ignore_ascii_case(word.as_bytes()));
    let (all, default) = (is_asked("all") || is_asked("everything"), asked.is_empty() || is_asked("default"));
    let mut text = String::new();
    for (section, is_default, is_of_all) in SECTIONS {
        if is_of_all && !sees_all {
            continue;
        }
        if !(all || (default && is_default) || is_asked(section)) {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let mut letters = section.chars();
        let title: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
        let _ = write!(text, "# {title}\r\n");
        for (name, value) in fields(service, section, keys) {
            let _ = write!(text, "{name}:{value}\r\n");
        }
    }
    text
}

fn fields(service: &Service, section: &str, keys: u64) -> Vec<(String, String)> {
    let field = |name: &str, value: &dyn std::fmt::Display| (name.to_owned(), value.to_string());
    match section {
        "server" => vec![
            field("redis_version", &REDIS_VERSION),
            field("redis_mode", &"standalone"),
            field("ranktree_version", &env!("CARGO_PKG_VERSION")),
            field("process_id", &std::process::id()),
            field("tcp_port", &service.port),
            field("uptime_in_seconds", &service.started.elapsed().as_secs()),
        ],
        "clients" => vec![
            field("connected_clients", &service.clients.open_count()),
            field("maxclients", &service.connections_max),
            field("blocked_clients", &0),
        ],
        "persistence" => vec![field("loading", &0), field("aof_enabled", &1)],
        "stats" => {
            let commands: u64 = service.figures.stats().iter().map(|stats| stats.calls).sum();
            vec![
                field("total_connections_received", &service.clients.count()),
                field("total_commands_processed", &commands),
            ]
        }
        "replication" => vec![field("role", &"master"), field("connected_slaves", &0)],
        "commandstats" => {
            let stats = service.figures.stats();
            let line = stats.iter().map(|stats| {
                let each = stats.micros.checked_div(stats.calls).unwrap_or_default();
                let value = format!(
                    "calls={},usec={},usec_per_call={each}.00,rejected_calls=0,failed_calls={}",
                    stats.calls, stats.micros, stats.failed
                );
                (format!("cmdstat_{}", stats.name), value)
            });
            line.collect()
        }
        _ => match keys {
            0 => Vec::new(),
            keys => vec![field("db0", &format!("keys={keys},expires=0,avg_ttl=0"))],
        },
    }
}
