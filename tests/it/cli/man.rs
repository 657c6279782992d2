//! `ranktree man`: a page for each command, the same each time.

use std::fs;
use std::path::Path;

use crate::support::command::command;

fn pages_in(folder: &Path) -> Vec<(String, String)> {
    let output = command().arg("man").arg(folder).output().expect("the binary can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut pages: Vec<_> = fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| {
            let path = entry.expect("it can be listed").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read_to_string(path).expect("it is text"))
        })
        .collect();
    pages.sort();
    pages
}

#[test]
fn every_command_has_a_page_and_two_runs_write_the_same() {
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory"));
    let pages = pages_in(first.path());
    assert_eq!(pages, pages_in(second.path()));
    let named = |name: &str| {
        let page = pages.iter().find(|(page, _)| page == name);
        page.unwrap_or_else(|| panic!("no {name} among {:?}", pages.iter().map(|(name, _)| name))).1.as_str()
    };
    assert!(named("ranktree.1").contains(&format!("ranktree {}", env!("CARGO_PKG_VERSION"))));
    let serve = named("ranktree-serve.1");
    for words in ["\\-\\-data\\-dir", "RANKTREE_DATA_DIR", "SIGTERM and Ctrl\\-C"] {
        assert!(serve.contains(words), "{words}");
    }
    named("ranktree-config-check.1");
}

#[test]
fn a_folder_that_is_not_there_is_told_by_name() {
    let folder = tempfile::tempdir().expect("a temporary directory").path().join("none");
    let output = command().arg("man").arg(&folder).output().expect("the binary can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("{}: the pages cannot be written: ", folder.display())), "{said}");
}
