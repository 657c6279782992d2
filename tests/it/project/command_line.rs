//! Commands, flags and variables exist in the binary wherever they are named: in containers, the systemd
//! unit, documents, and error messages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::command::command;
use crate::support::compose::Compose;

/// Where flags and variables are named. The change log is not among them, because it may name removed flags.
const DOCUMENTS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "docs/api.md",
    "docs/benchmarks.md",
    "docs/boards.md",
    "docs/contributing.md",
    "docs/import.md",
    "docs/install.md",
    "docs/nats.md",
    "docs/operations.md",
    "docs/privacy.md",
    "docs/recipes.md",
    "docs/redis.md",
    "docs/releasing.md",
    "docs/runbooks.md",
    "docs/wire.md",
    "docs/internals/http.md",
    "docs/internals/jetstream.md",
    "docs/internals/reads.md",
    "docs/internals/state.md",
    "docs/internals/storage.md",
    "docs/internals/tooling.md",
    "docs/internals/tree.md",
    "docs/internals/write-path.md",
    "examples/README.md",
    "docker-compose.yml",
    "deploy/compose/secrets.sh",
    "deploy/ranktree.service",
    "deploy/ranktree.example.toml",
    "deploy/nats/nats-server.conf",
    "deploy/nats/ranktree.conf",
    "dashboards/prometheus/prometheus.yml",
    "dashboards/prometheus/rules/alerts.yml",
];

/// Flags in them that are other programs', and whose.
const OF_OTHERS: &[(&str, &str)] = &[
    ("before", "benches/http_vs_redis"),
    ("systems", "benches/visible"),
    ("seconds", "benches"),
    ("rows", "benches/transfer"),
    ("runs", "benches"),
    ("rounds", "benches"),
    ("cases", "benches"),
    ("batches", "benches"),
    ("bench", "cargo"),
    ("check", "sha256sum"),
    ("locked-mode", "dotnet restore"),
    ("config", "prometheus"),
    ("csv", "redis-cli"),
    ("dupe-window", "nats"),
    ("ignore-missing", "sha256sum"),
    ("inbox-prefix", "nats"),
    ("lib", "cargo"),
    ("loads-of", "benches/visible"),
    ("max-bytes", "nats"),
    ("now", "systemctl"),
    ("offline", "cargo"),
    ("pipe", "systemd-run"),
    ("profile", "docker compose"),
    ("property", "systemd-run"),
    ("quiet", "wget"),
    ("spider", "wget"),
    ("storage", "prometheus"),
    ("strip-components", "tar"),
    ("release", "cargo"),
    ("repo", "gh"),
    ("rm", "docker compose"),
    ("seq", "nats"),
    ("tail", "docker compose"),
    ("test", "cargo"),
    ("time", "docker"),
    ("uid", "systemd-run"),
    ("volumes", "docker compose"),
    ("web", "prometheus"),
    ("without-debian", "packaging/dist.py"),
    ("workspace", "cargo"),
];

/// Names that begin like variables of ranktree but are not, and what they are.
const NO_VARIABLES: &[(&str, &str)] = &[
    ("RANKTREE_BIN", "read by the Makefile"),
    ("RANKTREE_BOARDS", "a stream"),
    ("RANKTREE_FLOORS", "a bucket"),
    ("RANKTREE_JOBS_", "a shard's stream"),
    ("RANKTREE_JOBS_0", "a shard's stream"),
    ("RANKTREE_JOBS_SHARD", "a shard's stream"),
    ("RANKTREE_NODES", "a bucket"),
    ("RANKTREE_NODE_PASSWORD", "read by nats-server"),
    ("RANKTREE_GAME_PASSWORD", "read by nats-server"),
    ("RANKTREE_REJECTS_PASSWORD", "read by nats-server"),
    ("RANKTREE_ROUTE_1", "read by nats-server"),
    ("RANKTREE_ROUTE_PASSWORD", "read by nats-server"),
    ("RANKTREE_PORT", "read by docker compose"),
];

