//! Who this node is: its name, its address, and what tells its data directory from others.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use crate::config::ServeConfig;
use crate::queue::ThisNode;
use crate::types::{MAX_NODE_BYTES, NodeName};

/// Describes this node.
///
/// # Arguments
/// `bound`: the address that it listens on.
pub fn describe(config: &ServeConfig, bound: SocketAddr) -> std::io::Result<ThisNode> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let scheme = if config.http.tls.is_some() { "https" } else { "http" };
    let address = if bound.ip().is_unspecified() {
        format!("{scheme}://{host}:{}", bound.port())
    } else {
        format!("{scheme}://{bound}")
    };
    let name = config.node.clone().unwrap_or_else(|| default_name(&host, bound.port()));
    Ok(ThisNode { name, address, directory: identity_of(&config.data_dir, &host)? })
}

/// The host's name and the port. What a name cannot hold is left out.
fn default_name(host: &str, port: u16) -> NodeName {
    let end = format!(":{port}");
    let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let host = host.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let host: String = host.chars().filter(fits).take(MAX_NODE_BYTES - end.len()).collect();
    let host = if host.is_empty() { "node" } else { &host };
    NodeName::new(&(host.to_owned() + &end)).expect("it begins with a letter or digit, fits and is cut")
}

/// Tells a data directory from every other one, copies of it among them: its number in its file system, and
/// when it was made. Where that is not known, the machine and the path.
fn identity_of(data_dir: &Path, host: &str) -> std::io::Result<String> {
    let facts = std::fs::metadata(data_dir)?;
    let made = facts.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    Ok(match made {
        Some(made) => format!("{:x}-{:x}", facts.ino(), made.as_nanos()),
        None => format!("{host}:{}", std::fs::canonicalize(data_dir)?.display()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_name_is_the_host_and_the_port() {
        for (host, name) in [
            ("eu-1.ranks", "eu-1.ranks:8080"),
            ("-a b", "ab:8080"),
            ("", "node:8080"),
            ("\u{fc}", "node:8080"),
        ] {
            assert_eq!(default_name(host, 8080).as_str(), name);
        }
        assert_eq!(default_name(&"h".repeat(99), 65_535).as_str().len(), MAX_NODE_BYTES);
    }

    #[test]
    fn a_data_directory_is_itself_under_another_path_and_no_other() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let identity = |name: &str| identity_of(&folder.path().join(name), "h").expect("it is there");
        std::fs::create_dir(folder.path().join("a")).expect("it can be made");
        std::fs::create_dir(folder.path().join("b")).expect("it can be made");
        let before = identity("a");
        assert_ne!(before, identity("b"));
        std::fs::rename(folder.path().join("a"), folder.path().join("c")).expect("it can be moved");
        assert_eq!(identity("c"), before);
    }
}
