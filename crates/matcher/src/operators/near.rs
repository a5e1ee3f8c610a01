//! `$near` and `$nearSphere`: documents by distance from a point, nearest first.
//!
//! The planner finds the documents and their order; as conditions these match every document.

use super::FieldOperator;
use crate::expression::Expression;
use crate::parse::{FilterUse, Operand, Parser};
use crate::path::Path;
use bunko_bson::text::ValueText;
use bunko_bson::{DocumentBuf, DocumentRef, StringUse, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_geometry::Near;
use std::sync::Arc;

pub(crate) const NEAR: FieldOperator =
    FieldOperator { name: "$near", strings: StringUse::AsBytes, parse: |parser, operand| misplaced(parser, operand) };
pub(crate) const NEAR_SPHERE: FieldOperator = FieldOperator {
    name: "$nearSphere",
    strings: StringUse::AsBytes,
    parse: |parser, operand| misplaced(parser, operand),
};
pub(crate) const GEO_NEAR: FieldOperator = FieldOperator {
    name: "$geoNear",
    strings: StringUse::AsBytes,
    parse: |parser, operand| misplaced(parser, operand),
};

/// The point of a search by distance.
#[derive(Clone, Debug)]
pub struct NearPoint {
    /// The point and the distances.
    pub near: Arc<Near>,
    source: DocumentBuf,
}

impl NearPoint {
    /// A search near a point that comes from no filter.
    pub fn new(near: Near) -> Self {
        Self { near: Arc::new(near), source: DocumentBuf::new() }
    }

    /// The operators as written.
    pub(crate) fn to_document(&self) -> DocumentBuf {
        self.source.clone()
    }
}

/// Whether the operators of a field are a search by distance. All of them are then parsed together, since
/// `$maxDistance` may be a sibling of `$near`.
pub(crate) fn is_near(condition: DocumentRef<'_>) -> bool {
    condition.first().is_some_and(|first| {
        matches!(first.name, "$near" | "$nearSphere" | "$geoNear")
            && matches!(first.value, ValueRef::Document(_) | ValueRef::Array(_))
    })
}

pub(crate) fn parse(parser: &Parser<'_>, path: &Path, condition: DocumentRef<'_>) -> Result<Expression> {
    refuse_place(parser)?;
    let near = near_of(condition)?;
    let point = NearPoint { near: Arc::new(near), source: condition.to_owned() };
    Ok(Expression::Near { path: path.clone(), point })
}

/// Parses a point and the distance bounds.
/// # Errors
/// MongoDB's codes for invalid points and distances.
pub fn near_of(operators: DocumentRef<'_>) -> Result<Near> {
    Near::parse(operators).map_err(|failure| Failure::new(ErrorCode(failure.code), failure.reason))
}

fn misplaced(parser: &Parser<'_>, operand: &Operand<'_>) -> Result<Expression> {
    refuse_place(parser)?;
    let text = ValueText(ValueRef::Document(operand.siblings));
    Err(Failure::bad_value(format!("near must be first in: {text}")))
}

fn refuse_place(parser: &Parser<'_>) -> Result<()> {
    match parser.place {
        FilterUse::Plan => Ok(()),
        FilterUse::Stage | FilterUse::Elsewhere => {
            let message = "$geoNear, $near, and $nearSphere are not allowed in this context";
            Err(Failure::new(ErrorCode(5_626_500), message))
        }
    }
}

/// Refuses searches that a plan cannot run: more than one, or one that is not a condition on every document.
pub(crate) fn check(root: &Expression) -> Result<()> {
    let top: &[Expression] = match root {
        Expression::And(children) => children,
        other => std::slice::from_ref(other),
    };
    let at_top = top.iter().filter(|child| matches!(child, Expression::Near { .. })).count();
    if at_top > 1 {
        return Err(Failure::bad_value("Too many geoNear expressions"));
    }
    if top.iter().any(|child| !matches!(child, Expression::Near { .. }) && holds_near(child)) {
        return Err(Failure::bad_value("geo $near must be top-level expr"));
    }
    Ok(())
}

/// Whether the tree contains a search by distance.
pub(crate) fn holds_near(expression: &Expression) -> bool {
    match expression {
        Expression::Near { .. } => true,
        Expression::And(children) | Expression::Or(children) | Expression::Nor(children) => {
            children.iter().any(holds_near)
        }
        Expression::Not(child)
        | Expression::ElemMatchObject { filter: child, .. }
        | Expression::ElemMatchValue { condition: child, .. } => holds_near(child),
        _ => false,
    }
}
