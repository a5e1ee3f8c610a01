//! `$listSampledQueries`: queries that `configureQueryAnalyzer` samples for choosing a shard key. Without shards it
//! samples none, so the result is empty.
//! Source: MongoDB manual, "`$listSampledQueries` (aggregation)".

use super::{Source, SourceStage};
use crate::context::StageClient;
use bunko_access::Action;
use bunko_authority::privileges::pipelines::StagePrivileges;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::deployment::Deployment;
use bunko_request::fields::wrong_type;

const NAME: &str = bunko_stages::LIST_SAMPLED_QUERIES.name;

pub(super) const STAGE: SourceStage = SourceStage {
    facts: &bunko_stages::LIST_SAMPLED_QUERIES,
    privileges: StagePrivileges::OnCluster(Action::ListSampledQueries),
    source: Source::Client(documents),
};

/// # Errors
/// `IllegalOperation` on a standalone server; `InvalidNamespace` except on `admin` with `{aggregate: 1}`; 6876001 if
/// the specification is not an object; `TypeMismatch`, `IDLUnknownField`.
fn documents(client: &dyn StageClient, _: &Namespace, specification: ValueRef<'_>) -> Result<Vec<DocumentBuf>> {
    if client.deployment() == Deployment::Standalone {
        let message = format!("{NAME} is not supported on a standalone mongod");
        return Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message));
    }
    if client.request().database != "admin" || client.request().argument().as_str().is_some() {
        let message = format!("{NAME} must be run against the 'admin' database with {{aggregate: 1}}");
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    }
    let ValueRef::Document(specification) = specification else {
        let message = format!("{NAME} must take a nested object but found: {}", ValueText(specification));
        return Err(Failure::new(ErrorCode(6_876_001), message));
    };
    for option in specification {
        if option.name != "namespace" {
            return Err(Failure::unknown_field(format_args!("{NAME}.{}", option.name)));
        }
        let namespace = option.value.as_str();
        let namespace = namespace.ok_or_else(|| wrong_type(&format!("{NAME}.namespace"), option.value, "string"))?;
        Namespace::parse(namespace)?;
    }
    Ok(Vec::new())
}
