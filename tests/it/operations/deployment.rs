//! Reads the shipped deployment files, and tries those whose programs are installed.
//!
//! Docker's engine is not needed. `make deploy-check` has `docker compose` look at its file where it is
//! installed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

fn shipped(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("it is in the repository")
}

/// The service's own, which is built here, and the one image whose digest is not known: what a registry
/// serves under the tag is trusted.
const WITHOUT_DIGEST: [&str; 2] = ["ranktree:0.1.0", "nats:2.15.1-alpine"];

#[test]
fn images_are_pinned_and_containers_confined() {
    let compose = shipped("docker-compose.yml");
    let cluster = shipped("docker-compose.cluster.yml");
    let of = |key: &'static str| compose.lines().filter_map(move |line| line.trim().strip_prefix(key));
    let images: Vec<_> = of("image: ").collect();
    assert_eq!(images.len(), 7, "{images:?}");
    let dockerfile = shipped("Dockerfile");
    let bases = dockerfile.lines().filter_map(|line| line.strip_prefix("FROM ")?.split(' ').next());
    let of_cluster = cluster.lines().filter_map(|line| line.trim().strip_prefix("image: "));
    for image in images.iter().copied().chain(of_cluster).chain(bases) {
        let (name, digest) = image.split_once('@').unwrap_or((image, ""));
        let tag = name.split_once(':').map(|(_, tag)| tag).expect("a version is named");
        assert!(tag.matches(|c: char| c.is_ascii_digit()).count() >= 3, "{image} is not one version");
        let hash = digest.strip_prefix("sha256:").unwrap_or_default();
        let is_pinned = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(is_pinned || WITHOUT_DIGEST.contains(&name), "{image} names no digest");
    }
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
    let here = root.join(".venv/bin/nats-server");
    let program = if here.exists() { here } else { "nats-server".into() };
    for path in ["deploy/nats/nats-server.conf", "deploy/nats/cluster.conf"] {
        let mut check = Command::new(&program);
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
