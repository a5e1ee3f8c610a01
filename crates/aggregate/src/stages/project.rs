//! `$project`: includes, excludes or computes fields.

use super::projected::Projecting;
use super::{Definition, Stages};
use crate::Environment;
use bunko_bson::ValueRef;
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_expression::Projection;
use bunko_expression::projection::ProjectionKind;

pub(super) const DEFINITION: Definition = Definition { name: "$project", parse };

fn parse(value: ValueRef<'_>, environment: &Environment) -> Result<Stages> {
    let ValueRef::Document(specification) = value else {
        return Err(Failure::new(ErrorCode(15969), "$project specification must be an object"));
    };
    let scope = environment.scope.parse_scope();
    let projection = Projection::parse(specification, ProjectionKind::Aggregate, &scope)
        .map_err(|failure| failure.with_prefix("Invalid $project :: caused by :: "))?;
    Ok(vec![Box::new(Projecting { name: DEFINITION.name, projection })])
}
