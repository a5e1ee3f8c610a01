//! What a load asks of the server: one file and one line of [`OPERATIONS`] each.

mod find;
mod id_template;
mod increment;
mod insert;
mod tally;

use crate::dataset::{Dataset, Shape};
use bunko_client::frame::ReplyMode;
use bunko_client::load::Next;
use bunko_client::{Reply, WriteConcern};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
pub(crate) use tally::{Measured, Tally};

/// Documents that must be there before an operation can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// It starts on an empty collection.
    EmptyCollection,
    /// It works on documents that were loaded before.
    LoadedDocuments,
}

/// An operation of a load.
#[derive(Debug)]
pub struct Operation {
    /// Its name on the command line and in reports.
    pub name: &'static str,
    /// One line for the help.
    pub about: &'static str,
    /// What it starts from.
    pub needs: Needs,
    /// The documents that it works on.
    pub shape: Shape,
    /// Whether `--batch` applies to it.
    pub batches: bool,
    start: fn(&Assignment<'_>) -> Box<dyn Requests>,
}

/// Every operation there is.
pub const OPERATIONS: &[Operation] = &[insert::OPERATION, find::OPERATION, increment::OPERATION];

impl Operation {
    /// The operation with that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        OPERATIONS.iter().find(|operation| operation.name == name)
    }

    /// One thread's part of the load.
    pub(crate) fn start(&self, assignment: &Assignment<'_>) -> Measured {
        Measured::new((self.start)(assignment))
    }
}

/// What the threads of a load share, and what tells them apart.
#[derive(Clone, Copy)]
pub(crate) struct Assignment<'a> {
    pub dataset: &'a Arc<Dataset>,
    pub claims: &'a Arc<Claims>,
    pub database: &'a str,
    pub collection: &'a str,
    pub write_concern: &'a WriteConcern,
    /// Documents per insert.
    pub batch: usize,
    /// Differs from thread to thread.
    pub seed: u64,
}

impl Assignment<'_> {
    /// Whether the server is to answer.
    fn reply_mode(&self) -> ReplyMode {
        if self.write_concern.expects_reply() { ReplyMode::Expected } else { ReplyMode::Silent }
    }
}

/// The requests of one thread.
pub(crate) trait Requests: Send {
    /// As [`bunko_client::load::Workload::next_request`].
    fn next(&mut self, request_id: i32, out: &mut Vec<u8>) -> Next;

    /// How many documents a successful reply stands for.
    /// # Errors
    /// What is missing from a reply that calls itself a success.
    fn acknowledged(&self, reply: Reply<'_>) -> Result<u64, String>;
}

/// The documents of a load, handed out to whichever thread asks first.
pub(crate) struct Claims {
    next: AtomicU64,
    total: u64,
}

impl Claims {
    pub fn new(total: u64) -> Self {
        Self { next: AtomicU64::new(0), total }
    }

    /// The next documents' indexes, `batch` of them or what is left.
    pub fn take(&self, batch: usize) -> Option<std::ops::Range<u64>> {
        let start = self.next.fetch_add(batch as u64, Ordering::Relaxed);
        (start < self.total).then(|| start..(start + batch as u64).min(self.total))
    }

    pub fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Compressible;
    use bunko_bson::{ArrayBuf, DocumentBuf};

    fn requests(operation: &Operation, documents: u64, batch: usize) -> Box<dyn Requests> {
        let dataset = Dataset::new(1, operation.shape, 200, Compressible::default()).expect("large enough");
        (operation.start)(&Assignment {
            dataset: &Arc::new(dataset),
            claims: &Arc::new(Claims::new(documents)),
            database: "db",
            collection: "c",
            write_concern: &"j".parse().expect("valid"),
            batch,
            seed: 1,
        })
    }

    /// Every request's body and how many documents came beside it.
    fn all_requests(operation: &Operation, documents: u64, batch: usize) -> Vec<(String, usize)> {
        let mut requests = requests(operation, documents, batch);
        let (mut out, mut shown) = (Vec::new(), Vec::new());
        while requests.next(1, &mut out) == Next::Appended {
            let message = bunko_wire::Message::parse(&out).expect("well formed");
            let beside = message.sequences().map(|sequence| sequence.documents.clone().count()).sum();
            shown.push((format!("{:?}", message.body), beside));
            out.clear();
        }
        shown
    }

    #[test]
    fn operations_send_what_drivers_send() {
        let shown = all_requests(&insert::OPERATION, 5, 2);
        let concern = r#""writeConcern": Document({"w": Int32(1), "j": Boolean(true)}), "$db": String("db")"#;
        let insert = format!(r#"{{"insert": String("c"), "ordered": Boolean(true), {concern}}}"#);
        assert_eq!(shown, [(insert.clone(), 2), (insert.clone(), 2), (insert, 1)]);
        let shown = all_requests(&find::OPERATION, 3, 1);
        assert_eq!(shown.len(), 3);
        assert!(
            shown[0].0.starts_with(r#"{"find": String("c"), "filter": Document({"_id": ObjectId(ObjectId(5e0be100"#),
            "{shown:?}"
        );
        let shown = all_requests(&increment::OPERATION, 3, 1);
        assert_eq!(shown.len(), 3);
        assert!(shown[0].0.contains(r#""u": Document({"$inc": Document({"n": Int32(1)})})"#), "{shown:?}");
    }

    #[test]
    fn only_replies_that_did_something_count() {
        let reply = |document: &DocumentBuf, operation: &Operation| {
            let reply = bunko_client::check_reply(document.as_ref()).expect("a success");
            requests(operation, 1, 1).acknowledged(reply)
        };
        let nothing = DocumentBuf::new().with("n", 0_i32).with("ok", 1.0);
        let three = DocumentBuf::new().with("n", 3_i32).with("ok", 1.0);
        assert_eq!(reply(&three, &insert::OPERATION), Ok(3));
        assert_eq!(reply(&nothing, &insert::OPERATION), Ok(0));
        assert!(reply(&nothing, &increment::OPERATION).is_err());
        let found: ArrayBuf = [&three].into_iter().collect();
        for (batch, expected) in [(found, true), (ArrayBuf::new(), false)] {
            let cursor = DocumentBuf::new().with("firstBatch", &batch);
            let document = DocumentBuf::new().with("cursor", &cursor).with("ok", 1.0);
            assert_eq!(reply(&document, &find::OPERATION).is_ok(), expected);
        }
    }

    #[test]
    fn names_are_unique() {
        for operation in OPERATIONS {
            assert_eq!(Operation::named(operation.name).map(|found| found.about), Some(operation.about));
        }
        assert!(Operation::named("truncate").is_none());
    }
}
