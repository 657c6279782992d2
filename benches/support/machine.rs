//! What the machine was doing, and what a process took of it.

use std::fs;

/// Load averages over 1, 5 and 15 minutes, and the number of cores.
pub fn load() -> String {
    let averages = fs::read_to_string("/proc/loadavg").expect("Linux tells it");
    let averages: Vec<&str> = averages.split_whitespace().take(3).collect();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!("load average {} on {cores} cores", averages.join(" "))
}

/// Seconds of processor time that a process has had so far, in user and kernel mode.
pub fn cpu_seconds(pid: u32) -> f64 {
    cpu_seconds_of(&pid.to_string(), 11)
}

/// The same of all processes that this one has started and that have ended.
pub fn children_cpu_seconds() -> f64 {
    cpu_seconds_of("self", 13)
}

/// # Arguments
/// `skipped`: fields of the process's figures before user time.
fn cpu_seconds_of(process: &str, skipped: usize) -> f64 {
    /// Linux counts in hundredths of a second, whatever its own clock does.
    const TICKS_PER_SECOND: f64 = 100.0;
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { return 0.0 };
    // The name, in parentheses, may hold anything; fields are counted after it.
    let (_, fields) = stat.rsplit_once(')').expect("Linux writes it so");
    let ticks: f64 =
        fields.split_whitespace().skip(skipped).take(2).filter_map(|n| n.parse::<f64>().ok()).sum();
    ticks / TICKS_PER_SECOND
}

/// The middle one, or the mean of the middle two.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    if sorted.len().is_multiple_of(2) {
        f64::midpoint(at(middle.wrapping_sub(1)), at(middle))
    } else {
        at(middle)
    }
}

/// The median with the least and the most.
pub fn spread(values: &[f64], digits: usize) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{:.digits$} ({least:.digits$} to {most:.digits$})", median(values))
}
