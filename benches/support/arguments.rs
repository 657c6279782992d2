//! What is asked for on the command line.

/// The value of `--name value` on the command line.
pub fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args();
    arguments.find(|argument| argument == &format!("--{name}"))?;
    arguments.next()
}

/// A number given as `--name value`, or the default.
pub fn number(name: &str, default: u64) -> u64 {
    argument(name).map_or(default, |text| text.parse().expect("a number"))
}

/// A list given as `--name a,b`, or the default.
pub fn list(name: &str, default: &str) -> Vec<String> {
    argument(name).unwrap_or_else(|| default.to_owned()).split(',').map(str::to_owned).collect()
}
