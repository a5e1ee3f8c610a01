//! Collections behind a [`Server`] without a socket. It answers only the commands of a dump, and breaks connections on
//! demand.
//!
//! Other tests use the answers of a real server; these test its failures.

use bunko_bson::order::compare;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef};
use bunko_client::ClientError;
use bunko_tools::{Command, Interrupted, Link, Server};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The fault, and the batch at which it happens (counted over all links from 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// The connection breaks in place of every batch whose number is a multiple of this one.
    DisconnectEvery(u64),
    /// The connection breaks in place of that batch.
    DisconnectAt(u64),
    /// The user interrupts the dump while that batch is in flight.
    InterruptAt(u64),
}

pub struct Collection {
    pub database: &'static str,
    /// The entry in `listCollections`.
    pub listed: DocumentBuf,
    pub indexes: Vec<DocumentBuf>,
    pub documents: Vec<DocumentBuf>,
    /// Size in `collStats`, which decides how the collection is cut.
    pub size_claimed: i64,
}

#[derive(Default)]
pub struct Shelf {
    pub collections: Arc<Vec<Collection>>,
    pub fault: Fault,
    /// The read preference without which it refuses reads, as a secondary does; `None` for a server that serves all
    /// reads.
    pub read_preference: Option<DocumentBuf>,
    pub interrupted: Interrupted,
    /// Number of batches that all links have returned.
    pub batches: Arc<AtomicU64>,
}

impl Collection {
    /// A collection with documents `{_id: 0..count, pad}` of about `pad_bytes`.
    pub fn numbered(database: &'static str, name: &str, count: i32, pad_bytes: usize) -> Self {
        let pad = "x".repeat(pad_bytes);
        let documents: Vec<_> = (0..count).map(|id| DocumentBuf::new().with("_id", id).with("pad", &pad)).collect();
        let key = DocumentBuf::new().with("_id", 1);
        Self {
            database,
            listed: DocumentBuf::new()
                .with("name", name)
                .with("type", "collection")
                .with("options", DocumentRef::EMPTY),
            indexes: vec![DocumentBuf::new().with("v", 2).with("key", &key).with("name", "_id_")],
            size_claimed: documents.iter().map(|document| document.as_ref().len_bytes() as i64).sum(),
            documents,
        }
    }

    fn name(&self) -> &str {
        self.listed.as_ref().get("name").and_then(ValueRef::as_str).expect("a name")
    }
}

impl Server for Shelf {
    fn connect(&self) -> Result<Box<dyn Link>, ClientError> {
        Ok(Box::new(ShelfLink {
            collections: Arc::clone(&self.collections),
            fault: self.fault,
            read_preference: self.read_preference.clone(),
            interrupted: Arc::clone(&self.interrupted),
            batches: Arc::clone(&self.batches),
            cursors: HashMap::new(),
            replies: VecDeque::new(),
            current: DocumentBuf::new(),
        }))
    }

    fn name(&self) -> &'static str {
        "shelf"
    }
}

struct ShelfLink {
    collections: Arc<Vec<Collection>>,
    fault: Fault,
    read_preference: Option<DocumentBuf>,
    interrupted: Interrupted,
    batches: Arc<AtomicU64>,
    cursors: HashMap<i64, VecDeque<DocumentBuf>>,
    replies: VecDeque<DocumentBuf>,
    current: DocumentBuf,
}

impl Link for ShelfLink {
    fn send(&mut self, command: Command<'_>) -> Result<(), ClientError> {
        let reply = self.answer(command);
        self.replies.push_back(reply);
        Ok(())
    }

    fn receive(&mut self) -> Result<DocumentRef<'_>, ClientError> {
        self.current = self.replies.pop_front().expect("a reply is due");
        let cursor = self.current.as_ref().get("cursor").and_then(ValueRef::as_document);
        if cursor.is_some_and(|cursor| cursor.get("nextBatch").is_some()) {
            let batch = self.batches.fetch_add(1, Ordering::Relaxed) + 1;
            let is_lost = match self.fault {
                Fault::DisconnectEvery(every) => batch.is_multiple_of(every),
                Fault::DisconnectAt(at) => batch == at,
                Fault::InterruptAt(at) => {
                    self.interrupted.fetch_or(batch == at, Ordering::Relaxed);
                    false
                }
                Fault::None => false,
            };
            if is_lost {
                let cause = io::ErrorKind::ConnectionReset.into();
                return Err(ClientError::Disconnected { address: "shelf".into(), cause });
            }
        }
        Ok(self.current.as_ref())
    }

    fn in_flight(&self) -> usize {
        self.replies.len()
    }

    fn read_preference(&self) -> Option<&DocumentBuf> {
        self.read_preference.as_ref()
    }
}

fn refusal(code: i32, message: &str) -> DocumentBuf {
    DocumentBuf::new().with("ok", 0.0).with("code", code).with("errmsg", message)
}

