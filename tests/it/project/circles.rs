//! Files of `src` import one another without circles, read from the source.
//!
//! A file imports another if it names an item of it: in a `use`, or in a path such as `crate::tree::Tree` or
//! `codec::encode`. A name that a module only passes on leads to the file that defines it. These do not
//! count: `mod x;`, a `pub use` of what is below the module, comments, literals, and what is compiled for
//! tests only. Methods do not count either, because they are called without naming their file.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::support::rust_words::{sources, words};

/// Imports that may close a circle: the file that imports, or a folder with a slash at its end; the file that
/// it imports; and why.
///
/// The test fails for an exception that closes no circle, so that the list stays as short as it can be.
const EXCEPTIONS: &[Exception] = &[
    // The parts of one type, in files of their own: the parent declares the type and calls what the parts add
    // to it.
    ("writer/plan/", "writer/plan/mod.rs", "parts of `Batch`"),
    ("writer/reopen.rs", "writer/writer_loop.rs", "a part of `Writer`"),
    ("storage/copies.rs", "storage/checkpoint.rs", "a part of `Checkpoint`"),
    ("tree/capture.rs", "tree/large.rs", "a part of `LargeTree`"),
    // Subcommands.
    ("cli/", "cli/mod.rs", "`Failure`"),
    ("cli/export/output.rs", "cli/export/mod.rs", "`Format`"),
];

