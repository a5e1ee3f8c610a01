//! `$indexStats`: how often each index was used since the server started, and the sample of its keys, if queries had to
//! choose between it and another index.

use super::{Source, SourceStage};
use crate::resolved::{Below, resolve};
use crate::surroundings::Surroundings;
use bunko_access::Action;
use bunko_authority::privileges::pipelines::StagePrivileges;
use bunko_bson::key_string::decode;
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, StringOrder, ValueRef};
use bunko_catalog::{Answers, Index, IndexState, KeyForm, KeySample, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};
use std::collections::BTreeMap;

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
    let describe = |index: &Index| {
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
        if let Some(sample) = index.sample() {
            described.append("keySample", &described_sample(index, &sample));
        }
        described
    };
    let series = bunko_series::find(&surroundings.catalog, namespace)?;
    let indexes = noted.collection.indexes();
    // The buckets' own index on `_id` is not an index of measurements.
    let shown = indexes.iter().filter(|index| series.is_none() || !index.is_id());
    Ok(shown.map(|index| describe(index)).collect())
}

/// Number of equal parts between the quantiles of a sample.
const QUANTILE_PARTS: usize = 10;

/// A sample: its size, distinct values of the leading fields, and for the first field the types and quantiles. Values
/// are omitted if keys do not tell them, as under a collation.
fn described_sample(index: &Index, sample: &KeySample) -> DocumentBuf {
    let distinct: ArrayBuf = sample.distinct().iter().map(|distinct| distinct.round() as i64).collect();
    let mut described = DocumentBuf::new()
        .with("keys", sample.entries() as i64)
        .with("sampled", sample.len() as i64)
        .with("bytes", sample.held_bytes() as i64)
        .with("renewals", sample.version() as i64)
        .with("distinct", &distinct);
    let is_told = index.kind.answers() == Answers::ByField
        && index.strings == StringOrder::default()
        && index.fields.first().is_some_and(|field| field.form == KeyForm::Value);
    let (Some(last), true) = (sample.len().checked_sub(1), is_told) else { return described };
    let first_value = |position: usize| {
        decode(sample.key(position), &[index.fields[0].direction]).and_then(|values| values.into_iter().next())
    };
    let mut types = BTreeMap::new();
    for value in (0..=last).filter_map(first_value) {
        *types.entry(value.as_ref().kind().alias()).or_insert(0_i64) += 1;
    }
    let types = types.into_iter().fold(DocumentBuf::new(), |types, (name, count)| types.with(name, count));
    let mut quantiles = ArrayBuf::new();
    for value in (0..=QUANTILE_PARTS).filter_map(|part| first_value(last * part / QUANTILE_PARTS)) {
        quantiles.push(&value);
    }
    described.append("types", &types).append("quantiles", &quantiles);
    described
}
