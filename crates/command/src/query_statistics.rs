//! The gathering of statistics for `$queryStats`.
//!
//! `Invocation::begin_statistics` decides before a command runs whether it is counted, and `Invocation::note_query`
//! counts it when it ends. A query whose cursor stays open leaves its tally with the cursor. Each `getMore` takes the
//! tally, adds its batch, and returns it to the cursor; the query is counted when its cursor is closed.

use crate::invocation::Invocation;
use crate::target::Target;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::Namespace;
use bunko_observe::query_statistics::{Execution, PlanFacts};
use bunko_operation::BatchWork;
use bunko_query::{PlanChoice, PlanReport};
use bunko_request::facts::ReadsFrom;
use bunko_request::fields::truth;
use bunko_session::cursors::QueryTally;
use bunko_settings::query_settings::{placeholder, shape_of};
use std::time::Duration;

/// Options that are part of a key as they are.
const LITERAL: [&str; 4] = ["$readPreference", "apiVersion", "apiStrict", "apiDeprecationErrors"];
/// Options of which a key has only whether they are true.
const FLAGS: [&str; 3] = ["allowPartialResults", "noCursorTimeout", "bypassDocumentValidation"];
/// Options of which a key has only the type.
const TYPES: [&str; 3] = ["comment", "maxTimeMS", "batchSize"];
/// Parts of a read concern that name moments.
const MOMENTS: [&str; 2] = ["afterClusterTime", "atClusterTime"];

struct Tally(Execution);

impl QueryTally for Tally {
    fn add(&mut self, batch: &BatchWork) {
        self.0.add(batch);
    }
}

impl Invocation<'_> {
    /// Decides whether the command is counted for `$queryStats`.
    pub(crate) fn begin_statistics(&mut self) {
        let limits = &self.service.parameters.query_statistics;
        if !limits.is_on() {
            return;
        }
        let is_query =
            self.command.has_query_shape() && self.request.body.get("explain").is_none_or(|value| !truth(value));
        let world = &self.service.world;
        self.is_counted = is_query && limits.admits(world.now_ms(), &*world.random);
        if self.is_counted || self.command.reads == ReadsFrom::Cursor {
            self.measure_processor_time();
        }
    }

    /// Counts a command that has succeeded.
    pub(crate) fn note_query(&mut self, elapsed: Duration) {
        let mut tally = match self.tally.take() {
            Some(tally) => tally,
            None if self.is_counted => Box::new(Tally(self.execution())) as Box<dyn QueryTally>,
            None => return,
        };
        tally.add(&BatchWork {
            elapsed,
            processor_time: self.processor_time(),
            examined: self.observation.examined.unwrap_or_default(),
            returned: self.observation.returned.unwrap_or(0),
            has_used_disk: self.observation.has_used_disk,
            ended_ms: self.service.world.now_ms(),
        });
        // Without a cursor, the query has ended.
        if let Some(id) = self.cursor_open {
            self.service.cursors.keep_tally(id, tally);
        }
    }

    fn execution(&self) -> Execution {
        let service = self.service;
        let bytes_max = service.parameters.query_statistics.bytes_max(service.facts.memory_limits.server.bytes_max());
        let mut execution = service.query_statistics.begin(self.statistics_key(), bytes_max);
        if let Some(report) = self.observation.plan.as_deref() {
            execution.note_plan(facts_of(report));
        }
        execution
    }

    /// The key under which this query is counted together with others of its shape and options.
    fn statistics_key(&self) -> DocumentBuf {
        let body = self.request.body;
        let shape = shape_of(self.command, self.request.database, body);
        let mut key = DocumentBuf::new().with("queryShape", &shape);
        let given =
            |names: &'static [&'static str]| names.iter().filter_map(move |name| Some((*name, body.get(name)?)));
        for (name, value) in given(&LITERAL) {
            key.append(name, value);
        }
        if let Some(concern) = body.get("readConcern").and_then(ValueRef::as_document) {
            key.append("readConcern", &without_moments(concern));
        }
        for (name, value) in given(&FLAGS) {
            key.append(name, truth(value));
        }
        for (name, value) in given(&TYPES) {
            key.append(name, placeholder(value).as_str());
        }
        match body.get("hint") {
            Some(ValueRef::Document(hint)) => _ = key.append("hint", hint),
            Some(name) => _ = key.append("hint", placeholder(name).as_str()),
            None => {}
        }
        if let Some(size) = body.get("cursor").and_then(|cursor| cursor.as_document()?.get("batchSize")) {
            key.append("cursor", &DocumentBuf::new().with("batchSize", placeholder(size).as_str()));
        }
        if let Some(client) = &self.connection.metadata {
            key.append("client", client);
        }
        key.append("collectionType", self.collection_type());
        key
    }

    fn collection_type(&self) -> &'static str {
        let stages = self.request.body.get("pipeline").and_then(ValueRef::as_array);
        let first = stages.and_then(|stages| stages.get(0)?.as_document()?.first());
        if let Some(stage) = first.and_then(|first| bunko_stages::find(first.name))
            && stage.source == bunko_stages::Source::Own
        {
            return if stage.name == bunko_stages::CHANGE_STREAM.name { "changeStream" } else { "virtual" };
        }
        let name = self.request.argument().as_str();
        let namespace = name.and_then(|name| Namespace::new(self.request.database, name).ok());
        let target = namespace.and_then(|namespace| Target::of(&self.service.catalog, self, &namespace).ok());
        match target {
            Some(Target::Collection(_)) => "collection",
            Some(Target::View) => "view",
            Some(Target::TimeSeries(_)) => "timeseries",
            Some(Target::Unstored(_)) => "virtual",
            Some(Target::Absent) | None => "nonExistent",
        }
    }
}

fn facts_of(report: &PlanReport) -> PlanFacts {
    PlanFacts {
        sorts: report.sorts,
        from_trial: matches!(report.choice, PlanChoice::Trial | PlanChoice::Replanned { .. }),
        from_cache: report.choice == PlanChoice::Cache,
    }
}

/// A read concern with moments replaced by their type.
fn without_moments(concern: DocumentRef<'_>) -> DocumentBuf {
    let mut shown = DocumentBuf::new();
    for element in concern {
        if MOMENTS.contains(&element.name) {
            shown.append(element.name, placeholder(element.value).as_str());
        } else {
            shown.append(element.name, element.value);
        }
    }
    shown
}
