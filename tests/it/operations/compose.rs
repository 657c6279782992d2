//! Starts the services of docker-compose.yml without containers: with the same secrets, configurations,
//! commands, flags and variables, but with addresses and folders of this machine.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::command::command;
use crate::support::compose::{Compose, Service};
use crate::support::nats::wait_until;
use crate::support::nats_server::free_port;
use crate::support::node::Node;

/// The folders and addresses here that replace those in containers.
struct Here {
    folder: PathBuf,
    nats: String,
    ranktree: String,
}

impl Here {
    fn place(&self, text: &str) -> String {
        let folder = |name: &str| format!("{}/{name}/", self.folder.display());
        text.replace("/secrets/", &folder("secrets"))
            .replace("/etc/nats/", &folder("nats"))
            .replace("nats:4222", &self.nats)
            .replace("ranktree:8080", &self.ranktree)
    }

    fn words(&self, words: &[&str]) -> Vec<String> {
        words.iter().map(|word| self.place(word)).collect()
    }

    fn environment<'a>(&self, service: &Service<'a>) -> Vec<(&'a str, String)> {
        service.environment().into_iter().map(|(name, value)| (name, self.place(value))).collect()
    }

    fn secrets(&self) -> PathBuf {
        self.folder.join("secrets")
    }

    /// Runs the script that makes and shows secrets, and returns its output.
    fn run_script(&self, what: &str) -> String {
        let bin = self.folder.join("bin");
        if !bin.exists() {
            fs::create_dir(&bin).expect("it can be made");
            symlink(command().get_program(), bin.join("ranktree")).expect("it can be linked");
        }
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("there is a PATH"));
        let mut script = Command::new("sh");
        script.arg(root().join("deploy/compose/secrets.sh")).arg(what).arg(self.secrets()).env("PATH", path);
        let output = script.output().expect("there is a shell");
        assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("it is text").trim_end().to_owned()
    }

    fn secret(&self, path: &str) -> String {
        fs::read_to_string(self.secrets().join(path)).expect("it was made").trim_end().to_owned()
    }

    /// Starts nats-server as its container does, but for addresses and the folder of its streams.
    fn start_nats(&self, service: &Service<'_>) -> Ended {
        let folder = self.folder.join("nats");
        fs::create_dir(&folder).expect("it can be made");
        let shipped = |name: &str| {
            fs::read_to_string(root().join("deploy/nats").join(name)).expect("it is in the repository")
        };
        let mut config = shipped("nats-server.conf");
        for (from, to) in [
            ("listen: 0.0.0.0:4222", format!("listen: \"{}\"", self.nats)),
            ("http: 127.0.0.1:8222", format!("http: \"127.0.0.1:{}\"", free_port())),
            ("store_dir: /data", format!("store_dir: \"{}\"", folder.join("data").display())),
        ] {
            assert_eq!(config.matches(from).count(), 1, "{from}");
            config = config.replace(from, &to);
        }
        fs::write(folder.join("nats-server.conf"), config).expect("it can be written");
        fs::write(folder.join("ranktree.conf"), shipped("ranktree.conf")).expect("it can be written");
        let words = self.words(&service.list("entrypoint"));
        let path = format!(
            "{}:{}",
            root().join(".venv/bin").display(),
            std::env::var("PATH").expect("there is a PATH")
        );
        let mut server = Command::new(&words[0]);
        server.args(&words[1..]).env("PATH", path).stdin(Stdio::null()).stdout(Stdio::null());
        server.stderr(fs::File::create(folder.join("log")).expect("it can be written"));
        let mut server = Ended(server.spawn().expect("there is a shell"));
        wait_until("nats-server is ready", || {
            let ended = server.0.try_wait().is_ok_and(|end| end.is_some());
            let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
            assert!(!ended, "nats-server did not start; `make nats` installs it:\n{log}");
            log.contains("Server is ready") && TcpStream::connect(&self.nats).is_ok()
        });
        server
    }
}

/// A process that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs the load generator to its end, and returns its exit code, summary and standard error.
fn load(arguments: &[String]) -> (Option<i32>, Value, String) {
    let output = command().args(arguments).arg("--json").output().expect("the binary can be started");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default(), words)
}

