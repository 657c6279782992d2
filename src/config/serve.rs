//! The service's settings, all of them: as they are given, and decided and checked.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::config::{
    BoardArgs, ConfigError, DataArgs, FileArgs, HttpArgs, HttpConfig, NatsArgs, RedisListenArgs, StorageArgs,
    TracesArgs,
};
use crate::queue::nats;
use crate::redis::ListenAddress;
use crate::traces;
use crate::types::{MAX_SHARDS, NodeName, ShardSet};

#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub file: FileArgs,
    #[command(flatten)]
    pub data: DataArgs,
    /// Shards to spread members over, 1 to 64; fixed once the streams or the data directory exist. The
    /// default is 1, or with --own the number that the streams have
    #[arg(long, env = "RANKTREE_SHARDS", value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_SHARDS)))]
    pub shards: Option<u16>,
    /// The shards that this node owns: numbers and ranges joined by commas, such as 0,2-3, or none. Other
    /// nodes of the same streams own the others; several may own the same. Needs --nats. The default is every
    /// shard
    #[arg(long, env = "RANKTREE_OWN", value_name = "SHARDS")]
    pub own: Option<String>,
    /// This node's name, by which the other nodes of the same streams know it. The default is the host's name
    /// and the port. Give it if either changes from one start to the next
    #[arg(long, env = "RANKTREE_NODE", value_name = "NAME")]
    pub node: Option<String>,
    #[command(flatten)]
    pub boards: BoardArgs,
    #[command(flatten, next_help_heading = "HTTP")]
    pub http: HttpArgs,
    #[command(flatten, next_help_heading = "Redis")]
    pub redis: RedisListenArgs,
    #[command(flatten, next_help_heading = "NATS")]
    pub nats: NatsArgs,
    /// Resume this shard although its stream does not continue where the shard stopped. Missing messages are
    /// skipped, and what is new in the stream is applied; if the stream was created again, that is all of it.
    /// If the shard has halted at a command that this version does not know, the command is rejected instead.
    /// Where another node has the data of the stream, it is refused: move this node's directory of the shard
    /// away, and the shard gets a copy.
    /// Holds for this start, and for one gap or command. May be given several times, for several shards
    #[arg(long, value_name = "SHARD", help_heading = "NATS")]
    pub accept_gap: Vec<u16>,
    /// Go on with this shard's data although another node that owns the shard has applied the same messages
    /// with other results. Only where these data are right: give the other node a copy of them. Holds for
    /// this start. May be given several times, for several shards
    #[arg(long, value_name = "SHARD", help_heading = "NATS")]
    pub accept_diverged: Vec<u16>,
    /// Take this shard's data as they are, although they are an older copy, or another line of history, than
    /// what the data directory had there. What was written since is lost. Only data of the same service are
    /// taken. Holds for this start. May be given several times, for several shards
    #[arg(long, value_name = "SHARD", help_heading = "Storage")]
    pub adopt: Vec<u16>,
    #[command(flatten, next_help_heading = "Storage")]
    pub storage: StorageArgs,
    #[command(flatten, next_help_heading = "Traces")]
    pub traces: TracesArgs,
}

/// A service's settings, decided and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeConfig {
    pub http: HttpConfig,
    /// Where Redis' protocol is listened for; `None`: nowhere.
    pub redis_listen: Option<ListenAddress>,
    pub data_dir: PathBuf,
    /// 1 to 64. `None`: 1 for a node that owns every shard; for others, what the streams say.
    pub shards: Option<u16>,
    /// `None`: every shard.
    pub own: Option<ShardSet>,
    /// `None`: the host's name and the port.
    pub node: Option<NodeName>,
    /// Shards whose data are taken as they are, at this start.
    pub adopt: Vec<u16>,
    pub auto_create: bool,
    pub job_ids_keep: Duration,
    /// Where jobs come from; `None` for the embedded queue.
    pub nats: Option<nats::Settings>,
    pub cache_bytes: usize,
    pub checkpoint_interval: Duration,
    pub checkpoint_changes: u64,
    /// Memory that is taken at the start and kept.
    pub touch_mib: usize,
    /// Where traces are sent; `None`: nowhere.
    pub traces: Option<traces::Settings>,
}

