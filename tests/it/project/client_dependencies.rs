//! What the clients are made with is fixed: no version floats, and lock files hold the checksums.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::project::documents::root;

fn read(path: &str) -> String {
    fs::read_to_string(root().join("clients").join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn every_module_of_the_go_client_has_its_checksum() {
    let sums: BTreeSet<String> =
        read("go/go.sum").lines().filter_map(|line| Some(line.split_once(" h1:")?.0.to_owned())).collect();
    let modules = read("go/go.mod");
    // "MODULE vVERSION", in brackets or behind `require`, and behind it at most "// indirect".
    let required: Vec<(&str, &str)> = modules
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.trim().trim_start_matches("require ").split(' ').collect();
            match words.as_slice() {
                [module, version, ..] if version.starts_with('v') => Some((*module, *version)),
                _ => None,
            }
        })
        .collect();
    assert!(required.len() > 3, "{required:?}");
    for (module, version) in required {
        for wanted in [format!("{module} {version}"), format!("{module} {version}/go.mod")] {
            assert!(sums.contains(&wanted), "go.sum lacks {wanted}");
        }
    }
}

#[test]
fn no_version_of_the_csharp_client_floats() {
    let mut seen = 0;
    for path in ["csharp/src/Ranktree.csproj", "csharp/nats/Ranktree.Nats.csproj"] {
        let project = read(path);
        for reference in project.split("<PackageReference ").skip(1) {
            let reference = reference.split_once("/>").expect("it ends").0;
            let version = reference.split_once("Version=\"").and_then(|(_, rest)| rest.split_once('"'));
            let (version, _) = version.unwrap_or_else(|| panic!("{path}: {reference} has no version"));
            let is_fixed = version.split('.').all(|part| part.parse::<u32>().is_ok());
            assert!(is_fixed && version.contains('.'), "{path}: {version} is no fixed version");
            seen += 1;
        }
    }
    assert_eq!(seen, 2, "packages");
}

#[test]
fn what_the_tests_of_the_clients_install_is_fixed() {
    let package: Value = serde_json::from_str(&read("typescript/package.json")).expect("it is JSON");
    let lock: Value = serde_json::from_str(&read("typescript/package-lock.json")).expect("it is JSON");
    let locked = lock["packages"].as_object().expect("it has packages");
    let development = package["devDependencies"].as_object().expect("it has some");
    assert!(development.len() > 3, "{development:?}");
    for (name, version) in development {
        assert_eq!(
            &locked[&format!("node_modules/{name}")]["version"],
            version,
            "{name} is not fixed, or not locked"
        );
    }
    for (name, package) in locked.iter().filter(|(name, _)| !name.is_empty()) {
        assert!(package["integrity"].is_string(), "{name} has no checksum");
    }
    let project = read("python/pyproject.toml");
    for of in ["test = [", "requires = ["] {
        let (_, rest) = project.split_once(of).expect("it is there");
        let (list, _) = rest.split_once(']').expect("it ends");
        assert!(list.split(',').all(|one| one.contains("==")), "{list}");
    }
    let lock = read("rust/Cargo.lock");
    let packages = lock.matches("[[package]]").count();
    // All but the client itself come from a registry.
    assert_eq!(lock.matches("\nchecksum = ").count(), packages - 1);
}
