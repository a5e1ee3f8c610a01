//! Transactions in an oplog: operations inside `applyOps` entries. A large transaction has several entries.
//!
//! Entries of one transaction have the same session and number; all but the last have `partialTxn`. A prepared
//! transaction takes effect with its `commitTransaction`, or never.

use super::entry::Entry;
use bunko_bson::{DocumentBuf, ValueRef};
use foldhash::HashMap;

/// Operations of transactions that have not ended, in bytes; they are kept in memory. A server's transactions stay
/// below this limit in 60 seconds, the default limit of their life.
const HELD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Holds the operations of transactions until they end.
#[derive(Default)]
pub(super) struct Transactions {
    held: HashMap<Vec<u8>, Vec<DocumentBuf>>,
    held_bytes: usize,
}

/// Effect of an entry on the replay.
pub(super) enum Step {
    /// The entry is not part of a transaction.
    Alone,
    /// The entry has no effect before the transaction's end.
    Held,
    /// These operations are applied, in order.
    Operations(Vec<DocumentBuf>),
}

impl Transactions {
    /// Takes the next entry.
    /// # Errors
    /// Transactions that have not ended are larger than [`HELD_BYTES_MAX`], or an entry is not valid.
    pub(super) fn step(&mut self, entry: &Entry<'_>) -> Result<Step, String> {
        if entry.op != "c" {
            return Ok(Step::Alone);
        }
        match entry.object.first().map(|first| first.name) {
            Some("applyOps") => self.operations(entry),
            Some("commitTransaction") => Ok(Step::Operations(self.release(entry))),
            Some("abortTransaction") => {
                self.release(entry);
                Ok(Step::Held)
            }
            _ => Ok(Step::Alone),
        }
    }

    fn operations(&mut self, entry: &Entry<'_>) -> Result<Step, String> {
        let operations = flatten(entry)?;
        let is_set = |name| matches!(entry.object.get(name), Some(ValueRef::Boolean(true)));
        if is_set("partialTxn") || is_set("prepare") {
            self.held_bytes += operations.iter().map(|operation| operation.as_ref().len_bytes()).sum::<usize>();
            if self.held_bytes > HELD_BYTES_MAX {
                return Err(format!("transactions of more than {HELD_BYTES_MAX} bytes have not ended in the oplog"));
            }
            self.held.entry(key(entry)).or_default().extend(operations);
            return Ok(Step::Held);
        }
        let mut all = self.release(entry);
        all.extend(operations);
        Ok(Step::Operations(all))
    }

    fn release(&mut self, entry: &Entry<'_>) -> Vec<DocumentBuf> {
        let held = self.held.remove(&key(entry)).unwrap_or_default();
        self.held_bytes -= held.iter().map(|operation| operation.as_ref().len_bytes()).sum::<usize>();
        held
    }
}

/// Identifies the transaction of an entry.
fn key(entry: &Entry<'_>) -> Vec<u8> {
    let mut key = DocumentBuf::new();
    for name in ["lsid", "txnNumber"] {
        if let Some(value) = entry.document.get(name) {
            key.append(name, value);
        }
    }
    key.into_bytes()
}

/// The operations of an `applyOps`; nested ones are replaced by their operations.
fn flatten(entry: &Entry<'_>) -> Result<Vec<DocumentBuf>, String> {
    let operations = entry.object.get("applyOps").and_then(ValueRef::as_array);
    let operations = operations.ok_or("an oplog entry's 'applyOps' is not an array")?;
    let mut flat = Vec::new();
    for operation in operations.iter().filter_map(ValueRef::as_document) {
        let inner = Entry::parse_inner(operation, entry.at)?;
        if inner.op == "c" && inner.object.get("applyOps").is_some() {
            // The depth is bounded: the entry was parsed, and the nesting of documents is limited.
            flat.extend(flatten(&inner)?);
        } else {
            flat.push(operation.to_owned());
        }
    }
    Ok(flat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_bson::extended_json::parse_document;

    fn step(transactions: &mut Transactions, transaction: i32, object: &str) -> String {
        let ts = r#""ts":{"$timestamp":{"t":5,"i":1}}"#;
        let json =
            format!(r#"{{{ts},"op":"c","ns":"admin.$cmd","lsid":{{"id":1}},"txnNumber":{transaction},"o":{object}}}"#);
        let document = parse_document(&json).expect("JSON");
        let entry = Entry::parse(document.as_ref()).expect("entry");
        match transactions.step(&entry) {
            Ok(Step::Alone) => "alone".to_owned(),
            Ok(Step::Held) => "held".to_owned(),
            Ok(Step::Operations(operations)) => {
                let id = |operation: &DocumentBuf| match operation.as_ref().get("o").and_then(ValueRef::as_document) {
                    Some(object) => format!("{:?}", object.get("_id").expect("id")),
                    None => String::new(),
                };
                operations.iter().map(id).collect::<Vec<_>>().join(" ")
            }
            Err(error) => error,
        }
    }

    fn inserts(ids: &[i32], more: &str) -> String {
        let operations = ids.iter().map(|id| format!(r#"{{"op":"i","ns":"a.b","o":{{"_id":{id}}}}}"#));
        format!(r#"{{"applyOps":[{}]{more}}}"#, operations.collect::<Vec<_>>().join(","))
    }

    #[test]
    fn operations_come_when_their_transaction_ends() {
        let transactions = &mut Transactions::default();
        assert_eq!(step(transactions, 1, r#"{"create":"x"}"#), "alone");
        assert_eq!(step(transactions, 1, &inserts(&[1, 2], r#","partialTxn":true"#)), "held");
        assert_eq!(step(transactions, 2, &inserts(&[7], r#","prepare":true"#)), "held");
        assert_eq!(step(transactions, 3, &inserts(&[9], r#","prepare":true"#)), "held");
        assert_eq!(step(transactions, 1, &inserts(&[3], r#","count":3"#)), "Int32(1) Int32(2) Int32(3)");
        assert_eq!(step(transactions, 3, r#"{"abortTransaction":1}"#), "held");
        assert_eq!(step(transactions, 2, r#"{"commitTransaction":1}"#), "Int32(7)");
        assert_eq!(transactions.held_bytes, 0);
        let nested = format!(r#"{{"applyOps":[{{"op":"c","ns":"admin.$cmd","o":{}}}]}}"#, inserts(&[4, 5], ""));
        assert_eq!(step(transactions, 4, &nested), "Int32(4) Int32(5)");
    }
}