/// More than any machine has: 16 TiB.
const CACHE_MIB_MAX: usize = 1 << 24;

impl ServeConfig {
    /// Checks what one setting alone does not say.
    pub fn resolve(args: ServeArgs) -> Result<Self, ConfigError> {
        let ServeArgs {
            file: _,
            http,
            data,
            shards,
            own,
            node,
            boards,
            redis,
            nats,
            accept_gap,
            accept_diverged,
            adopt,
            storage,
            traces,
        } = args;
        let own = own.as_deref().map(ShardSet::parse).transpose().map_err(ConfigError::Own)?;
        // Otherwise the streams say how many there are.
        let known = shards.or_else(|| own.is_none().then_some(1));
        let beyond = accept_gap
            .iter()
            .filter_map(|shard| Some((shard, known?)))
            .find(|(shard, shards)| *shard >= shards);
        if let Some((shard, shards)) = beyond {
            return Err(ConfigError::AcceptGapShard(*shard, shards));
        }
        let beyond =
            adopt.iter().filter_map(|shard| Some((shard, known?))).find(|(shard, shards)| *shard >= shards);
        if let Some((shard, shards)) = beyond {
            return Err(ConfigError::AdoptShard(*shard, shards));
        }
        let accepts_gap = !accept_gap.is_empty();
        let nats = nats.resolve(accept_gap, accept_diverged)?;
        if let Some(own) = &own {
            if nats.is_none() {
                return Err(ConfigError::OwnWithoutNats);
            }
            let beyond = own.highest().zip(shards).filter(|(own, shards)| own.0 >= *shards);
            if let Some((own, shards)) = beyond {
                return Err(ConfigError::OwnBeyondShards { own, shards });
            }
        }
        if storage.cache_mib > CACHE_MIB_MAX {
            return Err(ConfigError::Cache { got: storage.cache_mib, max: CACHE_MIB_MAX });
        }
        if accepts_gap && nats.is_none() {
            return Err(ConfigError::AcceptGapWithoutNats);
        }
        let http = http.resolve()?;
        Ok(Self {
            redis_listen: redis.resolve(&http)?,
            http,
            data_dir: data.data_dir,
            shards,
            own,
            node: node.as_deref().map(read_node_name).transpose()?,
            adopt,
            auto_create: !boards.no_auto_create,
            job_ids_keep: boards.job_ids_keep,
            nats,
            cache_bytes: storage.cache_mib << 20,
            checkpoint_interval: Duration::from_secs(storage.checkpoint_seconds.max(1)),
            checkpoint_changes: storage.checkpoint_changes,
            touch_mib: storage.touch_memory,
            traces: traces.resolve()?,
        })
    }

    /// As a command line of `serve` with these arguments decides it.
    ///
    /// # Errors
    /// When one is not right.
    #[cfg(test)]
    pub fn of(arguments: &[&str]) -> Result<Self, Box<dyn std::error::Error>> {
        use clap::Parser;

        #[derive(Debug, Parser)]
        struct Serve {
            #[command(flatten)]
            args: ServeArgs,
        }
        let arguments = ["serve"].iter().chain(arguments).map(std::ffi::OsString::from);
        let (serve, _) = crate::config::load_from::<Serve>(arguments)?;
        Ok(Self::resolve(serve.args)?)
    }
}

