//! Gives every test of the Rust driver an empty database on the server that BUNKO_URI names.

use mongodb::bson::{Bson, Document, doc};
use mongodb::error::{Error, ErrorKind, WriteFailure};
use mongodb::options::ClientOptions;
use mongodb::sync::{Client, Collection, Database};

/// An empty database, dropped when the test ends. Tests run at the same time, so each names its own.
pub struct Scratch {
    pub client: Client,
    pub database: Database,
}

impl Scratch {
    pub fn new(test: &str) -> Self {
        Self::with(test, |_| {})
    }

    /// With more settings than the URI's.
    pub fn with(test: &str, configure: impl FnOnce(&mut ClientOptions)) -> Self {
        let uri = std::env::var("BUNKO_URI").expect("BUNKO_URI names the server");
        let mut options = ClientOptions::parse(uri).run().unwrap();
        configure(&mut options);
        let client = Client::with_options(options).unwrap();
        let database = client.database(&format!("clients_rust_{test}"));
        database.drop().run().unwrap();
        Self { client, database }
    }

    pub fn things(&self) -> Collection<Document> {
        self.database.collection("things")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A failed test shall show its own failure, not this one's.
        let _ = self.database.drop().run();
    }
}

/// The server's code: of the command, of the first write error, or of the write concern.
pub fn code(error: &Error) -> Option<i32> {
    match error.kind.as_ref() {
        ErrorKind::Command(command) => Some(command.code),
        ErrorKind::Write(WriteFailure::WriteError(error)) => Some(error.code),
        ErrorKind::Write(WriteFailure::WriteConcernError(error)) => Some(error.code),
        ErrorKind::InsertMany(many) => many.write_errors.as_ref()?.first().map(|error| error.code),
        _ => None,
    }
}

pub fn identifiers(count: i32) -> Vec<Document> {
    (0..count).map(|i| doc! { "_id": i }).collect()
}

/// All documents of a collection in the order of their `_id`.
pub fn sorted(things: &Collection<Document>) -> Vec<Document> {
    things.find(doc! {}).sort(doc! { "_id": 1 }).run().unwrap().map(Result::unwrap).collect()
}

/// The documents of an array literal: `documents(bson!([{...}, {...}]))`.
pub fn documents(array: Bson) -> Vec<Document> {
    let Bson::Array(array) = array else { panic!("not an array: {array}") };
    array.into_iter().map(|document| document.as_document().unwrap().clone()).collect()
}
