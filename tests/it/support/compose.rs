//! What docker-compose.yml says of its services: as much of YAML as that file uses.

use std::collections::BTreeMap;
use std::path::Path;

pub struct Compose(String);

impl Compose {
    pub fn shipped() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docker-compose.yml");
        Self(std::fs::read_to_string(path).expect("it is in the repository"))
    }

    /// The services by name.
    pub fn services(&self) -> BTreeMap<&str, Service<'_>> {
        let services =
            self.0.split("\nservices:\n").nth(1).and_then(|rest| rest.split("\nvolumes:\n").next());
        let mut found: BTreeMap<_, Service<'_>> = BTreeMap::new();
        let mut name = "";
        for line in services.expect("there are services").lines() {
            match line.strip_prefix("  ") {
                Some(key) if !key.starts_with([' ', '#']) && key.ends_with(':') => {
                    name = key.trim_end_matches(':');
                    found.insert(name, Service(Vec::new()));
                }
                _ if line.trim_start().starts_with('#') => {}
                _ => {
                    if let Some(service) = found.get_mut(name) {
                        service.0.push(line);
                    }
                }
            }
        }
        found
    }
}

/// The lines of a service, without comments.
pub struct Service<'a>(Vec<&'a str>);

impl<'a> Service<'a> {
    pub fn is_ours(&self) -> bool {
        self.0.iter().any(|line| line.trim().starts_with("image: ranktree:"))
    }

    /// A list of words, on one line or a line for each; empty if there is none.
    pub fn list(&self, key: &str) -> Vec<&'a str> {
        let key = format!("    {key}:");
        let Some(at) = self.0.iter().position(|line| line.starts_with(&key)) else { return Vec::new() };
        let here = self.0[at][key.len()..].trim();
        if here.is_empty() {
            return self.0[at + 1..].iter().map_while(|line| line.trim().strip_prefix("- ")).collect();
        }
        let inner = here.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let inner = inner.unwrap_or_else(|| panic!("{key} is no list: {here}"));
        inner.split(", ").map(|word| word.trim_matches('"')).collect()
    }

    /// A value that is one word.
    pub fn value(&self, key: &str) -> Option<&'a str> {
        let key = format!("    {key}: ");
        self.0.iter().find_map(|line| line.strip_prefix(&key)).map(|value| value.trim_matches('"'))
    }

    /// Its variables and their values.
    pub fn environment(&self) -> Vec<(&'a str, &'a str)> {
        let at = self.0.iter().position(|line| *line == "    environment:");
        let lines = at.map_or(&[][..], |at| &self.0[at + 1..]);
        let lines = lines.iter().take_while(|line| line.starts_with("      "));
        // A name without a value hands on what is set where compose is called.
        let lines = lines.filter(|line| !line.ends_with(':'));
        let pairs = lines.map(|line| line.trim().split_once(": ").expect("a name and a value"));
        pairs.map(|(name, value)| (name, value.trim_matches('"'))).collect()
    }
}
