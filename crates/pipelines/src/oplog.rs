//! `local.oplog.rs` for commands and pipelines. Every read of it goes through [`open`] or, with a tailable cursor,
//! through [`find`]: both read the entries that `Entries` generates.
//!
//! A tailable cursor waits for the bell that rings after each sync (`Store::durable_bell`). While it listens, every
//! commit asks for a sync.

use crate::collection_statistics::CollectionStatistics;
use crate::surroundings::Surroundings;
use crate::unindexed::{check_searches, direction};
use bunko_aggregate::{DocumentStream, Environment, Pipeline, Plannable};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Timestamp, ValueRef};
use bunko_catalog::{Catalog, Namespace, Validation, from_storage};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use bunko_oplog::Entries;
use bunko_query::FindQuery;
use bunko_request::deployment::Deployment;
use bunko_session::cursors::CursorSource;
use bunko_store::{Bell, Direction, Space};
use std::sync::Arc;

/// Work units for generating an entry.
const WORK_PER_ENTRY: usize = 16;

/// Whether the namespace is the oplog's, and the server keeps one.
pub(crate) fn is_oplog(catalog: &Catalog, namespace: &Namespace) -> bool {
    namespace.is_oplog() && catalog.store().keeps_history()
}

/// The error for a command that would drop the oplog.
pub(crate) fn cannot_be_dropped(deployment: Deployment) -> Failure {
    let (code, message) = match deployment {
        Deployment::SetMember => (5_255_000, "can't drop live oplog while replicating"),
        Deployment::Standalone => {
            (5_255_001, "can't drop oplog on storage engines that support replSetResizeOplog command")
        }
    };
    Failure::new(ErrorCode(code), message)
}

/// The oplog's document in `listCollections`: name, kind, and size limit.
pub fn description(catalog: &Catalog, database: &str) -> Option<DocumentBuf> {
    let size_bytes = catalog.store().history_bytes_max().filter(|_| database == Namespace::OPLOG_DATABASE)?;
    let options = DocumentBuf::new().with("capped", true).with("size", size_bytes as i64);
    let info = DocumentBuf::new().with("readOnly", true);
    let document = DocumentBuf::new().with("name", Namespace::OPLOG_COLLECTION).with("type", "collection");
    Some(document.with("options", &options).with("info", &info))
}

/// The oplog's statistics, for `collStats` and similar commands.
/// # Errors
/// As reading the oplog: its entries are counted.
pub fn statistics(surroundings: &Surroundings) -> Result<CollectionStatistics> {
    let store = surroundings.catalog.store();
    let count = surroundings.entry_count.count(store, &mut || surroundings.operation.work(WORK_PER_ENTRY))?;
    let bytes = store.history_span().map_or(0, |span| span.end.0 - span.start.0);
    let cap = store.history_bytes_max().map(|bytes_max| (0, bytes_max as i64));
    Ok(CollectionStatistics {
        count,
        data_bytes: bytes,
        storage: Space { used_bytes: bytes, free_bytes: 0 },
        cap,
        indexes: Vec::new(),
        engine: store.engine_name(),
        settings: DocumentBuf::new(),
    })
}

/// The database of the oplog, and the bytes of the log that it covers.
pub fn database(catalog: &Catalog) -> Option<(&'static str, u64)> {
    let span = catalog.store().history_span()?;
    Some((Namespace::OPLOG_DATABASE, span.end.0 - span.start.0))
}

/// Reads the whole oplog, for `validate`.
/// # Errors
/// As reading the oplog.
pub fn validate(catalog: &Catalog, operation: &Arc<OperationContext>) -> Result<Validation> {
    let mut validation = Validation::default();
    let mut entries = entries(catalog, Direction::Forward, None, operation)?;
    while entries.next()?.is_some() {
        validation.records += 1;
    }
    Ok(validation)
}

/// The behaviour of a `find` cursor at the end of the oplog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    /// The cursor ends.
    Closes,
    /// The cursor is tailable.
    Stays,
    /// The cursor is tailable, and a `getMore` waits for more entries.
    Awaits,
}

/// Opens the oplog for a pipeline, whose first filters may limit how far back it is read.
/// # Errors
/// As reading the oplog.
pub fn open(
    catalog: &Catalog,
    pipeline: &Pipeline,
    direction: Direction,
    operation: &Arc<OperationContext>,
) -> Result<Box<dyn DocumentStream>> {
    Ok(Box::new(entries(catalog, direction, earliest_of(pipeline), operation)?))
}

/// The entries that exist now, from `from` on.
/// # Errors
/// As reading the oplog.
pub fn entries(
    catalog: &Catalog,
    direction: Direction,
    from: Option<Timestamp>,
    operation: &Arc<OperationContext>,
) -> Result<impl DocumentStream + use<>> {
    let entries = Entries::open(catalog.store(), direction, from)?;
    Ok(Stream { entries, operation: Arc::clone(operation) })
}

/// Opens the oplog for entries that exist and entries that are written later. Entries of acknowledged writes are there
/// at once.
fn follow(
    catalog: &Catalog,
    pipeline: &Pipeline,
    operation: &Arc<OperationContext>,
) -> Result<Box<dyn DocumentStream>> {
    let store = catalog.store();
    store.sync_history().map_err(from_storage)?;
    let from = earliest_of(pipeline).unwrap_or(Timestamp { seconds: 0, increment: 0 });
    let entries = Entries::follow(store, from)?;
    Ok(Box::new(Stream { entries, operation: Arc::clone(operation) }))
}

