//! Requests to a service by wrk: one thread, so many connections, each waits for each of its answers.

use std::process::Command;
use std::time::Duration;

use super::measured::Measured;

/// # Arguments
/// `script`: Lua whose `request` makes one of them.
pub fn run(url: &str, connections: u64, seconds: u64, script: &str) -> Measured {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("script.lua");
    std::fs::write(&path, script).expect("the script is written");
    let output = Command::new("wrk")
        .args(["-t1", "--latency", "-c", &connections.to_string(), "-d", &seconds.to_string(), "-s"])
        .arg(&path)
        .arg(url)
        .output()
        .expect("wrk runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.contains("Non-2xx"), "some requests failed:\n{text}");
    let after = |start| {
        let rest = text.lines().find_map(|line| line.trim().strip_prefix(start));
        rest.unwrap_or_else(|| panic!("wrk says so: {text}")).trim()
    };
    let per_second = after("Requests/sec:").parse().expect("a number");
    Measured { per_second, p50: duration(after("50%")), p99: duration(after("99%")) }
}

/// As wrk writes it: `250.00us`, `1.20ms` or `2.00s`.
fn duration(text: &str) -> Duration {
    let (number, seconds) = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0)]
        .into_iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))
        .expect("wrk writes a unit");
    Duration::from_secs_f64(number.parse::<f64>().expect("a number") * seconds)
}
