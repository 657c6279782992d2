//! What a module must not know, read from the source: the invariants that STYLE states as absences.
//!
//! Comments and text in quotes do not count. Words are whole: `rocksdb` is not found in
//! `ranktree_rocksdb_reads`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Where something may be named: everywhere but, or nowhere but, in these files and folders of `src`.
enum Where {
    NotIn(&'static [&'static str]),
    OnlyIn(&'static [&'static str]),
}

struct Rule {
    /// Each a word, a path, or with `::` at its end the beginning of one: a crate, and not a field of its
    /// name.
    names: &'static [&'static str],
    place: Where,
    why: &'static str,
}

const PURE: Where = Where::NotIn(&["tree/", "board.rs", "job.rs", "types.rs", "state/"]);

const RULES: &[Rule] = &[
    Rule {
        names: &["std::fs", "std::io", "std::net", "println", "eprintln", "tracing::"],
        place: PURE,
        why: "do no I/O",
    },
    Rule {
        names: &["Instant", "SystemTime", "jiff::Timestamp::now", "jiff::Zoned"],
        place: PURE,
        why: "read no clock",
    },
    Rule {
        names: &[
            "Mutex",
            "RwLock",
            "Condvar",
            "OnceLock",
            "LazyLock",
            "parking_lot::",
            "StateLock",
            "std::thread",
            "mpsc",
        ],
        place: PURE,
        why: "hold no lock and start no thread",
    },
    Rule { names: &["async", "await", "tokio::", "Future"], place: PURE, why: "await nothing" },
    Rule {
        names: &["rocksdb::"],
        place: Where::OnlyIn(&["storage/"]),
        why: "so that another store is one folder's work",
    },
    Rule {
        names: &["bincode::"],
        place: Where::OnlyIn(&["storage/codec/"]),
        why: "so that another codec is one folder's work",
    },
    Rule {
        names: &["async_nats::"],
        place: Where::OnlyIn(&["queue/", "query/remote.rs", "query/remote/"]),
        why: "so that nothing else depends on where jobs come from",
    },
    Rule {
        names: &["axum::"],
        place: Where::OnlyIn(&["http/"]),
        why: "so that answers do not depend on how they are transported",
    },
    Rule {
        names: &["tokio_rustls::"],
        place: Where::OnlyIn(&["http/", "tls_roots.rs", "loadgen/service.rs", "cli/client/"]),
        why: "so that TLS ends where connections do; clients of a service open some of their own",
    },
    Rule {
        names: &["std::env", "env::var", "env::vars", "env::var_os"],
        place: Where::OnlyIn(&["config.rs", "config/"]),
        why: "so that there is one place that says what can be set",
    },
    Rule {
        names: &["serde::", "serde_json::", "Serialize", "Deserialize", "Encode", "Decode"],
        place: PURE,
        why: "derive nothing for disk, wire or JSON, which have counterparts of their own",
    },
];

/// A module, and those it must not name: whatever comes after it on the way from disk to client.
const DIRECTION: &[(&str, &[&str])] = &[
    (
        "types.rs",
        &["board", "job", "tree", "state", "storage", "writer", "queue", "query", "http", "service", "cli"],
    ),
    ("wire/", &["tree", "state", "storage", "writer", "queue", "query", "http", "service", "cli"]),
    ("tree/", &["board", "job", "state", "storage", "writer", "queue", "query", "http", "service", "cli"]),
    ("board.rs", &["job", "state", "storage", "writer", "queue", "query", "http", "service", "cli"]),
    ("job.rs", &["state", "storage", "writer", "queue", "query", "http", "service", "cli"]),
    ("state/", &["storage", "writer", "queue", "query", "http", "service", "cli"]),
    ("state_lock.rs", &["storage", "writer", "queue", "query", "http", "service", "cli"]),
    ("storage/", &["writer", "queue", "query", "http", "service", "cli"]),
    ("writer/", &["queue", "query", "http", "service", "cli"]),
    ("queue/", &["query", "http", "service", "cli"]),
    // So that reads can be built without a queue.
    ("query/", &["queue", "http", "service", "cli"]),
    (
        "access/",
        &["board", "job", "tree", "state", "storage", "writer", "queue", "query", "http", "service", "cli"],
    ),
    ("http/", &["credential_files", "config", "service", "cli"]),
    (
        "tls_roots.rs",
        &["board", "job", "tree", "state", "storage", "writer", "queue", "query", "http", "service", "cli"],
    ),
    // A stranger to the service, whom it loads from without.
    ("loadgen/", &["tree", "state", "storage", "writer", "query", "http", "service", "cli"]),
    ("credential_files.rs", &["service", "cli"]),
    ("service/", &["cli"]),
];

