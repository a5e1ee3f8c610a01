//! Commands to a server.

use crate::InspectionError;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, number};
use bunko_client::{ClientError, CommandError};
use bunko_tools::Link;

/// Maximum number of documents of a list that are read.
const LISTED_MAX: usize = 100_000;
/// Bytes of a list after which no further batch is read; a batch has at most 16 MiB.
const LISTED_BYTES_MAX: usize = 256 << 20;

/// A server, and its name in messages.
pub(crate) struct Peer<'a> {
    pub(crate) link: &'a mut dyn Link,
    pub(crate) name: &'a str,
}

/// Databases of the servers themselves.
const OWN_DATABASES: [&str; 2] = ["config", "local"];

/// The beginning of a list.
pub(crate) struct Beginning {
    pub(crate) documents: Vec<DocumentBuf>,
    /// Whether the list goes on.
    is_cut: bool,
}

impl Peer<'_> {
    /// Runs a command, on a secondary too if the connection is to one; the inner error is the server's refusal.
    /// # Errors
    /// The error of the connection.
    pub(crate) fn ask(
        &mut self,
        database: &str,
        command: &DocumentBuf,
    ) -> Result<Result<DocumentBuf, CommandError>, InspectionError> {
        let sent = match self.link.read_preference() {
            Some(preference) => command.clone().with("$readPreference", preference),
            None => command.clone(),
        };
        match self.link.run(database, &sent) {
            Ok(reply) => Ok(Ok(reply)),
            Err(ClientError::Command(refusal)) => Ok(Err(refusal)),
            Err(error) => Err(InspectionError::Connection { server: self.name.to_owned(), error: Box::new(error) }),
        }
    }

    /// The databases with data of users; `admin` may have such collections as well.
    /// # Errors
    /// As [`Self::ask`], and `Refused` if the server does not list them.
    pub(crate) fn databases(&mut self) -> Result<Vec<String>, InspectionError> {
        const LIST: &str = "listDatabases";
        let answer = self.ask("admin", &DocumentBuf::new().with(LIST, 1_i32).with("nameOnly", true))?;
        let reply = answer.map_err(|refusal| self.refused(LIST, refusal))?;
        let list = reply.as_ref().get("databases").and_then(ValueRef::as_array);
        let entries = list.iter().flat_map(|list| list.iter()).filter_map(ValueRef::as_document);
        let names = entries.filter_map(|entry| entry.get("name").and_then(ValueRef::as_str));
        Ok(names.filter(|name| !OWN_DATABASES.contains(name)).map(str::to_owned).collect())
    }

    /// The error for a command without which nothing can be inspected.
    pub(crate) fn refused(&self, command: &'static str, refusal: CommandError) -> InspectionError {
        InspectionError::Refused { server: self.name.to_owned(), command, refusal }
    }

    /// All documents of the cursor that a command makes. The inner error is the server's refusal. A list that is too
    /// long counts as refused, so that no part of it is taken for the whole.
    /// # Errors
    /// As [`Self::ask`], and `Reply` if there is no cursor.
    pub(crate) fn list(
        &mut self,
        database: &str,
        command: &DocumentBuf,
    ) -> Result<Result<Vec<DocumentBuf>, CommandError>, InspectionError> {
        let beginning = match self.beginning(database, command)? {
            Ok(beginning) => beginning,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if beginning.is_cut {
            let message = format!("the list has more than {LISTED_MAX} entries or {} MiB", LISTED_BYTES_MAX >> 20);
            return Ok(Err(CommandError { code: 0, code_name: String::new(), message }));
        }
        Ok(Ok(beginning.documents))
    }

    /// The first documents of the cursor that a command makes: at most about [`LISTED_MAX`], or [`LISTED_BYTES_MAX`].
    /// # Errors
    /// As [`Self::list`].
    pub(crate) fn beginning(
        &mut self,
        database: &str,
        command: &DocumentBuf,
    ) -> Result<Result<Beginning, CommandError>, InspectionError> {
        let (mut documents, mut bytes) = (Vec::new(), 0);
        let mut reply = match self.ask(database, command)? {
            Ok(reply) => reply,
            Err(refusal) => return Ok(Err(refusal)),
        };
        loop {
            let Some(batch) = Batch::of(reply.as_ref()) else {
                return Err(InspectionError::Reply {
                    server: self.name.to_owned(),
                    detail: "a reply without a cursor".into(),
                });
            };
            bytes += reply.len_bytes();
            documents.extend(batch.documents);
            if batch.id == 0 {
                return Ok(Ok(Beginning { documents, is_cut: false }));
            }
            let collection = batch.collection.to_owned();
            if documents.len() >= LISTED_MAX || bytes >= LISTED_BYTES_MAX {
                let ids: ArrayBuf = [batch.id].into_iter().collect();
                let close = DocumentBuf::new().with("killCursors", &collection).with("cursors", &ids);
                self.ask(database, &close)?.ok();
                return Ok(Ok(Beginning { documents, is_cut: true }));
            }
            let more = DocumentBuf::new().with("getMore", batch.id).with("collection", &collection);
            reply = match self.ask(database, &more)? {
                Ok(reply) => reply,
                Err(refusal) => return Ok(Err(refusal)),
            };
        }
    }
}

/// One reply of a cursor.
struct Batch<'r> {
    id: i64,
    collection: &'r str,
    documents: Vec<DocumentBuf>,
}

impl<'r> Batch<'r> {
    fn of(reply: DocumentRef<'r>) -> Option<Self> {
        let cursor = reply.get("cursor")?.as_document()?;
        let id = cursor.get("id").and_then(number::as_i64_exact)?;
        let (_, collection) = cursor.get("ns")?.as_str()?.split_once('.')?;
        let batch = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"))?.as_array()?;
        let documents = batch.iter().filter_map(ValueRef::as_document).map(DocumentRef::to_owned);
        Some(Self { id, collection, documents: documents.collect() })
    }
}
