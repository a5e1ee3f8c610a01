//! The wire client over TLS, all the way to a server: a proxy takes the TLS off, as it does for many deployments.

mod lab;

use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_client::{Connection, Uri};
use bunko_testkit::process::{Server, temporary_dbpath};
use std::path::PathBuf;

const DOCUMENTS: i32 = 2_000;

fn binary() -> PathBuf {
    std::env::var_os("BUNKO_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_bunko").into(), PathBuf::from)
}

#[test]
fn documents_come_back_as_they_went() {
    let dbpath = temporary_dbpath();
    let server = Server::start(&binary(), dbpath.path(), &[]).expect("started");
    let files = temporary_dbpath();
    let ca_file = files.path().join("ca.pem");
    let port = lab::proxy::start_tls(server.address(), &ca_file, |_| None);
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