#[test]
fn files_import_one_another_without_circles() {
    let (sources, mut problems) = (sources(), Vec::new());
    let imports = Imports::of(&sources);
    assert!(imports.files.len() > 200, "{} files were found from lib.rs on", imports.files.len());
    for circle in imports.circles(EXCEPTIONS) {
        problems.push(format!("these files import one another in a circle:\n{circle}"));
    }
    for (from, to, _) in imports.idle(EXCEPTIONS) {
        problems.push(format!("{from} -> {to} closes no circle any more: take it out of EXCEPTIONS"));
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn circles_are_found_in_imports_and_nowhere_else() {
    let check = |sources: &[(&str, &str)], expect: &[&str]| {
        let circles = Imports::of(sources).circles(&[]);
        assert_eq!(circles, expect, "{sources:?}");
    };
    let lib = ("lib.rs", "mod a; mod b;");
    let b = ("b.rs", "use crate::a::A;\npub struct B(A);");
    check(&[lib, ("a.rs", "pub struct A;"), b], &[]);
    check(
        &[lib, ("a.rs", "\nuse super::b::B;"), b],
        &["  src/a.rs:2 -> src/b.rs (B)\n  src/b.rs:1 -> src/a.rs (A)"],
    );
    let both = ["  src/a.rs:1 -> src/b.rs (B)\n  src/b.rs:1 -> src/a.rs (A)"];
    check(&[lib, ("a.rs", "use std::fmt; use crate::{b::{self, B as C}};"), b], &both);
    check(&[lib, ("a.rs", "fn f(_: &crate::b::B) {}"), b], &both);
    // A module's name alone is no import, and a path that begins with it is one.
    check(&[lib, ("a.rs", "use crate::b;"), b], &[]);
    check(&[lib, ("a.rs", "use crate::b; fn f() { b::B; }"), b], &both);
    check(&[lib, ("a.rs", "use crate::b as c; fn f() { c::B; }"), b], &both);
    // Comments, literals and tests.
    check(&[lib, ("a.rs", "// use crate::b::B;\nconst A: &str = \"crate::b::B\";"), b], &[]);
    check(&[lib, ("a.rs", "#[cfg(test)]\nmod tests { use crate::b::B; }"), b], &[]);
    check(&[lib, ("a.rs", "struct A { #[cfg(test)] b: crate::b::B, c: u8 }"), b], &[]);
    check(&[lib, ("a.rs", "#[cfg(test)]\n#[allow(unused)]\nuse crate::b::B;\nstruct A;"), b], &[]);
    check(&[lib, ("a.rs", "#[cfg(test)] mod tests;"), ("a/tests.rs", "use crate::b::B;"), b], &[]);
    check(&[lib, ("a.rs", "#[cfg(test)] fn f() {} use crate::b::B;"), b], &both);
    // A name that a parent re-exports leads to the child that defines it.
    let parent = |text| [("lib.rs", "mod p;"), ("p/mod.rs", text), ("p/x.rs", "use super::Y; pub struct X;")];
    let with_y = |text, y| [parent(text).as_slice(), [("p/y.rs", y)].as_slice()].concat();
    check(&with_y("mod x; mod y; pub use x::X; pub use self::y::Y;", "pub struct Y;"), &[]);
    check(
        &with_y("mod x; mod y; pub use x::X; pub use y::Y;", "use crate::p::X;"),
        &["  src/p/x.rs:1 -> src/p/y.rs (Y)\n  src/p/y.rs:1 -> src/p/x.rs (X)"],
    );
    // A parent may have what its children use, or use what they have.
    check(&parent("mod x; pub use x::X; pub struct Y;"), &[]);
    let circle = "  src/p/mod.rs:1 -> src/p/x.rs (X)\n  src/p/x.rs:1 -> src/p/mod.rs (Y)";
    check(&parent("mod x; pub use x::X; pub struct Y(X);"), &[circle]);
    check(&parent("mod x; use x::X; pub struct Y;"), &[circle]);
    check(&parent("mod x; pub struct Y(x::X);"), &[circle]);
    check(&parent("mod x; pub struct Y { x: u8 }"), &[]);
}

#[test]
fn the_shortest_circle_is_reported_and_unused_exceptions_are_errors() {
    let sources = [
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::B; use crate::c::C;"),
        ("b.rs", "use crate::c::C;"),
        ("c.rs", "use crate::a::A;"),
        ("d.rs", "use crate::a::A;"),
    ];
    let imports = Imports::of(&sources);
    let circle = "  src/a.rs:1 -> src/c.rs (C)\n  src/c.rs:1 -> src/a.rs (A)\n  tied to it: src/b.rs";
    assert_eq!(imports.circles(&[]), [circle]);
    let needed = ("c.rs", "a.rs", "");
    assert_eq!(imports.circles(&[needed]), [""; 0]);
    assert_eq!(imports.idle(&[needed]), []);
    for idle in [("d.rs", "a.rs", ""), ("b.rs", "a.rs", ""), ("gone.rs", "a.rs", ""), ("c/", "a.rs", "")] {
        assert_eq!(imports.idle(&[needed, idle]), [idle]);
    }
    let sources = [
        ("lib.rs", "mod p;"),
        ("p/mod.rs", "mod x; mod y; use x::X; use y::Y; pub struct P;"),
        ("p/x.rs", "use super::P;"),
        ("p/y.rs", "use super::P;"),
    ];
    let (imports, folder) = (Imports::of(&sources), ("p/", "p/mod.rs", ""));
    assert_eq!(imports.circles(&[folder]), [""; 0]);
    assert_eq!(imports.idle(&[folder]), []);
}

type Exception = (&'static str, &'static str, &'static str);

/// A path of names, without the `::` between them.
type Names = Vec<String>;

/// Which files name items of which.
struct Imports {
    files: BTreeSet<String>,
    /// From and to, with a line and the name of an item, the first of each pair.
    edges: BTreeMap<String, BTreeMap<String, (usize, String)>>,
}

impl Imports {
    fn of<P: AsRef<str>, T: AsRef<str>>(sources: &[(P, T)]) -> Self {
        let texts = sources.iter().map(|(path, text)| (path.as_ref(), text.as_ref())).collect();
        let modules = Modules::of(&texts);
        let mut edges: BTreeMap<String, BTreeMap<String, (usize, String)>> = BTreeMap::new();
        for (at, module) in &modules.all {
            for (line, path) in module.named(at, &modules) {
                let Some((file, item)) = modules.item(at, &path) else { continue };
                if file != module.file {
                    let to = edges.entry(module.file.clone()).or_default();
                    to.entry(file).or_insert((line, item));
                }
            }
        }
        Self { files: modules.all.into_values().map(|module| module.file).collect(), edges }
    }

    /// The files that a file imports, but for exceptions.
    fn from<'a>(&'a self, file: &'a str, but: &'a [Exception]) -> impl Iterator<Item = &'a str> {
        let all = self.edges.get(file).into_iter().flat_map(BTreeMap::keys).map(String::as_str);
        all.filter(move |to| !but.iter().any(|(from, except, _)| is_in(file, from) && except == to))
    }

    /// The shortest way along imports, both ends included. It has one step at least.
    fn way<'a>(&'a self, start: &'a str, end: &str, but: &'a [Exception]) -> Option<Vec<&'a str>> {
        let mut before: BTreeMap<&str, &str> = BTreeMap::new();
        let mut next = VecDeque::from([start]);
        while let Some(file) = next.pop_front() {
            for to in self.from(file, but) {
                if before.contains_key(to) {
                    continue;
                }
                before.insert(to, file);
                if to == end {
                    let mut way = vec![to];
                    let mut at = file;
                    while at != start {
                        way.push(at);
                        at = before.get(at).expect("it was reached from somewhere");
                    }
                    way.push(start);
                    way.reverse();
                    return Some(way);
                }
                next.push_back(to);
            }
        }
        None
    }

    /// One text for each strongly connected component: its shortest circle, a line for each import, and the
    /// other files.
    fn circles(&self, but: &[Exception]) -> Vec<String> {
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            self.edges.keys().map(|file| (file.as_str(), self.reached(file, but))).collect();
        let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|reached| reached.contains(to));
        let mut told = BTreeSet::new();
        let mut circles = Vec::new();
        for file in reached.keys().copied().filter(|file| reaches(file, file)) {
            if told.contains(file) {
                continue;
            }
            let component: BTreeSet<_> =
                reached.keys().copied().filter(|to| reaches(file, to) && reaches(to, file)).collect();
            let ways = component.iter().filter_map(|file| self.way(file, file, but));
            let shortest = ways.min_by_key(Vec::len).expect("each of them is in a circle");
            let mut lines: Vec<_> = shortest.windows(2).map(|step| self.told(step[0], step[1])).collect();
            let others: Vec<_> = component
                .iter()
                .filter(|file| !shortest.contains(file))
                .map(|file| format!("src/{file}"))
                .collect();
            if !others.is_empty() {
                lines.push(format!("  tied to it: {}", others.join(", ")));
            }
            circles.push(lines.join("\n"));
            told.extend(component);
        }
        circles
    }

    fn reached<'a>(&'a self, file: &'a str, but: &'a [Exception]) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::new();
        let mut next = vec![file];
        while let Some(file) = next.pop() {
            next.extend(self.from(file, but).filter(|to| reached.insert(*to)));
        }
        reached
    }

    fn told(&self, from: &str, to: &str) -> String {
        let edge = self.edges.get(from).and_then(|edges| edges.get(to));
        let (line, item) = edge.expect("the way goes along it");
        format!("  src/{from}:{line} -> src/{to} ({item})")
    }

    /// Exceptions that would close no circle if they were imports like all others.
    fn idle(&self, exceptions: &[Exception]) -> Vec<Exception> {
        let closes = |(from, to, _): &Exception| {
            let mut importers = self.edges.keys().filter(|file| is_in(file, from));
            importers.any(|file| {
                self.from(file, &[]).any(|imported| imported == *to)
                    && self.way(to, file, exceptions).is_some()
            })
        };
        exceptions.iter().copied().filter(|exception| !closes(exception)).collect()
    }
}

