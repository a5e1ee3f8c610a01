//! `$vectorSearch`: the documents with the nearest vectors. The server's vector indexes find them.
//!
//! A part of the specification is checked when the pipeline is parsed, with separate error codes. The rest is checked
//! by the part that MongoDB calls the search node, when the pipeline runs, with one error code.
//! Source: MongoDB manual, "$vectorSearch"; answers of MongoDB 8.2.

use super::search_filter::{refuse_elsewhere_only, visit_conditions};
use super::{Definition, Reads, Stage, Stages};
use crate::metadata::Carried;
use crate::{DocumentStream, Environment, ScoredDocuments};
use bunko_bson::{DocumentBuf, StringUse, ValueRef, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::{Dependencies, Offered};
use std::sync::Arc;

pub(super) const DEFINITION: Definition =
    Definition { facts: &bunko_stages::VECTOR_SEARCH, strings: StringUse::AsBytes, parse };

/// The stage as sent.
struct VectorSearch(DocumentBuf);

/// Errors: `FailedToParse` if it is not a document; 8575100 for a limit that is not a number and 7912700 for one that
/// is not positive; 10065 for a filter that is not an object; errors of filters.
fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let ValueRef::Document(specification) = value else {
        let kind = value.kind().alias();
        let message = format!("{} value must be an object. Found: {kind}", DEFINITION.facts.name);
        return Err(Failure::failed_to_parse(message));
    };
    if let Some(limit) = specification.get("limit") {
        check_limit(limit)?;
    }
    if let Some(filter) = specification.get("filter") {
        check_filter(filter, environment)?;
    }
    Ok(vec![Box::new(VectorSearch(specification.to_owned()))])
}

fn check_limit(limit: ValueRef<'_>) -> Result<()> {
    if !limit.is_number() {
        let kind = limit.kind().alias();
        let message = format!("Expected limit to be a number but found {kind}");
        return Err(Failure::new(ErrorCode(8_575_100), message));
    }
    // A limit that is not a number counts as 0.
    if number::clamp_to_i64(limit).unwrap_or(0) < 1 {
        return Err(Failure::new(ErrorCode(7_912_700), "Expected limit to be positive"));
    }
    Ok(())
}

/// Checks that a filter is valid in the query language. The search node decides which filters a search accepts.
fn check_filter(filter: ValueRef<'_>, environment: &Environment) -> Result<()> {
    let filter = match filter {
        ValueRef::Document(filter) => filter,
        // The search node refuses an array.
        ValueRef::Array(_) => return Ok(()),
        other => {
            let kind = other.kind().alias();
            let message = format!("invalid parameter: expected an object (filter), found: {kind}");
            return Err(Failure::new(ErrorCode(10065), message));
        }
    };
    visit_conditions(filter, &mut |condition| {
        refuse_elsewhere_only(condition)?;
        match condition.value {
            ValueRef::Document(operators) if operators.get("$comment").is_some() => {
                Err(Failure::bad_value("unknown operator: $comment"))
            }
            _ => Ok(()),
        }
    })?;
    bunko_query::parse_filter(filter, &environment.scope).map(drop)
}

impl Stage for VectorSearch {
    fn name(&self) -> &'static str {
        DEFINITION.facts.name
    }

    fn open(self: Arc<Self>, _: Box<dyn DocumentStream>, environment: &Arc<Environment>) -> Box<dyn DocumentStream> {
        Box::new(Searching { stage: self, environment: Arc::clone(environment), found: None })
    }

    fn brings_documents(&self) -> bool {
        true
    }

    fn metadata(&self) -> Carried {
        Carried::Made(Offered::SCORE)
    }

    fn add_dependencies(&self, _: &mut Dependencies) -> Reads {
        Reads::OnlyThese
    }
}

struct Searching {
    stage: Arc<VectorSearch>,
    environment: Arc<Environment>,
    /// `None` until the first document is requested.
    found: Option<Box<dyn ScoredDocuments>>,
}

impl Searching {
    fn found(&mut self) -> Result<Option<&mut Box<dyn ScoredDocuments>>> {
        if self.found.is_none() {
            let Some(over) = &self.environment.over else { return Ok(None) };
            self.found = Some(self.environment.sources.nearest(over, self.stage.0.as_ref())?);
        }
        Ok(self.found.as_mut())
    }
}

impl DocumentStream for Searching {
    fn next(&mut self) -> Result<Option<DocumentBuf>> {
        let Some(found) = self.found()? else { return Ok(None) };
        let Some((document, score)) = found.next()? else { return Ok(None) };
        let at_hand = &self.environment.scope.at_hand;
        if at_hand.is_wanted() {
            at_hand.set(Some(Arc::new(DocumentBuf::new().with("vectorSearchScore", score).with("score", score))));
        }
        Ok(Some(document))
    }
}
