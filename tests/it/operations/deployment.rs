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

#[test]
fn images_are_pinned_and_containers_confined() {
    let compose = shipped("docker-compose.yml");
    let of = |key: &'static str| compose.lines().filter_map(move |line| line.trim().strip_prefix(key));
    let images: Vec<_> = of("image: ").collect();
    assert_eq!(images.len(), 7, "{images:?}");
    let dockerfile = shipped("Dockerfile");
    let bases = dockerfile.lines().filter_map(|line| line.strip_prefix("FROM ")?.split(' ').next());
    for image in images.iter().copied().chain(bases) {
        let tag = image.split_once(':').map(|(_, tag)| tag).expect("a version is named");
        assert!(tag.matches(|c: char| c.is_ascii_digit()).count() >= 3, "{image} is not one version");
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
fn nats_takes_its_configuration_and_stores_durably() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let here = root.join(".venv/bin/nats-server");
    let program = if here.exists() { here } else { "nats-server".into() };
    let mut check = Command::new(program);
    check.args(["-t", "-c", "deploy/nats/nats-server.conf"]).current_dir(root).stdin(Stdio::null());
    for user in ["NODE", "GAME", "REJECTS"] {
        check.env(format!("RANKTREE_{user}_PASSWORD"), "secret");
    }
    let output = check.output().expect("nats-server is here; `make nats` installs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(shipped("deploy/nats/nats-server.conf").contains("\n  sync_interval: always\n"));
}
