//! Stages that begin a pipeline with their own documents instead of a collection's: one file and one line each.
//!
//! They are separate from the other stages, which depend only on their input: these read the server's state.

mod coll_stats;
mod current_op;
mod index_stats;
mod list_catalog;
mod list_cluster_catalog;
mod list_sampled_queries;
mod list_search_indexes;
mod list_sessions;
mod plan_cache_stats;
mod query_settings;
mod query_stats;

use crate::context::StageClient;
use crate::surroundings::Surroundings;
use crate::unstored::Unstored;
use bunko_authority::privileges::pipelines::StagePrivileges;
use bunko_bson::{ArrayBuf, ArrayRef, DocumentBuf, DocumentRef, Element, ValueRef};
use bunko_catalog::{Catalog, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_stages::Subject;

pub use coll_stats::write_buckets;
pub use list_search_indexes::describe_search_index;

static STAGES: &[SourceStage] = &[
    coll_stats::STAGE,
    current_op::STAGE,
    index_stats::STAGE,
    list_catalog::STAGE,
    list_cluster_catalog::STAGE,
    list_sampled_queries::STAGE,
    list_search_indexes::STAGE,
    list_sessions::ALL,
    list_sessions::LOCAL,
    plan_cache_stats::STAGE,
    query_settings::STAGE,
    query_stats::STAGE,
];

/// One entry of the table.
pub struct SourceStage {
    /// The stage's entry in the table of all stages.
    pub facts: &'static bunko_stages::Stage,
    /// The privileges that a pipeline beginning with the stage needs.
    pub privileges: StagePrivileges,
    source: Source,
}

/// How the documents are made.
enum Source {
    /// From the collection and its surroundings, so the stage may also begin an inner pipeline or a view's pipeline.
    Collection {
        check: fn(ValueRef<'_>) -> Result<()>,
        /// Called with a checked specification.
        documents: fn(&Surroundings, &Namespace, ValueRef<'_>) -> Result<Vec<DocumentBuf>>,
    },
    /// From the client and its command. The function also parses the specification.
    Client(fn(&dyn StageClient, &Namespace, ValueRef<'_>) -> Result<Vec<DocumentBuf>>),
}

/// A pipeline that begins with a source stage.
pub struct SourcedPipeline<'a> {
    /// The stage.
    pub stage: &'static SourceStage,
    specification: ValueRef<'a>,
    /// The stages after it.
    pub rest: ArrayBuf,
}

impl<'a> SourcedPipeline<'a> {
    /// Takes the source stage off a pipeline, if it begins with one.
    /// # Errors
    /// Location40602 if a source stage is not the first.
    pub fn take_off(pipeline: ArrayRef<'a>) -> Result<Option<Self>> {
        if let Some((stage, _)) = pipeline.iter().skip(1).find_map(source_stage) {
            return Err(Failure::new(
                ErrorCode(40602),
                format!("{} is only valid as the first stage in a pipeline.", stage.facts.name),
            ));
        }
        let first = pipeline.iter().next().and_then(source_stage);
        Ok(first.map(|(stage, specification)| Self { stage, specification, rest: pipeline.iter().skip(1).collect() }))
    }

    /// Whether a source stage has that name.
    pub(crate) fn is_source_stage(name: &str) -> bool {
        find(name).is_some()
    }

    /// Refuses a stage that reports on a stored collection, if the namespace has no stored one.
    /// # Errors
    /// `CommandNotSupported`.
    pub fn check_subject(&self, catalog: &Catalog, namespace: &Namespace) -> Result<()> {
        if !self.stage.facts.subject.is_collection() {
            return Ok(());
        }
        Unstored::at(catalog, namespace).map_or(Ok(()), |unstored| unstored.check_stage(self.stage.facts, namespace))
    }

    /// Checks the stage before it runs. A stage that depends on the command produces its documents for that.
    /// # Errors
    /// Errors of a malformed specification.
    pub fn check(&self, client: &dyn StageClient, namespace: &Namespace) -> Result<()> {
        match self.stage.source {
            Source::Collection { check, .. } => {
                check(self.specification)?;
                match self.stage.facts.subject {
                    Subject::CollectionOrServer => list_catalog::is_of_server(namespace).map(drop),
                    _ => Ok(()),
                }
            }
            Source::Client(_) => self.documents(client, namespace).map(drop),
        }
    }

    /// The documents that the source stage puts into the pipeline.
    /// # Errors
    /// Errors of a malformed specification.
    pub fn documents(&self, client: &dyn StageClient, namespace: &Namespace) -> Result<Vec<DocumentBuf>> {
        match self.stage.source {
            Source::Collection { check, documents } => {
                check(self.specification)?;
                documents(&client.surroundings(), namespace, self.specification)
            }
            Source::Client(documents) => documents(client, namespace, self.specification),
        }
    }
}

/// Checks whether a source stage may begin an inner pipeline on this database and collection (or none). Names of other
/// stages pass.
/// # Errors
/// `InvalidNamespace`.
pub(crate) fn check_place(name: &str, database: &str, collection: Option<&str>) -> Result<()> {
    let invalid = |message: String| Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    let Some(stage) = find(name) else { return Ok(()) };
    match (stage.facts.subject, collection) {
        (Subject::Admin, _) if database != "admin" || collection.is_some() => {
            invalid(format!("{name} must be run against the 'admin' database with {{aggregate: 1}}"))
        }
        (Subject::Sessions, _) if (database, collection) != ("config", Some("system.sessions")) => {
            invalid(format!("{name} may only be run against config.system.sessions"))
        }
        (Subject::Server, Some(collection)) => invalid(format!(
            "{name} is not valid on a collection ({database}.{collection}), only with {{aggregate: 1}}"
        )),
        (Subject::Collection, None) => invalid(format!("{name} is not valid without a collection")),
        _ => Ok(()),
    }
}

/// Reads a source stage that begins an inner pipeline or a view's pipeline; `None` if no source stage has that name.
/// # Errors
/// Errors of the specification; `CommandNotSupported` for a stage that depends on the client, and over a collection of
/// sessions.
pub(crate) fn inside(
    stage: Element<'_>,
    namespace: &Namespace,
    surroundings: &Surroundings,
) -> Result<Option<bunko_aggregate::SourceStage>> {
    let Some(entry) = find(stage.name) else { return Ok(None) };
    let Source::Collection { check, documents } = entry.source else {
        return Err(Failure::not_supported_yet(&format!("{} in a pipeline inside another", stage.name)));
    };
    check(stage.value)?;
    if let Some(unstored) = Unstored::at(&surroundings.catalog, namespace) {
        unstored.check_stage(entry.facts, namespace)?;
    }
    let sent = DocumentBuf::new().with(stage.name, stage.value);
    let (namespace, surroundings) = (namespace.clone(), surroundings.clone());
    let documents = Box::new(move || {
        let specification = sent.as_ref().first().map_or(ValueRef::Null, |stage| stage.value);
        documents(&surroundings, &namespace, specification)
    });
    Ok(Some(bunko_aggregate::SourceStage { name: entry.facts.name, documents }))
}

/// The source stage of that name, if there is one.
pub fn find(name: &str) -> Option<&'static SourceStage> {
    STAGES.iter().find(|entry| entry.facts.name == name)
}

/// The entry for a stage, with its specification. `None` for a stage with several fields, which the pipeline's parser
/// refuses.
fn source_stage(stage: ValueRef<'_>) -> Option<(&'static SourceStage, ValueRef<'_>)> {
    let stage = stage.as_document().filter(|stage| stage.count() == 1)?.first()?;
    let entry = find(stage.name)?;
    Some((entry, stage.value))
}

/// Refuses fields that are not in `known`.
/// # Errors
/// `IDLUnknownField`.
fn check_known(place: &str, document: DocumentRef<'_>, known: &[&str]) -> Result<()> {
    match document.iter().find(|field| !known.contains(&field.name)) {
        None => Ok(()),
        Some(unknown) => Err(Failure::unknown_field(format_args!("{place}.{}", unknown.name))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_of_a_source_stage_say_that_it_finds_its_documents() {
        for entry in STAGES {
            let facts = bunko_stages::find(entry.facts.name).expect("the table of facts has the stage");
            assert!(facts.finds_documents(), "{}", facts.name);
            // Only a stage that depends on no client may begin the pipeline inside another stage.
            let works_inside = matches!(facts.subject, Subject::Collection | Subject::CollectionOrServer);
            assert_eq!(matches!(entry.source, Source::Collection { .. }), works_inside, "{}", facts.name);
        }
    }
}