/// Opens the oplog for `find`. `sort` is the command's.
/// # Errors
/// `BadValue` for an index hint, since there are no indexes, and for a tailable cursor that goes backward or sorts; as
/// `check_searches` and [`open`].
pub fn find(
    surroundings: &Surroundings,
    query: FindQuery,
    sort: Option<DocumentRef<'_>>,
    at_end: AtEnd,
) -> Result<Box<dyn CursorSource>> {
    if query.key_bounds.is_some() {
        return Err(Failure::bad_value("hint provided does not correspond to an existing index"));
    }
    let direction = direction(query.hint.as_ref())?;
    let is_tailable = at_end != AtEnd::Closes;
    if is_tailable && (direction == Direction::Backward || query.sort.is_some()) {
        return Err(Failure::bad_value("a tailable cursor on the oplog goes forward, without a sort"));
    }
    let mut stages = ArrayBuf::new();
    stages.push(&DocumentBuf::new().with("$match", &query.filter_document));
    if let (Some(sort), Some(_)) = (sort, &query.sort) {
        stages.push(&DocumentBuf::new().with("$sort", sort));
    }
    if query.skip > 0 {
        stages.push(&DocumentBuf::new().with("$skip", query.skip as i64));
    }
    if let Some(limit) = query.limit {
        stages.push(&DocumentBuf::new().with("$limit", limit as i64));
    }
    let (catalog, operation) = (&surroundings.catalog, &surroundings.operation);
    let pipeline = Pipeline::parse(stages.as_ref(), Environment::new(Arc::clone(&query.scope)))?;
    check_searches(&pipeline)?;
    let entries = if is_tailable {
        follow(catalog, &pipeline, operation)?
    } else {
        open(catalog, &pipeline, direction, operation)?
    };
    let stream = pipeline.open(entries);
    let bell = catalog.store().durable_bell().map(Arc::clone);
    Ok(Box::new(FoundEntries { stream, query, at_end, bell, current: DocumentBuf::new(), projected: Vec::new() }))
}

/// A lower bound for the times of entries that pass the first filters of a pipeline, if the filters give one.
pub fn earliest_of(pipeline: &Pipeline) -> Option<Timestamp> {
    let filters = pipeline.stages().map_while(|stage| match stage.plannable() {
        Plannable::Filter(filter) => Some(filter),
        _ => None,
    });
    filters.filter_map(earliest).max()
}

/// As [`earliest_of`], for one filter.
fn earliest(filter: DocumentRef<'_>) -> Option<Timestamp> {
    let bounds = filter.iter().filter_map(|condition| match (condition.name, condition.value) {
        ("$and", ValueRef::Array(all)) => all.iter().filter_map(ValueRef::as_document).filter_map(earliest).max(),
        ("ts", ValueRef::Timestamp(at)) => Some(at),
        ("ts", ValueRef::Document(operators)) => operators
            .iter()
            .filter_map(|operator| match (operator.name, operator.value) {
                ("$gte" | "$gt" | "$eq", ValueRef::Timestamp(at)) => Some(at),
                _ => None,
            })
            .max(),
        _ => None,
    });
    bounds.max()
}

/// The entries, in order.
struct Stream {
    /// `None` if the oplog has ceased to exist since it was looked up.
    entries: Option<Entries>,
    operation: Arc<OperationContext>,
}

impl DocumentStream for Stream {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        self.operation.work(WORK_PER_ENTRY)?;
        self.entries.as_mut().and_then(Entries::next).transpose()
    }
}

/// Entries as `find` returns them.
struct FoundEntries {
    stream: Box<dyn DocumentStream>,
    query: FindQuery,
    at_end: AtEnd,
    bell: Option<Arc<Bell>>,
    current: DocumentBuf,
    projected: Vec<u8>,
}

impl CursorSource for FoundEntries {
    fn next(&mut self) -> Result<Option<DocumentRef<'_>>> {
        let Some(entry) = self.stream.next()? else { return Ok(None) };
        self.current = entry;
        self.query.projected(self.current.as_ref(), &mut self.projected).map(Some)
    }

    fn stays_open(&self) -> bool {
        self.at_end != AtEnd::Closes
    }

    fn bell(&self) -> Option<&Arc<Bell>> {
        self.bell.as_ref().filter(|_| self.at_end == AtEnd::Awaits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_testkit::shell;

    #[test]
    fn filters_say_how_far_back_it_is_read() {
        for (filter, expected) in [
            ("{}", None),
            ("{ts: Timestamp(5, 1)}", Some(5)),
            ("{ts: {$gte: Timestamp(5, 1)}}", Some(5)),
            ("{ts: {$gt: Timestamp(5, 1), $lt: Timestamp(9, 1)}}", Some(5)),
            ("{ts: {$lt: Timestamp(9, 1)}}", None),
            ("{ts: {$gt: 5}}", None),
            ("{op: 'i', $and: [{ts: {$gt: Timestamp(5, 1)}}, {ts: {$gt: Timestamp(7, 1)}}]}", Some(7)),
            ("{$or: [{ts: {$gt: Timestamp(5, 1)}}, {op: 'c'}]}", None),
            ("{ts: {$not: {$gt: Timestamp(5, 1)}}}", None),
        ] {
            let filter = shell::parse_document(filter).expect("a filter");
            assert_eq!(earliest(filter.as_ref()).map(|at| at.seconds), expected, "{filter:?}");
        }
    }
}
