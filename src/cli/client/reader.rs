//! What a running service is asked to tell: reads, which may be repeated.

use std::thread;
use std::time::Duration;

use ureq::http::StatusCode;

use crate::cli::Failure;
use crate::cli::client::{Client, Failed, RETRY_FOR, Retries};
use crate::config::ClientArgs;

/// A client that asks again while the service is away or overloaded.
pub struct Reader {
    client: Client,
}

impl Reader {
    /// # Arguments
    /// `url`: what `--url` says.
    /// `who`: the subcommand, as requests name it.
    ///
    /// # Errors
    /// When the address is none that can be connected to, the token cannot be read, or there are no
    /// certificates to accept.
    pub fn new(url: &str, args: &ClientArgs, who: &str) -> Result<Self, Failure> {
        let token = args.token()?;
        let client = Client::new(url, token.as_deref(), args.ca.as_deref(), who)?;
        Ok(Self { client })
    }

    /// Scheme, host, port, and what the paths of the API come after.
    pub fn base(&self) -> &str {
        self.client.base()
    }

    /// The answer, once there is one.
    ///
    /// # Errors
    /// When the service refuses, or stays away.
    pub fn get(&self, url: &str) -> Result<String, Failure> {
        let failed = |reason: String| Err(format!("{url} cannot be read: {reason}").into());
        let mut retries = Retries::default();
        loop {
            let (reason, at_least) = match self.client.get(url) {
                Ok(reply) => {
                    if reply.status == StatusCode::OK {
                        return String::from_utf8(reply.body)
                            .or_else(|_| failed("it is not UTF-8".to_owned()));
                    }
                    let reason = format!("{} {}", reply.status, String::from_utf8_lossy(&reply.body).trim());
                    if !matches!(
                        reply.status,
                        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
                    ) {
                        return failed(reason);
                    }
                    (reason, reply.retry_after.unwrap_or_default())
                }
                Err(Failed::NotReached(reason) | Failed::Unknown(reason)) => (reason, Duration::ZERO),
                Err(Failed::Lasting(reason) | Failed::TooLong(reason)) => return failed(reason),
            };
            // A service that never answered is not waited for: its address may be wrong.
            let pause = if self.client.has_answered() { retries.pause(at_least, RETRY_FOR) } else { None };
            match pause {
                Some(pause) => thread::sleep(pause),
                None => return failed(reason),
            }
        }
    }
}
