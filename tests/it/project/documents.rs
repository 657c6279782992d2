//! Every link, every path of a source file and every module that documents and comments name exists; the
//! documents tell what is, and the glossary has a word once.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Words that look like paths but are not.
const NO_PATHS: &[(&str, &str)] = &[
    ("db/version_edit.h", "RocksDB's"),
    ("bin/ranktree", "made by `make build`"),
    ("staging/", "a folder of a shard"),
];

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below a folder whose names end so.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("it comes with the source") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

pub fn documents() -> Vec<PathBuf> {
    let mut found = files("docs", ".md");
    let others = [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "examples/README.md",
    ];
    found.extend(others.map(|name| root().join(name)));
    found
}

pub fn sources() -> Vec<PathBuf> {
    ["src", "tests", "benches"].iter().flat_map(|folder| files(folder, ".rs")).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("it is text")
}

/// A path with choices in braces, as one path for each choice.
fn expanded(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((choices, after)) = rest.split_once('}') else { return vec![path.to_owned()] };
    choices.split(',').flat_map(|choice| expanded(&format!("{before}{choice}{after}"))).collect()
}

/// What stands between backticks in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn is_path(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_/.{},-".contains(c);
    word.contains('/')
        && word.chars().all(plain)
        && !word.starts_with(['/', '.', '{'])
        && !word.starts_with("application/")
        && !word.starts_with("text/")
        && !NO_PATHS.iter().any(|(path, _)| *path == word)
}

/// Whether there is such a file or folder, given from the root or from where sources or tests are.
fn exists(path: &str) -> bool {
    let path = path.trim_end_matches('/');
    ["", "src", "tests/it", "tests"].iter().any(|folder| {
        let at = root().join(folder).join(path);
        at.exists()
            || at
                .with_file_name(format!("{}.rs", at.file_name().unwrap_or_default().to_string_lossy()))
                .exists()
    })
}

/// The comment of a line of source, if it has one of its own.
fn comment(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("//").map(|text| text.trim_start_matches(['/', '!']))
}

/// Lines of all documents, and comments of all sources, with where they stand.
fn told() -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let mut take = |path: &Path, number: usize, text: &str| {
        let name = path.strip_prefix(root()).expect("it is in the repository").display();
        lines.push((format!("{name}:{}", number + 1), text.to_owned()));
    };
    for path in documents() {
        read(&path).lines().enumerate().for_each(|(number, line)| take(&path, number, line));
    }
    for path in sources() {
        for (number, line) in read(&path).lines().enumerate() {
            if let Some(text) = comment(line) {
                take(&path, number, text);
            }
        }
    }
    lines
}

