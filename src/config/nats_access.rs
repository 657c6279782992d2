//! Settings that say where NATS is and who this process is there: a group for every subcommand that connects.
//!
//! A secret is named as a file, or comes from the environment: an argument is seen by everybody on the
//! machine.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use crate::config::{ConfigError, switch};
use crate::queue::nats::{InboxPrefix, Login, NatsAccess, NatsCredentials, Secret, SecretFrom, Tls};

const PASSWORD: &str = "RANKTREE_NATS_PASSWORD";
const TOKEN: &str = "RANKTREE_NATS_TOKEN";

/// The environment-only secrets.
pub const ENVIRONMENT_SECRETS: [EnvironmentSecret; 2] = [
    EnvironmentSecret {
        variable: PASSWORD,
        listed_after: "nats_password_file",
        help: "Password of --nats-user",
    },
    EnvironmentSecret { variable: TOKEN, listed_after: "nats_token_file", help: "Token for NATS" },
];

#[derive(Debug, Clone, Default, Args)]
pub struct NatsAccessArgs {
    /// NATS server, or several separated by commas. Jobs are read from its JetStream streams, and HTTP writes
    /// are published there. Without it, the service has a queue of its own. tls:// refuses a server without
    /// TLS
    #[arg(long, env = "RANKTREE_NATS", value_name = "URL", hide_env_values = true)]
    pub nats: Option<Secret>,
    /// User name at NATS. Its password is in --nats-password-file, or in the variable
    /// `RANKTREE_NATS_PASSWORD`
    #[arg(long, env = "RANKTREE_NATS_USER", value_name = "NAME")]
    pub nats_user: Option<String>,
    /// File whose first line is the password of --nats-user. Files of credentials are read again for each
    /// connection, so that rotated credentials are used without a restart
    #[arg(long, env = "RANKTREE_NATS_PASSWORD_FILE", value_name = "SECRET_FILE")]
    pub nats_password_file: Option<PathBuf>,
    /// File whose first line is a token for NATS. The token itself may be in the variable
    /// `RANKTREE_NATS_TOKEN` instead
    #[arg(long, env = "RANKTREE_NATS_TOKEN_FILE", value_name = "SECRET_FILE")]
    pub nats_token_file: Option<PathBuf>,
    /// File with the seed of a user's nkey
    #[arg(long, env = "RANKTREE_NATS_NKEY", value_name = "SECRET_FILE")]
    pub nats_nkey: Option<PathBuf>,
    /// File with a user's JWT and seed, as nsc writes it
    #[arg(long, env = "RANKTREE_NATS_CREDS", value_name = "SECRET_FILE")]
    pub nats_creds: Option<PathBuf>,
    /// What the subjects begin with that answers from NATS come by. A user's permissions at NATS should allow
    /// its own and nobody else's. The default is `_INBOX.` and the user's name, and without a user name
    /// `_INBOX.` and the --prefix
    #[arg(long, env = "RANKTREE_NATS_INBOX_PREFIX", value_name = "SUBJECT")]
    pub nats_inbox_prefix: Option<InboxPrefix>,
    /// Refuse a NATS server without TLS. The options below imply this
    #[arg(long, env = "RANKTREE_NATS_TLS", value_name = "true|false", default_value = "false",
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true",
        value_parser = switch(), hide_possible_values = true)]
    pub nats_tls: bool,
    /// Begin with the TLS handshake before the server sends anything, for servers with `handshake_first`
    #[arg(long, env = "RANKTREE_NATS_TLS_FIRST", value_name = "true|false", default_value = "false",
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true",
        value_parser = switch(), hide_possible_values = true)]
    pub nats_tls_first: bool,
    /// PEM file with the certificates of the authorities to trust for NATS servers, instead of those that
    /// this machine trusts
    #[arg(long, env = "RANKTREE_NATS_CA", value_name = "FILE")]
    pub nats_ca: Option<PathBuf>,
    /// PEM file with a client certificate; needs --nats-key
    #[arg(long, env = "RANKTREE_NATS_CERT", value_name = "FILE")]
    pub nats_cert: Option<PathBuf>,
    /// PEM file with the private key of --nats-cert
    #[arg(long, env = "RANKTREE_NATS_KEY", value_name = "SECRET_FILE")]
    pub nats_key: Option<PathBuf>,
}

impl NatsAccessArgs {
    /// What a connection needs to know; `None` without NATS. Files are read once, so that a mistake is told
    /// at the start.
    ///
    /// # Errors
    /// When settings contradict each other, or a file is not what it should be.
    ///
    /// # Arguments
    /// `prefix`: what the names of the service begin with.
    pub fn resolve(self, prefix: &str) -> Result<Option<NatsAccess>, ConfigError> {
        self.resolve_with(prefix, |name| std::env::var(name).ok())
    }

