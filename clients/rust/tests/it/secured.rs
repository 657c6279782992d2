//! A node that asks for tokens and has a certificate of its own.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt};
use ranktree_client::rustls::pki_types::CertificateDer;
use ranktree_client::rustls::pki_types::pem::PemObject;
use ranktree_client::rustls::{ClientConfig, RootCertStore, crypto};
use ranktree_client::types::DefinitionInput;
use ranktree_client::{Error, LiveEvent, Ranktree};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::support::LIMIT;
use crate::support::node::{Node, program};

/// Writes a certificate for 127.0.0.1 and its key, and says whom to trust for it.
fn certify(folder: &Path) -> ClientConfig {
    let mut params = CertificateParams::new(Vec::new()).expect("no names are good names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key can be made");
    let authority = CertifiedIssuer::self_signed(params, key).expect("it can sign itself");
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("it is an address");
    let key = KeyPair::generate().expect("a key can be made");
    let certificate = params.signed_by(&key, &authority).expect("it can be signed");
    for (name, text) in [("cert.pem", certificate.pem()), ("key.pem", key.serialize_pem())] {
        fs::write(folder.join(name), text).expect("the folder is the test's own");
    }
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(authority.pem().as_bytes()).expect("it is one");
    roots.add(root).expect("it is an authority");
    ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring knows them")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// A token, and the lines of the tokens file for it.
fn token(scope: &str) -> (String, String) {
    let output = Command::new(program()).args(["token", "new", "--scope", scope, "--name", scope]).output();
    let output = output.expect("it is a program");
    let told = String::from_utf8_lossy(&output.stderr);
    let token = told.split_whitespace().find(|word| word.starts_with("rkt_"));
    (token.expect("it is shown once").to_owned(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[tokio::test]
async fn tokens_and_certificates_are_checked() {
    let folder = TempDir::new().expect("there is room for temporary files");
    let trust = certify(folder.path());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let ((admin, admins), (reader, readers)) = (token("admin"), token("read"));
    let tokens = folder.path().join("tokens.toml");
    fs::write(&tokens, format!("{admins}\n{readers}")).expect("the folder is the test's own");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        for name in ["tokens.toml", "key.pem"] {
            fs::set_permissions(folder.path().join(name), fs::Permissions::from_mode(0o600))
                .expect("its own");
        }
    }
    let flags =
        ["--tls-cert", &path("cert.pem"), "--tls-key", &path("key.pem"), "--tokens", &path("tokens.toml")];
    let node = Node::start(&flags).await;
    let client = |bearer: &str| {
        let client = Ranktree::builder(&node.url).bearer(bearer).tls(trust.clone()).build();
        client.expect("it is an address")
    };
    let admin = client(&admin);
    admin.define("arena", &DefinitionInput::new()).await.expect("it may");
    admin.write("arena", "p42", 1).await.expect("it may");
    let reader = client(&reader);
    assert_eq!(reader.member("arena", "p42").await.expect("it may").score, 1);
    let error = reader.write("arena", "p42", 2).await.expect_err("it may not");
    assert!(matches!(&error, Error::Access(problem) if problem.code == "insufficient_scope"), "{error}");
    let error = client("rkt_unknown").status().await.expect_err("nobody has it");
    assert_eq!(error.code(), Some("invalid_token"));
    let stranger = Ranktree::builder(&node.url).retries(0).build().expect("this machine has certificates");
    let error = stranger.write("arena", "p42", 3).await.expect_err("it trusts others");
    assert!(matches!(error, Error::ConnectionFailed { may_be_applied: false, .. }), "{error}");
    // A token that is taken back ends what it watches.
    let mut events = reader.live("arena").stream();
    assert!(matches!(events.try_next().await, Ok(Some(LiveEvent::State(_)))));
    fs::write(&tokens, admins).expect("the folder is the test's own");
    let error = loop {
        match timeout(LIMIT, events.next()).await.expect("it ends") {
            Some(Ok(_)) => {}
            Some(Err(error)) => break error,
            None => panic!("it says why"),
        }
    };
    assert!(matches!(error, Error::Access(_)), "{error}");
}
