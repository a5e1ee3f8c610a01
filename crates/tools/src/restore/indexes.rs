//! Builds a collection's indexes once its documents are loaded.

use super::insert::{Journal, concern};
use super::options::{IndexVersion, Indexes};
use super::run::Run;
use super::target::RestoredNamespace;
use crate::progress::Activity;
use crate::{Link, ToolError};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, number};
use bunko_client::CommandError;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// Builds the indexes of loaded targets, while others still load, until no more come.
/// # Errors
/// An error that ends the run.
pub(super) fn build_loaded(run: &Run<'_>, loaded: &Receiver<Arc<RestoredNamespace>>) -> Result<(), ToolError> {
    let mut link = None;
    for target in loaded {
        if run.is_over() {
            return Ok(());
        }
        let indexes = of_target(run, &target);
        if !indexes.is_empty() && !target.earlier.is_indexed {
            let link = match &mut link {
                Some(link) => link,
                none => none.insert(run.connect(&target.name)?),
            };
            build(run, link, &target, &indexes)?;
            if let Some(resume) = &run.resume {
                resume.indexed(&target.source)?;
            }
        }
        target.finish();
    }
    Ok(())
}

/// The indexes that a target needs besides those that come with every collection.
pub(super) fn of_target(run: &Run<'_>, target: &RestoredNamespace) -> Vec<DocumentBuf> {
    // Temporary collections are merged and dropped, so they need no indexes.
    if run.options.indexes == Indexes::Skip || target.role.is_temporary() {
        return Vec::new();
    }
    let wanted = wanted(&target.metadata.indexes, run.options.index_version);
    with_collations(wanted, &target.metadata.options)
}

/// An index without a collation inherits its collection's when it is built; in a dump, it has the simple one.
fn with_collations(indexes: Vec<DocumentBuf>, options: &DocumentBuf) -> Vec<DocumentBuf> {
    if options.as_ref().get("collation").is_none() {
        return indexes;
    }
    let simple = DocumentBuf::new().with("locale", "simple");
    let told = |index: DocumentBuf| match index.as_ref().get("collation") {
        Some(_) => index,
        None => index.with("collation", &simple),
    };
    indexes.into_iter().map(told).collect()
}

/// Builds indexes of one collection. Indexes that the server refuses are noted unless the first error ends the run.
/// # Errors
/// An error that ends the run.
pub(super) fn build(
    run: &Run<'_>,
    link: &mut Box<dyn Link>,
    target: &RestoredNamespace,
    indexes: &[DocumentBuf],
) -> Result<(), ToolError> {
    // One command builds all of them in one scan of the documents.
    let Err(refusal) = create(run, link, target, indexes)? else {
        target.note_indexes_built(indexes.len() as u64);
        return Ok(());
    };
    if let [only] = indexes {
        return refused(run, target, only, refusal);
    }
    for index in indexes {
        match create(run, link, target, std::slice::from_ref(index))? {
            Ok(()) => target.note_indexes_built(1),
            Err(refusal) => refused(run, target, index, refusal)?,
        }
    }
    Ok(())
}

fn create(
    run: &Run<'_>,
    link: &mut Box<dyn Link>,
    target: &RestoredNamespace,
    indexes: &[DocumentBuf],
) -> Result<Result<(), CommandError>, ToolError> {
    let indexes: ArrayBuf = indexes.iter().collect();
    // A collection that is recorded as indexed must survive a crash of the server with its indexes.
    let journal = if run.resume.is_some() { Journal::Required } else { Journal::AsAsked };
    let command = DocumentBuf::new()
        .with("createIndexes", &target.collection)
        .with("indexes", &indexes)
        .with("writeConcern", &concern(&run.options.write_concern, journal));
    let namespace = (target.database.as_str(), target.collection.as_str());
    Ok(run.command(link, Activity::BuildIndexes, namespace, &command)?.map(|_| ()))
}

fn refused(
    run: &Run<'_>,
    target: &RestoredNamespace,
    index: &DocumentBuf,
    refusal: CommandError,
) -> Result<(), ToolError> {
    let name = index.as_ref().get("name").and_then(ValueRef::as_str).unwrap_or("without a name");
    target.note_index_refused(format!("{name}: {refusal}"));
    if run.options.stops_on_error() {
        return Err(ToolError::server(&target.name, refusal));
    }
    Ok(())
}

