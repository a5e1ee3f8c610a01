//! `$queryStats`: statistics of queries by key, which is their shape with their client and options. Queries are counted
//! as the parameters `internalQueryStatsRateLimit` and `internalQueryStatsSampleRate` say: none by default, as on MongoDB.
//!
//! Differences from MongoDB: no metric of bytes read from disk, of admission tickets and of interrupt checks, which have
//! no meaning here; hashes of shapes have other values; `docsReturned` of `count` and `distinct` is 0.
//!
//! Errors: `InvalidNamespace` outside `admin`, `FailedToParse` unless the specification is an object;
//! `IDLUnknownField`, `IDLFailedToParse`, `TypeMismatch` and `BadValue` for its fields.
//! Source: MongoDB manual 8.2, "$queryStats (aggregation stage)".

use super::{Source, SourceStage, check_known};
use crate::context::StageClient;
use bunko_access::Action;
use bunko_authority::Asker;
use bunko_authority::privileges::pipelines::{PipelinePlace, StagePrivileges};
use bunko_bson::{DocumentBuf, DocumentRef, Timestamp, ValueRef, base64};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::wrong_type;
use bunko_settings::query_settings::{HiddenNames, ShapeHash, sha256};

pub(super) const STAGE: SourceStage = SourceStage {
    facts: &bunko_stages::QUERY_STATS,
    privileges: StagePrivileges::By(may_begin),
    source: Source::Client(documents),
};

const TRANSFORMATION: &str = "transformIdentifiers";
/// The only algorithm for hiding names.
const ALGORITHM: &str = "hmac-sha-256";

/// Whether the client may see the statistics as it asks for them: as they are, or with hidden names.
fn may_begin(asker: &Asker<'_>, place: &PipelinePlace<'_>) -> bool {
    let hides = place.options.get(TRANSFORMATION).is_some_and(|value| !value.is_nullish());
    asker.on_cluster(if hides { Action::QueryStatsReadTransformed } else { Action::QueryStatsRead })
}

fn documents(client: &dyn StageClient, _: &Namespace, specification: ValueRef<'_>) -> Result<Vec<DocumentBuf>> {
    let Some(options) = specification.as_document() else {
        let kind = specification.kind().alias();
        let message = format!("$queryStats value must be an object. Found: {kind}");
        return Err(Failure::failed_to_parse(message));
    };
    check_known(bunko_stages::QUERY_STATS.name, options, &[TRANSFORMATION])?;
    let hidden = match options.get(TRANSFORMATION).filter(|value| !value.is_nullish()) {
        None => None,
        Some(ValueRef::Document(transformation)) => Some(read_transformation(transformation)?),
        Some(other) => return Err(wrong_type("$queryStats.transformIdentifiers", other, "object")),
    };
    if client.request().database != "admin" || client.request().argument().as_str().is_some() {
        let message = "$queryStats must be run against the 'admin' database with {aggregate: 1}";
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    }
    let surroundings = client.surroundings();
    let statistics = client.query_statistics();
    // Each document has the key once more, its hashes and its numbers.
    let size = statistics.size();
    surroundings.operation.will_take((2 * size.bytes + 1024 * size.entries) as usize)?;
    let seconds = u32::try_from(surroundings.clock.now_ms() / 1000).unwrap_or(u32::MAX);
    let as_of = Timestamp { seconds, increment: 0 };
    let mut shown = Vec::new();
    let mut outcome = Ok(());
    statistics.for_each(|key, metrics| {
        if outcome.is_ok() {
            outcome = surroundings.operation.work(1);
            shown.push(describe(key, hidden.as_ref(), &metrics.to_document(), as_of));
        }
    });
    outcome.map(|()| shown)
}

/// Describes the statistics of one key.
fn describe(
    key: DocumentRef<'_>,
    hidden: Option<&HiddenNames>,
    metrics: &DocumentBuf,
    as_of: Timestamp,
) -> DocumentBuf {
    let shape = key.get("queryShape").and_then(ValueRef::as_document).unwrap_or(DocumentRef::EMPTY).to_owned();
    let hash = ShapeHash::of(&shape).to_string();
    let shown = hidden.map_or_else(|| key.to_owned(), |hidden| hidden.of_key(key));
    DocumentBuf::new()
        .with("key", &shown)
        .with("keyHash", base64::encode(&sha256(key.as_bytes())).as_str())
        .with("queryShapeHash", hash.as_str())
        .with("metrics", metrics)
        .with("asOf", ValueRef::Timestamp(as_of))
}

fn read_transformation(transformation: DocumentRef<'_>) -> Result<HiddenNames> {
    let place = "$queryStats.transformIdentifiers";
    check_known(place, transformation, &["algorithm", "hmacKey"])?;
    match transformation.get("algorithm").filter(|value| !value.is_nullish()) {
        Some(ValueRef::String(ALGORITHM)) => {}
        Some(ValueRef::String(other)) => {
            let message = format!("Enumeration value '{other}' for field '{place}.algorithm' is not a valid value.");
            return Err(Failure::bad_value(message));
        }
        Some(other) => return Err(wrong_type(&format!("{place}.algorithm"), other, "string")),
        None => return Err(Failure::missing_field(format_args!("{place}.algorithm"))),
    }
    match transformation.get("hmacKey").filter(|value| !value.is_nullish()) {
        Some(ValueRef::Binary { bytes, .. }) => Ok(HiddenNames::new(bytes)),
        None => Err(Failure::missing_field(format_args!("{place}.hmacKey"))),
        Some(other) => Err(wrong_type(&format!("{place}.hmacKey"), other, "binData")),
    }
}