    fn resolve_with(
        self,
        prefix: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<NatsAccess>, ConfigError> {
        let secret = |variable| {
            environment(variable)
                .filter(|text| !text.is_empty())
                .map(|text| SecretFrom::Text(Secret::new(text)))
        };
        let (given, login) = one_of([
            ("--nats-user", self.password(secret(PASSWORD))?),
            (
                "--nats-token-file or RANKTREE_NATS_TOKEN",
                either("--nats-token-file", self.nats_token_file, TOKEN, secret(TOKEN))?.map(Login::Token),
            ),
            ("--nats-nkey", self.nats_nkey.map(Login::Nkey)),
            ("--nats-creds", self.nats_creds.map(Login::Creds)),
        ])?;
        let client = match (self.nats_cert, self.nats_key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) => return Err(ConfigError::RequiresOther("--nats-cert", "--nats-key")),
            (None, Some(_)) => return Err(ConfigError::RequiresOther("--nats-key", "--nats-cert")),
        };
        let Some(urls) = self.nats else {
            let tls = self.nats_ca.map(|_| "--nats-ca").or(client.map(|_| "--nats-cert"));
            let inbox = self.nats_inbox_prefix.map(|_| "--nats-inbox-prefix");
            return match given.or(tls).or(inbox) {
                Some(given) => Err(ConfigError::RequiresOther(given, "--nats")),
                None => Ok(None),
            };
        };
        let tls = Tls {
            // An operator who configures how to verify a server does not want to connect without
            // verification.
            required: self.nats_tls || self.nats_tls_first || self.nats_ca.is_some() || client.is_some(),
            first: self.nats_tls_first,
            ca: self.nats_ca,
            client,
        };
        let credentials = NatsCredentials { login, tls };
        Ok(Some(NatsAccess::new(&urls, credentials, self.nats_inbox_prefix, prefix)?))
    }

