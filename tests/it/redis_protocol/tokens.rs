//! What tokens allow over Redis' protocol: scopes, and boards by their prefixes, for every command.

use std::fs;

use redis::Value;

use crate::support::node::Node;
use crate::support::redis::{ask, connect, listening_in, socket_in};
use crate::support::tokens::new_token;

#[test]
fn tokens_are_passwords_whose_scopes_and_prefixes_hold_for_every_command() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let token =
        |scope: &str, more: &[&str]| new_token(&[&["--scope", scope, "--name", scope], more].concat());
    let (read, read_lines) = token("read", &[]);
    let (write, write_lines) = token("write", &["--board-prefix", "eu-"]);
    let (admin, admin_lines) = token("admin", &[]);
    let eu_admin = ["--scope", "admin", "--name", "eu-admin", "--board-prefix", "eu-"];
    let (eu_admin, eu_lines) = new_token(&eu_admin);
    let file = folder.path().join("tokens.toml");
    fs::write(&file, [read_lines, write_lines, admin_lines, eu_lines].concat()).expect("it can be written");
    let flags = ["--tokens", file.to_str().expect("UTF-8")];
    let node = listening_in(folder.path(), Node::flags(&flags)).start();
    let with = |secret: &str| {
        let mut connection = connect(&socket_in(folder.path()));
        assert_eq!(ask(&mut connection, &["AUTH", "anybody", secret]), "OK");
        connection
    };

    let mut nobody = connect(&socket_in(folder.path()));
    for words in [&["PING"][..], &["ZCARD", "eu-arena"], &["COMMAND"], &["INFO"], &["HELLO", "3"]] {
        let said = ask(&mut nobody, words);
        assert!(said.contains("NOAUTH") || said.contains("Authentication required"), "{words:?}: {said}");
    }
    let said = ask(&mut nobody, &["AUTH", "wrong"]);
    assert!(said.contains("invalid username-password pair"), "{said}");
    assert!(node.log().contains("a token of a client of Redis' protocol was refused"));
    let refused = node.metric_for(&admin, "ranktree_redis_command_errors_total{command=\"auth\"}");
    assert_eq!(refused, Some(1.0));
    let hello = ask(&mut nobody, &["HELLO", "3", "AUTH", "x", &read]);
    assert!(hello.contains(r#""proto": 3"#), "{hello}");
    assert_eq!(ask(&mut nobody, &["ZCARD", "arena"]), "0");

    let (mut reader, mut writer, mut owner) = (with(&read), with(&write), with(&admin));
    assert_eq!(ask(&mut owner, &["ZADD", "us-arena", "1", "a"]), "1");
    assert_eq!(ask(&mut writer, &["ZADD", "eu-arena", "1", "a"]), "1");
    assert!(ask(&mut reader, &["ZADD", "us-arena", "1", "a"]).contains("needs a token of the scope write"));
    assert!(ask(&mut writer, &["DEL", "eu-arena"]).contains("needs a token of the scope admin"));
    // What a confined token is told of boards is of its own.
    assert_eq!(ask(&mut writer, &["KEYS", "*"]), r#"["eu-arena"]"#);
    assert_eq!(ask(&mut writer, &["DBSIZE"]), "1");
    assert_eq!(ask(&mut writer, &["SCAN", "0"]), r#"["0" ["eu-arena"]]"#);
    // Of other clients it is told nothing, whatever its scope.
    let mut eu_owner = with(&eu_admin);
    for confined in [&mut writer, &mut eu_owner] {
        assert_eq!(ask(confined, &["CLIENT", "LIST"]).matches("id=").count(), 1);
        let info = ask(confined, &["INFO", "everything"]);
        assert!(info.contains("redis_version") && info.contains("db0:keys=1,"), "{info}");
        for section in ["connected_clients", "total_commands_processed", "cmdstat_"] {
            assert!(!info.contains(section), "{info}");
        }
    }
    assert!(ask(&mut owner, &["CLIENT", "LIST"]).matches("id=").count() > 3);
    assert!(ask(&mut reader, &["INFO", "everything"]).contains("cmdstat_zadd"));
    assert_eq!(ask(&mut reader, &["CLIENT", "LIST"]).matches("id=").count(), 1);

    // Every command that has keys is refused another board, wherever the key stands.
    let commands: Vec<Value> = redis::cmd("COMMAND").query(&mut writer).expect("a list");
    let mut tried = 0;
    for command in &commands {
        let Value::Array(command) = command else { panic!("{command:?}") };
        let [Value::BulkString(name), Value::Int(arity), _, Value::Int(first), Value::Int(last), ..] =
            &command[..]
        else {
            panic!("{command:?}")
        };
        let name = String::from_utf8_lossy(name).into_owned();
        if *first == 0 || name == "del" || name == "unlink" {
            continue;
        }
        tried += 1;
        let mut keys = vec!["us-arena"];
        if *last < 0 || last > first {
            keys.insert(0, "eu-arena");
        }
        let words = words_of(&name, *arity, &keys);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let needs_admin = name.contains("expire") && *arity < 0 || name == "persist";
        let confined = if needs_admin { &mut eu_owner } else { &mut writer };
        let said = ask(confined, &words);
        assert!(said.contains("No permissions to access a key"), "{words:?}: {said}");
        let own: Vec<&str> =
            words.iter().map(|word| if *word == "us-arena" { "eu-arena" } else { word }).collect();
        let said = ask(confined, &own);
        assert!(!said.contains("error"), "{own:?}: {said}");
    }
    assert!(tried > 15, "{tried}");
    // Of these, `COMMAND` does not say where the keys are.
    for words in [
        &["ZMPOP", "2", "eu-arena", "us-arena", "MIN"][..],
        &["ZMPOP", "2", "us-arena", "eu-arena", "MAX"],
        &["ZUNIONSTORE", "eu-arena", "2", "eu-arena", "us-arena"],
        &["ZRANGESTORE", "us-arena", "eu-arena", "0", "1"],
    ] {
        let said = ask(&mut writer, words);
        assert!(said.contains("No permissions to access a key"), "{words:?}: {said}");
    }
    assert_eq!(ask(&mut owner, &["ZSCORE", "us-arena", "a"]), r#""1""#);

    // A token that is taken away ends what its connections may do.
    let (_, other) = token("read", &[]);
    fs::write(&file, other).expect("it can be written");
    crate::support::nats::wait_until("the token is not in force any more", || {
        ask(&mut writer, &["ZCARD", "eu-arena"]).contains("uthentication required")
    });
}

#[test]
fn what_is_taken_away_is_in_the_audit_log_with_whose_token_it_was() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (writer, write_lines) = new_token(&["--scope", "write", "--name", "game", "--board-prefix", "eu-"]);
    let (owner, admin_lines) = new_token(&["--scope", "admin", "--name", "ops"]);
    let file = folder.path().join("tokens.toml");
    fs::write(&file, [write_lines, admin_lines].concat()).expect("it can be written");
    let flags = ["--tokens", file.to_str().expect("UTF-8")];
    let node = listening_in(folder.path(), Node::flags(&flags)).start();
    let with = |secret: &str| {
        let mut connection = connect(&socket_in(folder.path()));
        assert_eq!(ask(&mut connection, &["AUTH", secret]), "OK");
        connection
    };
    let (mut writer, mut owner) = (with(&writer), with(&owner));
    assert_eq!(ask(&mut writer, &["ZADD", "eu-a", "1", "a", "2", "b", "3", "c", "4", "d e", "5", "e"]), "5");
    assert_eq!(ask(&mut writer, &["ZRANGE", "eu-a", "0", "0"]), r#"["a"]"#);
    assert!(ask(&mut writer, &["ZREM", "us-a", "refused"]).contains("No permissions"));
    assert!(ask(&mut writer, &["DEL", "eu-a"]).contains("needs a token of the scope admin"));
    assert_eq!(ask(&mut writer, &["ZREM", "eu-a", "a", "d e"]), "2");
    assert_eq!(ask(&mut writer, &["ZPOPMIN", "eu-a"]), r#"["b" "2"]"#);
    assert_eq!(ask(&mut writer, &["ZREMRANGEBYRANK", "eu-a", "0", "0"]), "1");
    assert_eq!(ask(&mut writer, &["ZUNIONSTORE", "eu-b", "1", "eu-a"]), "1");
    for words in [&["MULTI"][..], &["ZREM", "eu-b", "e"], &["EXEC"]] {
        ask(&mut writer, words);
    }
    assert_eq!(ask(&mut owner, &["EXPIRE", "eu-a", "100000"]), "1");
    assert_eq!(ask(&mut owner, &["DEL", "eu-a"]), "1");
    let log = || node.log().replace("\\\"", "\"");
    let client = format!("{}:0", socket_in(folder.path()).display());
    let of = |token: &str, command: &str, arguments: &str| {
        format!("token=\"{token}\" client=\"{client}\" command=\"{command}\" arguments=\"{arguments}\"")
    };
    crate::support::nats::wait_until("the last is in the log", || {
        log().contains(&of("ops", "del", "\"eu-a\""))
    });
    let log = log();
    for line in [
        of("game", "zrem", "\"eu-a\" \"a\" \"d e\""),
        of("game", "zpopmin", "\"eu-a\""),
        of("game", "zremrangebyrank", "\"eu-a\" \"0\" \"0\""),
        of("game", "zunionstore", "\"eu-b\" \"1\" \"eu-a\""),
        of("game", "zrem", "\"eu-b\" \"e\""),
        of("ops", "expire", "\"eu-a\" \"100000\""),
    ] {
        assert!(log.contains(&line), "{line} in {log}");
    }
    let lines = log.matches("takes entries or a board away was sent").count();
    assert_eq!(lines, 7, "what was refused, and what takes nothing away, is not: {log}");
}

/// A good command of a name and keys.
fn words_of(name: &str, arity: i64, keys: &[&str]) -> Vec<String> {
    let more: &[&str] = match name {
        "zadd" | "zincrby" => &["1", "a"],
        "zrangebylex" | "zrevrangebylex" | "zlexcount" | "zremrangebylex" => &["-", "+"],
        "zremrangebyrank" | "zremrangebyscore" => &["5", "7"],
        _ if name.starts_with("zr") && arity == -4 => &["0", "1"],
        "zcount" | "zrangestore" => &["0", "1"],
        "zunionstore" | "zinterstore" | "zdiffstore" => &["1", "eu-arena"],
        "zscan" => &["0"],
        "expire" | "pexpire" | "expireat" | "pexpireat" => &["4102444800"],
        _ if arity.abs() == 3 => &["a"],
        _ => &[],
    };
    let subcommand: &[&str] = match name {
        "object" => &["ENCODING"],
        "memory" => &["USAGE"],
        _ => &[],
    };
    [&[name], subcommand, keys, more].concat().into_iter().map(str::to_owned).collect()
}
