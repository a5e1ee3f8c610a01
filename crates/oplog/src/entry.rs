//! Entries of one record.

use bunko_bson::{BinarySubtype, DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::Note;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_store::{Effect, Effects, Moment, Statement};

/// What entries have as `t`: there was no election.
const TERM: i64 = -1;
/// The version of the entries' format.
const VERSION: i64 = 2;
/// What the entry says that a start of the server makes.
const STARTED: &str = "server started";

/// Adds the entries of a record; one that changes no document and no collection has none.
/// # Errors
/// `InternalError` for a note of a program that is not this one.
pub(crate) fn put_entries(moment: Moment, effects: Effects<'_>, into: &mut Vec<DocumentBuf>) -> Result<()> {
    let before = into.len();
    let mut collection = None;
    let mut deleted = None;
    for statement in effects.noted() {
        let number = (into.len() - before) as u64;
        let entry = |operation| Entry { operation, moment, number };
        match statement {
            Statement::Note(content) => {
                let unknown = || format!("an unknown note in the record at {} of the log", moment.lsn.0);
                match Note::decode(content).ok_or_else(|| Failure::new(ErrorCode::INTERNAL_ERROR, unknown()))? {
                    Note::Collection { uuid, namespace } => collection = Some((uuid, namespace)),
                    Note::Deleted(id) => deleted = Some(id),
                    Note::Command(command) => into.push(entry("c").of_command(command)),
                    Note::Started => into.push(entry("n").of_nothing()),
                }
            }
            Statement::Effect(effect) => {
                // Records without a name are the catalog's own.
                let Some((uuid, namespace)) = &collection else { continue };
                match effect {
                    Effect::PutRecord { document, replaced, .. } => {
                        let document = DocumentRef::trusted(document);
                        let operation = if replaced.is_some() { "u" } else { "i" };
                        into.push(entry(operation).of_document(uuid, namespace, document));
                    }
                    Effect::DeleteRecord { .. } => {
                        let id = deleted.take().unwrap_or(DocumentRef::EMPTY);
                        into.push(entry("d").of_document(uuid, namespace, id));
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

/// An entry to be.
struct Entry {
    operation: &'static str,
    moment: Moment,
    number: u64,
}

impl Entry {
    fn of_document(self, uuid: &[u8; 16], namespace: &str, document: DocumentRef<'_>) -> DocumentBuf {
        let entry = DocumentBuf::new()
            .with("op", self.operation)
            .with("ns", namespace)
            .with("ui", ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: uuid })
            .with("o", document);
        let id = document.get("_id").filter(|_| self.operation != "d");
        let entry = match id {
            Some(id) => entry.with("o2", &DocumentBuf::new().with("_id", id)),
            None => entry,
        };
        self.end(entry)
    }

    /// `command` has `ns`, `ui` and `o`.
    fn of_command(self, command: DocumentRef<'_>) -> DocumentBuf {
        let mut entry = DocumentBuf::new().with("op", self.operation);
        entry.extend(command);
        self.end(entry)
    }

    fn of_nothing(self) -> DocumentBuf {
        let message = DocumentBuf::new().with("msg", STARTED);
        let entry = DocumentBuf::new().with("op", self.operation).with("ns", "").with("o", &message);
        self.end(entry)
    }

    fn end(self, entry: DocumentBuf) -> DocumentBuf {
        entry
            .with("ts", self.moment.timestamp(self.number))
            .with("t", TERM)
            .with("v", VERSION)
            .with("wall", ValueRef::DateTime(self.moment.time_ms as i64))
    }
}
