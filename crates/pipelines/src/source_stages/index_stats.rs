//! `$indexStats`: how often each index was used since the server started.

use super::{Source, SourceStage};
use crate::resolved::{Below, resolve};
use crate::surroundings::Surroundings;
use bunko_access::Action;
use bunko_authority::privileges::pipelines::StagePrivileges;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::{IndexState, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};

pub(super) const STAGE: SourceStage = SourceStage {
    facts: &bunko_stages::INDEX_STATS,
    privileges: StagePrivileges::Actions(&[Action::IndexStats]),
    source: Source::Collection { check, documents },
};

fn check(specification: ValueRef<'_>) -> Result<()> {
    if !specification.as_document().is_some_and(DocumentRef::is_empty) {
        let message = "The $indexStats stage specification must be an empty object";
        return Err(Failure::new(ErrorCode(28803), message));
    }
    Ok(())
}

fn documents(surroundings: &Surroundings, namespace: &Namespace, _: ValueRef<'_>) -> Result<Vec<DocumentBuf>> {
    // A view shows the indexes of the collection below it. Sources that are generated while they are read have none.
    let Below::Collection(noted) = resolve(&surroundings.catalog, namespace)?.below else { return Ok(Vec::new()) };
    let describe = |index: &bunko_catalog::Index| {
        let since = ValueRef::DateTime(index.counted_since_ms().unwrap_or(surroundings.started_at_ms));
        let accesses = DocumentBuf::new().with("ops", index.uses() as i64).with("since", since);
        let mut described = DocumentBuf::new()
            .with("name", &index.name)
            .with("key", index.key_pattern())
            .with("accesses", &accesses)
            .with("host", &*surroundings.host)
            .with("spec", &index.document);
        if index.state() == IndexState::Building {
            described.append("building", true);
        }
        described
    };
    let series = bunko_series::find(&surroundings.catalog, namespace)?;
    let indexes = noted.collection.indexes();
    // The buckets' own index on `_id` is not an index of measurements.
    let shown = indexes.iter().filter(|index| series.is_none() || !index.is_id());
    Ok(shown.map(|index| describe(index)).collect())
}