/// Documents, comments and texts of the API say what there is. A sentence about what is missing for now is
/// wrong as soon as it came, and nobody looks for it then.
#[test]
fn nothing_is_said_to_be_unsupported_for_now() {
    let words = ["supported", "implemented", "possible", "available"];
    let for_now = words.map(|word| [format!("not {word} yet"), format!("not yet {word}")]);
    let clients = ["csharp", "go", "python", "rust", "typescript"];
    let clients = clients.map(|name| root().join("clients").join(name).join("README.md"));
    let texts = [documents(), sources(), files("src", ".md"), clients.to_vec()].concat();
    assert!(texts.contains(&root().join("src/http/openapi/about.md")), "{texts:?}");
    let mut found = Vec::new();
    for path in texts {
        for (number, line) in read(&path).lines().enumerate() {
            let line = line.to_lowercase();
            if for_now.as_flattened().iter().any(|words| line.contains(words)) {
                found.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    assert_eq!(found, Vec::<String>::new());
}

/// What was before, and what was tried, is told by decisions and by commits. A document that tells it as well
/// has to be kept true for two states.
#[test]
fn documents_tell_what_is_and_not_what_was() {
    let was = ["since then", "previously", "used to be", "the commit before", "## what was tried"];
    let decisions = root().join("docs/decisions");
    let mut found = Vec::new();
    for path in documents().into_iter().filter(|path| !path.starts_with(&decisions)) {
        for (number, line) in read(&path).lines().enumerate() {
            let line = line.to_lowercase();
            if was.iter().any(|words| line.contains(words)) {
                found.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn links_between_documents_have_targets_that_exist() {
    let mut dead = Vec::new();
    let mut seen = 0;
    for path in documents() {
        let folder = path.parent().expect("a file is in a folder");
        for target in read(&path).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            if file.contains("://") {
                continue;
            }
            seen += 1;
            let to = if file.is_empty() { path.clone() } else { folder.join(file) };
            let has_anchor = || {
                let heading = |line: &str| {
                    let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
                    let title = line.trim_start_matches('#').trim().to_lowercase();
                    title.chars().filter(kept).collect::<String>().replace(' ', "-")
                };
                read(&to).lines().any(|line| line.starts_with('#') && heading(line) == anchor)
            };
            if !to.exists() || !(anchor.is_empty() || has_anchor()) {
                dead.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(seen > 40, "{seen} links");
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

/// Who looks up a word of two meanings finds the first, and takes it for the other.
#[test]
fn the_glossary_has_no_word_twice() {
    let glossary = read(&root().join("docs/glossary.md"));
    let cells = glossary.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let mut seen = BTreeSet::new();
    for word in cells.flat_map(|cell| cell.split(", ")).filter(|word| *word != "term") {
        assert!(seen.insert(word), "the glossary has {word} twice");
    }
    assert!(seen.len() > 100, "{} words", seen.len());
}

#[test]
fn paths_in_documents_and_comments_exist() {
    let mut missing = BTreeSet::new();
    let mut seen = 0;
    for (place, line) in told() {
        for path in quoted(&line).filter(|word| is_path(word)).flat_map(expanded) {
            seen += 1;
            if !exists(&path) {
                missing.insert(format!("{place}: {path}"));
            }
        }
    }
    assert!(seen > 40, "{seen} paths");
    assert!(missing.is_empty(), "{}", missing.into_iter().collect::<Vec<_>>().join("\n"));
}

/// Where a module's source is, and what is left of the path behind the last module in it.
fn module<'w>(words: &[&'w str]) -> (Option<PathBuf>, Vec<&'w str>) {
    let (mut at, mut file) = (root().join("src"), None);
    for (index, word) in words.iter().enumerate() {
        let own = [at.join(format!("{word}.rs")), at.join(word).join("mod.rs")];
        let Some(found) = own.into_iter().find(|path| path.exists()) else {
            return (file, words.get(index..).unwrap_or_default().to_vec());
        };
        file = Some(found);
        at = at.join(word);
    }
    (file, Vec::new())
}

#[test]
fn modules_in_documents_and_comments_exist() {
    let mut missing = BTreeSet::new();
    let mut seen = 0;
    for (place, line) in told() {
        for name in quoted(&line) {
            let words: Vec<_> = name.trim_start_matches("crate::").split("::").collect();
            let plain =
                |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if words.len() < 2 || !words.iter().all(plain) {
                continue;
            }
            let (Some(file), rest) = module(&words) else { continue };
            seen += 1;
            // What is behind the last module is an item of it, and of one of its own.
            let text = if file.ends_with("mod.rs") {
                let folder = file.parent().expect("a file is in a folder");
                let inner = folder.strip_prefix(root()).expect("it is in the repository").to_string_lossy();
                files(&inner, ".rs").iter().map(|path| read(path)).collect::<String>()
            } else {
                read(&file)
            };
            let defines = |word: &str| {
                let kinds =
                    ["fn", "struct", "enum", "trait", "const", "static", "type", "mod", "macro_rules!"];
                let is_whole = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
                kinds.iter().any(|kind| text.split(&format!("{kind} {word}")).skip(1).any(is_whole))
            };
            // An item of an item, as a variant is one, is not looked for.
            if !rest.first().is_none_or(|word| defines(word)) {
                missing.insert(format!("{place}: {name}"));
            }
        }
    }
    assert!(seen > 30, "{seen} modules");
    assert!(missing.is_empty(), "{}", missing.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn plots_are_what_their_script_draws_from_the_results() {
    let script = root().join("docs/benchmarks/plots.py");
    let check = Command::new("python3").args(["-B"]).arg(script).arg("--check").stdin(Stdio::null()).output();
    let output = check.expect("python3 is here");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_page_of_benchmarks_shows_every_plot_and_the_table_of_its_results() {
    let page = read(&root().join("docs/benchmarks.md"));
    let plots = files("docs/benchmarks", ".svg");
    assert!(plots.len() > 2, "{plots:?}");
    for plot in plots {
        let name = plot.file_name().expect("a file has a name").to_string_lossy().into_owned();
        assert!(page.contains(&format!("](benchmarks/{name})")), "docs/benchmarks.md does not show {name}");
    }
    let (new, touched) = (stalls("stalls"), stalls("stalls_touched"));
    assert!(new.len() > 5 && new.len() == touched.len(), "{new:?} {touched:?}");
    for ((case, new), (same, touched)) in new.iter().zip(&touched) {
        assert_eq!(case, same, "the results of stalls have the same cases");
        let row = format!("| {case} | {} | {} | {} | {} |", new.0, touched.0, new.1, touched.1);
        assert!(page.contains(&row), "docs/benchmarks.md and the results of stalls differ: {row}");
    }
}

/// Of each case of a table of stalls: the most work of a hold, with its purpose, and a reader's longest wait.
fn stalls(name: &str) -> Vec<(String, (String, String))> {
    let table = read(&root().join(format!("docs/benchmarks/results/{name}.txt")));
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    let cases = rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let holds = cells[4].split(", ").map(|hold| hold.split_once(' ').expect("a purpose and a time"));
        let time = |hold: &(&str, &str)| hold.1.parse::<f64>().expect("milliseconds");
        let most = holds.max_by(|one, other| time(one).total_cmp(&time(other))).expect("a hold");
        let wait = cells[5].split(';').next().expect("a wait").to_owned();
        (cells[1].to_owned(), (format!("{} {}", most.1, most.0), wait))
    });
    cases.collect()
}