#[test]
fn modules_name_only_what_they_may() {
    let sources = Source::all();
    // An absence in a folder that was renamed would prove nothing.
    for (place, _) in DIRECTION {
        assert!(sources.iter().any(|source| source.is_in(place)), "there is no {place} any more");
    }
    let mut broken = Vec::new();
    for Rule { names, place, why } in RULES {
        let (places, allowed) = match place {
            Where::NotIn(places) => (places, false),
            Where::OnlyIn(places) => (places, true),
        };
        for source in
            sources.iter().filter(|source| places.iter().any(|place| source.is_in(place)) != allowed)
        {
            broken.extend(names.iter().filter_map(|name| source.find(name)).map(|found| {
                format!("{found}: {} {} {why}", if allowed { "only" } else { "" }, places.join(", "))
            }));
        }
    }
    for (place, later) in DIRECTION {
        for source in sources.iter().filter(|source| source.is_in(place)) {
            let found = later.iter().filter_map(|module| source.find(&format!("crate::{module}")));
            broken.extend(found.map(|found| format!("{found}: {place} comes before it")));
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

/// Folders in which no file imports one that imports it, directly or through others.
const WITHOUT_CIRCLES: &[&str] = &["access/", "http/", "query/"];

#[test]
fn modules_import_without_circles() {
    let sources = Source::all();
    let is_test = |path: &str| path.contains("/tests/") || path.ends_with("/tests.rs");
    for folder in WITHOUT_CIRCLES {
        let modules: BTreeMap<Vec<String>, &Source> = sources
            .iter()
            .filter(|source| source.is_in(folder) && !is_test(&source.path))
            .map(|source| (source.module(), source))
            .collect();
        assert!(modules.len() > 3, "there is no {folder} any more");
        let imports: BTreeMap<&Vec<String>, BTreeSet<&Vec<String>>> = modules
            .iter()
            .map(|(module, source)| {
                let paths = source.imports();
                let imported = paths.iter().filter_map(|path| {
                    let known =
                        (1..=path.len()).rev().find_map(|length| modules.get_key_value(path.get(..length)?));
                    known.map(|(imported, _)| imported).filter(|imported| *imported != module)
                });
                (module, imported.collect())
            })
            .collect();
        assert!(
            imports.values().map(BTreeSet::len).sum::<usize>() > modules.len(),
            "{folder}: imports are not found"
        );
        // What imports nothing that is left is in no circle.
        let mut left = imports;
        loop {
            let known: BTreeSet<_> = left.keys().copied().collect();
            let before = left.len();
            left.retain(|_, imported| imported.iter().any(|module| known.contains(module)));
            if left.len() == before {
                break;
            }
        }
        let told: Vec<String> = left
            .iter()
            .map(|(module, imported)| {
                let imported: Vec<String> =
                    imported.iter().filter(|one| left.contains_key(*one)).map(|one| one.join("::")).collect();
                format!("{} imports {}", module.join("::"), imported.join(", "))
            })
            .collect();
        assert!(told.is_empty(), "{folder} has circles of imports among:\n{}", told.join("\n"));
    }
}

#[test]
fn imports_are_found_in_groups_and_outside_of_tests() {
    let source = Source::new(
        "a/mod.rs",
        "use crate::b::{self, c::D, e as f}; pub use g::H; fn x() { crate::i::j(); } mod tests { use crate::k; }",
    );
    let found: Vec<String> = source.imports().iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["b::self", "b::c::D", "b::e", "a::g::H", "i::j"]);
    assert_eq!(source.module(), ["a"]);
    assert_eq!(Source::new("a/b.rs", "").module(), ["a", "b"]);
}

#[test]
fn names_are_found_in_code_and_nowhere_else() {
    let check = |code: &str, name: &str, line: Option<usize>| {
        let source = Source::new("x.rs", code);
        let expect = line.map(|line| format!("src/x.rs:{line} names {name}"));
        assert_eq!(source.find(name), expect, "{name} in {code}");
    };
    check("use rocksdb::DB;", "rocksdb", Some(1));
    check("\n\nlet x = ::rocksdb::DB::open();", "rocksdb", Some(3));
    check("// rocksdb\n/* rocksdb\n/* rocksdb */ rocksdb */ x", "rocksdb", None);
    check(
        "let a = \"rocksdb \\\" rocksdb\"; let b = r#\"a \" rocksdb\"#; let c = b\"rocksdb\";",
        "rocksdb",
        None,
    );
    check("let quote = '\"'; rocksdb('\\'', \"\");", "rocksdb", Some(1));
    check("fn f<'a>(x: &'a str) {} // \"\nrocksdb", "rocksdb", Some(2));
    check("ranktree_rocksdb_reads + rocksdb2", "rocksdb", None);
    check("use std :: env;", "std::env", Some(1));
    check("let x = env!(\"A\"); std::environment", "std::env", None);
    check("use std::{fs, io::Read};", "std::io", Some(1));
    check("use std::{\n    fmt,\n    sync::{Arc, mpsc}, fs,\n};", "std::fs", Some(3));
    check("use std::{fmt::{self, io}, fs};", "std::io", None);
    check("struct S { rocksdb: u64 }", "rocksdb::", None);
    check("use rocksdb::{DB, self};", "rocksdb::", Some(1));
}

/// A file's words, with the lines they stand on.
struct Source {
    /// Below `src`.
    path: String,
    words: Vec<(usize, String)>,
}

impl Source {
    fn all() -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut folders = vec![root.clone()];
        let mut sources = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("the source can be read") {
                let path = entry.expect("the source can be read").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let text = fs::read_to_string(&path).expect("the source can be read");
                    let path = path.strip_prefix(&root).expect("it was found there").to_string_lossy();
                    sources.push(Self::new(&path.replace('\\', "/"), &text));
                }
            }
        }
        sources
    }

    fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), words: words(text) }
    }

    /// `place` is a file, or a folder with a slash at its end.
    fn is_in(&self, place: &str) -> bool {
        if place.ends_with('/') { self.path.starts_with(place) } else { self.path == place }
    }

    /// The path of the module that the file is.
    fn module(&self) -> Vec<String> {
        let path = self.path.trim_end_matches(".rs").trim_end_matches("/mod");
        path.split('/').map(str::to_owned).collect()
    }

    /// The paths below the crate that the file names, and those that a `mod.rs` exports from its own modules. What stands
    /// behind the beginning of a module of tests does not count.
    fn imports(&self) -> Vec<Vec<String>> {
        let word = |at: usize| self.words.get(at).map_or("", |(_, word)| word.as_str());
        let is_tests = |at: &usize| word(*at) == "mod" && word(at + 1) == "tests" && word(at + 2) == "{";
        let end = (0..self.words.len()).find(is_tests).unwrap_or(self.words.len());
        let mut found = Vec::new();
        for at in 0..end {
            if word(at) == "crate" && word(at + 1) == "::" {
                self.paths_from(at + 2, &[], &mut found);
            } else if self.path.ends_with("/mod.rs") && word(at) == "pub" && word(at + 1) == "use" {
                self.paths_from(at + 2, &self.module(), &mut found);
            }
        }
        found
    }

    /// Adds the paths that begin at a word, one for each member of a group. Returns where they end.
    fn paths_from(&self, start: usize, before: &[String], found: &mut Vec<Vec<String>>) -> usize {
        let word = |at: usize| self.words.get(at).map_or("", |(_, word)| word.as_str());
        let mut path = before.to_vec();
        let mut at = start;
        loop {
            if word(at) == "{" {
                at += 1;
                while !matches!(word(at), "}" | "") {
                    at = self.paths_from(at, &path, found);
                    // Past `as name` and the comma.
                    while !matches!(word(at), "," | "}" | "") {
                        at += 1;
                    }
                    at += usize::from(word(at) == ",");
                }
                return at + 1;
            }
            path.push(word(at).to_owned());
            at += 1;
            if word(at) != "::" {
                found.push(path);
                return at;
            }
            at += 1;
        }
    }

    /// The first place that names it, also inside a group: `std::{fs, io}` names `std::io`.
    fn find(&self, name: &str) -> Option<String> {
        let wanted: Vec<_> = name.split("::").collect();
        let at = (0..self.words.len()).find_map(|start| self.path_at(start, &wanted))?;
        let (line, _) = self.words.get(at)?;
        Some(format!("src/{}:{line} names {name}", self.path))
    }

    /// Whether the path `wanted` stands at `start`; where its last word is.
    fn path_at(&self, start: usize, wanted: &[&str]) -> Option<usize> {
        let word = |at: usize| self.words.get(at).map(|(_, word)| word.as_str());
        let (first, rest) = wanted.split_first()?;
        if first.is_empty() {
            return Some(start);
        }
        if word(start)? != *first {
            return None;
        }
        if rest.is_empty() {
            return Some(start);
        }
        let after = start + 2;
        if word(start + 1)? != "::" {
            return None;
        }
        if word(after)? != "{" {
            return self.path_at(after, rest);
        }
        // The members of a group begin after its brace and after each comma of its own depth.
        let mut depth = 1;
        let mut at = after + 1;
        let mut is_member = true;
        while depth > 0 {
            if is_member && let Some(found) = self.path_at(at, rest) {
                return Some(found);
            }
            match word(at)? {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            is_member = depth == 1 && word(at)? == ",";
            at += 1;
        }
        None
    }
}

