//! Runs the publishers that `docs/nats.md` shows, unchanged.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

use crate::support::client::entry_path;
use crate::support::nats::Nats;
use crate::support::node::Node;
use crate::support::tools::tool;

/// The contract's members and their hashes.
const VECTORS: [(&str, u32); 4] =
    [("p42", 2_517_926_281), ("alice", 2_267_157_479), ("日本", 2_670_128_721), ("", 2_166_136_261)];
/// More shards than there are hashes, so that the shard's number is the hash itself.
const HASHES: u64 = 1 << 32;

/// The only block of a language.
fn block(language: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/nats.md");
    let text = std::fs::read_to_string(path).expect("it comes with the source");
    let blocks: Vec<_> = text.split(&format!("\n```{language}\n")).skip(1).collect();
    let [block] = blocks.as_slice() else { panic!("{} blocks of {language}", blocks.len()) };
    block.split_once("\n```").expect("it ends").0.to_owned()
}

fn run(program: impl AsRef<Path>, arguments: &[&str]) -> String {
    let output = Command::new(program.as_ref()).args(arguments).output();
    let Output { status, stdout, stderr } = output.expect("`make nats` installs what is needed");
    assert!(status.success(), "{status}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).expect("it is text").trim_end().to_owned()
}

fn python(code: &str, arguments: &[&str]) -> String {
    run(tool("python"), &[&["-c", code], arguments].concat())
}

#[test]
fn the_publisher_in_python_publishes_once_and_is_ranked() {
    let nats = Nats::start();
    let url = nats.url();
    let mut service = Node::with_nats(&nats).shards(3).start();
    let client = service.client();
    let (status, answer) = client.put("/v1/boards/arena", &json!({}));
    assert_eq!(status, 201, "{answer}");
    for (member, score) in [("above", 2_000), ("below", 1_000)] {
        let path = format!("{}?wait=applied", entry_path("arena", member));
        let (status, answer) = client.put(&path, &json!({ "score": score }));
        assert_eq!(status, 200, "{answer}");
    }
    let code = block("python");
    let lines = code.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 11, "{lines} lines");
    let here = code.replace("nats://127.0.0.1:4222", &url);
    assert_ne!(here, code, "it names the usual address");
    let token = python(&here, &[]);
    // Publishes again, as after a lost answer. With the same id it counts as the same message.
    assert_eq!(python(&here, &[]), token);
    let (status, entry) = client.get(&format!("{}?after={token}", entry_path("arena", "p42")));
    assert_eq!((status, &entry["score"], &entry["rank"]), (200, &json!(1_200), &json!(2)), "{entry}");
    assert!(service.terminate().success());
}

#[test]
fn the_shard_functions_of_the_documents_match_the_contract() {
    let code = block("python");
    let (function, _) = code.split_once("async def").expect("the function comes first");
    let call = format!("{function}\nimport sys\nprint(shard(sys.argv[1], int(sys.argv[2])))");
    let script = block("sh");
    let (function, _) = script.split_once("nats pub").expect("the function comes first");
    let shell = format!("{function}\nshard \"$@\"");
    for (member, hash) in VECTORS {
        for shards in [HASHES, 3, 64] {
            let expected = (u64::from(hash) % shards).to_string();
            let shards = shards.to_string();
            assert_eq!(python(&call, &[member, &shards]), expected, "{member:?} of {shards} in Python");
            let found = run("sh", &["-c", &shell, "sh", member, &shards]);
            assert_eq!(found, expected, "{member:?} of {shards} in the shell");
        }
    }
}