/// The definitions to build, of the indexes in the dump: without indexes that every collection has, and without fields
/// that only the old server needed.
pub(super) fn wanted(indexes: &[DocumentBuf], version: IndexVersion) -> Vec<DocumentBuf> {
    let wanted = indexes.iter().map(DocumentBuf::as_ref).filter(|index| !comes_with_collection(*index));
    wanted.map(|index| definition(index, version)).collect()
}

fn definition(index: DocumentRef<'_>, version: IndexVersion) -> DocumentBuf {
    let mut definition = DocumentBuf::new();
    for field in index {
        // The collection may have another name here.
        let is_dropped = field.name == "ns" || (field.name == "v" && version == IndexVersion::ChosenByServer);
        if !is_dropped {
            definition.append(field.name, field.value);
        }
    }
    definition
}

/// Recognises the index on `_id`, for which an old server may have any positive number, and a clustered collection's.
fn comes_with_collection(index: DocumentRef<'_>) -> bool {
    let is_clustered = matches!(index.get("clustered"), Some(ValueRef::Boolean(true)));
    let key = index.get("key").and_then(ValueRef::as_document);
    let is_id = key.is_some_and(|key| {
        let first = key.first().filter(|first| first.name == "_id" && key.count() == 1);
        first.and_then(|first| number::as_f64(first.value)).is_some_and(|direction| direction > 0.0)
    });
    is_clustered || is_id
}

#[cfg(test)]
mod tests {
    use super::*;
    use bunko_archive::metadata::Metadata;
    use bunko_bson::extended_json::to_relaxed;

    #[test]
    fn the_id_index_clustered_indexes_and_old_fields_are_left_out() {
        let metadata = Metadata::parse(
            r#"{"indexes":[{"v":2,"key":{"_id":1},"name":"_id_","ns":"a.b"},{"v":2,"key":{"_id":"hashed"},"name":"h"},
               {"v":2,"key":{"_id":1,"a":1},"name":"c"},{"v":2,"key":{"t":1},"name":"t","clustered":true},
               {"v":1,"key":{"a":-1},"name":"a","ns":"a.b","unheardOf":{"x":1}}]}"#,
        )
        .expect("metadata");
        let shown = |version| {
            let wanted = wanted(&metadata.indexes, version);
            wanted.iter().map(|index| to_relaxed(index.into())).collect::<Vec<_>>()
        };
        let expected = [
            r#"{"key":{"_id":"hashed"},"name":"h"}"#,
            r#"{"key":{"_id":1,"a":1},"name":"c"}"#,
            r#"{"key":{"a":-1},"name":"a","unheardOf":{"x":1}}"#,
        ];
        assert_eq!(shown(IndexVersion::ChosenByServer), expected);
        assert!(shown(IndexVersion::Keep)[2].starts_with(r#"{"v":1,"#));
    }

    #[test]
    fn no_collation_of_an_index_is_the_simple_one() {
        let shown = |options: &str| {
            let metadata = format!(
                r#"{{"options":{options},"indexes":[{{"key":{{"a":1}},"name":"a"}},
                   {{"key":{{"b":1}},"name":"b","collation":{{"locale":"sv"}}}}]}}"#
            );
            let metadata = Metadata::parse(&metadata).expect("metadata");
            let indexes = with_collations(wanted(&metadata.indexes, IndexVersion::Keep), &metadata.options);
            indexes.iter().map(|index| to_relaxed(index.into())).collect::<Vec<_>>()
        };
        let collated = r#"{"key":{"b":1},"name":"b","collation":{"locale":"sv"}}"#;
        let simple = r#"{"key":{"a":1},"name":"a","collation":{"locale":"simple"}}"#;
        assert_eq!(shown(r#"{"collation":{"locale":"fr"}}"#), [simple, collated]);
        assert_eq!(shown("{}"), [r#"{"key":{"a":1},"name":"a"}"#, collated]);
    }
}
