//! Settings and their sources: flags, environment, file and defaults of the real binary.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::support::command::command;
use crate::support::node::Node;
use crate::support::tools::missing;

struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

fn ranktree(arguments: &[&str], environment: &[(&str, &str)]) -> Said {
    let mut command = command();
    command.args(arguments).envs(environment.iter().copied());
    let Output { status, stdout, stderr } = command.output().expect("the binary can be started");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it writes UTF-8");
    Said { code: status.code(), out: text(stdout), err: text(stderr) }
}

fn file(folder: &Path, text: &str) -> String {
    let path = folder.join("ranktree.toml");
    fs::write(&path, text).expect("it can be written");
    path.to_str().expect("it is UTF-8").to_owned()
}

/// The fields of each setting in `config print --json`.
fn printed(arguments: &[&str], environment: &[(&str, &str)]) -> impl Fn(&str) -> Value + use<> {
    let said = ranktree(&[&["config", "print", "--json"], arguments].concat(), environment);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let all: Value = serde_json::from_str(&said.out).expect("it is JSON");
    move |key| {
        let mut found = all.as_array().expect("an array").iter().filter(|setting| setting["key"] == key);
        let setting = found.next().unwrap_or_else(|| panic!("there is no {key}")).clone();
        assert!(found.next().is_none(), "{key} is there twice");
        setting
    }
}

#[test]
fn every_setting_says_where_its_value_came_from() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = file(
        folder.path(),
        "# A comment.\nshards = 4\nprefix = \"games\"\nlisten = \"127.0.0.1:1\"\nno_auto_create = true\n",
    );
    let setting = printed(
        &["--config", &path, "--shards", "2", "--no-auto-create=no"],
        &[("RANKTREE_SHARDS", "3"), ("RANKTREE_PREFIX", "arcade")],
    );
    let told = |key: &str| {
        let setting = setting(key);
        (setting["value"].clone(), setting["origin"].clone(), setting["from"].clone())
    };
    assert_eq!(told("shards"), (json!(2), json!("flag"), json!("--shards")));
    assert_eq!(told("prefix"), (json!("arcade"), json!("environment"), json!("RANKTREE_PREFIX")));
    assert_eq!(told("listen"), (json!("127.0.0.1:1"), json!("file"), json!(format!("{path}:4"))));
    assert_eq!(told("no_auto_create"), (json!("no"), json!("flag"), json!("--no-auto-create")));
    assert_eq!(told("cache_mib"), (json!(256), json!("default"), Value::Null));
    assert_eq!(setting("cache_mib")["default"], 256);
    // The environment may name the file, too.
    let setting = printed(&[], &[("RANKTREE_CONFIG", &path)]);
    assert_eq!(setting("shards")["value"], 4);
}

#[test]
fn printed_settings_can_be_read_back_and_show_no_secret() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let nats = ("RANKTREE_NATS", "nats://player:s3cret@127.0.0.1:4222");
    let said = ranktree(&["config", "print", "--shards", "3", "--data-dir", "a \"b\" \\ c"], &[nats]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(!said.out.contains("s3cret") && !said.err.contains("s3cret"), "{}", said.out);
    let secret = said.out.lines().find(|line| line.contains("nats =")).expect("it is listed");
    assert!(secret.starts_with("# nats = \"nats://***@127.0.0.1:4222\""), "{secret}");
    assert!(secret.ends_with("# environment RANKTREE_NATS"), "{secret}");
    let path = file(folder.path(), &said.out);
    let again = ranktree(&["config", "print", "--config", &path], &[]);
    assert_eq!(again.code, Some(0), "{}", again.err);
    let values = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| line.rsplit_once('#').expect("it says whence").0.trim().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(values(&again.out), values(&said.out));
    assert!(values(&said.out).contains(&"shards = 3".to_owned()), "{}", said.out);
    assert!(again.out.contains(&format!("# file {path}, line ")), "{}", again.out);
}

