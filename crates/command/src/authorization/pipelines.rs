//! Privileges for pipelines: for the first stage, and for each stage that reads or writes another collection.
//!
//! Stages are searched at any depth of the request, so that no place of an inner pipeline is missed. A view's own
//! pipeline is checked against the user who defines the view, not against its readers.

use super::{Asker, argument, has_on, writes};
use crate::dispatch::Request;
use bunko_access::Action;
use bunko_bson::{ArrayRef, DocumentRef, Element, ValueRef};

/// Whether validators check the documents that a pipeline writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Validation {
    Done,
    Bypassed,
}

impl Validation {
    fn of(request: &Request<'_>) -> Self {
        if has_on(request.body, "bypassDocumentValidation") { Self::Bypassed } else { Self::Done }
    }
}

pub(crate) fn aggregate(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let collection = request.argument().as_str();
    let stages = request.body.get("pipeline").and_then(ValueRef::as_array).unwrap_or(ArrayRef::EMPTY);
    may_run(asker, request.database, collection, stages, Validation::of(request))
}

/// `mapReduce`: reads its collection, and writes as its `out` asks.
pub(crate) fn map_reduce(asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let validation = Validation::of(request);
    let may_write =
        |database: &str, collection, actions: &[Action]| may_write(asker, database, collection, actions, validation);
    let may_output = match request.body.get("out") {
        Some(ValueRef::String(name)) => may_write(request.database, name, &[Action::Insert, Action::Remove]),
        Some(ValueRef::Document(out)) => {
            let named = out.iter().filter(|field| field.name == "db").filter_map(|field| field.value.as_str());
            let mut databases: Vec<_> = named.collect();
            if databases.is_empty() {
                databases.push(request.database);
            }
            let may_in_all =
                |name, actions: &[Action]| databases.iter().all(|database| may_write(database, name, actions));
            out.iter().all(|field| match (field.name, field.value.as_str()) {
                ("replace", Some(name)) => may_in_all(name, &[Action::Insert, Action::Remove]),
                ("merge" | "reduce", Some(name)) => may_in_all(name, &[Action::Insert, Action::Update]),
                _ => true,
            })
        }
        _ => true,
    };
    asker.on_named(request, Action::Find)
        && may_output
        && writes::may_bypass(asker, request, request.database, argument(request))
}

/// Whether a pipeline over a collection, or over none, is allowed.
pub(super) fn may_run(
    asker: &Asker<'_>,
    database: &str,
    collection: Option<&str>,
    stages: ArrayRef<'_>,
    validation: Validation,
) -> bool {
    let first = stages.iter().next().and_then(ValueRef::as_document).and_then(DocumentRef::first);
    may_begin(asker, database, collection, first) && may_do_all(asker, database, ValueRef::Array(stages), validation)
}

/// Whether the source of a pipeline may be read.
fn may_begin(asker: &Asker<'_>, database: &str, collection: Option<&str>, first: Option<Element<'_>>) -> bool {
    let on_source = |action| match collection {
        Some(collection) => asker.on_collection(database, collection, action),
        None => asker.on_database(database, action),
    };
    let Some(first) = first else { return on_source(Action::Find) };
    let options = first.value.as_document().unwrap_or(DocumentRef::EMPTY);
    let is_logged_in = asker.user().is_some();
    match first.name {
        "$changeStream" if has_on(options, "allChangesForCluster") => {
            asker.on_all_databases(Action::Find) && asker.on_all_databases(Action::ChangeStream)
        }
        "$changeStream" => on_source(Action::Find) && on_source(Action::ChangeStream),
        "$currentOp" if has_on(options, "allUsers") => asker.on_cluster(Action::InProg),
        "$listSessions" | "$listLocalSessions" if has_on(options, "allUsers") || options.get("users").is_some() => {
            asker.on_cluster(Action::ListSessions)
        }
        // Without these options they show only the user's own.
        "$currentOp" | "$listSessions" | "$listLocalSessions" => is_logged_in,
        "$documents" => is_logged_in,
        "$listCatalog" if collection.is_none() => {
            asker.on_cluster(Action::ListDatabases)
                && asker.on_all_databases(Action::ListCollections)
                && asker.on_all_databases(Action::ListIndexes)
        }
        "$listClusterCatalog" if database == "admin" => asker.on_cluster(Action::ListClusterCatalog),
        "$listClusterCatalog" => on_source(Action::ListCollections),
        "$listSampledQueries" => asker.on_cluster(Action::ListSampledQueries),
        "$querySettings" => asker.on_cluster(Action::QuerySettings),
        "$queryStats" => asker.on_cluster(Action::QueryStatsRead),
        name => actions_over(Some(name)).iter().all(|action| on_source(*action)),
    }
}

