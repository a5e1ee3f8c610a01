//! `$addFields`, also `$set`: computes fields beside those that are there.

use super::projected::Projecting;
use super::{Definition, Stages};
use crate::Environment;
use bunko_bson::ValueRef;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::Projection;

pub(super) const DEFINITION: Definition =
    Definition { name: "$addFields", parse: |value, environment| parse("$addFields", value, environment) };
pub(super) const SET: Definition =
    Definition { name: "$set", parse: |value, environment| parse("$set", value, environment) };

fn parse(name: &'static str, value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let ValueRef::Document(specification) = value else {
        let message = format!("{name} specification stage must be an object, got {}", value.kind().alias());
        return Err(Failure::new(ErrorCode(40272), message));
    };
    let projection = Projection::parse_addition(specification, &environment.scope.parse_scope())
        .map_err(|failure| failure.with_prefix(&format!("Invalid {name} :: caused by :: ")))?;
    Ok(vec![Box::new(Projecting { name, projection })])
}
