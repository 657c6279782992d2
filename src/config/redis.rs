//! Settings of Redis' protocol: where it is listened for. Tokens, the certificate and the limits are those of
//! HTTP.

use clap::Args;

use crate::config::{ConfigError, HttpConfig};
use crate::redis::ListenAddress;
use crate::types::quoted;

#[derive(Debug, Clone, Args)]
pub struct RedisListenArgs {
    /// Serve the sorted-set commands of Redis on this address too, such as 127.0.0.1:6380, or on a socket:
    /// unix: and its path. Tokens are passwords, of any user; the certificate, limits and timeouts are those
    /// of HTTP
    #[arg(long, env = "RANKTREE_REDIS_LISTEN", value_name = "ADDRESS")]
    pub redis_listen: Option<String>,
}

impl RedisListenArgs {
    /// Checks what one setting alone does not say.
    ///
    /// # Errors
    /// When it is no address; when others could reach it without tokens, and nobody said that they may.
    pub fn resolve(self, http: &HttpConfig) -> Result<Option<ListenAddress>, ConfigError> {
        let parse = |text: String| {
            text.parse::<ListenAddress>()
                .map_err(|expected| ConfigError::RedisListen { expected, got: quoted(&text) })
        };
        match self.redis_listen.map(parse).transpose()? {
            Some(ListenAddress::Tcp(address)) if http.local_only && !address.ip().is_loopback() => {
                Err(ConfigError::Exposed(address))
            }
            address => Ok(address),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::ServeConfig;

    #[test]
    fn it_is_not_listened_where_others_could_do_everything() {
        let listens = |arguments: &[&str]| {
            let config = ServeConfig::of(arguments).map_err(|error| error.to_string())?;
            Ok::<_, String>(config.redis_listen.map(|address| address.to_string()))
        };
        assert_eq!(listens(&[]), Ok(None));
        assert_eq!(listens(&["--redis-listen", "127.0.0.1:0"]), Ok(Some("127.0.0.1:0".to_owned())));
        assert_eq!(listens(&["--redis-listen", "/r.sock"]), Ok(Some("unix:/r.sock".to_owned())));
        let exposed = ["--redis-listen", "0.0.0.0:6380"];
        let refused = listens(&exposed).expect_err("everybody could write");
        assert!(refused.contains("other machines can reach 0.0.0.0:6380"), "{refused}");
        for more in [&["--tokens", "t.toml"][..], &["--insecure"]] {
            assert_eq!(
                listens(&[&exposed[..], more].concat()),
                Ok(Some("0.0.0.0:6380".to_owned())),
                "{more:?}"
            );
        }
        let refused = listens(&["--redis-listen", "6380"]).expect_err("it is no address");
        assert!(refused.contains("127.0.0.1:6380") && refused.contains("unix:"), "{refused}");
    }
}
