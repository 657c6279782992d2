//! `ranktree healthcheck`: one GET of a probe, told by the exit code.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Arg;
use ureq::Agent;
use ureq::http::StatusCode;
use ureq::tls::TlsConfig;

use crate::cli::Failure;
use crate::cli::client::{BaseUrl, agent, describe_refusal, load_tls_roots, wrong_scheme};
use crate::cli::escaped::escaped_text;
use crate::config::{FileArgs, HttpArgs};

const EXIT_STATUS: &str =
    "Exit status: 0 ready, 1 not ready or nobody answers, 2 the address or a setting cannot be used.";

/// More than enough of a probe's answer.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Asks a service on this machine whether it is ready: the one that these settings are of. Says on one line
/// what it answered. Never asks by a proxy.
#[derive(Debug, clap::Args)]
#[command(mut_args(hide_what_serves), after_long_help = EXIT_STATUS)]
pub struct Args {
    /// Ask this address instead of the configured one: a scheme, a host and a port
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Fail unless the service's certificate is one of those in this PEM file, or is signed by one of them,
    /// and names the host that is asked. Without it, certificates are not verified
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Ask whether the process is alive (/healthz), instead of whether it is ready (/readyz)
    #[arg(long)]
    live: bool,
    /// How long to wait for the answer, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 3_000, value_parser = clap::value_parser!(u64).range(1..))]
    timeout_ms: u64,
    /// Read where the arguments are.
    #[command(flatten)]
    _file: FileArgs,
    #[command(flatten)]
    http: HttpArgs,
}

/// The settings that say where the service listens, of those that it has for HTTP. The others may be given,
/// so that one set of flags does for both, and decide nothing here.
const DECIDE: [&str; 2] = ["listen", "tls_cert"];

fn hide_what_serves(arg: Arg) -> Arg {
    let own = ["url", "ca", "live", "timeout_ms", "config"];
    let is_shown = own.iter().chain(&DECIDE).any(|id| arg.get_id() == id);
    arg.hide(!is_shown)
}

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let base = if let Some(url) = &args.url {
        BaseUrl::parse("--url", url)?
    } else {
        let is_https = args.http.tls_cert.is_some();
        let scheme = if is_https { "https" } else { "http" };
        BaseUrl { text: format!("{scheme}://{}", reachable(args.http.listen)?), is_https }
    };
    let url = format!("{}{}", base.text, if args.live { "/healthz" } else { "/readyz" });
    // Without --ca: the certificate is for the name that clients use, and not for this machine's address.
    // Nothing secret is sent, and an attacker who could answer in its place could also stop the service.
    let tls = TlsConfig::builder().disable_verification(true).build();
    let config = Agent::config_builder()
        .tls_config(tls)
        // The service is on this machine, or is probed by who is near it; a proxy would answer for itself.
        .proxy(None)
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_millis(args.timeout_ms)))
        .user_agent(concat!("ranktree-healthcheck/", env!("CARGO_PKG_VERSION")))
        .build();
    let agent = match &args.ca {
        Some(ca) => agent(config, Some(load_tls_roots(Some(ca))?)),
        None => Agent::new_with_config(config),
    };
    let asked = agent.get(&url).call().and_then(|mut response| {
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string()?;
        Ok((response.status(), body))
    });
    Ok(match asked {
        Ok((status, body)) => {
            if status.is_success() {
                println!("{url}: {status} {}", escaped_text(body.trim()));
                ExitCode::SUCCESS
            } else {
                println!("{url}: {}", escaped_text(&not_ready(status, &body)));
                ExitCode::from(1)
            }
        }
        Err(error) => {
            let advice = wrong_scheme(&base, &error).unwrap_or_else(|| error.to_string());
            println!("{url}: no answer: {advice}; --url gives another address");
            ExitCode::from(1)
        }
    })
}

/// The figures of a node's shards are for `GET /v1/status`: only the state and the reason of each that is not
/// live are shown.
fn not_ready(status: StatusCode, body: &str) -> String {
    #[derive(serde::Deserialize)]
    struct NotReady {
        #[serde(default)]
        shards: Vec<NodeShard>,
    }
    #[derive(serde::Deserialize)]
    struct NodeShard {
        shard: u16,
        state: String,
        reason: Option<String>,
        #[serde(default)]
        lag: u64,
    }
    let mut told = describe_refusal(status, body.as_bytes());
    let shards = serde_json::from_str(body).map(|NotReady { shards }| shards).unwrap_or_default();
    for NodeShard { shard, state, reason, lag } in shards {
        if state != "live" {
            let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            let _ = write!(told, "\n  shard {shard} is {}{reason}", state.replace('_', " "));
        } else if lag > 0 {
            let _ = write!(told, "\n  shard {shard} has {lag} messages to apply");
        }
    }
    told
}

/// Where somebody on this machine reaches what listens on an address.
fn reachable(listen: SocketAddr) -> Result<SocketAddr, Failure> {
    if listen.port() == 0 {
        return Err(
            "the configured port is 0, so the service picks a free port that only it knows; give its address with --url".into()
        );
    }
    let host = match listen.ip() {
        IpAddr::V4(host) if host.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(host) if host.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        host => host,
    };
    Ok(SocketAddr::new(host, listen.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_shards_that_are_not_ready_only_the_reasons_are_told() {
        let body = r#"{"code":"not_ready","detail":"a shard is not live","shards":[
            {"shard":0,"state":"live","lag":0,"stream":{"bytes":1}},
            {"shard":3,"state":"live","lag":7},
            {"shard":1,"state":"catching_up","reason":"5 messages behind the stream","stream":{"bytes":1}},
            {"shard":2,"state":"halted"}]}"#;
        assert_eq!(
            not_ready(StatusCode::SERVICE_UNAVAILABLE, body),
            "503 not_ready: a shard is not live\n  shard 3 has 7 messages to apply\n  shard 1 is catching up: 5 messages behind the stream\n  \
             shard 2 is halted"
        );
        let bare = not_ready(StatusCode::SERVICE_UNAVAILABLE, "not ready");
        assert_eq!(bare, "503 Service Unavailable not ready");
    }

    #[test]
    fn an_address_that_means_all_is_asked_on_this_machine() {
        for (listen, expect) in [
            ("0.0.0.0:8080", "127.0.0.1:8080"),
            ("[::]:8080", "[::1]:8080"),
            ("10.0.0.5:80", "10.0.0.5:80"),
            ("[::1]:1", "[::1]:1"),
        ] {
            let listen = listen.parse().expect("an address");
            assert_eq!(reachable(listen).expect("a port that is known").to_string(), expect);
        }
        assert!(reachable("127.0.0.1:0".parse().expect("an address")).is_err());
    }
}