/// Every key that is listed is accepted in a file, with the value that is listed.
#[test]
fn every_listed_setting_is_accepted_in_a_file() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let said = ranktree(&["config", "print", "--json"], &[]);
    let all: Value = serde_json::from_str(&said.out).expect("it is JSON");
    let mut lines = Vec::new();
    for setting in all.as_array().expect("an array") {
        let key = setting["key"].as_str().expect("a key");
        if key.starts_with("RANKTREE_") {
            // Variables cannot be in a file.
            continue;
        }
        // Settings without a value take a number or any text.
        let value = if setting["value"].is_null() { json!(1) } else { setting["value"].clone() };
        lines.push(format!("{key} = {value}\n"));
    }
    let path = file(folder.path(), &lines.concat());
    let read = printed(&["--config", &path], &[]);
    for line in &lines {
        let key = line.split_once(' ').expect("a key").0;
        let setting = read(key);
        let is_several = setting["value"] == json!([]);
        assert!(setting["origin"] == "file" || is_several, "{line}: {setting}");
    }
    assert!(lines.len() > 30, "{}", lines.len());
}

/// The error for a number that clap or the file's parser refuses has an explanation and the value.
#[test]
fn refused_values_are_explained_without_parser_messages() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for (key, value, expect) in [
        ("shards", "many", "a whole number is expected, digits only"),
        ("shards", "-1", "it must be 1 to 64"),
        ("shards", "300", "it must be 1 to 64"),
        ("shards", "70000", "it must be 1 to 64"),
        ("header_seconds", "0", "it must be 1 to 3600"),
        ("max_requests", "0", "it must be 1 or more"),
    ] {
        let flag = format!("--{}={value}", key.replace('_', "-"));
        let path = file(folder.path(), &format!("{key} = {value:?}\n"));
        for arguments in [&["config", "check", &flag][..], &["config", "check", "--config", &path]] {
            let said = ranktree(arguments, &[]);
            assert_eq!(said.code, Some(2), "{arguments:?}");
            assert!(said.err.contains(expect) && said.err.contains(value), "{arguments:?}: {}", said.err);
            assert!(!said.err.contains("invalid digit"), "{}", said.err);
        }
    }
}

#[test]
fn check_compares_settings_with_the_data_directory() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut service = Node::at(folder.path().join("data")).shards(2).start();
    let job = json!({"score": 1});
    assert_eq!(service.client().put("/v1/boards/a/members/m", &job).0, 200);
    let data_dir = folder.path().join("data");
    let data_dir = ["--data-dir", data_dir.to_str().expect("it is UTF-8")];
    let check =
        |arguments: &[&str]| ranktree(&[&["config", "check"], &data_dir[..], arguments].concat(), &[]);
    // While the service runs, and afterwards.
    for _ in 0..2 {
        let said = check(&["--shards", "2"]);
        assert_eq!((said.code, said.out.as_str()), (Some(0), "no errors found\n"), "{}", said.err);
        let said = check(&["--shards", "3"]);
        assert_eq!(said.code, Some(1), "{}", said.err);
        let told = "holds 2 shards, and the settings say 3";
        assert!(said.out.contains(told) && said.out.contains("start with --shards 2"), "{}", said.out);
        let said = check(&["--shards", "2", "--nats", "nats://127.0.0.1:1"]);
        assert_eq!(said.code, Some(1), "{}", said.err);
        assert!(said.out.contains("was filled without NATS"), "{}", said.out);
        service.terminate();
        service = Node::start();
    }
    let one_shard = folder.path().join("data/shard-001");
    let given = ranktree(&["config", "check", "--data-dir", one_shard.to_str().expect("it is UTF-8")], &[]);
    assert_eq!(given.code, Some(1), "{}", given.err);
    assert!(given.out.contains("is the directory of a single shard"), "{}", given.out);
    // What a start would say, in its words.
    let is_told = |words: &str| {
        let said = check(&["--shards", "2"]);
        assert_eq!(said.code, Some(1), "{}", said.err);
        let start =
            ranktree(&[&["serve", "--listen", "127.0.0.1:0", "--shards", "2"], &data_dir[..]].concat(), &[]);
        assert_eq!(start.code, Some(2), "{}", start.err);
        assert!(said.out.contains(words) && start.err.contains(said.out.trim()), "{}{}", said.out, start.err);
    };
    let marker = one_shard.join("RANKTREE");
    let kept = fs::read(&marker).expect("it has one");
    fs::remove_file(&marker).expect("it is there");
    is_told("its file RANKTREE is missing");
    std::os::unix::fs::symlink("/etc/hostname", &marker).expect("it can be made");
    is_told("it is a link");
    fs::remove_file(&marker).expect("it is there");
    fs::write(&marker, kept).expect("it can be written");
    assert_eq!(check(&["--shards", "2"]).code, Some(0));
    fs::remove_dir_all(&one_shard).expect("it is there");
    is_told("shard-001 is missing or empty");
}

