//! `$merge`: writes each document as an update of its matching document, or as an insert.

use super::WriteContext;
use bunko_aggregate::{DocumentStream, Environment, Merge, WhenMatched, WhenNotMatched};
use bunko_bson::{DocumentBuf, DocumentRef, StringOrder, Value, ValueRef};
use bunko_catalog::stored_document::{self, EmptyTimestamps};
use bunko_catalog::{Collection, Index, Namespace, Order};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::FieldPath;
use bunko_query::write::{UpdateStatement, Upsert, Writes};
use bunko_update::Targets;
use std::sync::Arc;

/// After a failure, documents up to the next multiple of this number are still written, as in MongoDB's unordered
/// batches.
const BATCH_COUNT_MAX: u64 = 100_000;

/// Checks that each document can match at most one document of the target.
pub(super) fn check(target: Option<&Collection>, merge: &Merge, strings: &StringOrder) -> Result<()> {
    if is_by_id(merge) || target.is_some_and(|target| unique_index(target, merge, strings).is_some()) {
        return Ok(());
    }
    let message = "Cannot find index to verify that join fields will be unique";
    Err(Failure::new(ErrorCode(51183), message))
}

fn is_by_id(merge: &Merge) -> bool {
    match merge.on.as_slice() {
        [] => true,
        [only] => only.dotted() == "_id",
        _ => false,
    }
}

/// A unique index on exactly the `on` fields, in any order, with the pipeline's string order.
fn unique_index(collection: &Collection, merge: &Merge, strings: &StringOrder) -> Option<Arc<Index>> {
    let fits = |index: &Arc<Index>| {
        let spec = index.document.as_ref();
        let has_all = merge.on.iter().all(|path| index.fields.iter().any(|field| field.path == path.dotted()));
        index.is_unique
            && has_all
            && index.fields.len() == merge.on.len()
            && spec.get("partialFilterExpression").is_none()
            && index.strings == *strings
    };
    collection.ready_indexes().into_iter().find(fits)
}

pub(super) fn run(
    context: &mut WriteContext<'_>,
    (target, merge): (&Namespace, &Merge),
    documents: &mut dyn DocumentStream,
    environment: &Environment,
) -> Result<()> {
    let index = context
        .catalog
        .collection(target)
        .and_then(|collection| unique_index(&collection, merge, &environment.scope.strings));
    let allows_null = index.is_none_or(|index| index.document.as_ref().get("sparse").is_none());
    let merging = Merging { context, target, merge, environment, allows_null };
    let mut writes = Writes::new(context.catalog, target, context.stamps, Arc::clone(&environment.scope));
    let (mut count, mut failed, mut written) = (0_u64, None, None);
    let outcome = loop {
        match documents.next() {
            Err(failure) => break Err(failure),
            Ok(None) => break Ok(()),
            Ok(Some(document)) => {
                match merging.put(&mut writes, document) {
                    Ok(lsn) => written = lsn.or(written),
                    Err(failure) => failed = failed.or(Some(failure)),
                }
                if let Err(failure) = environment.scope.operation.check() {
                    break Err(failure);
                }
            }
        }
        count += 1;
        if failed.is_some() && count % BATCH_COUNT_MAX == 0 {
            break Ok(());
        }
    };
    let last = writes.written();
    context.note_written(last.max(written));
    failed.map_or(outcome, Err)
}

struct Merging<'m, 'a> {
    context: &'m WriteContext<'a>,
    target: &'m Namespace,
    merge: &'m Merge,
    environment: &'m Environment,
    allows_null: bool,
}

