//! The oplog entries of one log record.

use bunko_bson::{ArrayBuf, BinarySubtype, DocumentBuf, DocumentRef, Timestamp, ValueRef};
use bunko_catalog::{Note, WRITE_HISTORIES};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_store::{Chained, Effect, Moment, Record, Statement};

/// The value of `t` in entries that a standalone server wrote.
const NO_TERM: i64 = -1;
/// Version of the entry format.
const VERSION: i64 = 2;
/// Version of the delta format.
const DELTA_VERSION: i32 = 2;
/// Maximum number of bytes of operations in one entry of a transaction, unless it has a single operation: an entry is a
/// document.
const OPERATIONS_BYTES_MAX: usize = 15 << 20;
/// Approximate bytes of an entry without its namespace and `o`.
const ENTRY_BYTES: usize = 192;
/// The message of the entry for a start of the server.
const STARTED: &str = "server started";

/// The value of `t` in entries of a term.
pub fn shown_term(term: Option<u64>) -> i64 {
    term.map_or(NO_TERM, |term| term as i64)
}

/// An entry, with further data from the log.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The entry as `local.oplog.rs` shows it.
    pub document: DocumentBuf,
    /// The entry's `ts`; for an operation of a transaction, the `ts` of the commit.
    pub at: Timestamp,
    /// The number of the operation within its transaction, from 0; 0 outside transactions.
    pub number: u64,
    /// The document after an update.
    pub after: Option<DocumentBuf>,
    /// The document before the change, if its collection keeps that.
    pub before: Option<DocumentBuf>,
}

/// An event of a record.
pub enum Happening<'h> {
    /// An insert, a change or a deletion of a document outside transactions.
    Change(Change<'h>),
    /// Any other event.
    Entry(Entry),
}

/// A change of a document, borrowed from the log record: a reader that needs no entry copies nothing.
#[derive(Clone, Copy)]
pub struct Change<'h> {
    /// `op` of the entry: `i`, `u` or `d`.
    pub operation: &'static str,
    /// The collection, with its database.
    pub namespace: &'h str,
    /// The UUID of the collection.
    pub uuid: &'h [u8; 16],
    /// The time of the change.
    pub at: Timestamp,
    /// `t` of the entry.
    pub term: i64,
    /// The wall-clock time of the change, in milliseconds since 1970.
    pub time_ms: u64,
    /// The document after the change; for a deletion, only its `_id`.
    pub document: DocumentRef<'h>,
    /// `diff` of an update's entry; `None` if the entry has the whole document.
    pub delta: Option<DocumentRef<'h>>,
    /// The document before the change, if its collection keeps that.
    pub before: Option<DocumentRef<'h>>,
    /// Whether the change is the insert of a copy of another collection's document.
    pub is_copy: bool,
}

impl Happening<'_> {
    /// The event as an entry.
    pub fn into_entry(self) -> Entry {
        match self {
            Self::Change(change) => change.to_entry(),
            Self::Entry(entry) => entry,
        }
    }
}

impl Change<'_> {
    /// The change as an entry.
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
        Entry { after, before, ..ended(entry, self.at, self.term, self.time_ms) }
    }
}

/// How a transaction's operations are reported.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Telling {
    /// In one entry, or in several if it would be too large.
    Together,
    /// In an entry for each operation.
    Apart,
}

/// Whether the transaction of a record is complete in the log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    Whole,
    /// The record has operations of a transaction whose earlier ones were dropped with an older part of the log.
    WithoutBeginning,
}

/// Calls `each` with the events of a record in the namespaces that `wants` accepts. A record that changes no document
/// and no collection has none.
/// # Errors
/// `InternalError` for a note that this version does not know; as `each`.
pub(crate) fn tell(
    record: Record<'_>,
    wants: &dyn Fn(&str) -> bool,
    telling: Telling,
    each: &mut Each<'_>,
) -> Result<Told> {
    let Record { moment, effects, chained, term } = record;
    let mut teller = Teller {
        moment,
        term: shown_term(term),
        chained,
        wants,
        telling,
        whole: Told::Whole,
        number: 0,
        transaction: None,
        collection: None,
        of_next_change: OfNextChange::default(),
    };
    for statement in effects.noted() {
        match statement {
            Statement::Note(content) => {
                let unknown = || format!("an unknown note in the record at {} of the log", moment.lsn.0);
                let note = Note::decode(content).ok_or_else(|| Failure::new(ErrorCode::INTERNAL_ERROR, unknown()))?;
                teller.note(note, each)?;
            }
            Statement::Effect(effect) => teller.effect(effect, each)?,
            // Retryable writes remember values, which are no events.
            Statement::Remember { .. } | Statement::Forget { .. } => {}
        }
    }
    let last = teller.transaction.and_then(Committed::last);
    last.map_or(Ok(()), |last| each(Happening::Entry(last)))?;
    Ok(teller.whole)
}