/// Its marker would be taken for a damaged one of a data directory, and written anew.
#[test]
fn no_command_takes_the_directory_of_one_shard_for_a_data_directory() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut service = Node::at(folder.path().join("data")).start();
    let shard = folder.path().join("data/shard-000");
    let names = || -> BTreeSet<_> {
        let entries = fs::read_dir(&shard).expect("readable");
        entries.map(|entry| entry.expect("readable").file_name()).collect()
    };
    service.terminate();
    let (before, marker) = (names(), fs::read(shard.join("RANKTREE")).expect("it has one"));
    let data_dir = ["--data-dir", shard.to_str().expect("it is UTF-8")];
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["verify"], &["rebuild"]] {
        let said = ranktree(&[command, &data_dir[..]].concat(), &[]);
        assert_eq!(said.code, Some(2), "{command:?}: {}", said.err);
        assert!(said.err.contains("is the directory of a single shard"), "{command:?}: {}", said.err);
    }
    assert_eq!(names(), before);
    assert_eq!(fs::read(shard.join("RANKTREE")).expect("still there"), marker);
}

#[test]
fn token_files_that_others_can_read_are_warned_of() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let ([_, _, tokens], _) = credentials(folder.path());
    let data_dir = folder.path().join("data");
    let data_dir = data_dir.to_str().expect("it is UTF-8");
    for (mode, expect) in [
        (0o600, None),
        (0o640, None),
        (0o644, Some("lists the bearer tokens and their scopes, and every user of this machine can read it")),
        (
            0o620,
            Some("lists the bearer tokens and their scopes, and users other than its owner can change it"),
        ),
    ] {
        fs::set_permissions(&tokens, fs::Permissions::from_mode(mode)).expect("it is ours");
        let said = ranktree(&["config", "check", "--data-dir", data_dir, "--tokens", &tokens], &[]);
        assert_eq!(said.code, Some(0), "{} {}", said.out, said.err);
        match expect {
            Some(expect) => {
                assert!(said.err.contains(expect) && said.err.contains("chmod 600"), "{}", said.err);
            }
            None => assert_eq!(said.err, "", "{mode:o}"),
        }
    }
}