impl Merging<'_, '_> {
    /// Writes a document. Returns the log record if the write did not go through `writes`.
    fn put(&self, writes: &mut Writes<'_>, document: DocumentBuf) -> Result<Option<bunko_store::Lsn>> {
        let document = self.with_id(document);
        let filter = self.filter(document.as_ref())?;
        let mut constants = None;
        let (update, upsert) = match &self.merge.when_matched {
            WhenMatched::Fail => return self.insert(document.as_ref()),
            WhenMatched::Pipeline(stages) => {
                constants = Some(self.merge.constants(document.as_ref(), self.environment)?);
                (Value::Array(stages.clone()), self.upsert())
            }
            WhenMatched::Replace => (Value::Document(document.clone()), self.upsert()),
            WhenMatched::Merge => (Value::Document(DocumentBuf::new().with("$set", &document)), self.upsert()),
            WhenMatched::KeepExisting => {
                (Value::Document(DocumentBuf::new().with("$setOnInsert", &document)), Upsert::Yes)
            }
        };
        let statement = UpdateStatement {
            filter: filter.as_ref(),
            update: update.as_ref(),
            array_filters: Vec::new(),
            targets: Targets::One,
            upsert,
            supplied: constants.is_some().then(|| document.as_ref()),
            constants: constants.as_ref().map(DocumentBuf::as_ref),
            hint: None,
            sort: None,
            strings: Some(self.environment.scope.strings.clone()),
        };
        let outcome = writes.update(&statement)?;
        if outcome.matched == 0 && outcome.upserted.is_none() {
            self.unmatched()?;
        }
        Ok(None)
    }

    fn upsert(&self) -> Upsert {
        if self.merge.when_not_matched == WhenNotMatched::Insert { Upsert::Yes } else { Upsert::No }
    }

    /// Drops a document without a match, or fails, as `whenNotMatched` says.
    fn unmatched(&self) -> Result<()> {
        if self.merge.when_not_matched == WhenNotMatched::Discard {
            return Ok(());
        }
        let message = "$merge could not find a matching document in the target collection for at least one document in \
                       the source collection";
        Err(Failure::new(ErrorCode::MERGE_STAGE_NO_MATCHING_DOCUMENT, message))
    }

    /// The document, with an `_id` added if documents are matched by `_id` and it has none.
    fn with_id(&self, document: DocumentBuf) -> DocumentBuf {
        let names_id = self.merge.on.is_empty() || self.merge.on.iter().any(|path| path.dotted() == "_id");
        if !names_id || document.as_ref().get("_id").is_some() {
            return document;
        }
        let id = self.context.stamps.object_id();
        let mut with_id = DocumentBuf::new().with("_id", ValueRef::ObjectId(id));
        with_id.extend(document.as_ref());
        with_id
    }

    /// Makes the filter that finds the matching document.
    fn filter(&self, document: DocumentRef<'_>) -> Result<DocumentBuf> {
        let mut filter = DocumentBuf::new();
        if is_by_id(self.merge) {
            if let Some(id) = document.get("_id") {
                check_on("_id", id)?;
                filter.append("_id", id);
            }
            return Ok(filter);
        }
        for path in &self.merge.on {
            let name = path.dotted();
            let value = value_at(document, path)?.unwrap_or(ValueRef::Null);
            check_on(&name, value)?;
            if value.is_nullish() && !self.allows_null {
                let message =
                    "$merge write error: 'on' field cannot be missing, null or undefined if supporting index is sparse";
                return Err(Failure::new(ErrorCode(51132), message));
            }
            filter.append(&name, &DocumentBuf::new().with("$eq", value));
        }
        Ok(filter)
    }

    fn insert(&self, document: DocumentRef<'_>) -> Result<Option<bunko_store::Lsn>> {
        let WriteContext { catalog, stamps, operation, .. } = *self.context;
        let stored = stored_document::for_insert(document, EmptyTimestamps::Filled, stamps)?;
        let mut inserted = catalog.insert(self.target, &[stored], Order::Ordered, operation)?;
        match inserted.failures.pop().map(|(_, failure)| failure).or(inserted.stopped_by) {
            Some(failure) => Err(failure),
            None => Ok(inserted.lsn),
        }
    }
}

/// The value at a path. Arrays on the path are an error.
fn value_at<'d>(document: DocumentRef<'d>, path: &FieldPath) -> Result<Option<ValueRef<'d>>> {
    let mut value = ValueRef::Document(document);
    for component in path.components() {
        check_on(&path.dotted(), value)?;
        let Some(next) = value.as_document().and_then(|document| document.get(component)) else { return Ok(None) };
        value = next;
    }
    Ok(Some(value))
}

fn check_on(name: &str, value: ValueRef<'_>) -> Result<()> {
    if matches!(value, ValueRef::Array(_)) {
        let message = format!("$merge write error: 'on' field '{name}' cannot be an array");
        return Err(Failure::new(ErrorCode(51185), message));
    }
    Ok(())
}