/// Whether a file is the one that is named, or in the folder that is named with a slash at its end.
fn is_in(file: &str, place: &str) -> bool {
    if place.ends_with('/') { file.starts_with(place) } else { file == place }
}

/// The modules that are compiled without tests, by their paths from the crate's root on.
struct Modules {
    all: BTreeMap<Names, Module>,
}

impl Modules {
    fn of(texts: &BTreeMap<&str, &str>) -> Self {
        let mut all = BTreeMap::new();
        let mut next = vec![(Names::new(), "lib.rs".to_owned())];
        while let Some((at, file)) = next.pop() {
            let module = Module::new(&file, texts.get(file.as_str()).expect("it was found"));
            let folder = match file.strip_suffix("mod.rs") {
                Some(folder) => folder.to_owned(),
                None if file == "lib.rs" => String::new(),
                None => format!("{}/", file.trim_end_matches(".rs")),
            };
            for child in &module.children {
                let places = [format!("{folder}{child}.rs"), format!("{folder}{child}/mod.rs")];
                let found = places.into_iter().find(|path| texts.contains_key(path.as_str()));
                let found = found.unwrap_or_else(|| panic!("src/{file} has no file for its module {child}"));
                next.push((joined(&at, child), found));
            }
            all.insert(at, module);
        }
        Self { all }
    }