#[test]
fn environment_only_secrets_are_listed_and_masked() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    // The password looks like a URL. Of URLs, more would be shown.
    let secret = "nats://hunter2";
    let nats = ["--nats", "nats://127.0.0.1:4222"];
    for (key, variable, user) in [
        ("RANKTREE_NATS_PASSWORD", "RANKTREE_NATS_PASSWORD", &["--nats-user", "me"][..]),
        ("RANKTREE_NATS_TOKEN", "RANKTREE_NATS_TOKEN", &[]),
    ] {
        let arguments = [&nats[..], user].concat();
        let setting = printed(&arguments, &[(variable, secret)])(key);
        assert_eq!((&setting["value"], &setting["secret"]), (&json!("***"), &json!(true)), "{setting}");
        assert_eq!((&setting["origin"], &setting["from"]), (&json!("environment"), &json!(variable)));
        let said = ranktree(&[&["config", "print"], &arguments[..]].concat(), &[(variable, secret)]);
        assert!(!(said.out.clone() + &said.err).contains("hunter2"), "{}{}", said.out, said.err);
        assert_eq!(said.err, "", "it is what serve would be run with");
        let line = said.out.lines().find(|line| line.contains(&format!("{key} ="))).expect("it is listed");
        assert!(line.starts_with(&format!("# {key} = \"***\" ")), "{line}");
        assert!(line.ends_with(&format!("# environment {variable}")), "{line}");
        for environment in [&[][..], &[(variable, "")]] {
            let setting = printed(&nats, environment)(key);
            assert_eq!(
                (&setting["value"], &setting["origin"]),
                (&Value::Null, &json!("default")),
                "{setting}"
            );
        }
        // The variable is not accepted as a key of a file, and the error says so.
        let key = key.trim_start_matches("RANKTREE_").to_lowercase();
        let path = file(folder.path(), &format!("{key} = \"hunter2\"\n"));
        let said = ranktree(&["config", "print", "--config", &path], &[]);
        assert!(said.err.contains(&format!("no setting {key}; did you mean {key}_file?")), "{}", said.err);
    }
    // If settings contradict each other, an error is printed in addition to the list.
    let said = ranktree(&["config", "print"], &[("RANKTREE_NATS_PASSWORD", secret)]);
    assert!(
        said.out.contains("# RANKTREE_NATS_PASSWORD = \"***\"")
            && said.err.contains("would refuse these settings"),
        "{}",
        said.err
    );
}

#[test]
fn an_unknown_key_is_an_error_that_names_the_line_and_the_nearest_known_one() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = file(folder.path(), "shards = 2\n\ncheckpoint_second = 5\n");
    let expect = format!(
        "line 3 of the configuration file {path}: there is no setting checkpoint_second; did you mean checkpoint_seconds?"
    );
    for subcommand in
        [&["serve"][..], &["verify"], &["config", "print"], &["config", "check"], &["healthcheck"]]
    {
        let said = ranktree(&[subcommand, &["--config", &path]].concat(), &[]);
        assert_eq!(
            (said.code, said.err.trim()),
            (Some(2), &*format!("ranktree: {expect}")),
            "{subcommand:?}"
        );
    }
}

#[test]
fn one_file_serves_every_subcommand() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let data_dir = folder.path().join("nothing here");
    let path =
        file(folder.path(), &format!("listen = \"127.0.0.1:1\"\nshards = 2\ndata_dir = {data_dir:?}\n"));
    let said = ranktree(&["verify", "--config", &path], &[]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains(&format!("{} holds no shards", data_dir.display())), "{}", said.err);
}

#[test]
fn check_reports_settings_that_cannot_be_used() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let data_dir = folder.path().join("data");
    let fine = file(folder.path(), &format!("data_dir = {data_dir:?}\n"));
    let said = ranktree(&["config", "check", "--config", &fine], &[]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), "no errors found\n"), "{}", said.err);
    assert!(!data_dir.exists(), "it only looks");

    let said = ranktree(&["config", "check", "--data-dir", &fine], &[]);
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert_eq!(said.out.trim(), format!("data_dir = {fine}: it is a file; a directory is expected"));

    for (arguments, words) in [
        (["--shards", "65"], "invalid value '65' for '--shards <N>': it must be 1 to 64"),
        (["--listen", "0.0.0.0:8080"], "other machines can reach"),
        (["--config", "/no/such/file"], "cannot read the configuration file /no/such/file"),
    ] {
        let said = ranktree(&[&["config", "check"][..], &arguments].concat(), &[]);
        assert_eq!(said.code, Some(2), "{arguments:?}");
        assert!(said.err.contains(words), "{}", said.err);
    }
}