/// All that the binary's help names.
struct CommandLine {
    /// The flags of each command, which is `config print` for one within another.
    flags: BTreeMap<String, BTreeSet<String>>,
    variables: BTreeSet<String>,
}

impl CommandLine {
    fn of_the_binary() -> Self {
        let mut found = Self { flags: BTreeMap::new(), variables: BTreeSet::new() };
        found.take("");
        assert!(found.flags.len() > 15 && found.variables.len() > 60, "{:?}", found.flags.keys());
        found
    }

    fn take(&mut self, name: &str) {
        let words: Vec<_> = name.split_whitespace().collect();
        let output = command().args(&words).arg("--help").output().expect("the binary can be started");
        let help = String::from_utf8(output.stdout).expect("help is text");
        assert!(output.status.success(), "{name} --help: {help}");
        self.variables.extend(variables_in(&help).map(str::to_owned));
        let listed = help.lines().filter_map(|line| {
            let line = line.trim_start();
            // A short one may come first.
            let line =
                line.split_once(", ").filter(|(short, _)| short.len() == 2).map_or(line, |(_, long)| long);
            line.starts_with("--").then(|| flags_in(line).next()).flatten()
        });
        self.flags.insert(name.to_owned(), listed.map(str::to_owned).collect());
        let inner = help.split("\nCommands:\n").nth(1).and_then(|rest| rest.split("\n\n").next());
        for line in inner.unwrap_or_default().lines() {
            // What goes on in a second line is indented further.
            let Some(inner) = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')) else { continue };
            let inner = inner.split_whitespace().next().expect("a command's name");
            if inner != "help" {
                self.take(format!("{name} {inner}").trim_start());
            }
        }
    }

    fn is_command(&self, name: &str) -> bool {
        !name.is_empty() && self.flags.contains_key(name)
    }

    fn has_flag(&self, flag: &str) -> bool {
        self.flags.values().any(|flags| flags.contains(flag))
    }

    /// Checks the words after the program's name. An error says what is wrong.
    fn judge(&self, words: &[&str]) -> Result<(), String> {
        let Some((&first, mut rest)) = words.split_first() else { return Err("no command".to_owned()) };
        let mut name = first.to_owned();
        if name == "help" {
            let of = rest.first().copied().unwrap_or_default();
            return if self.is_command(of) || of.starts_with('<') {
                Ok(())
            } else {
                Err(format!("help {of}"))
            };
        }
        if !self.is_command(&name) {
            return Err(format!("there is no command {name}"));
        }
        if let Some((inner, further)) = rest.split_first() {
            let longer = format!("{name} {inner}");
            if self.is_command(&longer) {
                (name, rest) = (longer, further);
            }
        }
        let known = &self.flags[&name];
        let unknown = rest.iter().filter(|word| word.starts_with("--")).find_map(|word| {
            let flag = flags_in(word).next()?;
            (!known.contains(flag)).then_some(flag)
        });
        unknown.map_or(Ok(()), |flag| Err(format!("ranktree {name} has no --{flag}")))
    }
}

/// The names of all flags, `--name`, in a text.
fn flags_in(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("--").filter_map(|(at, _)| {
        let before = text[..at].chars().next_back();
        let name = &text[at + 2..];
        let length = name.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
        let name = name[..length.unwrap_or(name.len())].trim_end_matches('-');
        let begins = before.is_none_or(|c| !(c.is_alphanumeric() || c == '-' || c == '_'));
        (begins && name.starts_with(|c: char| c.is_ascii_lowercase())).then_some(name)
    })
}

