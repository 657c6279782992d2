//! Checks in the source what modules must not name: the order of modules that `ARCHITECTURE.md` tells, and
//! the first four of the invariants that it states as absences.
//!
//! Comments and text in quotes do not count. Words are whole: `rocksdb` is not found in
//! `ranktree_rocksdb_reads`.

use std::collections::BTreeSet;
use std::fs;

use crate::project::documents::root;
use crate::support::rust_words::{sources, words};

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

const PURE: Where = Where::NotIn(&["tree/", "window/", "board/", "job.rs", "types.rs", "state/"]);

const RULES: &[Rule] = &[
    Rule {
        names: &["std::fs", "std::io", "std::net", "println", "eprintln", "tracing::"],
        place: PURE,
        why: "do no I/O",
    },
    Rule {
        names: &["Instant", "SystemTime", "jiff::Timestamp::now", "jiff::ZonedDateTime"],
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
        place: Where::OnlyIn(&["storage/codec/", "cluster/questions/wire/"]),
        why: "so that another codec is one folder's work",
    },
    Rule {
        names: &["async_nats::"],
        place: Where::OnlyIn(&["queue/", "cluster/"]),
        why: "so that nothing else depends on where jobs come from",
    },
    Rule {
        names: &["axum::"],
        place: Where::OnlyIn(&["http/"]),
        why: "so that answers do not depend on how they are transported",
    },
    Rule {
        names: &["tokio_rustls::"],
        place: Where::OnlyIn(&["connections/", "tls_roots.rs", "loadgen/service.rs", "cli/client/"]),
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

/// The modules of `src`, from the bottom up, as `ARCHITECTURE.md` tells them. A module may name those on
/// floors below its own. It must not name those on its own floor, or above.
const FLOORS: &[&[&str]] = &[
    &["types", "metrics", "tls_roots", "regular_file", "short_slice", "allocator", "processor"],
    &["tree", "access", "connections", "window", "traces"],
    &["board", "job"],
    &["wire", "state"],
    &["state_lock", "applied_sequence", "message_clock"],
    &["storage"],
    &["writer"],
    // Reads must not need a queue.
    &["query", "queue", "snapshot"],
    &["cluster"],
    &["operations"],
    &["http", "redis", "loadgen"],
    &["config"],
    &["credential_files"],
    &["service"],
    &["cli"],
];

/// The roots of the crate, and what only tests have.
const NO_MODULES: &[&str] = &["lib", "main", "allocated"];

/// What modules must not name although it is below them.
const NOT_IN: &[(&str, &[&str])] = &[
    // The load generator is a client of the service, and must not use its insides.
    ("loadgen", &["tree", "state", "state_lock", "storage", "writer", "query", "operations"]),
    // A front end asks `operations`, which knows where jobs go and who applies them.
    ("http", &["writer", "queue", "cluster"]),
];

/// Tests of the handlers, which put a script in the place of a shard's writer.
const MAY_NAME_WRITERS: &str = "http/tests/";

#[test]
fn modules_name_only_what_they_may() {
    let sources = Source::all();
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
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn modules_name_only_those_below_them() {
    let sources = Source::all();
    let modules = sources.iter().map(Source::module).filter(|module| !NO_MODULES.contains(module));
    let mut listed: Vec<&str> = FLOORS.concat();
    listed.sort_unstable();
    // If a folder was renamed, an absence in it would prove nothing.
    let modules: Vec<&str> = modules.collect::<BTreeSet<_>>().into_iter().collect();
    assert_eq!(modules, listed, "FLOORS lists each module of src once");
    let mut broken = Vec::new();
    for source in &sources {
        let module = source.module();
        let Some(floor) = FLOORS.iter().position(|floor| floor.contains(&module)) else { continue };
        let mut forbidden = FLOORS.iter().skip(floor).copied().flatten().collect::<Vec<_>>();
        forbidden.retain(|other| **other != module);
        let more = NOT_IN.iter().filter(|(of, _)| *of == module && !source.is_in(MAY_NAME_WRITERS));
        forbidden.extend(more.flat_map(|(_, names)| *names));
        let found = forbidden.iter().filter_map(|other| source.find(&format!("crate::{other}")));
        broken.extend(found.map(|found| format!("{found}: it is not below {module}")));
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn the_order_that_the_architecture_tells_is_the_one_that_is_held() {
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("it comes with the source");
    let lines = document.lines().skip_while(|line| !line.starts_with("    types, "));
    let order: String = lines.take_while(|line| line.starts_with("    ")).collect();
    let told: Vec<Vec<&str>> =
        order.split('←').map(|floor| floor.split(',').map(str::trim).collect()).collect();
    assert_eq!(told, FLOORS, "ARCHITECTURE.md tells the floors, in their order");
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
        sources().iter().map(|(path, text)| Self::new(path, text)).collect()
    }

    fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), words: words(text) }
    }

    /// The module of the crate that it belongs to.
    fn module(&self) -> &str {
        self.path.split('/').next().unwrap_or_default().trim_end_matches(".rs")
    }

    /// `place` is a file, or a folder with a slash at its end.
    fn is_in(&self, place: &str) -> bool {
        if place.ends_with('/') { self.path.starts_with(place) } else { self.path == place }
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
