//! TLS against a fake server, with certificates made by the test.

use crate::fake;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_client::frame::{FrameWriter, ReplyMode};
use bunko_client::load::{Arrival, Load, LoadOptions, Next, Placement, Request, Then, Workload};
use bunko_client::{CommandError, Connection, Reply, Uri};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An authority that only the test trusts, and a directory for its files.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: tempfile::TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("signed");
        Self { issuer, directory: tempfile::tempdir().expect("a directory") }
    }

    fn write(&self, name: &str, pem: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, pem).expect("written");
        path
    }

    /// The file with the authority's own certificate.
    fn ca_file(&self) -> PathBuf {
        self.write("ca.pem", &self.issuer.pem())
    }

    /// A certificate for `name` and its key, in one PEM text.
    fn issue(&self, name: &str, purpose: ExtendedKeyUsagePurpose) -> String {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        certificate.pem() + &key.serialize_pem()
    }
}

/// Whether the server demands a client certificate.
#[derive(PartialEq)]
enum Clients {
    Anybody,
    Certified,
}

/// Starts a server whose certificate is for `name`; returns its port.
fn serve(authority: &Authority, name: &str, clients: &Clients) -> u16 {
    let pem = authority.issue(name, ExtendedKeyUsagePurpose::ServerAuth);
    let chain = vec![CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate")];
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = builder.expect("the defaults");
    let builder = if *clients == Clients::Anybody {
        builder.with_no_client_auth()
    } else {
        let mut roots = RootCertStore::empty();
        roots.add(authority.issuer.der().clone()).expect("a certificate");
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
        builder.with_client_cert_verifier(verifier.expect("one authority"))
    };
    let configuration = Arc::new(builder.with_single_cert(chain, key).expect("they fit"));
    let (listener, address) = fake::listener();
    let wrap = move |stream| -> Box<dyn fake::Bytes> {
        let session = ServerConnection::new(Arc::clone(&configuration)).expect("the configuration is sound");
        Box::new(StreamOwned::new(session, stream))
    };
    fake::serve_wrapped(listener, wrap, || {
        |name: &str, command: &DocumentBuf| match name {
            "isMaster" => fake::ok().with("ismaster", true).with("maxWireVersion", 25_i32),
            // A reply as long as the request.
            _ => match command.as_ref().get("pad") {
                Some(pad @ ValueRef::String(_)) => fake::ok().with("pad", pad).with("n", 1_i32),
                _ => fake::ok(),
            },
        }
    });
    address.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect("a port")
}

fn uri(host: &str, port: u16, options: &str) -> Uri {
    format!("mongodb://{host}:{port}/?connectTimeoutMS=5000&tls=true&{options}").parse().expect("valid")
}

fn ca(path: &Path) -> String {
    format!("tlsCAFile={}", path.display())
}

fn failure(uri: &Uri) -> String {
    let message = Connection::connect(uri).err().expect("refused").to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

fn ping(uri: &Uri) {
    let mut connection = Connection::connect(uri).unwrap_or_else(|error| panic!("{error}"));
    connection.run_command("admin", DocumentRef::EMPTY.to_owned().with("ping", 1_i32).as_ref()).expect("an answer");
}

#[test]
fn a_certificate_is_checked_for_authority_and_name() {
    let authority = Authority::new();
    let trusted = ca(&authority.ca_file());
    let port = serve(&authority, "localhost", &Clients::Anybody);
    ping(&uri("localhost", port, &trusted));
    let message = failure(&uri("127.0.0.1", port, &trusted));
    assert!(message.starts_with(&format!("TLS with 127.0.0.1:{port} failed: ")), "{message}");
    assert!(message.contains("not valid for name"), "{message}");
    let stranger = Authority::new();
    let message = failure(&uri("localhost", port, &ca(&stranger.ca_file())));
    assert!(message.contains("UnknownIssuer") || message.contains("BadSignature"), "{message}");
}

#[test]
fn checks_are_left_out_one_by_one() {
    let authority = Authority::new();
    let port = serve(&authority, "db.example", &Clients::Anybody);
    ping(&uri("localhost", port, &(ca(&authority.ca_file()) + "&tlsAllowInvalidHostnames=true")));
    ping(&uri("localhost", port, "tlsAllowInvalidCertificates=true"));
    ping(&uri("localhost", port, "tlsInsecure=true"));
}

#[test]
fn an_invalid_certificate_is_refused_whatever_its_name() {
    let authority = Authority::new();
    let port = serve(&authority, "db.example", &Clients::Anybody);
    let stranger = Authority::new();
    let message = failure(&uri("localhost", port, &(ca(&stranger.ca_file()) + "&tlsAllowInvalidHostnames=true")));
    assert!(message.contains("invalid peer certificate"), "{message}");
}

#[test]
fn a_client_shows_its_certificate() {
    let authority = Authority::new();
    let port = serve(&authority, "localhost", &Clients::Certified);
    let trusted = ca(&authority.ca_file());
    let key_file = authority.write("client.pem", &authority.issue("ann", ExtendedKeyUsagePurpose::ClientAuth));
    ping(&uri("localhost", port, &format!("{trusted}&tlsCertificateKeyFile={}", key_file.display())));
    let message = failure(&uri("localhost", port, &trusted));
    assert!(message.contains("CertificateRequired"), "{message}");
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let authority = Authority::new();
    let trusted = ca(&authority.ca_file());
    let options = |path: &Path| uri("localhost", 1, &format!("{trusted}&tlsCertificateKeyFile={}", path.display()));
    let message = failure(&uri("localhost", 1, "tlsCAFile=/nonexistent.pem"));
    assert!(message.contains("cannot read /nonexistent.pem: No such file"), "{message}");
    let empty = authority.write("empty.pem", "");
    assert!(failure(&uri("localhost", 1, &ca(&empty))).contains("empty.pem holds no PEM certificate"));
    assert!(failure(&options(&authority.ca_file())).contains("ca.pem is missing or no PEM"));
    let pem = authority.issue("ann", ExtendedKeyUsagePurpose::ClientAuth);
    let encrypted = authority.write("encrypted.pem", &pem.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"));
    assert!(failure(&options(&encrypted)).contains("encrypted.pem is encrypted"));
}

#[test]
fn long_messages_pass_in_both_directions() {
    let authority = Authority::new();
    let port = serve(&authority, "localhost", &Clients::Anybody);
    let uri = uri("localhost", port, &ca(&authority.ca_file()));
    let mut connection = Connection::connect(&uri).expect("connected");
    let pad = "x".repeat(5_000_000);
    let command = DocumentBuf::new().with("echo", 1_i32).with("pad", &pad);
    let reply = connection.run_command("admin", command.as_ref()).expect("an answer");
    assert_eq!(fake::text(&reply, "pad").len(), pad.len());
}

/// Requests of varying length, each with a reply of its own length.
struct Echoes {
    left: usize,
    acknowledged: i64,
    bytes: usize,
}

impl Workload for Echoes {
    fn next_request(&mut self, request_id: i32, due: Instant, out: &mut Vec<u8>) -> Next {
        let Some(left) = self.left.checked_sub(1) else { return Next::Finished };
        self.left = left;
        // From one byte to many TLS records, and more than a socket's buffer.
        let pad = "x".repeat(1 << (left % 21));
        let body = DocumentBuf::new().with("echo", 1_i32).with("pad", &pad).with("$db", "admin");
        FrameWriter::new(out, request_id, ReplyMode::Expected, body.as_ref()).finish().expect("short");
        Next::Appended(Request { tag: 0, started_at: due })
    }

    fn on_reply(&mut self, _: Request, reply: Result<Reply<'_>, CommandError>, _: Instant) -> Then {
        let reply = reply.expect("no refusal");
        self.acknowledged += reply.n;
        self.bytes += reply.document.get("pad").and_then(ValueRef::as_str).map_or(0, str::len);
        Then::Free
    }
}

#[test]
fn a_load_loses_nothing() {
    const REQUESTS: usize = 420;
    let authority = Authority::new();
    let port = serve(&authority, "localhost", &Clients::Anybody);
    let options = LoadOptions {
        connections: 3,
        in_flight: 8,
        threads: 1,
        placement: Placement::Free,
        arrival: Arrival::Closed,
        duration: None,
        stop: Arc::default(),
        stall_timeout: Duration::from_secs(5),
    };
    let mut load = Load::connect(&uri("localhost", port, &ca(&authority.ca_file())), options).expect("connected");
    let mut workloads = [Echoes { left: REQUESTS, acknowledged: 0, bytes: 0 }];
    load.run(&mut workloads).expect("a whole run");
    let sent_bytes: usize = (0..REQUESTS).map(|left| 1 << (left % 21)).sum();
    assert_eq!((workloads[0].acknowledged, workloads[0].bytes), (REQUESTS as i64, sent_bytes));
}

#[test]
fn plain_text_and_tls_do_not_mix() {
    let (listener, address) = fake::listener();
    fake::serve(listener, || |_: &str, _: &DocumentBuf| fake::ok());
    let encrypted = format!("mongodb://{address}/?tls=true&tlsInsecure=true&connectTimeoutMS=300");
    let message = failure(&encrypted.parse().expect("valid"));
    // Whether the time limit of the handshake or of the search expires first depends on timing.
    assert!(message.contains(&address) && message.contains("no answer"), "{message}");
    let authority = Authority::new();
    let port = serve(&authority, "localhost", &Clients::Anybody);
    let plain: Uri = format!("mongodb://localhost:{port}/?connectTimeoutMS=5000").parse().expect("valid");
    assert!(failure(&plain).contains(&format!("localhost:{port}")));
}
