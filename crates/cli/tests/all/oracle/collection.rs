//! The collections that are written to: one for each way in which documents are stored.

use super::{connect, durable_engines, is_tested};
use bunko_bson::{ArrayBuf, DocumentBuf};
use bunko_client::{ClientError, CommandError, Connection};
use bunko_testkit::shell;
use std::net::SocketAddr;

pub const DATABASE: &str = "crash";

/// A collection and its creation options.
#[derive(Clone, Debug)]
pub struct Collection {
    pub name: String,
    options: DocumentBuf,
}

impl Collection {
    fn new(name: &str, options: &str) -> Self {
        let options = shell::parse_document(options).expect("shell syntax");
        Self { name: name.to_owned(), options }
    }

    /// Creates the collection with a secondary index, which must agree with the documents too. An existing one is kept.
    /// # Errors
    /// The server's refusal, or the connection's error.
    pub fn create(&self, connection: &mut Connection, write_concern: &DocumentBuf) -> Result<(), ClientError> {
        let mut create = DocumentBuf::new().with("create", &*self.name).with("writeConcern", write_concern);
        for option in self.options.as_ref() {
            create.append(option.name, option.value);
        }
        match connection.run_command(DATABASE, create.as_ref()) {
            Err(ClientError::Command(error)) if error.code == CommandError::NAMESPACE_EXISTS => {}
            other => drop(other?),
        }
        let key = DocumentBuf::new().with("n", 1);
        let index = DocumentBuf::new().with("key", &key).with("name", "n_1").with("unique", true);
        let indexes: ArrayBuf = [&index].into_iter().collect();
        let create = DocumentBuf::new()
            .with("createIndexes", &*self.name)
            .with("indexes", &indexes)
            .with("writeConcern", write_concern);
        connection.run_command(DATABASE, create.as_ref()).map(drop)
    }
}

/// All collections. The last is dropped and created again while the others are written to.
pub fn collections() -> Vec<Collection> {
    let mut collections = vec![Collection::new("plain", "{}")];
    // All engines are used, whichever is the server's own: one log and one manifest serve them together.
    for engine in durable_engines() {
        collections.push(Collection::new(&format!("in_{engine}"), &format!("{{storageEngine: {{{engine}: {{}}}}}}")));
    }
    if is_tested("lsm") {
        collections.extend([
            Collection::new("zstd", "{storageEngine: {lsm: {blockCompressor: 'zstd', compressionLevel: 1}}}"),
            Collection::new("stored", "{storageEngine: {lsm: {blockCompressor: 'none'}}}"),
        ]);
    }
    collections.push(Collection::new("recreated", "{}"));
    collections
}

/// Creates the collections for the writers.
pub fn prepare(address: SocketAddr) {
    let mut connection = connect(address);
    let write_concern = DocumentBuf::new().with("w", 1).with("j", true);
    for collection in collections() {
        collection
            .create(&mut connection, &write_concern)
            .unwrap_or_else(|error| panic!("{}: {error}", collection.name));
    }
}

/// The command `compact`, which compacts all collections whichever it names; `force` allows it on a primary.
pub fn compact_command() -> DocumentBuf {
    DocumentBuf::new().with("compact", &*collections()[0].name).with("force", true)
}

/// Runs `compact`.
/// # Errors
/// The server's error.
pub fn compact(address: SocketAddr) -> Result<(), String> {
    let reply = connect(address).run_command(DATABASE, compact_command().as_ref());
    reply.map(drop).map_err(|error| format!("compact: {error}"))
}
