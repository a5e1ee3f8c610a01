//! `$planCacheStats`: cached plans, which trials found best.
//!
//! Errors: `FailedToParse` for unknown fields, 4503200 for `allHosts`, 50933 if the collection does not exist, 40602 on
//! a time series.

use super::{Source, SourceStage};
use crate::resolved::{Below, resolve};
use crate::surroundings::Surroundings;
use bunko_access::Action;
use bunko_authority::privileges::pipelines::StagePrivileges;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, ValueRef};
use bunko_catalog::{CachedPlan, Namespace};
use bunko_errors::{ErrorCode, Failure, Result};

pub(super) const STAGE: SourceStage = SourceStage {
    facts: &bunko_stages::PLAN_CACHE_STATS,
    privileges: StagePrivileges::Actions(&[Action::PlanCacheRead]),
    source: Source::Collection { check, documents },
};

fn check(specification: ValueRef<'_>) -> Result<()> {
    let Some(options) = specification.as_document() else {
        let message = format!("$planCacheStats value must be an object. Found: {}", ValueText(specification));
        return Err(Failure::failed_to_parse(message));
    };
    let mut all_hosts = None;
    for option in options {
        let (known, value) = (option.name == "allHosts" && all_hosts.is_none(), option.value);
        let ValueRef::Boolean(value) = value else {
            let message = format!("$planCacheStats has no option '{}: {}'", option.name, ValueText(value));
            return Err(Failure::failed_to_parse(message));
        };
        if !known {
            let message = format!("$planCacheStats has no option '{}', or has it twice", option.name);
            return Err(Failure::failed_to_parse(message));
        }
        all_hosts = Some(value);
    }
    if all_hosts == Some(true) {
        let message = "$planCacheStats stage supports allHosts parameter only for sharded clusters";
        return Err(Failure::new(ErrorCode(4_503_200), message));
    }
    Ok(())
}

fn documents(surroundings: &Surroundings, namespace: &Namespace, _: ValueRef<'_>) -> Result<Vec<DocumentBuf>> {
    let catalog = &surroundings.catalog;
    if bunko_series::find(catalog, namespace)?.is_some() {
        // On a time series the stage that unpacks the buckets comes first, so this stage cannot.
        let message = "$planCacheStats is only valid as the first stage in a pipeline.";
        return Err(Failure::new(ErrorCode(40602), message));
    }
    let noted = match resolve(catalog, namespace)?.below {
        Below::Collection(noted) => noted,
        // Reads of a source that is not stored have no plans.
        Below::Unstored(_) => return Ok(Vec::new()),
        Below::Absent => {
            let message = format!("collection '{namespace}' does not exist");
            return Err(Failure::new(ErrorCode(50933), message));
        }
    };
    let host = &*surroundings.host;
    let shown = |plan: &CachedPlan| {
        let size = plan.facts.as_ref().as_ref().len_bytes() + plan.shape.len() + size_of::<CachedPlan>();
        let mut shown = DocumentBuf::new();
        shown
            .extend(plan.facts.as_ref().as_ref())
            .append("works", plan.works as i64)
            .append("isActive", plan.is_active)
            .append("timeOfCreation", ValueRef::DateTime(plan.created_ms))
            .append("estimatedSizeBytes", size as i64)
            .append("host", host);
        shown
    };
    Ok(noted.collection.plan_cache().all().iter().map(shown).collect())
}
