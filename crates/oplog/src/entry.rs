//! Entries of one record.

use bunko_bson::{ArrayBuf, BinarySubtype, DocumentBuf, DocumentRef, Timestamp, ValueRef};
use bunko_catalog::{Note, WRITE_HISTORIES};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_store::{Chained, Effect, Moment, Record, Statement};

/// What entries have as `t`: there was no election.
pub const TERM: i64 = -1;
/// The version of the entries' format.
const VERSION: i64 = 2;
/// The version of the format of deltas.
const DELTA_VERSION: i32 = 2;
/// Bytes of a transaction's operations from which on the next one goes into another entry: an entry is a document.
const OPERATIONS_BYTES_MAX: usize = 15 << 20;
/// What most entries take beyond the namespace and `o`.
const ENTRY_BYTES: usize = 192;
/// What the entry says that a start of the server makes.
const STARTED: &str = "server started";

/// An entry, and what stands with it in the log.
#[derive(Clone, Debug)]
pub struct Entry {
    /// As `local.oplog.rs` shows it.
    pub document: DocumentBuf,
    /// Its `ts`; of an operation of a transaction, that of the commit.
    pub at: Timestamp,
    /// Which operation of its transaction it is, from 0; 0 of what is in none.
    pub number: u64,
    /// The document after an update.
    pub after: Option<DocumentBuf>,
    /// The document before the change, where its collection keeps that.
    pub before: Option<DocumentBuf>,
}

/// What a record did, one thing after the other.
pub enum Happening<'h> {
    /// A document was inserted, changed or deleted, outside of transactions.
    Change(Change<'h>),
    /// Anything else.
    Entry(Entry),
}

/// What became of a document, as the record says it: whoever needs no entry has nothing copied.
#[derive(Clone, Copy)]
pub struct Change<'h> {
    /// `op` of the entry: `i`, `u` or `d`.
    pub operation: &'static str,
    /// The collection, with its database.
    pub namespace: &'h str,
    /// That of the collection.
    pub uuid: &'h [u8; 16],
    /// When it happened.
    pub at: Timestamp,
    /// The same by the wall clock, in milliseconds since 1970.
    pub time_ms: u64,
    /// The document after it; of one that is deleted, its `_id` and nothing else.
    pub document: DocumentRef<'h>,
    /// `diff` of an update's entry, where it has one.
    pub delta: Option<DocumentRef<'h>>,
    /// The document before, where its collection keeps that.
    pub before: Option<DocumentRef<'h>>,
    /// Whether it is an insert of a copy of another collection's document.
    pub is_copy: bool,
}

impl Happening<'_> {
    /// As an entry.
    pub fn into_entry(self) -> Entry {
        match self {
            Self::Change(change) => change.to_entry(),
            Self::Entry(entry) => entry,
        }
    }
}

impl Change<'_> {
    /// As an entry.
    pub fn to_entry(&self) -> Entry {
        let Self { operation, document, delta, .. } = *self;
        let id = document.get("_id").filter(|_| operation != "d");
        let changed = delta.map(|delta| DocumentBuf::new().with("$v", DELTA_VERSION).with("diff", delta));
        let o = changed.as_ref().map_or(document, DocumentBuf::as_ref);
        let entry = DocumentBuf::with_capacity(o.len_bytes() + self.namespace.len() + ENTRY_BYTES)
            .with("op", operation)
            .with("ns", self.namespace)
            .with("ui", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: self.uuid })
            .with("o", o);
        let entry = match id {
            Some(id) => entry.with("o2", &DocumentBuf::new().with("_id", id)),
            None => entry,
        };
        let entry = if self.is_copy { entry.with("fromMigrate", true) } else { entry };
        let after = (operation == "u").then(|| document.to_owned());
        let before = self.before.map(DocumentRef::to_owned);
        Entry { after, before, ..ended(entry, self.at, self.time_ms) }
    }
}

/// How a transaction's operations are told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Telling {
    /// Together, in one entry, or in a few where that would be too large.
    Together,
    /// Each in an entry of its own.
    Apart,
}

/// Whether all is there of what a record belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    Whole,
    /// The record has operations of a transaction whose earlier ones were given up with the log before it.
    WithoutBeginning,
}