fn variables_in(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("RANKTREE_").filter_map(|(at, _)| {
        let name = &text[at..];
        let length = name.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'));
        let name = &name[..length.unwrap_or(name.len())];
        // `RANKTREE_...` stands for all of them.
        (name != "RANKTREE_").then_some(name)
    })
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn shipped(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The words of every `ranktree COMMAND ...` in a text: in prose if the word is a command's, and in code in
/// any case.
fn invocations<'a>(text: &'a str, line_of: &CommandLine) -> Vec<Vec<&'a str>> {
    let mut found = Vec::new();
    for (at, program) in text.match_indices("ranktree ") {
        let before = &text[..at];
        if before.ends_with(|c: char| c.is_alphanumeric() || "-_.*\"".contains(c)) {
            continue;
        }
        let line_start = before.rsplit('\n').next().unwrap_or_default();
        let only_a_path = line_start.trim_start_matches(['#', ' ', '$']).trim_end_matches(['/', '.']);
        let is_code = before.ends_with('`') || (line_start.starts_with("    ") && only_a_path.is_empty());
        let rest = &text[at + program.len()..];
        let end = rest.match_indices(['`', '|', '>', '#', ')', ';', '&', '\n', ',']).find(|(end, found)| {
            match *found {
                // A line that ends with a backslash goes on, and so does a list of servers.
                "\n" => !rest[..*end].ends_with('\\'),
                "," => rest[*end + 1..].starts_with(char::is_whitespace),
                _ => true,
            }
        });
        let words: Vec<_> = rest[..end.map_or(rest.len(), |(end, _)| end)]
            .split_whitespace()
            .filter(|word| *word != "\\")
            .collect();
        let Some(first) = words.first() else { continue };
        if is_code || line_of.is_command(first) {
            found.push(words);
        }
    }
    found
}

#[test]
fn containers_use_commands_flags_and_variables_that_exist() {
    let known = CommandLine::of_the_binary();
    let compose = Compose::shipped();
    let mut ours = 0;
    for (name, service) in compose.services().iter().filter(|(_, service)| service.is_ours()) {
        if service.list("entrypoint").is_empty() {
            let words = service.list("command");
            assert_eq!(known.judge(&words), Ok(()), "{name}: {words:?}");
        }
        for (variable, _) in service.environment() {
            assert!(known.variables.contains(variable), "{name}: nothing reads {variable}");
            ours += 1;
        }
    }
    assert!(ours >= 5, "only {ours} variables were found");

    let dockerfile = shipped("Dockerfile");
    let runs: Vec<_> = dockerfile.lines().filter_map(|line| line.split_once("CMD [")).collect();
    assert_eq!(runs.len(), 2, "what is run, and the health check");
    for (_, words) in runs {
        let words: Vec<_> =
            words.trim_end_matches(']').split(", ").map(|word| word.trim_matches('"')).collect();
        let words = words.strip_prefix(&["ranktree"]).unwrap_or(&words);
        assert_eq!(known.judge(words), Ok(()));
    }
    let variables: Vec<_> = variables_in(&dockerfile).collect();
    assert!(variables.contains(&"RANKTREE_LISTEN"), "{variables:?}");
    for variable in variables {
        assert!(known.variables.contains(variable), "nothing reads {variable}");
    }
}

#[test]
fn the_unit_uses_commands_flags_and_variables_that_exist() {
    let known = CommandLine::of_the_binary();
    let unit = shipped("deploy/ranktree.service");
    let mut runs = 0;
    for line in unit.lines() {
        if line.starts_with("Exec") {
            let words: Vec<_> = line.split_whitespace().collect();
            assert!(words[0].ends_with("=/usr/local/bin/ranktree"), "{line}");
            assert_eq!(known.judge(&words[1..]), Ok(()), "{line}");
            runs += 1;
        }
        if let Some(variable) = line.strip_prefix("Environment=") {
            let name = variable.split('=').next().expect("a name");
            assert!(known.variables.contains(name), "nothing reads {name}");
        }
    }
    assert_eq!(runs, 2);
}