impl ShelfLink {
    fn answer(&mut self, command: Command<'_>) -> DocumentBuf {
        let first = command.body.first().expect("a command");
        let collections = Arc::clone(&self.collections);
        let of_name = |name: ValueRef<'_>| {
            let name = name.as_str().unwrap_or_default();
            collections.iter().find(|each| each.database == command.database && each.name() == name)
        };
        let ok = DocumentBuf::new().with("ok", 1.0);
        let said = command.body.get("$readPreference").and_then(ValueRef::as_document);
        let is_of_cursor = ["getMore", "killCursors"].contains(&first.name);
        if !is_of_cursor && said != self.read_preference.as_ref().map(DocumentBuf::as_ref) {
            return refusal(13435, &format!("{}: not primary", first.name));
        }
        match first.name {
            "buildInfo" => ok.with("version", "8.0.0"),
            "listDatabases" => {
                let mut names: Vec<_> = collections.iter().map(|each| each.database).collect();
                names.dedup();
                let names = names.into_iter().map(|name| DocumentBuf::new().with("name", name));
                ok.with("databases", &names.collect::<Vec<_>>().iter().collect::<ArrayBuf>())
            }
            "listCollections" => {
                let listed = collections.iter().filter(|each| each.database == command.database);
                let filter = document(command.body, "filter");
                let listed = listed.map(|each| each.listed.clone()).filter(|each| matches(filter, each.as_ref()));
                self.open_cursor(listed.collect(), 100, "x.$cmd.listCollections")
            }
            "listIndexes" => match of_name(first.value) {
                Some(collection) => self.open_cursor(collection.indexes.clone(), 100, "x.$cmd.listIndexes.y"),
                None => refusal(26, "ns does not exist"),
            },
            "collStats" => match of_name(first.value) {
                Some(collection) => {
                    ok.with("size", collection.size_claimed).with("count", collection.documents.len() as i64)
                }
                None => refusal(26, "ns does not exist"),
            },
            "find" => {
                let documents = of_name(first.value).map_or(&[][..], |collection| &collection.documents);
                let found = find(documents, command.body);
                let count = integer(command.body, "batchSize").unwrap_or(101);
                self.open_cursor(found, count, &format!("{}.{}", command.database, first.value.as_str().unwrap_or("")))
            }
            "getMore" => {
                let ValueRef::Int64(id) = first.value else { return refusal(9, "no cursor id") };
                match self.cursors.remove(&id) {
                    Some(rest) => {
                        self.batch(rest, integer(command.body, "batchSize").unwrap_or(1), id, "nextBatch", "x.y")
                    }
                    None => refusal(43, "cursor not found"),
                }
            }
            other => refusal(59, other),
        }
    }

    fn open_cursor(&mut self, documents: Vec<DocumentBuf>, count: usize, namespace: &str) -> DocumentBuf {
        let id = self.batches.load(Ordering::Relaxed) as i64 * 1000 + self.cursors.len() as i64 + 1;
        self.batch(documents.into(), count, id, "firstBatch", namespace)
    }

    fn batch(
        &mut self,
        mut rest: VecDeque<DocumentBuf>,
        count: usize,
        id: i64,
        name: &str,
        namespace: &str,
    ) -> DocumentBuf {
        let batch: ArrayBuf = rest.drain(..count.min(rest.len())).collect::<Vec<_>>().iter().collect();
        let mut cursor = DocumentBuf::new().with(name, &batch).with("ns", namespace);
        cursor.append("id", if rest.is_empty() { 0 } else { id });
        if !rest.is_empty() {
            self.cursors.insert(id, rest);
        }
        DocumentBuf::new().with("cursor", &cursor).with("ok", 1.0)
    }
}

fn document<'a>(command: DocumentRef<'a>, name: &str) -> DocumentRef<'a> {
    command.get(name).and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY)
}

fn integer(command: DocumentRef<'_>, name: &str) -> Option<usize> {
    bunko_bson::number::truncate_to_i64(command.get(name)?).and_then(|number| usize::try_from(number).ok())
}

fn find(documents: &[DocumentBuf], command: DocumentRef<'_>) -> Vec<DocumentBuf> {
    let filter = document(command, "filter");
    let mut found: Vec<_> = documents.iter().filter(|each| matches(filter, each.as_ref())).cloned().collect();
    if let Some(sort) = document(command, "sort").first() {
        let key = |document: &DocumentBuf| document.as_ref().get(sort.name).unwrap_or(ValueRef::Null).to_value();
        // For $natural all keys are equal, and the stable sort keeps the order.
        found.sort_by(|left, right| compare(key(left).as_ref(), key(right).as_ref()));
        if compare(sort.value, ValueRef::Int32(0)).is_lt() {
            found.reverse();
        }
    }
    found.truncate(integer(command, "limit").unwrap_or(usize::MAX));
    found
}

fn matches(filter: DocumentRef<'_>, document: DocumentRef<'_>) -> bool {
    filter.iter().all(|field| {
        let value = document.get(field.name).unwrap_or(ValueRef::Null);
        let ordering = |operand| compare(value, operand);
        match field.value {
            ValueRef::Document(bounds) => bounds.iter().all(|bound| match bound.name {
                "$gt" => ordering(bound.value).is_gt(),
                "$gte" => ordering(bound.value).is_ge(),
                "$lt" => ordering(bound.value).is_lt(),
                "$lte" => ordering(bound.value).is_le(),
                _ => false,
            }),
            operand => ordering(operand).is_eq(),
        }
    })
}
