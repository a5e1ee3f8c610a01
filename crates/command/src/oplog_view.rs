//! `local.oplog.rs` for commands: `find`, `aggregate` and `count` read it, it has no indexes to list and a size for
//! `collStats`; all others are refused.

use crate::collection_statistics::CollectionStatistics;
use crate::cursor_store::CursorSource;
use crate::invocation::Invocation;
use crate::replica_set::Deployment;
use bunko_aggregate::{DocumentStream, Environment, Pipeline};
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, Timestamp, ValueRef};
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_operation::OperationContext;
use bunko_oplog::{Entries, Feed, Reach};
use bunko_query::{FindQuery, Hint, QueryScope};
use bunko_store::{Bell, Direction, Space};
use std::sync::Arc;

/// How much work it is to make an entry.
const WORK_PER_ENTRY: usize = 16;
/// The commands that read it.
const READERS: [&str; 5] = ["find", "aggregate", "collStats", "count", "listIndexes"];

/// Whether the namespace is that of an oplog that there is.
pub(crate) fn is_oplog(catalog: &Catalog, namespace: &Namespace) -> bool {
    namespace.is_oplog() && catalog.store().keeps_history()
}

/// Refuses what a view cannot do.
/// # Errors
/// `CommandNotSupported` where a command that does not read it names the oplog; numbers of their own where it would be dropped.
pub(crate) fn check(invocation: &Invocation<'_>, namespace: &Namespace) -> Result<()> {
    let command = invocation.command.name;
    if !is_oplog(&invocation.service.catalog, namespace) || READERS.contains(&command) {
        return Ok(());
    }
    if command == "drop" {
        let (code, message) = match invocation.service.deployment() {
            Deployment::SetMember => (5_255_000, "can't drop live oplog while replicating"),
            Deployment::Standalone => {
                (5_255_001, "can't drop oplog on storage engines that support replSetResizeOplog command")
            }
        };
        return Err(Failure::new(ErrorCode(code), message));
    }
    let message = format!(
        "{command} is not supported on {namespace}, a view of the log that only find, aggregate and count read"
    );
    Err(Failure::new(ErrorCode::COMMAND_NOT_SUPPORTED, message))
}

/// What `listCollections` shows of it: name, kind, and the size that it is kept to.
pub(crate) fn description(catalog: &Catalog, database: &str) -> Option<DocumentBuf> {
    let size_bytes = catalog.store().history_bytes_max().filter(|_| database == Namespace::OPLOG_DATABASE)?;
    let options = DocumentBuf::new().with("capped", true).with("size", size_bytes as i64);
    let info = DocumentBuf::new().with("readOnly", true);
    let document = DocumentBuf::new().with("name", Namespace::OPLOG_COLLECTION).with("type", "collection");
    Some(document.with("options", &options).with("info", &info))
}

