//! `$queryStats`: statistics of queries by shape. None are gathered, as on a MongoDB server whose parameter
//! `internalQueryStatsRateLimit` was not set, so the result is empty.
//!
//! Errors: `InvalidNamespace` outside `admin`, `FailedToParse` unless the specification is an object;
//! `IDLUnknownField`, `IDLFailedToParse`, `TypeMismatch` and `BadValue` for its fields.

use super::{Source, SourceStage};
use crate::context::StageClient;
use bunko_access::Action;
use bunko_authority::privileges::pipelines::StagePrivileges;
use bunko_bson::{DocumentBuf, DocumentRef, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::wrong_type;

pub(super) const STAGE: SourceStage = SourceStage {
    facts: &bunko_stages::QUERY_STATS,
    privileges: StagePrivileges::OnCluster(Action::QueryStatsRead),
    source: Source::Client(documents),
};

/// The only algorithm for hiding names.
const ALGORITHM: &str = "hmac-sha-256";

fn documents(client: &dyn StageClient, _: &Namespace, specification: ValueRef<'_>) -> Result<Vec<DocumentBuf>> {
    let Some(options) = specification.as_document() else {
        let kind = specification.kind().alias();
        let message = format!("$queryStats value must be an object. Found: {kind}");
        return Err(Failure::failed_to_parse(message));
    };
    check_known(bunko_stages::QUERY_STATS.name, options, &["transformIdentifiers"])?;
    match options.get("transformIdentifiers").filter(|value| !value.is_nullish()) {
        None => {}
        Some(ValueRef::Document(transformation)) => check_transformation(transformation)?,
        Some(other) => return Err(wrong_type("$queryStats.transformIdentifiers", other, "object")),
    }
    if client.request().database != "admin" || client.request().argument().as_str().is_some() {
        let message = "$queryStats must be run against the 'admin' database with {aggregate: 1}";
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    }
    Ok(Vec::new())
}

fn check_transformation(transformation: DocumentRef<'_>) -> Result<()> {
    let place = "$queryStats.transformIdentifiers";
    check_known(place, transformation, &["algorithm", "hmacKey"])?;
    match transformation.get("algorithm").filter(|value| !value.is_nullish()) {
        Some(ValueRef::String(ALGORITHM)) => {}
        Some(ValueRef::String(other)) => {
            let message = format!("Enumeration value '{other}' for field '{place}.algorithm' is not a valid value.");
            return Err(Failure::bad_value(message));
        }
        Some(other) => return Err(wrong_type(&format!("{place}.algorithm"), other, "string")),
        None => {
            let message = format!("BSON field '{place}.algorithm' is missing but a required field");
            return Err(Failure::new(ErrorCode::IDL_FAILED_TO_PARSE, message));
        }
    }
    match transformation.get("hmacKey").filter(|value| !value.is_nullish()) {
        None | Some(ValueRef::Binary { .. }) => Ok(()),
        Some(other) => Err(wrong_type(&format!("{place}.hmacKey"), other, "binData")),
    }
}

fn check_known(place: &str, document: DocumentRef<'_>, known: &[&str]) -> Result<()> {
    match document.iter().find(|field| !known.contains(&field.name)) {
        None => Ok(()),
        Some(unknown) => {
            let message = format!("BSON field '{place}.{}' is an unknown field.", unknown.name);
            Err(Failure::new(ErrorCode::IDL_UNKNOWN_FIELD, message))
        }
    }
}
