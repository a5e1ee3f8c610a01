//! Privileges for pipelines: for the first stage, and for each stage that reads or writes another collection.
//!
//! Stages are searched at any depth of the request, so that no place of an inner pipeline is missed. A view's own
//! pipeline is checked against the user who defines the view, not against its readers.

use super::{Asker, argument, has_on, writes};
use crate::change_stream;
use crate::source_stages;
use bunko_access::Action;
use bunko_bson::{ArrayRef, DocumentRef, Element, ValueRef};
use bunko_request::Request;
use bunko_stages::{Inner, MERGE, OUT};

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
    let options = first.and_then(|first| first.value.as_document()).unwrap_or(DocumentRef::EMPTY);
    let place = PipelinePlace { database, collection, options };
    let name = first.map_or("", |first| first.name);
    match source_stages::find(name).map(|stage| stage.privileges) {
        Some(StagePrivileges::OnCluster(action)) => asker.on_cluster(action),
        Some(StagePrivileges::By(ask)) => ask(asker, &place),
        Some(StagePrivileges::ActionsOr { without_collection, .. }) if collection.is_none() => {
            without_collection(asker)
        }
        Some(StagePrivileges::Actions(actions) | StagePrivileges::ActionsOr { actions, .. }) => {
            actions.iter().all(|action| place.allows(asker, *action))
        }
        None if name == change_stream::STAGE => change_stream::may_open(asker, &place),
        // These documents are in the request.
        None if name == bunko_stages::DOCUMENTS.name => asker.user().is_some(),
        None => place.allows(asker, Action::Find),
    }
}

/// The privileges that a pipeline beginning with a stage needs for its source.
#[derive(Clone, Copy)]
pub(crate) enum StagePrivileges {
    /// The actions on its collection, or on its database if it has none.
    Actions(&'static [Action]),
    /// The actions on its collection. If it has none, the function decides.
    ActionsOr { actions: &'static [Action], without_collection: fn(&Asker<'_>) -> bool },
    /// The action on the server as a whole.
    OnCluster(Action),
    /// As its place and options demand.
    By(fn(&Asker<'_>, &PipelinePlace<'_>) -> bool),
}

/// The place of a pipeline, and the options of its first stage.
pub(crate) struct PipelinePlace<'a> {
    pub database: &'a str,
    /// `None` with `{aggregate: 1}`.
    pub collection: Option<&'a str>,
    pub options: DocumentRef<'a>,
}

impl PipelinePlace<'_> {
    /// Whether an action is allowed on the collection, or on the database if there is none.
    pub(crate) fn allows(&self, asker: &Asker<'_>, action: Action) -> bool {
        match self.collection {
            Some(collection) => asker.on_collection(self.database, collection, action),
            None => asker.on_database(self.database, action),
        }
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
    let Some(entry) = bunko_stages::find(stage.name) else { return true };
    let may_write_all = |targets: Vec<(&str, &str)>, actions| {
        targets.into_iter().all(|(database, name)| may_write(asker, database, name, actions, validation))
    };
    if entry.name == OUT.name {
        return may_write_all(named(stage.value, database), &[Action::Insert, Action::Remove]);
    }
    if entry.name == MERGE.name {
        return may_write_all(merge_targets(stage.value, database), merge_actions(stage.value));
    }
    let read = match entry.inner {
        Inner::Joined { collection: "coll", .. } => named(stage.value, database),
        Inner::Joined { collection, .. } | Inner::Collection { collection } => {
            targets(stage.value, collection, database)
        }
        Inner::None | Inner::Facets => return true,
    };
    let actions = actions_inside(stage.value);
    read.into_iter().all(|target| may_look(target, actions))
}

/// The actions that a pipeline with this first stage needs on its collection.
fn actions_over(first: Option<&str>) -> &'static [Action] {
    match first.and_then(source_stages::find).map(|stage| stage.privileges) {
        Some(StagePrivileges::Actions(actions) | StagePrivileges::ActionsOr { actions, .. }) => actions,
        Some(StagePrivileges::OnCluster(_) | StagePrivileges::By(_)) | None => &[Action::Find],
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