/// How many of its entries a query finds.
/// # Errors
/// As opening it for `find`.
pub(crate) fn count(invocation: &Invocation<'_>, query: FindQuery) -> Result<u64> {
    invocation.operation().leave_shared_thread()?;
    let mut found = find(invocation, query, None, AtEnd::Closes)?;
    let mut count = 0;
    while found.next()?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// What `collStats` says of it.
/// # Errors
/// As reading it: its entries are counted.
pub(crate) fn statistics(invocation: &Invocation<'_>) -> Result<CollectionStatistics> {
    let all = FindQuery::new(DocumentRef::EMPTY, invocation.scope())?;
    let count = count(invocation, all)?;
    let store = invocation.service.catalog.store();
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

/// The database that has it, and the bytes of the log that it reaches back.
pub(crate) fn database(catalog: &Catalog) -> Option<(&'static str, u64)> {
    let span = catalog.store().history_span()?;
    Some((Namespace::OPLOG_DATABASE, span.end.0 - span.start.0))
}

/// What a cursor of `find` does at the end of what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtEnd {
    Closes,
    /// It is tailable.
    Stays,
    /// It is tailable, and a `getMore` waits for more.
    Awaits,
}

/// Opens it for `find`: `sort` is that of the command. A tailable cursor sees what is durable.
/// # Errors
/// `BadValue` for an index hint: there are no indexes; and for a tailable cursor that does not go forward, or that is
/// limited.
pub(crate) fn find(
    invocation: &Invocation<'_>,
    query: FindQuery,
    sort: Option<DocumentRef<'_>>,
    at_end: AtEnd,
) -> Result<Box<dyn CursorSource>> {
    let direction = match &query.hint {
        None if query.key_bounds.is_none() => Direction::Forward,
        Some(Hint::Natural(direction)) if query.key_bounds.is_none() => *direction,
        _ => return Err(Failure::bad_value("hint provided does not correspond to an existing index")),
    };
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
    let scope = Arc::clone(&query.scope);
    let stream = if is_tailable {
        follow(invocation, stages.as_ref(), scope)?
    } else {
        open(invocation, stages.as_ref(), scope, direction)?
    };
    let bell = invocation.service.catalog.store().durable_bell().map(Arc::clone);
    Ok(Box::new(Found { stream, query, at_end, bell, current: DocumentBuf::new(), projected: Vec::new() }))
}

/// Opens it under the stages of a pipeline.
/// # Errors
/// Those of the stages.
pub(crate) fn open(
    invocation: &Invocation<'_>,
    stages: ArrayRef<'_>,
    scope: Arc<QueryScope>,
    direction: Direction,
) -> Result<Box<dyn DocumentStream>> {
    let pipeline = Pipeline::parse(stages, Environment::new(scope))?;
    let first = stages.iter().next().and_then(ValueRef::as_document);
    let from = first.and_then(|stage| earliest(stage.get("$match")?.as_document()?));
    let entries = Entries::open(invocation.service.catalog.store(), direction, from)?;
    Ok(pipeline.open(Box::new(Stream { entries, operation: Arc::clone(invocation.operation()) })))
}

/// Opens it under the stages of a pipeline, to go on with what is written later.
fn follow(
    invocation: &Invocation<'_>,
    stages: ArrayRef<'_>,
    scope: Arc<QueryScope>,
) -> Result<Box<dyn DocumentStream>> {
    let pipeline = Pipeline::parse(stages, Environment::new(scope))?;
    let first = stages.iter().next().and_then(ValueRef::as_document);
    let from = first.and_then(|stage| earliest(stage.get("$match")?.as_document()?));
    let from = from.unwrap_or(Timestamp { seconds: 0, increment: 0 });
    let feed = Feed::from_time(invocation.service.catalog.store(), from)?;
    Ok(pipeline.open(Box::new(Following { feed, operation: Arc::clone(invocation.operation()) })))
}

/// What no entry that matches is earlier than.
fn earliest(filter: DocumentRef<'_>) -> Option<Timestamp> {
    match filter.get("ts")? {
        ValueRef::Timestamp(at) => Some(at),
        ValueRef::Document(operators) => operators.iter().find_map(|operator| match (operator.name, operator.value) {
            ("$gte" | "$gt" | "$eq", ValueRef::Timestamp(at)) => Some(at),
            _ => None,
        }),
        _ => None,
    }
}

struct Stream {
    /// `None` where the oplog was there a moment ago and is not.
    entries: Option<Entries>,
    operation: Arc<OperationContext>,
}

impl DocumentStream for Stream {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        self.operation.work(WORK_PER_ENTRY)?;
        self.entries.as_mut().and_then(Entries::next).transpose()
    }
}

/// Entries as they become durable.
struct Following {
    /// `None` where the oplog was there a moment ago and is not.
    feed: Option<Feed>,
    operation: Arc<OperationContext>,
}

impl DocumentStream for Following {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        self.operation.work(WORK_PER_ENTRY)?;
        let Some(feed) = &mut self.feed else { return Ok(None) };
        Ok(feed.next(&|_| true, Reach::All)?.map(|entry| entry.document))
    }
}

/// Entries as `find` shows them.
struct Found {
    stream: Box<dyn DocumentStream>,
    query: FindQuery,
    at_end: AtEnd,
    bell: Option<Arc<Bell>>,
    current: DocumentBuf,
    projected: Vec<u8>,
}

impl CursorSource for Found {
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
