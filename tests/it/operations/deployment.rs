//! Reads the shipped deployment files, and tries those whose programs are installed.
//!
//! Docker's engine is not needed. `make deploy-check` has `docker compose` look at its file where it is
//! installed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::tools::tool;

fn shipped(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("it is in the repository")
}

#[test]
fn containers_are_confined() {
    let compose = shipped("docker-compose.yml");
    let of = |key: &'static str| compose.lines().filter_map(move |line| line.trim().strip_prefix(key));
    let images: Vec<_> = of("image: ").collect();
    assert_eq!(images.len(), 7, "{images:?}");
    let dockerfile = shipped("Dockerfile");
    // Each container has all of the shared restrictions.
    assert_eq!(of("<<: *hardened").count(), images.len());
    let anchor = compose.split("x-hardened:").nth(1).and_then(|rest| rest.split("\nservices:").next());
    let anchor = anchor.expect("it comes before the services");
    for confined in ["read_only: true", "no-new-privileges:true", "cap_drop: [ALL]", "max-size"] {
        assert!(anchor.contains(confined), "{confined}");
    }
    // Published ports are bound to loopback addresses.
    let ports: Vec<_> = of("- \"").filter(|line| line.contains("_PORT")).collect();
    assert_eq!(ports.len(), 4, "{ports:?}");
    assert_eq!(of("ports:").count(), ports.len(), "one each");
    assert!(ports.iter().all(|port| port.starts_with("127.0.0.1:")), "{ports:?}");
    for confined in ["USER 65532:65532", "STOPSIGNAL SIGTERM", "VOLUME /data", "HEALTHCHECK "] {
        assert!(dockerfile.lines().any(|line| line.starts_with(confined)), "{confined}");
    }
}

#[test]
fn nats_takes_its_configurations_and_stores_durably_and_shows_strangers_nothing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for path in ["deploy/nats/nats-server.conf", "deploy/nats/cluster.conf"] {
        let mut check = Command::new(tool("nats-server"));
        check.args(["-t", "-c", path]).current_dir(root).stdin(Stdio::null()).env("NATS_NAME", "nats-1");
        for user in ["NODE", "GAME", "REJECTS", "ROUTE"] {
            check.env(format!("RANKTREE_{user}_PASSWORD"), "secret");
        }
        for number in 1..=3 {
            let route = format!("nats://route:secret@nats-{number}:6222");
            check.env(format!("RANKTREE_ROUTE_{number}"), route);
        }
        let output = check.output().expect("nats-server is here; `make nats` installs it");
        assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
        let config = shipped(path);
        assert!(config.contains("\n  sync_interval: always\n"), "{path}");
        // It asks for no password.
        let monitoring: Vec<_> = config.lines().filter(|line| line.starts_with("http")).collect();
        assert_eq!(monitoring, ["http: 127.0.0.1:8222"], "{path}");
    }
}