fn read_node_name(text: &str) -> Result<NodeName, ConfigError> {
    NodeName::new(text).map_err(|malformed| ConfigError::Node(malformed.got(text)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::http::Origin;

    fn write(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), text).expect("it can be written");
        file
    }

    fn with_file(text: &str, arguments: &[&str]) -> Result<ServeConfig, String> {
        let file = write(text);
        let path = file.path().to_str().expect("it is UTF-8");
        ServeConfig::of(&[&["--config", path], arguments].concat())
            .map_err(|error| error.to_string().replace(path, "FILE"))
    }

    #[test]
    fn flags_beat_the_file_and_the_file_beats_the_defaults() {
        let config = with_file("shards = 4\ndata_dir = \"/srv/ranks\"\n", &["--shards", "2"]);
        let config = config.expect("good settings");
        assert_eq!((config.shards, config.data_dir.as_path()), (Some(2), Path::new("/srv/ranks")));
        assert_eq!(config.cache_bytes, 256 << 20);
        assert_eq!(with_file("checkpoint_changes = 1_000", &[]).expect("good").checkpoint_changes, 1_000);
    }

    #[test]
    fn false_flag_overrides_true_in_file() {
        for (given, auto_create) in
            [(None, false), (Some("--no-auto-create=false"), true), (Some("--no-auto-create"), false)]
        {
            let config = with_file("no_auto_create = true", given.as_slice()).expect("good settings");
            assert_eq!(config.auto_create, auto_create);
        }
        assert!(ServeConfig::of(&[]).expect("good settings").auto_create);
    }

    #[test]
    fn origins_that_are_allowed_are_named_one_by_one() {
        let origins = |texts: &[&str]| -> Vec<Origin> {
            texts.iter().map(|text| text.parse().expect("an origin")).collect()
        };
        assert_eq!(ServeConfig::of(&[]).expect("good settings").http.allow_origin, origins(&[]));
        let given = ["--allow-origin", "https://a.example", "--allow-origin", "http://b.example:81,x://c"];
        let expect = origins(&["https://a.example", "http://b.example:81", "x://c"]);
        assert_eq!(ServeConfig::of(&given).expect("good settings").http.allow_origin, expect);
        let in_file = "allow_origin = [\"https://a.example\", \"http://b.example:81\", \"x://c\"]";
        assert_eq!(with_file(in_file, &[]).expect("good settings").http.allow_origin, expect);
        for all in ["*", "null", "a.example", "https://a.example/"] {
            let error = ServeConfig::of(&["--allow-origin", all]).expect_err("it is no origin").to_string();
            assert!(error.contains("such as https://game.example"), "{error}");
        }
    }

    #[test]
    fn exposed_address_without_tokens_needs_insecure() {
        let error = ServeConfig::of(&["--listen", "0.0.0.0:0"]).expect_err("others reach it").to_string();
        assert!(error.contains("pass --tokens FILE") && error.contains("pass --insecure"), "{error}");
        assert!(ServeConfig::of(&["--listen", "0.0.0.0:0", "--insecure"]).is_ok());
        assert!(with_file("insecure = true", &["--listen", "0.0.0.0:0"]).is_ok());
        let guarded =
            with_file("tokens = \"t.toml\"", &["--listen", "0.0.0.0:0"]).expect("it is guarded").http;
        assert!(guarded.sends_tokens_in_the_clear());
        let tls = ["--listen", "0.0.0.0:0", "--tokens", "t", "--tls-cert", "c", "--tls-key", "k"];
        assert!(!ServeConfig::of(&tls).expect("it is guarded").http.sends_tokens_in_the_clear());
        assert!(ServeConfig::of(&["--tls-cert", "c"]).is_err(), "a certificate needs its key");
        assert!(ServeConfig::of(&["--tokens", "t", "--token-list", "x"]).is_err(), "which of them?");
        assert!(ServeConfig::of(&["--header-seconds", "0"]).is_err());
        let error = ServeConfig::of(&["--shards", "65"]).expect_err("too many").to_string();
        assert!(error.contains("'65' for '--shards <N>': it must be 1 to 64"), "{error}");
        let error =
            ServeConfig::of(&["--cache-mib", "18446744073709551615"]).expect_err("too much").to_string();
        assert_eq!(error, "--cache-mib must be at most 16777216; got 18446744073709551615");
        for (nats, expect) in
            [(&[][..], "there is no such shard"), (&["--nats", "nats://127.0.0.1:1"][..], "no such shard")]
        {
            let error =
                ServeConfig::of(&[&["--accept-gap", "5"], nats].concat()).expect_err("no shard").to_string();
            assert!(error.contains(expect), "{error}");
        }
        let error = ServeConfig::of(&["--accept-gap", "0"]).expect_err("no streams").to_string();
        assert!(error.contains("none without --nats"), "{error}");
        assert!(ServeConfig::of(&["--accept-gap", "0", "--nats", "nats://127.0.0.1:1"]).is_ok());
        assert!(ServeConfig::of(&["--prefix", "a.b"]).is_err());
        let error = ServeConfig::of(&["--node", "a node"]).expect_err("no name").to_string();
        assert!(
            error.starts_with("--node: a node's name must be") && error.ends_with("\"a node\""),
            "{error}"
        );
        assert!(ServeConfig::of(&["--node", "eu-1.ranks:8080"]).expect("a good name").node.is_some());
    }

    #[test]
    fn shards_that_a_node_owns_are_a_list_and_need_nats() {
        let of = |arguments: &[&str]| {
            ServeConfig::of(&[&["--nats", "nats://127.0.0.1:1"], arguments].concat())
                .map(|config| (config.shards, config.own.map(|own| own.to_string())))
                .map_err(|error| error.to_string())
        };
        assert_eq!(of(&[]), Ok((None, None)));
        assert_eq!(of(&["--own", "3,0-1"]), Ok((None, Some("0-1,3".to_owned()))));
        assert_eq!(of(&["--own", "none", "--shards", "4"]), Ok((Some(4), Some("none".to_owned()))));
        for (arguments, said) in [
            (&["--own", "0,x"][..], "--own: numbers of shards and ranges are expected"),
            (&["--own", "1-2,2"], "--own: it names shard 2 twice"),
            (&["--own", "0,4", "--shards", "4"], "--own: there is no shard 4 among 4"),
        ] {
            let refused = of(arguments).expect_err(said);
            assert!(refused.starts_with(said), "{refused}");
        }
        let refused = ServeConfig::of(&["--own", "0"]).expect_err("it is alone").to_string();
        assert!(refused.contains("--own is set without --nats"), "{refused}");
        let config = with_file("own = \"0,2\"\nnats = \"nats://127.0.0.1:1\"\n", &[]).expect("good settings");
        assert_eq!(config.own.map(|own| own.to_string()).as_deref(), Some("0,2"));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_line() {
        for (text, expect) in [
            (
                "shards = 2\n\nshard = 4\n",
                "line 3 of the configuration file FILE: there is no setting shard; did you mean shards?",
            ),
            (
                "data-dir = \"/srv\"",
                "line 1 of the configuration file FILE: there is no setting data-dir; did you mean data_dir?",
            ),
            (
                "zzz = 1",
                "line 1 of the configuration file FILE: there is no setting zzz; `ranktree config print` lists all settings",
            ),
            (
                "\nshards = \"many\"",
                "line 2 of the configuration file FILE: shards: \"many\" is not valid: a whole number is expected, digits only",
            ),
            (
                "shards = 70000",
                "line 1 of the configuration file FILE: shards: \"70000\" is not valid: it must be 1 to 64",
            ),
            (
                "shards = [1]",
                "line 1 of the configuration file FILE: shards: one value is expected, not an array",
            ),
            (
                "[http]\nlisten = \"127.0.0.1:1\"",
                "line 1 of the configuration file FILE: http: a string, a number, true or false is expected; sections are not supported",
            ),
            (
                "listen = 8080",
                "line 1 of the configuration file FILE: listen: \"8080\" is not valid: an IP address and a port are expected, for example 127.0.0.1:8080 or [::1]:8080",
            ),
        ] {
            assert_eq!(with_file(text, &[]).expect_err(text), expect);
        }
        for (text, expect) in [
            ("shards = \n", "line 1, column 10 of the configuration file FILE: string values must be quoted"),
            ("shards = 2\nshards = 3\n", "line 2, column 1 of the configuration file FILE: duplicate key"),
            (
                "shards = 2\n# ä\nnats = \"nats://u:hunter2@h\n",
                "line 3, column 27 of the configuration file FILE: invalid basic string, expected `\"`",
            ),
            (
                "nats = hunter2",
                "line 1, column 8 of the configuration file FILE: string values must be quoted",
            ),
            ("hunter2", "line 1, column 8 of the configuration file FILE: key with no value, expected `=`"),
        ] {
            let said = with_file(text, &[]).expect_err(text);
            assert!(said.starts_with(expect) && !said.contains("hunter2"), "{said}");
        }
        let missing =
            ServeConfig::of(&["--config", "/no/such/file"]).expect_err("it is not there").to_string();
        assert!(missing.starts_with("cannot read the configuration file /no/such/file: "), "{missing}");
    }
}
