//! The wire client over TLS, all the way to a server: a proxy takes the TLS off, as it does for many deployments.

use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_client::{Connection, Uri};
use bunko_testkit::process::{Server, temporary_dbpath};
use bunko_wire::{HEADER_BYTES, needed_bytes};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

const DOCUMENTS: i32 = 2_000;

fn binary() -> PathBuf {
    std::env::var_os("BUNKO_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_bunko").into(), PathBuf::from)
}

/// Starts the proxy with a certificate for `localhost`, whose PEM goes to `ca_file`; returns its port.
fn proxy(backend: SocketAddr, ca_file: &Path) -> u16 {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(ca_file, cert.pem()).expect("written");
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.expect("the defaults").with_no_client_auth();
    let configuration = Arc::new(builder.with_single_cert(vec![cert.der().clone()], key).expect("they fit"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let session = ServerConnection::new(Arc::clone(&configuration)).expect("the configuration is sound");
            // A client that goes away ends its thread by an error.
            thread::spawn(move || relay(StreamOwned::new(session, client), TcpStream::connect(backend)?));
        }
    });
    port
}

/// One request there, one reply back.
fn relay(mut client: impl Read + Write, mut server: TcpStream) -> io::Result<()> {
    loop {
        server.write_all(&read_frame(&mut client)?)?;
        client.write_all(&read_frame(&mut server)?)?;
        client.flush()?;
    }
}

fn read_frame(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; HEADER_BYTES];
    from.read_exact(&mut frame)?;
    frame.resize(needed_bytes(&frame).ok_or(io::ErrorKind::InvalidData)?, 0);
    from.read_exact(&mut frame[HEADER_BYTES..])?;
    Ok(frame)
}

#[test]
fn documents_come_back_as_they_went() {
    let dbpath = temporary_dbpath();
    let server = Server::start(&binary(), dbpath.path(), &[]).expect("started");
    let files = temporary_dbpath();
    let ca_file = files.path().join("ca.pem");
    let port = proxy(server.address(), &ca_file);
    let uri = format!("mongodb://localhost:{port}/?tls=true&tlsCAFile={}", ca_file.display());
    let mut connection = Connection::connect(&uri.parse::<Uri>().expect("valid")).expect("connected");
    let pad = "x".repeat(1_000);
    let document = |id: i32| DocumentBuf::new().with("_id", id).with("pad", &pad);
    let mut documents = ArrayBuf::new();
    for id in 0..DOCUMENTS {
        documents.push(&document(id));
    }
    let insert = DocumentBuf::new().with("insert", "c").with("documents", &documents);
    let reply = connection.run_command("test", insert.as_ref()).expect("inserted");
    assert!(matches!(reply.as_ref().get("n"), Some(ValueRef::Int32(DOCUMENTS))), "{reply:?}");
    let sort = DocumentBuf::new().with("_id", 1_i32);
    let find = DocumentBuf::new().with("find", "c").with("sort", &sort).with("batchSize", 100_i32);
    let mut expected = 0;
    for found in connection.find_all("test", find.as_ref()).expect("a cursor") {
        assert_eq!(found.expect("a document"), document(expected));
        expected += 1;
    }
    assert_eq!(expected, DOCUMENTS);
}