#[test]
fn commands_flags_and_variables_that_documents_name_exist() {
    let known = CommandLine::of_the_binary();
    let mut runs = 0;
    for path in DOCUMENTS {
        let text = shipped(path);
        for words in invocations(&text, &known) {
            assert_eq!(known.judge(&words), Ok(()), "{path}: ranktree {}", words.join(" "));
            runs += 1;
        }
        for flag in flags_in(&text) {
            let is_others = OF_OTHERS.iter().any(|(name, _)| *name == flag);
            assert!(is_others || known.has_flag(flag), "{path}: no command has --{flag}");
        }
        for variable in variables_in(&text) {
            let is_none = NO_VARIABLES.iter().any(|(name, _)| *name == variable);
            assert!(is_none || known.variables.contains(variable), "{path}: nothing reads {variable}");
        }
    }
    assert!(runs > 40, "only {runs} commands were found");
    let all: String = DOCUMENTS.iter().map(|path| shipped(path)).collect();
    for (flag, program) in OF_OTHERS {
        assert!(
            flags_in(&all).any(|found| found == *flag),
            "--{flag} of {program} is named nowhere any more"
        );
    }
}

/// Flags and variables that messages and help name exist.
#[test]
fn flags_and_variables_that_the_source_names_exist() {
    let known = CommandLine::of_the_binary();
    let mut source = String::new();
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the source is there") {
            let path: PathBuf = entry.expect("it can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                // Styles have names that look like flags.
                && !path.ends_with("openapi/page.rs")
            {
                let text = fs::read_to_string(&path).expect("it can be read");
                // Tests at the end may give flags that are refused.
                let text = text.split("\n#[cfg(test)]\nmod ").next().expect("a part");
                for flag in flags_in(text) {
                    // Messages about streams name commands of NATS's own tool. Another one shows what to
                    // send by curl, one names a flag that other services have, and one names docker's. The
                    // help of imports names the one of redis-cli whose output it reads.
                    let is_of_others = OF_OTHERS.contains(&(flag, "nats"))
                        || ["cacert", "csv", "port", "user"].contains(&flag);
                    assert!(
                        is_of_others || known.has_flag(flag),
                        "{}: no command has --{flag}",
                        path.display()
                    );
                }
                source.push_str(text);
            }
        }
    }
    for variable in &known.variables {
        assert!(source.contains(&format!("\"{variable}\"")), "help names {variable}, and nothing reads it");
    }
}

#[test]
fn commands_flags_and_variables_are_found_in_text() {
    let text = "`--a-b=c`, x--y, --, ---z, [--nats URL] --insecure. --tls-";
    assert_eq!(flags_in(text).collect::<Vec<_>>(), ["a-b", "nats", "insecure", "tls"]);
    let text = "RANKTREE_A=1 and `RANKTREE_...` or $RANKTREE_B_C.";
    assert_eq!(variables_in(text).collect::<Vec<_>>(), ["RANKTREE_A", "RANKTREE_B_C"]);
    let known = CommandLine {
        flags: BTreeMap::from([
            ("serve".to_owned(), BTreeSet::from(["nats".to_owned()])),
            ("config".to_owned(), BTreeSet::new()),
            ("config print".to_owned(), BTreeSet::from(["json".to_owned()])),
        ]),
        variables: BTreeSet::new(),
    };
    let text = "ranktree is one. `ranktree go --on`\n    $ bin/ranktree serve --nats \\\n  --x # y\nranktree config: z";
    let found = invocations(text, &known);
    assert_eq!(found, [&["go", "--on"][..], &["serve", "--nats", "--x"]]);
    assert_eq!(known.judge(&found[0]), Err("there is no command go".to_owned()));
    assert_eq!(known.judge(&found[1]), Err("ranktree serve has no --x".to_owned()));
    assert_eq!(known.judge(&["config", "print", "--json"]), Ok(()));
    assert_eq!(known.judge(&["help", "serve"]), Ok(()));
    assert_eq!(known.judge(&["help", "served"]), Err("help served".to_owned()));
}