/// Reads the statements of one record.
struct Teller<'a> {
    moment: Moment,
    term: i64,
    chained: Option<Chained>,
    wants: &'a dyn Fn(&str) -> bool,
    telling: Telling,
    whole: Told,
    /// Number of the next event in the record.
    number: u64,
    transaction: Option<Committed<'a>>,
    /// UUID and name of the collection that the next effects belong to, and whether its inserts are copies.
    collection: Option<([u8; 16], &'a str, bool)>,
    of_next_change: OfNextChange<'a>,
}

/// Notes on the change that follows them.
#[derive(Default)]
struct OfNextChange<'a> {
    deleted_id: Option<DocumentRef<'a>>,
    delta: Option<DocumentRef<'a>>,
    before: Option<DocumentRef<'a>>,
}

type Each<'e> = dyn FnMut(Happening<'_>) -> Result<()> + 'e;

impl<'a> Teller<'a> {
    fn note(&mut self, note: Note<'a>, each: &mut Each<'_>) -> Result<()> {
        match note {
            Note::Collection { uuid, namespace, are_copies } => self.collection = Some((uuid, namespace, are_copies)),
            Note::Deleted(id) => self.of_next_change.deleted_id = Some(id),
            Note::Modified(told) => self.of_next_change.delta = Some(told),
            Note::Before(document) => self.of_next_change.before = Some(document),
            Note::Command(command) => {
                let draft = self.draft("c");
                if self.wants_namespace_of(command) {
                    each(Happening::Entry(draft.of_command(command)))?;
                }
            }
            Note::Transaction(told) => {
                let committed = Committed::new(told, (self.moment, self.term), self.chained);
                if committed.before > 0 && self.chained.is_none_or(|chained| chained.previous.is_none()) {
                    self.whole = Told::WithoutBeginning;
                }
                self.transaction = Some(committed);
            }
            Note::Operation { entry, after, before } => self.operation(entry, [after, before], each)?,
            Note::Started => self.remark(DocumentBuf::new().with("msg", STARTED).as_ref(), each)?,
            Note::Remark(remark) => self.remark(remark, each)?,
        }
        Ok(())
    }

    fn draft(&mut self, operation: &'static str) -> Draft {
        let draft = Draft { operation, moment: self.moment, term: self.term, number: self.number };
        self.number += 1;
        draft
    }

    fn wants_namespace_of(&self, entry: DocumentRef<'_>) -> bool {
        entry.get("ns").and_then(ValueRef::as_str).is_some_and(self.wants)
    }

    /// Passes on a no-op entry (`op: "n"`), which the server itself writes and which has no namespace.
    fn remark(&mut self, remark: DocumentRef<'_>, each: &mut Each<'_>) -> Result<()> {
        let draft = self.draft("n");
        if (self.wants)("") { each(Happening::Entry(draft.of_nothing(remark))) } else { Ok(()) }
    }

