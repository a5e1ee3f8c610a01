//! `$listSearchIndexes`: the search indexes of a collection, of both types.

use super::{Source, SourceStage};
use crate::surroundings::Surroundings;
use bunko_access::Action;
use bunko_authority::privileges::pipelines::StagePrivileges;
use bunko_bson::{ArrayBuf, DocumentBuf, ObjectId, ValueRef};
use bunko_catalog::{Collection, Namespace, SearchIndex, SearchIndexStanding};
use bunko_errors::{ErrorCode, Failure, Result};

pub(super) const STAGE: SourceStage = SourceStage {
    facts: &bunko_stages::LIST_SEARCH_INDEXES,
    privileges: StagePrivileges::Actions(&[Action::ListSearchIndexes]),
    source: Source::Collection { check, documents },
};

fn check(specification: ValueRef<'_>) -> Result<()> {
    let ValueRef::Document(specification) = specification else {
        return Err(Failure::failed_to_parse(format!(
            "The $listSearchIndexes stage specification must be an object. Found: {}",
            specification.kind().alias()
        )));
    };
    for field in specification {
        match (field.name, field.value) {
            ("id" | "name", ValueRef::String(_) | ValueRef::Null | ValueRef::Undefined) => {}
            ("id" | "name", other) => {
                return Err(Failure::wrong_type(
                    format_args!("$listSearchIndexes.{}", field.name),
                    other,
                    "type 'string'",
                ));
            }
            (name, _) => return Err(Failure::unknown_field(format_args!("$listSearchIndexes.{name}"))),
        }
    }
    let is_given = |name: &str| specification.get(name).is_some_and(|value| !value.is_nullish());
    if is_given("id") && is_given("name") {
        let message = "Cannot set both 'name' and 'id' for $listSearchIndexes.";
        return Err(Failure::new(ErrorCode::INVALID_OPTIONS, message));
    }
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "other stages of the table may fail here")]
fn documents(
    surroundings: &Surroundings,
    namespace: &Namespace,
    specification: ValueRef<'_>,
) -> Result<Vec<DocumentBuf>> {
    let Some(collection) = surroundings.catalog.collection(namespace) else { return Ok(Vec::new()) };
    let asked = |field: &str| specification.as_document().and_then(|document| document.get(field)?.as_str());
    let (name, id) = (asked("name"), asked("id"));
    let indexes = collection.search_indexes();
    let shown = indexes.iter().filter(|index| {
        name.is_none_or(|name| index.name == name) && id.is_none_or(|id| ObjectId::parse_hex(id) == Some(index.id))
    });
    Ok(shown.map(|index| describe_search_index(&collection, index, &surroundings.host)).collect())
}

/// A search index, as it is listed. It can be searched at once: the first search builds the postings, and if there is
/// no memory for them, each search scans the documents.
pub fn describe_search_index(collection: &Collection, index: &SearchIndex, host: &str) -> DocumentBuf {
    let standing = collection.search_index_standing((index.id, index.version));
    let status = if standing == SearchIndexStanding::Building { "BUILDING" } else { "READY" };
    let created = ValueRef::DateTime(index.created_at_ms);
    let version = DocumentBuf::new().with("version", index.version).with("createdAt", created);
    let mut state = DocumentBuf::new()
        .with("status", status)
        .with("queryable", true)
        .with("definitionVersion", &version)
        .with("definition", &index.sent);
    if standing == SearchIndexStanding::NoRoom {
        state.append("message", "The index finds no room in memory: each search looks at all documents.");
    }
    let mut detail = DocumentBuf::new();
    detail.append("hostname", host).append("status", status).append("queryable", true).append("mainIndex", &state);
    let mut details = ArrayBuf::new();
    details.push(&detail);
    DocumentBuf::new()
        .with("id", index.id.to_string().as_str())
        .with("name", index.name.as_str())
        .with("type", index.definition.kind())
        .with("status", status)
        .with("queryable", true)
        .with("latestVersion", index.version as i32)
        .with("latestDefinitionVersion", &version)
        .with("latestDefinition", &index.sent)
        .with("statusDetail", &details)
}