    /// The file and the name of the item that a path leads to, as seen from a module. None for a module, and
    /// for what is not of this crate.
    fn item(&self, from: &Names, path: &[String]) -> Option<(String, String)> {
        self.follow(from, path, 8)
    }

    fn follow(&self, from: &Names, path: &[String], left: usize) -> Option<(String, String)> {
        let left = left.checked_sub(1)?;
        let mut at = from.clone();
        for (index, name) in path.iter().enumerate() {
            match name.as_str() {
                "crate" if index == 0 => at = Names::new(),
                "self" => {}
                "super" => drop(at.pop()),
                name => {
                    let module = self.all.get(&at)?;
                    let child = joined(&at, name);
                    let rest = path.get(index + 1..).unwrap_or_default();
                    if self.all.contains_key(&child) {
                        at = child;
                    } else if let Some(import) = module.imports.iter().find(|import| import.name == name) {
                        return self.follow(&at, &[import.path.as_slice(), rest].concat(), left);
                    } else if index == 0 {
                        return None;
                    } else {
                        return Some((module.file.clone(), name.to_owned()));
                    }
                }
            }
        }
        None
    }
}

fn joined(at: &[String], name: &str) -> Names {
    at.iter().cloned().chain([name.to_owned()]).collect()
}

struct Import {
    line: usize,
    path: Names,
    /// The name under which it is imported here.
    name: String,
    is_public: bool,
}

struct Module {
    /// Below `src`.
    file: String,
    children: BTreeSet<String>,
    imports: Vec<Import>,
    /// Paths outside of `use`, single names among them.
    paths: Vec<(usize, Names)>,
}

impl Module {
    fn new(file: &str, text: &str) -> Self {
        let words = without_tests(&words(text));
        let mut module =
            Self { file: file.to_owned(), children: BTreeSet::new(), imports: Vec::new(), paths: Vec::new() };
        let word = |at: usize| words.get(at).map_or("", |(_, word)| word.as_str());
        let mut at = 0;
        while let Some((line, first)) = words.get(at) {
            // `impl Trait + use<'a>` imports nothing.
            if first == "use" && word(at + 1) != "<" {
                let end = (at..words.len()).find(|end| word(*end) == ";").unwrap_or(words.len());
                let before = at.checked_sub(1).map_or("", word);
                let tree = words.get(at + 1..end).unwrap_or_default();
                imports(tree, &Names::new(), before == "pub" || before == ")", &mut module.imports);
                at = end;
            } else if first == "mod" && word(at + 2) == ";" {
                module.children.insert(word(at + 1).to_owned());
                at += 2;
            } else if is_name(first) && at.checked_sub(1).is_none_or(|before| word(before) != ".") {
                let mut path = vec![first.clone()];
                while word(at + 1) == "::" && is_name(word(at + 2)) {
                    path.push(word(at + 2).to_owned());
                    at += 2;
                }
                // `name: value` is a field.
                if path.len() > 1 || word(at + 1) != ":" {
                    module.paths.push((*line, path));
                }
            }
            at += 1;
        }
        module
    }

    /// Paths by which it names what it needs, with their lines.
    fn named(&self, at: &Names, modules: &Modules) -> Vec<(usize, Names)> {
        let folder = at.as_slice();
        let passes_on = |import: &&Import| {
            import.is_public
                && modules
                    .module_of(at, &import.path)
                    .is_some_and(|of| of.starts_with(folder) && of != folder)
        };
        let mut named: Vec<_> = self
            .imports
            .iter()
            .filter(|import| !passes_on(import))
            .map(|import| (import.line, import.path.clone()))
            .collect();
        // Names that are imported here as well: a path may begin with them.
        let is_known = |name: &str| {
            ["crate", "super", "self"].contains(&name)
                || self.children.contains(name)
                || self.imports.iter().any(|import| import.name == name)
        };
        named.extend(
            self.paths.iter().filter(|(_, path)| path.first().is_some_and(|name| is_known(name))).cloned(),
        );
        named
    }
}