#[test]
fn a_wrong_value_is_told_with_the_usage_of_its_own_command() {
    for (arguments, environment, usage) in [
        (&["serve", "--shards", "0"][..], &[][..], "serve [OPTIONS]"),
        (&["serve"], &[("RANKTREE_SHARDS", "0")], "serve [OPTIONS]"),
        (&["config", "check", "--shards", "0"], &[], "config check [OPTIONS]"),
        (&["verify", "./data"], &[], "verify [OPTIONS]"),
    ] {
        let said = ranktree(arguments, environment);
        assert_eq!(said.code, Some(2), "{}", said.err);
        let line = said.err.lines().find(|line| line.starts_with("Usage: ")).unwrap_or_default();
        assert!(line.ends_with(&format!(" {usage}")), "{arguments:?}: {}", said.err);
    }
}

#[test]
fn a_service_is_not_started_on_a_file_in_place_of_a_directory() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = file(folder.path(), "shards = 4\n");
    let said = ranktree(&["serve", "--listen", "127.0.0.1:0", "--data-dir", &path], &[]);
    assert!(said.code.is_some_and(|code| code != 0), "{}", said.err);
    let words =
        format!("{path} is not a directory; give the directory of the service's data with --data-dir");
    assert!(said.err.contains(&words), "{}", said.err);
    assert_eq!(fs::read_to_string(&path).expect("it is there"), "shards = 4\n");
}

/// Where a setting is set; `None`: nowhere.
const PLACES: [Option<&str>; 4] = [None, Some("flag"), Some("environment"), Some("file")];

/// The output of `config check` with two settings, each set in its place.
fn check_pair(folder: &Path, settings: &[(&str, String); 2], places: [Option<&str>; 2]) -> Said {
    let mut arguments = ["config", "check", "--data-dir"].map(str::to_owned).to_vec();
    arguments.push(folder.join("data").to_str().expect("it is UTF-8").to_owned());
    let (mut environment, mut lines) = (Vec::new(), Vec::new());
    for ((key, value), place) in settings.iter().zip(places) {
        match place {
            None => {}
            Some("flag") => arguments.extend([format!("--{}", key.replace('_', "-")), value.clone()]),
            Some("environment") => {
                environment.push((format!("RANKTREE_{}", key.to_uppercase()), value.clone()));
            }
            Some(_) => lines.push(format!("{key} = {value:?}\n")),
        }
    }
    arguments.extend(["--config".to_owned(), file(folder, &lines.concat())]);
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let environment: Vec<_> =
        environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    ranktree(&arguments, &environment)
}

/// A certificate and its key, and tokens, as files in a folder; and the tokens' text.
fn credentials(folder: &Path) -> ([String; 3], String) {
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let tokens = ranktree(&["token", "new", "--scope", "read", "--name", "x"], &[]).out;
    let (certificate, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
    let written = [("cert.pem", &certificate), ("key.pem", &key), ("tokens.toml", &tokens)];
    let paths = written.map(|(name, text)| {
        let path = folder.join(name);
        fs::write(&path, text).expect("it can be written");
        path.to_str().expect("it is UTF-8").to_owned()
    });
    (paths, tokens)
}

/// With half a pair the service would silently run without TLS; with two lists of tokens it would silently
/// use one of them.
#[test]
fn settings_that_require_or_exclude_each_other_do_so_wherever_they_are_set() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let ([cert, key, tokens], list) = credentials(folder.path());
    let tls = [("tls_cert", cert.clone()), ("tls_key", key)];
    let lists = [("tokens", tokens), ("token_list", list)];
    for first in PLACES {
        for second in PLACES {
            let check = |settings, problem: Option<&str>| {
                let said = check_pair(folder.path(), settings, [first, second]);
                let (code, words) = problem.map_or((0, "no errors found"), |words| (2, words));
                let text = said.out + &said.err;
                assert!(said.code == Some(code) && text.contains(words), "{first:?} {second:?}: {text}");
            };
            let lacking = match (first, second) {
                (Some(_), None) => Some("--tls-cert is set without --tls-key"),
                (None, Some(_)) => Some("--tls-key is set without --tls-cert"),
                _ => None,
            };
            check(&tls, lacking);
            let both = first.and(second).map(|_| "--tokens and --token-list are both set");
            check(&lists, both);
        }
    }
    let path = file(folder.path(), &format!("tls_cert = {cert:?}\n"));
    let said = ranktree(&["serve", "--listen", "127.0.0.1:0", "--config", &path], &[]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("--tls-cert is set without --tls-key"), "{}", said.err);
}