/// Tells what a record did in the namespaces that are wanted; one that changes no document and no collection did nothing.
/// # Errors
/// `InternalError` for a note of a program that is not this one; those of `each`.
pub(crate) fn tell(
    record: Record<'_>,
    wants: &dyn Fn(&str) -> bool,
    telling: Telling,
    each: &mut dyn FnMut(Happening<'_>) -> Result<()>,
) -> Result<Told> {
    let Record { moment, effects, chained } = record;
    let mut whole = Told::Whole;
    let mut number = 0;
    let mut transaction: Option<Committed<'_>> = None;
    let mut collection = None;
    let (mut deleted, mut delta, mut before) = (None, None, None);
    for statement in effects.noted() {
        let place = number;
        let entry = |operation| Draft { operation, moment, number: place };
        match statement {
            Statement::Note(content) => {
                let unknown = || format!("an unknown note in the record at {} of the log", moment.lsn.0);
                match Note::decode(content).ok_or_else(|| Failure::new(ErrorCode::INTERNAL_ERROR, unknown()))? {
                    Note::Collection { uuid, namespace, are_copies } => {
                        collection = Some((uuid, namespace, are_copies));
                    }
                    Note::Deleted(id) => deleted = Some(id),
                    Note::Modified(told) => delta = Some(told),
                    Note::Before(document) => before = Some(document),
                    Note::Command(command) => {
                        if command.get("ns").and_then(ValueRef::as_str).is_some_and(wants) {
                            each(Happening::Entry(entry("c").of_command(command)))?;
                        }
                        number += 1;
                    }
                    Note::Transaction(told) => {
                        let committed = Committed::new(told, moment, chained);
                        if committed.before > 0 && chained.is_none_or(|chained| chained.previous.is_none()) {
                            whole = Told::WithoutBeginning;
                        }
                        transaction = Some(committed);
                    }
                    Note::Operation { entry, after, before } => {
                        let Some(transaction) = &mut transaction else { continue };
                        match telling {
                            Telling::Together => {
                                let full = transaction.gather(entry, number);
                                full.map_or(Ok(()), |full| each(Happening::Entry(full)))?;
                            }
                            Telling::Apart if entry.get("ns").and_then(ValueRef::as_str).is_some_and(wants) => {
                                let told = transaction.apart(entry, number);
                                let [after, before] = [after, before].map(|image| image.map(DocumentRef::to_owned));
                                each(Happening::Entry(Entry { after, before, ..told }))?;
                            }
                            Telling::Apart => {}
                        }
                        number += 1;
                    }
                    Note::Started => {
                        if wants("") {
                            let message = DocumentBuf::new().with("msg", STARTED);
                            each(Happening::Entry(entry("n").of_nothing(message.as_ref())))?;
                        }
                        number += 1;
                    }
                    Note::Remark(remark) => {
                        if wants("") {
                            each(Happening::Entry(entry("n").of_nothing(remark)))?;
                        }
                        number += 1;
                    }
                }
            }
            // What retryable writes leave.
            Statement::Remember { .. } | Statement::Forget { .. } => {}
            Statement::Effect(effect) => {
                // Records without a name are the catalog's own.
                let Some((uuid, namespace, are_copies)) = &collection else { continue };
                // So are those of retryable writes.
                if effect.keyspace() == WRITE_HISTORIES {
                    continue;
                }
                let (delta, before) = match effect {
                    Effect::PutRecord { .. } | Effect::DeleteRecord { .. } => (delta.take(), before.take()),
                    _ => continue,
                };
                number += 1;
                if !wants(namespace) {
                    deleted = None;
                    continue;
                }
                let (operation, document) = match effect {
                    Effect::PutRecord { document, replaced: None, .. } => ("i", DocumentRef::trusted(document)),
                    Effect::PutRecord { document, .. } => ("u", DocumentRef::trusted(document)),
                    _ => ("d", deleted.take().unwrap_or(DocumentRef::EMPTY)),
                };
                each(Happening::Change(Change {
                    operation,
                    namespace,
                    uuid,
                    at: moment.timestamp(place),
                    time_ms: moment.time_ms,
                    document,
                    delta: delta.filter(|_| operation == "u"),
                    before: before.filter(|_| operation != "i"),
                    is_copy: *are_copies && operation == "i",
                }))?;
            }
        }
    }
    let last = transaction.and_then(Committed::last);
    last.map_or(Ok(()), |last| each(Happening::Entry(last)))?;
    Ok(whole)
}

/// A transaction that the record commits, or a part of which it is, while its operations are read.
/// Source: MongoDB manual, "Production Considerations", "Oplog Size Limit": as many entries as it takes.
struct Committed<'a> {
    /// `lsid` and `txnNumber` among others.
    told: DocumentRef<'a>,
    moment: Moment,
    /// When it was committed.
    at: Timestamp,
    /// Operations in records before this one.
    before: u64,
    is_last: bool,
    gathered: ArrayBuf,
    bytes: usize,
    /// The number of the first operation gathered.
    first: u64,
    count: i64,
    /// The entry before.
    previous: Option<Timestamp>,
}

