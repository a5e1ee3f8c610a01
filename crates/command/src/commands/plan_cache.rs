//! `planCacheSetFilter`, `planCacheListFilters` and `planCacheClearFilters`: restrict the indexes that the planner may
//! use for queries of a shape. `planCacheClear` removes cached plans, which were the best of trials.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef, Writer};
use bunko_catalog::{Collection, INDEX_FILTERS_MAX, IndexFilter};
use bunko_errors::{Failure, Result};
use bunko_query::QueryShape;
use bunko_request::facts::{ANY_FIELDS, CommandFacts};
use bunko_request::fields::Fields;
use bunko_session::Halt;
use std::sync::Arc;

pub(super) const SET_FILTER: Command = Command {
    facts: CommandFacts {
        name: "planCacheSetFilter",
        // For these four commands MongoDB ignores unknown fields.
        fields: ANY_FIELDS,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::OnCollection(Action::PlanCacheIndexFilter),
    run: set_filter,
    ..Command::PLAIN
};

pub(super) const LIST_FILTERS: Command = Command {
    facts: CommandFacts { name: "planCacheListFilters", fields: ANY_FIELDS, ..CommandFacts::PLAIN },
    privileges: Privileges::OnCollection(Action::PlanCacheIndexFilter),
    run: list_filters,
    ..Command::PLAIN
};

pub(super) const CLEAR_FILTERS: Command = Command {
    facts: CommandFacts { name: "planCacheClearFilters", fields: ANY_FIELDS, ..CommandFacts::PLAIN },
    privileges: Privileges::OnCollection(Action::PlanCacheIndexFilter),
    run: clear_filters,
    ..Command::PLAIN
};

pub(super) const CLEAR: Command = Command {
    facts: CommandFacts { name: "planCacheClear", fields: ANY_FIELDS, ..CommandFacts::PLAIN },
    privileges: Privileges::OnCollection(Action::PlanCacheWrite),
    run: clear,
    ..Command::PLAIN
};

/// The parts of a query that make its shape.
#[derive(Clone, Copy)]
struct Described<'a> {
    query: DocumentRef<'a>,
    sort: DocumentRef<'a>,
    projection: DocumentRef<'a>,
    collation: DocumentRef<'a>,
}

impl<'a> Described<'a> {
    /// Reads the parts from the command.
    /// # Errors
    /// `BadValue` for a part that is not an object. Arrays are read as objects, as in MongoDB.
    fn parse(fields: &Fields<'a>) -> Result<Self> {
        let optional = |name: &str| fields.value(name).map_or(Ok(DocumentRef::EMPTY), |value| object(name, value));
        let query = fields.value("query").ok_or_else(|| Failure::bad_value("required field query missing"))?;
        let query = object("query", query)?;
        let collation = match fields.value("collation") {
            None => DocumentRef::EMPTY,
            Some(ValueRef::Document(collation)) if !collation.is_empty() => collation,
            Some(_) => return Err(Failure::bad_value("optional field collation must be a non-empty object")),
        };
        if !collation.is_empty() && collation.get("locale").is_none() {
            return Err(Failure::missing_field("collation.locale"));
        }
        Ok(Self { query, sort: optional("sort")?, projection: optional("projection")?, collation })
    }

    /// Refuses an invalid query, as a find does.
    fn check_query(&self, invocation: &Invocation<'_>) -> Result<()> {
        bunko_query::parse_plan_filter(self.query, &invocation.scope()).map(drop)
    }

    fn shape(&self) -> QueryShape {
        QueryShape::of(self.query, self.sort, self.projection, self.collation)
    }
}

fn object<'a>(name: &str, value: ValueRef<'a>) -> Result<DocumentRef<'a>> {
    match value {
        ValueRef::Document(document) => Ok(document),
        ValueRef::Array(array) => Ok(array.as_document()),
        _ => Err(Failure::bad_value(format!(
            "field '{name}' must be an object, but is of type {}",
            value.kind().alias()
        ))),
    }
}

fn set_filter(invocation: &mut Invocation<'_>, _reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let collection = invocation
        .collection_not_view(&namespace)?
        .ok_or_else(|| Failure::bad_value(format!("no such collection: {namespace}")))?;
    let indexes = parse_indexes(invocation)?;
    let described = Described::parse(invocation)?;
    described.check_query(invocation)?;
    let filter = Arc::new(IndexFilter {
        query: described.query.to_owned(),
        sort: described.sort.to_owned(),
        projection: described.projection.to_owned(),
        collation: described.collation.to_owned(),
        indexes: indexes.iter().map(|index| index.to_value()).collect(),
    });
    let shape = described.shape();
    let is_full = collection.change_index_filters(|filters| {
        let is_full = filters.len() >= INDEX_FILTERS_MAX && !filters.contains_key(shape.as_bytes());
        if !is_full {
            filters.insert(shape.as_bytes().to_vec(), Arc::clone(&filter));
        }
        is_full
    });
    collection.plan_cache().clear(Some(without_collation(described).as_bytes()));
    if is_full {
        let message = format!("{namespace} has {INDEX_FILTERS_MAX} index filters already, as many as it may have");
        return Err(Failure::bad_value(message).into());
    }
    Ok(())
}

