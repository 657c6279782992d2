//! Redis' protocol over TCP, with the service's certificate.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::support::certificates::Authority;
use crate::support::node::Node;
use crate::support::raw;

/// Sends inline commands that end with QUIT, and returns all that is replied.
async fn ask(address: &str, authority: &str, commands: &str) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(authority.as_bytes()).expect("a certificate");
    roots.add(certificate).expect("it can be trusted");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").expect("an address");
    let stream = TcpStream::connect(address).await?;
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    stream.write_all(commands.as_bytes()).await?;
    let mut replies = String::new();
    stream.read_to_string(&mut replies).await?;
    Ok(replies)
}

/// Where a node listens for Redis' protocol, by its log.
fn address(node: &Node) -> String {
    let log = node.log();
    let (_, rest) = log.split_once("listening for Redis' protocol on ").expect("it says so");
    rest.split_whitespace().next().expect("an address").to_owned()
}

#[test]
fn connections_over_tcp_are_tls_if_the_service_has_a_certificate() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let authority = Authority::new("tests");
    let certified = authority.certify("localhost");
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, certified.certificate).expect("it can be written");
    std::fs::write(&key, certified.key).expect("it can be written");
    let (cert, key) = (cert.to_str().expect("UTF-8"), key.to_str().expect("UTF-8"));
    let node = Node::flags(&["--redis-listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key]).start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let commands = "ZADD arena 1.5 a\r\nZSCORE arena a\r\nQUIT\r\n";
    let replies = runtime.block_on(ask(&address(&node), &authority.pem(), commands)).expect("it is trusted");
    assert_eq!(replies, ":1\r\n$3\r\n1.5\r\n+OK\r\n");
    assert!(!raw::ask(&address(&node), commands).contains(":1"), "it does not speak without TLS");
}

#[test]
fn connections_over_tcp_without_a_certificate_are_plain() {
    let node = Node::flags(&["--redis-listen", "127.0.0.1:0"]).start();
    let replies = raw::ask(&address(&node), "PING\r\nINFO server\r\nQUIT\r\n");
    assert!(replies.starts_with("+PONG\r\n$") && replies.ends_with("+OK\r\n"), "{replies}");
    let port = address(&node).rsplit(':').next().expect("a port").to_owned();
    assert!(replies.contains(&format!("tcp_port:{port}")), "{replies}");
}