#[test]
fn check_reads_tokens_and_certificates_as_serve_does() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let ([cert, key, tokens], list) = credentials(folder.path());
    let data_dir = folder.path().join("data");
    let data_dir = ["--data-dir", data_dir.to_str().expect("it is UTF-8")];
    let swapped = ["--tls-cert", &key, "--tls-key", &cert];
    let bad = folder.path().join("bad");
    fs::write(&bad, "bad").expect("it can be written");
    let bad = ["--tokens", bad.to_str().expect("it is UTF-8")];
    let malformed = list.replace("scope", "scop");
    let listed = [("RANKTREE_TOKEN_LIST", malformed.as_str())];
    for (arguments, environment, words) in [
        (&bad[..], &[][..], &["cannot be used: line 1 is wrong"][..]),
        (&[], &listed, &["the token list in the settings cannot be used: line 3"]),
        (&swapped, &[], &["it contains no certificate"]),
        // Both are told.
        (&[&bad[..], &swapped].concat(), &[], &["the tokens file", "it contains no certificate"]),
    ] {
        let run = |subcommand: &[&str]| {
            ranktree(&[subcommand, &data_dir, &["--listen", "127.0.0.1:0"], arguments].concat(), environment)
        };
        let (checked, served) = (run(&["config", "check"]), run(&["serve"]));
        assert_eq!((checked.code, served.code), (Some(1), Some(2)), "{} {}", checked.out, served.err);
        assert!(words.iter().all(|words| checked.out.contains(words)), "{}", checked.out);
        assert!(words[..1].iter().all(|words| served.err.contains(words)), "{}", served.err);
        assert_eq!(checked.out.lines().count(), words.len(), "each once: {}", checked.out);
    }
    // A missing file is reported once.
    let said = ranktree(&["config", "check", "--tokens", "/no/such/file", "--data-dir", data_dir[1]], &[]);
    assert_eq!((said.code, said.out.lines().count()), (Some(1), 1), "{}", said.out);
    assert!(said.out.starts_with("tokens = /no/such/file: it cannot be read"), "{}", said.out);
    let good = ["--tls-cert", &cert, "--tls-key", &key, "--tokens", &tokens];
    let said = ranktree(&[&["config", "check"], &data_dir[..], &good].concat(), &[]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), "no errors found\n"), "{}", said.err);
}