impl<'a> Committed<'a> {
    fn new(told: DocumentRef<'a>, moment: Moment, chained: Option<Chained>) -> Self {
        let before = match told.get("first") {
            Some(ValueRef::Int64(first)) => first.unsigned_abs(),
            _ => 0,
        };
        Self {
            told,
            moment,
            at: chained.map_or(moment, |chained| chained.end).timestamp(0),
            before,
            is_last: chained.is_none_or(|chained| chained.end == moment),
            gathered: ArrayBuf::new(),
            bytes: 0,
            first: 0,
            count: before as i64,
            // Every part has one entry.
            previous: chained.and_then(|chained| chained.previous).filter(|_| before > 0).map(|part| part.timestamp(0)),
        }
    }

    /// An entry, or its beginning, with what tells whose it is.
    fn with_session(&self, mut entry: DocumentBuf) -> DocumentBuf {
        for name in ["lsid", "txnNumber"] {
            if let Some(value) = self.told.get(name) {
                entry.append(name, value);
            }
        }
        entry
    }

    /// Adds an operation; the entry of those before it where they are enough.
    fn gather(&mut self, operation: DocumentRef<'_>, number: u64) -> Option<Entry> {
        let length = operation.len_bytes();
        let full = (self.bytes > 0 && self.bytes + length > OPERATIONS_BYTES_MAX).then(|| {
            let applied = std::mem::take(&mut self.gathered);
            self.bytes = 0;
            self.entry(&DocumentBuf::new().with("applyOps", &applied).with("partialTxn", true))
        });
        if self.bytes == 0 {
            self.first = number;
        }
        self.gathered.push(operation);
        self.bytes += length;
        self.count += 1;
        full
    }

    /// The entry of what is left.
    fn last(mut self) -> Option<Entry> {
        if self.bytes == 0 {
            return None;
        }
        let mut o = DocumentBuf::new().with("applyOps", &std::mem::take(&mut self.gathered));
        if !self.is_last {
            o.append("partialTxn", true);
        } else if self.previous.is_some() {
            o.append("count", self.count);
        }
        Some(self.entry(&o))
    }

    fn entry(&mut self, o: &DocumentBuf) -> Entry {
        let none = Timestamp { seconds: 0, increment: 0 };
        let previous = DocumentBuf::new().with("ts", self.previous.unwrap_or(none)).with("t", TERM);
        let mut entry = self.with_session(DocumentBuf::new());
        entry.extend(DocumentBuf::new().with("op", "c").with("ns", "admin.$cmd").with("o", o).as_ref());
        let entry =
            Draft { operation: "c", moment: self.moment, number: self.first }.end(entry.with("prevOpTime", &previous));
        self.previous = Some(entry.at);
        entry
    }

    /// An operation as an entry of its own.
    fn apart(&self, operation: DocumentRef<'_>, number: u64) -> Entry {
        let entry = self.with_session(operation.to_owned());
        let entry = Draft { operation: "", moment: self.moment, number: 0 }.end_at(self.at, entry);
        Entry { number: self.before + number, ..entry }
    }
}

/// An entry to be.
struct Draft {
    operation: &'static str,
    moment: Moment,
    number: u64,
}

impl Draft {
    /// `command` has `ns`, `ui` and `o`.
    fn of_command(self, command: DocumentRef<'_>) -> Entry {
        let mut entry = DocumentBuf::new().with("op", self.operation);
        entry.extend(command);
        self.end(entry)
    }

    fn of_nothing(self, message: DocumentRef<'_>) -> Entry {
        let entry = DocumentBuf::new().with("op", self.operation).with("ns", "").with("o", message);
        self.end(entry)
    }

    fn end(self, entry: DocumentBuf) -> Entry {
        let at = self.moment.timestamp(self.number);
        self.end_at(at, entry)
    }

    fn end_at(self, at: Timestamp, entry: DocumentBuf) -> Entry {
        ended(entry, at, self.moment.time_ms)
    }
}

/// An entry with what all end with.
fn ended(entry: DocumentBuf, at: Timestamp, time_ms: u64) -> Entry {
    let document =
        entry.with("ts", at).with("t", TERM).with("v", VERSION).with("wall", ValueRef::DateTime(time_ms as i64));
    Entry { document, at, number: 0, after: None, before: None }
}
