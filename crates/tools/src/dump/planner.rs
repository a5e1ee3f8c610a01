//! Plans a dump: databases, collections, their metadata, and the ranges in which they are read.

use super::options::{DumpOptions, OplogMode, UsersAndRoles, Views};
use super::plan::{Kind, Order, Plan, Planned, Resumability, kind_name, with_read_preference};
use super::ranges::{Range, interpolate, quantiles};
use super::selection::{BUCKETS_PREFIX, takes_collection, takes_database};
use super::{authorisation, oplog};
use crate::cursor::collect;
use crate::error::UNAUTHORIZED;
use crate::progress::Progress;
use crate::verify::list_indexes;
use crate::{Link, ToolError};
use bunko_archive::metadata::Metadata;
use bunko_bson::order::compare;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, Value, ValueRef, hexadecimal, number};
use bunko_client::{ClientError, CommandError};

/// Smallest range that gets a cursor of its own, in bytes. A collection of at least two such ranges may be read by
/// several cursors.
const RANGE_BYTES_MIN: u64 = 64 * 1024 * 1024;
/// Smallest collection whose first and last `_id` are asked for, in bytes.
const KNOWN_ENDS_BYTES_MIN: u64 = 1024 * 1024;
/// Ranges per thread: they are never equally large, and the last one should not keep one thread busy alone.
const RANGES_PER_THREAD: usize = 4;
/// Maximum number of threads for which one cursor in natural order is faster than several by `_id`.
const NATURAL_ORDER_THREADS: usize = 3;
/// Number of sampled documents for each range that is to be cut.
const SAMPLE_PER_RANGE: usize = 32;

/// Asks the server for its databases and collections.
/// # Errors
/// The server's error; `Failed` if a collection that was asked for by name does not exist.
pub(super) fn make(
    link: &mut dyn Link,
    options: &DumpOptions,
    resumability: Resumability,
    progress: &Progress,
) -> Result<Plan, ToolError> {
    let mut planner = Planner { link, options, resumability, progress };
    let version = planner.server_version()?;
    // This comes before any other read, so that every later change is in the oplog after that entry.
    let oplog_start = match options.oplog {
        OplogMode::With => Some(oplog::start(planner.link, progress)?),
        OplogMode::Without => None,
    };
    let mut collections = Vec::new();
    let mut listed = 0;
    for database in planner.databases()? {
        listed += planner.plan_database(&database, &mut collections)?;
    }
    if let (Some(database), Some(collection), true) = (&options.database, &options.collection, collections.is_empty()) {
        let what = match options.views {
            Views::AsDefinitions => "does not exist",
            Views::AsCollections => "does not exist, or is not a view: --viewsAsCollections dumps views alone",
        };
        return Err(ToolError::Failed(format!("{database}.{collection} {what}")));
    }
    // A database may consist of users and roles only.
    if let (Some(database), UsersAndRoles::Without, 0) = (&options.database, options.users_and_roles, listed) {
        return Err(ToolError::Failed(format!("the database '{database}' does not exist, or has no collections")));
    }
    // Large collections come first, so that none is left for the end; views come last, because they cost nothing.
    collections.sort_by_key(|collection| std::cmp::Reverse((!collection.ranges.is_empty(), collection.size_bytes)));
    // Users and roles of `admin` are among its collections.
    if let (Some(database), UsersAndRoles::With) = (&options.database, options.users_and_roles)
        && database != "admin"
    {
        collections.extend(authorisation::planned(database));
    }
    if oplog_start.is_some() {
        collections.push(oplog::planned());
    }
    let oplog_start = oplog_start.map(|start| (start.seconds, start.increment));
    Ok(Plan { fingerprint: options.fingerprint(), server_version: version, oplog_start, collections })
}

struct Planner<'a> {
    link: &'a mut dyn Link,
    options: &'a DumpOptions,
    resumability: Resumability,
    progress: &'a Progress,
}