impl Modules {
    /// The deepest module on a path.
    fn module_of(&self, from: &[String], path: &[String]) -> Option<Names> {
        let mut at = from.to_vec();
        for (index, name) in path.iter().enumerate() {
            match name.as_str() {
                "crate" if index == 0 => at = Names::new(),
                "self" => {}
                "super" => drop(at.pop()),
                name if self.all.contains_key(&joined(&at, name)) => at = joined(&at, name),
                _ if index == 0 => return None,
                _ => break,
            }
        }
        Some(at)
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The imports of what stands between `use` and `;`.
fn imports(tree: &[(usize, String)], before: &[String], is_public: bool, found: &mut Vec<Import>) {
    let mut path = before.to_vec();
    let mut rest = tree;
    while let Some(((line, word), behind)) = rest.split_first() {
        match word.as_str() {
            "::" => {}
            "{" => {
                let mut depth = 0;
                let is_end = |(_, word): &(usize, String)| {
                    depth += match word.as_str() {
                        "{" => 1,
                        "}" => -1,
                        _ => 0,
                    };
                    depth < 0
                };
                let end = behind.iter().position(is_end).unwrap_or(behind.len());
                let mut depth = 0;
                let members = behind.get(..end).unwrap_or_default().split(|(_, word)| {
                    depth += i32::from(word == "{") - i32::from(word == "}");
                    depth == 0 && word == ","
                });
                members.for_each(|member| imports(member, &path, is_public, found));
                return;
            }
            "as" => {
                let name = behind.first().map_or(String::new(), |(_, name)| name.clone());
                found.push(Import { line: *line, path, name, is_public });
                return;
            }
            word => path.push(word.to_owned()),
        }
        rest = behind;
        if rest.is_empty() {
            // `x::{self}` imports `x`.
            if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            let name = path.last().cloned().unwrap_or_default();
            found.push(Import { line: *line, path, name, is_public });
            return;
        }
    }
}

/// The words without what stands behind `#[cfg(test)]`: an item, a statement, or a field.
fn without_tests(words: &[(usize, String)]) -> Vec<(usize, String)> {
    const ATTRIBUTE: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let is_test = |at: usize| {
        let mut here = words.iter().skip(at).map(|(_, word)| word.as_str());
        ATTRIBUTE.iter().all(|word| here.next() == Some(word))
    };
    let mut kept = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if is_test(at) {
            at = behind_item(words, at + ATTRIBUTE.len());
        } else {
            kept.push(word.clone());
            at += 1;
        }
    }
    kept
}

/// Where the item ends that begins there, with its attributes.
fn behind_item(words: &[(usize, String)], start: usize) -> usize {
    const ITEMS: [&str; 12] =
        ["pub", "fn", "impl", "mod", "use", "struct", "enum", "trait", "const", "static", "type", "unsafe"];
    let word = |at: usize| words.get(at).map(|(_, word)| word.as_str());
    let mut depth = 0;
    let mut at = start;
    let mut is_item = None;
    while let Some(here) = word(at) {
        if depth == 0 && here == "#" {
            // An attribute's brackets do not end what stands behind it.
            at += 1;
            let mut inner = 0;
            while let Some(here) = word(at) {
                inner += i32::from(here == "[") - i32::from(here == "]");
                at += 1;
                if inner == 0 {
                    break;
                }
            }
            continue;
        }
        let is_item = *is_item.get_or_insert(ITEMS.contains(&here));
        match here {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth == 0 => return at,
            ")" | "]" => depth -= 1,
            "}" => {
                depth -= 1;
                // `use a::{b, c};` goes on to its `;`.
                if depth == 0 && word(at + 1) != Some(";") {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            "," if depth == 0 && !is_item => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at
}
