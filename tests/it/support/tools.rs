//! Programs of others that tests run: where each is, and what becomes of a test without one.
//!
//! A test that tried nothing must not pass for one that did. So most of them fail without their program, in
//! words that say how to get it. What not every machine can have is left out, and said; where `CI` is set
//! that fails, too.

use std::env;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Where the Makefile puts programs for this clone.
const FOLDERS: [&str; 2] = [".venv/bin", ".tools/bin"];
/// The variable that names programs, with spaces between them, that a machine of CI is known to lack.
const WITHOUT: &str = "TESTS_WITHOUT";

/// A program as the Makefile got it for this clone, or else the one in `PATH`, if there is one.
pub fn tool(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let here = FOLDERS.iter().map(|folder| root.join(folder).join(name)).find(|path| path.exists());
    here.unwrap_or_else(|| PathBuf::from(name))
}

/// For a test that returns without having tried anything, because a program is not here.
///
/// # Arguments
/// `way`: how to get it.
///
/// # Panics
/// Where `CI` is set, unless `TESTS_WITHOUT` names the program.
pub fn missing(program: &str, way: &str) {
    let [ci, without] = ["CI", WITHOUT].map(|name| env::var(name).unwrap_or_default());
    assert!(may_lack(program, &ci, &without), "{program} is not here; {way}");
    left_out(&format!("{program} is not here; {way}"));
}

/// Says what was not tried, and why, past what the test runner holds back.
pub fn left_out(why: &str) {
    std::io::stderr().write_all(format!("left out: {why}\n").as_bytes()).expect("it can be written");
}

fn may_lack(program: &str, ci: &str, without: &str) -> bool {
    ci.is_empty() || without.split(' ').any(|name| name == program)
}

#[test]
fn a_program_is_not_missed_silently_where_ci_is_set() {
    for (ci, without, expect) in [
        ("", "", true),
        ("true", "", false),
        ("true", "valgrind", false),
        ("true", "chromium", true),
        ("true", "valgrind chromium", true),
        ("true", "chromium-browser", false),
    ] {
        assert_eq!(may_lack("chromium", ci, without), expect, "{ci:?} {without:?}");
    }
}