/// Reads `indexes`: a list of key patterns and names.
/// # Errors
/// `BadValue` for other elements, or for an empty list.
fn parse_indexes<'a>(fields: &Fields<'a>) -> Result<Vec<ValueRef<'a>>> {
    let Some(indexes) = fields.value("indexes") else {
        return Err(Failure::bad_value("required field indexes missing"));
    };
    let Some(indexes) = indexes.as_array() else {
        return Err(Failure::bad_value("required field indexes must be an array"));
    };
    let indexes: Vec<_> = indexes.iter().collect();
    if indexes.is_empty() {
        return Err(Failure::bad_value("required field indexes must contain at least one index"));
    }
    let is_meant = |index: &ValueRef<'_>| match index {
        ValueRef::Document(pattern) => !pattern.is_empty(),
        ValueRef::String(name) => !name.is_empty(),
        _ => false,
    };
    if !indexes.iter().all(is_meant) {
        let message = "each item in indexes must be a non-empty object, a key pattern, or a non-empty string, a name";
        return Err(Failure::bad_value(message));
    }
    Ok(indexes)
}

fn list_filters(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let namespace = invocation.namespace()?;
    let collection = invocation.collection_not_view(&namespace)?;
    let filters = collection.map(|collection| collection.index_filters()).unwrap_or_default();
    reply.begin_array("filters");
    for (position, filter) in filters.values().enumerate() {
        let mut listed = DocumentBuf::new()
            .with("query", &filter.query)
            .with("sort", &filter.sort)
            .with("projection", &filter.projection);
        if !filter.collation.as_ref().is_empty() {
            listed.append("collation", &filter.collation);
        }
        let indexes = filter.indexes.iter().map(|index| index.as_ref()).collect::<bunko_bson::ArrayBuf>();
        listed.append("indexes", &indexes);
        reply.push(position, &listed);
    }
    reply.end();
    Ok(())
}

fn clear_filters(invocation: &mut Invocation<'_>, _reply: &mut Writer<'_>) -> Result<(), Halt> {
    let (collection, described) = cleared(invocation)?;
    if let Some(collection) = collection {
        let shape = described.map(|described| described.shape());
        collection.plan_cache().clear(described.map(without_collation).as_ref().map(QueryShape::as_bytes));
        collection.change_index_filters(|filters| match &shape {
            Some(shape) => drop(filters.remove(shape.as_bytes())),
            None => filters.clear(),
        });
    }
    Ok(())
}

fn clear(invocation: &mut Invocation<'_>, _reply: &mut Writer<'_>) -> Result<(), Halt> {
    if let (Some(collection), described) = cleared(invocation)? {
        collection.plan_cache().clear(described.map(without_collation).as_ref().map(QueryShape::as_bytes));
    }
    Ok(())
}

/// The shape by which cached plans are cleared: a clear concerns plans of all collations.
fn without_collation(described: Described<'_>) -> QueryShape {
    Described { collation: DocumentRef::EMPTY, ..described }.shape()
}

/// The collection, if it exists, and the shape to clear; without a query all shapes are cleared.
/// # Errors
/// As [`Described::parse`]; `BadValue` for other parts of a shape without its query.
fn cleared<'a>(invocation: &mut Invocation<'a>) -> Result<(Option<Arc<Collection>>, Option<Described<'a>>)> {
    let namespace = invocation.namespace()?;
    // The parts of the shape are checked only if the collection exists.
    if let Some(collection) = invocation.collection_not_view(&namespace)? {
        let described = parse_cleared(invocation)?;
        described.map_or(Ok(()), |described| described.check_query(invocation))?;
        return Ok((Some(collection), described));
    }
    parse_cleared_of_none(invocation)?;
    Ok((None, None))
}

/// The shape to clear.
/// # Errors
/// As [`Described::parse`]; `BadValue` for other parts of a shape without its query.
fn parse_cleared<'a>(fields: &Fields<'a>) -> Result<Option<Described<'a>>> {
    if fields.value("query").is_some() {
        return Described::parse(fields).map(Some);
    }
    if ["sort", "projection", "collation"].iter().any(|part| fields.value(part).is_some()) {
        return Err(Failure::bad_value("sort, projection, or collation provided without query"));
    }
    Ok(None)
}

/// Checks the type of the query where there is no collection.
fn parse_cleared_of_none(fields: &Fields<'_>) -> Result<()> {
    fields.field("query").map_or(Ok(()), |query| object("query", query).map(drop))
}