#[test]
fn the_example_file_has_every_setting_with_its_default() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/ranktree.example.toml");
    let example = fs::read_to_string(&path).expect("it comes with the source");
    let made = ranktree(&["config", "example"], &[("RANKTREE_SHARDS", "7")]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    assert!(
        example == made.out,
        "ranktree config example > deploy/ranktree.example.toml brings it up to date"
    );

    // Without its comment marks the example is a valid configuration, equal to the defaults.
    let is_setting = |line: &&str| {
        line.strip_prefix("# ").is_some_and(|rest| {
            rest.split_once(" = ")
                .is_some_and(|(key, _)| key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'))
        })
    };
    let (unset, set): (Vec<_>, Vec<_>) = example
        .lines()
        .filter(is_setting)
        .map(|line| &line[2..])
        .partition(|line| line.ends_with("= \"...\"") || line.ends_with("= []"));
    let folder = tempfile::tempdir().expect("a temporary directory");
    let with_all = file(folder.path(), &set.join("\n"));
    let read = printed(&["--config", &with_all], &[]);
    let defaults = ranktree(&["config", "print", "--json"], &[]);
    let defaults: Value = serde_json::from_str(&defaults.out).expect("it is JSON");
    // Settings that only the environment can hold cannot be in a file.
    let of_environment = ["RANKTREE_NATS_PASSWORD", "RANKTREE_NATS_TOKEN"];
    let is_of_file = |setting: &&Value| !of_environment.iter().any(|key| setting["key"] == *key);
    let defaults: Vec<_> = defaults.as_array().expect("an array").iter().filter(is_of_file).collect();
    assert_eq!(defaults.len(), set.len() + unset.len(), "a line for each setting");
    for setting in defaults {
        let key = setting["key"].as_str().expect("a key");
        assert_eq!(read(key)["value"], setting["value"], "{key}");
        let origin =
            if setting["value"].is_null() || setting["value"] == json!([]) { "default" } else { "file" };
        assert_eq!(read(key)["origin"], origin, "{key}");
    }
}

#[test]
fn completions_know_the_subcommands_and_their_flags() {
    for (shell, words) in [
        ("bash", ["_ranktree()", "--checkpoint-seconds"]),
        ("zsh", ["#compdef ranktree", "--checkpoint-seconds"]),
        ("fish", ["complete -c ranktree", "checkpoint-seconds"]),
        ("elvish", ["edit:completion", "--checkpoint-seconds"]),
        ("powershell", ["Register-ArgumentCompleter", "--checkpoint-seconds"]),
    ] {
        let said = ranktree(&["completions", shell], &[]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        for word in words {
            assert!(said.out.contains(word), "{shell} without {word}");
        }
    }
    assert_eq!(ranktree(&["completions", "cmd"], &[]).code, Some(2));
}

/// Where systemd is installed, it checks the unit. Its messages about the machine do not count.
#[test]
fn the_systemd_unit_is_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/ranktree.service");
    let unit = fs::read_to_string(&path).expect("it comes with the source");
    for line in
        ["Restart=on-failure", "NoNewPrivileges=yes", "ProtectSystem=strict", "StateDirectory=ranktree"]
    {
        assert!(unit.lines().any(|found| found == line), "{line}");
    }
    // The lines that can be uncommented pass each file under the name that its variable refers to.
    let credentials: Vec<_> = unit.lines().filter_map(|line| line.strip_prefix("#LoadCredential=")).collect();
    for handed in &credentials {
        let (name, _) = handed.split_once(':').expect("a name and a path");
        let is_used =
            |line: &str| line.starts_with("#Environment=") && line.ends_with(&format!("=%d/{name}"));
        assert!(unit.lines().any(is_used), "{handed}");
    }
    assert!(credentials.len() >= 8, "{credentials:?}");
    let unit = unit.replace("#LoadCredential=", "LoadCredential=").replace("#Environment=", "Environment=");
    let folder = tempfile::tempdir().expect("a temporary directory");
    // The unit must name a binary that exists, so the test's own binary is used.
    let here: PathBuf = command().get_program().into();
    let here = here.to_str().expect("it is UTF-8");
    let copy = folder.path().join("ranktree.service");
    fs::write(&copy, unit.replace("/usr/local/bin/ranktree", here)).expect("it can be written");
    let verify =
        std::process::Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&copy).output();
    let Ok(Output { status, stderr, .. }) = verify else {
        return missing("systemd-analyze", "systemd brings it, and looks at the unit by it");
    };
    let said = String::from_utf8_lossy(&stderr);
    let ours: Vec<_> = said.lines().filter(|line| line.contains("ranktree.service")).collect();
    assert!(ours.is_empty(), "{status}: {ours:#?}");
}

