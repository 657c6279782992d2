//! What a running service is asked to tell: reads, which may be repeated.

use std::thread;
use std::time::Duration;

use ureq::http::StatusCode;

use crate::cli::Failure;
use crate::cli::client::{
    Backoff, Client, Failed, RETRY_FOR, Refused, Reply, code_of, describe_refusal, not_there,
};
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
    /// As [`Client::new`], and when what is at the address is no service.
    pub fn new(url: &str, args: &ClientArgs, who: &str) -> Result<Self, Failure> {
        let client = Client::new(url, args, who)?;
        match client.greet() {
            // The first request says the same.
            Ok(()) | Err(Failed::NotReached(_)) => Ok(Self { client }),
            Err(Failed::Unknown(reason)) => {
                Err(format!("{} cannot be read: {}", client.base(), not_there(&reason)).into())
            }
            Err(Failed::Permanent(reason) | Failed::TooLong(reason)) => {
                Err(format!("{} cannot be read: {reason}", client.base()).into())
            }
        }
    }

    /// Scheme, host, port, and what the paths of the API come after.
    pub fn base(&self) -> &str {
        self.client.base()
    }

    /// What sends requests, each once.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The answer as text, once there is one.
    ///
    /// # Errors
    /// When the service refuses, or stays away.
    pub fn get(&self, url: &str) -> Result<String, Failure> {
        let reply = self.reply(url)?;
        String::from_utf8(reply.body).map_err(|_| format!("{url} cannot be read: it is not UTF-8").into())
    }

    /// The answer, once there is one.
    ///
    /// # Errors
    /// When the service refuses, or stays away.
    pub fn reply(&self, url: &str) -> Result<Reply, Failure> {
        // The path is the program's own; what the operator gave is the base.
        let base = self.client.base();
        let failed = |reason: String| Err(format!("{base} cannot be read: {reason}").into());
        let mut backoff = Backoff::default();
        loop {
            let (reason, at_least) = match self.client.get(url) {
                Ok(reply) => {
                    if reply.status == StatusCode::OK {
                        return Ok(reply);
                    }
                    let reason = describe_refusal(reply.status, &reply.body);
                    if !matches!(
                        reply.status,
                        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
                    ) {
                        let code = code_of(&reply.body);
                        return Err(Refused { base: base.to_owned(), code, reason }.into());
                    }
                    (reason, reply.retry_after.unwrap_or_default())
                }
                Err(Failed::NotReached(reason) | Failed::Unknown(reason)) => {
                    (not_there(&reason), Duration::ZERO)
                }
                Err(Failed::Permanent(reason) | Failed::TooLong(reason)) => return failed(reason),
            };
            // A service that never answered is not waited for: its address may be wrong.
            let pause = if self.client.has_answered() { backoff.pause(at_least, RETRY_FOR) } else { None };
            match pause {
                Some(pause) => thread::sleep(pause),
                None => return failed(reason),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_answer_that_breaks_off_is_asked_for_again() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let base = format!("http://{}", listener.local_addr().expect("it is bound"));
        let serving = thread::spawn(move || {
            for body in ["whole", "who", "whole"] {
                let (mut stream, _) = listener.accept().expect("a connection");
                let mut request = [0; 1024];
                assert!(stream.read(&mut request).expect("a request") > 0);
                let head = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\n";
                stream.write_all(format!("{head}{body}").as_bytes()).expect("writable");
            }
        });
        let reader = || {
            let client = Client::new(&base, &ClientArgs::default(), "test").expect("an address");
            Reader { client }
        };
        assert_eq!(reader().get(&base).ok().as_deref(), Some("whole"));
        // The first answer of another reader: that it began shows that the service is there.
        assert_eq!(reader().get(&base).ok().as_deref(), Some("whole"));
        serving.join().expect("all were asked for");
    }
}