/// Identifiers, `::` and single marks, without comments and literals.
fn words(text: &str) -> Vec<(usize, String)> {
    let mut words: Vec<(usize, String)> = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some(length) = raw_text(rest) {
            length
        } else if first == '"' || rest.starts_with("b\"") {
            let quote = rest.find('"').unwrap_or(0);
            quote + quoted(rest.split_at(quote).1)
        } else if let Some(length) = character(rest) {
            length
        } else if first.is_alphanumeric() || first == '_' {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            words.push((line, rest.split_at(length).0.to_owned()));
            length
        } else if rest.starts_with("::") {
            words.push((line, "::".to_owned()));
            2
        } else {
            if !first.is_whitespace() {
                words.push((line, first.to_string()));
            }
            first.len_utf8()
        };
        let (passed, next) = rest.split_at(length);
        line += passed.matches('\n').count();
        rest = next;
    }
    words
}

/// The length of a block comment, with those inside it.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    loop {
        let rest = text.split_at(at).1;
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            match rest.chars().next() {
                Some(next) => at += next.len_utf8(),
                None => return at,
            }
        }
    }
}

/// The length of `r"..."`, `r#"..."#` and the like, if the text starts with one.
fn raw_text(text: &str) -> Option<usize> {
    let after = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let content = after.split_at(hashes).1.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - content.len();
    Some(content.find(&end).map_or(text.len(), |length| start + length + end.len()))
}

/// The length of a text in double quotes, which the text starts with.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a character in single quotes, if the text starts with one and not with a lifetime.
fn character(text: &str) -> Option<usize> {
    let content = text.strip_prefix('\'')?;
    let first = content.chars().next()?;
    let skipped = if first == '\\' { 2 } else { first.len_utf8() };
    let end = content.get(skipped..)?.find('\'')?;
    // `'a, 'b` are lifetimes; `'\u{7f}'` is a character of more than one letter.
    (end == 0 || first == '\\').then_some(1 + skipped + end + 1)
}