impl Planner<'_> {
    /// Server version for preludes; empty if the user may not ask.
    fn server_version(&mut self) -> Result<String, ToolError> {
        match self.run("admin", &DocumentBuf::new().with("buildInfo", 1_i32)) {
            Ok(reply) => Ok(reply.as_ref().get("version").and_then(ValueRef::as_str).unwrap_or_default().to_owned()),
            Err(ClientError::Command(CommandError { code: UNAUTHORIZED, .. })) => Ok(String::new()),
            Err(error) => Err(server("")(error)),
        }
    }

    fn databases(&mut self) -> Result<Vec<String>, ToolError> {
        if let Some(database) = &self.options.database {
            return Ok(vec![database.clone()]);
        }
        let listed = self.run("admin", &DocumentBuf::new().with("listDatabases", 1_i32).with("nameOnly", true));
        let reply = listed.map_err(|error| match error {
            ClientError::Command(error) if error.code == UNAUTHORIZED => ToolError::Failed(format!(
                "the databases cannot be listed: {error}. With --db, a database that the user may read is dumped"
            )),
            error => server("")(error),
        })?;
        let listed = reply.as_ref().get("databases").and_then(ValueRef::as_array);
        let names = listed.iter().flat_map(|listed| listed.iter()).filter_map(|database| {
            database.as_document()?.get("name")?.as_str().filter(|name| takes_database(name)).map(str::to_owned)
        });
        Ok(names.collect())
    }

    /// Plans one database. Returns its number of collections and views, whether they are dumped or not.
    fn plan_database(&mut self, database: &str, collections: &mut Vec<Planned>) -> Result<usize, ToolError> {
        let mut list = DocumentBuf::new().with("listCollections", 1_i32).with("cursor", &DocumentBuf::new());
        if let Some(collection) = &self.options.collection {
            list.append("filter", &DocumentBuf::new().with("name", collection));
        }
        let listed = self.collect(database, &list, database)?;
        for entry in &listed {
            let Some(entry) = Entry::read(entry.as_ref()) else {
                let detail = format!("listCollections of '{database}' gave {entry:?}");
                return Err(ToolError::Failed(detail));
            };
            let is_wanted = match (self.options.views, entry.kind) {
                (Views::AsCollections, kind) => kind == Kind::View,
                (Views::AsDefinitions, _) => true,
            };
            let is_named = self.options.collection.is_some();
            let is_chosen = is_named || takes_collection(self.options, database, entry.name);
            if is_wanted && is_chosen && self.options.namespaces.takes(&format!("{database}.{}", entry.name)) {
                collections.push(self.plan_collection(database, &entry)?);
            }
        }
        Ok(listed.len())
    }

    fn plan_collection(&mut self, database: &str, entry: &Entry<'_>) -> Result<Planned, ToolError> {
        let source = match entry.kind {
            Kind::TimeSeries => format!("{BUCKETS_PREFIX}{}", entry.name),
            _ => entry.name.to_owned(),
        };
        let namespace = format!("{database}.{source}");
        let is_definition = entry.kind == Kind::View && self.options.views == Views::AsDefinitions;
        let has_indexes = entry.kind != Kind::View;
        let indexes = if has_indexes {
            list_indexes(entry.name, |command| self.try_collect(database, command)).map_err(server(&namespace))?
        } else {
            Vec::new()
        };
        let has_id_index = indexes.iter().any(is_id_index);
        // A view's options are its definition, which a collection made of its documents must not have.
        let is_materialised = entry.kind == Kind::View && !is_definition;
        let kind = if is_materialised { Kind::Collection } else { entry.kind };
        let metadata = Metadata {
            options: if is_materialised { DocumentBuf::new() } else { entry.options.clone() },
            indexes,
            uuid: entry.uuid.clone(),
            collection_name: entry.name.to_owned(),
            kind: Some(kind_name(kind).to_owned()),
        };
        let (documents, size_bytes) = if has_indexes { self.size(database, &source) } else { (0, 0) };
        let is_chosen = self.options.query.is_some() || entry.kind == Kind::View;
        let mut planned = Planned {
            database: database.to_owned(),
            collection: source.clone(),
            metadata_name: entry.name.to_owned(),
            source_database: database.to_owned(),
            source_collection: source,
            filter: self.options.query.clone(),
            kind,
            metadata: metadata.to_json(),
            documents,
            size_bytes,
            order: if is_chosen { Order::Found } else { Order::Natural },
            ranges: vec![Range::whole()],
        };
        if is_definition {
            planned.ranges.clear();
        } else if entry.kind == Kind::Collection && has_id_index && !entry.is_capped() && !is_chosen {
            self.plan_ranges(&mut planned, entry)?;
        }
        Ok(planned)
    }

    /// Decides whether a collection is read by `_id`, and cuts it into ranges if it is large.
    fn plan_ranges(&mut self, planned: &mut Planned, entry: &Entry<'_>) -> Result<(), ToolError> {
        if self.resumability == Resumability::Resumable {
            planned.order = Order::ById;
        }
        if planned.size_bytes < KNOWN_ENDS_BYTES_MIN {
            return Ok(());
        }
        let [smallest, largest] = [self.end_id(planned, 1)?, self.end_id(planned, -1)?];
        let (Some(smallest), Some(largest)) = (smallest, largest) else { return Ok(()) };
        let parts = (planned.size_bytes / RANGE_BYTES_MIN).min((self.options.threads.get() * RANGES_PER_THREAD) as u64);
        // To read by `_id`, a server has to fetch each document through an index, which takes about twice as long. That
        // is worth it only if the order is by `_id` anyway, or if there are more threads than one cursor in natural
        // order keeps busy.
        let threads_min = if planned.order == Order::ById { 2 } else { NATURAL_ORDER_THREADS + 1 };
        // Under a collation, strings sort differently from the order in which boundaries are chosen.
        let has_collation = entry.options.as_ref().get("collation").is_some();
        let is_cut = parts >= 2 && self.options.threads.get() >= threads_min && !has_collation;
        let boundaries =
            if is_cut { self.boundaries(planned, parts as usize, &smallest, &largest)? } else { Vec::new() };
        if !boundaries.is_empty() {
            planned.order = Order::ById;
        }
        if planned.order == Order::ById {
            planned.ranges = Range::from_to(smallest, largest).cut(&boundaries);
        }
        Ok(())
    }

    fn boundaries(
        &mut self,
        planned: &Planned,
        parts: usize,
        smallest: &Value,
        largest: &Value,
    ) -> Result<Vec<Value>, ToolError> {
        let size = DocumentBuf::new().with("size", (parts * SAMPLE_PER_RANGE) as i32);
        let id_only = DocumentBuf::new().with("_id", 1_i32);
        let stages = [DocumentBuf::new().with("$sample", &size), DocumentBuf::new().with("$project", &id_only)];
        let aggregate = DocumentBuf::new()
            .with("aggregate", &planned.source_collection)
            .with("pipeline", &stages.iter().collect::<ArrayBuf>())
            .with("cursor", &DocumentBuf::new());
        match self.try_collect(&planned.source_database, &aggregate) {
            Ok(sample) => {
                let within = |id: &Value| {
                    compare(id.as_ref(), smallest.as_ref()).is_gt() && compare(id.as_ref(), largest.as_ref()).is_lt()
                };
                Ok(quantiles(sample.iter().filter_map(id_of).filter(within).collect(), parts))
            }
            // Not every server has $sample.
            Err(ClientError::Command(_)) => Ok(interpolate(smallest.as_ref(), largest.as_ref(), parts)),
            Err(error) => Err(server(&planned.namespace())(error)),
        }
    }

    /// The smallest or the largest `_id`.
    fn end_id(&mut self, planned: &Planned, direction: i32) -> Result<Option<Value>, ToolError> {
        let find = DocumentBuf::new()
            .with("find", &planned.source_collection)
            .with("projection", &DocumentBuf::new().with("_id", 1_i32))
            .with("sort", &DocumentBuf::new().with("_id", direction))
            .with("limit", 1_i32);
        let found = self.collect(&planned.source_database, &find, &planned.namespace())?;
        Ok(found.first().and_then(id_of))
    }

    /// Number of documents and bytes. They serve order and progress only, so they are 0 if the server does not say.
    fn size(&mut self, database: &str, collection: &str) -> (u64, u64) {
        let Ok(reply) = self.run(database, &DocumentBuf::new().with("collStats", collection)) else { return (0, 0) };
        let field = |name| reply.as_ref().get(name).and_then(number::truncate_to_i64);
        let field = |name| field(name).and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
        (field("count"), field("size"))
    }

    fn run(&mut self, database: &str, command: &DocumentBuf) -> Result<DocumentBuf, ClientError> {
        let command = with_read_preference(command.clone(), self.link);
        self.link.run(database, &command)
    }

    fn collect(
        &mut self,
        database: &str,
        command: &DocumentBuf,
        namespace: &str,
    ) -> Result<Vec<DocumentBuf>, ToolError> {
        self.try_collect(database, command).map_err(server(namespace))
    }

    fn try_collect(&mut self, database: &str, command: &DocumentBuf) -> Result<Vec<DocumentBuf>, ClientError> {
        let command = with_read_preference(command.clone(), self.link);
        collect(self.link, self.progress, database, &command)
    }
}

