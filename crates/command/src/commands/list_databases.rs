//! `listDatabases`: names and sizes of the databases.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_authority::privileges::administration;
use bunko_bson::{DocumentBuf, DocumentRef, Writer};
use bunko_catalog::Catalog;
use bunko_errors::{ErrorCode, Failure};
use bunko_matcher::Filter;
use bunko_pipelines::{CollectionStatistics, oplog, session_collections};
use bunko_query::parse_filter;
use bunko_request::facts::{CommandFacts, Databases, Queueing, Stability};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::Fields;
use bunko_session::Halt;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "listDatabases",
        fields: &[
            field("filter", Kind::Object),
            field("nameOnly", Kind::BooleanLike),
            field("authorizedDatabases", Kind::Boolean),
        ],
        databases: Databases::Admin,
        stable_api: Stability::WHOLE,
        queueing: Queueing::AtOnce,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(administration::list_databases),
    run,
    ..Command::PLAIN
};

const BYTES_PER_MB: u64 = 1024 * 1024;

struct ListDatabases<'a> {
    filter: Option<DocumentRef<'a>>,
    is_name_only: bool,
    /// Whether only databases are listed on which the client has privileges.
    only_own: bool,
}

impl<'a> ListDatabases<'a> {
    fn parse(fields: &Fields<'a>) -> Result<Self, Failure> {
        Ok(Self {
            filter: fields.document("filter")?,
            is_name_only: fields.boolean("nameOnly", false)?,
            only_own: fields.strict_boolean("authorizedDatabases", false)?,
        })
    }
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let ListDatabases { filter, is_name_only, only_own } = ListDatabases::parse(invocation)?;
    let filter = filter.map(|filter| filter_of(invocation, filter)).transpose()?;
    let asker = invocation.asker().filter(|asker| only_own || !asker.on_cluster(Action::ListDatabases));
    let catalog = &invocation.service.catalog;
    let mut total_bytes = 0;
    let mut position = 0;
    reply.begin_array("databases");
    let names = catalog.databases();
    let sizes = if is_name_only { vec![0; names.len()] } else { sizes(catalog, &names) };
    let mut listed: BTreeMap<&str, u64> = names.iter().map(String::as_str).zip(sizes).collect();
    if let Some((name, bytes)) = oplog::database(catalog) {
        *listed.entry(name).or_default() += bytes;
    }
    listed.entry(session_collections::database()).or_default();
    // Each MongoDB server has `admin`, and clients expect it in the list.
    listed.entry("admin").or_default();
    for (name, bytes) in listed {
        if asker.as_ref().is_some_and(|asker| !asker.knows_database(name)) {
            continue;
        }
        let mut item = DocumentBuf::new().with("name", name);
        if !is_name_only {
            // All other databases are listed only while they have a collection.
            let is_empty = name == "admin" && !names.iter().any(|other| other == name);
            item.append("sizeOnDisk", bytes as i64).append("empty", is_empty);
        }
        if let Some(filter) = &filter
            && !filter.try_matches(item.as_ref())?
        {
            continue;
        }
        total_bytes += bytes;
        reply.push(position, &item);
        position += 1;
    }
    reply.end();
    if !is_name_only {
        reply.append("totalSize", total_bytes as i64).append("totalSizeMb", (total_bytes / BYTES_PER_MB) as i64);
    }
    Ok(())
}

/// Reads the filter. Operators that need an index are refused with messages of this command.
fn filter_of(invocation: &Invocation<'_>, filter: DocumentRef<'_>) -> Result<Filter, Failure> {
    parse_filter(filter, &Arc::new(invocation.scope().without_builtins())).map_err(|failure| match failure.code() {
        ErrorCode::NO_QUERY_EXECUTION_PLANS => {
            Failure::new(ErrorCode(5_626_500), "$geoNear, $near, and $nearSphere are not allowed in this context")
        }
        ErrorCode::INDEX_NOT_FOUND => Failure::bad_value("$text is not allowed in this context"),
        _ => failure,
    })
}

/// The size of each database's documents and indexes, in bytes.
fn sizes(catalog: &Catalog, names: &[String]) -> Vec<u64> {
    let collections: Vec<_> = names.iter().map(|name| catalog.collections(name)).collect();
    let statistics = CollectionStatistics::of_all(catalog.store(), &collections.concat());
    let mut totals = statistics.iter().map(CollectionStatistics::total_bytes);
    collections.iter().map(|of_database| totals.by_ref().take(of_database.len()).sum()).collect()
}
