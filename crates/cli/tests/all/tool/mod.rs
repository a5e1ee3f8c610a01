//! `bunko dump` and `bunko restore` as processes, and the files that they are tested with.

use crate::peer::binary;
use bunko_archive::archive::{Header, NamespaceEntry, Prelude, begin_block, end_block, end_of_namespace};
use bunko_archive::crc64;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use bunko_client::{Connection, Uri, check_reply};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Files made by mongodump.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../archive/tests/fixtures").join(name)
}

/// A tool for a server; only its result is printed.
pub fn command(tool: &str, address: SocketAddr, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args([tool, "--host", &address.ip().to_string(), "--port", &address.port().to_string()]).args(arguments);
    command
}

/// Runs a tool to its end.
pub fn run(tool: &str, address: SocketAddr, arguments: &[&str]) -> Output {
    command(tool, address, arguments).output().expect("the tool runs")
}

/// Runs a tool that must succeed; returns its standard error.
pub fn succeed(tool: &str, address: SocketAddr, arguments: &[&str]) -> String {
    let output = run(tool, address, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{tool} {arguments:?}: {}\n{said}", output.status);
    said
}

/// Runs a tool that must fail; returns its standard error.
pub fn fail(tool: &str, address: SocketAddr, arguments: &[&str]) -> String {
    let output = run(tool, address, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{tool} {arguments:?}\n{said}");
    said
}

/// Starts a tool that will be killed.
pub fn spawn(tool: &str, address: SocketAddr, arguments: &[&str]) -> Child {
    command(tool, address, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the tool runs")
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// `--archive=PATH`.
pub fn archive(path: &Path) -> String {
    format!("--archive={}", text(path))
}

pub fn connect(address: SocketAddr) -> Connection {
    let uri: Uri = format!("mongodb://{address}/?directConnection=true").parse().expect("a valid URI");
    Connection::connect(&uri).expect("the server accepts connections")
}

/// Inserts documents, a few megabytes at a time.
pub fn insert(connection: &mut Connection, database: &str, collection: &str, documents: &[DocumentBuf]) {
    for documents in documents.chunks(1000) {
        let documents: ArrayBuf = documents.iter().collect();
        let insert = DocumentBuf::new().with("insert", collection).with("documents", &documents);
        let reply = connection.run_command(database, insert.as_ref()).expect("inserted");
        check_reply(reply.as_ref()).expect("inserted");
    }
}

/// All documents of a collection, ordered by `_id`.
pub fn documents(connection: &mut Connection, database: &str, collection: &str) -> Vec<DocumentBuf> {
    let find = DocumentBuf::new().with("find", collection).with("sort", &DocumentBuf::new().with("_id", 1));
    let found = connection.find_all(database, find.as_ref()).expect("readable");
    found.collect::<Result<_, _>>().expect("readable")
}

/// Names of a database's collections, ordered.
pub fn collections(connection: &mut Connection, database: &str) -> Vec<String> {
    let list = DocumentBuf::new().with("listCollections", 1);
    let listed = connection.find_all(database, list.as_ref()).expect("listed");
    let name = |document: DocumentBuf| document.as_ref().get("name").and_then(ValueRef::as_str).map(str::to_owned);
    let mut names: Vec<_> = listed.filter_map(|document| name(document.expect("listed"))).collect();
    names.sort();
    names
}

/// Drops a database.
pub fn drop_database(connection: &mut Connection, database: &str) {
    let drop = DocumentBuf::new().with("dropDatabase", 1);
    connection.run_command(database, drop.as_ref()).expect("dropped");
}

/// A namespace of a handmade archive.
#[derive(Default)]
pub struct Dumped {
    pub database: &'static str,
    pub name: &'static str,
    pub kind: &'static str,
    /// The namespace's name in its blocks.
    pub block: &'static str,
    pub metadata: String,
    pub documents: Vec<u8>,
}

/// Writes an archive as mongodump does, one namespace after the other.
pub fn write_archive(path: &Path, namespaces: &[Dumped]) {
    let entry = |dumped: &Dumped| NamespaceEntry {
        database: dumped.database.to_owned(),
        collection: dumped.name.to_owned(),
        kind: dumped.kind.to_owned(),
        metadata: dumped.metadata.clone(),
        ..NamespaceEntry::default()
    };
    let mut bytes = Prelude { header: Header::default(), namespaces: namespaces.iter().map(entry).collect() }.encode();
    for Dumped { database, block, documents, .. } in namespaces {
        begin_block(&mut bytes, database, block);
        bytes.extend(documents);
        end_block(&mut bytes);
        end_of_namespace(&mut bytes, database, block, crc64::checksum(documents));
    }
    std::fs::write(path, bytes).expect("written");
}
