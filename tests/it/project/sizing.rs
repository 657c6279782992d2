//! What docs/sizing.md adds up is what its script prints, and the script counts with what was measured.

use std::fs;
use std::process::Command;

use crate::project::documents::root;

fn shipped(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect("it is in the repository")
}

/// The commands of the page, each with the lines that it shows behind it.
fn steps(page: &str) -> Vec<(String, Vec<&str>)> {
    let mut steps: Vec<(String, Vec<&str>)> = Vec::new();
    let mut is_open = false;
    for line in page.lines() {
        let Some(text) = line.strip_prefix("    ") else {
            is_open = false;
            continue;
        };
        if let Some(command) = text.strip_prefix("$ ") {
            steps.push((command.to_owned(), Vec::new()));
            is_open = true;
        } else if let (true, Some((command, shown))) = (is_open, steps.last_mut()) {
            if command.ends_with('\\') {
                command.push('\n');
                command.push_str(text);
            } else {
                shown.push(text);
            }
        }
    }
    steps
}

#[test]
fn the_page_shows_what_the_script_prints() {
    let page = shipped("docs/sizing.md");
    let steps = steps(&page);
    assert!(steps.len() >= 3, "{steps:?}");
    for (command, shown) in steps {
        let output = Command::new("sh").args(["-ec", &command]).current_dir(root()).output();
        let output = output.expect("there is a shell");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8(output.stdout).expect("it is text");
        assert_eq!(shown, printed.lines().collect::<Vec<_>>(), "{command}");
    }
}

/// Of a member and its entry after random updates, as the bench has printed them.
#[test]
fn the_script_counts_with_the_bytes_that_were_measured() {
    let results = shipped("docs/benchmarks/results/memory_intel.txt");
    let updated = results.split("board_12_byte_updated ").nth(1).expect("it was measured");
    let bytes_of = |what: &str| {
        let line = updated.lines().find_map(|line| line.trim().strip_prefix(what));
        let bytes = line.and_then(|line| line.strip_prefix(": ")?.strip_suffix(" B"));
        bytes.unwrap_or_else(|| panic!("{what} was measured")).to_owned()
    };
    let script = shipped("docs/sizing.py");
    let entry = ["leaves", "inner nodes", "locator", "due to the disk"].map(bytes_of).join(" + ");
    assert!(script.contains(&format!("ENTRY = {entry}")), "{entry}");
    let member = ["index", "memberships"].map(bytes_of).join(" + ");
    assert!(script.contains(&format!("MEMBER = {member}")), "{member}");
}
