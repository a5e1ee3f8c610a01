//! Reads every document back and compares it with the generated one, to check that a server holds the documents that it
//! acknowledged.

use super::template::Template;
use super::{Answer, Assignment, Budget, Effect, Insertions, Moves, Operation, Requests};
use bunko_bson::{DocumentRef, ValueRef};
use bunko_client::Reply;
use bunko_client::frame::{FrameWriter, ReplyMode};
use bunko_dataset::{Dataset, Id};
use serde::{Deserialize, Serialize};
use slab::Slab;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of bytes of documents in one request, so that a reply fits into one batch, whose limit is 16 MiB.
const REPLY_BYTES_MAX: u64 = 8 << 20;
/// Offset of a document's first value: length, type, and the name `_id` with its zero byte precede it.
const ID_AT: usize = 4 + 1 + 4;

/// Settings of the operation `verify`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Verify {
    /// Documents in one request; fewer if they would take more than 8 MiB.
    pub ids: u64,
}

impl Default for Verify {
    fn default() -> Self {
        Self { ids: 100 }
    }
}

impl Operation for Verify {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Reads]
    }

    fn moves(&self) -> Moves {
        Moves::WholeDocuments
    }

    /// The sequence of documents ends the operation; the number of requests depends on the documents' size.
    fn natural_requests(&self, _documents: u64, _slots: u64) -> Option<u64> {
        Some(u64::MAX)
    }

    fn check(&self, _dataset: &Dataset) -> Result<(), String> {
        super::find_in::check_ids(self.ids)
    }

    fn start(&self, assignment: &Assignment<'_>) -> Result<Box<dyn Requests>, String> {
        let dataset = assignment.dataset;
        let ids = self.ids.min(REPLY_BYTES_MAX / dataset.document_bytes() as u64).max(1);
        Ok(Box::new(VerifyRequests {
            dataset: Arc::clone(dataset),
            insertions: Arc::clone(assignment.insertions),
            sequence: Arc::clone(assignment.sequence),
            command: Template::find_in(assignment, ids),
            ids,
            changed: assignment.changed.iter().cloned().collect(),
            asked: Slab::new(),
        }))
    }
}

struct VerifyRequests {
    dataset: Arc<Dataset>,
    insertions: Arc<Insertions>,
    sequence: Arc<Budget>,
    command: Template,
    ids: u64,
    /// Fields that no longer have their generated values.
    changed: Vec<String>,
    /// Numbers of the documents of each request; the keys are the tags.
    asked: Slab<Range<u64>>,
}

impl VerifyRequests {
    /// Compares the documents of a reply with the requested ones.
    fn compare(&self, asked: Range<u64>, reply: DocumentRef<'_>) -> Result<u64, String> {
        let cursor = reply.get("cursor").and_then(ValueRef::as_document).ok_or("the reply has no cursor")?;
        let batch = cursor.get("firstBatch").and_then(ValueRef::as_array).ok_or("the reply has no batch")?;
        let expected = asked.map(|number| self.insertions.of_share(number));
        let mut expected: HashMap<Id, u64> = expected.map(|index| (self.dataset.id(index), index)).collect();
        let by_payload: HashMap<Vec<u8>, Id> = expected.keys().map(|id| (id.payload().to_vec(), *id)).collect();
        let except: Vec<&str> = self.changed.iter().map(String::as_str).collect();
        let mut documents = 0;
        for document in batch.iter().filter_map(ValueRef::as_document) {
            let payload = document.as_bytes().get(ID_AT..ID_AT + self.dataset.id_kind().payload_bytes());
            let index = payload.and_then(|payload| expected.remove(by_payload.get(payload)?));
            let index = index.ok_or("a document was returned that was not asked for, or twice")?;
            self.dataset.verify(index, document, &except)?;
            documents += 1;
        }
        match expected.keys().next() {
            Some(id) => Err(format!("_id {id} is not in the collection")),
            None => Ok(documents),
        }
    }
}

impl Requests for VerifyRequests {
    fn next(&mut self, request_id: i32, out: &mut Vec<u8>) -> Option<u64> {
        let asked = self.sequence.take(self.ids)?;
        for place in 0..self.ids {
            // The last request has fewer documents and repeats its last one.
            let number = (asked.start + place).min(asked.end - 1);
            self.command.set_id(place as usize, &self.dataset.id(self.insertions.of_share(number)));
        }
        let frame = FrameWriter::new(out, request_id, ReplyMode::Expected, self.command.command());
        frame.finish().expect("the ids are limited");
        Some(self.asked.insert(asked) as u64)
    }

    fn on_reply(&mut self, tag: u64, reply: Reply<'_>) -> Result<Answer, String> {
        let asked = self.asked.remove(tag as usize);
        Ok(Answer::Done { documents: self.compare(asked, reply.document)? })
    }