    /// An operation of a transaction, with the document after and before it.
    fn operation(
        &mut self,
        entry: DocumentRef<'a>,
        images: [Option<DocumentRef<'a>>; 2],
        each: &mut Each<'_>,
    ) -> Result<()> {
        let is_wanted = self.telling == Telling::Together || self.wants_namespace_of(entry);
        let Some(transaction) = &mut self.transaction else { return Ok(()) };
        let number = self.number;
        self.number += 1;
        match self.telling {
            Telling::Together => {
                let full = transaction.gather(entry, number);
                full.map_or(Ok(()), |full| each(Happening::Entry(full)))
            }
            Telling::Apart if is_wanted => {
                let told = transaction.apart(entry, number);
                let [after, before] = images.map(|image| image.map(DocumentRef::to_owned));
                each(Happening::Entry(Entry { after, before, ..told }))
            }
            Telling::Apart => Ok(()),
        }
    }

    fn effect(&mut self, effect: Effect<'_>, each: &mut Each<'_>) -> Result<()> {
        // Effects before any collection's name are on the catalog's own records.
        let Some((uuid, namespace, are_copies)) = self.collection else { return Ok(()) };
        // Record stores of retryable writes are internal, too.
        let is_change = matches!(effect, Effect::PutRecord { .. } | Effect::DeleteRecord { .. });
        if effect.keyspace() == WRITE_HISTORIES || !is_change {
            return Ok(());
        }
        let at = self.moment.timestamp(self.number);
        self.number += 1;
        let (delta, before) = (self.of_next_change.delta.take(), self.of_next_change.before.take());
        if !(self.wants)(namespace) {
            self.of_next_change.deleted_id = None;
            return Ok(());
        }
        let (operation, document) = match effect {
            Effect::PutRecord { document, replaced: None, .. } => ("i", DocumentRef::trusted(document)),
            Effect::PutRecord { document, .. } => ("u", DocumentRef::trusted(document)),
            _ => ("d", self.of_next_change.deleted_id.take().unwrap_or(DocumentRef::EMPTY)),
        };
        each(Happening::Change(Change {
            operation,
            namespace,
            uuid: &uuid,
            at,
            term: self.term,
            time_ms: self.moment.time_ms,
            document,
            delta: delta.filter(|_| operation == "u"),
            before: before.filter(|_| operation != "i"),
            is_copy: are_copies && operation == "i",
        }))
    }
}

/// A transaction whose commit, or part of a commit, is the current record, while its operations are read.
/// Source: MongoDB manual, "Production Considerations", "Oplog Size Limit": a transaction has as many entries as
/// needed.
struct Committed<'a> {
    /// The header note, with `lsid` and `txnNumber`.
    told: DocumentRef<'a>,
    moment: Moment,
    term: i64,
    /// The time of the commit.
    at: Timestamp,
    /// Number of operations in earlier records.
    before: u64,
    is_last: bool,
    gathered: ArrayBuf,
    bytes: usize,
    /// The number of the first operation gathered.
    first: u64,
    count: i64,
    /// The time of the previous entry.
    previous: Option<Timestamp>,
}

impl<'a> Committed<'a> {
    fn new(told: DocumentRef<'a>, (moment, term): (Moment, i64), chained: Option<Chained>) -> Self {
        let before = match told.get("first") {
            Some(ValueRef::Int64(first)) => first.unsigned_abs(),
            _ => 0,
        };
        Self {
            told,
            moment,
            term,
            at: chained.map_or(moment, |chained| chained.end).timestamp(0),
            before,
            is_last: chained.is_none_or(|chained| chained.end == moment),
            gathered: ArrayBuf::new(),
            bytes: 0,
            first: 0,
            count: before as i64,
            // Every part of the chain has one entry, at the part's first timestamp.
            previous: chained.and_then(|chained| chained.previous).filter(|_| before > 0).map(|part| part.timestamp(0)),
        }
    }

    /// Adds the session's fields to an entry, or to its beginning.
    fn with_session(&self, mut entry: DocumentBuf) -> DocumentBuf {
        for name in ["lsid", "txnNumber"] {
            if let Some(value) = self.told.get(name) {
                entry.append(name, value);
            }
        }
        entry
    }

    /// Adds an operation. Returns the entry of the operations before it if they fill one.
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

    /// The entry of the remaining operations.
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
        // As in MongoDB, a term of -1 says that there is no previous entry.
        let term = self.previous.map_or(NO_TERM, |_| self.term);
        let previous = DocumentBuf::new().with("ts", self.previous.unwrap_or(none)).with("t", term);
        let mut entry = self.with_session(DocumentBuf::new());
        entry.extend(DocumentBuf::new().with("op", "c").with("ns", "admin.$cmd").with("o", o).as_ref());
        let entry = Draft { operation: "c", moment: self.moment, term: self.term, number: self.first }
            .end(entry.with("prevOpTime", &previous));
        self.previous = Some(entry.at);
        entry
    }

    /// An operation as an entry of its own.
    fn apart(&self, operation: DocumentRef<'_>, number: u64) -> Entry {
        let entry = self.with_session(operation.to_owned());
        let entry = Draft { operation: "", moment: self.moment, term: self.term, number: 0 }.end_at(self.at, entry);
        Entry { number: self.before + number, ..entry }
    }
}

/// An unfinished entry.
struct Draft {
    operation: &'static str,
    moment: Moment,
    term: i64,
    number: u64,
}

impl Draft {
    /// Makes an entry of a command with `ns`, `ui` and `o`.
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
        ended(entry, at, self.term, self.moment.time_ms)
    }
}

/// Adds the fields that end every entry.
fn ended(entry: DocumentBuf, at: Timestamp, term: i64, time_ms: u64) -> Entry {
    let document =
        entry.with("ts", at).with("t", term).with("v", VERSION).with("wall", ValueRef::DateTime(time_ms as i64));
    Entry { document, at, number: 0, after: None, before: None }
}