#[test]
fn compose_services_work_together_and_require_credentials() {
    let compose = Compose::shipped();
    let services = compose.services();
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let nats = format!("127.0.0.1:{}", free_port());
    let folder = temporary.path().to_owned();
    let mut here = Here { folder, nats, ranktree: String::new() };
    fs::create_dir(here.secrets()).expect("it can be made");
    here.run_script(services["secrets"].list("command")[0]);

    let _nats = here.start_nats(&services["nats"]);
    let node = &services["ranktree"];
    let environment = here.environment(node);
    let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    // The service may listen on the image's address without --insecure, because it has tokens.
    let data = temporary.path().join("data");
    let mut check = command();
    check.args(["config", "check"]).envs(environment.iter().copied());
    check.env("RANKTREE_LISTEN", "0.0.0.0:8080").env("RANKTREE_DATA_DIR", &data);
    let checked = check.output().expect("the binary can be started");
    assert!(checked.status.success(), "{checked:?}");
    assert_eq!(node.list("command"), ["serve"]);
    let service = Node::at(&data).shards(3).environment(&environment).start();
    service.address().clone_into(&mut here.ranktree);
    let stranger = service.client();
    wait_until("the node is ready", || stranger.get("/readyz").0 == 200);

    let words = here.words(&services["load"].list("command"));
    let words: Vec<_> = words.iter().map(|word| word.replace("--duration=24h", "--duration=2s")).collect();
    assert!(words.contains(&"--duration=2s".to_owned()), "{words:?}");
    let (code, summary, said) = load(&words);
    assert_eq!((code, &summary["errors"]), (Some(0), &json!([])), "{summary} {said}");
    assert!(summary["reads"]["requests"].as_u64() > Some(0), "{summary}");
    assert_eq!(summary["reads"]["failed"], 0, "{summary}");

    let operator = service.client().with_token(&here.run_script("token"));
    let boards = operator.get("/v1/boards").1;
    assert!(boards.to_string().contains("\"load0\""), "what was published is ranked: {boards}");
    assert_eq!(operator.put("/v1/boards/arena", &json!({})).0, 201);
    for (path, status) in [("/v1/boards", 401), ("/metrics", 401), ("/readyz", 200)] {
        assert_eq!(stranger.get(path).0, status, "{path}");
    }
    for name in ["prometheus", "load"] {
        let reader: Client = service.client().with_token(&here.secret(&format!("{name}/token")));
        assert_eq!(reader.get("/v1/boards").0, 200, "{name}");
        assert_eq!(reader.put("/v1/boards/another", &json!({})).0, 403, "{name}");
    }

    let publish = |login: &str| {
        let url = format!("--nats=nats://{login}{}", here.nats);
        load(&["load".to_owned(), url, "--shards=3".to_owned(), "--jobs=10".to_owned()])
    };
    let (code, summary, said) = publish(&format!("{}@", here.run_script("nats")));
    assert_eq!((code, &summary["writes"]["jobs"]), (Some(0), &json!(10)), "{said}");
    for login in ["", "game:guess@", "node:guess@"] {
        let (code, _, said) = publish(login);
        assert!(code.is_some_and(|code| code > 0) && !said.is_empty(), "{login:?}: {code:?} {said}");
    }
}

#[test]
fn each_container_has_a_secret_of_its_own_that_is_made_once() {
    let compose = Compose::shipped();
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let folder = temporary.path().to_owned();
    let here = Here { folder, nats: String::new(), ranktree: String::new() };
    fs::create_dir(here.secrets()).expect("it can be made");
    here.run_script("make");
    let all = ["operator/token", "prometheus/token", "load/token", "nats/passwords", "ranktree/tokens.toml"];
    let made = all.map(|path| here.secret(path));
    here.run_script("make");
    assert_eq!(all.map(|path| here.secret(path)), made, "they stay");
    assert_eq!(here.run_script("token"), made[0]);
    for (index, secret) in made.iter().enumerate() {
        assert!(secret.len() > 64 && !made[..index].contains(secret), "{}", all[index]);
    }
    assert!(!made[4].contains("rkt_"), "the node has hashes only");

    // A secret whose creation was interrupted is made again.
    fs::remove_file(here.secrets().join("made")).expect("it is there");
    here.run_script("make");
    assert!(all.iter().zip(&made).all(|(path, old)| here.secret(path) != *old));

    let is_root = fs::metadata(temporary.path()).expect("it is there").uid() == 0;
    for name in ["ranktree", "nats", "prometheus", "load"] {
        let metadata = fs::metadata(here.secrets().join(name)).expect("it is there");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o500, "{name}");
        // The user of the image, for a service that names none.
        let services = compose.services();
        let user = services[name].value("user").unwrap_or("65532:65532");
        let owner = format!("{}:{}", metadata.uid(), metadata.gid());
        assert!(!is_root || owner == user, "{name} runs as {user} and its secrets are {owner}'s");
    }
}
