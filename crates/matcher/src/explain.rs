//! The normal form as a filter document, in the shape of explain's `parsedQuery`.

use crate::expression::Expression;
use crate::operators::bucket_geo;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};

/// A filter that parses to the same tree.
pub(crate) fn document(expression: &Expression) -> DocumentBuf {
    match expression {
        Expression::And(children) if children.is_empty() => DocumentBuf::new(),
        Expression::And(children) => list("$and", children),
        Expression::Or(children) => list("$or", children),
        Expression::Nor(children) => list("$nor", children),
        Expression::Not(child) => match (child.path(), operator(child)) {
            (Some(path), Some(operator)) => {
                DocumentBuf::new().with(path.as_str(), &DocumentBuf::new().with("$not", &operator))
            }
            // Negations of more than one operator have no `$not` of their own.
            _ => list("$nor", std::slice::from_ref(child)),
        },
        Expression::JsonSchema(schema) => DocumentBuf::new().with("$jsonSchema", schema.source()),
        Expression::Expr(expr) => DocumentBuf::new().with(expr.name, expr.source()),
        Expression::Text(search) => DocumentBuf::new().with("$text", &search.to_document()),
        Expression::BucketGeo { field, geo } => bucket_geo::to_document(field, geo),
        Expression::AlwaysTrue => DocumentBuf::new().with("$alwaysTrue", 1_i32),
        Expression::In { values, regexes, .. } if values.is_empty() && regexes.is_empty() => {
            document(&Expression::AlwaysFalse)
        }
        Expression::AlwaysFalse => DocumentBuf::new().with("$alwaysFalse", 1_i32),
        field => match (field.path(), operator(field)) {
            (Some(path), Some(operator)) => DocumentBuf::new().with(path.as_str(), &operator),
            _ => DocumentBuf::new(),
        },
    }
}

fn list(name: &str, children: &[Expression]) -> DocumentBuf {
    let children: Vec<DocumentBuf> = children.iter().map(document).collect();
    DocumentBuf::new().with(name, &children.iter().collect::<ArrayBuf>())
}

/// What stands behind the path of a node that has one: `{$gt: 5}`.
fn operator(expression: &Expression) -> Option<DocumentBuf> {
    let empty = DocumentBuf::new();
    Some(match expression {
        Expression::Compare { op, value, .. } => empty.with(op.name(), value),
        Expression::In { values, regexes, .. } => {
            let mut list: ArrayBuf = values.iter().collect();
            for regex in regexes {
                list.push(ValueRef::Regex { pattern: regex.pattern(), options: regex.options() });
            }
            empty.with("$in", &list)
        }
        Expression::Regex { regex, .. } => {
            let mut operator = empty.with("$regex", regex.pattern());
            if !regex.options().is_empty() {
                operator.append("$options", regex.options());
            }
            operator
        }
        Expression::Exists { .. } => empty.with("$exists", true),
        Expression::Type { types, .. } => empty.with("$type", &types.to_array()),
        Expression::Mod { divisor, remainder, .. } => {
            empty.with("$mod", &[*divisor, *remainder].into_iter().collect::<ArrayBuf>())
        }
        Expression::Size { size, .. } => match i32::try_from(*size) {
            Ok(size) => empty.with("$size", size),
            Err(_) => empty.with("$size", *size as i64),
        },
        Expression::ElemMatchObject { filter, .. } => empty.with("$elemMatch", &document(filter)),
        Expression::ElemMatchValue { condition, .. } => empty.with("$elemMatch", &operators(condition)),
        Expression::Bits { test, mask, .. } => {
            empty.with(test.name(), &mask.positions().iter().map(|&position| position as i32).collect::<ArrayBuf>())
        }
        Expression::Geo { geo, .. } => geo.to_document(),
        Expression::Near { point, .. } => point.to_document(),
        Expression::And(_)
        | Expression::Or(_)
        | Expression::Nor(_)
        | Expression::Not(_)
        | Expression::JsonSchema(_)
        | Expression::BucketGeo { .. }
        | Expression::Expr(_)
        | Expression::Text(_)
        | Expression::AlwaysTrue
        | Expression::AlwaysFalse => return None,
    })
}

/// The operators of a condition on a value itself: `{$gt: 1, $lt: 5}`.
fn operators(condition: &Expression) -> DocumentBuf {
    match condition {
        Expression::And(children) => {
            let mut all = DocumentBuf::new();
            for child in children {
                all.extend(operators(child).as_ref());
            }
            all
        }
        Expression::Not(child) => DocumentBuf::new().with("$not", &operators(child)),
        leaf => operator(leaf).unwrap_or_default(),
    }
}
