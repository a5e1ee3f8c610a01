//! Privileges for pipelines: for the first stage, and for each stage that reads or writes another collection.
//!
//! Stages are searched at any depth of the request, so that no place of an inner pipeline is missed. A view's own
//! pipeline is checked against the user who defines the view, not against its readers.

use super::asker::Asker;
use super::request::{argument, has_on};
use super::writes;
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

/// Whether the client may run this `aggregate`.
pub fn aggregate(asker: &Asker<'_>, request: &Request<'_>, stages: StageTable) -> bool {
    let pipeline = request.body.get("pipeline").and_then(ValueRef::as_array).unwrap_or(ArrayRef::EMPTY);
    let check = PipelineCheck { asker, database: request.database, stages, validation: Validation::of(request) };
    check.may_run(request.argument().as_str(), pipeline)
}

/// `mapReduce`: reads its collection, and writes as its `out` asks.
pub fn map_reduce(asker: &Asker<'_>, request: &Request<'_>) -> bool {
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

/// The check of a pipeline that a client sends to a database.
pub(super) struct PipelineCheck<'a> {
    pub asker: &'a Asker<'a>,
    pub database: &'a str,
    pub stages: StageTable,
    pub validation: Validation,
}

impl PipelineCheck<'_> {
    /// Whether a pipeline over a collection, or over none, is allowed.
    pub fn may_run(&self, collection: Option<&str>, pipeline: ArrayRef<'_>) -> bool {
        let first = pipeline.iter().next().and_then(ValueRef::as_document).and_then(DocumentRef::first);
        self.may_begin(collection, first) && self.may_do_all(ValueRef::Array(pipeline))
    }

    /// Whether the source of a pipeline may be read.
    fn may_begin(&self, collection: Option<&str>, first: Option<Element<'_>>) -> bool {
        let options = first.and_then(|first| first.value.as_document()).unwrap_or(DocumentRef::EMPTY);
        let place = PipelinePlace { database: self.database, collection, options };
        let name = first.map_or("", |first| first.name);
        match (self.stages)(name) {
            Some(StagePrivileges::OnCluster(action)) => self.asker.on_cluster(action),
            Some(StagePrivileges::By(ask)) => ask(self.asker, &place),
            Some(StagePrivileges::ActionsOr { without_collection, .. }) if collection.is_none() => {
                without_collection(self.asker)
            }
            Some(StagePrivileges::Actions(actions) | StagePrivileges::ActionsOr { actions, .. }) => {
                actions.iter().all(|action| place.allows(self.asker, *action))
            }
            // The documents of `$documents` are in the request itself, so the client needs only to be logged in.
            None if name == bunko_stages::DOCUMENTS.name => self.asker.user().is_some(),
            None => place.allows(self.asker, Action::Find),
        }
    }

    /// Whether all stages in a value that use another collection are allowed.
    fn may_do_all(&self, value: ValueRef<'_>) -> bool {
        let fields = match value {
            ValueRef::Document(document) => document,
            ValueRef::Array(array) => array.as_document(),
            _ => return true,
        };
        fields.iter().all(|field| self.may_do(field) && self.may_do_all(field.value))
    }

    fn may_do(&self, stage: Element<'_>) -> bool {
        let database = self.database;
        let may_look = |(database, collection): (&str, &str), actions: &[Action]| {
            actions.iter().all(|action| self.asker.on_collection(database, collection, *action))
        };
        let Some(entry) = bunko_stages::find(stage.name) else { return true };
        let may_write_all = |targets: Vec<(&str, &str)>, actions| {
            let mut targets = targets.into_iter();
            targets.all(|(database, name)| may_write(self.asker, database, name, actions, self.validation))
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
        let actions = self.actions_inside(stage.value);
        read.into_iter().all(|target| may_look(target, actions))
    }

    /// The actions that the pipeline inside a stage needs on its collection.
    fn actions_inside(&self, stage: ValueRef<'_>) -> &'static [Action] {
        let pipeline = stage.as_document().and_then(|stage| stage.get("pipeline")?.as_array());
        let first = pipeline.and_then(|pipeline| pipeline.iter().next()?.as_document()?.first());
        match first.and_then(|first| (self.stages)(first.name)) {
            Some(StagePrivileges::Actions(actions) | StagePrivileges::ActionsOr { actions, .. }) => actions,
            Some(StagePrivileges::OnCluster(_) | StagePrivileges::By(_)) | None => &[Action::Find],
        }
    }
}

/// Finds the privileges of a stage by its name; `None` if the stage cannot begin a pipeline as its source.
pub type StageTable = fn(&str) -> Option<StagePrivileges>;

/// The privileges that a pipeline beginning with a stage needs for its source.
#[derive(Clone, Copy)]
pub enum StagePrivileges {
    /// The actions on its collection, or on its database if it has none.
    Actions(&'static [Action]),
    /// The actions on its collection. If it has none, the function decides.
    ActionsOr {
        /// The actions on the collection.
        actions: &'static [Action],
        /// Decides for a pipeline without a collection.
        without_collection: fn(&Asker<'_>) -> bool,
    },
    /// The action on the server as a whole.
    OnCluster(Action),
    /// Decided by the stage's place and options.
    By(fn(&Asker<'_>, &PipelinePlace<'_>) -> bool),
}

/// The place of a pipeline, and the options of its first stage.
pub struct PipelinePlace<'a> {
    /// The database that the command is sent to.
    pub database: &'a str,
    /// The collection; `None` with `{aggregate: 1}`.
    pub collection: Option<&'a str>,
    /// The options of the first stage.
    pub options: DocumentRef<'a>,
}

impl PipelinePlace<'_> {
    /// Whether an action is allowed on the collection, or on the database if there is none.
    pub fn allows(&self, asker: &Asker<'_>, action: Action) -> bool {
        match self.collection {
            Some(collection) => asker.on_collection(self.database, collection, action),
            None => asker.on_database(self.database, action),
        }
    }
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