    fn password(&self, secret: Option<SecretFrom>) -> Result<Option<Login>, ConfigError> {
        let file = self.nats_password_file.clone();
        let password = either("--nats-password-file", file, PASSWORD, secret)?;
        match (self.nats_user.clone(), password) {
            (Some(user), Some(password)) => Ok(Some(Login::Password { user, password })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(ConfigError::RequiresOther(
                "--nats-user",
                "--nats-password-file or RANKTREE_NATS_PASSWORD",
            )),
            (None, Some(_)) => Err(ConfigError::RequiresOther("a password for NATS", "--nats-user")),
        }
    }
}

fn either(
    flag: &'static str,
    file: Option<PathBuf>,
    variable: &'static str,
    secret: Option<SecretFrom>,
) -> Result<Option<SecretFrom>, ConfigError> {
    match (file, secret) {
        (Some(_), Some(_)) => Err(ConfigError::Conflicting(flag, variable)),
        (file, secret) => Ok(file.map(SecretFrom::File).or(secret)),
    }
}

/// The one that is given, and by what.
fn one_of<const N: usize>(
    logins: [(&'static str, Option<Login>); N],
) -> Result<(Option<&'static str>, Login), ConfigError> {
    let mut found = None;
    for (name, login) in logins {
        let Some(login) = login else { continue };
        match found {
            Some((other, _)) => return Err(ConfigError::Conflicting(other, name)),
            None => found = Some((name, login)),
        }
    }
    Ok(found.map_or((None, Login::Nobody), |(name, login)| (Some(name), login)))
}

/// A secret that only the environment can give, besides a file of its own: it has no flag, and no key in the
/// configuration file.
pub struct EnvironmentSecret {
    /// Its name, also where settings are listed; the keys of other settings can stand in the configuration
    /// file.
    pub variable: &'static str,
    /// The setting that names its file; the secret is listed behind that.
    pub listed_after: &'static str,
    pub help: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> NatsAccessArgs {
        NatsAccessArgs { nats: Some(Secret::new("nats://127.0.0.1".to_owned())), ..NatsAccessArgs::default() }
    }

    fn refusal(args: NatsAccessArgs, environment: &[(&str, &str)]) -> String {
        let environment = |name: &str| {
            let found = environment.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        args.resolve_with("ranktree", environment).expect_err("a mistake").to_string()
    }

    #[test]
    fn contradicting_settings_are_refused_by_name() {
        let file = || Some(PathBuf::from("/a/file"));
        let user = || Some("me".to_owned());
        let check = |args: NatsAccessArgs, environment: &[(&str, &str)], says: &[&str]| {
            let said = refusal(args, environment);
            assert!(says.iter().all(|says| said.contains(says)), "{said} does not say {says:?}");
        };
        let base = args;
        let password = [(PASSWORD, "hunter2")];
        check(
            NatsAccessArgs { nats_user: user(), ..base() },
            &[],
            &["--nats-user", "--nats-password-file", PASSWORD],
        );
        check(NatsAccessArgs { nats_password_file: file(), ..base() }, &[], &["password", "--nats-user"]);
        let both = NatsAccessArgs { nats_user: user(), nats_password_file: file(), ..base() };
        check(both, &password, &["--nats-password-file", PASSWORD]);
        let two = NatsAccessArgs { nats_nkey: file(), nats_creds: file(), ..base() };
        check(two, &[], &["--nats-nkey", "--nats-creds"]);
        let two = NatsAccessArgs { nats_user: user(), ..base() };
        check(two, &[password[0], (TOKEN, "t")], &["--nats-user", TOKEN]);
        check(NatsAccessArgs { nats_cert: file(), ..base() }, &[], &["--nats-cert", "--nats-key"]);
        check(NatsAccessArgs { nats_key: file(), ..base() }, &[], &["--nats-key", "--nats-cert"]);
        check(NatsAccessArgs { nats: None, nats_creds: file(), ..base() }, &[], &["--nats-creds", "--nats"]);
        check(NatsAccessArgs { nats: None, nats_ca: file(), ..base() }, &[], &["--nats-ca", "--nats"]);
        let inbox = |text: &str| Some(text.parse::<InboxPrefix>().expect("a good prefix"));
        let without = NatsAccessArgs { nats: None, nats_inbox_prefix: inbox("_INBOX.a"), ..base() };
        check(without, &[], &["--nats-inbox-prefix", "--nats"]);
        let within = NatsAccessArgs { nats_inbox_prefix: inbox("ranktree.inbox"), ..base() };
        check(within, &[], &["--nats-inbox-prefix ranktree.inbox", "--prefix", "_INBOX.ranktree"]);
        check(NatsAccessArgs { nats_creds: file(), ..base() }, &[], &["/a/file", "credentials file"]);
        let url = Some(Secret::new("nats://me:hunter2@h".to_owned()));
        let twice = NatsAccessArgs { nats: url, nats_user: user(), ..base() };
        let said = refusal(twice, &password);
        assert!(said.contains("one place") && !said.contains("hunter2"), "{said}");
    }

    #[test]
    fn files_of_another_kind_are_named_and_what_was_expected() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let path = || Some(file.path().to_owned());
        std::fs::write(file.path(), "\nhunter2\n").expect("it can be written");
        let user = Some("me".to_owned());
        for (args, expected) in [
            (NatsAccessArgs { nats_creds: path(), ..args() }, "NATS USER JWT"),
            (NatsAccessArgs { nats_nkey: path(), ..args() }, "begins with SU"),
            (NatsAccessArgs { nats_token_file: path(), ..args() }, "first line"),
            (NatsAccessArgs { nats_user: user, nats_password_file: path(), ..args() }, "first line"),
            (NatsAccessArgs { nats_ca: path(), ..args() }, "BEGIN CERTIFICATE"),
            (NatsAccessArgs { nats_cert: path(), nats_key: path(), ..args() }, "BEGIN CERTIFICATE"),
        ] {
            let said = refusal(args, &[]);
            let path = file.path().to_string_lossy();
            assert!(said.contains(&*path) && said.contains(expected), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn answers_come_by_an_inbox_of_the_user_unless_another_is_named() {
        let of = |url: &str, inbox: Option<&str>| {
            let nats_inbox_prefix = inbox.map(|text| text.parse().expect("a good prefix"));
            let nats = Some(Secret::new(url.to_owned()));
            let args = NatsAccessArgs { nats, nats_inbox_prefix, ..NatsAccessArgs::default() };
            let access = args.resolve_with("eu", |_| None).expect("good settings").expect("there is NATS");
            access.inbox.to_string()
        };
        assert_eq!(of("nats://game:hunter2@127.0.0.1", None), "_INBOX.game");
        assert_eq!(of("nats://127.0.0.1", None), "_INBOX.eu");
        assert_eq!(of("nats://game:hunter2@127.0.0.1", Some("_INBOX_private")), "_INBOX_private");
    }

    #[test]
    fn secrets_are_masked_in_every_output() {
        let nats = Some(Secret::new("nats://me:hunter2@127.0.0.1".to_owned()));
        let args = NatsAccessArgs { nats, ..NatsAccessArgs::default() };
        let before = format!("{args:?}");
        let access = args.resolve_with("ranktree", |_| None).expect("good settings").expect("there is NATS");
        for shown in [before, format!("{access:?}"), access.servers.to_string()] {
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        assert!(matches!(access.credentials.login, Login::Password { user, .. } if user == "me"));
    }
}