/// Whether all stages in a value that use another collection are allowed.
fn may_do_all(asker: &Asker<'_>, database: &str, value: ValueRef<'_>, validation: Validation) -> bool {
    let fields = match value {
        ValueRef::Document(document) => document,
        ValueRef::Array(array) => array.as_document(),
        _ => return true,
    };
    fields
        .iter()
        .all(|field| may_do(asker, database, field, validation) && may_do_all(asker, database, field.value, validation))
}

fn may_do(asker: &Asker<'_>, database: &str, stage: Element<'_>, validation: Validation) -> bool {
    let may_look = |(database, collection): (&str, &str), actions: &[Action]| {
        actions.iter().all(|action| asker.on_collection(database, collection, *action))
    };
    match stage.name {
        "$lookup" | "$graphLookup" => {
            let actions = actions_inside(stage.value);
            targets(stage.value, "from", database).into_iter().all(|target| may_look(target, actions))
        }
        "$unionWith" => {
            let actions = actions_inside(stage.value);
            named(stage.value, database).into_iter().all(|target| may_look(target, actions))
        }
        "$out" => named(stage.value, database).into_iter().all(|(database, collection)| {
            may_write(asker, database, collection, &[Action::Insert, Action::Remove], validation)
        }),
        "$merge" => merge_targets(stage.value, database).into_iter().all(|(database, collection)| {
            may_write(asker, database, collection, merge_actions(stage.value), validation)
        }),
        _ => true,
    }
}

/// The actions that a pipeline with this first stage needs on its collection.
fn actions_over(first: Option<&str>) -> &'static [Action] {
    match first {
        Some("$collStats") => &[Action::CollStats],
        Some("$indexStats") => &[Action::IndexStats],
        Some("$listCatalog") => &[Action::ListCollections, Action::ListIndexes],
        Some("$listSearchIndexes") => &[Action::ListSearchIndexes],
        Some("$planCacheStats") => &[Action::PlanCacheRead],
        _ => &[Action::Find],
    }
}

/// The actions that the pipeline inside a stage needs on its collection.
fn actions_inside(stage: ValueRef<'_>) -> &'static [Action] {
    let pipeline = stage.as_document().and_then(|stage| stage.get("pipeline")?.as_array());
    let first = pipeline.and_then(|pipeline| pipeline.iter().next()?.as_document()?.first());
    actions_over(first.map(|first| first.name))
}

fn may_write(asker: &Asker<'_>, database: &str, collection: &str, actions: &[Action], validation: Validation) -> bool {
    let may = |action| asker.on_collection(database, collection, action);
    actions.iter().all(|action| may(*action))
        && (validation == Validation::Done || may(Action::BypassDocumentValidation))
}

/// The collection that a stage names, either by a string or with `db` and `coll`.
fn named<'v>(value: ValueRef<'v>, database: &'v str) -> Vec<(&'v str, &'v str)> {
    match value {
        ValueRef::String(collection) => vec![(database, collection)],
        ValueRef::Document(target) => {
            let other = target.get("db").and_then(ValueRef::as_str).filter(|name| !name.is_empty());
            targets(value, "coll", other.unwrap_or(database))
        }
        _ => Vec::new(),
    }
}

/// The collections that a field of a stage names.
fn targets<'v>(stage: ValueRef<'v>, field: &str, database: &'v str) -> Vec<(&'v str, &'v str)> {
    let Some(stage) = stage.as_document() else { return Vec::new() };
    stage.iter().filter(|element| element.name == field).flat_map(|element| named(element.value, database)).collect()
}

fn merge_targets<'v>(stage: ValueRef<'v>, database: &'v str) -> Vec<(&'v str, &'v str)> {
    match stage {
        ValueRef::String(_) => named(stage, database),
        _ => targets(stage, "into", database),
    }
}

/// The actions that `$merge` needs on its target.
fn merge_actions(stage: ValueRef<'_>) -> &'static [Action] {
    let stage = stage.as_document().unwrap_or(DocumentRef::EMPTY);
    let is = |field: &str, values: &[&str]| {
        let value = stage.get(field).and_then(ValueRef::as_str);
        value.is_some_and(|value| values.contains(&value))
    };
    match (is("whenMatched", &["fail"]), is("whenNotMatched", &["fail", "discard"])) {
        (true, true) | (false, false) => &[Action::Insert, Action::Update],
        (true, false) => &[Action::Insert],
        (false, true) => &[Action::Update],
    }
}
