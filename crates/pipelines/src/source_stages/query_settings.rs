//! `$querySettings`: the settings from `setQuerySettings`, one document for each shape.
//!
//! Errors: `InvalidNamespace` with the name of a collection, 7746800 unless the specification is an object,
//! `IDLUnknownField`, `TypeMismatch`.

use super::{Source, SourceStage};
use crate::context::StageClient;
use bunko_access::Action;
use bunko_authority::privileges::pipelines::StagePrivileges;
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_catalog::Namespace;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_request::fields::wrong_type;

pub(super) const STAGE: SourceStage = SourceStage {
    facts: &bunko_stages::QUERY_SETTINGS,
    privileges: StagePrivileges::OnCluster(Action::QuerySettings),
    source: Source::Client(documents),
};

fn documents(client: &dyn StageClient, namespace: &Namespace, specification: ValueRef<'_>) -> Result<Vec<DocumentBuf>> {
    let Some(options) = specification.as_document() else {
        let kind = specification.kind().alias();
        let message = format!("$querySettings stage expects a document as argument, found: {kind}");
        return Err(Failure::new(ErrorCode(7_746_800), message));
    };
    let mut shows_shapes = false;
    for option in options {
        if option.name != "showDebugQueryShape" {
            return Err(Failure::unknown_field(format_args!("$querySettings.{}", option.name)));
        }
        let ValueRef::Boolean(shows) = option.value else {
            return Err(wrong_type("$querySettings.showDebugQueryShape", option.value, "bool"));
        };
        shows_shapes = shows;
    }
    if client.request().argument().as_str().is_some() {
        let message = format!("$querySettings is not valid on a collection ({namespace}), only with {{aggregate: 1}}");
        return Err(Failure::new(ErrorCode::INVALID_NAMESPACE, message));
    }
    let all = client.query_settings().all();
    let shown = all.iter().map(|(hash, set)| {
        let mut shown = set.to_document(*hash);
        if let Some(shape) = set.shape(|name| client.facts_of(name)).filter(|_| shows_shapes) {
            shown.append("debugQueryShape", &shape);
        }
        shown
    });
    Ok(shown.collect())
}