    fn on_failure(&mut self, tag: u64) {
        self.asked.remove(tag as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Collections;
    use crate::operation::Share;
    use bunko_bson::{ArrayBuf, DocumentBuf};
    use bunko_client::WriteConcern;
    use bunko_dataset::{Compressible, DatasetOptions, IdKind, KeyOrder};
    use std::collections::BTreeSet;

    fn requests(dataset: &Arc<Dataset>, changed: &[&str], ids: u64) -> VerifyRequests {
        let count = dataset.documents();
        VerifyRequests {
            dataset: Arc::clone(dataset),
            insertions: Arc::new(Insertions::new(count, 0, 0, Share { index: 0, count: 1 })),
            sequence: Arc::new(Budget::new(count)),
            command: Template::new(
                DocumentBuf::new().with("x", Id::placeholder(dataset.id_kind()).as_value()),
                &Id::placeholder(dataset.id_kind()),
            ),
            ids,
            changed: changed.iter().map(|&field| field.to_owned()).collect(),
            asked: Slab::new(),
        }
    }

    fn dataset(id: IdKind) -> Arc<Dataset> {
        let options = DatasetOptions {
            seed: 1,
            shape: "counter".to_owned(),
            documents: 10,
            document_bytes: Some(100),
            compressible: Compressible::default(),
            key_order: KeyOrder::Shuffled,
            id: Some(id),
        };
        Arc::new(Dataset::new(&options).expect("a dataset"))
    }

    fn reply(dataset: &Dataset, indexes: &[u64]) -> DocumentBuf {
        let document = |&index: &u64| {
            let mut bytes = Vec::new();
            dataset.write(index, &mut bytes);
            DocumentRef::parse(&bytes).expect("well formed").to_owned()
        };
        let documents: Vec<DocumentBuf> = indexes.iter().map(document).collect();
        let batch: ArrayBuf = documents.iter().collect();
        DocumentBuf::new().with("cursor", &DocumentBuf::new().with("firstBatch", &batch).with("id", 0_i64))
    }

    #[test]
    fn documents_are_found_in_any_order_under_every_kind_of_id() {
        for &id in IdKind::ALL {
            let dataset = dataset(id);
            let verify = requests(&dataset, &[], 3);
            assert_eq!(verify.compare(4..7, reply(&dataset, &[6, 4, 5]).as_ref()), Ok(3), "{id:?}");
        }
    }

    #[test]
    fn missing_strange_and_changed_documents_are_reported() {
        let dataset = dataset(IdKind::Int64);
        let verify = requests(&dataset, &[], 3);
        let missing = verify.compare(4..7, reply(&dataset, &[4, 5]).as_ref()).expect_err("one is missing");
        assert!(missing.contains("is not in the collection"), "{missing}");
        for strange in [&[4, 5, 7][..], &[4, 5, 5]] {
            let error = verify.compare(4..7, reply(&dataset, strange).as_ref()).expect_err("not asked for");
            assert!(error.contains("not asked for, or twice"), "{error}");
        }
        let id = dataset.id(4);
        let changed = DocumentBuf::new().with("_id", id.as_value()).with("n", 7_i64);
        let batch: ArrayBuf = [&changed].into_iter().collect();
        let changed = DocumentBuf::new().with("cursor", &DocumentBuf::new().with("firstBatch", &batch));
        let error = verify.compare(4..5, changed.as_ref()).expect_err("it is not what was generated");
        assert!(error.contains("'n'") || error.contains("'d'"), "{error}");
        let except = requests(&dataset, &["n", "d"], 3);
        assert_eq!(except.compare(4..5, changed.as_ref()), Ok(1), "fields that a phase changed are left out");
    }

    #[test]
    fn every_document_is_asked_for_once() {
        let dataset = dataset(IdKind::ObjectId);
        let concern = WriteConcern::default();
        let insertions = Arc::new(Insertions::new(10, 0, 0, Share { index: 0, count: 1 }));
        let (sequence, changed) = (Arc::new(Budget::new(10)), BTreeSet::new());
        let assignment = Assignment {
            dataset: &dataset,
            database: "d",
            collection: "c",
            collections: Collections::new(1, 10),
            write_concern: &concern,
            insertions: &insertions,
            sequence: &sequence,
            changed: &changed,
            seed: 1,
            stream: 0,
        };
        let mut requests = Verify { ids: 4 }.start(&assignment).expect("started");
        let (mut out, mut count) = (Vec::new(), 0);
        while requests.next(count, &mut out).is_some() {
            count += 1;
        }
        assert_eq!(count, 3);
        let times = |index: u64| {
            let id = dataset.id(index);
            out.windows(id.payload().len()).filter(|window| *window == id.payload()).count()
        };
        assert_eq!((0..9).map(times).collect::<Vec<_>>(), [1; 9]);
        assert_eq!(times(9), 3, "the last request is filled up with its last document");
    }
}
