//! The inserts of `insert` and `bulkWrite`: documents for one collection, of which some may have been inserted by an
//! earlier attempt of the same command.

use crate::invocation::Invocation;
use crate::retries::Retries;
use crate::target::WriteTarget;
use bunko_bson::DocumentRef;
use bunko_catalog::{Catalog, Inserted, Namespace, Order};
use bunko_errors::{Failure, Result};
use bunko_operation::OperationSource;
use std::borrow::Cow;

/// The catalog function that stores the documents.
pub(crate) type Insert =
    fn(&Catalog, &Namespace, &[Cow<'_, [u8]>], Order, &dyn OperationSource) -> Result<Inserted, Failure>;

/// Where and how documents are inserted.
pub(crate) struct Insertion<'a> {
    pub namespace: &'a Namespace,
    pub target: &'a WriteTarget,
    pub order: Order,
    /// Position of the first document among the command's statements.
    pub first: usize,
    pub insert: Insert,
}

/// Outcome of an insertion.
pub(crate) struct InsertionOutcome {
    /// Number of documents that were inserted, and of keys that were added for them.
    pub inserted: usize,
    pub keys: usize,
    /// Number of documents that an earlier attempt of the command has inserted.
    pub done_before: usize,
    /// The refused documents by their positions, in order; at most one if the insert is ordered.
    pub failures: Vec<(usize, Failure)>,
    /// The failure that stopped the insert after some documents.
    pub stopped_by: Option<Failure>,
}

impl Insertion<'_> {
    /// Inserts the documents. `prepare` takes a document and its position, and returns the bytes to store.
    /// # Errors
    /// Failures that stop the insert before anything is stored.
    pub fn run<'d>(
        &self,
        invocation: &mut Invocation<'_>,
        retries: &mut Retries<'_>,
        documents: &[DocumentRef<'d>],
        mut prepare: impl FnMut(usize, DocumentRef<'d>) -> Result<Cow<'d, [u8]>>,
    ) -> Result<InsertionOutcome> {
        let Self { namespace, target, order, first, insert } = *self;
        let mut storable = Storable::with_capacity(documents.len());
        let mut refused: Vec<(usize, Failure)> = Vec::new();
        let mut done_before = 0;
        for (position, document) in documents.iter().enumerate() {
            if retries.did(first + position)?.is_some() {
                storable.skip(position);
                done_before += 1;
                continue;
            }
            match prepare(position, *document) {
                Ok(document) => storable.push(position, document),
                Err(failure) => {
                    storable.skip(position);
                    refused.push((position, failure));
                    if order == Order::Ordered {
                        break;
                    }
                }
            }
        }
        let positions = (0..storable.documents.len()).map(|index| first + storable.position(index));
        if let Some((count, failure)) = retries.begin_inserts(positions) {
            // The failure is that of the next document; in an unordered insert it is also that of all later ones.
            let last = if order == Order::Ordered { count + 1 } else { storable.documents.len() };
            if order == Order::Ordered {
                refused.clear();
            }
            refused.extend((count..last).map(|index| (storable.position(index), failure.clone())));
            storable.documents.truncate(count);
        }
        let inserted = match target {
            WriteTarget::TimeSeries(series) => {
                invocation.write_series(|writes| writes.insert(series, &storable.documents, order))
            }
            WriteTarget::Collection | WriteTarget::View => {
                insert(&invocation.service.catalog, namespace, &storable.documents, order, invocation)?
            }
        };
        invocation.note_written(inserted.lsn.max(retries.written()));
        let stopped_early = order == Order::Ordered && !inserted.failures.is_empty();
        let of_document = |(index, failure)| (storable.position(index), failure);
        let mut failures: Vec<_> = inserted.failures.into_iter().map(of_document).collect();
        if !stopped_early {
            failures.extend(refused);
            failures.sort_by_key(|(position, _)| *position);
        }
        // If an ordered insert stopped, only the attempted documents count.
        let has_stopped = order == Order::Ordered && !failures.is_empty();
        let attempted = if has_stopped { inserted.count + 1 } else { documents.len() - done_before };
        invocation.service.counters.note_inserts(attempted as u64, inserted.count as u64);
        Ok(InsertionOutcome {
            inserted: inserted.count,
            keys: inserted.keys,
            done_before,
            failures,
            stopped_by: inserted.stopped_by,
        })
    }
}

/// The documents of an insert that are to be stored.
struct Storable<'d> {
    documents: Vec<Cow<'d, [u8]>>,
    /// Positions of these documents in the request. `None` while no document was left out.
    positions: Option<Vec<usize>>,
}

impl<'d> Storable<'d> {
    fn with_capacity(count: usize) -> Self {
        Self { documents: Vec::with_capacity(count), positions: None }
    }

    fn push(&mut self, position: usize, document: Cow<'d, [u8]>) {
        self.documents.push(document);
        if let Some(positions) = &mut self.positions {
            positions.push(position);
        }
    }

    /// Leaves out the document at that position.
    fn skip(&mut self, position: usize) {
        self.positions.get_or_insert_with(|| (0..position).collect());
    }

    fn position(&self, index: usize) -> usize {
        self.positions.as_ref().map_or(index, |positions| positions[index])
    }
}