/// A file has the keys of every subcommand, and each takes its own.
#[test]
fn one_file_serves_all_subcommands() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let scores = folder.path().join("scores.csv");
    fs::write(&scores, "member,score\nm,1.5\n").expect("it can be written");
    let scores = scores.to_str().expect("it is UTF-8");
    let path = file(
        folder.path(),
        "listen = \"127.0.0.1:1\"\nduration = \"5s\"\nboard = \"arena\"\nscale = 10\nurl = \"http://127.0.0.1:1\"\n",
    );
    let checked = ranktree(&["config", "check", "--config", &path], &[]);
    assert_eq!(checked.code, Some(0), "{}{}", checked.out, checked.err);
    let imported = ranktree(&["import", scores, "--dry-run", "--config", &path], &[]);
    assert!(imported.code == Some(0) && imported.out.contains("boards        arena"), "{}", imported.err);
    for arguments in [&["export", "--board", "b"][..], &["snapshot", "--to", "/no/such/folder"]] {
        let said = ranktree(&[arguments, &["--config", &path]].concat(), &[]);
        assert_eq!(said.code, Some(2), "nobody is there: {}", said.err);
        assert!(!said.err.contains("no setting") && !said.err.contains("unexpected"), "{}", said.err);
    }
    let path = file(folder.path(), "load_duration = \"5s\"\n");
    let said = ranktree(&["load", "--config", &path], &[]);
    assert!(said.err.contains("no setting load_duration; did you mean duration?"), "{}", said.err);
}

#[test]
fn mistakes_in_the_environment_are_told_by_the_variable() {
    for (variable, value, expect) in [
        ("RANKTREE_SHARDS", "abc", "RANKTREE_SHARDS has an invalid value 'abc': a whole number is expected"),
        ("RANKTREE_LISTEN", "", "RANKTREE_LISTEN has an invalid value ''"),
        (
            "RANKTREE_LOG",
            "debgu",
            "RANKTREE_LOG: \"debgu\" is not valid: it must be a level (off, error, warn",
        ),
        ("RANKTREE_LOG", "info,ranktree::queue=loud", "\"ranktree::queue=loud\" is not valid"),
    ] {
        let said = ranktree(&["config", "check"], &[(variable, value)]);
        assert!(said.code == Some(2) && said.err.contains(expect), "{variable}={value}: {}", said.err);
    }
    let said = ranktree(&["config", "check", "--shards", "x"], &[("RANKTREE_SHARDS", "abc")]);
    assert!(!said.err.contains("RANKTREE_SHARDS"), "the flag is the one that is wrong: {}", said.err);
    let said = ranktree(&["config", "check"], &[("RANKTREE_SHARD", "3")]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("RANKTREE_SHARD is not read; did you mean RANKTREE_SHARDS?"), "{}", said.err);
}

#[test]
fn an_empty_log_level_is_none() {
    let node = Node::environment(&[("RANKTREE_LOG", "")]).start();
    assert!(node.log().contains("INFO"), "{}", node.log());
}

#[test]
fn arguments_that_there_are_not_are_told_what_was_meant() {
    for (arguments, expect) in [
        (&["verify", "./data"][..], "--data-dir ./data"),
        (&["restore", "./snapshot"], "--from ./snapshot"),
        (&["serve", "--port", "80"], "--listen 127.0.0.1:8080"),
        (&["serve", "--port=80"], "--listen 127.0.0.1:8080"),
    ] {
        let said = ranktree(arguments, &[]);
        assert!(said.code == Some(2) && said.err.contains(expect), "{arguments:?}: {}", said.err);
    }
}

#[test]
fn a_check_finds_a_data_directory_that_a_start_could_not_make() {
    let said = ranktree(&["config", "check", "--data-dir", "/proc/ranktree"], &[]);
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    assert!(said.out.contains("data_dir = /proc/ranktree: it cannot be created in /proc"), "{}", said.out);
}

/// As a process group gets it when its parent passes the signal on.
#[test]
fn a_signal_that_comes_twice_at_once_is_one() {
    let mut node = Node::start();
    let twice = format!("kill -TERM {0}; kill -TERM {0}", node.pid());
    assert!(std::process::Command::new("sh").arg("-c").arg(twice).status().expect("a shell").success());
    assert!(node.wait().success(), "{}", node.log());
}