fn server(namespace: &str) -> impl Fn(ClientError) -> ToolError {
    move |cause| ToolError::server(namespace, cause)
}

fn id_of(document: &DocumentBuf) -> Option<Value> {
    document.as_ref().get("_id").map(ValueRef::to_value)
}

fn is_id_index(index: &DocumentBuf) -> bool {
    index.as_ref().get("name").and_then(ValueRef::as_str) == Some("_id_")
}

/// One collection as `listCollections` describes it.
struct Entry<'a> {
    name: &'a str,
    kind: Kind,
    /// Without the `uuid` that some servers list among the options.
    options: DocumentBuf,
    /// The UUID in hexadecimal digits.
    uuid: Option<String>,
}

impl<'a> Entry<'a> {
    fn read(entry: DocumentRef<'a>) -> Option<Self> {
        let kind = match entry.get("type").and_then(ValueRef::as_str) {
            Some("view") => Kind::View,
            Some("timeseries") => Kind::TimeSeries,
            _ => Kind::Collection,
        };
        let mut options = DocumentBuf::new();
        for option in entry.get("options").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY) {
            if option.name != "uuid" {
                options.append(option.name, option.value);
            }
        }
        let uuid = entry.get("info").and_then(ValueRef::as_document).and_then(|info| match info.get("uuid") {
            Some(ValueRef::Binary { bytes, .. }) => Some(hexadecimal::small(bytes)),
            _ => None,
        });
        Some(Self { name: entry.get("name")?.as_str()?, kind, options, uuid })
    }

    fn is_capped(&self) -> bool {
        matches!(self.options.as_ref().get("capped"), Some(ValueRef::Boolean(true)))
    }
}
